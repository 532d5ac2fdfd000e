//! The page of a step.

use crate::{Options, Step, Who, at_rest};
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Unit, text};
use sched::{Cpu, Load};
use timeline::Sheet;
use timeline::page::{Heading, LegendEntry, Page, Swatch, Texts};
use timeline::palette::{FAINT, INK, PALETTE, RULE, TaskColors};

const MARGIN: Unit = 24 * PT;
const GUTTER: Unit = 14 * PT;
/// Room for the event under them.
const FOOT: Unit = 22 * PT;

const CONCERNED: Color = Color::rgb(0xff, 0xef, 0xb8);
const MOVES: Color = Color::rgb(0xc0, 0x10, 0x20);
const THROTTLED: Color = Color::rgb(0xd8, 0xe4, 0xe0);

/// A size of paper: the width of the page, the height for the CPUs, and the greatest number of columns.
#[derive(Clone, Copy)]
struct Paper {
    /// The width of the page before it is laid out for other letters.
    page: Unit,
    width: Unit,
    height: Unit,
    columns: usize,
}

/// Landscape A4, A3 and A2: all CPUs fit one page, on which they can be read.
const PAPERS: [Paper; 3] = [
    Paper { page: 842 * PT, width: 842 * PT, height: 430 * PT, columns: 6 },
    Paper { page: 1191 * PT, width: 1191 * PT, height: 680 * PT, columns: 8 },
    Paper { page: 1684 * PT, width: 1684 * PT, height: 1030 * PT, columns: 12 },
];

/// The least width of a column on paper of another size.
const NARROWEST: Unit = 140 * PT;

/// Returns the papers for a page that is asked for: its own size, or the usual ones with larger letters.
fn papers(texts: &Texts, legend: &[LegendEntry]) -> Vec<Paper> {
    if texts.sheet == (Sheet { title: texts.sheet.title.clone(), ..Sheet::default() }) {
        return PAPERS.to_vec();
    }
    let paper = |usual: &Paper| {
        let page = Page::new(usual.page, usual.height + FOOT, texts, legend);
        let width = page.figure.width;
        Paper { page: usual.page, width, height: page.height - FOOT, columns: (width / NARROWEST).max(1) as usize }
    };
    let count = if texts.sheet.width.or(texts.sheet.height).is_some() { 1 } else { PAPERS.len() };
    PAPERS.iter().take(count).map(paper).collect()
}

/// A row of a column: the name of a group, or a CPU by its place in the step.
enum GridRow {
    Group(u32),
    Lane(usize),
}

/// The places of the columns and rows on the page.
struct GridLayout {
    page: Unit,
    columns: Vec<Vec<GridRow>>,
    pitch: Unit,
    /// The width of a column.
    width: Unit,
    top: Unit,
    colors: TaskColors,
}

impl GridLayout {
    fn new(options: &Options, papers: &[Paper]) -> GridLayout {
        let mut rows = Vec::new();
        for (i, (_, group)) in options.cpus.iter().enumerate() {
            if let Some(group) = group.filter(|group| i == 0 || options.cpus[i - 1].1 != Some(*group)) {
                rows.push(GridRow::Group(group));
            }
            rows.push(GridRow::Lane(i));
        }
        // Few wide columns show more of a queue, many narrow ones more CPUs.
        let fits = |paper: &Paper, columns: usize| paper.height / rows.len().div_ceil(columns).max(1) as Unit;
        let readable = |paper: &Paper| {
            [9 * PT, 6 * PT, 5 * PT]
                .into_iter()
                .find_map(|least| (1..=paper.columns).find(|n| fits(paper, *n) >= least))
        };
        let largest = papers.last().unwrap_or(&PAPERS[PAPERS.len() - 1]);
        let (paper, columns) =
            papers.iter().find_map(|paper| Some((paper, readable(paper)?))).unwrap_or((largest, largest.columns));
        let pitch = fits(paper, columns).clamp(PT, 15 * PT);
        let each = rows.len().div_ceil(columns).max(1);
        let width = (paper.width - 2 * MARGIN + GUTTER) / columns as Unit - GUTTER;
        let mut rest = rows.into_iter();
        let columns = (0..columns).map(|_| rest.by_ref().take(each).collect()).collect();
        GridLayout { page: paper.page, columns, pitch, width, top: 0, colors: options.colors.clone() }
    }

    fn rows(&self) -> usize {
        self.columns.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn left(&self, column: usize) -> Unit {
        MARGIN + column as Unit * (self.width + GUTTER)
    }

    fn size(&self) -> Unit {
        (self.pitch * 75 / 100).min(8 * PT)
    }
}

/// The figure of a step.
pub fn figure(step: &Step, options: &Options, heading: &Heading) -> Figure {
    let texts = heading.texts(format!("{} at {}", heading.trace, step.when(options)), step.summary());
    let legend = legend(step);
    let mut layout = GridLayout::new(options, &papers(&texts, &legend));
    let cores_height = layout.pitch * layout.rows() as Unit;
    let mut page = Page::with_least(layout.page, cores_height + FOOT, cores_height + FOOT, &texts, &legend);
    layout.top = page.top;
    let mut places: Vec<(Cpu, Point)> = Vec::new();
    for (nth, column) in layout.columns.iter().enumerate() {
        for (row, what) in column.iter().enumerate() {
            let at = Point { x: layout.left(nth), y: layout.top + row as Unit * layout.pitch };
            match what {
                GridRow::Group(group) => {
                    let name = format!("{} {group}", options.group_name);
                    let baseline = Point { x: at.x, y: at.y + layout.pitch * 75 / 100 };
                    page.figure.text(baseline, layout.size(), Anchor::Start, FAINT, &name);
                }
                GridRow::Lane(index) => {
                    draw_lane(&mut page.figure, step, *index, at, &layout);
                    places.push((step.cpus[*index].cpu, at));
                }
            }
        }
    }
    draw_move(&mut page.figure, step, &places, &layout);
    let next = step.coming().map_or("The trace ends here.".into(), |coming| format!("Next, {coming}."));
    let at = Point { x: MARGIN, y: layout.top + cores_height + 15 * PT };
    let next = text::fit(&text::printable(&next), 10 * PT, page.figure.width - 2 * MARGIN);
    page.figure.text(at, 10 * PT, Anchor::Start, INK, &next);
    page.finish()
}

fn legend(step: &Step) -> Vec<LegendEntry> {
    let mut legend = vec![
        LegendEntry {
            swatch: Swatch::Area(Paint::Solid(CONCERNED)),
            label: "CPUs that the next event concerns".into(),
        },
        LegendEntry { swatch: Swatch::Area(Paint::Solid(MOVES)), label: "the task it is about".into() },
        LegendEntry {
            swatch: Swatch::Blank,
            label: "left of the bar: running; right of it: runqueue wait, in the order of arrival".into(),
        },
    ];
    if step.cpus.iter().any(|c| !c.throttled.is_empty()) {
        let label = "throttled by cpu.max, behind the waiting tasks".into();
        legend.push(LegendEntry { swatch: Swatch::Area(Paint::Solid(THROTTLED)), label });
    }
    if step.cpus.iter().any(|c| matches!(c.load, Load::Unknown | Load::Unobserved)) {
        legend.push(LegendEntry { swatch: Swatch::Area(Paint::Hatch), label: "unknown".into() });
    }
    legend
}

/// The edge between a CPU's running task and its queue.
fn bar_of(at: Point, layout: &GridLayout) -> Unit {
    at.x + 18 * PT + (layout.width * 30 / 100).min(110 * PT)
}

fn draw_lane(figure: &mut Figure, step: &Step, index: usize, at: Point, layout: &GridLayout) {
    let lane = &step.cpus[index];
    let (size, h) = (layout.size(), layout.pitch - layout.pitch / 8);
    if step.event.as_ref().is_some_and(|e| e.concerns(lane.cpu)) {
        let ground = Rect { x: at.x - 2 * PT, y: at.y, w: layout.width + 4 * PT, h };
        figure.push(Item::Rects { fill: Paint::Solid(CONCERNED), rects: vec![ground] });
    }
    let bar = bar_of(at, layout);
    let baseline = at.y + h / 2 + size * 35 / 100;
    figure.text(Point { x: at.x + 14 * PT, y: baseline }, size, Anchor::End, INK, &lane.cpu.to_string());
    let first = at.x + 18 * PT;
    if matches!(lane.load, Load::Unknown | Load::Unobserved) {
        let unknown = Rect { x: first, y: at.y, w: bar - first - 2 * PT, h };
        figure.push(Item::Rects { fill: Paint::Hatch, rects: vec![unknown] });
    }
    if matches!(lane.load, Load::Unknown | Load::Offline | Load::Unobserved) {
        figure.text(Point { x: first + 3 * PT, y: baseline }, size, Anchor::Start, INK, at_rest(lane.load));
    }
    if let Some(running) = &lane.running {
        draw_task(figure, running, step, Rect { x: first, y: at.y, w: bar - first - 3 * PT, h }, baseline, layout);
    }
    let line = Line { from: Point { x: bar, y: at.y }, to: Point { x: bar, y: at.y + h } };
    figure.push(Item::Lines { stroke: INK, width: 80, dash: 0, lines: vec![line] });
    let floor = Line {
        from: Point { x: first, y: at.y + layout.pitch - layout.pitch / 16 },
        to: Point { x: at.x + layout.width, y: at.y + layout.pitch - layout.pitch / 16 },
    };
    figure.push(Item::Lines { stroke: RULE, width: 25, dash: 0, lines: vec![floor] });
    draw_queue(
        figure,
        step,
        index,
        Rect { x: bar + 3 * PT, y: at.y, w: at.x + layout.width - bar - 3 * PT, h },
        baseline,
        layout,
    );
}

fn draw_queue(figure: &mut Figure, step: &Step, index: usize, area: Rect, baseline: Unit, layout: &GridLayout) {
    let size = layout.size();
    let lane = &step.cpus[index];
    let queued = lane.waiting.len() + lane.throttled.len();
    let (mut x, right) = (area.x, area.x + area.w);
    for (i, who) in lane.waiting.iter().chain(&lane.throttled).enumerate() {
        let width = text::width(&label(who), size) + 7 * PT;
        let left = queued - i;
        // The last one needs no room for a number behind it.
        let more = if left > 1 { text::width(&format!("+{left}"), size) + 3 * PT } else { 0 };
        if x + width + more > right {
            figure.text(Point { x, y: baseline }, size, Anchor::Start, INK, &format!("+{left}"));
            return;
        }
        let place = Rect { x, w: width - 2 * PT, ..area };
        if i >= lane.waiting.len() {
            figure.push(Item::Rects { fill: Paint::Solid(THROTTLED), rects: vec![place] });
        }
        draw_task(figure, who, step, place, baseline, layout);
        x += width;
    }
}

fn label(who: &Who) -> String {
    text::printable(&crate::text::name(who))
}

/// The label in this width. Only the name is cut, never the number, which alone identifies the task.
fn fitted(who: &Who, size: Unit, width: Unit) -> String {
    let whole = label(who);
    let Some((name, number)) = whole.rsplit_once(' ').filter(|_| text::width(&whole, size) > width) else {
        return whole;
    };
    let rest = format!("\u{2026} {number}");
    let characters = || name.char_indices().map(|(at, _)| &name[..at]).rev();
    let short = characters().filter(|head| !head.is_empty()).map(|head| format!("{head}{rest}"));
    short.into_iter().find(|short| text::width(short, size) <= width).unwrap_or_else(|| number.to_owned())
}

/// A task: a stripe in its colour, its name and number; the one that the event is about in red.
fn draw_task(figure: &mut Figure, who: &Who, step: &Step, area: Rect, baseline: Unit, layout: &GridLayout) {
    let size = layout.size();
    let moves = step.event.as_ref().is_some_and(|e| e.task == Some(who.pid));
    let color = PALETTE[layout.colors.place(who.pid)];
    let stripe = Rect { w: 2 * PT, y: area.y + area.h / 8, h: area.h * 3 / 4, ..area };
    figure.push(Item::Rects { fill: Paint::Solid(color), rects: vec![stripe] });
    let at = Point { x: area.x + 7 * PT / 2, y: baseline };
    let ink = if moves { MOVES } else { INK };
    figure.text(at, size, Anchor::Start, ink, &fitted(who, size, area.w - 7 * PT / 2));
}

/// An arrow from the CPU that a task leaves to the one it goes to.
fn draw_move(figure: &mut Figure, step: &Step, places: &[(Cpu, Point)], layout: &GridLayout) {
    let Some(event) = &step.event else { return };
    let place = |cpu: Option<Cpu>| {
        let at = places.iter().find(|(c, _)| Some(*c) == cpu)?.1;
        Some(Point { x: bar_of(at, layout), y: at.y + layout.pitch * 7 / 16 })
    };
    let (Some(from), Some(to)) = (place(event.from), place(event.to)) else { return };
    let mut lines = Vec::new();
    if from.x == to.x {
        lines.push(Line { from, to });
    } else {
        // Across columns between two rows, so that no number is struck out; then along the bar.
        let below = Point { x: from.x, y: from.y + layout.pitch / 2 };
        let corner = Point { x: to.x, y: below.y };
        lines.extend([Line { from, to: below }, Line { from: below, to: corner }, Line { from: corner, to }]);
    }
    // A move that is only wanted is a dashed line.
    let dash = if event.wanted { 2 * PT } else { 0 };
    figure.push(Item::Lines { stroke: MOVES, width: 120, dash, lines });
    let shape = if to.y > from.y { Shape::Triangle } else { Shape::Peak };
    figure.push(Item::Markers { shape, fill: MOVES, size: 6 * PT, at: vec![to] });
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::Pid;

    #[test]
    fn the_number_of_a_task_is_never_cut() {
        let who = |pid, command: &[u8]| Who { pid: Pid(pid), command: sched::Comm::new(command), prio: None };
        let long = who(4_194_303, b"kworker/255:12H");
        for n in [1, 16, 256, 1000, 4096] {
            let cpus = (0..n).map(|cpu| (Cpu(cpu), Some(cpu / 64))).collect();
            let layout = GridLayout::new(&Options { cpus, ..Options::default() }, &PAPERS);
            let at = Point { x: layout.left(0), y: 0 };
            let width = bar_of(at, &layout) - at.x - 18 * PT - 3 * PT - 7 * PT / 2;
            let label = fitted(&long, layout.size(), width);
            assert!(label.ends_with("4194303") && text::width(&label, layout.size()) <= width, "{n} CPUs: {label}");
        }
        assert_eq!(fitted(&who(7, b"make"), 8 * PT, 100 * PT), "make 7");
        let cut = fitted(&long, 8 * PT, 60 * PT);
        assert!(cut.starts_with("kw") && cut.ends_with("\u{2026} 4194303"), "{cut}");
    }

    #[test]
    fn a_thousand_cores_are_legible_and_no_row_touches_the_next() {
        for n in [1, 8, 64, 256, 700, 1000, 1500, 4096] {
            let cpus = (0..n).map(|cpu| (Cpu(cpu), Some(cpu / 64))).collect();
            let layout = GridLayout::new(&Options { cpus, ..Options::default() }, &PAPERS);
            assert!(layout.size() < layout.pitch, "{n} CPUs: letters of {} in {}", layout.size(), layout.pitch);
            let paper = PAPERS.iter().find(|paper| paper.width == layout.page).expect("a paper");
            assert!(layout.pitch * layout.rows() as Unit <= paper.height, "{n} CPUs do not fit");
            assert!(layout.columns.len() <= paper.columns);
            if n <= 1500 {
                assert!(layout.size() >= 15 * PT / 4, "{n} CPUs: letters of {}", layout.size());
            }
        }
    }
}
