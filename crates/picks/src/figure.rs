//! The figure: the lags of some tasks over time, above the lane of the CPU on which each was picked.

use crate::samples::{LagSample, RunSample};
use crate::{PicksReport, Recorded};
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Unit, text};
use sched::kthread::is_kernel_thread;
use sched::nouns::counted;
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, Dur, Pid};
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{FAINT, INK, PALETTE, RULE};
use timeline::text::short;
use timeline::{LaneLayout, TimeScale};

const WIDTH: Unit = 842 * PT;
/// The height of the lane of a CPU, with the lags above it.
const LANE: Unit = 48 * PT;
/// The maximum number of tasks whose lags are drawn.
const TASKS: usize = 6;
/// The least width of the bars between a lag and the line of zero, which fill the room between.
const STEP: Unit = PT / 2;
/// The size of the letters at a lane.
const LETTER: Unit = 6 * PT;

/// The tasks with the greatest lags of either sign, but for kernel threads, with their names, in the order of their PIDs.
fn drawn_tasks(samples: &[LagSample]) -> Vec<(Pid, Comm)> {
    let mut counts: SeededMap<Pid, (u64, Comm)> = SeededMap::default();
    for sample in samples.iter().filter(|sample| !is_kernel_thread(sample.comm)) {
        let (most, comm) = counts.entry(sample.pid).or_insert((0, sample.comm));
        (*most, *comm) = (sample.lag_ns.unsigned_abs().max(*most), sample.comm);
    }
    let mut all: Vec<(Pid, u64, Comm)> = counts.into_iter().map(|(pid, (count, comm))| (pid, count, comm)).collect();
    all.sort_by_key(|(pid, count, _)| (std::cmp::Reverse(*count), *pid));
    all.truncate(TASKS);
    all.sort_by_key(|(pid, ..)| *pid);
    all.into_iter().map(|(pid, _, comm)| (pid, comm)).collect()
}

/// Whether the figure has a lag: of a task that is no kernel thread, beside a rival.
pub(crate) fn has_lags(report: &PicksReport) -> bool {
    report.samples.iter().any(|sample| !is_kernel_thread(sample.comm) && sample.lag_ns != 0)
}

/// The lag at half the height of a lane: the greatest of those that are at most four times as great as three in four of all that are not
/// zero, so that a few that are far greater do not flatten the others. These are drawn at the edge.
fn height_of_lane(shown: &[LagSample]) -> u64 {
    const USUAL: u64 = 4;
    let mut lags: Vec<u64> = shown.iter().map(|sample| sample.lag_ns.unsigned_abs()).filter(|lag| *lag > 0).collect();
    lags.sort_unstable();
    let usual = lags.get((lags.len() * 3).div_ceil(4).saturating_sub(1)).copied().unwrap_or(0);
    lags.into_iter().rev().find(|lag| *lag <= usual.saturating_mul(USUAL)).unwrap_or(1)
}

/// Draws the figure of a report.
pub fn figure(report: &PicksReport, heading: &Heading) -> Figure {
    let tasks = drawn_tasks(&report.samples);
    let color = |pid: Pid| tasks.iter().position(|(task, _)| *task == pid).map(|nth| PALETTE[nth % PALETTE.len()]);
    let shown: Vec<LagSample> = report.samples.iter().filter(|sample| color(sample.pid).is_some()).copied().collect();
    let mut cpus: Vec<Cpu> = shown.iter().map(|sample| sample.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let source = match report.recorded {
        Recorded::Numbers => "by the kernel's numbers",
        Recorded::Switches => "by a fluid model",
    };
    let most = height_of_lane(&shown);
    let beyond = shown.iter().filter(|sample| sample.lag_ns.unsigned_abs() > most).count() as u64;
    let rest = match beyond {
        0 => String::new(),
        _ => format!(" Triangles at its edge, with the lag: the {} beyond it.", counted(beyond, "lag")),
    };
    let note = format!(
        "Lag {source}: above the line a task is owed time, below it the task had more than its share; half the height of a lane is {}.{rest} Diamonds: picks. The bars below: the task runs.",
        short(Some(Dur(most)))
    );
    let title = format!("{}: the greatest lags of tasks", heading.trace);
    let mut legend: Vec<LegendEntry> = tasks
        .iter()
        .map(|(pid, comm)| LegendEntry { swatch: Swatch::Line(color(*pid).unwrap_or(INK)), label: pid.named(*comm) })
        .collect();
    if !cpus.is_empty() {
        legend.push(LegendEntry { swatch: Swatch::Line(RULE), label: "other tasks there".to_owned() });
    }
    let height = LANE * cpus.len().clamp(1, 64) as Unit;
    let mut page = Page::new(WIDTH, height, &heading.texts(title, note), &legend);
    let scale = page.scale(report.from_ns, report.to_ns, report.zero);
    page.time_axis(&scale);
    let layout = LaneLayout::new(cpus.iter().map(|cpu| (*cpu, None)).collect(), page.top, page.height);
    layout.draw(&mut page.figure, scale.x, scale.x + scale.width, "");
    for (row, cpu) in cpus.iter().enumerate() {
        let is_drawn = |sample: &&LagSample| sample.cpu == *cpu && !is_kernel_thread(sample.comm);
        let of_cpu: Vec<LagSample> = report.samples.iter().filter(is_drawn).copied().collect();
        let ran: Vec<RunSample> = report.ran.iter().filter(|run| run.cpu == *cpu).copied().collect();
        let lane = Rect { x: scale.x, y: layout.top_of(row), w: scale.width, h: layout.bar() };
        draw_lane(&mut page.figure, (&of_cpu, &ran), &scale, lane, most, &color);
    }
    page.lanes_title("CPU");
    page.finish()
}

/// Draws the lags and the runs of one CPU.
fn draw_lane(
    figure: &mut Figure,
    (samples, ran): (&[LagSample], &[RunSample]),
    scale: &TimeScale,
    lane: Rect,
    most: u64,
    color: &impl Fn(Pid) -> Option<Color>,
) {
    let bar = (lane.h / 8).max(PT / 2);
    let room = lane.h - bar - PT;
    let zero = lane.y + room / 2;
    let height = |lag: i64| {
        let shown = i128::from(lag).clamp(-i128::from(most), i128::from(most));
        zero - (shown * i128::from(room / 2) / i128::from(most)) as Unit
    };
    let line = |from, to| Line { from, to };
    let floor = vec![line(Point { x: lane.x, y: zero }, Point { x: lane.x + lane.w, y: zero })];
    figure.push(Item::Lines { stroke: FAINT, width: 30, dash: 0, lines: floor });
    let mut pids: Vec<Pid> = samples.iter().map(|sample| sample.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    // Those that have no colour lie behind the others.
    pids.sort_by_key(|pid| color(*pid).is_some());
    let mut beyond: Vec<Beyond> = Vec::new();
    for pid in pids {
        let own: Vec<&LagSample> = samples.iter().filter(|sample| sample.pid == pid).collect();
        let stroke = color(pid).unwrap_or(RULE);
        let is_other = color(pid).is_none();
        let at = |sample: &LagSample| Point { x: scale.at(sample.ts), y: height(sample.lag_ns) };
        // Lines are bounded by the columns of the page: points of one column share a line.
        let mut lines: Vec<Line> = Vec::new();
        for pair in own.windows(2).filter(|pair| pair[0].is_picked != pair[1].is_picked) {
            let (from, to) = (at(pair[0]), at(pair[1]));
            match lines.last_mut() {
                Some(last) if last.from.x == from.x && from.x == to.x => last.to = to,
                _ => lines.push(line(from, to)),
            }
        }
        if !is_other {
            let fill = Paint::Solid(stroke.pale());
            figure.push(Item::Rects { fill, rects: lines.iter().flat_map(|line| below(*line, zero)).collect() });
        }
        figure.push(Item::Lines { stroke, width: if is_other { 50 } else { 100 }, dash: 0, lines });
        let is_beyond = |sample: &LagSample| sample.lag_ns.unsigned_abs() > most;
        let picked = own.iter().filter(|sample| sample.is_picked && !is_beyond(sample) && !is_other);
        let mut dots: Vec<Point> = picked.map(|sample| at(sample)).collect();
        dots.dedup();
        figure.push(Item::Markers { shape: Shape::Diamond, fill: stroke, size: 3 * PT, at: dots });
        beyond.extend(
            own.iter()
                .filter(|sample| is_beyond(sample) && !is_other)
                .map(|sample| (at(sample), sample.lag_ns, stroke)),
        );
    }
    draw_beyond(figure, &beyond);
    runs_of(figure, ran, scale, Rect { y: lane.y + lane.h - bar, h: bar, ..lane }, color);
    let label = Point { x: lane.x + lane.w + 2 * PT, y: zero + LETTER / 3 };
    figure.text(label, LETTER, Anchor::Start, INK, "0");
}

/// The bars between a line and that of zero.
fn below(line: Line, zero: Unit) -> Vec<Rect> {
    let Line { from, to } = line;
    let width = (to.x - from.x).max(0);
    let steps = (width / STEP).max(1);
    let bar = |nth: Unit| {
        let x = from.x + width * nth / steps;
        let next = from.x + width * (nth + 1) / steps;
        let y = from.y + (to.y - from.y) * (2 * nth + 1) / (2 * steps);
        Rect { x, y: y.min(zero), w: (next - x).max(PT / 10), h: (zero - y).abs() }
    };
    (0..steps).map(bar).filter(|bar| bar.h > 0).collect()
}

/// Draws the runs of a lane below its lags: those of other tasks than the drawn ones in grey.
fn runs_of(
    figure: &mut Figure,
    ran: &[RunSample],
    scale: &TimeScale,
    lane: Rect,
    color: &impl Fn(Pid) -> Option<Color>,
) {
    let mut by_color: Vec<(Color, Vec<Rect>)> = vec![(RULE, Vec::new())];
    for run in ran {
        let fill = color(run.pid).unwrap_or(RULE);
        let place = by_color.iter().position(|(other, _)| *other == fill).unwrap_or_else(|| {
            by_color.push((fill, Vec::new()));
            by_color.len() - 1
        });
        let x = scale.at(run.from);
        let w = (scale.at(run.to) - x).max(PT / 10);
        let bars = &mut by_color[place].1;
        match bars.last_mut() {
            Some(last) if last.x + last.w >= x => last.w = last.w.max(x + w - last.x),
            _ => bars.push(Rect { x, w, ..lane }),
        }
    }
    for (fill, rects) in by_color {
        figure.push(Item::Rects { fill: Paint::Solid(fill), rects });
    }
}

/// A lag that is beyond the height of its lane: its place at the edge, the lag in nanoseconds, and the colour of its task.
type Beyond = (Point, i64, Color);

/// Draws the lags of a lane that are beyond its height: a triangle at its edge that points outwards, with the lag where there is room for
/// the number beside those of all tasks. The greatest have the first choice.
fn draw_beyond(figure: &mut Figure, lags: &[Beyond]) {
    const SIZE: Unit = 3 * PT;
    for (shape, is_owed) in [(Shape::Peak, true), (Shape::Triangle, false)] {
        let mut own: Vec<Beyond> = lags.iter().filter(|(_, lag, _)| (*lag > 0) == is_owed).copied().collect();
        own.sort_by_key(|(at, lag, _)| (std::cmp::Reverse(lag.unsigned_abs()), at.x));
        let mut taken: Vec<(Unit, Unit)> = Vec::new();
        let mut triangles: Vec<(Color, Vec<Point>)> = Vec::new();
        for (at, lag, color) in own {
            match triangles.iter_mut().find(|(other, _)| *other == color) {
                Some((_, places)) => places.push(at),
                None => triangles.push((color, vec![at])),
            }
            let label = short(Some(Dur(lag.unsigned_abs())));
            let from = at.x + SIZE;
            let to = from + text::width(&label, LETTER) + LETTER / 2;
            if taken.iter().any(|(start, end)| from < *end && *start < to) {
                continue;
            }
            taken.push((from, to));
            let below = if is_owed { LETTER } else { 0 };
            figure.text(Point { x: from, y: at.y + below }, LETTER, Anchor::Start, INK, &label);
        }
        for (fill, mut at) in triangles {
            at.sort_unstable_by_key(|at| (at.x, at.y));
            at.dedup();
            figure.push(Item::Markers { shape, fill, size: SIZE, at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::Ts;

    #[test]
    fn the_room_between_a_lag_and_zero_is_filled() {
        let line = |x, y| Line { from: Point { x: 0, y: 100 * PT }, to: Point { x, y } };
        let area = |line| below(line, 100 * PT).iter().map(|bar| bar.w * bar.h).sum::<Unit>();
        // Half of 10 points times 40, on either side; nothing along the line of zero.
        for y in [60 * PT, 140 * PT] {
            let filled = area(line(10 * PT, y));
            assert!((filled - 200 * PT * PT).abs() < 2 * PT * PT, "{filled}");
        }
        assert_eq!(area(line(10 * PT, 100 * PT)), 0);
        assert!(below(line(0, 60 * PT), 100 * PT).len() == 1, "a line upright");
    }

    #[test]
    fn a_lag_that_is_far_above_the_others_does_not_make_the_scale() {
        let height = |lags: &[i64]| {
            let sample = |lag_ns: &i64| {
                let (ts, cpu, pid, comm) = (Ts(0), Cpu(0), Pid(7), Comm::EMPTY);
                LagSample { ts, cpu, pid, comm, lag_ns: *lag_ns, is_picked: true }
            };
            height_of_lane(&lags.iter().map(sample).collect::<Vec<_>>())
        };
        assert_eq!([height(&[]), height(&[0, 0]), height(&[-5])], [1, 1, 5]);
        assert_eq!(height(&[0, 0, 0, 0, 3, -4, 2, 9_000]), 4);
        assert_eq!(height(&[3, -4, 2, 13, 1, -16, 9]), 16);
    }
}
