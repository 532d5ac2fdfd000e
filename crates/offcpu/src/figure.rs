//! The figure: a flame graph, whose widths are times off-CPU. Commands are at the bottom, and the inner ends of stacks at the top.

use crate::flame::{FlameBox, boxes};
use crate::{OffCpuBy, OffCpuReport, OffCpuTime, StackKind};
use draw::{Anchor, Color, Figure, Item, PT, Paint, Point, Rect, Unit, text};
use sched::Dur;
use sched::nouns::counted;
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{FAINT, ink_on};

const WIDTH: Unit = 842 * PT;
const LEVEL: Unit = 12 * PT;
const LETTER: Unit = 6 * PT;
/// The maximum number of levels that are drawn.
const LEVELS: usize = 64;
/// The part of the whole time that a box must have to be drawn: 1 / this.
const PARTS: u64 = 2000;
/// The ground of boxes through which stacks of several kinds go.
const SEVERAL: Color = Color::grey(0xdc);

/// The words in the place of the boxes, where no stack was recorded.
pub(crate) const NO_STACKS: &str =
    "no switch has a stack: record them with schedviz record --stacks, trace-cmd record -T or perf record -g";

/// The colour of a kind.
fn color(kind: StackKind) -> Color {
    match kind {
        StackKind::NoStack => Color::grey(0xa8),
        StackKind::Unresolved => Color::grey(0xc0),
        StackKind::Other => Color::rgb(0xd8, 0xc8, 0xa0),
        StackKind::Futex => Color::rgb(0xe0, 0x8a, 0x3c),
        StackKind::Poll => Color::rgb(0x7f, 0xb4, 0xe0),
        StackKind::Pipe => Color::rgb(0x5b, 0xb5, 0xa2),
        StackKind::Socket => Color::rgb(0x4a, 0x7f, 0xc1),
        StackKind::Disk => Color::rgb(0xc0, 0x5c, 0x5c),
        StackKind::PageFault => Color::rgb(0xb8, 0x86, 0xc9),
        StackKind::Timer => Color::rgb(0x9f, 0xc1, 0x5a),
        StackKind::Exit => Color::rgb(0x8c, 0x7a, 0x6b),
        StackKind::Child => Color::rgb(0xb5, 0xa4, 0x94),
        StackKind::Lock => Color::rgb(0xd1, 0x4f, 0x7f),
        StackKind::Work => Color::rgb(0xa9, 0xb8, 0xc4),
        StackKind::Preempted => Color::rgb(0xe6, 0xc2, 0x4a),
    }
}

/// Draws the figure of a report.
pub fn figure(report: &OffCpuReport, heading: &Heading) -> Figure {
    let all = boxes(report, 0).1;
    // Boxes of commands alone are no stacks; wakers are.
    let has_stacks = report.has_stacks() || report.by == OffCpuBy::Waker;
    let found = if has_stacks { boxes(report, (all / PARTS).max(1)).0 } else { Vec::new() };
    let shown: Vec<&FlameBox> = found.iter().filter(|found| found.level < LEVELS).collect();
    let levels = shown.iter().map(|found| found.level + 1).max().unwrap_or(1) as Unit;
    let (title, note) = (title(report, heading), note(report, &found));
    let texts = heading.texts(title, note);
    let height = (levels * LEVEL).max(60 * PT);
    let mut page = Page::with_least(WIDTH, height, height / 2, &texts, &legend(&shown));
    let plot = Rect { x: Page::LEFT / 2, y: page.top, w: page.right() - Page::LEFT / 2, h: page.height };
    if shown.is_empty() {
        let at = Point { x: plot.x + plot.w / 2, y: plot.y + plot.h / 2 };
        let why = if has_stacks { "no time" } else { NO_STACKS };
        page.figure.text(at, LETTER, Anchor::Middle, FAINT, why);
        return page.finish();
    }
    let level = (plot.h / levels).min(LEVEL);
    for found in shown {
        let at = |time: u64| plot.x + (i128::from(plot.w) * i128::from(time) / i128::from(all.max(1))) as Unit;
        let (x, right) = (at(found.start), at(found.start.saturating_add(found.time)));
        let y = plot.y + plot.h - (found.level as Unit + 1) * level;
        // A gap of a fifth of a point divides the boxes.
        let rect = Rect { x, y, w: (right - x - PT / 5).max(PT / 10), h: level - PT / 5 };
        let fill = found.kind.map_or(SEVERAL, color);
        page.figure.push(Item::Rects { fill: Paint::Solid(fill), rects: vec![rect] });
        if rect.w > 14 * PT && level > LETTER {
            let name = text::fit(&text::printable(&found.name), LETTER, rect.w - 2 * PT);
            let at = Point { x: rect.x + PT, y: rect.y + rect.h / 2 + LETTER / 3 };
            page.figure.text(at, LETTER, Anchor::Start, ink_on(fill), &name);
        }
    }
    page.finish()
}

fn title(report: &OffCpuReport, heading: &Heading) -> String {
    let what = match report.time {
        _ if report.wakeups_unknown.is_some() => "time asleep or runnable",
        OffCpuTime::Asleep => "time asleep",
        OffCpuTime::Runnable => "time runnable",
        OffCpuTime::Both => "time asleep and runnable",
    };
    let by = match report.by {
        OffCpuBy::Switch => "the stack of the switch-out",
        OffCpuBy::Waker => "the stack of the waker",
        OffCpuBy::Both => "the stacks of the switch-out and, behind --, of the waker",
    };
    format!("{}: {what}, by {by}", heading.trace)
}

fn note(report: &OffCpuReport, found: &[FlameBox]) -> String {
    let total = match report.asleep_ns.zip(report.runnable_ns) {
        Some((asleep, runnable)) => report.time.of(asleep, runnable),
        None => report.off_cpu_ns.unwrap_or_default(),
    };
    let none = report.stacks.iter().filter(|row| row.kind == StackKind::NoStack);
    let none = none.map(|row| row.time(report.time).0).fold(0, u64::saturating_add);
    let deeper = match found.iter().map(|found| found.level).max() {
        Some(most) if most >= LEVELS => format!(" The {LEVELS} outer levels are drawn."),
        _ => String::new(),
    };
    format!(
        "The width of a box is the time of all stacks through it: {} in all tasks together, {} of it without a stack; {} have one.{deeper}",
        total.human(),
        Dur(none).human(),
        counted(report.with_stack.unwrap_or(0), "switch"),
    )
}

fn legend(shown: &[&FlameBox]) -> Vec<LegendEntry> {
    let entry = |fill, label: &str| LegendEntry { swatch: Swatch::Area(Paint::Solid(fill)), label: label.to_owned() };
    let used = StackKind::ALL.into_iter().filter(|kind| shown.iter().any(|found| found.kind == Some(*kind)));
    let mut legend: Vec<LegendEntry> = used.map(|kind| entry(color(kind), kind.words())).collect();
    if shown.iter().any(|found| found.kind.is_none()) {
        legend.push(entry(SEVERAL, "several kinds"));
    }
    legend
}
