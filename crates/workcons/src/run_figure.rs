//! One run: violation over time as a strip for each node, above what every CPU ran during the
//! longest episodes.

use crate::report::{EpisodeReport, Report};
use crate::strips::{IDLE_HERE, WAITING_HERE};
use crate::text::{doubt, headline, idle_and_waiting};
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Unit};
use sched::Ts;
use sched::nouns::counted;
use timeline::TimeScale;
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch, time_axis};
use timeline::palette::{BESIDE_TASKS, FAINT, INK};
use timeline::strips::Strips;

/// A closer look at an episode: its window, and the function that draws the CPUs in it.
pub struct Look<'l> {
    /// The window's start.
    pub from: Ts,
    /// The window's end.
    pub to: Ts,
    /// Draws the lanes: on this scale, from this top, in this height.
    pub draw: Box<DrawLanes<'l>>,
}

const WIDTH: Unit = 842 * PT;
/// Room under a plot for its axis, and for the title of the next.
const AXIS: Unit = 26 * PT;
const TITLE: Unit = 24 * PT;

const BOTH: Color = BESIDE_TASKS[0];
const IDLE: Color = BESIDE_TASKS[1];
const WAITING: Color = BESIDE_TASKS[2];

/// The figure of a report that was made with strips. `looks` are at the first of its longest
/// episodes, in their order; `lane_height` is that of all CPUs in one of them; `legend` shows what
/// the colours in them are.
pub fn run_figure(
    report: &Report,
    zero: Ts,
    looks: &[Look<'_>],
    lane_height: Unit,
    legend: &dyn Fn(usize) -> Vec<LegendEntry>,
    heading: &Heading,
) -> Figure {
    let usual_strip = (120 * PT / report.strips.len().max(1) as Unit).clamp(4 * PT, 22 * PT);
    let doubt = if doubt(report).is_some() { " (not to be trusted)" } else { "" };
    let mut texts =
        heading.texts(format!("{}: work conservation is {}{doubt}", heading.trace, headline(report)), note(report));
    if !looks.is_empty() {
        texts.notes.push("Percentages of tasks are shares of the busy time in the closer looks.".to_owned());
    }
    // A page with little room has a shorter legend and fewer looks.
    let pages = (0..=looks.len()).rev().zip([14, 8, 5, 3]).map(|(looks, listed)| {
        let entries = if looks > 0 { legend(listed) } else { Vec::new() };
        let legend: Vec<LegendEntry> = own_legend(report).into_iter().chain(entries).collect();
        // The page's own axis stands under its plot: that of the last look, or of the strips. Titles and axes keep their
        // height, strips and lanes share the rest in proportion.
        let fixed = TITLE / 2 + looks as Unit * (AXIS + TITLE);
        let height = fixed + usual_strip * report.strips.len() as Unit + looks as Unit * lane_height;
        let least = fixed + ((height - fixed) / 3).max(30 * PT);
        (Page::with_least(WIDTH, height, least, &texts, &legend), (looks, fixed, height))
    });
    let (mut page, (count, fixed, height)) = Page::roomy(pages);
    let part =
        |own: Unit| (i64::from(own) * i64::from(page.height - fixed) / i64::from((height - fixed).max(1))) as Unit;
    let (strip, lane_height) = (part(usual_strip), part(lane_height));
    let strips_height = strip * report.strips.len() as Unit;
    let each = TITLE + lane_height + AXIS;
    let to = report.from_ns.after(report.window_ns);
    let scale = page.scale(report.from_ns, to, zero);
    let top = page.top + TITLE / 2;
    time_axis(&mut page.figure, &scale, top, top + strips_height);
    draw_strips(&mut page.figure, report, &scale, top, strip);
    let shown = report.longest().iter().zip(looks).take(count);
    for (i, (episode, look)) in shown.enumerate() {
        let x = scale.at(episode.start_ns);
        let number = Point { x, y: top - 2 * PT };
        page.figure.text(number, 7 * PT, Anchor::Middle, INK, &(i + 1).to_string());
        let top = top + strips_height + AXIS + i as Unit * each;
        let scale = page.scale(look.from, look.to, zero);
        closer(&mut page.figure, i + 1, episode, &scale, top, lane_height, &look.draw);
    }
    page.finish()
}

fn note(report: &Report) -> String {
    let Some(v) = &report.violation else {
        let why = report.selection_unknown.as_deref().unwrap_or_default();
        return format!("{:.6} s; {why}", report.window_ns.seconds());
    };
    let episodes = match (v.episodes, v.longest.first()) {
        (1, Some(only)) => format!("1 episode of {}", only.duration_ns.human()),
        (n, Some(longest)) => format!("{}, the longest {}", counted(n, "episode"), longest.duration_ns.human()),
        (_, None) => "no episode".to_owned(),
    };
    format!(
        "{:.6} s; {:.2} % of the CPU time lost; {episodes}. Where it comes and goes, a strip's height is its share of a column's time.",
        report.window_ns.seconds(),
        v.cpu_time_lost_percent,
    )
}

fn own_legend(report: &Report) -> Vec<LegendEntry> {
    let area = |fill, label: &str| LegendEntry { swatch: Swatch::Area(fill), label: label.to_owned() };
    let mut legend = vec![area(Paint::Solid(BOTH), "CPUs idle here, and tasks wait here (runqueue wait)")];
    if report.strips.len() > 1 {
        legend.push(area(Paint::Solid(IDLE), "CPUs idle here, tasks wait elsewhere"));
        legend.push(area(Paint::Solid(WAITING), "tasks wait here, CPUs idle elsewhere"));
    }
    if report.unknown.unknown_percent > 0.0 {
        legend.push(area(Paint::Hatch, "unknown: events were lost"));
    }
    legend
}

fn draw_strips(figure: &mut Figure, report: &Report, scale: &TimeScale, top: Unit, height: Unit) {
    let bar = height * 85 / 100;
    let mut strips = Strips::new(scale, 3);
    let mut floors = Vec::new();
    for (i, strip) in (0..).zip(&report.strips) {
        let y = top + i * height;
        strips.add(&strip.pieces, y, bar);
        let floor = y + bar;
        floors.push(Line { from: Point { x: scale.x, y: floor }, to: Point { x: scale.x + scale.width, y: floor } });
        if height >= 6 * PT {
            let at = Point { x: scale.x - 4 * PT, y: y + bar / 2 + 5 * PT / 2 };
            figure.text(at, 7 * PT, Anchor::End, INK, &strip.name);
        }
    }
    figure.push(Item::Lines { stroke: FAINT, width: 30, dash: 0, lines: floors });
    strips.draw(figure, |class| match class {
        IDLE_HERE => IDLE,
        WAITING_HERE => WAITING,
        _ => BOTH,
    });
}

/// An episode and its surroundings; a bar over the lanes shows from where to where it was.
fn closer(
    figure: &mut Figure,
    number: usize,
    episode: &EpisodeReport,
    scale: &TimeScale,
    top: Unit,
    height: Unit,
    draw: &DrawLanes<'_>,
) {
    let start = episode.start_in_trace_ns as f64 / 1e9;
    let title =
        format!("{number}: {} from {start:.6} s: {}", episode.duration_ns.human(), idle_and_waiting(&episode.scene));
    let at = Point { x: scale.x, y: top + 10 * PT };
    let text = draw::text::fit(&draw::text::printable(&title), 8 * PT, scale.width);
    figure.text(at, 8 * PT, Anchor::Start, INK, &text);
    let lanes = top + TITLE;
    let (x, right) = (scale.at(episode.start_ns), scale.at(episode.start_ns.after(episode.duration_ns)));
    let bar = Rect { x, y: lanes - 6 * PT, w: (right - x).max(PT / 2), h: 3 * PT };
    figure.push(Item::Rects { fill: Paint::Solid(BOTH), rects: vec![bar] });
    time_axis(figure, scale, lanes, lanes + height);
    draw(figure, scale, lanes, height);
}
