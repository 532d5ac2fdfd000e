//! The report: as numbers.

use crate::kinds::WakerContext;
use crate::resolve::{FrameNames, NamedFrame};
use crate::timehist::LineSums;
use crate::{OffCpu, OffCpuBy, OffCpuTime, Options, StackSums, StackWaker};
use sched::kthread::is_kernel_thread;
use sched::{Comm, Dur, OfSelection, Ts};
use serde::Serialize;
use session::stacks::{StackKind, kind_of};
use std::collections::BTreeMap;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/offcpu/1";

/// The time off-CPU of a command at one stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackTimes {
    /// The command name of the tasks; `(others)` of the rows beyond 32,768.
    pub command: Comm,
    /// The kind of the stack.
    pub kind: StackKind,
    /// The function on the stack that shows the kind; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<String>,
    /// The time asleep within the window, in nanoseconds; null where no event of wakeups was recorded, which alone divides it from the time runnable.
    pub asleep_ns: Option<Dur>,
    /// The time runnable within the window, in nanoseconds; null where no event of wakeups was recorded, which alone divides it from the time asleep.
    pub runnable_ns: Option<Dur>,
    /// The time asleep and runnable within the window, in nanoseconds.
    pub off_cpu_ns: Dur,
    /// The number of times that such a task left its CPU with this stack, within the window. Where rows are divided by the waker, a sleep
    /// counts when it ends.
    pub switches: u64,
    /// The functions of the stack of the switch-out, the innermost first; an address where the trace has no name for it. None where no
    /// stack was recorded, and where rows are divided by the waker alone.
    pub frames: Vec<String>,
    /// The waker and its stack; absent where rows are divided by the stack of the switch-out alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waker: Option<WokenBy>,
}

/// The waker of the sleeps of a row, with its stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WokenBy {
    /// The context of the wakeup: a task or an interrupt, or the reason why there is none.
    pub context: WakerContext,
    /// The command name of the waker; empty unless a task woke the sleeping one.
    pub command: Comm,
    /// The functions of the waker's stack, the innermost first; an address where the trace has no name for it. None where no stack was recorded.
    pub frames: Vec<String>,
}

/// The time off-CPU at all stacks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindTimes {
    /// The kind of the stacks.
    pub kind: StackKind,
    /// The time asleep within the window, in nanoseconds; null where no event of wakeups was recorded, which alone divides it from the time runnable.
    pub asleep_ns: Option<Dur>,
    /// The time runnable within the window, in nanoseconds; null where no event of wakeups was recorded, which alone divides it from the time asleep.
    pub runnable_ns: Option<Dur>,
    /// The time asleep and runnable within the window, in nanoseconds.
    pub off_cpu_ns: Dur,
    /// The number of times that a task left its CPU with such a stack, within the window.
    pub switches: u64,
}

/// The time off-CPU in a window, by the stack of the switch-out.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffCpuReport {
    /// The name and version of the schema, `schedviz/offcpu/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why there are no figures: the selected tasks are unknown, or none is in the window; absent if there
    /// are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The time by which stacks are ordered.
    pub time: OffCpuTime,
    /// The stacks by which time is divided.
    pub by: OffCpuBy,
    /// The reason why the time asleep and the time runnable are unknown: no event of wakeups was recorded; absent where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakeups_unknown: Option<&'static str>,
    /// The time for which tasks were off their CPUs, asleep or runnable, in nanoseconds, those without a stack among them.
    pub off_cpu_ns: Option<Dur>,
    /// The time for which tasks were asleep, in nanoseconds, those without a stack among them.
    pub asleep_ns: Option<Dur>,
    /// The time for which tasks were runnable, in nanoseconds, those without a stack among them.
    pub runnable_ns: Option<Dur>,
    /// The number of times that a task left its CPU.
    pub switches: Option<u64>,
    /// The number of these with a recorded stack.
    pub with_stack: Option<u64>,
    /// The number of switches of the whole trace whose stack was recorded and is left out, since there are more than this program keeps.
    pub beyond_limit: u64,
    /// The time by kind; kinds without any are left out.
    pub kinds: Vec<KindTimes>,
    /// The time by command and stack, the longest first.
    pub stacks: Vec<StackTimes>,
    /// The lines of perf's timehist by the keys of LKP.
    #[serde(skip)]
    pub(crate) keys: BTreeMap<String, LineSums>,
}

impl OffCpuReport {
    /// Whether any row has a stack, of the switch-out or of the waker. A report without any time counts as one with stacks.
    pub fn has_stacks(&self) -> bool {
        let has_one = |row: &StackTimes| {
            !row.frames.is_empty() || row.waker.as_ref().is_some_and(|waker| !waker.frames.is_empty())
        };
        self.with_stack != Some(0) || self.switches == Some(0) || self.stacks.iter().any(has_one)
    }
}

impl OfSelection for OffCpuReport {
    fn withhold(&mut self, why: String) {
        let OffCpuReport { schema, from_ns, to_ns, time, by, beyond_limit, .. } = *self;
        *self = OffCpuReport {
            schema,
            from_ns,
            to_ns,
            selection_unknown: Some(why),
            time,
            by,
            wakeups_unknown: None,
            off_cpu_ns: None,
            asleep_ns: None,
            runnable_ns: None,
            switches: None,
            with_stack: None,
            beyond_limit,
            kinds: Vec::new(),
            stacks: Vec::new(),
            keys: BTreeMap::new(),
        };
    }
}

/// The reason why times asleep and runnable are unknown, where it is so.
pub(crate) const WAKEUPS_UNKNOWN: &str = "no wakeup was recorded";

impl StackTimes {
    /// The time of a row that orders it: all of it where the parts are unknown.
    pub(crate) fn time(&self, of: OffCpuTime) -> Dur {
        self.asleep_ns.zip(self.runnable_ns).map_or(self.off_cpu_ns, |(asleep, runnable)| of.of(asleep, runnable))
    }
}

impl OffCpuTime {
    /// The time of this kind among the two.
    pub(crate) fn of(self, asleep: Dur, runnable: Dur) -> Dur {
        match self {
            OffCpuTime::Asleep => asleep,
            OffCpuTime::Runnable => runnable,
            OffCpuTime::Both => Dur(asleep.0.saturating_add(runnable.0)),
        }
    }
}

/// Maximum size of the names of the functions in all rows, in bytes: a stack of hundreds of functions can be in thousands of rows.
const MOST_NAMES: usize = 32 << 20;

/// Whether a row is of a thread of the kernel without work, which sleeps on nothing: such rows stand last.
pub(crate) fn is_idle(row: &StackTimes) -> bool {
    is_kernel_thread(row.command) && matches!(row.kind, StackKind::Work | StackKind::NoStack | StackKind::Unresolved)
}

pub(crate) fn build(offcpu: OffCpu<'_>, end: Ts) -> OffCpuReport {
    let options = offcpu.options;
    let keys = offcpu.timehist.by_key(options);
    let mut names = FrameNames::new(options);
    // Stacks that differ in addresses within the same functions are one.
    let mut rows: BTreeMap<NamedRow, StackSums> = BTreeMap::new();
    let (mut stacked, mut rest) = (0, StackSums::default());
    let mut found = offcpu.rows.into_rows();
    // A task whose time off the CPU began before the window has a row without any.
    found.retain(|(_, sums)| *sums != StackSums::default());
    // The longest come first into the room that all have.
    found.sort_by_key(|(_, sums)| std::cmp::Reverse(options.time.of(sums.asleep, sums.runnable)));
    let mut left = MOST_NAMES;
    for (key, sums) in found {
        let Some((command, out, waker)) = key else {
            rest += sums;
            continue;
        };
        let of_row = [out, waker.and_then(|waker| waker.stack)];
        stacked += if of_row.iter().any(Option::is_some) { sums.switches } else { 0 };
        let size: usize = of_row.into_iter().flatten().map(|id| names.size(id)).sum();
        let Some(rest_of_room) = left.checked_sub(size) else {
            rest += sums;
            continue;
        };
        left = rest_of_room;
        let of_waker =
            waker.map(|StackWaker { context, command, stack }| (context, command, stack.map(|id| names.stack(id))));
        let row = rows.entry((command, out.map(|id| names.stack(id)), of_waker)).or_default();
        *row += sums;
    }
    let mut stacks: Vec<StackTimes> = rows.iter().map(|(row, sums)| times(row, *sums, options, &names)).collect();
    if rest != StackSums::default() {
        stacks.push(times(&(Comm::new(b"(others)"), None, None), rest, options, &names));
    }
    stacks.sort_by_key(|row| (is_idle(row), std::cmp::Reverse(row.time(options.time))));
    let sum = |of: fn(&StackTimes) -> u64| stacks.iter().map(of).fold(0, u64::saturating_add);
    let known = |time: Option<Dur>| time.unwrap_or_default();
    let has_parts = !options.without_wakeups;
    let kinds = StackKind::ALL.into_iter().filter_map(|kind| {
        let (mut asleep, mut runnable, mut off_cpu_ns, mut switches) = (Dur(0), Dur(0), Dur(0), 0);
        for row in stacks.iter().filter(|row| row.kind == kind) {
            asleep += known(row.asleep_ns);
            runnable += known(row.runnable_ns);
            off_cpu_ns += row.off_cpu_ns;
            switches += row.switches;
        }
        let (asleep_ns, runnable_ns) = (has_parts.then_some(asleep), has_parts.then_some(runnable));
        (off_cpu_ns.0 > 0 || switches > 0).then_some(KindTimes { kind, asleep_ns, runnable_ns, off_cpu_ns, switches })
    });
    OffCpuReport {
        schema: SCHEMA,
        from_ns: offcpu.start.unwrap_or(end),
        to_ns: end,
        selection_unknown: None,
        time: options.time,
        by: options.by,
        wakeups_unknown: options.without_wakeups.then_some(WAKEUPS_UNKNOWN),
        off_cpu_ns: Some(Dur(sum(|row| row.off_cpu_ns.0))),
        asleep_ns: has_parts.then(|| Dur(sum(|row| row.asleep_ns.map_or(0, |time| time.0)))),
        runnable_ns: has_parts.then(|| Dur(sum(|row| row.runnable_ns.map_or(0, |time| time.0)))),
        switches: Some(sum(|row| row.switches)),
        with_stack: Some(stacked),
        beyond_limit: options.stacks.beyond_limit(),
        kinds: kinds.collect(),
        stacks,
        keys,
    }
}

/// A row by its names: the command, the functions of the stack, and those of the waker.
type NamedRow = (Comm, Option<Vec<NamedFrame>>, Option<(WakerContext, Comm, Option<Vec<NamedFrame>>)>);

fn times(row: &NamedRow, sums: StackSums, options: &Options<'_>, names: &FrameNames<'_>) -> StackTimes {
    let (command, out, waker) = row;
    let of_waker = waker.as_ref().and_then(|(_, _, frames)| frames.as_deref());
    let frames = if options.by == OffCpuBy::Waker { of_waker } else { out.as_deref() };
    let (kind, shown_by) = match frames {
        None => (StackKind::NoStack, None),
        Some(frames) => match kind_of(frames.iter().map(|frame| if frame.is_user { "" } else { names.name(*frame) })) {
            Some((kind, place)) => (kind, frames.get(place).map(|frame| names.name(*frame).to_owned())),
            None if frames.iter().any(|frame| frame.is_function && !frame.is_user) => (StackKind::Other, None),
            None => (StackKind::Unresolved, None),
        },
    };
    let named = |frames: Option<&[NamedFrame]>| {
        frames.unwrap_or_default().iter().map(|frame| names.name(*frame).to_owned()).collect::<Vec<String>>()
    };
    let waker = waker.as_ref().map(|(context, command, frames)| WokenBy {
        context: *context,
        command: *command,
        frames: named(frames.as_deref()),
    });
    let StackSums { asleep, runnable, switches } = sums;
    let has_parts = !options.without_wakeups;
    StackTimes {
        command: *command,
        kind,
        shown_by,
        asleep_ns: has_parts.then_some(asleep),
        runnable_ns: has_parts.then_some(runnable),
        off_cpu_ns: Dur(asleep.0.saturating_add(runnable.0)),
        switches,
        frames: named(out.as_deref()),
        waker,
    }
}
