//! The figure: a lane for each last-level cache, with the share of its CPU time that each group had.

use crate::Options;
use crate::report::ResidencyReport;
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Unit};
use std::collections::BTreeMap;
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{APART, FAINT, INK, OTHER, PALETTE};

const WIDTH: Unit = 842 * PT;
/// The height of a lane and the distance to the next one.
const LANE: Unit = 48 * PT;
const GAP: Unit = 6 * PT;
/// The lanes that have their full height; of more ones each is lower.
const FULL: usize = 8;
/// The number of groups with a colour of their own.
const COLORED: usize = 8;
const LETTER: Unit = 7 * PT;

/// Draws the share of each cache's CPU time over the window by group.
pub fn figure(report: &ResidencyReport, options: &Options<'_>, heading: &Heading) -> Figure {
    let lanes = report.llcs.len().max(1);
    let lane = if lanes > FULL { (LANE * FULL as Unit / lanes as Unit).max(4 * PT) } else { LANE };
    let residency = report.residency_percent.map_or_else(|| "unknown".to_owned(), |percent| format!("{percent:.1} %"));
    let note = format!(
        "A lane is a last-level cache, its height the time of its CPUs; by {}. Residency: {residency}.",
        report.by.plural()
    );
    let texts = heading.texts(format!("{}: the caches that tasks ran under", heading.trace), note);
    let mut page = Page::new(WIDTH, (lane + GAP) * lanes as Unit, &texts, &legend(report));
    let step = page.height / lanes as Unit;
    let gap = GAP.min(step / 4);
    let scale = page.scale(options.from, options.to, options.zero);
    page.time_axis(&scale);
    let edge = |column: usize| {
        let at = i64::from(scale.width) * column as i64 / report.columns.max(1) as i64;
        scale.x + at as Unit
    };
    let mut rects: Vec<Vec<Rect>> = vec![Vec::new(); COLORED + 1];
    for (nth, llc) in (0..).zip(&report.llcs) {
        let (top, height) = (page.top + nth * step, step - gap);
        let floor = top + height;
        let width = options.to.since(options.from).0.max(1) as f64 / report.columns.max(1) as f64;
        let full = (width * llc.cpu_count as f64).max(1.0);
        let mut below: BTreeMap<usize, f64> = BTreeMap::new();
        let cells = report.cells.iter().filter(|((_, of, _), _)| *of == Some(llc.llc));
        for ((column, _, group), ns) in cells {
            let sum = below.entry(*column).or_default();
            let y = |part: f64| floor - (f64::from(height) * (part / full).min(1.0)).round() as Unit;
            let (bottom, up) = (y(*sum), y(*sum + *ns as f64));
            *sum += *ns as f64;
            if bottom > up {
                let (x, right) = (edge(*column), edge(*column + 1));
                rects[(*group).min(COLORED)].push(Rect { x, y: up, w: right - x, h: bottom - up });
            }
        }
        let line = Line { from: Point { x: scale.x, y: floor }, to: Point { x: scale.x + scale.width, y: floor } };
        page.figure.push(Item::Lines { stroke: FAINT, width: 40, dash: 0, lines: vec![line] });
        let at = Point { x: Page::LEFT - 4 * PT, y: top + height / 2 + LETTER / 3 };
        page.figure.text(at, LETTER, Anchor::End, INK, &format!("LLC {}", llc.llc));
    }
    for (nth, rects) in rects.into_iter().enumerate() {
        page.figure.push(Item::Rects { fill: Paint::Solid(color(nth)), rects });
    }
    page.finish()
}

/// The colour of a group by its rank.
fn color(rank: usize) -> Color {
    if rank < COLORED { PALETTE[APART[rank]] } else { OTHER }
}

fn legend(report: &ResidencyReport) -> Vec<LegendEntry> {
    let total = report.run_ns.0.max(1) as f64;
    let entry = |rank: usize, label: String| LegendEntry { swatch: Swatch::Area(Paint::Solid(color(rank))), label };
    let mut entries: Vec<LegendEntry> = report
        .groups
        .iter()
        .take(COLORED)
        .enumerate()
        .map(|(rank, group)| entry(rank, format!("{}: {:.1} %", group.name, 100.0 * group.run_ns.0 as f64 / total)))
        .collect();
    if let Some(rest) = report.groups.get(COLORED..).filter(|rest| !rest.is_empty()) {
        let ns = rest.iter().map(|group| group.run_ns.0).fold(0, u64::saturating_add);
        entries.push(entry(COLORED, format!("{} more: {:.1} %", rest.len(), 100.0 * ns as f64 / total)));
    }
    entries
}
