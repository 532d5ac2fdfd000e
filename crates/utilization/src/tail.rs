//! The serial tail of the application: the time at its end in which no two of its tasks could run (`docs/questions/utilization.md#serial-tail`).

use crate::Options;
use sched::{Analysis, Dur, EventKind, Joined, SchedEvent, SchedState, Task, TaskState, Ts};
use serde::Serialize;
use timeline::text::paragraph;

/// The length from which a time with several runnable tasks is none of the tail.
const OVERLAP: Dur = Dur(10_000_000);

/// The time at the end of the application in which no two of its tasks were runnable for 10 ms or longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SerialTail {
    /// The start of the tail, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the tail, up to the last instant at which a task of the application was runnable, in nanoseconds.
    pub length_ns: Dur,
    /// The part of the tail in which exactly one task was runnable, in nanoseconds.
    pub one_ns: u64,
    /// The part of the tail in which several tasks were runnable, for less than 10 ms at a time, in nanoseconds.
    pub several_ns: u64,
}

impl SerialTail {
    /// Whether the tail is serial indeed: one task was runnable for four fifths of it, and several for a twentieth at most.
    pub fn is_serial(&self) -> bool {
        let part = |ns: u64| ns as f64 / (self.length_ns.0 as f64).max(1.0);
        part(self.one_ns) >= 0.8 && part(self.several_ns) <= 0.05
    }
}

/// The least part of the window, one in this number, of which a tail is told.
const LEAST_TAIL: u64 = 20;

/// The serial tail of a window for people, where it is long enough.
pub(crate) fn put(out: &mut String, tail: Option<SerialTail>, window: Dur) {
    let is_told = |tail: &SerialTail| tail.is_serial() && tail.length_ns.0 >= window.0 / LEAST_TAIL;
    let Some(tail) = tail.filter(is_told) else { return };
    let text = format!(
        "Serial tail: for its last {}, from {:.6} s on, the application had one runnable task ({:.1} % of that time), several for less than \
         {} at a time ({:.1} %), or none.",
        tail.length_ns.human(),
        tail.start_in_trace_ns as f64 / 1e9,
        100.0 * tail.one_ns as f64 / (tail.length_ns.0 as f64).max(1.0),
        OVERLAP.human(),
        100.0 * tail.several_ns as f64 / (tail.length_ns.0 as f64).max(1.0)
    );
    out.push('\n');
    paragraph(out, 0, 2, &text);
}

/// The number of runnable tasks, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Runnable {
    #[default]
    None,
    One,
    Several,
}

impl Runnable {
    fn of(number: u32) -> Runnable {
        match number {
            0 => Runnable::None,
            1 => Runnable::One,
            _ => Runnable::Several,
        }
    }
}

/// The times since the tail begins.
#[derive(Clone, Copy, Debug, Default)]
struct TailTimes {
    one: u64,
    several: u64,
}

/// The beginning of a later piece of a pass, and what the pieces before decide.
#[derive(Debug, Default)]
struct TailLog {
    counted: Vec<bool>,
    steps: Vec<(Ts, Runnable)>,
}

/// The search for the serial tail: an [`Analysis`] whose output is a [`SerialTail`]; nothing where the application is unknown, never ran, or had
/// several runnable tasks at its end.
#[derive(Debug)]
pub struct TailSearch<'o> {
    options: &'o Options,
    /// The runnable tasks of the application, by [`sched::TaskId::index`], and their number.
    counted: Vec<bool>,
    number: u32,
    now: Runnable,
    /// The instant at which that began, and the one up to which time is accounted for.
    since: Ts,
    /// The start of the tail; nothing before a task was runnable.
    start: Option<Ts>,
    times: TailTimes,
    /// The last instant at which a task was runnable.
    end: Ts,
    log: Option<TailLog>,
}

/// Whether a task could run.
fn is_runnable(state: TaskState) -> bool {
    matches!(state, TaskState::Running(_) | TaskState::Waiting(_) | TaskState::Throttled(_))
}

/// Whether the same tasks are counted.
fn are_same(one: &[bool], other: &[bool]) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let (same, rest) = long.split_at(short.len());
    short == same && !rest.contains(&true)
}

impl<'o> TailSearch<'o> {
    /// Returns the search within the window of a measurement.
    pub fn new(options: &'o Options) -> TailSearch<'o> {
        TailSearch {
            options,
            counted: Vec::new(),
            number: 0,
            now: Runnable::None,
            since: options.from,
            start: None,
            times: TailTimes::default(),
            end: options.from,
            log: None,
        }
    }

    fn is_of_application(&self, task: &Task, ts: Ts) -> bool {
        match &self.options.tasks {
            Some(tasks) => tasks.takes(task.pid, ts, || task.comm),
            None => task.kin.descends,
        }
    }

    /// Counts a task, or not any more, from `ts` on.
    fn look(&mut self, task: &Task, state: TaskState, ts: Ts) {
        let (at, counts) = (task.id().index(), is_runnable(state) && self.is_of_application(task, ts));
        if at >= self.counted.len() {
            if !counts {
                return;
            }
            self.counted.resize(at + 1, false);
        }
        let before = std::mem::replace(&mut self.counted[at], counts);
        self.number = self.number + u32::from(counts) - u32::from(before);
    }

    /// Takes over the number of runnable tasks from `ts` on.
    fn follow(&mut self, ts: Ts) {
        let next = Runnable::of(self.number);
        if next == self.now {
            return;
        }
        match &mut self.log {
            Some(log) => {
                log.steps.push((ts, next));
                self.now = next;
            }
            None => self.turn(ts, next),
        }
    }

    fn turn(&mut self, ts: Ts, next: Runnable) {
        let ns = ts.since(self.since);
        match self.now {
            Runnable::None => {}
            Runnable::One => self.times.one = self.times.one.saturating_add(ns.0),
            Runnable::Several if ns >= OVERLAP => (self.start, self.times) = (Some(ts), TailTimes::default()),
            Runnable::Several => self.times.several = self.times.several.saturating_add(ns.0),
        }
        if self.now != Runnable::None {
            self.end = ts;
        }
        if next != Runnable::None && self.start.is_none() {
            self.start = Some(ts);
        }
        (self.now, self.since) = (next, ts);
    }

    /// Counts the tasks that are runnable at the beginning of the window or of a piece.
    fn count_all(&mut self, start: Ts, state: &SchedState) {
        for task in state.living() {
            self.look(task, task.state, start);
        }
    }
}

impl Analysis for TailSearch<'_> {
    type Output = Option<SerialTail>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        (self.since, self.end) = (start, start);
        self.count_all(start, state);
        self.follow(start);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        for (task, span) in state.turns() {
            self.look(task, span.next, event.ts);
        }
        // The task that runs there may turn out to be the traced command.
        if let EventKind::Exec { .. } = event.kind
            && let Some(task) = state.running(event.cpu)
        {
            self.look(task, task.state, event.ts);
        }
        self.follow(event.ts);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Option<SerialTail> {
        // What goes on is cut at the end.
        self.turn(end, Runnable::None);
        let start = self.start?;
        let length_ns = self.end.since(start);
        let is_known = self.options.tasks.is_some() || state.why_application_is_unknown().is_none();
        (is_known && length_ns > Dur(0)).then(|| SerialTail {
            start_in_trace_ns: start.since(self.options.zero).0,
            length_ns,
            one_ns: self.times.one,
            several_ns: self.times.several,
        })
    }
}

impl Joined for TailSearch<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.count_all(at, state);
        self.now = Runnable::of(self.number);
        self.since = at;
        self.log = Some(TailLog { counted: self.counted.clone(), steps: Vec::new() });
    }

    fn fits(&self, later: &Self) -> bool {
        later.log.as_ref().is_some_and(|log| are_same(&self.counted, &log.counted))
    }

    fn join(&mut self, later: Self) {
        let Some(log) = later.log else { return };
        match &mut self.log {
            Some(earlier) => {
                earlier.steps.extend(log.steps);
                self.now = later.now;
            }
            None => log.steps.into_iter().for_each(|(ts, next)| self.turn(ts, next)),
        }
        (self.counted, self.number) = (later.counted, later.number);
    }
}
