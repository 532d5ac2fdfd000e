//! The least change that a number of rounds can show.

use crate::{RoundBets, relative};

/// The steps of the search, each of which halves the range.
const STEPS: usize = 30;

/// Returns the least change that these rounds could have shown with p of at most `alpha`, in percent of the base: their differences are
/// moved so that their median is that change, up or down, and the noise between them stays. `None` if they can show none, being too few.
pub fn least_change_percent(rounds: &[(f64, f64)], alpha: f64) -> Option<f64> {
    let mut differences: Vec<f64> = rounds.iter().map(|(base, new)| relative(*base, *new)).collect();
    differences.retain(|difference| difference.is_finite());
    let mut sorted = differences.clone();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    let median = f64::midpoint(*low, *high);
    let shows = |change: f64| {
        let mut bets = RoundBets::default();
        differences.iter().for_each(|difference| bets.add(difference - median + change));
        bets.p() <= alpha
    };
    // Up to five times as much as the base, and down to a fifth.
    let largest = relative(1.0, 5.0);
    let least = |direction: f64| {
        shows(direction * largest).then(|| {
            let (mut hidden, mut shown) = (0.0, largest);
            for _ in 0..STEPS {
                let middle = f64::midpoint(hidden, shown);
                *(if shows(direction * middle) { &mut shown } else { &mut hidden }) = middle;
            }
            shown
        })
    };
    let (up, down) = (least(1.0)?, least(-1.0)?);
    // The ratio of two values whose relative difference is d is (1 + d) / (1 - d).
    let percent = |difference: f64| 100.0 * (2.0 * difference / (1.0 - difference)).abs();
    Some(percent(up).max(percent(-down)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fewest_rounds;

    #[test]
    fn the_least_change_is_shown_and_a_smaller_one_is_not() {
        let noise = [0.4, -1.2, 0.9, 0.1, -0.6, 1.4, -0.3, 0.2, -0.8, 0.5];
        let rounds = |factor: f64, runs: usize| -> Vec<(f64, f64)> {
            noise.iter().take(runs).map(|noise| (100.0, 100.0 * factor + noise)).collect()
        };
        let least = least_change_percent(&rounds(1.0, 10), 0.05).unwrap();
        assert!((0.2..3.0).contains(&least), "{least}");
        let p = |factor: f64| RoundBets::over(rounds(factor, 10)).p();
        // The median of the noise is 0.15, and the larger of the two directions counts.
        assert!(p(1.0 + 1.3 * least / 100.0) <= 0.05 && p(1.0 - 1.3 * least / 100.0) <= 0.05, "{least}");
        assert!(p(1.0 + 0.5 * least / 100.0) > 0.05 && p(1.0 - 0.5 * least / 100.0) > 0.05, "{least}");
        // More noise needs a larger change, and too few rounds show none.
        let wider: Vec<(f64, f64)> =
            rounds(1.0, 10).iter().map(|(base, new)| (*base, 100.0 + 3.0 * (new - 100.0))).collect();
        assert!(least_change_percent(&wider, 0.05).unwrap() > 2.0 * least);
        assert_eq!(least_change_percent(&rounds(1.0, fewest_rounds(0.05) - 1), 0.05), None);
        assert_eq!(least_change_percent(&[], 0.05), None);
    }
}
