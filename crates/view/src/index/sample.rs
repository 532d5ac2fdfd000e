//! A picture of a whole trace before it is read: from samples of each CPU's data.
//!
//! A sample stands for the time up to the next one of its CPU. It shows which tasks ran; the lengths of the run queues
//! depend on all CPUs together and stay unknown.

use crate::columns::lane::{Id, of_no_task};
use crate::columns::tasks::Tasks;
use crate::index::scope::Scope;
use crate::index::tiles::{Index, Mixture};
use parse::Trace;
use sched::{Comm, Cpu, CpuFold, CpuSpan, Current, SchedEvent, Ts};
use std::collections::BTreeMap;

/// The number of samples of all CPUs together, or two of each. The largest have 32 KB.
const SAMPLES: usize = 4096;
/// The bytes of a trace below which it is read as soon as it would be sampled.
const LEAST_BYTES: u64 = 32 << 20;

/// The occupants of a CPU in a sample.
struct CpuSample {
    cpu: Cpu,
    start: Ts,
    /// The nanoseconds that each occupant ran within the sample.
    times: BTreeMap<(Current, Comm), u64>,
}

impl CpuSample {
    /// The sample of a unit of a CPU's data; nothing if no time passes in it.
    fn of(cpu: Cpu, events: &[SchedEvent], last: Ts) -> Option<CpuSample> {
        let start = events.first()?.ts;
        let (mut fold, mut times) = (CpuFold::new(cpu, start, last), BTreeMap::new());
        let mut add = |span: &CpuSpan| *times.entry((span.current, span.comm)).or_default() += span.duration().0;
        events.iter().for_each(|event| fold.apply(event, &mut add));
        fold.finish(&mut add);
        times.retain(|_, ns| *ns > 0);
        (!times.is_empty()).then_some(CpuSample { cpu, start, times })
    }

    /// The occupants by their places. Tasks get places.
    fn mixture(&self, tasks: &mut Tasks) -> Vec<(Id, u64)> {
        let mut id = |(current, comm): (Current, Comm)| match current {
            Current::Task(pid) => tasks.place_of_sampled(pid, comm),
            none => of_no_task(none),
        };
        self.times.iter().map(|(occupant, ns)| (id(*occupant), *ns)).collect()
    }
}

/// The coarse levels of a trace by samples; nothing for a trace that is read as soon.
pub(crate) fn index(trace: &Trace, scope: &Scope) -> Option<Index> {
    (trace.data_size() >= LEAST_BYTES).then(|| sampled(trace, scope, SAMPLES))
}

/// The coarse levels of a trace by this number of samples.
fn sampled(trace: &Trace, scope: &Scope, samples: usize) -> Index {
    let mut samples: Vec<CpuSample> = trace.samples(samples, CpuSample::of).into_iter().flatten().collect();
    samples.sort_by_key(|sample| (sample.cpu, sample.start));
    let mut tasks = Tasks::default();
    let mut lanes: BTreeMap<Cpu, Vec<Mixture>> = BTreeMap::new();
    for sample in &samples {
        lanes.entry(sample.cpu).or_default().push((sample.start, sample.mixture(&mut tasks)));
    }
    Index::sampled(scope, tasks, |cpu| lanes.get(&cpu).map_or(&[][..], Vec::as_slice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Indexer;
    use crate::columns::lane::OTHERS;
    use crate::tests::parse;
    use parse::Options;
    use sched::Pass;
    use std::sync::Arc;
    use testkit::{Simulation, TraceBuilder};

    /// The share of each occupant of the columns of a lane of the coarsest level.
    fn shares(index: &Index, lane: usize) -> BTreeMap<u32, f64> {
        let (level, shape) = (index.levels().1, index.shape());
        let tile = index.lanes(level, lane / shape.lanes, 0).expect("a tile");
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        let columns = &parse(&tile)[lane % shape.lanes];
        let filled = columns.iter().filter(|column| !column.entries.is_empty()).count() as f64;
        for (id, share) in columns.iter().flat_map(|column| &column.entries) {
            *shares.entry(*id).or_default() += f64::from(*share) / 65_535.0 / filled;
        }
        shares
    }

    #[test]
    fn samples_of_all_data_are_the_trace_and_fewer_are_near_it() {
        let simulation = Simulation::run(3, 4, 60_000);
        let bytes = TraceBuilder::default().events(&simulation.events).build();
        let trace = Trace::from_bytes(bytes, Options::default()).expect("a trace");
        let (start, end) = trace.extent().expect("events");
        let cpus: Vec<Cpu> = (0..4).map(Cpu).collect();
        let scope = Scope::of_trace(start, end, &cpus, 0);
        assert!(index(&trace, &scope).is_none(), "it is small");
        for (samples, most) in [(1 << 20, 0.02), (64, 0.1)] {
            let sampled = Arc::new(sampled(&trace, &scope, samples));
            let indexer = || Indexer::publishing(&scope, Some(Arc::clone(&sampled)), None, None);
            let events = simulation.events.as_slice();
            let truth = Pass::over(events).run(indexer).unwrap_or_else(|never| match never {}).output;
            for lane in 0..cpus.len() {
                let (found, truth) = (shares(&sampled, lane), shares(&truth, lane));
                assert!(truth.len() > 3);
                // Which tasks are named depends on small differences, and so does the sum of the others.
                for id in truth.keys().chain(found.keys()).filter(|id| **id != OTHERS) {
                    let [found, truth] = [&found, &truth].map(|shares| shares.get(id).copied().unwrap_or(0.0));
                    assert!((found - truth).abs() < most, "{samples} samples, CPU {lane}, {id}: {found} {truth}");
                }
            }
            // Half of the trace is read: the rest is from the samples.
            let half = &events[..events.len() / 2];
            let read = Pass::over(half).run(indexer).unwrap_or_else(|never| match never {}).output;
            let (level, known) = (scope.top(), scope.time(half[half.len() - 1].ts) >> scope.top());
            let both = read.before((*sampled).clone());
            let [both, truth, sampled] =
                [&both, &truth, &*sampled].map(|index| index.lanes(level, 0, 0).expect("a tile"));
            for (lane, columns) in parse(&both).iter().enumerate() {
                let (truth, sampled) = (&parse(&truth)[lane], &parse(&sampled)[lane]);
                assert_eq!(columns[..known as usize], truth[..known as usize]);
                assert_eq!(columns[known as usize + 1..], sampled[known as usize + 1..]);
            }
        }
    }
}
