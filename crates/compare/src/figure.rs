//! The figure: the runs of each metric as points, one row per group, with the medians marked. Beside the row of a group
//! stands how it differs from the first group.

use crate::table::{change, mark, p, short};
use crate::{Better, Finding, Group, Metric, Row, Spread};
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Unit, text};
use timeline::page::{LegendEntry, Page, Swatch, Texts};
use timeline::palette::{FAINT, INK, PALETTE, RULE};

const WIDTH: Unit = 595 * PT;
/// The height of the points of a group.
const ROW: Unit = 9 * PT;
/// The room for the difference of a group, to the right of its points.
const DIFFERENCE: Unit = 104 * PT;
/// The least and the most room for the name of a metric, to the left of its points.
const NAME: [Unit; 2] = [70 * PT, 190 * PT];
/// The size of the letters of a name, its distance from the points, and that from the edge of the page.
const LETTER: Unit = 8 * PT;
const GAP: Unit = 8 * PT;
const MARGIN: Unit = 24 * PT;
const SMALL: Unit = 7 * PT;

pub(crate) fn look(group: usize) -> (Shape, Color) {
    (Shape::ALL[group % Shape::ALL.len()], PALETTE[group % PALETTE.len()])
}

/// The words for the direction in which a metric improves.
pub(crate) fn direction(better: Better) -> &'static str {
    match better {
        Better::Less => "less is better",
        Better::More => "more is better",
        Better::Neither => "not judged",
    }
}

/// Returns the colour of a finding, and that of the ground behind the points of the group.
pub(crate) fn colors(finding: Finding) -> (Color, Option<Color>) {
    match finding {
        Finding::TooFew | Finding::Noise => (FAINT, None),
        Finding::Better => (Color::rgb(0x10, 0x60, 0x30), Some(Color::rgb(0xdf, 0xf0, 0xe4))),
        Finding::Worse => (Color::rgb(0xa0, 0x20, 0x10), Some(Color::rgb(0xfb, 0xe3, 0xdd))),
        Finding::Changed => (INK, Some(Color::grey(0xec))),
    }
}

/// Keeps the metrics that have room: those that changed by more than noise lead the others. Returns a note on that.
pub(crate) fn keep_marked(shown: &mut Vec<(usize, &Metric)>, count: usize, comparisons: &[&[Row]]) -> String {
    let is_marked = |metric: &Metric| {
        let rows = comparisons.iter().flat_map(|rows| rows.iter());
        rows.filter(|row| row.metric.key == metric.key)
            .any(|row| !matches!(row.finding, Finding::TooFew | Finding::Noise))
    };
    let all = shown.len();
    shown.sort_by_key(|(_, metric)| !is_marked(metric));
    shown.truncate(count);
    let shown = shown.len();
    format!(
        "{shown} of {all} metrics have room here: those that changed by more than noise, then the first of the others."
    )
}

/// Returns the figure of these groups. `comparisons` has for each group but the first the rows of its comparison with
/// the first.
pub fn figure(metrics: &[Metric], groups: &[Group], comparisons: &[&[Row]], texts: &Texts) -> Figure {
    let mut texts = texts.clone();
    if let Some(first) = groups.first().filter(|_| !comparisons.is_empty()) {
        texts.notes.push(format!(
            "Beside the points: the change of the median against {}, p, and in colour a change that is more than noise.",
            first.name
        ));
    }
    let mut shown: Vec<(usize, &Metric)> = metrics
        .iter()
        .enumerate()
        .filter(|(at, _)| groups.iter().any(|g| g.values(*at).iter().any(|v| *v != 0.0)))
        .collect();
    let panel = ROW * groups.len().max(1) as Unit + 16 * PT;
    let legend: Vec<LegendEntry> = groups
        .iter()
        .enumerate()
        .map(|(i, g)| {
            let (shape, fill) = look(i);
            let label = format!("{} ({}); the bar is their median", g.name, sched::nouns::counted(g.runs.len(), "run"));
            LegendEntry { swatch: Swatch::Marker(shape, fill), label }
        })
        .collect();
    let height = panel * shown.len() as Unit;
    let mut page = Page::with_least(WIDTH, height, panel, &texts, &legend);
    // A page of a given height has as many metrics as have room: the marked ones lead.
    if texts.sheet.height.is_some() && page.height < height {
        texts.notes.push(String::new());
        page = Page::with_least(WIDTH, height, panel, &texts, &legend);
        let count = (page.height / panel).max(1) as usize;
        texts.notes.pop();
        texts.notes.push(keep_marked(&mut shown, count, comparisons));
        page = Page::with_least(WIDTH, panel * count as Unit, panel, &texts, &legend);
    }
    let panel = page.height / shown.len().max(1) as Unit;
    let sides = (left_of_points(&shown), page.right());
    for (row, (at, metric)) in (0..).zip(shown) {
        let top = page.top + row * panel;
        let differences: Vec<Option<&Row>> =
            comparisons.iter().map(|rows| rows.iter().find(|row| row.metric.key == metric.key)).collect();
        draw_metric(&mut page.figure, (metric, at), groups, &differences, (top, sides));
    }
    page.finish()
}

/// The left end of the points of all metrics: the longest name has room before it, unless the points then had too little.
fn left_of_points(shown: &[(usize, &Metric)]) -> Unit {
    let name = |metric: &Metric| text::width(&text::printable(&metric.name), LETTER);
    let longest = shown.iter().map(|(_, metric)| name(metric)).max().unwrap_or(0);
    MARGIN + (longest + GAP).clamp(NAME[0], NAME[1])
}

fn draw_metric(
    figure: &mut Figure,
    (metric, at): (&Metric, usize),
    groups: &[Group],
    differences: &[Option<&Row>],
    (top, (left, right)): (Unit, (Unit, Unit)),
) {
    let all: Vec<f64> = groups.iter().flat_map(|g| g.values(at)).collect();
    let Spread { min, max, .. } = Spread::of(&all);
    let room = if differences.is_empty() { 20 * PT } else { DIFFERENCE };
    let width = right - room - left;
    let floor = top + ROW * groups.len() as Unit + 3 * PT;
    let x = |v: f64| {
        let share = if max > min { (v - min) / (max - min) } else { 0.5 };
        left + (share * f64::from(width)).round() as Unit
    };
    let names = Point { x: left - GAP, y: top + ROW * groups.len() as Unit / 2 + PT };
    let name = text::fit(&text::printable(&metric.name), LETTER, left - GAP - MARGIN);
    figure.text(names, LETTER, Anchor::End, INK, &name);
    figure.text(Point { y: names.y + 8 * PT, ..names }, 6 * PT, Anchor::End, FAINT, direction(metric.better));
    let axis = Line { from: Point { x: left, y: floor }, to: Point { x: left + width, y: floor } };
    figure.push(Item::Lines { stroke: RULE, width: 40, dash: 0, lines: vec![axis] });
    let ends = [(min, left, Anchor::Start), (max, left + width, Anchor::End)];
    for (value, x, anchor) in ends.into_iter().take(if max > min { 2 } else { 1 }) {
        figure.text(Point { x, y: floor + 8 * PT }, SMALL, anchor, FAINT, &short(value));
    }
    for (i, group) in groups.iter().enumerate() {
        let values = group.values(at);
        if values.is_empty() {
            continue;
        }
        let (shape, fill) = look(i);
        let y = top + ROW * i as Unit + ROW / 2;
        if let Some(row) = i.checked_sub(1).and_then(|nth| *differences.get(nth)?) {
            let (ink, ground) = colors(row.finding);
            if let Some(ground) = ground {
                let rects = vec![Rect { x: left, y: y - ROW / 2, w: right - left, h: ROW }];
                figure.push(Item::Rects { fill: Paint::Solid(ground), rects });
            }
            let p = row.p.map_or_else(String::new, |_| format!("p {}", p(row)));
            let words = [change(row), p, mark(row.finding).to_lowercase()];
            for ((text, anchor), x) in words.iter().zip([Anchor::End, Anchor::Start, Anchor::Start]).zip([66, 60, 30]) {
                figure.text(Point { x: right - x * PT, y: y + 5 * PT / 2 }, SMALL, anchor, ink, text);
            }
        }
        let points = values.iter().map(|v| Point { x: x(*v), y }).collect();
        figure.push(Item::Markers { shape, fill, size: 5 * PT, at: points });
        let middle = x(Spread::of(&values).median);
        let bar = Line { from: Point { x: middle, y: y - ROW / 2 }, to: Point { x: middle, y: y + ROW / 2 } };
        figure.push(Item::Lines { stroke: fill, width: 150, dash: 0, lines: vec![bar] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ComparedRun;

    /// Two metrics of four runs a side: one is twice as long, one is the same.
    #[test]
    fn a_difference_stands_beside_its_group() {
        let metric = |key: &'static str| Metric::of(key, key, Better::Less);
        let metrics = [metric("longer"), metric("same")];
        let group = |name: &str, base: f64| {
            let run = |n: u32| ComparedRun {
                trace: name.to_owned(),
                values: vec![Some(base + f64::from(n)), Some(f64::from(n) + 1.0)],
            };
            Group { name: name.to_owned(), runs: (0..4).map(run).collect() }
        };
        let groups = [group("a", 100.0), group("b", 200.0)];
        let rows = crate::compare(&metrics, &groups[0], &groups[1], 0.05);
        assert_eq!((rows[0].finding, rows[1].finding), (Finding::Worse, Finding::Noise));
        let figure = figure(&metrics, &groups, &[&rows], &Texts::default());
        let texts: Vec<(&str, Color)> = figure
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Text { text, fill, .. } => Some((text.as_str(), *fill)),
                _ => None,
            })
            .collect();
        // 201.5 against 101.5; of the 70 divisions of eight runs two are as far apart.
        let (worse, _) = colors(Finding::Worse);
        for text in ["+98.5%", "p .029", "worse"] {
            assert!(texts.contains(&(text, worse)), "{text}: {texts:?}");
        }
        assert!(texts.contains(&("+0.0%", FAINT)) && texts.contains(&("p 1", FAINT)), "{texts:?}");
        assert_eq!(texts.iter().filter(|(text, _)| *text == "less is better").count(), 2);
    }

    /// The names of metrics are whole and on the page, and the points after them; one without an end is cut.
    #[test]
    fn the_longest_name_has_room_before_the_points() {
        for (name, is_whole) in
            [("waits beside an idle CPU, of tasks of nginx", true), (&"endless ".repeat(60)[..], false)]
        {
            let metrics = ["same", name].map(|key| Metric::of(key.to_owned(), key, Better::Less));
            let run = |n: u32| ComparedRun { trace: "a".to_owned(), values: vec![Some(f64::from(n)), Some(1.0)] };
            let groups = [Group { name: "a".to_owned(), runs: (1..4).map(run).collect() }];
            let figure = figure(&metrics, &groups, &[], &Texts::default());
            let mut names = 0;
            for item in &figure.items {
                match item {
                    Item::Text { at, size, anchor: Anchor::End, text, .. } => {
                        let from = at.x - text::width(text, *size);
                        assert!(from >= MARGIN - PT, "{text} begins at {from}");
                        names += usize::from(text == name);
                    }
                    Item::Markers { at, .. } => {
                        let longest = text::width(name, LETTER).min(NAME[1] - GAP);
                        assert!(at.len() < 2 || at.iter().all(|at| at.x >= MARGIN + longest + GAP), "{at:?}");
                    }
                    _ => {}
                }
            }
            assert_eq!(names == 1, is_whole, "{name}");
        }
    }

    /// A page with room for one metric has the one that changed, whatever its place in the table.
    #[test]
    fn a_short_page_has_the_marked_metrics() {
        let metrics = ["same", "alike", "longer"].map(|key| Metric::of(key, key, Better::Less));
        let group = |name: &str, longer: f64| {
            let run = |n: u32| ComparedRun {
                trace: name.to_owned(),
                values: vec![Some(f64::from(n) + 1.0), Some(f64::from(n) + 2.0), Some(longer + f64::from(n))],
            };
            Group { name: name.to_owned(), runs: (0..4).map(run).collect() }
        };
        let groups = [group("a", 100.0), group("b", 200.0)];
        let rows = crate::compare(&metrics, &groups[0], &groups[1], 0.05);
        let mut shown: Vec<(usize, &Metric)> = metrics.iter().enumerate().collect();
        let note = keep_marked(&mut shown, 2, &[&rows]);
        let kept: Vec<&str> = shown.iter().map(|(_, metric)| metric.key.as_ref()).collect();
        assert_eq!((kept, &note[..16]), (vec!["longer", "same"], "2 of 3 metrics h"));
    }
}
