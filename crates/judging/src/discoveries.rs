//! False discoveries: of the numbers that are called different, the share that are not.

/// Adjusts the p of several numbers as Benjamini and Hochberg do, each from 0 to 1: those of at most a level are discoveries of which
/// at most that share is expected to be noise. A number without p has none, and does not count.
pub fn adjusted_p(all: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = all.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (count, mut least) = (order.len() as f64, 1.0);
    let mut adjusted = vec![None; all.len()];
    for (rank, (at, p)) in order.iter().enumerate().rev() {
        least = f64::min(least, p * count / (rank + 1) as f64);
        adjusted[*at] = Some(least);
    }
    adjusted
}

/// Chooses discoveries by the e-values of several numbers so that at most the share `level` of them is expected to be noise, however the
/// numbers depend on each other and whenever the series was ended. A number without e-value is none, and does not count.
pub fn kept_by_e(all: &[Option<f64>], level: f64) -> Vec<bool> {
    let mut order: Vec<f64> = all.iter().copied().flatten().collect();
    order.sort_by(|a, b| b.total_cmp(a));
    let count = order.len() as f64;
    let is_kept = |(rank, e): (usize, &f64)| *e >= count / (level * (rank + 1) as f64);
    let least = order.iter().enumerate().rev().find(|(rank, e)| is_kept((*rank, e))).map(|(_, e)| *e);
    all.iter().map(|e| e.zip(least).is_some_and(|(e, least)| e >= least)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_by_hand() {
        // 0.01 * 4 / 1, 0.02 * 4 / 2, then 0.04 of the fourth at rank 3 and 4.
        let adjusted = adjusted_p(&[Some(0.02), Some(0.04), None, Some(0.01), Some(0.03)]);
        assert_eq!(adjusted, [Some(0.04), Some(0.04), None, Some(0.04), Some(0.04)]);
        assert_eq!(adjusted_p(&[Some(0.01), Some(0.5)]), [Some(0.02), Some(0.5)]);
        assert_eq!(adjusted_p(&[]), []);
    }

    /// The discoveries are those of the definition: the largest k for which the k-th smallest p is at most k/m times the level.
    #[test]
    fn discoveries_are_those_of_the_definitions() {
        let mut random = crate::simulated::SimulatedNoise(3);
        for _ in 0..200 {
            let p: Vec<f64> = (0..6).map(|_| (random.unit() * 20.0).round() / 100.0).collect();
            let e: Vec<f64> = (0..6).map(|_| (random.unit() * 200.0).round()).collect();
            let level = 0.1;
            let below = |limit: f64| p.iter().filter(|p| **p <= limit).count();
            let most = (1..=6).rev().find(|k| below(level * *k as f64 / 6.0 + 1e-12) >= *k).unwrap_or(0);
            let found = adjusted_p(&p.iter().copied().map(Some).collect::<Vec<_>>());
            assert_eq!(
                found.iter().flatten().filter(|q| **q <= level + 1e-12).count(),
                below(level * most as f64 / 6.0 + 1e-12),
                "{p:?}"
            );
            let above = |limit: f64| e.iter().filter(|e| **e >= limit).count();
            let most = (1..=6).rev().find(|k| above(6.0 / (level * *k as f64)) >= *k).unwrap_or(0);
            let kept = kept_by_e(&e.iter().copied().map(Some).collect::<Vec<_>>(), level);
            let expected = if most == 0 { 0 } else { above(6.0 / (level * most as f64)) };
            assert_eq!(kept.iter().filter(|kept| **kept).count(), expected, "{e:?}");
        }
    }
}
