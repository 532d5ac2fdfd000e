//! The analysis of a run: the tasks outside of the application, and what the application lost to them.

use membership::stem;
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{
    Analysis, Comm, Cpu, CpuSpan, Dur, EventKind, Joined, PerTask, Pid, SchedEvent, SchedState, Span, TaskId,
    TaskState, Ts, limits,
};
use serde::Serialize;
use std::cmp::Reverse;

/// Maximum number of commands; tasks of further ones are one command.
const MOST_COMMANDS: usize = 1000;

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
    /// The number of tasks of the application that wait there: their times are summed without a look at each.
    waiting: u64,
    /// The instant up to which their waiting is counted.
    counted: Ts,
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
    /// The CPU on which each task of the application waits.
    waits: PerTask<Cpu>,
    /// The root of the application, as far as it is known.
    root: Option<Pid>,
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

    fn cpu(&mut self, cpu: Cpu) -> &mut Occupied {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Occupied::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// The occupant of a CPU from `ts` on; that before is accounted for.
    fn look(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let kind = state.running(cpu).map_or(Kind::None, |task| self.kind(task));
        let occupied = self.cpu(cpu);
        (occupied.kind, occupied.since, occupied.counted) = (kind, ts, ts);
    }

    /// Accounts for the time of the present occupant of a CPU up to `end`, and for the waits behind it.
    fn account(&mut self, cpu: Cpu, end: Ts) {
        self.count_waits(cpu, end);
        let occupied = self.cpu(cpu);
        let (kind, ns) = (occupied.kind, end.since(occupied.since).0);
        occupied.since = occupied.since.max(end);
        match kind {
            Kind::None => {}
            Kind::Application => self.application_run = self.application_run.saturating_add(ns),
            Kind::Kernel => self.kernel_run = self.kernel_run.saturating_add(ns),
            Kind::Outside(place) => self.sums[place].run = self.sums[place].run.saturating_add(ns),
        }
    }

    /// Counts the waits behind the present occupant of a CPU up to `end`.
    fn count_waits(&mut self, cpu: Cpu, end: Ts) {
        let occupied = self.cpu(cpu);
        let (kind, ns) = (occupied.kind, end.since(occupied.counted).0.saturating_mul(occupied.waiting));
        occupied.counted = occupied.counted.max(end);
        if let Kind::Outside(place) = kind {
            self.sums[place].wait = self.sums[place].wait.saturating_add(ns);
        }
    }

    /// A task of the application waits on this CPU from `ts` on, or on none.
    fn follow_wait(&mut self, task: TaskId, cpu: Option<Cpu>, ts: Ts) {
        let before = self.waits.get(task).copied();
        if before == cpu {
            return;
        }
        if let Some(left) = before {
            self.waits.take(task);
            self.count_waits(left, ts);
            self.cpu(left).waiting -= 1;
        }
        if let Some(joined) = cpu {
            self.waits.insert(task, joined);
            self.count_waits(joined, ts);
            self.cpu(joined).waiting += 1;
        }
    }

    /// Looks at each waiting task: with its root the tasks of the application become known.
    fn follow_root(&mut self, ts: Ts, state: &SchedState) {
        self.root = state.root();
        for task in state.observed().flat_map(|cpu| state.waiting(cpu)) {
            self.follow_wait(task.id(), waits_on(task), ts);
        }
    }
}

/// The CPU on which a task waits, if it is one of the application.
fn waits_on(task: &Task) -> Option<Cpu> {
    match task.state {
        TaskState::Waiting(cpu) if task.kin.descends => Some(cpu),
        _ => None,
    }
}

impl Analysis for Outsiders {
    type Output = Option<OutsideWork>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        state.observed().for_each(|cpu| self.look(cpu, start, state));
        self.follow_root(start, state);
    }

    fn span(&mut self, span: &Span, _: &SchedState) {
        // A span that a loss cut ends before the record of the loss.
        if let TaskState::Waiting(_) = span.state {
            self.follow_wait(span.task, None, span.end);
        }
    }

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        self.account(span.cpu, span.end);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        // An exec can make the running task the root of the application.
        if let EventKind::Exec { .. } = event.kind {
            self.account(event.cpu, event.ts);
            self.look(event.cpu, event.ts, state);
        }
        if self.root != state.root() {
            self.follow_root(event.ts, state);
        }
        for (task, _) in state.turns() {
            self.follow_wait(task.id(), waits_on(task), event.ts);
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
            commands.into_iter().partition(|of| Comm::new(of.command.as_bytes()).is_recorder());
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
