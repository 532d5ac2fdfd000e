//! Values of events: their least, median and most, and how they are distributed.

use serde::Serialize;
use std::fmt::Write;

/// Values that are kept for the median; beyond them every second one is left out, again and again.
const KEPT: usize = 1 << 16;

/// The greatest number of bars in a histogram.
const BARS: usize = 10;

/// Integers below this are exact as floating-point numbers.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Gathers the values of a field.
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

/// The summary of the values of a field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The bars of text and figure.
    #[serde(skip)]
    pub(crate) bars: HistogramBars,
}

/// The bars of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HistogramBars {
    /// Whether the bars begin at 1, 2 and 5 times the powers of ten.
    pub(crate) log: bool,
    /// Each bar's least value, the value at which the next one begins, and the number of values.
    pub(crate) bars: Vec<(f64, f64, u64)>,
}

impl HistogramBars {
    /// Returns the bars of sorted values. They are logarithmic where the values span two powers of ten or more and
    /// most of them lie in the lowest tenth, so that equally wide bars would be one bar.
    fn of(sorted: &[f64], median: f64, equal: Vec<(f64, f64, u64)>) -> HistogramBars {
        let (Some(least), Some(most)) = (sorted.iter().copied().find(|v| *v > 0.0), sorted.last().copied()) else {
            return HistogramBars { log: false, bars: equal };
        };
        if sorted.first().is_some_and(|v| *v < 0.0) || most / least < 100.0 || median * 10.0 > most {
            return HistogramBars { log: false, bars: equal };
        }
        let (first, last) = (least.log10().floor() as i32, most.log10().floor() as i32);
        let factors: &[f64] = if last - first < 9 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        // A negative power of ten is not exact; its inverse is.
        let power = |e: i32| if e < 0 { 1.0 / 10f64.powi(-e) } else { 10f64.powi(e) };
        let edges = (first..=last + 1).flat_map(|e| factors.iter().map(move |factor| factor * power(e)));
        let mut edges: Vec<f64> = edges.collect();
        let begin = edges.iter().rposition(|edge| *edge <= least).unwrap_or(0);
        let end = edges.iter().position(|edge| *edge > most).unwrap_or(edges.len() - 1);
        edges.truncate(end + 1);
        edges.drain(..begin);
        if sorted.first() == Some(&0.0) {
            edges.insert(0, 0.0);
        }
        let below = |edge: f64| sorted.partition_point(|v| *v < edge) as u64;
        let bars = edges.windows(2).map(|w| (w[0], w[1], below(w[1]) - below(w[0]))).collect();
        HistogramBars { log: true, bars }
    }
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
        let median = self.kept[(n - 1) / 2].midpoint(self.kept[n / 2]);
        let edge = |bar: usize| self.least + bar_width * bar as f64;
        let equal = histogram.iter().enumerate().map(|(bar, n)| (edge(bar), edge(bar + 1), *n)).collect();
        Some(Summary {
            bars: HistogramBars::of(&self.kept, median, equal),
            count: self.count,
            min: self.least,
            median,
            mean: self.sum / self.count as f64,
            max: self.most,
            sample_every: 1 << self.thinned,
            bar_width,
            histogram,
        })
    }
}

impl Summary {
    /// The summary in words for people, indented by a number of columns.
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
        let HistogramBars { log, bars } = &self.bars;
        let most = bars.iter().map(|(_, _, n)| *n).max().unwrap_or(0).max(1);
        if bars.len() > 1 {
            for (i, (from, _, n)) in bars.iter().enumerate() {
                let bar = "#".repeat((n * 34).div_ceil(most) as usize);
                let from = if *log { format!("from {from}") } else { self.bar_label(i) };
                let _ = writeln!(out, "{:indent$}{from:>14}  {n:>7} {bar}", "");
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
    fn wide_ranges_have_logarithmic_bars() {
        let summary = |values: &[f64]| {
            let mut all = Values::default();
            values.iter().for_each(|value| all.add(*value));
            all.finish().expect("some")
        };
        let wide = summary(&[0.0, 3.0, 5.0, 7.0, 20.0, 999.0]);
        let expected = [
            (0.0, 2.0, 1),
            (2.0, 5.0, 1),
            (5.0, 10.0, 2),
            (10.0, 20.0, 0),
            (20.0, 50.0, 1),
            (50.0, 100.0, 0),
            (100.0, 200.0, 0),
            (200.0, 500.0, 0),
            (500.0, 1000.0, 1),
        ];
        assert_eq!(wide.bars, HistogramBars { log: true, bars: expected.to_vec() });
        assert!(wide.text(0).contains("      from 500        1 "), "{}", wide.text(0));
        // The document keeps its ten bars.
        assert_eq!((wide.bar_width, wide.histogram.len()), (100.0, 10));
        for even in [&[0.0, 500.0, 999.0][..], &[-5.0, 3.0, 1000.0], &[0.0, 0.0], &[1.0, 5.0, 80.0]] {
            let summary = summary(even);
            let counts: Vec<u64> = summary.bars.bars.iter().map(|bar| bar.2).collect();
            assert!(!summary.bars.log && counts == summary.histogram, "{even:?}");
        }
        let small = summary(&[0.001, 0.002, 0.004, 2.0]);
        assert_eq!(small.bars.bars[..3], [(0.001, 0.002, 1), (0.002, 0.005, 2), (0.005, 0.01, 0)]);
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
