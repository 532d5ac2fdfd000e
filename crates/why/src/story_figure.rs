//! The figure of an episode: what every CPU ran, with arrows for migrations and wakeups.

use crate::story::{Mark, Story};
use draw::{Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Unit};
use sched::balancer::AttemptOutcome;
use sched::{Cpu, Ts};
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch};
use timeline::palette::{BESIDE_TASKS, INK};
use timeline::{CpuLanes, LaneLayout, Rows, TimeScale};

const WIDTH: Unit = 842 * PT;
const MOVED: Color = INK;
const WOKEN: Color = BESIDE_TASKS[2];
const MISSED: Color = BESIDE_TASKS[1];
/// The marks of attempts to balance that moved tasks, and of the others.
const BALANCED: [(Color, bool, &str); 2] =
    [(INK, true, "balances, and moves tasks"), (Color::grey(0x78), false, "balances, and moves nothing")];

/// The figure of an episode. `draw` draws the lanes, `legend` is that of their colours.
pub fn story_figure(
    story: &Story,
    around: &CpuLanes,
    heading: &Heading,
    legend: Vec<LegendEntry>,
    draw: &DrawLanes<'_>,
) -> Figure {
    let lanes = around.cpus.len().max(around.all_cpus.len()).max(1) as Unit;
    let height = ((430 * PT / lanes).min(26 * PT) * lanes).max(40 * PT);
    let start = story.start_in_trace_ns as f64 / 1e9;
    let title = format!("{}: violated for {} from {start:.6} s", heading.trace, story.duration_ns.human());
    let unlisted = match story.unlisted {
        0 => String::new(),
        more => format!(" Without marks: the last {}.", sched::nouns::counted(more, "step")),
    };
    let note = format!(
        "The bar over the lanes is the episode: {}.{unlisted}",
        sched::nouns::counted(story.steps.len() as u64 + story.unlisted, "step")
    );
    let texts = heading.texts(title, note);
    let entry = |swatch, label: &str| LegendEntry { swatch, label: label.to_owned() };
    let own = [
        entry(Swatch::Arrow(MOVED, 0), "a waiting task is moved there"),
        entry(Swatch::Arrow(WOKEN, 0), "a woken or forked task is queued there"),
        entry(Swatch::Marker(Shape::Diamond, MISSED), "goes idle while a task waits elsewhere"),
    ];
    let attempts = (BALANCED.iter())
        .filter(|(_, moved, _)| attempts(story, *moved).next().is_some())
        .map(|(color, _, label)| entry(Swatch::Marker(Shape::Square, *color), label));
    let legend: Vec<LegendEntry> = own.into_iter().chain(attempts).chain(legend).collect();
    let mut page = Page::new(WIDTH, height, &texts, &legend);
    let scale = page.scale(around.from, around.to, around.zero);
    let (top, height) = (page.top, page.height);
    let (x, right) = (scale.at(story.start_ns), scale.at(story.start_ns.after(story.duration_ns)));
    let bar = Rect { x, y: top - 5 * PT, w: (right - x).max(PT / 2), h: 3 * PT };
    page.figure.push(Item::Rects { fill: Paint::Solid(BESIDE_TASKS[0]), rects: vec![bar] });
    page.time_axis(&scale);
    draw(&mut page.figure, &scale, top, height);
    let layout = LaneLayout::among(&around.cpus, &around.all_cpus, top, height);
    draw_marks(&mut page.figure, story, &Rows::new(&around.cpus), &scale, &layout);
    page.lanes_title("CPU");
    page.finish()
}

/// The attempts to balance that moved tasks, or the others: when, and on which CPU.
fn attempts(story: &Story, moved: bool) -> impl Iterator<Item = (Ts, Cpu)> {
    story.steps.iter().filter_map(move |step| match step.mark {
        Some(Mark::Balanced(cpu, outcome)) if (outcome == AttemptOutcome::Moved) == moved => Some((step.ts_ns, cpu)),
        _ => None,
    })
}

fn draw_marks(figure: &mut Figure, story: &Story, rows: &Rows, scale: &TimeScale, layout: &LaneLayout) {
    let middle = |cpu: Cpu| rows.of(cpu).map(|row| layout.top_of(row) + layout.bar() / 2);
    let size = (layout.pitch() * 5 / 10).clamp(2 * PT, 5 * PT);
    for (color, is_moved) in [(WOKEN, false), (MOVED, true)] {
        let (mut lines, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
        for step in &story.steps {
            let (from, to) = match step.mark {
                Some(Mark::Moved(from, to)) if is_moved => (from, to),
                Some(Mark::Woken(from, to)) if !is_moved => (from, to),
                _ => continue,
            };
            let (x, from, Some(to)) = (scale.at(step.ts_ns), middle(from), middle(to)) else { continue };
            if let Some(from) = from.filter(|from| *from != to) {
                lines.push(Line { from: Point { x, y: from }, to: Point { x, y: to } });
            }
            if from.is_some_and(|from| from > to) { &mut up } else { &mut down }.push(Point { x, y: to });
        }
        figure.push(Item::Lines { stroke: color, width: 60, dash: 0, lines });
        figure.push(Item::Markers { shape: Shape::Peak, fill: color, size, at: up });
        figure.push(Item::Markers { shape: Shape::Triangle, fill: color, size, at: down });
    }
    let missed = story.steps.iter().filter_map(|step| match step.mark {
        Some(Mark::Missed(cpu)) => Some(Point { x: scale.at(step.ts_ns), y: middle(cpu)? }),
        _ => None,
    });
    figure.push(Item::Markers { shape: Shape::Diamond, fill: MISSED, size, at: missed.collect() });
    for (color, moved, _) in BALANCED {
        let points = attempts(story, moved).filter_map(|(at, cpu)| {
            let row = rows.of(cpu)?;
            // At the edge of the lane, so that the other marks stay visible.
            Some(Point { x: scale.at(at), y: layout.top_of(row) + layout.bar() / 6 })
        });
        figure.push(Item::Markers { shape: Shape::Square, fill: color, size: size * 2 / 3, at: points.collect() });
    }
}
