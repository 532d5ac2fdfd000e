//! The figure: a heat map of victims and culprits.

use crate::report::{NeighboursReport, PartyReport};
use draw::{Anchor, Figure, Item, Line, PT, Paint, Point, Rect, Turn, Unit, text as letters};
use sched::Dur;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{BANDS, INK, RULE, ink_on};
use timeline::text::{end_of, short};

const WIDTH: Unit = 600 * PT;
/// The height of a row, and the least width of a column.
const ROW: Unit = 18 * PT;
/// The room for the names of victims, left of the map, and the greatest one for those of culprits above it.
const NAMES: Unit = 110 * PT;
/// The room around the names of culprits.
const AROUND: Unit = 8 * PT;
const LETTER: Unit = 7 * PT;
/// Maximum number of letters of a path: more are wider than any room, however narrow.
const LETTERS: usize = 100;
/// Maximum number of rows and of columns of the map.
const MOST: usize = 24;

/// Draws the pairs of the groups that waited longest and of those that caused most waiting, at most `rows` of each.
pub fn figure(report: &NeighboursReport, rows: usize, heading: &Heading) -> Figure {
    let most = rows.clamp(1, MOST);
    let sums: BTreeMap<(&str, &str), u64> =
        report.pairs.iter().map(|pair| ((pair.victim.as_str(), pair.culprit.as_str()), pair.wait_ns.0)).collect();
    let victims = greatest(&report.groups, most, |group| group.wait_ns.0);
    let culprits = greatest(&report.groups, most, |group| group.caused_ns.0.saturating_add(group.behind_own_ns.0));
    let shown = sums.iter().filter(|((v, c), _)| victims.contains(v) && culprits.contains(c)).map(|(_, ns)| *ns);
    let shown = shown.fold(0, u64::saturating_add);
    let wait = report.wait_ns.unwrap_or_default();
    let total = wait.0.max(1);
    let note = format!(
        "By {}: tasks of a row waited while a column occupied their CPU. The cells are {:.1} % of {:.6} task·s of waiting.",
        report.by.plural(),
        100.0 * shown as f64 / total as f64,
        wait.seconds()
    );
    let texts = heading.texts(format!("{}: victims and culprits", heading.trace), note);
    let widths = culprits.iter().map(|name| letters::width(&fitting(name, NAMES - AROUND), LETTER));
    let above = widths.max().unwrap_or(0) + AROUND;
    let height = above + ROW * victims.len().max(1) as Unit;
    let mut page = Page::new(WIDTH, height, &texts, &legend());
    let greatest = sums.values().copied().max().unwrap_or(0).max(1);
    let plot = Rect {
        x: Page::LEFT + NAMES,
        y: page.top + above,
        w: (page.width() - NAMES).max(PT),
        h: (page.height - above).max(PT),
    };
    let column = (plot.w / culprits.len().max(1) as Unit).min(60 * PT);
    let row = (plot.h / victims.len().max(1) as Unit).max(PT);
    names(&mut page.figure, plot, (row, column), (&victims, &culprits));
    for (y, victim) in (0..).zip(&victims) {
        for (x, culprit) in (0..).zip(&culprits) {
            let Some(ns) = sums.get(&(*victim, *culprit)).filter(|ns| **ns > 0) else { continue };
            let rect = Rect { x: plot.x + x * column, y: plot.y + y * row, w: column - PT / 2, h: row - PT / 2 };
            cell(&mut page.figure, rect, *ns, greatest);
        }
    }
    page.finish()
}

/// The names of the groups with the greatest values above zero, in that order.
fn greatest(groups: &[PartyReport], most: usize, of: impl Fn(&PartyReport) -> u64) -> Vec<&str> {
    let mut groups: Vec<&PartyReport> = groups.iter().filter(|group| of(group) > 0).collect();
    groups.sort_by_key(|group| Reverse(of(group)));
    groups.truncate(most);
    groups.into_iter().map(|group| group.name.as_str()).collect()
}

/// The band of a value: each is a factor of about four below the next.
fn band(ns: u64, greatest: u64) -> usize {
    let below = (0..BANDS.len() - 1).find(|step| ns >= greatest >> (2 * (step + 1)));
    BANDS.len() - 1 - below.unwrap_or(BANDS.len() - 1)
}

fn legend() -> Vec<LegendEntry> {
    let entry = |(nth, color): (usize, &draw::Color)| {
        let label = match nth {
            0 => "less".to_owned(),
            nth if nth == BANDS.len() - 1 => "1/4 of the greatest or more".to_owned(),
            nth => format!("1/{} of the greatest or more", 4u32.pow((BANDS.len() - nth) as u32)),
        };
        LegendEntry { swatch: Swatch::Area(Paint::Solid(*color)), label }
    };
    BANDS.iter().enumerate().rev().map(entry).collect()
}

/// A name that is at most `most` wide. The path of a cgroup keeps its end, which differs most.
fn fitting(name: &str, most: Unit) -> String {
    let name = letters::printable(name);
    if !name.starts_with('/') {
        return letters::fit(&name, LETTER, most);
    }
    let mut shorter = (2..=name.chars().count().min(LETTERS)).rev().map(|letters| end_of(&name, letters));
    shorter.find(|text| letters::width(text, LETTER) <= most).unwrap_or(name)
}

/// The names of the rows and the columns, and rules between them.
fn names(figure: &mut Figure, plot: Rect, (row, column): (Unit, Unit), (victims, culprits): (&[&str], &[&str])) {
    let (right, bottom) = (plot.x + column * culprits.len() as Unit, plot.y + row * victims.len() as Unit);
    let rules = (0..=victims.len() as Unit).map(|nth| {
        let y = plot.y + nth * row;
        Line { from: Point { x: plot.x, y }, to: Point { x: right, y } }
    });
    let columns = (0..=culprits.len() as Unit).map(|nth| {
        let x = plot.x + nth * column;
        Line { from: Point { x, y: plot.y }, to: Point { x, y: bottom } }
    });
    figure.push(Item::Lines { stroke: RULE, width: 30, dash: 0, lines: rules.chain(columns).collect() });
    for (nth, name) in (0..).zip(victims) {
        let at = Point { x: plot.x - 4 * PT, y: plot.y + nth * row + row / 2 + LETTER / 3 };
        figure.text(at, LETTER, Anchor::End, INK, &fitting(name, NAMES + 20 * PT));
    }
    for (nth, name) in (0..).zip(culprits) {
        let at = Point { x: plot.x + nth * column + column / 2 + LETTER / 3, y: plot.y - 4 * PT };
        let text = fitting(name, NAMES - AROUND);
        figure.push(Item::Text { at, size: LETTER, anchor: Anchor::Start, turn: Turn::Left, fill: INK, text });
    }
}

/// A cell of the map, with its time where that fits.
fn cell(figure: &mut Figure, rect: Rect, ns: u64, greatest: u64) {
    let color = BANDS[band(ns, greatest)];
    figure.push(Item::Rects { fill: Paint::Solid(color), rects: vec![rect] });
    let label = short(Some(Dur(ns)));
    if letters::width(&letters::printable(&label), LETTER) < rect.w && rect.h > LETTER {
        let at = Point { x: rect.x + rect.w / 2, y: rect.y + rect.h / 2 + LETTER / 3 };
        figure.text(at, LETTER, Anchor::Middle, ink_on(color), &label);
    }
}
