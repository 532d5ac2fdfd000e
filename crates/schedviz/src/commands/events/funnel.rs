//! Where probes on the balancer were recorded (group `lb`): the outcome of its attempts.

use events::Funnels;
use session::Session;

/// The analysis of the attempts, if the trace has such probes.
pub(super) fn of(session: &Session) -> Option<Funnels> {
    let kinds = session.machine.as_ref().map_or(&[][..], |machine| &machine.scheduler.imbalances);
    Some(Funnels::new(|probe, field| session.has_probe(probe, field))?.with_kinds(kinds))
}
