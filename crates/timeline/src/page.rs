//! The page: title, what it says of its source, plot, axis, legend, and the command at its foot.

use crate::palette::{FAINT, INK, RULE};
use crate::scale::TimeScale;
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Turn, Unit, text};
use sched::Ts;

/// The left and right margin.
const MARGIN: Unit = 24 * PT;
/// Room for the names of lanes, left of the plot.
const NAMES: Unit = 34 * PT;
const SMALL: Unit = 7 * PT;

/// How a legend entry looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// An area.
    Area(Paint),
    /// A marker.
    Marker(Shape, Color),
    /// A line along the lane.
    Line(Color),
    /// Nothing: a blank area with an outline.
    Blank,
}

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendEntry {
    /// Its look.
    pub swatch: Swatch,
    /// Its name.
    pub label: String,
}

/// A page being made. The parts above and below the plot are known first, the plot gets what is
/// left.
#[derive(Clone, Debug)]
pub struct Page {
    /// The figure.
    pub figure: Figure,
    /// The plot's upper edge.
    pub top: Unit,
    /// The plot's height.
    pub height: Unit,
}

/// What a figure says of its source.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// The name of the trace.
    pub trace: String,
    /// Facts, in one line: kernel, CPUs, clock.
    pub facts: String,
    /// What is not to be overlooked: losses, CPUs without events.
    pub warnings: Vec<String>,
    /// The command that makes the figure.
    pub command: String,
}

impl Heading {
    /// The same with a warning in front that there are no figures, and why, if that is so.
    pub fn without_figures(mut self, why: Option<&str>) -> Heading {
        self.warnings.splice(0..0, why.map(|why| format!("No figures: {why}.")));
        self
    }

    /// What surrounds a plot with this title; under it the facts and one line more.
    pub fn texts(&self, title: String, note: String) -> Texts {
        Texts {
            title,
            notes: vec![self.facts.clone(), note],
            warnings: self.warnings.clone(),
            command: self.command.clone(),
        }
    }
}

/// Draws lanes into a part of a page: on this scale, from this top, in this height.
pub type DrawLanes<'d> = dyn Fn(&mut Figure, &TimeScale, Unit, Unit) + 'd;

/// What surrounds the plot.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// One line, large.
    pub title: String,
    /// Lines under it.
    pub notes: Vec<String>,
    /// Lines under it that warn.
    pub warnings: Vec<String>,
    /// At the foot: the command that makes the figure again.
    pub command: String,
}

impl Page {
    /// The left edge of the plot.
    pub const LEFT: Unit = MARGIN + NAMES;

    /// The width of the plot on a page of this width.
    pub fn plot_width(page: Unit) -> Unit {
        page - Page::LEFT - MARGIN
    }

    /// A page of this width whose plot has this height.
    pub fn new(width: Unit, plot_height: Unit, texts: &Texts, legend: &[LegendEntry]) -> Page {
        let most = width - 2 * MARGIN;
        let legend_rows = rows(legend, most);
        let head = 26 * PT + (texts.notes.len() + texts.warnings.len()) as Unit * 10 * PT + 10 * PT;
        let foot = 32 * PT + legend_rows.len() as Unit * 11 * PT + 20 * PT;
        let height = head + plot_height + foot;
        let mut figure = Figure::new(width, height, &texts.title);
        let mut y = 26 * PT;
        figure.text(Point { x: MARGIN, y }, 12 * PT, Anchor::Start, INK, &text::fit(&texts.title, 12 * PT, most));
        let warning = Color::rgb(0xa0, 0x20, 0x10);
        let lines = texts.notes.iter().map(|t| (t, FAINT)).chain(texts.warnings.iter().map(|t| (t, warning)));
        for (line, color) in lines {
            y += 10 * PT;
            figure.text(Point { x: MARGIN, y }, SMALL, Anchor::Start, color, &text::fit(line, SMALL, most));
        }
        let mut y = head + plot_height + 32 * PT;
        for row in &legend_rows {
            draw_row(&mut figure, row, column_width(legend, most), y);
            y += 11 * PT;
        }
        let command = text::fit(&texts.command, 6 * PT, most);
        figure.text(Point { x: MARGIN, y: height - 9 * PT }, 6 * PT, Anchor::Start, FAINT, &command);
        Page { figure, top: head, height: plot_height }
    }

    /// The scale of times from `from` to `to` over the whole width of the plot.
    pub fn scale(&self, from: Ts, to: Ts, zero: Ts) -> TimeScale {
        TimeScale { from, to, zero, x: Page::LEFT, width: Page::plot_width(self.figure.width) }
    }

    /// Draws the time axis under the plot, and faint rules through it.
    pub fn time_axis(&mut self, scale: &TimeScale) {
        time_axis(&mut self.figure, scale, self.top, self.top + self.height);
    }

    /// Names what the lanes are, reading from below to above.
    pub fn lanes_title(&mut self, name: &str) {
        let at = Point { x: MARGIN - 6 * PT, y: self.top + self.height / 2 };
        let text = text::printable(name);
        self.figure.push(Item::Text { at, size: SMALL, anchor: Anchor::Middle, turn: Turn::Left, fill: INK, text });
    }
}

/// Draws the time axis of a plot from `top` to `bottom` under it, and faint rules through it.
pub fn time_axis(figure: &mut Figure, scale: &TimeScale, top: Unit, bottom: Unit) {
    let mut rules = Vec::new();
    let mut marks =
        vec![Line { from: Point { x: scale.x, y: bottom }, to: Point { x: scale.x + scale.width, y: bottom } }];
    let ticks = scale.ticks(10);
    for tick in &ticks {
        rules.push(Line { from: Point { x: tick.at, y: top }, to: Point { x: tick.at, y: bottom } });
        marks.push(Line { from: Point { x: tick.at, y: bottom }, to: Point { x: tick.at, y: bottom + 3 * PT } });
        let at = Point { x: tick.at, y: bottom + 11 * PT };
        figure.text(at, SMALL, Anchor::Middle, INK, &tick.label);
    }
    figure.push(Item::Lines { stroke: RULE, width: 30, dash: 0, lines: rules });
    figure.push(Item::Lines { stroke: INK, width: 50, dash: 0, lines: marks });
    let at = Point { x: scale.x + scale.width / 2, y: bottom + 20 * PT };
    figure.text(at, SMALL, Anchor::Middle, INK, &scale.title());
}

const SWATCH: Unit = 8 * PT;

fn entry_width(entry: &LegendEntry) -> Unit {
    SWATCH + 3 * PT + text::width(&text::printable(&entry.label), SMALL) + 9 * PT
}

/// Breaks the entries into rows of columns that are as wide as the widest entry.
fn rows(legend: &[LegendEntry], most: Unit) -> Vec<Vec<&LegendEntry>> {
    let per_row = (most / column_width(legend, most)).max(1) as usize;
    let entries: Vec<&LegendEntry> = legend.iter().collect();
    entries.chunks(per_row).map(<[_]>::to_vec).collect()
}

fn column_width(legend: &[LegendEntry], most: Unit) -> Unit {
    legend.iter().map(entry_width).max().unwrap_or(most).clamp(1, most)
}

fn draw_row(figure: &mut Figure, row: &[&LegendEntry], column: Unit, y: Unit) {
    let mut x = MARGIN;
    for entry in row {
        let rect = Rect { x, y: y - 6 * PT, w: SWATCH, h: 7 * PT };
        match entry.swatch {
            Swatch::Area(fill) => figure.push(Item::Rects { fill, rects: vec![rect] }),
            Swatch::Marker(shape, fill) => {
                let at = vec![Point { x: x + SWATCH / 2, y: y - 5 * PT / 2 }];
                figure.push(Item::Markers { shape, fill, size: 6 * PT, at });
            }
            Swatch::Line(color) => {
                let h = rect.h / 4;
                let line = Rect { y: rect.y + (rect.h - h) / 2, h, ..rect };
                figure.push(Item::Rects { fill: Paint::Solid(color), rects: vec![line] });
            }
            Swatch::Blank => {
                let (l, r, t, b) = (rect.x, rect.x + rect.w, rect.y, rect.y + rect.h);
                let corners = [(l, t), (r, t), (r, b), (l, b), (l, t)].map(|(x, y)| Point { x, y });
                let lines = corners.windows(2).map(|w| Line { from: w[0], to: w[1] }).collect();
                figure.push(Item::Lines { stroke: RULE, width: 50, dash: 0, lines });
            }
        }
        let at = Point { x: x + SWATCH + 3 * PT, y };
        let label = text::fit(&text::printable(&entry.label), SMALL, column - SWATCH - 6 * PT);
        figure.text(at, SMALL, Anchor::Start, INK, &label);
        x += column;
    }
}
