//! Quantities over time.

use crate::expr::EventValue;
use sched::seeded::SeededMap;
use sched::{Dur, Ts};
use serde::Serialize;
use timeline::Division;

/// The number of columns of a line.
pub(crate) const COLUMNS: usize = 400;

/// Maximum number of lines of one series; samples of further values are counted in `others`.
pub(crate) const MOST_LINES: usize = 8;

/// One line of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineReport {
    /// The value of `by`; nothing for a series of one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The number of samples: events with a value, events counted, or changes of the number of open intervals.
    pub count: u64,
    /// The smallest sample; for a rate the smallest of the 400 columns, in events per second.
    pub min: Option<f64>,
    /// The mean: of the samples; over time for held values and open intervals; of the window for a rate.
    pub mean: Option<f64>,
    /// The largest sample; for a rate the largest of the 400 columns, in events per second.
    pub max: Option<f64>,
    /// The mean in each of 400 columns of the window; `null` in a column without a value.
    pub columns: Vec<Option<f64>>,
}

/// The way in which the samples of a column are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleKind {
    /// The mean of the samples.
    Samples,
    /// The mean over time of samples that each hold until the next one.
    Held,
    /// The number of samples in a second.
    Rate,
}

#[derive(Clone, Debug)]
struct Line {
    by: Option<EventValue>,
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    /// The weight of each column, and the sum of its weighted values.
    columns: Vec<(f64, f64)>,
    held: Option<(Ts, f64)>,
}

/// Gathers the samples of a series by line and column.
#[derive(Clone, Debug)]
pub(crate) struct SeriesColumns {
    kind: SampleKind,
    from: Ts,
    to: Ts,
    division: Division,
    places: SeededMap<Option<EventValue>, usize>,
    lines: Vec<Line>,
    pub(crate) others: u64,
}

impl SeriesColumns {
    pub(crate) fn new(kind: SampleKind, from: Ts, to: Ts) -> SeriesColumns {
        let division = Division::into_parts(from, to, COLUMNS);
        SeriesColumns { kind, from, to, division, places: SeededMap::default(), lines: Vec::new(), others: 0 }
    }

    /// A sample of the line of `by`. Returns the line.
    pub(crate) fn add(&mut self, ts: Ts, by: Option<EventValue>, value: f64) -> Option<usize> {
        self.add_many(ts, by, value, 1)
    }

    /// A number of samples of the line of `by` at once, with their mean value.
    pub(crate) fn add_many(&mut self, ts: Ts, by: Option<EventValue>, value: f64, number: u64) -> Option<usize> {
        let Some(place) = self.place(by) else {
            self.others += number;
            return None;
        };
        let column = self.division.part_of(ts);
        self.hold(place, ts);
        let line = &mut self.lines[place];
        line.count += number;
        (line.min, line.max) = (line.min.min(value), line.max.max(value));
        line.sum += value * number as f64;
        match self.kind {
            SampleKind::Samples | SampleKind::Rate => {
                let (weight, sum) = &mut line.columns[column];
                (*weight, *sum) = (*weight + number as f64, *sum + value * number as f64);
            }
            SampleKind::Held => line.held = Some((ts, value)),
        }
        Some(place)
    }

    /// The value of the line of `by` that was in force when the window began, if it is known.
    pub(crate) fn add_early(&mut self, by: Option<EventValue>, value: Option<f64>) {
        if let Some(place) = self.place(by) {
            self.lines[place].held = value.map(|value| (self.from, value));
        }
    }

    /// The values are unknown from here until their next samples, since events were lost.
    pub(crate) fn lost(&mut self, ts: Ts) {
        for place in 0..self.lines.len() {
            self.hold(place, ts);
            self.lines[place].held = None;
        }
    }

    /// The value of one line is unknown from here until its next sample.
    pub(crate) fn lose(&mut self, by: &Option<EventValue>, ts: Ts) {
        if let Some(place) = self.places.get(by).copied() {
            self.hold(place, ts);
            self.lines[place].held = None;
        }
    }

    /// The number of lines of the series.
    pub(crate) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// The way in which the samples of the series are combined.
    pub(crate) fn kind(&self) -> SampleKind {
        self.kind
    }

    fn place(&mut self, by: Option<EventValue>) -> Option<usize> {
        if let Some(place) = self.places.get(&by) {
            return Some(*place);
        }
        let new = self.lines.len();
        if new == MOST_LINES {
            return None;
        }
        self.places.insert(by.clone(), new);
        let columns = vec![(0.0, 0.0); COLUMNS];
        self.lines.push(Line { by, count: 0, min: f64::MAX, max: f64::MIN, sum: 0.0, columns, held: None });
        Some(new)
    }

    /// Accounts for the time that the held value of a line lasted.
    fn hold(&mut self, place: usize, until: Ts) {
        let line = &mut self.lines[place];
        let Some((since, value)) = line.held else { return };
        if until > since {
            (line.min, line.max) = (line.min.min(value), line.max.max(value));
        }
        let columns = &mut line.columns;
        self.division.split(since, until.min(self.to), |column, start, end| {
            let ns = end.since(start).0 as f64;
            if let Some((weight, sum)) = columns.get_mut(column) {
                (*weight, *sum) = (*weight + ns, *sum + ns * value);
            }
        });
        self.lines[place].held = Some((until, value));
    }

    /// The lines, by their values.
    pub(crate) fn finish(mut self) -> Vec<LineReport> {
        (0..self.lines.len()).for_each(|place| self.hold(place, self.to));
        let window = Dur(self.to.since(self.from).0).seconds();
        let mut lines = std::mem::take(&mut self.lines);
        // A value that was lost before the window began has no line.
        lines.retain(|line| line.min <= line.max);
        lines.sort_by(|a, b| a.by.cmp(&b.by));
        lines.into_iter().map(|line| report(line, self.kind, window)).collect()
    }
}

fn report(line: Line, kind: SampleKind, window: f64) -> LineReport {
    let by = line.by.map(|value| value.to_string());
    let mean = |(weight, sum): &(f64, f64)| (*weight > 0.0).then(|| sum / weight);
    if kind == SampleKind::Rate {
        let column = window / COLUMNS as f64;
        let rate = |n: f64| if column > 0.0 { n / column } else { 0.0 };
        let rates: Vec<f64> = line.columns.iter().map(|(n, _)| rate(*n)).collect();
        let (min, max) = rates.iter().fold((f64::MAX, 0.0), |(a, b): (f64, f64), r| (a.min(*r), b.max(*r)));
        let mean = (window > 0.0).then(|| line.count as f64 / window);
        let columns = rates.into_iter().map(Some).collect();
        return LineReport { by, count: line.count, min: Some(min), mean, max: Some(max), columns };
    }
    let all = line.columns.iter().fold((0.0, 0.0), |(w, s), (weight, sum)| (w + weight, s + sum));
    let of_all = if kind == SampleKind::Samples { Some(line.sum / line.count.max(1) as f64) } else { mean(&all) };
    LineReport {
        by,
        count: line.count,
        min: Some(line.min),
        mean: of_all,
        max: Some(line.max),
        columns: line.columns.iter().map(mean).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_hold_until_the_next() {
        let mut series = SeriesColumns::new(SampleKind::Held, Ts(0), Ts(400));
        series.add(Ts(100), None, 4.0);
        series.add(Ts(200), None, 8.0);
        series.lost(Ts(300));
        let [line] = series.finish().try_into().expect("one line");
        assert_eq!((line.count, line.min, line.max, line.mean), (2, Some(4.0), Some(8.0), Some(6.0)));
        let at = [99, 100, 199, 200, 299, 300].map(|column| line.columns[column]);
        assert_eq!(at, [None, Some(4.0), Some(4.0), Some(8.0), Some(8.0), None]);
    }

    #[test]
    fn a_value_in_force_at_the_start_counts_until_the_next() {
        let mut series = SeriesColumns::new(SampleKind::Held, Ts(100), Ts(500));
        let by = |n| Some(EventValue::Number(n));
        series.add_early(by(1), Some(9.0));
        series.add_early(by(1), Some(2.0));
        series.add(Ts(200), by(1), 4.0);
        series.add_early(by(2), Some(7.0));
        let [changed, same] = series.clone().finish().try_into().expect("two lines");
        assert_eq!((changed.count, changed.min, changed.max, changed.mean), (1, Some(2.0), Some(4.0), Some(3.5)));
        assert_eq!((same.count, same.min, same.max, same.mean), (0, Some(7.0), Some(7.0), Some(7.0)));
        assert_eq!([changed.columns[99], changed.columns[100], same.columns[399]], [Some(2.0), Some(4.0), Some(7.0)]);
        // Lost before the window, it is unknown in it.
        let mut series = SeriesColumns::new(SampleKind::Held, Ts(100), Ts(500));
        series.add_early(by(2), Some(7.0));
        series.lost(Ts(100));
        assert!(series.finish().is_empty());
    }

    #[test]
    fn samples_and_rates() {
        let mut series = SeriesColumns::new(SampleKind::Samples, Ts(0), Ts(400));
        [1.0, 3.0].into_iter().for_each(|value| {
            series.add(Ts(0), None, value);
        });
        let [line] = series.finish().try_into().expect("one line");
        assert_eq!((line.columns[0], line.columns[1], line.mean), (Some(2.0), None, Some(2.0)));
        let second = 1_000_000_000;
        let mut series = SeriesColumns::new(SampleKind::Rate, Ts(0), Ts(4 * second));
        (0..8).for_each(|n| {
            series.add(Ts(n), None, 1.0);
        });
        let [line] = series.finish().try_into().expect("one line");
        // A column is 10 ms.
        assert_eq!((line.mean, line.max, line.min), (Some(2.0), Some(800.0), Some(0.0)));
    }

    #[test]
    fn lines_are_limited() {
        let mut series = SeriesColumns::new(SampleKind::Samples, Ts(0), Ts(400));
        (0..12).for_each(|n| {
            series.add(Ts(0), Some(EventValue::Number(n)), 1.0);
        });
        assert_eq!(series.others, 4);
        assert_eq!(series.finish().len(), MOST_LINES);
    }
}
