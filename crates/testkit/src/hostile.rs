//! Sequences of events that contradict themselves, from any bytes.

use sched::probe::{Balancing, CgroupId, Probe, RunQueue, Throttle};
use sched::{Comm, Cpu, CpuMask, EventKind, Pid, PrevState, SchedEvent, StateClass, TaskRef, Ts};

/// Takes numbers from the input, and zeroes behind its end.
struct Input<'i>(std::slice::Iter<'i, u8>);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    /// Returns one of few CPUs, so that events contradict one another, and rarely one outside that range.
    fn cpu(&mut self) -> Cpu {
        match self.byte() {
            0xff => Cpu(60),
            n => Cpu(u32::from(n % 6)),
        }
    }

    fn pid(&mut self) -> Pid {
        match self.byte() {
            0xff => Pid(i32::MIN),
            0xfe => Pid(i32::MAX),
            n => Pid(i32::from(n % 10)),
        }
    }

    fn task(&mut self) -> TaskRef {
        let (pid, prio) = (self.pid(), i32::from(self.byte()) - 1);
        let name = match self.byte() % 4 {
            0 => format!("migration/{}", pid.0 % 6),
            1 => format!("kworker/{}:1", pid.0 % 6),
            2 => String::new(),
            _ => "task".to_owned(),
        };
        TaskRef { pid, prio, comm: Comm::new(name.as_bytes()) }
    }

    fn probe(&mut self) -> Probe {
        let balancing = match self.byte() % 4 {
            0 => Balancing::NewIdle,
            1 => Balancing::Idle,
            2 => Balancing::Busy,
            _ => Balancing::Unknown,
        };
        let queue =
            RunQueue { overloaded: Some(self.byte() > 99), pending: Some(self.byte() > 200), ..RunQueue::default() };
        let cgroup = CgroupId::new(u64::from(self.byte() % 3));
        let throttle = Throttle { cpu: Some(self.cpu()), cgroup: Some(cgroup), takes_queue: self.byte() > 40 };
        match self.byte() % 18 {
            0 => Probe::NewIdleBegins(queue),
            1 => Probe::GoesIdle(queue),
            2 => Probe::AttemptBegins(balancing, Comm::new(b"MC")),
            3 => Probe::AttemptEnds { balancing, domain: Comm::EMPTY, moved: u32::from(self.byte()) << 24 },
            4 => Probe::Searched { found: self.byte() > 99, imbalance: Some(u32::MAX), how: Some(self.byte()) },
            5 => Probe::Detaches { pid: self.pid(), src: self.cpu(), dst: self.cpu(), balancing },
            6 => Probe::ActiveBalances(self.cpu(), self.cpu()),
            7 => Probe::MovesQueued(self.pid(), self.cpu()),
            8 => Probe::Swaps { one: (self.pid(), self.cpu()), other: (self.pid(), self.cpu()) },
            9 => Probe::Throttles(throttle),
            10 => Probe::Unthrottles(throttle),
            11 => Probe::ThrottlesTask(self.pid(), cgroup),
            12 => Probe::Joins { pid: self.pid(), cgroup, forked: self.byte() > 200 },
            13 => Probe::Allows(self.pid(), CpuMask::of([self.cpu()])),
            14 => Probe::HoldsMigration(self.pid()),
            15 => {
                let (is_sched_idle, is_entered) = (self.byte() > 100, self.byte() > 100);
                Probe::SetsPolicy { pid: self.pid(), is_sched_idle, is_entered }
            }
            16 => Probe::PolicyCallReturns { failed: self.byte() > 100 },
            _ => Probe::Length { cpu: self.cpu(), nr: self.byte().into(), change: i32::MIN },
        }
    }

    fn kind(&mut self) -> EventKind {
        match self.byte() % 16 {
            0 | 1 => {
                let class = match self.byte() % 4 {
                    0 => StateClass::Runnable,
                    1 => StateClass::Preempted,
                    2 => StateClass::Dead,
                    _ => StateClass::Asleep,
                };
                EventKind::Switch { prev: self.task(), state: PrevState { class, raw: 0 }, next: self.task() }
            }
            2 => EventKind::Waking { task: self.task(), target: self.cpu() },
            3 => EventKind::Wakeup { task: self.task(), target: self.cpu() },
            4 => EventKind::WakeupNew { task: self.task(), target: self.cpu() },
            5 => EventKind::Migrate { task: self.task(), orig: self.cpu(), dest: self.cpu() },
            6 => EventKind::Fork { parent: self.pid(), child: self.pid(), child_comm: Comm::new(b"child") },
            7 => EventKind::Exec { pid: self.pid(), old_pid: self.pid(), program: Comm::new(b"task") },
            8 => EventKind::Exit { pid: self.pid() },
            9 => EventKind::Lost { count: None },
            10 => {
                let with = Some(self.pid()).filter(|pid| pid.0 % 2 == 0);
                EventKind::Numa {
                    pid: self.pid(),
                    with,
                    src: self.cpu(),
                    dst: self.cpu(),
                    nodes: None,
                    stuck: self.byte() > 200,
                }
            }
            11 => EventKind::Interrupt { id: 2, entry: self.byte() > 100 },
            12 => EventKind::Offline,
            13 => {
                let [before, after] = [0; 2].map(|_| if self.byte() > 100 { Comm::new(b"task") } else { Comm::EMPTY });
                EventKind::Rename { pid: self.pid(), before, after }
            }
            14 => EventKind::Stack { id: 4 },
            _ if self.byte() > 100 => EventKind::Probe { id: 2, probe: self.probe() },
            _ => EventKind::Other { id: 1 },
        }
    }
}

/// Returns the events that bytes describe, in order, however contradictory: few CPUs and tasks, all kinds of events, losses and
/// records of probes. Any bytes describe some, at most 3,000.
#[must_use]
pub fn any_events(bytes: &[u8]) -> Vec<SchedEvent> {
    let mut input = Input(bytes.iter());
    let mut events = Vec::new();
    let mut ts = Ts(i64::from(input.byte()) - 100);
    while !input.0.as_slice().is_empty() && events.len() < 3_000 {
        ts = match input.byte() {
            0xff => Ts(ts.0.saturating_add(1 << 45).min(Ts::MAX.0)),
            n => Ts(ts.0.saturating_add(i64::from(n / 3)).min(Ts::MAX.0)),
        };
        let (cpu, pid, flags) = (input.cpu(), input.pid(), input.byte());
        events.push(SchedEvent { ts, cpu, pid, flags, kind: input.kind() });
    }
    // A source delivers by time, and by CPU within an instant.
    events.sort_by_key(|e| (e.ts, e.cpu));
    events
}
