//! `schedviz stepper`: pages, a text, or the terminal.

use crate::StepperArgs;
use crate::args::FORMATS;
use crate::tui::App;
use crate::{EventLabel, Names, Options, Step};
use anyhow::{Result, bail};
use parse::{EventFormat, EventStream, Where};
use question::{Question, Subcommand};
use sched::{ChosenCpus, Replay, SchedEvent, Tracepoint, Ts, Window};
use serde::Serialize;
use session::Session;
use session::args::{ChosenTasks, terminal_width};
use session::document::TraceDocument;
use session::formats::{Formats, Renderings};
use session::stacks::{NamedStacks, StackedEvent, key_of};
use session::{patterns, warnings};
use std::collections::{HashMap, VecDeque};
use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Arc;
use timeline::Sheet;
use timeline::palette::TaskColors;
use workcons::ViolationSteps;

/// The name and version of the document's schema.
const SCHEMA: &str = "schedviz/stepper/2";

/// The tasks that are queued on each CPU at an instant, and the events that follow.
#[derive(Debug)]
pub struct StepperQuestion;

impl Subcommand for StepperQuestion {
    const NAME: &'static str = "stepper";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Which tasks were queued on each CPU at this instant, and what happened next?", "TRACE"));
    type Args = StepperArgs;

    fn run(args: &StepperArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for StepperQuestion {
    const FORMATS: Formats = FORMATS;

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, Report>>(SCHEMA)]
    }
}

/// The maximum number of pages: a request for more is taken for a mistake.
const MOST: u64 = 2000;

/// The number of functions of a stack that are shown.
const FUNCTIONS: usize = 5;

/// The names of a trace's events by number, and their stacks.
#[derive(Clone)]
pub(crate) struct EventNames(HashMap<u16, String>, Arc<NamedStacks>);

impl EventNames {
    pub(crate) fn of(trace: &parse::Trace) -> EventNames {
        let names = trace.formats().iter().map(|f| (f.id, f.name.to_string())).collect();
        EventNames(names, Arc::new(NamedStacks::of(trace, &StackedEvent::ALL)))
    }
}

impl Names for EventNames {
    fn event(&self, id: u16) -> String {
        self.0.get(&id).cloned().unwrap_or_else(|| format!("event {id}"))
    }

    fn stack(&self, event: &SchedEvent) -> Option<String> {
        self.1.words(key_of(event), FUNCTIONS)
    }
}

/// The report on the steps, each with the state of the machine.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Report {
    /// The name and version of the schema, `schedviz/stepper/2`.
    schema: &'static str,
    /// The start of the window on the trace's clock, in nanoseconds.
    from_ns: Ts,
    /// The end of the window on the trace's clock, in nanoseconds.
    to_ns: Ts,
    /// The number of recorded events in the trace. Losses, and CPUs that go offline, are further steps.
    events: u64,
    /// The events that were asked for, each with the state after it.
    steps: Vec<Step>,
}

/// Goes to the instant, and shows the state there and the steps around it.
pub(crate) fn run(args: &StepperArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.tasks.without_forked("stepper")?;
    let mut session = args.trace.open()?;
    args.symbols.give(&mut session)?;
    args.tasks.check(&session)?;
    let at = instant(args, &session)?;
    let (cpus, affinity) = (&session.shown.chosen, session.affinity.as_ref());
    let watch = || ViolationSteps::new(cpus, affinity);
    let mut replay = session.watched(|| Replay::watching(session.trace.events()?, watch))?;
    let start = replay.step_at(at).map_err(|e| session.named(e))?;
    let options = Options {
        zero: session.start,
        cpus: session.shown.cpus.clone(),
        group_name: session.shown.group_name.clone(),
        chosen: cpus.clone(),
        affinity: affinity.cloned(),
        recorded: replay.recorded(),
        has_lazy: session.trace.marks_lazy_requests(),
        colors: TaskColors::of_longest(session.trace.sampled_tasks()),
    };
    let diagnostics = replay.diagnostics().clone();
    if args.tui {
        warnings::warn(&diagnostics, &session.read);
        replay.go(start).map_err(|e| session.named(e))?;
        let filter = Filter::of(args, &session)?;
        return interact(&session, &filter, replay, options);
    }
    let steps = collect(args, &session, &mut replay, start, &options)?;
    let report =
        Report { schema: SCHEMA, from_ns: session.from, to_ns: session.to, events: replay.recorded().total(), steps };
    let text = || {
        let texts = report.steps.iter().map(|step| crate::text(step, &options, terminal_width()));
        texts.collect::<Vec<_>>().join("\n")
    };
    let figures = |sheet: &Sheet| {
        let heading = session.general_heading(&diagnostics).on(sheet);
        Ok(report.steps.iter().map(|step| crate::figure(step, &options, &heading)).collect())
    };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    let forms = if args.text { Renderings::told(text, figures) } else { Renderings::drawn(figures).with_text(text) };
    document.give("stepper", &session, &args.output, forms)
}

/// Refuses an instant before the trace or behind it.
fn within(session: &Session, at: Ts) -> Result<(), String> {
    let Some((start, end)) = session.recording() else { return Ok(()) };
    if at < start || at > end {
        if session.trace.past().is_some() {
            let seconds = |ts: Ts| ts.since(session.start).seconds();
            let (from, to) = (seconds(start), seconds(end));
            return Err(format!("outside of this part of a trace, which is from {from:.9} s to {to:.9} s"));
        }
        let length = end.since(start).seconds();
        return Err(format!("outside of the trace, which is {length:.9} s long"));
    }
    Ok(())
}

/// The instant to begin at.
fn instant(args: &StepperArgs, session: &Session) -> Result<Ts> {
    let Some(at) = args.at else { return Ok(session.from) };
    let at = at.in_trace(session.start);
    within(session, at).map_err(|why| anyhow::anyhow!("--at: the instant is {why}"))?;
    let Window { from, to } = session.window;
    if from.is_some_and(|from| at < from) || to.is_some_and(|to| at > to) {
        bail!("--at is outside of the window from --min to --max");
    }
    Ok(at)
}

/// The choice of the events that are stepped at.
struct Filter<'t> {
    formats: Option<Vec<&'t EventFormat>>,
    tasks: Option<ChosenTasks>,
    cpus: ChosenCpus,
}

impl<'t> Filter<'t> {
    fn of(args: &StepperArgs, session: &'t Session) -> Result<Filter<'t>> {
        let formats = patterns::formats(&session.trace, &args.tool.events)?;
        Ok(Filter {
            formats: (!args.tool.events.is_empty()).then_some(formats),
            tasks: args.tasks.is_any().then(|| args.tasks.chosen(session)).transpose()?,
            cpus: session.shown.chosen.clone(),
        })
    }

    fn is_open(&self) -> bool {
        self.formats.is_none() && self.tasks.is_none() && self.cpus.are_all()
    }

    fn wants(&self, event: &SchedEvent, state: &sched::SchedState, names: &dyn Names) -> bool {
        let about =
            |tasks: &ChosenTasks| crate::tasks_of(event, state).any(|(pid, comm)| tasks.takes(pid, event.ts, || comm));
        let on = || {
            let coming = crate::Coming::of(event, state, names);
            self.cpus.named().any(|cpu| coming.concerns(cpu))
        };
        let is_of = |format: &&EventFormat| match EventLabel::of(&event.kind) {
            EventLabel::Interpreted(tracepoint) => Tracepoint::of(&format.system, &format.name) == Some(tracepoint),
            EventLabel::Numbered(id) => id == format.id,
            EventLabel::Concluded(_) => false,
        };
        self.formats.as_ref().is_none_or(|wanted| wanted.iter().any(is_of))
            && self.tasks.as_ref().is_none_or(about)
            && (self.cpus.are_all() || on())
    }
}

/// The steps of a window, from the first to the last.
fn steps_of(window: Window, replay: &mut Replay<EventStream<'_>>) -> Result<RangeInclusive<u64>, parse::Error> {
    let first = window.from.map_or(Ok(0), |from| replay.step_at(from))?;
    let last = match window.to {
        Some(to) => replay.step_at(Ts(to.0.saturating_add(1)))?.saturating_sub(1),
        None => replay.total(),
    };
    Ok(first..=last)
}

/// The steps asked for, in the order of time.
fn collect(
    args: &StepperArgs,
    session: &Session,
    replay: &mut Replay<EventStream<'_>>,
    start: u64,
    options: &Options,
) -> Result<Vec<Step>> {
    let named = |e| session.named(e);
    let names = EventNames::of(&session.trace);
    let filter = Filter::of(args, session)?;
    let count = args.tool.steps.saturating_add(args.tool.back).saturating_add(1);
    if count > MOST {
        bail!("{count} pages are too many; at most {MOST} are drawn");
    }
    let Window { from, to } = session.window;
    let inside = steps_of(session.window, replay).map_err(named)?;
    let mut wanted: VecDeque<u64> = VecDeque::new();
    if filter.is_open() {
        let (begin, end) = (start.saturating_sub(args.tool.back), start.saturating_add(args.tool.steps));
        wanted.extend(begin.max(*inside.start())..=end.min(*inside.end()));
    } else {
        // A name that is not in the event is looked up where the state has it: at the start.
        replay.go(start).map_err(named)?;
        let state = replay.state().clone();
        // An event outside of the window ends the search.
        let wants = |e: &SchedEvent| {
            from.is_some_and(|from| e.ts < from) || to.is_some_and(|to| e.ts > to) || filter.wants(e, &state, &names)
        };
        let mut at = start;
        while (wanted.len() as u64) < args.tool.back {
            let found = replay.find_back(at, wants).map_err(named)?;
            let Some(found) = found.filter(|found| inside.contains(found)) else { break };
            wanted.push_front(found);
            at = found;
        }
        let (mut next, count) = (Some(start), wanted.len() as u64 + args.tool.steps + 1);
        while let Some(at) = next.filter(|_| (wanted.len() as u64) < count) {
            let found = replay.find(at, wants).map_err(named)?.filter(|found| inside.contains(found));
            wanted.extend(found);
            next = found.map(|step| step + 1);
        }
    }
    if wanted.is_empty() {
        let at = instant(args, session)?.since(session.start).seconds();
        bail!("no such event from {at:.9} s on{}", if to.is_some() { ", up to --max" } else { "" });
    }
    let mut steps = Vec::new();
    for step in wanted {
        replay.go(step).map_err(named)?;
        steps.push(Step::of(step, replay.state(), replay.event(), options, &names));
    }
    Ok(steps)
}

/// Runs the stepper in the terminal, until the user ends it.
fn interact(session: &Session, filter: &Filter<'_>, replay: Replay<EventStream<'_>>, options: Options) -> Result<()> {
    use ratatui::crossterm::event::{Event, KeyEventKind, read};
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("--tui needs a terminal; --text and --json do not");
    }
    let parse_time = |text: &str| {
        let at = Where::parse(text).map_err(|e| e.to_string())?.in_trace(session.start);
        within(session, at).map(|()| at)
    };
    let names = EventNames::of(&session.trace);
    let mut app = App::new(session.name(), replay, options, Box::new(names.clone()), Box::new(parse_time));
    if !filter.is_open() {
        let wants = |event: &SchedEvent, state: &sched::SchedState| filter.wants(event, state, &names);
        app.step_at(Box::new(wants)).map_err(|e| session.named(e))?;
    }
    let mut terminal = ratatui::try_init()?;
    let done = (|| -> Result<()> {
        while !app.is_done() {
            terminal.draw(|frame| app.draw(frame))?;
            if let Event::Key(key) = read()?
                && key.kind != KeyEventKind::Release
            {
                app.key(key).map_err(|e| session.named(e))?;
            }
        }
        Ok(())
    })();
    // Whatever happened, the terminal is given back as it was.
    ratatui::restore();
    done
}
