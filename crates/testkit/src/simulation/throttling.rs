//! Records of throttling among the events of a run.

use sched::probe::{CgroupId, Probe, Throttle};
use sched::{Cpu, EventKind, Pid, SchedEvent};

/// Returns the events of a simulation, among which cgroups are throttled at random and tasks are moved between them.
#[must_use]
pub fn with_throttling(events: &[SchedEvent], seed: u64) -> Vec<SchedEvent> {
    let mut random = seed;
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let tasks: Vec<Pid> = events.iter().map(|event| event.pid).filter(|pid| !pid.is_idle()).collect();
    let mut all = Vec::new();
    for event in events {
        if below(4) == 0 && !matches!(event.kind, EventKind::Lost { .. } | EventKind::Offline) {
            let (cgroup, cpu) = (CgroupId::new(below(2)), Cpu(below(3) as u32));
            let throttle = Throttle { cpu: Some(cpu), cgroup: Some(cgroup), takes_queue: true };
            let probe = match below(3) {
                0 => Probe::Throttles(throttle),
                1 => Probe::Unthrottles(throttle),
                _ => match tasks.get(below(1 + tasks.len() as u64) as usize) {
                    Some(pid) => Probe::Joins { pid: *pid, cgroup, forked: false },
                    None => Probe::Throttles(throttle),
                },
            };
            all.push(SchedEvent { kind: EventKind::Probe { id: 1, probe }, ..*event });
        }
        all.push(*event);
    }
    all
}
