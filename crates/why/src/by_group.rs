//! The origins of the time in violation of groups of runs: the medians of the runs, as a table and as a figure.

use crate::figure::color_of;
use crate::report::{Rows, WhyReport};
use draw::{Anchor, Figure, Item, PT, Paint, Point, Rect, Unit, text};
use question::Spread;
use sched::Cause;
use std::collections::BTreeMap;
use std::fmt::Write;
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{FAINT, INK};
use timeline::text::COLUMNS;
use timeline::{Axis, AxisUnit};

/// The time of one origin in each group.
struct OriginTimes {
    words: String,
    began: &'static str,
    cause: Option<Cause>,
    /// The median of each group's runs, in nanoseconds, and the median share in all of a run, in percent; nothing of a group without runs.
    medians: Vec<Option<(f64, f64)>>,
}

/// The origins of the waiting or of the idling in violation, the one with the most time first.
struct OriginsOf {
    title: &'static str,
    unit: &'static str,
    origins: Vec<OriginTimes>,
}

/// The origins of groups of runs.
pub(crate) struct GroupOrigins<'g> {
    names: Vec<&'g str>,
    /// The origins of the waiting, and the origins of the idling.
    parts: [OriginsOf; 2],
}

/// The groups in one table of a text.
const TABLE: usize = 3;

impl<'g> GroupOrigins<'g> {
    /// The origins of groups, each with its name and the reports on its runs.
    pub(crate) fn of(groups: &[(&'g str, Vec<&WhyReport>)]) -> GroupOrigins<'g> {
        let part = |title, unit, rows: fn(&WhyReport) -> Option<&Rows>| {
            let runs: Vec<Vec<&Rows>> =
                groups.iter().map(|(_, runs)| runs.iter().filter_map(|report| rows(report)).collect()).collect();
            OriginsOf { title, unit, origins: origins(&runs) }
        };
        let waiting = part("waiting in violation, task\u{b7}s", "waiting", |report| report.waiting.as_ref());
        let idling = part("idling in violation, CPU\u{b7}s", "idling", |report| report.idling.as_ref());
        GroupOrigins { names: groups.iter().map(|(name, _)| *name).collect(), parts: [waiting, idling] }
    }

    /// The tables: a row for each origin, a column for each group.
    pub(crate) fn text(&self, markdown: bool) -> String {
        let mut out = String::new();
        for part in &self.parts {
            for (block, names) in self.names.chunks(TABLE).enumerate() {
                part.table(&mut out, names, block * TABLE, markdown);
            }
        }
        out
    }
}

/// The origins of the runs of each group.
fn origins(runs: &[Vec<&Rows>]) -> Vec<OriginTimes> {
    let mut found: BTreeMap<&str, (&'static str, Option<Cause>)> = BTreeMap::new();
    for row in runs.iter().flatten().flat_map(|rows| &rows.rows) {
        found.entry(&row.origin).or_insert((row.began, row.began_cause));
    }
    let median = |runs: &Vec<&Rows>, words: &str| {
        if runs.is_empty() {
            return None;
        }
        let time = |rows: &&Rows| {
            let of_origin = rows.rows.iter().filter(|row| row.origin == words);
            // Not a sum: that of nothing is minus zero.
            of_origin.map(|row| row.total_ns.0 as f64).fold(0.0, |sum, ns| sum + ns)
        };
        let times: Vec<f64> = runs.iter().map(time).collect();
        let shares = times.iter().zip(runs).map(|(time, rows)| 100.0 * time / (rows.total_ns.0 as f64).max(1.0));
        Some((Spread::of(&times).median, Spread::of(&shares.collect::<Vec<_>>()).median))
    };
    let origin = |(words, (began, cause)): (&str, (&'static str, Option<Cause>))| OriginTimes {
        medians: runs.iter().map(|runs| median(runs, words)).collect(),
        words: words.to_owned(),
        began,
        cause,
    };
    let mut origins: Vec<OriginTimes> = found.into_iter().map(origin).collect();
    origins.retain(|origin| origin.longest() > 0.0);
    origins.sort_by(|a, b| b.longest().total_cmp(&a.longest()));
    origins
}

impl OriginTimes {
    /// The longest time of a group.
    fn longest(&self) -> f64 {
        self.medians.iter().flatten().map(|(ns, _)| *ns).fold(0.0, f64::max)
    }
}

impl OriginsOf {
    /// Writes the table of the groups with these names, of which the first has the place `first`.
    fn table(&self, out: &mut String, names: &[&str], first: usize, markdown: bool) {
        if self.origins.is_empty() {
            return;
        }
        let number = |(ns, percent): (f64, f64)| format!("{:.3} ({percent:.0}%)", ns / 1e9);
        let cell = |median: &Option<(f64, f64)>| median.map_or_else(|| "-".to_owned(), number);
        let width = COLUMNS - 15 * names.len();
        let cut = |name: &str, columns: usize| name.chars().take(columns).collect::<String>();
        // Writing to a string cannot fail.
        let _ = match markdown {
            true => writeln!(out, "\n| {} | {} |\n|---|{}", self.title, names.join(" | "), "---:|".repeat(names.len())),
            false => {
                let heads: String = names.iter().map(|name| format!("{:>15}", cut(name, 14))).collect();
                writeln!(out, "\n{:<width$}{heads}", cut(self.title, width))
            }
        };
        for origin in &self.origins {
            let cells = origin.medians.iter().skip(first).take(names.len()).map(cell);
            let _ = match markdown {
                true => writeln!(out, "| {} | {} |", origin.words, cells.collect::<Vec<_>>().join(" | ")),
                false => {
                    let cells: String = cells.map(|cell| format!("{cell:>15}")).collect();
                    writeln!(out, "{:<width$}{cells}", cut(&origin.words, width - 1))
                }
            };
        }
    }
}

const WIDTH: Unit = 842 * PT;
const ROW: Unit = 13 * PT;
/// The room for the title of a part with the names of its groups, and for the axis below it.
const TITLE: Unit = 28 * PT;
const AXIS: Unit = 32 * PT;
/// The room for the names of the origins, and for the numbers behind the bars.
const NAMES: Unit = 190 * PT;
const NUMBERS: Unit = 80 * PT;
/// The maximum number of origins of a part.
const BARS: usize = 12;
/// The maximum number of groups beside each other.
pub(crate) const BESIDE: usize = 4;

/// Draws the origins of groups beside each other, with one scale and one colour for each origin.
pub(crate) fn figure(groups: &GroupOrigins<'_>, heading: &Heading) -> Figure {
    let title = format!("Why tasks waited while CPUs idled: {}", groups.names.join(", "));
    let note = "Each bar: the median of the runs of the group; all bars of a part have one scale.".to_owned();
    let texts = heading.texts(title, note);
    let shown = |part: &OriginsOf| part.origins.len().clamp(1, BARS);
    let height: Unit = groups.parts.iter().map(|part| TITLE + shown(part) as Unit * ROW + AXIS).sum();
    let legend: Vec<LegendEntry> = groups.parts.iter().flat_map(OriginsOf::legend).collect();
    let mut page = Page::new(WIDTH, height, &texts, &legend);
    let (left, right) = (Page::LEFT, page.right());
    let width = (right - left - NAMES) / groups.names.len().max(1) as Unit;
    let mut top = page.top;
    for part in &groups.parts {
        page.figure.text(Point { x: left, y: top + 9 * PT }, 8 * PT, Anchor::Start, INK, part.title);
        let plot = Rect { x: left + NAMES, y: top + TITLE, w: width - NUMBERS, h: shown(part) as Unit * ROW };
        for (nth, name) in groups.names.iter().enumerate() {
            part.draw(&mut page.figure, Rect { x: plot.x + nth as Unit * width, ..plot }, (nth, name));
        }
        for (row, origin) in (0..).zip(part.origins.iter().take(BARS)) {
            let name = text::fit(&text::printable(&origin.words), 7 * PT, NAMES - 6 * PT);
            let base = plot.y + row * ROW + 9 * PT;
            page.figure.text(Point { x: plot.x - 4 * PT, y: base }, 7 * PT, Anchor::End, INK, &name);
        }
        top = plot.y + plot.h + AXIS;
    }
    page.finish()
}

impl OriginsOf {
    fn legend(&self) -> impl Iterator<Item = LegendEntry> {
        self.origins.iter().take(BARS).map(|origin| LegendEntry {
            swatch: Swatch::Area(Paint::Solid(color_of(origin.began, origin.cause))),
            label: format!("{}: {}", self.unit, origin.words),
        })
    }

    /// Draws the bars of one group, by its place and its name.
    fn draw(&self, figure: &mut Figure, plot: Rect, (group, name): (usize, &str)) {
        let longest = self.origins.first().map_or(0.0, OriginTimes::longest);
        let axis = Axis::linear(0.0, longest, AxisUnit::Time, &format!("time of {}", self.unit));
        axis.draw_below(figure, plot);
        let name = text::fit(&text::printable(name), 8 * PT, plot.w + NUMBERS - 6 * PT);
        figure.text(Point { x: plot.x, y: plot.y - 5 * PT }, 8 * PT, Anchor::Start, INK, &name);
        for (row, origin) in (0..).zip(self.origins.iter().take(BARS)) {
            let Some((ns, percent)) = origin.medians.get(group).copied().flatten() else { continue };
            let y = plot.y + row * ROW;
            let w = axis.at(ns, 0, plot.w).max(if ns > 0.0 { PT / 4 } else { 0 });
            let rects = vec![Rect { x: plot.x, y: y + PT, w, h: ROW - 2 * PT }];
            figure.push(Item::Rects { fill: Paint::Solid(color_of(origin.began, origin.cause)), rects });
            let number = format!("{}, {percent:.0} %", sched::Dur(ns as u64).human());
            figure.text(Point { x: plot.x + w + 4 * PT, y: y + 9 * PT }, 7 * PT, Anchor::Start, FAINT, &number);
        }
    }
}
