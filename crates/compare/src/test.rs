//! The permutation test, and the interval that it determines.

use crate::median;

/// The maximum number of divisions of the runs that are all tried, and the size of a sample of more.
pub const EXACT: usize = 20_000;

/// The maximum number of changes that are tried for the interval.
const CANDIDATES: usize = 400;

/// Returns the probability, from just above 0 to 1, that the medians are at least as far apart as the observed ones
/// if both groups are the same.
pub fn p_value(base: &[f64], new: &[f64]) -> f64 {
    Divisions::of(base.len(), new.len(), EXACT).p(base, new)
}

/// The ways to divide all runs into two groups of given sizes.
pub(crate) struct Divisions {
    /// The divisions: for each way, whether each run is in the first group.
    ways: Vec<Vec<bool>>,
    /// Whether these are all ways, not a sample.
    all: bool,
}

/// The least p that groups of these sizes can have, however far apart they lie: that of the division which separates
/// them, and of its mirror image where they are equally large.
pub fn least_p(base: usize, new: usize) -> f64 {
    // Beyond the limit p is far below any useful level.
    let ways = ways(base + new, base, EXACT) as f64;
    if base == new { 2.0 / ways } else { 1.0 / ways }
}

/// The least number of runs in each of two equally large groups that can show a change at the level `alpha`.
pub fn fewest_that_show(alpha: f64) -> usize {
    (crate::FEWEST..64).find(|runs| least_p(*runs, *runs) <= alpha).unwrap_or(64)
}

/// Returns the number of ways to choose `k` of `n`, at most `limit` + 1.
fn ways(n: usize, k: usize, limit: usize) -> usize {
    let mut ways = 1usize;
    for i in 0..k.min(n - k) {
        // The division is exact: a product of i + 1 successive numbers is divisible by i + 1.
        ways = match ways.checked_mul(n - i) {
            Some(product) => product / (i + 1),
            None => return limit + 1,
        };
        if ways > limit.saturating_mul(1000) {
            return limit + 1;
        }
    }
    ways.min(limit + 1)
}

impl Divisions {
    /// Returns all ways, or a sample of `limit` of them if there are more.
    pub(crate) fn of(base: usize, new: usize, limit: usize) -> Divisions {
        let n = base + new;
        if ways(n, base, limit) <= limit {
            let mut all = Vec::new();
            choose(n, base, &mut vec![false; n], 0, &mut all);
            return Divisions { ways: all, all: true };
        }
        let mut random = Random(0x5eed);
        let draw = |_| {
            let mut places: Vec<usize> = (0..n).collect();
            let mut chosen = vec![false; n];
            for i in 0..base {
                places.swap(i, i + random.below(n - i));
                chosen[places[i]] = true;
            }
            chosen
        };
        Divisions { ways: (0..limit).map(draw).collect(), all: false }
    }

    /// The divisions: for each way, whether each run is in the first group.
    pub(crate) fn ways(&self) -> &[Vec<bool>] {
        &self.ways
    }

    fn p(&self, base: &[f64], new: &[f64]) -> f64 {
        let pool: Vec<f64> = base.iter().chain(new).copied().collect();
        let mut order: Vec<usize> = (0..pool.len()).collect();
        order.sort_by(|a, b| pool[*a].total_cmp(&pool[*b]));
        let apart = |chosen: &dyn Fn(usize) -> bool| {
            let of =
                |side: bool| -> Vec<f64> { order.iter().filter(|i| chosen(**i) == side).map(|i| pool[*i]).collect() };
            let (a, b) = (of(true), of(false));
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
            ((median(&a) - median(&b)).abs(), (mean(&a) - mean(&b)).abs())
        };
        let observed = apart(&|i| i < base.len());
        // Distances that differ only by rounding count as equal.
        let slack = pool.iter().fold(0.0f64, |most, v| most.max(v.abs())) * 1e-12;
        let as_far = |way: &Vec<bool>| {
            let (medians, means) = apart(&|i| way[i]);
            medians > observed.0 + slack || medians >= observed.0 - slack && means >= observed.1 - slack
        };
        let far = self.ways.iter().filter(|way| as_far(way)).count();
        // The observed division counts as one more of a sample, so that p is never 0.
        let (far, of) = if self.all { (far, self.ways.len()) } else { (far + 1, self.ways.len() + 1) };
        far as f64 / of as f64
    }
}

/// Adds all choices of `k` of the places from `from` to `n`, beside those already chosen, to `all`.
fn choose(n: usize, k: usize, chosen: &mut Vec<bool>, from: usize, all: &mut Vec<Vec<bool>>) {
    if k == 0 {
        all.push(chosen.clone());
        return;
    }
    for i in from..=n - k {
        chosen[i] = true;
        choose(n, k - 1, chosen, i + 1, all);
        chosen[i] = false;
    }
}

/// A small generator of random numbers (xorshift64*). It always has the same seed, so that the same runs give
/// the same p.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

/// Returns the least and the greatest change from `base` to `new`, in percent, that the test does not reject, each
/// widened to the next change that it rejects; `None` for an end at which it rejects none.
///
/// A change is a factor, so all values must be above zero; otherwise there is no interval.
pub(crate) fn interval(base: &[f64], new: &[f64], alpha: f64) -> (Option<f64>, Option<f64>) {
    if base.iter().chain(new).any(|v| *v <= 0.0) {
        return (None, None);
    }
    let mut factors: Vec<f64> = new.iter().flat_map(|n| base.iter().map(move |b| n / b)).collect();
    factors.sort_by(f64::total_cmp);
    factors.dedup();
    let every = factors.len().div_ceil(CANDIDATES).max(1);
    let factors: Vec<f64> = factors.into_iter().step_by(every).collect();
    let exact = ways(base.len() + new.len(), base.len(), EXACT) <= 2_000;
    let divisions = Divisions::of(base.len(), new.len(), if exact { 2_000 } else { 500 });
    let accepted = |factor: f64| {
        let moved: Vec<f64> = base.iter().map(|b| b * factor).collect();
        divisions.p(&moved, new) > alpha
    };
    let middle = crate::Spread::of(new).median / crate::Spread::of(base).median;
    // The search goes outwards from the observed change to the first one that is rejected.
    let low = factors.iter().rev().filter(|f| **f < middle).find(|f| !accepted(**f));
    let high = factors.iter().filter(|f| **f > middle).find(|f| !accepted(**f));
    let percent = |factor: &f64| 100.0 * (factor - 1.0);
    (low.map(percent), high.map(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_by_hand() {
        // Two of the twenty divisions of six runs separate all of them, and only these are as far apart.
        assert_eq!(p_value(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 0.1);
        assert_eq!(p_value(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]), 2.0 / 70.0);
        assert_eq!(p_value(&[5.0; 4], &[5.0; 6]), 1.0);
        assert_eq!((ways(10, 5, EXACT), ways(6, 3, EXACT), ways(200, 100, EXACT)), (252, 20, EXACT + 1));
    }

    #[test]
    fn the_least_p_is_that_of_groups_that_lie_apart() {
        for (base, new) in [(3, 3), (3, 4), (4, 4), (5, 3), (5, 5)] {
            let low: Vec<f64> = (0..base).map(f64::from).collect();
            let high: Vec<f64> = (0..new).map(|i| f64::from(i) + 100.0).collect();
            assert_eq!(least_p(low.len(), high.len()), p_value(&low, &high), "{base} and {new}");
        }
        assert_eq!((least_p(3, 3), least_p(4, 4)), (0.1, 2.0 / 70.0));
        assert!(least_p(200, 200) < 0.001);
    }

    #[test]
    fn large_groups_are_sampled_always_the_same_way() {
        let base: Vec<f64> = (0..40).map(f64::from).collect();
        let new: Vec<f64> = (0..40).map(|v| f64::from(v) + 30.0).collect();
        let p = p_value(&base, &new);
        assert!(p < 0.001 && p == p_value(&base, &new), "{p}");
    }

    #[test]
    fn false_alarms_are_as_rare_as_claimed() {
        // A thousand comparisons of runs from the same distribution, which has a long tail.
        let mut random = Random(7);
        let mut value = || {
            let u = (random.below(1_000_000) as f64 + 1.0) / 1_000_001.0;
            100.0 - 20.0 * u.ln()
        };
        for (n, m) in [(5, 5), (4, 6), (8, 5)] {
            let mut alarms = 0;
            for _ in 0..1000 {
                let base: Vec<f64> = (0..n).map(|_| value()).collect();
                let new: Vec<f64> = (0..m).map(|_| value()).collect();
                alarms += u32::from(p_value(&base, &new) <= 0.05);
            }
            // Three standard deviations of a binomial of 0.05 are 0.021.
            assert!(alarms <= 71, "{n} and {m} runs: {alarms} false alarms of 1000");
            assert!(alarms >= 5, "{n} and {m} runs: a test without any alarm proves nothing: {alarms}");
        }
    }

    #[test]
    fn the_interval_holds_zero_where_the_change_is_noise() {
        let base = [10.0, 10.2, 9.9, 10.1, 10.3];
        let (low, high) = interval(&base, &[12.0, 12.1, 11.9, 12.3, 12.2], 0.05);
        assert!(low.unwrap() > 10.0 && high.unwrap() < 30.0, "{low:?} {high:?}");
        let (low, high) = interval(&base, &[10.1, 9.8, 10.4, 10.0, 10.2], 0.05);
        assert!(low.unwrap() < 0.0 && high.unwrap() > 0.0, "{low:?} {high:?}");
        assert_eq!(interval(&[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0], 0.05), (None, None));
        assert_eq!(interval(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2], 0.05), (None, None), "three runs reject no change");
    }
}
