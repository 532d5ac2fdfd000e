//! Values of events: their least, median and most, and how they are distributed.

use serde::Serialize;
use std::fmt::Write;

/// Values that are kept for the median; beyond them every second one is left out, again and again.
const KEPT: usize = 1 << 16;

/// Bars of a histogram.
const BARS: usize = 10;

/// Gathers values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    count: u64,
    least: f64,
    most: f64,
    sum: f64,
    /// Each of these stands for 2^thinned values.
    kept: Vec<f64>,
    thinned: u32,
}

/// Values, summarised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many there are.
    pub count: u64,
    /// The least,
    pub min: f64,
    /// the one in the middle (of a sample, beyond 65,536 values),
    pub median: f64,
    /// their mean,
    pub mean: f64,
    /// and the most.
    pub max: f64,
    /// Ten bars of equal width from the least to the most: how many values each has, in the sample.
    pub histogram: Vec<u64>,
}

impl Values {
    pub(crate) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        (self.least, self.most) =
            if self.count == 0 { (value, value) } else { (self.least.min(value), self.most.max(value)) };
        if self.count.is_multiple_of(1 << self.thinned) {
            self.kept.push(value);
        }
        self.count += 1;
        self.sum += value;
        if self.kept.len() > KEPT {
            self.kept = self.kept.iter().step_by(2).copied().collect();
            self.thinned += 1;
        }
    }

    pub(crate) fn finish(mut self) -> Option<Summary> {
        let n = self.kept.len();
        if n == 0 {
            return None;
        }
        self.kept.sort_by(f64::total_cmp);
        let width = (self.most - self.least) / BARS as f64;
        let mut histogram = vec![0; BARS];
        for value in &self.kept {
            let bar = if width > 0.0 { ((value - self.least) / width) as usize } else { 0 };
            histogram[bar.min(BARS - 1)] += 1;
        }
        Some(Summary {
            count: self.count,
            min: self.least,
            median: self.kept[(n - 1) / 2].midpoint(self.kept[n / 2]),
            mean: self.sum / self.count as f64,
            max: self.most,
            histogram,
        })
    }
}

impl Summary {
    /// For people, indented so far.
    pub(crate) fn text(&self, indent: usize) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:indent$}{} values: min {}, median {}, mean {:.3}, max {}",
            "", self.count, self.min, self.median, self.mean, self.max
        );
        let most = self.histogram.iter().max().copied().unwrap_or(0).max(1);
        let width = (self.max - self.min) / BARS as f64;
        if width > 0.0 {
            for (i, n) in self.histogram.iter().enumerate() {
                let bar = "#".repeat((n * 40).div_ceil(most) as usize);
                let _ = writeln!(out, "{:indent$}{:>14.3} {n:>8} {bar}", "", self.min + width * i as f64);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let mut values = Values::default();
        (0..100).rev().for_each(|n| values.add(f64::from(n)));
        values.add(f64::NAN);
        let s = values.finish().expect("some");
        assert_eq!((s.count, s.min, s.median, s.mean, s.max), (100, 0.0, 49.5, 49.5, 99.0));
        assert_eq!(s.histogram, [10; 10]);
        let mut many = Values::default();
        (0..300_000).for_each(|n| many.add(f64::from(n % 1000)));
        let s = many.finish().expect("some");
        assert!(
            s.count == 300_000 && (s.median - 499.5).abs() < 10.0 && s.histogram.iter().sum::<u64>() <= KEPT as u64
        );
        assert_eq!(Values::default().finish(), None);
    }
}
