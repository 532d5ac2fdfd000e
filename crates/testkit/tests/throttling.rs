//! The laws of a pass hold on simulated runs with throttling at random, and each pass comes to its end.

use sched::Pass;
use testkit::{Laws, Simulation, with_throttling};

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
