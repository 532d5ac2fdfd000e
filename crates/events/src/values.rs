//! Values of events: their least, median and most, and how they are distributed.

use serde::Serialize;
use std::fmt::Write;

/// Values that are kept for the median; beyond them every second one is left out, again and again.
const KEPT: usize = 1 << 16;

/// The greatest number of bars in a histogram.
const BARS: usize = 10;

/// Integers below this are exact as floating-point numbers.
const WHOLE: f64 = 9_007_199_254_740_992.0;

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
    /// The number of values.
    pub count: u64,
    /// The least value.
    pub min: f64,
    /// The value in the middle of the sample.
    pub median: f64,
    /// The mean of all values.
    pub mean: f64,
    /// The greatest value.
    pub max: f64,
    /// The sample holds every nth value: 1 up to 65,536 values, which makes median and histogram exact; a power of two
    /// beyond.
    pub sample_every: u64,
    /// The width of a bar of the histogram; the first one begins at the least value. Where all values of the sample are
    /// integers it is a whole number, 1 if they span at most ten.
    pub bar_width: f64,
    /// The number of values of the sample in each of at most ten bars, up to the greatest value.
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

    /// The width of the bars, and their number.
    fn bars(&self) -> (f64, usize) {
        let span = self.most - self.least;
        let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() < WHOLE;
        if [self.least, self.most].iter().chain(&self.kept).all(is_whole) {
            let width = ((span + 1.0) / BARS as f64).ceil();
            (width, ((span + 1.0) / width).ceil() as usize)
        } else {
            (span / BARS as f64, if span > 0.0 { BARS } else { 1 })
        }
    }

    pub(crate) fn finish(mut self) -> Option<Summary> {
        let n = self.kept.len();
        if n == 0 {
            return None;
        }
        self.kept.sort_by(f64::total_cmp);
        let (bar_width, bars) = self.bars();
        let mut histogram = vec![0; bars];
        for value in &self.kept {
            let bar = if bar_width > 0.0 { ((value - self.least) / bar_width) as usize } else { 0 };
            histogram[bar.min(bars - 1)] += 1;
        }
        Some(Summary {
            count: self.count,
            min: self.least,
            median: self.kept[(n - 1) / 2].midpoint(self.kept[n / 2]),
            mean: self.sum / self.count as f64,
            max: self.most,
            sample_every: 1 << self.thinned,
            bar_width,
            histogram,
        })
    }
}

impl Summary {
    /// For people, indented so far.
    pub(crate) fn text(&self, indent: usize) -> String {
        let mut out = String::new();
        let sampled = match self.sample_every {
            1 => String::new(),
            every => format!(" (median and bars of every {every}th value)"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:indent$}{} values: min {}, median {}, mean {:.3}, max {}{sampled}",
            "", self.count, self.min, self.median, self.mean, self.max
        );
        let most = self.histogram.iter().max().copied().unwrap_or(0).max(1);
        if self.histogram.len() > 1 {
            for (i, n) in self.histogram.iter().enumerate() {
                let bar = "#".repeat((n * 40).div_ceil(most) as usize);
                let from = self.bar_label(i);
                let _ = writeln!(out, "{:indent$}{from:>14} {n:>8} {bar}", "");
            }
        }
        out
    }

    /// The least value of a bar; with the greatest one where it stands for several integers.
    fn bar_label(&self, bar: usize) -> String {
        let from = self.min + self.bar_width * bar as f64;
        let is_whole = self.bar_width.fract() == 0.0 && self.min.fract() == 0.0;
        match is_whole {
            true if self.bar_width > 1.0 => format!("{from}..{}", (from + self.bar_width - 1.0).min(self.max)),
            true => format!("{from}"),
            false => format!("{from:.3}"),
        }
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
        assert_eq!((s.sample_every, s.bar_width, s.histogram.as_slice()), (1, 10.0, &[10; 10][..]));
        assert!(!s.text(0).contains("every") && s.text(0).contains("10..19 "), "{}", s.text(0));
        let mut many = Values::default();
        (0..300_000).for_each(|n| many.add(f64::from(n % 1000)));
        let s = many.finish().expect("some");
        assert!(
            s.count == 300_000 && (s.median - 499.5).abs() < 10.0 && s.histogram.iter().sum::<u64>() <= KEPT as u64
        );
        assert_eq!(s.sample_every, 8);
        assert!(s.text(0).contains("(median and bars of every 8th value)"), "{}", s.text(0));
        assert_eq!(Values::default().finish(), None);
    }

    #[test]
    fn bars_of_small_integers_are_the_integers() {
        let summary = |values: &[f64]| {
            let mut all = Values::default();
            values.iter().for_each(|value| all.add(*value));
            all.finish().map(|s| (s.bar_width, s.histogram)).expect("some")
        };
        assert_eq!(summary(&[1.0, 2.0, 3.0, 3.0]), (1.0, vec![1, 1, 2]));
        assert_eq!(summary(&[-1.0, 8.0]), (1.0, vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
        // 0 to 10 are eleven integers: six bars of two.
        assert_eq!(summary(&[0.0, 1.0, 10.0]), (2.0, vec![2, 0, 0, 0, 0, 1]));
        assert_eq!(summary(&[4.0, 4.0]), (1.0, vec![2]));
        let (width, bars) = summary(&[0.5, 1.5]);
        assert!((width - 0.1).abs() < 1e-12 && bars == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(summary(&[0.25, 0.25]), (0.0, vec![2]));
    }
}
