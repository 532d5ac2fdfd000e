//! The work of the traced command in a whole recording: whether it is an application, or hardly ran.

use crate::event::{Cpu, EventKind, Pid, SchedEvent, Ts};
use crate::state::lineage::LineageSteps;

/// The lengths of runs by the switches of each CPU, without the rest of the state.
#[derive(Clone, Debug)]
pub struct RunLengths {
    start: Ts,
    since: Vec<Ts>,
}

impl RunLengths {
    /// Begins at the first instant of a trace.
    pub fn new(start: Ts) -> RunLengths {
        RunLengths { start, since: Vec::new() }
    }

    /// A switch on a CPU at `ts`: the length of the run that it ends, in nanoseconds.
    pub fn switch(&mut self, cpu: Cpu, ts: Ts) -> u64 {
        if cpu.0 >= Cpu::LIMIT {
            return 0;
        }
        if cpu.index() >= self.since.len() {
            self.since.resize(cpu.index() + 1, self.start);
        }
        ts.since(std::mem::replace(&mut self.since[cpu.index()], ts)).0
    }
}

/// The work of the traced command in a recording, by which it is an application or hardly ran
/// (`docs/read-the-numbers.md#application`).
#[derive(Clone, Debug)]
pub struct CommandWork {
    steps: LineageSteps,
    runs: RunLengths,
    length_ns: u64,
    /// The CPU time of the command's tasks in nanoseconds.
    pub ran_ns: u64,
    /// The CPU time of all tasks in nanoseconds.
    pub busy_ns: u64,
    /// The CPU time of tasks that are neither the command's nor the kernel's, in nanoseconds.
    pub outside_ns: u64,
    /// The number of runs of the command's tasks that have ended.
    pub ended_runs: u64,
}

impl CommandWork {
    /// A command is an application if its tasks run for this part of the recording's length, one CPU being enough.
    pub const LEAST_PART: u64 = 100;
    /// A command is an application if its tasks run so often in each second of the recording.
    pub const LEAST_RATE: u64 = 10;
    /// A command is an application if its tasks have this part of all CPU time.
    pub const LEAST_SHARE: u64 = 2;

    /// Begins at the first instant of a recording that lasts until `end`.
    pub fn new(start: Ts, end: Ts) -> CommandWork {
        CommandWork {
            steps: LineageSteps::default(),
            runs: RunLengths::new(start),
            length_ns: end.since(start).0.max(1),
            ran_ns: 0,
            busy_ns: 0,
            outside_ns: 0,
            ended_runs: 0,
        }
    }

    /// Takes the next event.
    pub fn learn(&mut self, event: &SchedEvent) {
        if let EventKind::Switch { prev, .. } = event.kind {
            let ns = self.runs.switch(event.cpu, event.ts);
            if !prev.pid.is_idle() {
                self.busy_ns = self.busy_ns.saturating_add(ns);
                let kin = self.steps.now().of(prev.pid);
                if kin.descends {
                    self.ran_ns = self.ran_ns.saturating_add(ns);
                    self.ended_runs += 1;
                } else if !kin.is_of_kernel(prev.comm) {
                    self.outside_ns = self.outside_ns.saturating_add(ns);
                }
            }
        }
        self.steps.learn(event);
    }

    /// The traced command's first task, as far as the events show it.
    pub fn root(&self) -> Option<Pid> {
        self.steps.now().root()
    }

    /// Whether the command has run enough to be an application, whatever follows.
    pub fn is_enough(&self) -> bool {
        let often = self.length_ns.saturating_mul(Self::LEAST_RATE) / 1_000_000_000;
        self.ran_ns.saturating_mul(Self::LEAST_PART) >= self.length_ns || self.ended_runs > often.max(Self::LEAST_RATE)
    }

    /// Whether the command hardly ran, judged behind the last event of the recording.
    pub fn hardly_ran(&self) -> bool {
        let is_most = self.ran_ns.saturating_mul(Self::LEAST_SHARE) >= self.busy_ns;
        self.root().is_some() && !self.is_enough() && !is_most
    }
}
