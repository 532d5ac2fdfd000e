//! Axes of ordinary charts: linear or logarithmic, with ticks at round values, units and a title.

use crate::palette::{INK, RULE};
use crate::scale::LETTER;
use draw::{Anchor, Figure, Item, Line, PT, Point, Rect, Turn, Unit, text};

/// The kind of the values on an axis, which gives the form of their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisUnit {
    /// A number, with k, M, G and so on for thousands, millions and more.
    Number,
    /// A number of whole things, such as tasks: no tick lies between two integers.
    Count,
    /// A percentage, of which 100 is the whole.
    Percent,
    /// A length of time in nanoseconds.
    Time,
    /// A length of time in seconds.
    Seconds,
}

/// An axis from one value to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
    measure: AxisUnit,
    title: String,
}

/// The distance of a title from the axis on its left side, which leaves room for labels.
const BESIDE: Unit = 34 * PT;
/// The distance of the lines of a title.
const LINE: Unit = 8 * PT;
/// The least distance between two ticks on a vertical axis.
const APART: Unit = 14 * PT;
/// The room below a horizontal axis for its labels, and for them and its title.
const LABELS: Unit = 11 * PT;
const WITH_TITLE: Unit = 20 * PT;

impl Axis {
    /// Returns a linear axis. A range without a length is widened to one.
    pub fn linear(low: f64, high: f64, measure: AxisUnit, title: &str) -> Axis {
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Axis { low, high, log: false, measure, title: title.to_owned() }
    }

    /// Returns a logarithmic axis. Both ends are above zero.
    pub fn log(low: f64, high: f64, measure: AxisUnit, title: &str) -> Axis {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Axis { low, high, log: true, measure, title: title.to_owned() }
    }

    /// Returns the axis with its upper end at the next tick of about `about`.
    #[must_use]
    pub fn to_next_tick(mut self, about: u32) -> Axis {
        let step = self.step(about);
        self.high = self.low + ((self.high - self.low) / step - 1e-9).ceil().max(1.0) * step;
        self
    }

    /// Returns the place of a value on an axis that begins at `start` and has this length; values outside are at the
    /// ends. A negative length is that of an axis that grows upward.
    pub fn at(&self, value: f64, start: Unit, length: Unit) -> Unit {
        let share = if self.log {
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        start + (share.clamp(0.0, 1.0) * f64::from(length)).round() as Unit
    }

    /// Returns the distance of the ticks on a linear axis, for about `about` of them: 1, 2 or 5 times a power of ten.
    fn step(&self, about: u32) -> f64 {
        let least = (self.high - self.low) / f64::from(about.max(1));
        let power = 10f64.powf(least.log10().floor());
        let factors = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = factors.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(power * 10.0);
        if self.measure == AxisUnit::Count { step.max(1.0) } else { step }
    }

    /// Returns the values and labels of about `about` ticks, from the lowest on.
    pub fn ticks(&self, about: u32) -> Vec<(f64, String)> {
        if self.log {
            return self.powers(about);
        }
        let step = self.step(about);
        let first = (self.low / step - 1e-9).ceil();
        let values = (0..1000).map(|k| (first + f64::from(k)) * step).take_while(|v| *v <= self.high + step * 1e-9);
        // The sum removes the sign of a negative zero.
        values.map(|value| (value + 0.0, self.label(value + 0.0, step))).collect()
    }

    /// Returns ticks at powers of ten; with twice and five times these where there are few.
    fn powers(&self, about: u32) -> Vec<(f64, String)> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let every = (last - first).unsigned_abs().div_ceil(about.max(1)).max(1) as usize;
        let factors: &[f64] = match last - first {
            ..3 if about >= 4 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let values = (first..=last).step_by(every).flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e)));
        let inside = (self.low * (1.0 - 1e-9))..=(self.high * (1.0 + 1e-9));
        values.filter(|value| inside.contains(value)).map(|value| (value, self.label(value, value))).collect()
    }

    /// Returns the label of a value on an axis with this distance between its ticks.
    fn label(&self, value: f64, step: f64) -> String {
        let largest = if self.log { value } else { self.low.abs().max(self.high.abs()) };
        let units: &[(f64, &str)] = match self.measure {
            AxisUnit::Number | AxisUnit::Count => &[(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")],
            AxisUnit::Time => &[(1e9, " s"), (1e6, " ms"), (1e3, " \u{b5}s"), (0.0, " ns")],
            AxisUnit::Percent | AxisUnit::Seconds => &[],
        };
        let plain = match self.measure {
            AxisUnit::Percent => " %",
            AxisUnit::Seconds => " s",
            _ => "",
        };
        let (scale, unit) = match units.iter().find(|(least, _)| largest >= *least * (1.0 - 1e-9)) {
            Some((1e4, unit)) => (1e3, *unit),
            Some((0.0, unit)) => (1.0, *unit),
            Some((scale, unit)) => (*scale, *unit),
            None => (1.0, plain),
        };
        if value == 0.0 {
            let is_number = matches!(self.measure, AxisUnit::Number | AxisUnit::Count);
            return if is_number { "0".to_owned() } else { format!("0{unit}") };
        }
        let digits = (-(step / scale * (1.0 + 1e-9)).log10().floor()).clamp(0.0, 9.0) as usize;
        format!("{:.digits$}{unit}", value / scale)
    }

    /// Draws the axis on the left side of a plot, with rules through it.
    pub fn draw_left(&self, figure: &mut Figure, plot: Rect) {
        let floor = plot.y + plot.h;
        let mut rules = Vec::new();
        for (value, label) in self.ticks((plot.h / APART).clamp(1, 5) as u32) {
            let y = self.at(value, floor, -plot.h);
            rules.push(Line { from: Point { x: plot.x, y }, to: Point { x: plot.x + plot.w, y } });
            let at = Point { x: plot.x - 4 * PT, y: y + LETTER * 5 / 14 };
            figure.text(at, LETTER, Anchor::End, INK, &label);
        }
        figure.push(Item::Lines { stroke: RULE, width: 30, dash: 0, lines: rules });
        self.draw_left_title(figure, plot);
    }

    /// Draws the title beside a plot, reading from below to above.
    pub fn draw_left_title(&self, figure: &mut Figure, plot: Rect) {
        let lines = text::wrap(&text::printable(&self.title), LETTER, plot.h.max(60 * PT));
        // The last line is the nearest; a third one would leave the page.
        for (nth, line) in (0..2).zip(lines.into_iter().take(2).rev()) {
            let at = Point { x: plot.x - BESIDE - nth * LINE, y: plot.y + plot.h / 2 };
            let (anchor, turn) = (Anchor::Middle, Turn::Left);
            figure.push(Item::Text { at, size: LETTER, anchor, turn, fill: INK, text: line });
        }
    }

    /// Draws rules through a plot at the ticks of the axis below it, and the axis without labels.
    pub fn draw_rules(&self, figure: &mut Figure, plot: Rect) {
        let (floor, right) = (plot.y + plot.h, plot.x + plot.w);
        let mut marks = vec![Line { from: Point { x: plot.x, y: floor }, to: Point { x: right, y: floor } }];
        let ticks = self.fitting_ticks(plot);
        let rule = |(x, _): &(Unit, String)| Line { from: Point { x: *x, y: plot.y }, to: Point { x: *x, y: floor } };
        let mark =
            |(x, _): &(Unit, String)| Line { from: Point { x: *x, y: floor }, to: Point { x: *x, y: floor + 3 * PT } };
        marks.extend(ticks.iter().map(mark));
        figure.push(Item::Lines { stroke: RULE, width: 30, dash: 0, lines: ticks.iter().map(rule).collect() });
        figure.push(Item::Lines { stroke: INK, width: 50, dash: 0, lines: marks });
    }

    /// Draws the axis under a plot, with rules through it. Labels that would touch are left out.
    pub fn draw_below(&self, figure: &mut Figure, plot: Rect) {
        let floor = plot.y + plot.h;
        self.draw_rules(figure, plot);
        for (x, label) in self.fitting_ticks(plot) {
            figure.text(Point { x, y: floor + LABELS }, LETTER, Anchor::Middle, INK, &label);
        }
        let at = Point { x: plot.x + plot.w / 2, y: floor + WITH_TITLE };
        figure.text(at, LETTER, Anchor::Middle, INK, &self.title);
    }

    /// Returns the places of the ticks on a horizontal axis, as many as have room for their labels.
    fn fitting_ticks(&self, plot: Rect) -> Vec<(Unit, String)> {
        let placed = |about| -> Vec<(Unit, String)> {
            let ticks = self.ticks(about).into_iter();
            ticks.map(|(value, label)| (self.at(value, plot.x, plot.w), label)).collect()
        };
        let half = |label: &str| text::width(&text::printable(label), LETTER) / 2;
        let fit = |ticks: &Vec<(Unit, String)>| {
            ticks.windows(2).all(|w| w[1].0 - w[0].0 >= half(&w[0].1) + half(&w[1].1) + 4 * PT)
        };
        (1..=10).rev().map(placed).find(fit).unwrap_or_default()
    }
}

/// Returns a round length of time with its unit.
pub(crate) fn time_label(ns: f64) -> String {
    Axis::log(1.0, 10.0, AxisUnit::Time, "").label(ns, ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, about: u32) -> Vec<String> {
        axis.ticks(about).into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn ticks_are_round_and_have_units() {
        let axis = |low, high, measure| Axis::linear(low, high, measure, "");
        assert_eq!(labels(&axis(0.0, 10.0, AxisUnit::Number), 5), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&axis(-0.5, 0.5, AxisUnit::Number), 5), ["-0.4", "-0.2", "0", "0.2", "0.4"]);
        assert_eq!(labels(&axis(0.0, 2.0, AxisUnit::Count), 5), ["0", "1", "2"]);
        assert_eq!(labels(&axis(0.0, 60_000.0, AxisUnit::Number), 3), ["0", "20 k", "40 k", "60 k"]);
        assert_eq!(labels(&axis(0.0, 2.5e6, AxisUnit::Time), 3), ["0 ms", "1 ms", "2 ms"]);
        assert_eq!(labels(&axis(0.0, 100.0, AxisUnit::Percent), 4), ["0 %", "50 %", "100 %"]);
        assert_eq!(labels(&axis(1.0, 1.0, AxisUnit::Seconds), 2), ["1.0 s", "1.5 s", "2.0 s"]);
        let next = axis(0.0, 4.1, AxisUnit::Number).to_next_tick(5);
        assert_eq!((next.high, axis(0.0, 4.0, AxisUnit::Number).to_next_tick(4).high), (5.0, 4.0));
    }

    #[test]
    fn logarithmic_axes_have_ticks_at_powers_of_ten() {
        let axis = Axis::log(1e2, 1e7, AxisUnit::Time, "");
        assert_eq!(labels(&axis, 9), ["100 ns", "1 \u{b5}s", "10 \u{b5}s", "100 \u{b5}s", "1 ms", "10 ms"]);
        assert_eq!(labels(&axis, 3), ["100 ns", "10 \u{b5}s", "1 ms"]);
        assert_eq!(labels(&Axis::log(1.0, 20.0, AxisUnit::Number, ""), 5), ["1", "2", "5", "10", "20"]);
        assert_eq!((axis.at(1e2, 50, 1000), axis.at(1e7, 50, 1000), axis.at(1e4, 50, 1000)), (50, 1050, 450));
        assert_eq!((axis.at(0.0, 50, 1000), axis.at(f64::INFINITY, 50, 1000)), (50, 1050));
    }

    #[test]
    fn labels_below_an_axis_do_not_touch() {
        for width in [60, 120, 300, 700] {
            let mut figure = Figure::new(800 * PT, 200 * PT, "");
            let plot = Rect { x: 50 * PT, y: 10 * PT, w: width * PT, h: 100 * PT };
            Axis::log(1.0, 1e11, AxisUnit::Time, "").draw_below(&mut figure, plot);
            let ends = figure.items.iter().filter_map(|item| match item {
                Item::Text { at, size, text, .. } => {
                    let half = draw::text::width(text, *size) / 2;
                    Some((at.x - half, at.x + half))
                }
                _ => None,
            });
            let ends: Vec<(Unit, Unit)> = ends.collect();
            assert!(ends.len() > 1 && ends.windows(2).all(|w| w[0].1 < w[1].0), "{width}: {ends:?}");
        }
    }
}
