//! The facts as rows.

use crate::output::Output;
use crate::schema::FactTable;
use crate::value::Value;
use latency::{Measure, Placement};
use sched::topology::Distance;
use sched::{Cause, Comm, Cpu, Dur, Pid, PrevState, Span, StateClass, Ts};
use serde::Serialize;
use why::{IdleEnd, IdleOrigin, ListedCase, Nearest, WaitEnd, WaitOrigin};
use workcons::ListedEpisode;

/// The words that JSON has for the variants of an enumeration, by index.
struct Words(Vec<String>);

impl Words {
    fn of<T: Serialize>(all: &[T]) -> Words {
        let word = |one| serde_json::to_value(one).ok().and_then(|word| word.as_str().map(str::to_owned));
        Words(all.iter().map(|one| word(one).unwrap_or_default()).collect())
    }

    fn get(&self, index: usize) -> Value<'_> {
        self.0.get(index).map_or(Value::Null, |word| word.as_str().into())
    }

    fn known(&self, index: Option<usize>) -> Value<'_> {
        index.map_or(Value::Null, |index| self.get(index))
    }
}

const NEAREST: [Nearest; 8] = [
    Nearest::Itself,
    Nearest::Core,
    Nearest::Cluster,
    Nearest::Llc,
    Nearest::Node,
    Nearest::Beyond,
    Nearest::Somewhere,
    Nearest::Nowhere,
];

/// The word for the state in which a task left its CPU.
fn word(class: StateClass) -> &'static str {
    match class {
        StateClass::Runnable | StateClass::Preempted => "preempted",
        StateClass::Asleep => "slept",
        StateClass::Dead => "exited",
    }
}

/// A stretch in which a task ran, as a row.
#[derive(Clone, Copy, Debug)]
pub struct OnCpuRow {
    /// The CPU on which the task ran.
    pub cpu: Cpu,
    /// The stretch, whose state is the run on that CPU.
    pub span: Span,
    /// The command name of the task; empty if it is unknown.
    pub command: Comm,
    /// The kernel priority of the task; nothing if it is unknown.
    pub prio: Option<i32>,
    /// The state in which a switch took the task from the CPU; nothing if no switch ended the stretch.
    pub left: Option<PrevState>,
}

/// An event as a row.
#[derive(Clone, Debug)]
pub struct EventRow<'e> {
    /// The time of the event.
    pub ts: Ts,
    /// The CPU that recorded it.
    pub cpu: Cpu,
    /// The buffer that it was recorded in; nothing for the main one.
    pub buffer: Option<&'e str>,
    /// The task that was current on the CPU.
    pub pid: Pid,
    /// The command name that the recorder saved for that task.
    pub command: Comm,
    /// The system and the name of the event; nothing for one without a format.
    pub name: Option<(&'e str, &'e str)>,
    /// The text of the event.
    pub details: &'e str,
    /// The values of the columns of fields, where the table has some.
    pub fields: &'e [Value<'e>],
}

/// Makes rows of facts, and gives them to an [`Output`].
pub struct Tables<'o> {
    output: &'o Output,
    causes: Words,
    distances: Words,
    nearest: Words,
    placements: Words,
    kinds: Words,
}

impl<'o> Tables<'o> {
    /// A maker of rows for this output.
    pub fn new(output: &'o Output) -> Tables<'o> {
        Tables {
            output,
            causes: Words::of(&Cause::ALL),
            distances: Words::of(&Distance::ALL),
            nearest: Words::of(&NEAREST),
            placements: Words::of(&Placement::ALL),
            kinds: Words::of(&Measure::ALL),
        }
    }

    fn cause(&self, cause: Option<Cause>) -> Value<'_> {
        self.causes.known(cause.map(|cause| cause as usize))
    }

    fn distance(&self, distance: Option<Distance>) -> Value<'_> {
        self.distances.known(distance.map(|distance| distance as usize))
    }

    fn near(&self, nearest: Option<Nearest>) -> Value<'_> {
        self.nearest.known(nearest.map(|nearest| nearest as usize))
    }

    /// Adds a stretch in which a task ran.
    pub fn on_cpu(&self, row: &OnCpuRow) {
        let OnCpuRow { cpu, span, command, prio, left } = row;
        self.output.row(
            FactTable::OnCpu,
            &[
                span.start.into(),
                span.duration().into(),
                (*cpu).into(),
                span.pid.into(),
                Value::command(command),
                (*prio).into(),
                span.begun.into(),
                span.ended.into(),
                left.map(|left| word(left.class)).into(),
                left.map(|left| left.raw.cast_signed()).into(),
            ],
        );
    }

    /// Adds a part of a wait: a stretch in which a task waited on one run queue.
    pub fn wait(&self, case: &ListedCase<WaitOrigin, WaitEnd>) {
        self.output.row(
            FactTable::Wait,
            &[
                case.start.into(),
                case.end.since(case.start).into(),
                case.cpu.into(),
                case.pid.into(),
                Value::command(&case.command),
                case.counted.into(),
                case.violated_ns.into(),
                case.origin.word().into(),
                self.cause(case.origin.migration()),
                self.near(case.origin.nearest()),
                case.ending.word().into(),
                self.cause(case.ending.migration()),
            ],
        );
    }

    /// Adds a stretch in which a CPU idled.
    pub fn idle(&self, case: &ListedCase<IdleOrigin, IdleEnd>) {
        self.output.row(
            FactTable::Idle,
            &[
                case.start.into(),
                case.end.since(case.start).into(),
                case.cpu.into(),
                case.violated_ns.into(),
                case.origin.word().into(),
                self.cause(case.origin.migration()),
                case.ending.word().into(),
                self.cause(case.ending.migration()),
                self.near(case.missed),
            ],
        );
    }

    /// Adds an episode in which work conservation was violated.
    pub fn episode(&self, listed: &ListedEpisode) {
        let episode = &listed.episode;
        self.output.row(
            FactTable::Episode,
            &[
                episode.start.into(),
                episode.duration.into(),
                episode.cpu_time_lost_ns.into(),
                episode.thread_ns.into(),
                self.distance(listed.nearest),
            ],
        );
    }

    /// Adds a migration of a task.
    pub fn migration(&self, m: &events::ListedMigration) {
        self.output.row(
            FactTable::Migration,
            &[
                m.ts_ns.into(),
                m.cpu.into(),
                m.pid.into(),
                Value::command(&m.command),
                m.from_cpu.into(),
                m.to_cpu.into(),
                self.cause(Some(m.cause)),
                m.queued.into(),
                self.distance(m.distance),
                m.until_run_ns.into(),
            ],
        );
    }

    /// Adds the wait of a task that ran, since a wakeup, a fork or a preemption.
    pub fn wakeup(&self, listed: &latency::ListedWait) {
        let case = &listed.case;
        let known = |value: Dur| listed.start_is_known.then_some(value);
        let queued = listed.queued;
        // The first part is measured where the waking is known.
        let until_queued = queued.filter(|_| case.waker.is_some()).map(|queued| queued.since(case.start_ns));
        self.output.row(
            FactTable::Wakeup,
            &[
                self.kinds.get(case.measure as usize),
                listed.start_is_known.then_some(case.start_ns).into(),
                queued.into(),
                listed.ran.into(),
                known(case.duration_ns).into(),
                until_queued.and_then(known).into(),
                queued.map(|queued| Dur(listed.ran.since(queued).0.saturating_sub(case.throttled_ns.0))).into(),
                case.pid.into(),
                Value::command(&case.command),
                case.waker.into(),
                Value::command(&case.waker_command),
                listed.slept_on.into(),
                case.queued_on.into(),
                case.ran_on.into(),
                self.placements.known(listed.placement.map(|placement| placement as usize)),
                case.idle_cpus.into(),
                case.behind.into(),
                Value::command(&case.behind_command),
            ],
        );
    }

    /// Adds a recorded event.
    pub fn event(&self, event: &EventRow<'_>) {
        let row = [
            event.ts.into(),
            event.cpu.into(),
            event.buffer.into(),
            event.pid.into(),
            Value::command(&event.command),
            event.name.map(|(system, _)| system).into(),
            event.name.map(|(_, name)| name).into(),
            event.details.into(),
        ];
        match event.fields {
            [] => self.output.row(FactTable::Event, &row),
            fields => self.output.row(FactTable::Event, &[&row, fields].concat()),
        }
    }
}
