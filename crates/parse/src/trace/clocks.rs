//! Buffers and CPUs whose clock is another than that of the rest of the recording.

use super::Trace;
use crate::issue::FileIssue;
use sched::topology::format_cpu_list;
use sched::{Cpu, Dur, Tracepoint, Ts};

/// Buffers that are further apart are not of one clock: `x86-tsc` and `local` are ages apart.
const BUFFERS_APART: Dur = Dur(3_600_000_000_000);

/// CPUs whose events are further apart have clocks that are not in step: with its scheduler recorded, no machine is
/// silent for a minute.
const CPUS_APART: Dur = Dur(60_000_000_000);

impl Trace {
    /// Leaves out buffers with another clock. The clock label of an instance is unreliable, but buffers of one
    /// recording overlap in time: one that does not has another clock, whatever its label is.
    pub(super) fn leave_out_disjoint(&mut self) {
        let span = |buffer: usize| {
            let spans: Vec<(Ts, Ts)> =
                self.lanes.get(buffer)?.iter().filter_map(|l| Some((self.first_of(l)?.ts, self.last_of(l)?))).collect();
            Some((spans.iter().map(|s| s.0).min()?, spans.iter().map(|s| s.1).max()?))
        };
        if self.selected.len() < 2 {
            return;
        }
        let spans: Vec<_> = self.selected.iter().map(|b| (*b, span(*b))).collect();
        let Some((from, to)) = spans.iter().find_map(|(_, s)| *s) else { return };
        let apart = |s: &(Ts, Ts)| s.0 > to.after(BUFFERS_APART) || from > s.1.after(BUFFERS_APART);
        for (buffer, _) in spans.iter().filter(|(_, s)| s.as_ref().is_some_and(apart)) {
            let name = self.header.buffers.get(*buffer).map_or(String::new(), |b| b.name.to_string());
            self.diagnostics.add_at(FileIssue::OtherClock, || name);
            self.selected.retain(|b| b != buffer);
        }
    }

    /// Notes CPUs all of whose events lie far from those of the others.
    pub(super) fn note_clocks_apart(&mut self) {
        if self.conversion.is_err() {
            return;
        }
        let ends = self.firsts().iter().flatten().zip(self.lasts().iter().flatten());
        let spans = ends.map(|(first, last)| (first.cpu, first.ts, *last)).collect();
        let apart = apart(spans);
        if !apart.is_empty() && self.has(Tracepoint::Switch) {
            let count = apart.len() as u64;
            self.diagnostics.add_many_at(FileIssue::ClocksApart, count, || format_cpu_list(&apart));
        }
    }
}

/// The CPUs that are not among the largest number of CPUs whose spans, from the first to the last event of each, lie
/// near one another; of several as large, the earliest.
fn apart(mut spans: Vec<(Cpu, Ts, Ts)>) -> Vec<Cpu> {
    spans.sort_unstable_by_key(|(cpu, from, to)| (*from, *to, *cpu));
    let mut together: Vec<(Ts, Vec<Cpu>)> = Vec::new();
    for (cpu, from, to) in spans {
        match together.last_mut().filter(|(end, _)| from <= end.after(CPUS_APART)) {
            Some((end, cpus)) => {
                *end = to.max(*end);
                cpus.push(cpu);
            }
            None => together.push((to, vec![cpu])),
        }
    }
    together.iter_mut().for_each(|(_, cpus)| {
        cpus.sort_unstable();
        cpus.dedup();
    });
    let most = together.iter().map(|(_, cpus)| cpus.len()).max().unwrap_or(0);
    let in_step = together.iter().position(|(_, cpus)| cpus.len() == most).unwrap_or(0);
    let others = together.iter().enumerate().filter(|(nth, _)| *nth != in_step);
    let mut apart: Vec<Cpu> = others.flat_map(|(_, (_, cpus))| cpus.iter().copied()).collect();
    apart.sort_unstable();
    apart.dedup();
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewer_cpus_are_apart() {
        let second = |n: i64| Ts(n * 1_000_000_000);
        let span = |cpu: u32, from: i64, to: i64| (Cpu(cpu), second(from), second(to));
        assert_eq!(apart(vec![span(0, 10, 12), span(1, 5000, 5003), span(2, 11, 13)]), [Cpu(1)]);
        assert_eq!(apart(vec![span(0, 900, 902), span(1, 5000, 5003)]), [Cpu(1)], "as many: the earlier count");
        assert_eq!(apart(vec![span(0, 0, 2), span(1, 62, 70), span(2, 1, 63)]), [], "60 s, and another overlaps");
        assert_eq!(apart(vec![span(0, 0, 2), span(1, 63, 70), span(2, 64, 65)]), [Cpu(0)]);
        assert_eq!(apart(vec![span(3, 0, 900), span(4, 500, 501)]), [], "a CPU is silent for long at either end");
        assert_eq!(apart(Vec::new()), []);
    }
}
