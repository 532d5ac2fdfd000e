//! The distributions of values, side by side.

use crate::values::Summary;
use draw::{Anchor, Figure, Item, PT, Paint, Point, Rect, Unit, text};
use timeline::page::Page;
use timeline::palette::{INK, MARKERS};
use timeline::scale::LETTER;
use timeline::{Axis, AxisUnit};

/// The distributions of some kinds of events.
pub(crate) struct Distributions<'r> {
    /// The name of each kind, and its values.
    pub(crate) panels: Vec<(&'r str, &'r Summary)>,
    /// The kind of the values.
    pub(crate) measure: AxisUnit,
    /// The name of the values, with their unit.
    pub(crate) title: &'r str,
}

impl Distributions<'_> {
    /// Draws a histogram for each kind into a part of a page, in the colour of its line.
    pub(crate) fn draw(&self, figure: &mut Figure, area: Rect) {
        let pitch = (area.w + Page::LEFT) / self.panels.len().max(1) as Unit;
        for (nth, ((name, values), color)) in (0..).zip(self.panels.iter().zip(MARKERS)) {
            let plot = Rect { x: area.x + nth * pitch, w: pitch - Page::LEFT, ..area };
            let bars = &values.bars;
            let total: u64 = bars.bars.iter().map(|(_, _, n)| *n).sum();
            let percent = |n: u64| 100.0 * n as f64 / total.max(1) as f64;
            let most = bars.bars.iter().map(|(_, _, n)| percent(*n)).fold(0.0, f64::max);
            let shares = Axis::linear(0.0, most, AxisUnit::Percent, "share of the values");
            let axis = self.axis(values);
            shares.draw_left(figure, plot);
            axis.draw_below(figure, plot);
            let rect = |(from, to, n): &(f64, f64, u64)| {
                let (x, right) = (axis.at(*from, plot.x, plot.w), axis.at(*to, plot.x, plot.w));
                let y = shares.at(percent(*n), plot.y + plot.h, -plot.h);
                // A gap between bars shows that each is a range of values.
                (*n > 0).then(|| Rect {
                    x,
                    y,
                    w: (right - x - PT / 4).max(PT / 4),
                    h: (plot.y + plot.h - y).max(PT / 2),
                })
            };
            figure.push(Item::Rects { fill: Paint::Solid(color), rects: bars.bars.iter().filter_map(rect).collect() });
            let at = Point { x: plot.x, y: plot.y - 4 * PT };
            let title = text::fit(&text::printable(&format!("{name}: {} values", values.count)), LETTER, plot.w);
            figure.text(at, LETTER, Anchor::Start, INK, &title);
        }
    }

    /// Returns the axis of the values of a kind.
    fn axis(&self, values: &Summary) -> Axis {
        let bars = &values.bars;
        let (first, last) = (bars.bars.first(), bars.bars.last());
        let (low, high) = (first.map_or(0.0, |bar| bar.0), last.map_or(1.0, |bar| bar.1));
        match first {
            // No logarithm has a place for zero: its bar stands left of the others.
            Some((from, to, _)) if bars.log && *from == 0.0 => {
                Axis::log(to / 2.0, high, self.measure, &format!("{}; the first bar begins at 0", self.title))
            }
            _ if bars.log => Axis::log(low, high, self.measure, self.title),
            _ => Axis::linear(low, high, self.measure, self.title),
        }
    }
}
