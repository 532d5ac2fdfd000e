//! What a member got by interval, in as little room as the intervals take in which it was runnable.

/// How long it ran, and how long it waited.
pub(crate) type RunAndWait = [u64; 2];

/// So many parts are never added up.
const FEW: usize = 64;

/// A member's time by interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByInterval {
    /// The intervals, of a group some more than once.
    parts: Vec<(usize, RunAndWait)>,
    /// So many of these were left when they were last added up.
    added_up: usize,
}

impl ByInterval {
    /// It ran, or waited, so long in an interval.
    pub(crate) fn add(&mut self, interval: usize, runs: bool, ns: u64) {
        let part = if runs { [ns, 0] } else { [0, ns] };
        match self.parts.last_mut() {
            Some((latest, sum)) if *latest == interval => add(sum, part),
            _ => self.parts.push((interval, part)),
        }
        if self.parts.len() > 2 * self.added_up.max(FEW) {
            self.add_up();
        }
    }

    fn add_up(&mut self) {
        self.parts.sort_by_key(|(interval, _)| *interval);
        self.parts.dedup_by(|(later, part), (interval, sum)| {
            let same = later == interval;
            if same {
                add(sum, *part);
            }
            same
        });
        self.added_up = self.parts.len();
    }

    /// The intervals in which it was runnable, in order.
    pub(crate) fn finish(mut self) -> Vec<(usize, RunAndWait)> {
        self.add_up();
        self.parts
    }
}

fn add(sum: &mut RunAndWait, part: RunAndWait) {
    for (sum, part) in sum.iter_mut().zip(part) {
        *sum = sum.saturating_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_group_come_in_any_order() {
        let mut group = ByInterval::default();
        for task in 0..10 {
            for interval in (task..1000).chain([500, 500]) {
                group.add(interval, task % 2 == 0, 3);
            }
            assert!(group.parts.len() <= 2 * 1003, "{}", group.parts.len());
        }
        let found = group.finish();
        assert!(found.is_sorted_by_key(|(interval, _)| *interval) && found.len() == 1000);
        assert_eq!([found[0], found[1], found[500], found[999]].map(|f| f.1), [[3, 0], [3, 3], [45, 45], [15, 15]]);
        assert!(ByInterval::default().finish().is_empty());
    }
}
