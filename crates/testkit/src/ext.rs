//! Events of a machine on which a sched_ext scheduler was loaded.

use sched::pass::{Extent, Sink};
use sched::{EventSource, SchedEvent};
use std::convert::Infallible;

/// Events as a source whose waiting tasks a sched_ext scheduler held (see [`sched::SchedState::has_ext_queues`]).
#[derive(Clone, Copy, Debug)]
pub struct ExtQueues<'e>(pub &'e [SchedEvent]);

impl EventSource for ExtQueues<'_> {
    type Error = Infallible;

    fn extent(&mut self) -> Result<Extent, Infallible> {
        Ok(Extent { has_ext_queues: true, ..self.0.extent()? })
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Infallible> {
        self.0.events(sink)
    }

    fn births(&mut self) -> bool {
        self.0.births()
    }
}
