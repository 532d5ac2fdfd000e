//! The analysis of a run: the tasks outside of the application, and what the application lost to them.

use membership::stem;
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{
    Analysis, Comm, Cpu, CpuSpan, Dur, EventKind, Joined, Pid, SchedEvent, SchedState, Span, TaskState, Ts, limits,
};
use serde::Serialize;
use std::cmp::Reverse;

/// Maximum number of commands; tasks of further ones are one command.
const MOST_COMMANDS: usize = 1000;

/// The commands of recorders: their work grows with the events of the run, so that it follows from what the run did.
const RECORDERS: [&str; 4] = ["trace-cmd", "schedviz", "perf", "perf-exec"];

/// The kind of a task that occupies a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Nothing that counts: no task, or one that is not known.
    #[default]
    None,
    Application,
    Kernel,
    /// A task outside of the application, by the place of its command.
    Outside(usize),
}

/// The work of a command outside of the application.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Culprit {
    /// The stem of the command.
    pub command: String,
    /// The CPU time of its tasks, in nanoseconds.
    pub run_ns: Dur,
    /// The waiting of tasks of the application while these ran on their CPU, in nanoseconds of tasks.
    pub wait_ns: Dur,
    /// The number of preemptions of tasks of the application by these.
    pub preemptions: u64,
}

/// The work of all tasks outside of the application in a run, with the kernel and the recorder apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutsideWork {
    /// The length of the run, in nanoseconds.
    pub length_ns: Dur,
    /// The CPU time of the application, in nanoseconds.
    pub application_run_ns: Dur,
    /// The CPU time of threads of the kernel, in nanoseconds. They work for the application as well, so that no run is judged by them.
    pub kernel_run_ns: Dur,
    /// The CPU time of the recorder, in nanoseconds. It is the price of the recording, and no run is judged by it.
    pub recorder_run_ns: Dur,
    /// The waiting of tasks of the application while the recorder ran on their CPU, in nanoseconds of tasks.
    pub recorder_wait_ns: Dur,
    /// The number of preemptions of tasks of the application by the recorder.
    pub recorder_preemptions: u64,
    /// The CPU time of tasks outside of the application, in nanoseconds: the sum over `commands`.
    pub run_ns: Dur,
    /// The waiting of tasks of the application while tasks of `commands` ran on their CPU, in nanoseconds of tasks.
    pub wait_ns: Dur,
    /// The number of preemptions of tasks of the application by tasks of `commands`.
    pub preemptions: u64,
    /// The commands outside of the application but for the recorder, those with the greatest CPU time and waiting first.
    pub commands: Vec<Culprit>,
}

/// A CPU with the task that occupies it.
#[derive(Clone, Copy, Debug, Default)]
struct Occupied {
    kind: Kind,
    since: Ts,
}

/// The sums of a command.
#[derive(Clone, Copy, Debug, Default)]
struct OutsideSums {
    run: u64,
    wait: u64,
    preemptions: u64,
}

/// The analysis: an [`Analysis`] whose output is the work outside of the application; nothing where that is unknown.
#[derive(Debug, Default)]
pub struct Outsiders {
    start: Ts,
    cpus: Vec<Occupied>,
    places: SeededMap<String, usize>,
    sums: Vec<OutsideSums>,
    /// The kinds of tasks that have run, of as many as a table has rows; those of others are found each time anew.
    kinds: SeededMap<Pid, ((Comm, bool), Kind)>,
    application_run: u64,
    kernel_run: u64,
}

impl Outsiders {
    fn kind(&mut self, task: &Task) -> Kind {
        let traits = (task.comm, task.kin.descends);
        if let Some((_, kind)) = self.kinds.get(&task.pid).filter(|(other, _)| *other == traits) {
            return *kind;
        }
        let kind = match (task.kin.descends, task.kin.is_of_kernel(task.comm)) {
            (true, _) => Kind::Application,
            (_, true) => Kind::Kernel,
            _ => {
                let command = stem(task.comm);
                Kind::Outside(self.place(if command.is_empty() { "unnamed tasks".to_owned() } else { command }))
            }
        };
        if self.kinds.len() < limits::ROWS || self.kinds.contains_key(&task.pid) {
            self.kinds.insert(task.pid, (traits, kind));
        }
        kind
    }

    fn place(&mut self, command: String) -> usize {
        let command = if self.places.len() < MOST_COMMANDS || self.places.contains_key(&command) {
            command
        } else {
            "further commands".to_owned()
        };
        *self.places.entry(command).or_insert_with(|| {
            self.sums.push(OutsideSums::default());
            self.sums.len() - 1
        })
    }

    /// The occupant of a CPU from `ts` on.
    fn look(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let kind = state.running(cpu).map_or(Kind::None, |task| self.kind(task));
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Occupied::default());
        }
        self.cpus[cpu.index()] = Occupied { kind, since: ts };
    }

    /// Accounts for the time of the present occupant of a CPU up to `end`, and for the waits behind it that go on.
    fn account(&mut self, cpu: Cpu, end: Ts, state: &SchedState) {
        let Some(Occupied { kind, since }) = self.cpus.get(cpu.index()).copied() else { return };
        let ns = end.since(since).0;
        match kind {
            Kind::None => {}
            Kind::Application => self.application_run = self.application_run.saturating_add(ns),
            Kind::Kernel => self.kernel_run = self.kernel_run.saturating_add(ns),
            Kind::Outside(place) => {
                self.sums[place].run = self.sums[place].run.saturating_add(ns);
                // The waits that have ended were added as they did.
                let waiting = state.waiting(cpu).filter(|task| task.kin.descends && task.since < end);
                waiting.for_each(|task| self.add_wait(cpu, task.since, end));
            }
        }
        if let Some(occupied) = self.cpus.get_mut(cpu.index()) {
            occupied.since = occupied.since.max(end);
        }
    }

    /// Adds the part of a wait that began at `from` behind the present occupant of a CPU.
    fn add_wait(&mut self, cpu: Cpu, from: Ts, to: Ts) {
        let Some(Occupied { kind: Kind::Outside(place), since }) = self.cpus.get(cpu.index()).copied() else { return };
        let sum = &mut self.sums[place].wait;
        *sum = sum.saturating_add(to.since(from.max(since)).0);
    }
}

impl Analysis for Outsiders {
    type Output = Option<OutsideWork>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        state.observed().for_each(|cpu| self.look(cpu, start, state));
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        if let TaskState::Waiting(cpu) = span.state
            && state.task(span.task).is_some_and(|task| task.kin.descends)
        {
            self.add_wait(cpu, span.start, span.end);
        }
    }

    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
        self.account(span.cpu, span.end, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        // An exec can make the running task the root of the application.
        if let EventKind::Exec { .. } = event.kind {
            self.account(event.cpu, event.ts, state);
            self.look(event.cpu, event.ts, state);
        }
        for span in state.cpu_spans() {
            self.look(span.cpu, event.ts, state);
        }
        let EventKind::Switch { .. } = event.kind else { return };
        let Some(Occupied { kind: Kind::Outside(place), .. }) = self.cpus.get(event.cpu.index()).copied() else {
            return;
        };
        let is_preempted = |span: &Span| matches!((span.state, span.next), (TaskState::Running(from), TaskState::Waiting(to)) if from == to && from == event.cpu);
        if state.turns().any(|(task, span)| task.kin.descends && is_preempted(span)) {
            self.sums[place].preemptions += 1;
        }
    }

    fn finish(self, end: Ts, state: &SchedState) -> Option<OutsideWork> {
        if state.why_application_is_unknown().is_some() {
            return None;
        }
        let mut commands: Vec<Culprit> = self
            .places
            .into_iter()
            .map(|(command, place)| {
                let OutsideSums { run, wait, preemptions } = self.sums[place];
                Culprit { command, run_ns: Dur(run), wait_ns: Dur(wait), preemptions }
            })
            .filter(|of| of.run_ns > Dur(0) || of.preemptions > 0)
            .collect();
        commands.sort_by(|a, b| {
            let order = |of: &Culprit| Reverse(of.run_ns.0.saturating_add(of.wait_ns.0));
            order(a).cmp(&order(b)).then_with(|| a.command.cmp(&b.command))
        });
        let (recorder, commands): (Vec<Culprit>, Vec<Culprit>) =
            commands.into_iter().partition(|of| RECORDERS.contains(&of.command.as_str()));
        let (recorder, outside) = (sums(&recorder), sums(&commands));
        Some(OutsideWork {
            length_ns: end.since(self.start),
            application_run_ns: Dur(self.application_run),
            kernel_run_ns: Dur(self.kernel_run),
            recorder_run_ns: Dur(recorder.run),
            recorder_wait_ns: Dur(recorder.wait),
            recorder_preemptions: recorder.preemptions,
            run_ns: Dur(outside.run),
            wait_ns: Dur(outside.wait),
            preemptions: outside.preemptions,
            commands,
        })
    }
}

/// The sums of several commands.
fn sums(commands: &[Culprit]) -> OutsideSums {
    commands.iter().fold(OutsideSums::default(), |sum, of| OutsideSums {
        run: sum.run.saturating_add(of.run_ns.0),
        wait: sum.wait.saturating_add(of.wait_ns.0),
        preemptions: sum.preemptions.saturating_add(of.preemptions),
    })
}

impl Joined for Outsiders {}
