//! The page: title, facts about the source, plot, axis, legend, and the command at its foot.

use crate::palette::{FAINT, INK, RULE};
use crate::scale::{LETTER as SMALL, TimeScale};
use crate::sheet::Sheet;
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Turn, Unit, text};
use sched::Ts;

/// The left and right margin.
const MARGIN: Unit = 24 * PT;
/// Room for the names of lanes, left of the plot.
const NAMES: Unit = 34 * PT;
/// The least width of a plot.
const NARROWEST: Unit = 120 * PT;
/// The size of the title's letters, and the distance of its lines.
const TITLE: Unit = 12 * PT;
const TITLE_LINE: Unit = 15 * PT;
/// The size of the letters of the command at the foot, and the distance of its lines.
const COMMAND: Unit = 6 * PT;
const COMMAND_LINE: Unit = 8 * PT;
/// The least height of a plot, unless its figure needs more or is lower by itself.
const LOWEST: Unit = 40 * PT;

/// The look of an entry of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// A filled area.
    Area(Paint),
    /// A marker of this form.
    Marker(Shape, Color),
    /// A line along the lane.
    Line(Color),
    /// A line with dashes of this length.
    Dashed(Color, Unit),
    /// A line from lane to lane with a head, with dashes of this length or, for 0, without any.
    Arrow(Color, Unit),
    /// Areas of several colours side by side.
    Several([Color; 4]),
    /// A blank area with an outline.
    Blank,
    /// No look: the entry belongs to the one before it, or is a head.
    None,
}

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendEntry {
    /// The look of the entry.
    pub swatch: Swatch,
    /// The name of the entry.
    pub label: String,
}

/// A page in the making. The parts above and below the plot are known first, the plot gets the rest.
///
/// All lengths are those of the layout; [`Page::finish`] scales the figure to the page that is asked for.
#[derive(Clone, Debug)]
pub struct Page {
    /// The figure of the page, as far as it is drawn.
    pub figure: Figure,
    /// The upper edge of the plot, in the layout's length.
    pub top: Unit,
    /// The height of the plot, in the layout's length.
    pub height: Unit,
    sheet: Sheet,
}

/// The lines of a figure about its source.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// The name of the trace.
    pub trace: String,
    /// Facts, in one line: kernel, CPUs, clock.
    pub facts: String,
    /// The warnings: losses, CPUs without events.
    pub warnings: Vec<String>,
    /// The command that makes the figure.
    pub command: String,
    /// The page that is asked for.
    pub sheet: Sheet,
}

impl Heading {
    /// Returns the heading for this page.
    #[must_use]
    pub fn on(self, sheet: &Sheet) -> Heading {
        Heading { sheet: sheet.clone(), ..self }
    }

    /// The heading with a warning in front that there are no figures, if `why` is given: the reason for that.
    #[must_use]
    pub fn without_figures(mut self, why: Option<&str>) -> Heading {
        self.warnings.splice(0..0, why.map(|why| format!("No figures: {why}.")));
        self
    }

    /// The surroundings of a plot with this title; under it the facts and one line more.
    pub fn texts(&self, title: String, note: String) -> Texts {
        Texts {
            title,
            notes: vec![self.facts.clone(), note],
            warnings: self.warnings.clone(),
            command: self.command.clone(),
            sheet: self.sheet.clone(),
        }
    }
}

/// A function that draws lanes into a part of a page: on this scale, from this top, in this height.
pub type DrawLanes<'d> = dyn Fn(&mut Figure, &TimeScale, Unit, Unit) + 'd;

/// The surroundings of the plot.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// The title, in large letters.
    pub title: String,
    /// The lines under the title.
    pub notes: Vec<String>,
    /// The warnings under the title.
    pub warnings: Vec<String>,
    /// The command at the foot, which makes the figure again.
    pub command: String,
    /// The page that is asked for.
    pub sheet: Sheet,
}

impl Page {
    /// The left edge of the plot.
    pub const LEFT: Unit = MARGIN + NAMES;

    /// Returns a page with a plot. `width` is that of the page and `height` that of the plot, where no other is asked
    /// for.
    pub fn new(width: Unit, height: Unit, texts: &Texts, legend: &[LegendEntry]) -> Page {
        Page::with_least(width, height, (height / 4).max(LOWEST), texts, legend)
    }

    /// Returns a page with a plot that is at least `least` high; `width` and `height` as in [`Page::new`].
    pub fn with_least(width: Unit, height: Unit, least: Unit, texts: &Texts, legend: &[LegendEntry]) -> Page {
        let sheet = texts.sheet.clone();
        let width = sheet.laid_out(sheet.width.unwrap_or(width)).max(Page::LEFT + NARROWEST + MARGIN);
        let most = width - 2 * MARGIN;
        let wrapped = |text: &str, size: Unit| text::wrap(&text::printable(text), size, most);
        let title = sheet.title.as_ref().unwrap_or(&texts.title);
        let (titles, command) = (wrapped(title, TITLE), wrapped(&texts.command, COMMAND));
        let warning = Color::rgb(0xa0, 0x20, 0x10);
        let lines = texts.notes.iter().map(|t| (t, FAINT)).chain(texts.warnings.iter().map(|t| (t, warning)));
        let lines: Vec<(String, Color)> =
            lines.flat_map(|(text, color)| wrapped(text, SMALL).into_iter().map(move |line| (line, color))).collect();
        let rows = LegendRows::of(legend, most);
        let more_titles = (titles.len() as Unit - 1) * TITLE_LINE;
        let head = 26 * PT + more_titles + lines.len() as Unit * 10 * PT + 10 * PT;
        let foot = 32 * PT + rows.height() + 20 * PT + (command.len() as Unit - 1) * COMMAND_LINE;
        let least = least.min(height);
        let plot = match sheet.height {
            Some(asked) => sheet.laid_out(asked) - head - foot,
            None => sheet.laid_out(height),
        };
        let plot = plot.max(least);
        let height = head + plot + foot;
        let mut figure = Figure::new(width, height, title);
        let mut y = 26 * PT;
        for (nth, line) in (0..).zip(&titles) {
            let at = Point { x: MARGIN, y: y + nth * TITLE_LINE };
            figure.text(at, TITLE, Anchor::Start, INK, line);
        }
        y += more_titles;
        for (line, color) in lines {
            y += 10 * PT;
            figure.text(Point { x: MARGIN, y }, SMALL, Anchor::Start, color, &line);
        }
        rows.draw(&mut figure, head + plot + 32 * PT);
        for (nth, line) in (0..).zip(command.iter().rev()) {
            let at = Point { x: MARGIN, y: height - 9 * PT - nth * COMMAND_LINE };
            figure.text(at, COMMAND, Anchor::Start, FAINT, line);
        }
        Page { figure, top: head, height: plot, sheet }
    }

    /// Returns the first of these pages whose plot has most of the height that is asked for, else the last one. A figure
    /// offers pages with ever shorter legends or fewer parts. Without a height asked for, the first one is right.
    ///
    /// # Panics
    ///
    /// If there is no page.
    pub fn roomy<T>(pages: impl IntoIterator<Item = (Page, T)>) -> (Page, T) {
        let mut last = None;
        for (page, rest) in pages {
            let is_roomy = page.sheet.height.is_none_or(|asked| {
                let height = page.figure.height;
                height <= page.sheet.laid_out(asked) && page.height >= height * 45 / 100
            });
            last = Some((page, rest));
            if is_roomy {
                break;
            }
        }
        last.expect("a page")
    }

    /// The right edge of the plot.
    pub fn right(&self) -> Unit {
        self.figure.width - MARGIN
    }

    /// The width of the plot.
    pub fn width(&self) -> Unit {
        self.right() - Page::LEFT
    }

    /// Returns the finished figure.
    pub fn finish(self) -> Figure {
        self.sheet.finish(self.figure)
    }

    /// The scale of times from `from` to `to` over the whole width of the plot.
    pub fn scale(&self, from: Ts, to: Ts, zero: Ts) -> TimeScale {
        TimeScale { from, to, zero, x: Page::LEFT, width: self.width() }
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
    let ticks = scale.fitting_ticks();
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

/// The distance of the rows of a legend, and of the lines of an entry.
const ROW: Unit = 11 * PT;
const ROW_LINE: Unit = 9 * PT;

/// The entries of a legend in rows, in columns that are as wide as the widest entry. An entry that is wider than the
/// page has several lines.
struct LegendRows {
    rows: Vec<Vec<(Swatch, Vec<String>)>>,
    column: Unit,
}

impl LegendRows {
    fn of(legend: &[LegendEntry], most: Unit) -> LegendRows {
        let column = legend.iter().map(entry_width).max().unwrap_or(most).clamp(1, most);
        let per_row = (most / column).max(1) as usize;
        let lines = |label: &str| text::wrap(&text::printable(label), SMALL, column - SWATCH - 6 * PT);
        let entries: Vec<_> = legend.iter().map(|entry| (entry.swatch, lines(&entry.label))).collect();
        LegendRows { rows: entries.chunks(per_row).map(<[_]>::to_vec).collect(), column }
    }

    fn row_height(row: &[(Swatch, Vec<String>)]) -> Unit {
        let lines = row.iter().map(|(_, lines)| lines.len()).max().unwrap_or(1).max(1);
        ROW + (lines as Unit - 1) * ROW_LINE
    }

    fn height(&self) -> Unit {
        self.rows.iter().map(|row| LegendRows::row_height(row)).sum()
    }

    fn draw(&self, figure: &mut Figure, top: Unit) {
        let mut y = top;
        for row in &self.rows {
            for (nth, (swatch, lines)) in (0..).zip(row) {
                let x = MARGIN + nth * self.column;
                draw_swatch(figure, *swatch, Rect { x, y: y - 6 * PT, w: SWATCH, h: 7 * PT });
                for (nth, line) in (0..).zip(lines) {
                    let at = Point { x: x + SWATCH + 3 * PT, y: y + nth * ROW_LINE };
                    figure.text(at, SMALL, Anchor::Start, INK, line);
                }
            }
            y += LegendRows::row_height(row);
        }
    }
}

fn draw_swatch(figure: &mut Figure, swatch: Swatch, rect: Rect) {
    match swatch {
        Swatch::Area(fill) => figure.push(Item::Rects { fill, rects: vec![rect] }),
        Swatch::Several(colors) => {
            let w = rect.w / colors.len() as Unit;
            for (nth, color) in (0..).zip(colors) {
                let rects = vec![Rect { x: rect.x + nth * w, w, ..rect }];
                figure.push(Item::Rects { fill: Paint::Solid(color), rects });
            }
        }
        Swatch::Marker(shape, fill) => {
            let at = vec![Point { x: rect.x + SWATCH / 2, y: rect.y + 7 * PT / 2 }];
            figure.push(Item::Markers { shape, fill, size: 6 * PT, at });
        }
        Swatch::Line(color) => {
            let h = rect.h / 4;
            let line = Rect { y: rect.y + (rect.h - h) / 2, h, ..rect };
            figure.push(Item::Rects { fill: Paint::Solid(color), rects: vec![line] });
        }
        Swatch::Dashed(stroke, dash) => {
            let y = rect.y + rect.h / 2;
            let lines = vec![Line { from: Point { x: rect.x, y }, to: Point { x: rect.x + rect.w, y } }];
            figure.push(Item::Lines { stroke, width: 80, dash, lines });
        }
        Swatch::Arrow(color, dash) => {
            let (x, bottom) = (rect.x + SWATCH / 2, rect.y + rect.h);
            let lines = vec![Line { from: Point { x, y: rect.y - PT }, to: Point { x, y: bottom } }];
            figure.push(Item::Lines { stroke: color, width: 80, dash, lines });
            let at = vec![Point { x, y: bottom - PT }];
            figure.push(Item::Markers { shape: Shape::Triangle, fill: color, size: 4 * PT, at });
        }
        Swatch::None => {}
        Swatch::Blank => {
            let (l, r, t, b) = (rect.x, rect.x + rect.w, rect.y, rect.y + rect.h);
            let corners = [(l, t), (r, t), (r, b), (l, b), (l, t)].map(|(x, y)| Point { x, y });
            let lines = corners.windows(2).map(|w| Line { from: w[0], to: w[1] }).collect();
            figure.push(Item::Lines { stroke: RULE, width: 50, dash: 0, lines });
        }
    }
}
