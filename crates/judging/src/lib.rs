//! Tests that may be looked at after every round of runs, and the control of false discoveries over many numbers.
//!
//! In go the values of two variants, round by round; out come a p that holds whenever the series ends, and discoveries among many
//! numbers. Begin reading with [`RoundBets`] in this file, then in `discoveries.rs`.
//!
//! Runs come in rounds, each with one run of every variant in random order. If two variants are the same, the two runs of a round
//! could as well have been the other way round: given both values, either order has the probability 1/2, whatever the machine did
//! meanwhile. [`RoundBets`] bets on that order. Its wealth, which begins at 1, is not expected to grow if the variants are the same, so
//! that it ever reaches 1/α has at most the probability α (Ville 1939): it may be looked at, and the series ended, after any round.
//!
//! The stake on a round is tanh(θ·d/s), for the difference d of the round and the root mean square s of the differences so far. The wealth
//! is the mean over both directions and the two [`STAKES`] θ. Such a product of 1 + tanh is the optimal bet on the sign of a difference with a normal
//! distribution, given its size. Sources: A. Ramdas, J. Ruf, M. Larsson, W. Koolen, *Admissible anytime-valid sequential inference must rely
//! on nonnegative martingales* (2020), on symmetric distributions; V. Vovk, R. Wang, *Nonparametric e-tests of symmetry* (2024); N. Koning,
//! *Post-hoc and anytime valid permutation and group invariance testing* (2023). False discoveries: Y. Benjamini, Y. Hochberg (1995);
//! for e-values R. Wang, A. Ramdas, *False discovery rate control with e-values* (2022).
//!
//! ```
//! use judging::RoundBets;
//!
//! // Each round runs both variants once, in random order.
//! let mut bets = RoundBets::default();
//! let rounds = [(10.0, 8.1), (10.4, 8.0), (9.8, 8.3), (10.1, 7.9), (10.3, 8.2), (9.9, 8.0), (10.2, 8.1)];
//! let decided = rounds.into_iter().position(|(base, new)| {
//!     bets.add_round(base, new);
//!     bets.p() <= 0.05
//! });
//! assert_eq!(decided, Some(5));
//! ```

mod discoveries;
mod least;
#[cfg(test)]
mod simulated;

pub use discoveries::{adjusted_p, kept_by_e};
pub use least::least_change_percent;

/// The factors θ of the stakes: the first is strong for differences about as large as the noise, the second for larger ones.
pub const STAKES: [f64; 2] = [1.0, 3.0];

/// The wealth of bets on the order of the two runs of each round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundBets {
    /// The number of rounds with both values.
    rounds: usize,
    /// The sum of the squares of the relative differences.
    squares: f64,
    /// The logarithms of the wealth of each stake, for each direction.
    logs: [[f64; 2]; STAKES.len()],
    /// The greatest wealth after any round; 1 at the beginning.
    greatest: f64,
}

impl Default for RoundBets {
    fn default() -> RoundBets {
        RoundBets { rounds: 0, squares: 0.0, logs: [[0.0; 2]; STAKES.len()], greatest: 1.0 }
    }
}

impl RoundBets {
    /// Returns the bets after these rounds, each with the values of the base and of the new variant.
    pub fn over(rounds: impl IntoIterator<Item = (f64, f64)>) -> RoundBets {
        let mut bets = RoundBets::default();
        rounds.into_iter().for_each(|(base, new)| bets.add_round(base, new));
        bets
    }

    /// Adds a round with the values of the base and of the new variant. A round with a value that is not finite is left out.
    pub fn add_round(&mut self, base: f64, new: f64) {
        let difference = relative(base, new);
        if difference.is_finite() {
            self.add(difference);
        }
    }

    /// Adds a round by its difference.
    fn add(&mut self, difference: f64) {
        self.rounds += 1;
        self.squares += difference * difference;
        let scale = (self.squares / self.rounds as f64).sqrt();
        let share = if scale > 0.0 { difference / scale } else { 0.0 };
        for (logs, stake) in self.logs.iter_mut().zip(STAKES) {
            for (log, direction) in logs.iter_mut().zip([1.0, -1.0]) {
                // 1 + tanh, which is above 0 however large the stake is.
                *log += std::f64::consts::LN_2 - softplus(-2.0 * direction * stake * share);
            }
        }
        self.greatest = self.greatest.max(self.e());
    }

    /// The number of rounds with both values.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The wealth after the last round: an e-value, from 0, whose mean is at most 1 if the variants are the same.
    pub fn e(&self) -> f64 {
        let all = self.logs.as_flattened();
        all.iter().map(|log| log.exp()).sum::<f64>() / all.len() as f64
    }

    /// The greatest wealth after any round, at least 1.
    pub fn greatest(&self) -> f64 {
        self.greatest
    }

    /// The probability, above 0 and at most 1, with which the wealth would ever become as large if the variants were the same. It
    /// never rises.
    pub fn p(&self) -> f64 {
        1.0 / self.greatest
    }
}

/// The difference of two values in units of the sum of their sizes, from -1 to 1; 0 for two zeros.
fn relative(base: f64, new: f64) -> f64 {
    let size = base.abs() + new.abs();
    if size == 0.0 { 0.0 } else { (new - base) / size }
}

/// ln(1 + exp(x)), without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The least number of rounds after which p can be at most `alpha`.
pub fn fewest_rounds(alpha: f64) -> usize {
    let mut bets = RoundBets::default();
    while bets.p() > alpha && bets.rounds() < 1_000 {
        bets.add(1.0);
    }
    bets.rounds()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wealth after each round, by products of 1 + tanh.
    fn by_hand(differences: &[f64]) -> Vec<f64> {
        let wealth = |rounds: usize| {
            let mut sum = 0.0;
            for stake in STAKES {
                for direction in [1.0, -1.0] {
                    let mut product = 1.0;
                    for t in 1..=rounds {
                        let squares: f64 = differences[..t].iter().map(|d| d * d).sum();
                        let scale = (squares / t as f64).sqrt();
                        product *= 1.0 + (direction * stake * differences[t - 1] / scale).tanh();
                    }
                    sum += product / 4.0;
                }
            }
            sum
        };
        (1..=differences.len()).map(wealth).collect()
    }

    /// Over all orders of the runs of ten rounds the mean wealth is 1 after each round, and it ever reaches 20 in at most one of
    /// twenty.
    #[test]
    fn all_orders_have_the_mean_one() {
        let sizes: [f64; 10] = [0.3, 1.0, 0.05, 2.5, 0.7, 0.7, 4.0, 0.2, 1.3, 0.9];
        let mut means = [0.0; 10];
        let mut reached = 0;
        for mask in 0..1_u32 << sizes.len() {
            let signed = |(at, size): (usize, &f64)| if mask >> at & 1 == 1 { *size } else { -size };
            let differences: Vec<f64> = sizes.iter().enumerate().map(signed).collect();
            let expected = by_hand(&differences);
            let mut bets = RoundBets::default();
            for (at, difference) in differences.iter().enumerate() {
                bets.add(*difference);
                assert!((bets.e() - expected[at]).abs() <= 1e-9 * expected[at], "{mask:b}");
                means[at] += bets.e() / 1024.0;
            }
            let greatest = expected.iter().copied().fold(1.0, f64::max);
            assert!((bets.greatest() - greatest).abs() <= 1e-9 * greatest, "{mask:b}");
            reached += u32::from(bets.p() <= 0.05);
        }
        assert!(means.iter().all(|mean| (mean - 1.0).abs() < 1e-9), "{means:?}");
        assert!(reached > 0 && reached <= 1024 / 20, "{reached}");
    }

    #[test]
    fn differences_are_relative_and_defined_for_all_values() {
        assert_eq!(
            (relative(1.0, 3.0), relative(3.0, 1.0), relative(0.0, 0.0), relative(0.0, 2.0)),
            (0.5, -0.5, 0.0, 1.0)
        );
        let mut bets = RoundBets::default();
        bets.add_round(f64::NAN, 1.0);
        bets.add_round(0.0, 0.0);
        assert_eq!((bets.rounds(), bets.e(), bets.p()), (1, 1.0, 1.0));
        (0..5_000).for_each(|_| bets.add_round(1.0, 1e300));
        assert!(bets.p() >= 0.0 && bets.p() < 1e-100);
    }

    #[test]
    fn six_rounds_can_decide() {
        assert_eq!((fewest_rounds(0.05), fewest_rounds(0.01), fewest_rounds(0.5)), (6, 9, 3));
    }
}
