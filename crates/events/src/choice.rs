//! The choice of records that are looked at, and their names.

use crate::EventsArgs;
use crate::details::{Pattern, Value};
use anyhow::{Result, bail};
use parse::Neighbours;
use parse::{EventFormat, Record};
use sched::Diagnostics;
use sched::names::NameHistory;
use sched::{Comm, Tracepoint};
use session::Session;
use session::args::{ChosenTasks, TaskArgs};
use session::over_lanes::with_those_of;
use session::patterns::{self};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use timeline::Rows;

/// The events that `-e sched` records beside those of the state, without any choice of the user's. Its statistics
/// (`sched_stat_*`) belong to them.
pub(crate) const ORDINARY: [&str; 5] =
    ["sched_prepare_exec", "sched_process_wait", "sched_process_free", "sched_wait_task", "sched_skip_vma_numa"];

/// The choice of the records that are looked at, and their kinds.
pub(crate) struct Choice {
    /// Whether all events are looked at, also those without a format.
    all: bool,
    /// The names of the events that are looked at, by the numbers of their formats; nothing for other events.
    pub(crate) names: Vec<Option<String>>,
    /// The CPUs that are shown.
    pub(crate) rows: Rows,
    tasks: ChosenTasks,
    /// The names of tasks over time, where the selection is by names.
    pub(crate) called: Option<NameHistory>,
    by: Option<String>,
    pub(crate) pattern: Option<Pattern>,
    value: Option<Value>,
}

impl Choice {
    /// The choice of all records of events of these formats.
    pub(crate) fn plain(session: &Session, formats: &[&EventFormat]) -> Choice {
        Choice {
            all: false,
            names: names(formats),
            rows: Rows::new(&session.shown.cpus),
            tasks: ChosenTasks::default(),
            called: None,
            by: None,
            pattern: None,
            value: None,
        }
    }

    /// The choice of all records.
    pub(crate) fn all(session: &Session) -> Choice {
        Choice { all: true, ..Choice::plain(session, &[]) }
    }

    pub(crate) fn of(args: &EventsArgs, session: &Session) -> Result<Choice> {
        let pattern = args.r#match.clone().map(Pattern::new);
        let formats = formats(args, session)?;
        let value = args.value.as_deref().map(|name| Value::of(name, &formats)).transpose()?;
        if let Some(by) = args.by.as_ref().filter(|by| formats.iter().all(|f| f.field(by).is_none())) {
            bail!("--by: none of these events has a field {by}");
        }
        Ok(Choice {
            all: false,
            names: names(&formats),
            rows: Rows::new(&session.shown.cpus),
            tasks: args.tasks.chosen(session)?,
            called: args.tasks.is_by_name().then(|| session.names()).transpose()?,
            by: args.by.clone(),
            pattern,
            value,
        })
    }

    /// The choice of the records of a list: those of the events that match patterns, or all without any pattern.
    pub(crate) fn listed(session: &Session, events: &[String], tasks: &TaskArgs) -> Result<Choice> {
        let all = || Ok(session.trace.formats().iter().collect());
        let formats = if events.is_empty() { all() } else { patterns::formats(&session.trace, events) }?;
        Ok(Choice {
            all: events.is_empty(),
            tasks: tasks.chosen(session)?,
            called: tasks.is_by_name().then(|| session.names()).transpose()?,
            ..Choice::plain(session, &formats)
        })
    }

    pub(crate) fn takes(&self, record: &Record<'_>) -> bool {
        self.rows.of(record.cpu).is_some() && self.takes_anywhere(record)
    }

    /// Whether a record is chosen on whatever CPU.
    pub(crate) fn takes_anywhere(&self, record: &Record<'_>) -> bool {
        (self.all || self.name(record).is_some())
            && self.tasks.takes(record.pid(), record.ts, || command(record, self.called.as_ref()))
    }

    /// Whether some events of a system, such as `ftrace`, are looked at.
    pub(crate) fn takes_any_of(&self, system: &str, session: &Session) -> bool {
        let is_named = |id: u16| self.names.get(usize::from(id)).is_some_and(Option::is_some);
        session.trace.formats().iter().any(|format| format.system == system && is_named(format.id))
    }

    /// Whether events are looked at one by one, not as the ends of spans.
    pub(crate) fn splits(&self) -> bool {
        self.by.is_some() || self.pattern.is_some() || self.value.is_some()
    }

    pub(crate) fn name(&self, record: &Record<'_>) -> Option<&str> {
        self.names.get(usize::from(record.id()))?.as_deref()
    }

    /// The kind of the event with this text.
    pub(crate) fn kind(&self, record: &Record<'_>, text: Option<String>) -> Cow<'_, str> {
        let kind = match (text, self.name(record)) {
            (Some(text), _) => crate::shortened(&sched::event::escape(text.trim_end().as_bytes())).into(),
            (None, Some(name)) => name.into(),
            (None, None) => format!("event {}", record.id()).into(),
        };
        if self.by.is_none() && self.pattern.is_none() {
            return kind;
        }
        let mut kind = kind.into_owned();
        if let Some(by) = &self.by {
            let value = record.field_text(by).unwrap_or_else(|| "?".to_owned());
            // Writing to a string cannot fail.
            let _ = write!(kind, " {by}={value}");
        }
        if let Some(pattern) = &self.pattern {
            kind.push_str(&pattern.found(record));
        }
        kind.into()
    }

    /// The value in a record of the field that was asked for, if the record has one.
    pub(crate) fn value(&self, record: &Record<'_>) -> Option<f64> {
        self.value.as_ref()?.found(record)
    }

    /// The unit of the values that were asked for, if it is known.
    pub(crate) fn unit(&self) -> Option<&str> {
        self.value.as_ref()?.unit()
    }

    /// Refuses, once all events were looked at, to show none of the values that were asked for.
    pub(crate) fn has_values(&self, events: u64) -> Result<()> {
        self.value.as_ref().map_or(Ok(()), |value| value.was_of_use(events))
    }
}

/// The names of the events of these formats, by their numbers.
pub(crate) fn names(formats: &[&EventFormat]) -> Vec<Option<String>> {
    let mut names = vec![None; formats.iter().map(|f| usize::from(f.id) + 1).max().unwrap_or(0)];
    for format in formats {
        // The first of several formats with the same number counts.
        names[usize::from(format.id)].get_or_insert_with(|| patterns::full_name(format));
    }
    names
}

/// The name of the current task at that time: the recorder saved one name of each, the last, and from many kernels those
/// of a few tasks only.
pub(crate) fn command(record: &Record<'_>, called: Option<&NameHistory>) -> Comm {
    called.and_then(|called| called.of(record.pid(), record.ts)).unwrap_or_else(|| record.command())
}

/// The formats of the events asked for.
pub(crate) fn formats<'s>(args: &EventsArgs, session: &'s Session) -> Result<Vec<&'s EventFormat>> {
    if !args.events.is_empty() {
        return patterns::formats(&session.trace, &args.events);
    }
    let all = occurring(session);
    let special: Vec<&EventFormat> = all.iter().copied().filter(is_special).collect();
    Ok(if special.is_empty() { all } else { special })
}

/// The formats of the events that occur.
pub(crate) fn occurring(session: &Session) -> Vec<&EventFormat> {
    session.trace.formats().iter().filter(|format| session.trace.occurs(format.id)).collect()
}

/// Whether events of a format are the user's choice.
pub(crate) fn is_special(format: &&EventFormat) -> bool {
    let is_of_the_state = |name: &str| Tracepoint::STATE.iter().any(|tracepoint| tracepoint.name() == name);
    let is_ordinary = |name: &str| is_of_the_state(name) || ORDINARY.contains(&name) || name.starts_with("sched_stat_");
    format.system != "sched" || !is_ordinary(&format.name)
}

/// Writes what `put` puts into words of the same records, in their order; all threads put.
pub(crate) fn write_each<W: Default + Send>(
    session: &Session,
    choice: &Choice,
    write: &mut dyn FnMut(W) -> Result<()>,
    put: impl Fn(&mut W, &Neighbours<'_>) + Sync,
) -> Result<Diagnostics> {
    let words_of = |records: &mut dyn Iterator<Item = Neighbours<'_>>| {
        let mut words = W::default();
        for neighbours in records {
            if neighbours.record.ts > session.last() {
                return (words, ControlFlow::Break(()));
            }
            if choice.takes(&neighbours.record) {
                put(&mut words, &neighbours);
            }
        }
        (words, ControlFlow::Continue(()))
    };
    let mut written = Ok(());
    let found = session.trace.records_mapped(session.from, words_of, &mut |(words, flow)| {
        written = write(words);
        if written.is_ok() { flow } else { ControlFlow::Break(()) }
    });
    written?;
    Ok(with_those_of(session, &found))
}

/// The options of figures of events.
pub fn options(session: &Session) -> crate::Options {
    crate::Options { zero: session.start, cpus: session.shown.cpus.clone(), all_cpus: session.shown.all.clone() }
}
