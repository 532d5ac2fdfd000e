//! The noise between the runs of one group (A/A): the difference that two halves of it show, which are the same by
//! construction.

use crate::median;
use crate::test::Divisions;

/// The least number of runs that have two halves of two runs.
pub const FEWEST_FOR_NOISE: usize = 4;

/// The number of divisions into halves that are all tried; of more, that many are sampled.
const DIVISIONS: usize = 5_000;

/// Returns a difference between the medians of two halves of the runs, in percent of the median of all: the smallest one
/// that at most the share `alpha` of all divisions into halves exceed. `None` with fewer than [`FEWEST_FOR_NOISE`] runs, or
/// if the median is zero.
///
/// A half has fewer runs than the group, and the medians of fewer runs differ more: a change between two groups of this
/// size that is no larger is not distinguishable from noise by eye, and a larger one needs the test all the same.
pub fn noise_percent(runs: &[f64], alpha: f64) -> Option<f64> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = median(&sorted);
    if runs.len() < FEWEST_FOR_NOISE || middle == 0.0 {
        return None;
    }
    let half = runs.len() / 2;
    let divisions = Divisions::of(half, runs.len() - half, DIVISIONS);
    // The runs are sorted, so that each half is as well.
    let apart = |way: &Vec<bool>| {
        let of = |side: bool| -> Vec<f64> {
            sorted.iter().zip(way).filter(|(_, chosen)| **chosen == side).map(|(value, _)| *value).collect()
        };
        (median(&of(true)) - median(&of(false))).abs()
    };
    let mut differences: Vec<f64> = divisions.ways().iter().map(apart).collect();
    differences.sort_by(f64::total_cmp);
    let exceed = (differences.len() as f64 * alpha).floor() as usize;
    let at = differences.len().saturating_sub(1 + exceed);
    Some((100.0 * differences.get(at)? / middle).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_by_hand() {
        // The halves of 10, 11, 12 and 17 are {10, 11}, {10, 12} and {10, 17}, each against the rest: their medians are
        // 4, 3 and 2 apart, and the median of all is 11.5.
        let runs = [12.0, 10.0, 17.0, 11.0];
        let percent = |apart: f64| 100.0 * apart / 11.5;
        assert_eq!(noise_percent(&runs, 0.05), Some(percent(4.0)));
        assert_eq!(noise_percent(&runs, 0.34), Some(percent(3.0)));
        assert_eq!(noise_percent(&runs, 0.67), Some(percent(2.0)));
        assert_eq!(noise_percent(&[3.0; 5], 0.05), Some(0.0));
        assert_eq!(noise_percent(&runs[..3], 0.05), None);
        assert_eq!(noise_percent(&[0.0; 4], 0.05), None);
    }

    #[test]
    fn two_halves_of_five_runs_have_two_and_three() {
        // {1, 2} against {3, 4, 5} and {4, 5} against {1, 2, 3} lie 2.5 apart, no division further.
        assert_eq!(noise_percent(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.05), Some(100.0 * 2.5 / 3.0));
    }
}
