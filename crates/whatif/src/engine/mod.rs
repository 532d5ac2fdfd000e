//! The discrete-event simulation of CPUs with run queues that executes a model under a policy.
//!
//! The simulation emits the scheduler's events, as a kernel would record them: whatever measures a trace measures the run.
//!
//! | module | content |
//! |---|---|
//! | `hooks` | the trait of policies |
//! | `machine` | the state that policies see |
//! | `order` | ranks and weights |
//! | `queue` | a run queue, in its order |
//! | `near_cpus` | the CPUs around each CPU |
//! | `agenda` | the instants to come |
//! | `steps` | the programs of tasks: runs, wakeups, sleeps, forks |
//! | `switch` | the choice of the next task, preemption, steals |
//! | `balance` | the balancing of the trace, at its rates |
//! | `ticks` | the ticks of CPUs, and the balancing of policies at them |

mod agenda;
mod balance;
mod hooks;
mod machine;
mod near_cpus;
mod order;
mod queue;
mod steps;
mod switch;
mod ticks;

pub use hooks::{Balancer, Policy, Pull};
pub use machine::{Machine, Placement};
pub use order::Order;

use crate::chances::Owed;
use crate::model::{Begin, Model, MoveKind, ProgramStep, TaskIndex};
use agenda::{Agenda, Due};
use machine::Place;
use sched::{Comm, Cpu, Dur, EventKind, Pid, SchedEvent, TaskRef, Topology, Ts};
use serde::Serialize;
use std::ops::ControlFlow;

/// The time that decisions of a policy cost, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// The time from the decision to steal until the task runs.
    pub steal: u64,
    /// The time by which the next run of a task is longer after a steal within the node.
    pub migration: u64,
    /// The time by which the next run of a task is longer after a steal from another node.
    pub node_migration: u64,
    /// The time that new-idle balancing takes to search the domains of a CPU; absent where no policy needs it.
    pub new_idle: Option<NewIdleCost>,
}

/// The time that a CPU needs to search its scheduling domains as it goes idle (`max_newidle_lb_cost`), in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewIdleCost {
    /// The time for the smallest domain.
    pub lowest: u64,
    /// The time for all domains.
    pub all: u64,
}

impl NewIdleCost {
    /// The time for one of `count` domains, the smallest first; the larger ones cost the same.
    pub(crate) fn of(self, nth: usize, count: usize) -> u64 {
        match nth {
            0 => self.lowest,
            _ => self.all.saturating_sub(self.lowest) / (count as u64).saturating_sub(1).max(1),
        }
    }
}

/// The assumption about sleeps that an interrupt of unknown cause ended, or a timer that may be relative or absolute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interrupts {
    /// The sleep has the length that it has in the trace.
    #[default]
    KeepLength,
    /// The sleep ends at the instant at which it ends in the trace, or not at all if that has passed.
    KeepInstant,
}

/// The assumption about wakeups, once a run has left the course of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakeups {
    /// A wakeup goes to the CPU of the same kind as in the trace: see [`Machine::usual`].
    #[default]
    ByKind,
    /// A wakeup goes to the CPU that the trace has for it.
    AsRecorded,
}

/// The parameters of a simulation.
#[derive(Clone, Debug)]
pub struct EngineOptions<'o> {
    /// The places of the CPUs; empty if they are unknown.
    pub topology: &'o Topology,
    /// The order of the run queues, where the policy does not follow the trace.
    pub order: Order,
    /// The time that decisions cost.
    pub costs: Costs,
    /// The assumption about interrupts of unknown cause.
    pub interrupts: Interrupts,
    /// The assumption about wakeups, which [`Machine::usual`] follows.
    pub wakeups: Wakeups,
}

/// The number of tasks that a policy moved at ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pulls {
    /// The number of tasks that nohz idle balancing moved.
    pub nohz: u64,
    /// The number of tasks that periodic balancing moved.
    pub periodic: u64,
    /// The number of these that ran, and were pushed away (active balancing).
    pub active: u64,
}

/// The result of a simulation, besides its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The end of the run on the trace's clock.
    pub end: Ts,
    /// The instant of the exit of the traced command, where the model has it.
    pub exit: Option<Ts>,
    /// The number of steals.
    pub steals: u64,
    /// The moves by balancing at ticks.
    pub pulls: Pulls,
    /// The number of events that were simulated: switches, wakeups, migrations and the others that a kernel records.
    pub events: u64,
    /// Whether the run ended by itself. It is cut off once it takes [`LONGEST`] times as long as the trace, or hundreds of times as many
    /// switches.
    pub finished: bool,
}

/// Maximum length of a run, as a multiple of the window.
pub const LONGEST: i64 = 50;

/// A receiver of simulated events, in order of time. The simulation ends where it breaks.
pub type TakesEvent<'s> = dyn FnMut(SchedEvent) -> ControlFlow<()> + 's;

/// Executes a model under a policy, and passes each event to `sink`.
pub fn simulate(model: &Model, policy: &mut dyn Policy, options: &EngineOptions<'_>, sink: &mut TakesEvent<'_>) -> Run {
    let tick = policy.tick_length().map(|length| ticks::simulated(length, model));
    let mut machine = Machine::new(model, options);
    machine.tick = tick.unwrap_or(0);
    let engine = Engine {
        follows: policy.follows_trace(),
        keeps_balancing: policy.keeps_balancing(),
        machine,
        options,
        sink,
        agenda: Agenda::default(),
        delivered: vec![false; model.sleeps.len()],
        absent: model.meetings.iter().map(Vec::len).collect(),
        effort: most_effort(model) + tick.map_or(0, |_| ticks::most_effort(model)),
        now: model.start.0,
        end: i64::MAX,
        stopped: false,
        depth: 0,
        run: Run::default(),
        new_idle_owed: [Owed::default(); 2],
        idle_owed: [Owed::default(); 2],
        is_owed: [false; 2],
        counted_until: model.start.0,
        expects_balancing: false,
        balanced: 0,
        replaces_idle: policy.replaces(MoveKind::Idle),
        busy: 0,
        expects_tick: false,
        has_ticks: tick.is_some(),
        policy,
    };
    engine.execute()
}

/// The weight of a fair task of nice value 0.
const WEIGHT: u64 = sched::nice::NICE_0_WEIGHT as u64;

/// The time behind the preemption of a running fair task by a woken one, as a share of the slice: the kernel's wakeup granularity
/// is about a third of the usual slice.
const GRANULARITY: u64 = 3;

/// The number of matters that a model may have due: recordings need one to seven for each step. The rest of a hostile run is cut off. A
/// prediction has some thirty runs.
fn most_effort(model: &Model) -> u64 {
    let steps: usize = model.tasks.iter().map(|task| task.steps.len()).sum();
    4 * Model::LEAST_MOST_SLICES + 32 * (steps + model.moves.len() + model.tasks.len()) as u64
}

/// The number of tasks and CPUs that searches look at for the effort of a matter.
const LOOKED: u64 = 64;

struct Engine<'e, 'm> {
    machine: Machine<'m>,
    policy: &'e mut dyn Policy,
    options: &'e EngineOptions<'e>,
    sink: &'e mut TakesEvent<'e>,
    agenda: Agenda,
    /// The sleeps whose waking has happened.
    delivered: Vec<bool>,
    /// The number of tasks that each meeting lacks.
    absent: Vec<usize>,
    follows: bool,
    keeps_balancing: bool,
    /// The matters that may still happen. Searches count as well.
    effort: u64,
    now: i64,
    /// The instant at which the run ends.
    end: i64,
    /// Whether the receiver needs no more events.
    stopped: bool,
    /// The number of CPUs whose tasks go on within one another.
    depth: u32,
    run: Run,
    /// The pulls that are due of CPUs that go idle, near and far.
    new_idle_owed: [Owed; 2],
    /// The pulls that are due of CPUs that idle, near and far.
    idle_owed: [Owed; 2],
    /// Whether such a pull is due now.
    is_owed: [bool; 2],
    /// The instant up to which the chances of idle CPUs are counted.
    counted_until: i64,
    /// Whether the agenda has an instant of balancing.
    expects_balancing: bool,
    /// The number of the CPU behind the one that pulled last.
    balanced: u32,
    /// Whether the policy pulls to CPUs that idle, in the place of the trace's balancer.
    replaces_idle: bool,
    /// The number of CPUs that run a task.
    busy: u32,
    /// Whether the policy balances at ticks.
    has_ticks: bool,
    /// Whether the agenda has the next tick.
    expects_tick: bool,
}

impl Engine<'_, '_> {
    fn execute(mut self) -> Run {
        let model = self.machine.model;
        // The end of a slice that no one needs any more is no reason to cut a short run off.
        let slice = i64::try_from(self.slice().0).unwrap_or(i64::MAX);
        let longest = LONGEST.saturating_mul(1 + model.end.0 - model.start.0).saturating_add(slice);
        let latest = model.start.0.saturating_add(longest);
        self.begin();
        self.run.finished = true;
        while let Some((at, due)) = self.agenda.next() {
            if at > self.end || self.stopped {
                break;
            }
            // The tick of the last CPU that idles stops: it is no part of the run.
            if due == Due::Tick && self.busy == 0 {
                self.expects_tick = false;
                continue;
            }
            if at > latest || self.spend(1) {
                self.run.finished = false;
                break;
            }
            self.now = at;
            self.machine.now = Ts(at);
            self.count_chances();
            self.happen(due);
            self.balance();
        }
        self.run.finished &= !self.spend(0);
        if self.end < i64::MAX {
            self.now = self.end;
        }
        self.run.end = Ts(self.now);
        if let Some(cpu) = model.usable().next() {
            self.emit(cpu, 0, EventKind::Other { id: 0 });
        }
        self.run
    }

    /// Counts matters, and the searches since; returns whether the run is cut off.
    fn spend(&mut self, matters: u64) -> bool {
        self.effort = self.effort.saturating_sub(matters + self.machine.take_looked() / LOOKED);
        self.effort == 0
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::RunEnds { cpu, nth } if self.machine.cpus[cpu.index()].ends == nth => {
                self.account(cpu);
                self.advance(cpu);
            }
            Due::SliceEnds { cpu, turn } if self.machine.cpus[cpu.index()].turn == turn => self.slice_ends(cpu),
            Due::Switch { cpu, turn } if self.machine.cpus[cpu.index()].turn == turn => {
                self.machine.cpus[cpu.index()].reacting = false;
                self.leave_idle(cpu);
            }
            Due::Interrupt { sleep } => self.interrupt(sleep),
            Due::Queue { sleep, waker } => self.finish_wakeup(sleep, waker),
            Due::Move { task, joins } if self.machine.tasks[task as usize].joins == joins => self.move_recorded(task),
            Due::Birth { task } => self.be_born(task, self.machine.tasks[task as usize].cpu),
            Due::Balance => self.expects_balancing = false,
            Due::Tick => self.ticks(),
            _ => {}
        }
    }

    /// Puts the tasks into the states that they have at the start.
    fn begin(&mut self) {
        let model = self.machine.model;
        if !self.follows && self.keeps_balancing && model.taken.balancing.any() {
            self.machine.follow_chances(self.options);
        }
        for (task, begins) in (0..).zip(&model.tasks) {
            match begins.begin {
                Begin::Runs(cpu) if self.machine.cpus[cpu.index()].current.is_none() => {
                    self.machine.cpus[cpu.index()].current = Some(task);
                    self.busy += 1;
                    self.machine.tasks[task as usize].place = Place::Running(cpu);
                    let here = &mut self.machine.cpus[cpu.index()];
                    (here.since, here.run_from) = (self.now, self.now);
                }
                Begin::At(at, _) => self.agenda.add(at.0, Due::Birth { task }),
                _ => {}
            }
        }
        for cpu in model.usable() {
            self.emit(cpu, 0, EventKind::Other { id: 0 });
            self.machine.refresh(cpu);
        }
        self.expect_tick();
        for (task, begins) in (0..).zip(&model.tasks) {
            match begins.begin {
                Begin::Waits(join) => {
                    let cpu = model.joins[join as usize].cpu;
                    self.enqueue(task, cpu, join);
                }
                Begin::Sleeps => {
                    if let Some(ProgramStep::Sleep(sleep)) = begins.steps.first() {
                        self.machine.tasks[task as usize].next = 1;
                        self.fall_asleep(task, *sleep);
                    }
                }
                _ => {}
            }
        }
        for cpu in model.usable() {
            match self.machine.cpus[cpu.index()].current {
                Some(_) => self.advance(cpu),
                None => self.react(cpu, None),
            }
        }
    }

    /// Emits an event on `cpu`.
    fn emit(&mut self, cpu: Cpu, flags: u8, kind: EventKind) {
        let pid = self.machine.running(cpu).map_or(Pid::IDLE, |task| self.machine.model.tasks[task as usize].pid);
        self.run.events += 1;
        if (self.sink)(SchedEvent { ts: Ts(self.now), cpu, pid, flags, kind }).is_break() {
            self.stopped = true;
        }
    }

    fn named(&self, task: TaskIndex) -> TaskRef {
        let sim = &self.machine.tasks[task as usize];
        TaskRef { pid: self.machine.model.tasks[task as usize].pid, prio: sim.prio, comm: sim.comm }
    }

    /// Adds the time that the running task has run to its virtual time, and takes it from the run that it does.
    fn account(&mut self, cpu: Cpu) {
        let here = &mut self.machine.cpus[cpu.index()];
        let Some(task) = here.current else { return };
        let ran = (self.now - here.since) as u64;
        here.since = self.now;
        let task = &mut self.machine.tasks[task as usize];
        task.left = task.left.saturating_sub(ran);
        task.virtual_ns += if task.weight == WEIGHT { ran } else { ran * WEIGHT / task.weight };
    }

    fn slice(&self) -> Dur {
        self.machine.model.taken.slice_ns
    }
}

/// Returns the idle task of a CPU, as switches name it.
fn idle_task(cpu: Cpu) -> TaskRef {
    let mut name = *b"swapper/\0\0\0\0\0\0\0\0";
    let mut digits = [0; 5];
    let (mut number, mut count) = (cpu.0, 0);
    while count == 0 || (number > 0 && count < digits.len()) {
        digits[count] = b'0' + (number % 10) as u8;
        number /= 10;
        count += 1;
    }
    for at in 0..count {
        name[8 + at] = digits[count - 1 - at];
    }
    TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::from_array(name) }
}
