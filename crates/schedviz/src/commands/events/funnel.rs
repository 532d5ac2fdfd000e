//! Where probes on the balancer were recorded (group `lb`): the outcome of its attempts.

use crate::session::Session;
use events::Funnels;

/// The analysis of the attempts, if the trace has such probes.
pub(super) fn of(session: &Session) -> Option<Funnels> {
    let has = |probe: &str, field: &str| {
        session.trace.format_named("lb", probe).is_some_and(|format| format.field(field).is_some())
    };
    Funnels::new(has)
}
