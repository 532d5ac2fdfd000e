//! The figure: the Lorenz curve, and the distributions of run lengths and waits.

use crate::FairnessReport;
use crate::evenness::coefficient;
use draw::{Figure, Item, Line, PT, Point, Rect, Unit};
use sched::nouns::counted;
use timeline::histogram::{Histogram, histograms};
use timeline::page::{Heading, Page};
use timeline::palette::{FAINT, PALETTE};
use timeline::{Axis, AxisUnit};

const WIDTH: Unit = 420 * PT;
const SIDE: Unit = 330 * PT;

/// The pages of a report: the Lorenz curve; run lengths and waits.
pub fn figure(report: &FairnessReport, heading: &Heading) -> Vec<Figure> {
    let panels = [
        Histogram { name: "run lengths of completed runs", lengths: &report.runs },
        Histogram { name: "runqueue waits: from runnable to run", lengths: &report.waits },
    ];
    let note = "The share of each kind by length, in eighths of a doubling; lines: median, 99 % and the greatest.";
    let title = format!("{}: run lengths and runqueue waits", heading.trace);
    vec![lorenz(report, heading), histograms(&panels, &heading.texts(title, note.into()))]
}

fn lorenz(report: &FairnessReport, heading: &Heading) -> Figure {
    let note = format!(
        "{}; Gini coefficient {}, Jain's index {}. On the diagonal all ran equally long.",
        counted(report.members.len(), "member"),
        coefficient(report.gini),
        coefficient(report.jain)
    );
    let texts = heading.texts(format!("{}: how CPU time is shared", heading.trace), note);
    let mut page = Page::new(WIDTH, SIDE, &texts, &[]);
    let side = page.width().min(page.height);
    let plot = Rect { x: Page::LEFT, y: page.top + page.height - side, w: side, h: side };
    let (left, floor) = (plot.x, plot.y + plot.h);
    let at = |x: f64, y: f64| Point {
        x: left + (x * f64::from(side)).round() as Unit,
        y: floor - (y * f64::from(side)).round() as Unit,
    };
    let axis = |title| Axis::linear(0.0, 100.0, AxisUnit::Percent, title);
    axis("share of the run time").draw_left(&mut page.figure, plot);
    axis("share of the members, from the one that ran least").draw_below(&mut page.figure, plot);
    let diagonal = vec![Line { from: at(0.0, 0.0), to: at(1.0, 1.0) }];
    page.figure.push(Item::Lines { stroke: FAINT, width: 60, dash: 2 * PT, lines: diagonal });
    // From the member that ran least on; members by the thousand are thinned to what the page can show.
    let total = report.members.iter().map(|m| m.run_ns.0 as f64).sum::<f64>().max(1.0);
    let (count, mut sum) = (report.members.len().max(1), 0.0);
    let mut points = vec![at(0.0, 0.0)];
    for (i, member) in report.members.iter().rev().enumerate() {
        sum += member.run_ns.0 as f64;
        if (i + 1) % count.div_ceil(1000) == 0 || i + 1 == count {
            points.push(at((i + 1) as f64 / count as f64, sum / total));
        }
    }
    let lines = points.windows(2).map(|w| Line { from: w[0], to: w[1] }).collect();
    page.figure.push(Item::Lines { stroke: PALETTE[0], width: 150, dash: 0, lines });
    page.finish()
}
