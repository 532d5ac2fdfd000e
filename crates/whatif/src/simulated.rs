//! A simulated run as a source of events: whatever measures a trace measures it.

use crate::engine::{EngineOptions, Policy, Run, simulate};
use crate::model::Model;
use sched::pass::{Extent, Sink};
use sched::{EventSource, SchedEvent};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The number of events of a batch.
const BATCH: usize = 4096;

/// A run of a model under a policy, which is simulated anew at each reading, so that its events need no memory.
pub struct SimulatedRun<'s> {
    model: &'s Model,
    policy: &'s dyn Fn() -> Box<dyn Policy>,
    options: EngineOptions<'s>,
    run: Run,
}

impl<'s> SimulatedRun<'s> {
    /// Returns the run of `model`; `policy` makes the policy anew for each reading.
    pub fn new(
        model: &'s Model,
        policy: &'s dyn Fn() -> Box<dyn Policy>,
        options: EngineOptions<'s>,
    ) -> SimulatedRun<'s> {
        SimulatedRun { model, policy, options, run: Run::default() }
    }

    /// The result of the latest complete reading.
    pub fn run(&self) -> Run {
        self.run
    }
}

impl EventSource for SimulatedRun<'_> {
    type Error = Infallible;

    fn extent(&mut self) -> Result<Extent, Infallible> {
        let mut firsts: Vec<SchedEvent> = Vec::new();
        let (mut seen, mut last) = (Vec::new(), self.model.start);
        let (mut wakeups, mut wakings) = (false, false);
        let run = simulate(self.model, &mut *(self.policy)(), &self.options, &mut |event| {
            use sched::EventKind::{Wakeup, Waking};
            wakeups |= matches!(event.kind, Wakeup { .. });
            wakings |= matches!(event.kind, Waking { .. });
            if event.cpu.index() >= seen.len() {
                seen.resize(event.cpu.index() + 1, false);
            }
            if !std::mem::replace(&mut seen[event.cpu.index()], true) {
                firsts.push(event);
            }
            last = event.ts;
            ControlFlow::Continue(())
        });
        self.run = run;
        let mut extent = firsts.as_slice().extent()?;
        // A run without any wakeup shows as much as one with them.
        (extent.end, extent.wakeups, extent.wakings) = (last, wakeups || !wakings, wakings);
        Ok(extent)
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Infallible> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut flow = ControlFlow::Continue(());
        simulate(self.model, &mut *(self.policy)(), &self.options, &mut |event| {
            batch.push(event);
            if batch.len() == BATCH {
                flow = sink(&batch);
                batch.clear();
            }
            flow
        });
        if flow.is_continue() && !batch.is_empty() {
            let _ = sink(&batch);
        }
        Ok(())
    }
}
