//! A schedule that is small enough to reckon by hand.

use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};

/// Returns the events of two CPUs from 100 to 600 ns, in time order.
///
/// On CPU 0 task 7 (`make`) runs from 100 to 400, and task 8 (`cc`) from 400 to 600 after it has waited since 200. On
/// CPU 1 task 9 (`sort`) runs from 100 to 150. The tasks ran for 550 ns, and CPU 1 idled during the whole wait.
pub fn a_wait_beside_an_idle_cpu() -> Vec<SchedEvent> {
    let task = |pid, name: &[u8]| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name) };
    let (make, cc, sort) = (task(7, b"make"), task(8, b"cc"), task(9, b"sort"));
    let idle = [task(0, b"swapper/0"), task(0, b"swapper/1")];
    let at = |ns, cpu, pid, kind| SchedEvent { ts: Ts(ns), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    let blocked = PrevState::asleep(1);
    vec![
        at(100, 0, 0, EventKind::Switch { prev: idle[0], state: PrevState::RUNNABLE, next: make }),
        at(100, 1, 0, EventKind::Switch { prev: idle[1], state: PrevState::RUNNABLE, next: sort }),
        at(150, 1, 9, EventKind::Switch { prev: sort, state: blocked, next: idle[1] }),
        at(200, 0, 7, EventKind::Waking { task: cc, target: Cpu(0) }),
        at(200, 0, 7, EventKind::Wakeup { task: cc, target: Cpu(0) }),
        at(400, 0, 7, EventKind::Switch { prev: make, state: blocked, next: cc }),
        at(600, 0, 8, EventKind::Switch { prev: cc, state: blocked, next: idle[0] }),
    ]
}
