//! The scheduler while it runs: the pages of an instance, measured interval by interval.
//!
//! The pages of an interval become a trace in memory, which the same reader, pass and analyses read as any other. The state
//! at the end of an interval is noted as `cut` notes it for a part of a trace, and the next interval begins with it. This program's
//! own tasks are left out of the figures, and all of it is done by one thread: threads that begin and end are events.

mod facts;
mod measured;
pub mod moment;
#[cfg(test)]
mod tests;

use crate::kernel::{RunningKernel, available_kb};
use crate::plan::buffers::default_size;
use crate::plan::events::{EventPlan, WantedEvents};
use anyhow::Result;
use facts::LiveFacts;
use machine::{Machine, Root};
use measured::{LiveEvents, Surroundings, measured};
use moment::Moment;
use parse::{Options, Trace};
use sched::{Cpu, EventSource, Past, SchedEvent, Topology, Ts};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracefs::{Instance, Pages, Settings, TraceFile, Tracefs};

/// Maximum number of bytes of the pages of an interval. A machine that records more loses the rest, which is reported
/// as a loss.
const MOST_HELD: usize = 64 << 20;

/// The time between two readings of the buffers.
pub(crate) const BETWEEN: Duration = Duration::from_millis(100);

/// A page, with its CPU.
type LivePage = (u32, Vec<u8>);

/// Follows an instance.
pub(crate) struct Follower {
    pages: Pages,
    file: TraceFile,
    topology: Topology,
    facts: LiveFacts,
    now: Vec<LivePage>,
    held: usize,
    /// The state at the end of the interval before.
    past: Option<Past>,
}

/// Creates the instance that is followed, and its follower.
pub(crate) fn follow(tracefs: &Tracefs, buffer: Option<u64>, clock: Option<String>) -> Result<(Instance, Follower)> {
    let plan = EventPlan::new(&WantedEvents::default(), &RunningKernel(tracefs))?;
    let root = Root::running();
    // Pages are read each tenth of a second, but on an overloaded machine this program waits as well.
    let buffer_kb = buffer.unwrap_or_else(|| default_size(available_kb(), root.online()));
    let instance =
        Instance::create_live(tracefs, &Settings { buffer_kb, clock, events: plan.events, stacks: plan.stacks })?;
    let machine = Machine::read(&root, false);
    let release = machine.kernel.release.clone().unwrap_or_default();
    let file = TraceFile::of(tracefs, &["sched", "task"], &release, &instance.clock())?;
    let pages = Pages::open(instance.folder(), file.page_size())?;
    let facts = LiveFacts::new(Path::new("/proc"), root.online_cpus());
    Ok((instance, Follower::new(pages, file, machine.topology(), facts)))
}

impl Follower {
    /// Follows the pages of an instance, whose events `file` describes.
    fn new(pages: Pages, file: TraceFile, topology: Topology, facts: LiveFacts) -> Follower {
        Follower { pages, file, topology, facts, now: Vec::new(), held: 0, past: None }
    }

    /// Takes the pages that the kernel has filled. Called several times in an interval, so that no buffer overflows.
    pub(crate) fn collect(&mut self) -> Result<()> {
        let room = MOST_HELD.saturating_sub(self.held) / self.file.page_size().max(1);
        let (now, held) = (&mut self.now, &mut self.held);
        self.pages.read(room, &mut |cpu, page| {
            if *held < MOST_HELD {
                *held += page.len();
                now.push((cpu, page.to_vec()));
            }
        })?;
        Ok(())
    }

    /// Collects until `end`, or until `stops` holds after a collection; whether it reached the end.
    pub(crate) fn collect_until(&mut self, end: Instant, mut stops: impl FnMut() -> bool) -> Result<bool> {
        while Instant::now() < end {
            std::thread::sleep(BETWEEN.min(end.saturating_duration_since(Instant::now())));
            self.collect()?;
            if stops() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Measures the interval since the last measurement. None, if it has no event.
    ///
    /// CPUs are read one after the other, so that an event can be there that is later than one still missing. The interval ends
    /// with the last event of one collection, when another one has read every CPU since.
    pub(crate) fn measure(&mut self) -> Result<Option<Moment>> {
        self.collect()?;
        let whole = self.now.len();
        let end = match self.trace(whole)? {
            Some(trace) => trace.extent().map(|(_, last)| Ts(last.0 + 1)),
            None => None,
        };
        self.collect()?;
        let from = self.past.as_ref().map(|past| past.from);
        let (Some(end), Some(trace)) =
            (end.filter(|end| from.is_none_or(|from| from < *end)), self.trace(self.now.len())?)
        else {
            return Ok(None);
        };
        // The events behind the end are in the last pages: these are read again.
        self.now.drain(..whole);
        self.held = self.now.iter().map(|(_, page)| page.len()).sum();
        let mut live = LiveEvents {
            events: Vec::new(),
            past: self.past.take().map(|past| Arc::new(Past { to: end, end, ..past })),
            end,
        };
        trace.events()?.events(&mut |events| {
            let inside = |event: &&SchedEvent| event.ts < end && from.is_none_or(|from| event.ts >= from);
            live.events.extend(events.iter().filter(inside));
            ControlFlow::Continue(())
        })?;
        if live.events.is_empty() && live.past.is_none() {
            return Ok(None);
        }
        let own = self.facts.read_own();
        let affinity = self.facts.affinity(&live.events, live.past.as_deref());
        let seen: HashSet<Cpu> = live.cpus().collect();
        let idle = self.facts.idle(|cpu| !seen.contains(&cpu));
        let online = self.facts.online();
        let around = Surroundings { topology: &self.topology, affinity: &affinity, idle, online, own: &own };
        let (moment, past) = measured(&live, &around, &trace.diagnostics().clone())?;
        self.past = Some(past);
        Ok(Some(moment))
    }

    /// The trace of the first pages; none without a page.
    fn trace(&self, pages: usize) -> Result<Option<Trace>> {
        let pages = self.now.get(..pages).unwrap_or_default();
        if pages.is_empty() {
            return Ok(None);
        }
        let bytes = self.file.with_pages(pages.iter().map(|(cpu, page)| (*cpu, page.as_slice())));
        // Threads would be started for each interval, and be events of it.
        Ok(Some(Trace::from_bytes(bytes, Options { threads: 1, ..Options::default() })?))
    }
}
