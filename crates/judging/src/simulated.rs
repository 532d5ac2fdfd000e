//! Simulated series of runs: false alarms with stopping at will, and planted changes.

use crate::RoundBets;

/// Pseudo-random numbers (SplitMix64).
pub(crate) struct SimulatedNoise(pub(crate) u64);

impl SimulatedNoise {
    /// A number between 0 and 1, neither of which it is.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON / 4.0
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// The distribution of the noise of a run, whose standard deviation is 1.
#[derive(Clone, Copy, Debug)]
enum Noise {
    Normal,
    /// Exponential: most runs are fast, some take much longer.
    Skewed,
}

/// The rounds of a series. A run takes 100, with the drift of the machine from round to round, the noise of the run, and in the new
/// variant the planted change.
fn rounds(random: &mut SimulatedNoise, noise: Noise, drift: f64, change: f64, most: usize) -> Vec<(f64, f64)> {
    let mut level = 100.0;
    let run = |random: &mut SimulatedNoise, level: f64| match noise {
        Noise::Normal => level + random.normal(),
        Noise::Skewed => level - 1.0 - random.unit().ln(),
    };
    let round = |_| {
        level += drift * random.normal();
        (run(random, level), run(random, level) + change)
    };
    (0..most).map(round).collect()
}

/// The number of rounds after which p is at most 0.05; none if it never is.
fn decided(rounds: &[(f64, f64)]) -> Option<usize> {
    let mut bets = RoundBets::default();
    let is_reached = |(base, new): &(f64, f64)| {
        bets.add_round(*base, *new);
        bets.p() <= 0.05
    };
    Some(1 + rounds.iter().position(is_reached)?)
}

/// A thousand series without a change, each looked at after every one of 200 rounds: at most one of twenty is ever called different.
#[test]
fn a_series_may_be_ended_at_will() {
    let mut random = SimulatedNoise(50);
    for (noise, drift) in [(Noise::Normal, 0.0), (Noise::Normal, 2.0), (Noise::Skewed, 0.0), (Noise::Skewed, 1.0)] {
        let alarm = |_: &u32| decided(&rounds(&mut random, noise, drift, 0.0, 200)).is_some();
        let alarms = (0..1_000).filter(alarm).count();
        assert!(alarms <= 50, "{noise:?}, drift {drift}: {alarms} of 1000");
        assert!(alarms >= 10, "a test without any alarm proves nothing: {alarms}");
    }
}

/// Changes of 1.5 standard deviations of a run in series of at most 20 rounds: the mean number of rounds is at most 60 % of the 20 of a
/// fixed number of runs, and nine of ten are found.
#[test]
fn planted_changes_are_found_early() {
    let mut random = SimulatedNoise(51);
    for (noise, drift) in [(Noise::Normal, 0.0), (Noise::Normal, 2.0), (Noise::Skewed, 0.0)] {
        for sign in [1.0, -1.0] {
            let series: Vec<Option<usize>> =
                (0..1_000).map(|_| decided(&rounds(&mut random, noise, drift, 1.5 * sign, 20))).collect();
            let found = series.iter().flatten().count();
            let mean = series.iter().map(|rounds| rounds.unwrap_or(20) as f64).sum::<f64>() / 1_000.0;
            assert!(mean <= 0.6 * 20.0 && found >= 880, "{noise:?}, drift {drift}: {mean} rounds, {found} found");
        }
    }
}
