//! The figure: the response time of each job at its release, for the tasks with the most missed deadlines.

use crate::report::Response;
use crate::text::none_to_judge;
use crate::{JobRow, JobsReport};
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Unit, text};
use sched::nouns::counted;
use sched::{Dur, Ts};
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{FAINT, INK};
use timeline::text::short;
use timeline::{Axis, AxisUnit};

const WIDTH: Unit = 842 * PT;
/// The height of a task's panel, and the gap above it, in which its name stands.
const PANEL: Unit = 76 * PT;
const GAP: Unit = 16 * PT;
const LETTER: Unit = 7 * PT;
/// The maximum number of tasks that are drawn.
const TASKS: usize = 6;
/// The width of a bar.
const BAR: Unit = PT / 2;
/// The colours of jobs that met and that missed their deadlines.
const MET: Color = Color::rgb(0x5b, 0x8f, 0xc9);
const MISSED: Color = Color::rgb(0xc0, 0x30, 0x30);

/// Draws the figure of a report.
pub fn figure(report: &JobsReport, heading: &Heading) -> Figure {
    let rows = report.tasks.iter().zip(&report.points).filter(|(row, _)| row.deadline_ns.is_some());
    let shown: Vec<_> = rows.take(TASKS).collect();
    let all = report.tasks.iter().filter(|row| row.deadline_ns.is_some()).count();
    let note = if shown.is_empty() { String::new() } else { note(shown.len(), all) };
    let texts = heading.texts(format!("{}: response times of jobs", heading.trace), note);
    let height = (PANEL + GAP) * shown.len().max(1) as Unit;
    let entry = |color, label: &str| LegendEntry { swatch: Swatch::Area(Paint::Solid(color)), label: label.to_owned() };
    let legend = [entry(MET, "met its deadline"), entry(MISSED, "missed its deadline")];
    let legend = if shown.is_empty() { &[][..] } else { &legend };
    let mut page = Page::with_least(WIDTH, height, height / 2, &texts, legend);
    let scale = page.scale(report.from_ns, report.to_ns, report.zero);
    page.time_axis(&scale);
    if shown.is_empty() {
        let at = Point { x: Page::LEFT + page.width() / 2, y: page.top + page.height / 2 };
        page.figure.text(at, LETTER, Anchor::Middle, FAINT, &nothing(report));
        return page.finish();
    }
    let each = page.height / shown.len() as Unit;
    for (nth, (row, points)) in shown.into_iter().enumerate() {
        let top = page.top + each * nth as Unit + GAP.min(each / 4);
        let bottom = page.top + each * (nth as Unit + 1);
        let plot = Rect { x: Page::LEFT, y: top, w: page.width(), h: bottom - top };
        panel(&mut page.figure, plot, row, points, &|ts| scale.at(ts));
    }
    page.finish()
}

/// The words in the place of the panels, where no task has a deadline.
fn nothing(report: &JobsReport) -> String {
    let jobs = counted(report.jobs.unwrap_or(0), "job");
    format!("{jobs}, none to judge: {}; --deadline TIME gives each task one", none_to_judge(report))
}

fn note(shown: usize, all: usize) -> String {
    let rest = match all.checked_sub(shown) {
        Some(rest) if rest > 0 => format!(" {} more are not drawn.", counted(rest as u64, "task")),
        _ => String::new(),
    };
    format!(
        "Each bar is a job: its foot is at the release, its height is the response time; the line is the deadline.{rest}"
    )
}

/// Draws the jobs of a task: in each column the longest one.
fn panel(figure: &mut Figure, plot: Rect, row: &JobRow, points: &[Response], at: &dyn Fn(Ts) -> Unit) {
    let deadline = row.deadline_ns.unwrap_or_default();
    let high = points.iter().map(|(_, response, _)| *response).max().unwrap_or_default().max(deadline);
    let axis = Axis::linear(0.0, high.0 as f64, AxisUnit::Time, "").to_next_tick(3);
    axis.draw_left(figure, plot);
    // Jobs that were released before the window stand at its edge.
    let columns = (plot.w / BAR).max(1) as usize;
    let mut longest = vec![None::<(Dur, bool)>; columns];
    for (release, response, is_missed) in points {
        let x = at(*release).clamp(plot.x, plot.x + plot.w);
        let column = (((x - plot.x) / BAR) as usize).min(columns - 1);
        longest[column] = longest[column].max(Some((*response, *is_missed)));
    }
    for is_missed in [false, true] {
        let bars = longest.iter().enumerate().filter_map(|(column, response)| {
            let (response, _) = response.filter(|(_, missed)| *missed == is_missed)?;
            let y = axis.at(response.0 as f64, plot.y + plot.h, -plot.h);
            Some(Rect { x: plot.x + column as Unit * BAR, y, w: BAR, h: plot.y + plot.h - y })
        });
        let fill = Paint::Solid(if is_missed { MISSED } else { MET });
        let rects: Vec<Rect> = bars.collect();
        if !rects.is_empty() {
            figure.push(Item::Rects { fill, rects });
        }
    }
    let y = axis.at(deadline.0 as f64, plot.y + plot.h, -plot.h);
    let line = Line { from: Point { x: plot.x, y }, to: Point { x: plot.x + plot.w, y } };
    figure.push(Item::Lines { stroke: INK, width: PT / 2, dash: 2 * PT, lines: vec![line] });
    let name = format!(
        "{}: {}, deadline {}, {} missed",
        row.pid.named(row.command),
        counted(row.jobs, "job"),
        short(row.deadline_ns),
        row.missed.unwrap_or(0)
    );
    let place = Point { x: plot.x, y: plot.y - 3 * PT };
    figure.text(place, LETTER, Anchor::Start, INK, &text::printable(&name));
}
