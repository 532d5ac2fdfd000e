//! The laws of a pass hold on simulated runs with throttling at random, and each pass comes to its end.

use sched::probe::{CgroupId, Probe, Throttle};
use sched::{Cpu, EventKind, Pass, Pid, SchedEvent};
use testkit::{Laws, Simulation};
/// The events of a simulation, among which cgroups are throttled at random and tasks are moved between them.
fn with_throttling(events: &[SchedEvent], seed: u64) -> Vec<SchedEvent> {
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

#[test]
fn the_laws_hold_with_throttling_at_random() {
    let mut throttled = 0;
    for seed in 0..300 {
        let sim = Simulation::any(seed, 1 + (seed % 5) as u32, 400);
        for events in [sim.events.clone(), sim.lossy(seed).0] {
            let events = with_throttling(&events, seed);
            let report = Pass::over(&events[..]).run(Laws::default).unwrap_or_else(|never| match never {}).output;
            throttled += u64::from(report.throttled.0 > 0);
        }
    }
    assert!(throttled > 300, "{throttled}");
}
