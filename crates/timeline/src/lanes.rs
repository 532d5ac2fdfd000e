//! One lane for each CPU, or for each of several groups of CPUs, group by group.

use draw::{Anchor, Figure, Item, Line, PT, Paint, Point, Rect, Turn, Unit};
use sched::Cpu;
use std::ops::Range;

use crate::palette::{FAINT, INK, NO_EVENTS, RULE};

/// The room for the names of lanes of several CPUs.
const NAMES: Unit = 30 * PT;

/// Lanes from above to below.
#[derive(Clone, Debug)]
pub struct LaneLayout {
    cpus: Vec<(Cpu, Option<u32>)>,
    /// The names of the lanes; empty where they are the numbers of the CPUs.
    names: Vec<String>,
    top: Unit,
    height: Unit,
    group_gap: Unit,
    tops: Vec<Unit>,
    /// The places of the lanes that have something to show, in order; the others are CPUs without any event.
    shown: Vec<usize>,
}

impl LaneLayout {
    /// Lays out `cpus`, each with its group, in this height.
    pub fn new(cpus: Vec<(Cpu, Option<u32>)>, top: Unit, height: Unit) -> LaneLayout {
        let groups = cpus.windows(2).filter(|w| w[0].1 != w[1].1).count() as Unit;
        let group_gap = if groups > 0 { (height / 40 / groups).clamp(PT / 2, 6 * PT) } else { 0 };
        let n = cpus.len().max(1) as i64;
        let usable = i64::from(height - group_gap * groups);
        let mut tops = Vec::with_capacity(cpus.len());
        let mut gaps = 0;
        for (i, cpu) in cpus.iter().enumerate() {
            if i > 0 && cpus[i - 1].1 != cpu.1 {
                gaps += group_gap;
            }
            tops.push(top + (i as i64 * usable / n) as Unit + gaps);
        }
        let shown = (0..cpus.len()).collect();
        LaneLayout { cpus, names: Vec::new(), top, height: (usable / n) as Unit, group_gap, tops, shown }
    }

    /// Lays out lanes of several CPUs each, by their names, each with the group that it is in.
    pub fn named(lanes: impl IntoIterator<Item = (String, Option<u32>)>, top: Unit, height: Unit) -> LaneLayout {
        let (names, groups): (Vec<String>, Vec<Option<u32>>) = lanes.into_iter().unzip();
        let places = (0..).map(Cpu).zip(groups).collect();
        LaneLayout { names, ..LaneLayout::new(places, top, height) }
    }

    /// Lays out the lanes of `shown` among those of `all`, in the same order: the others are CPUs without any event.
    /// Where `all` is empty, there are no others.
    pub fn among(shown: &[(Cpu, Option<u32>)], all: &[(Cpu, Option<u32>)], top: Unit, height: Unit) -> LaneLayout {
        if all.is_empty() {
            return LaneLayout::new(shown.to_vec(), top, height);
        }
        let mut layout = LaneLayout::new(all.to_vec(), top, height);
        let mut shown = shown.iter().peekable();
        layout.shown.retain(|place| shown.next_if(|(cpu, _)| *cpu == all[*place].0).is_some());
        layout
    }

    /// The height of a lane, the space below it included.
    pub fn pitch(&self) -> Unit {
        self.height
    }

    /// The height that a lane's bars take: some space is left between lanes where there is any.
    pub fn bar(&self) -> Unit {
        if self.height >= 4 * PT { self.height * 86 / 100 } else { self.height.max(1) }
    }

    /// The upper edge of the lane in this place among those that have something to show.
    pub fn top_of(&self, index: usize) -> Unit {
        self.shown.get(index).map_or(self.top, |place| self.top_at(*place))
    }

    /// The upper edge of the lane in this place among all.
    fn top_at(&self, place: usize) -> Unit {
        self.tops.get(place).copied().unwrap_or(self.top)
    }

    /// Tints the lanes of CPUs without any event: what such a CPU did is unknown.
    pub fn draw_silent(&self, figure: &mut Figure, x: Unit, right: Unit) {
        let mut shown = self.shown.iter().peekable();
        let silent = self.tops.iter().enumerate().filter(|(place, _)| shown.next_if(|shown| *shown == place).is_none());
        let rects = silent.map(|(_, top)| Rect { x, y: *top, w: right - x, h: self.bar() }).collect();
        figure.push(Item::Rects { fill: Paint::Solid(NO_EVENTS), rects });
    }

    /// The lower edge of all lanes.
    pub fn bottom(&self) -> Unit {
        self.tops.last().map_or(self.top, |t| t + self.height)
    }

    /// Draws a faint line under each lane, so that an idle one can be seen to be there.
    pub fn draw_floors(&self, figure: &mut Figure, x: Unit, right: Unit) {
        if self.height < 5 * PT {
            return;
        }
        let floor = |top: &Unit| {
            let y = top + self.bar();
            Line { from: Point { x, y }, to: Point { x: right, y } }
        };
        let lines = self.tops.iter().map(floor).collect();
        figure.push(Item::Lines { stroke: RULE, width: 25, dash: 0, lines });
    }

    /// Draws the names of the CPUs left of `x`, the rules between groups up to `right`, and the
    /// groups' names.
    pub fn draw(&self, figure: &mut Figure, x: Unit, right: Unit, group_name: &str) {
        let size = self.fitting((self.height * 9 / 10).clamp(4 * PT, 7 * PT));
        let every = self.labelled(size);
        let mut since_group = 0;
        for (i, (cpu, group)) in self.cpus.iter().enumerate() {
            since_group = if i > 0 && self.cpus[i - 1].1 == *group { since_group + 1 } else { 0 };
            if since_group % every == 0 {
                let at = Point { x: x - 4 * PT, y: self.top_at(i) + self.bar() / 2 + size * 35 / 100 };
                let name = self.names.get(i).cloned().unwrap_or_else(|| cpu.to_string());
                figure.text(at, size, Anchor::End, INK, &name);
            }
        }
        self.draw_groups(figure, x, right, group_name);
    }

    /// Joins the lanes of SMT siblings by a bracket left of `x`. `siblings` has, in ascending order, the CPUs with siblings, each with the first
    /// CPU of its core. Lanes of one core that are not beside each other have no bracket.
    pub fn draw_siblings(&self, figure: &mut Figure, x: Unit, siblings: &[(Cpu, Cpu)]) {
        let mut lines = Vec::new();
        for lanes in sibling_lanes(&self.cpus, siblings) {
            let (x, end) = (x - 3 * PT / 2, x - PT / 2);
            let (top, bottom) = (self.top_at(lanes.start), self.top_at(lanes.end - 1) + self.bar());
            lines.push(Line { from: Point { x, y: top }, to: Point { x, y: bottom } });
            lines.extend([top, bottom].map(|y| Line { from: Point { x, y }, to: Point { x: end, y } }));
        }
        figure.push(Item::Lines { stroke: FAINT, width: 50, dash: 0, lines });
    }

    /// The size of letters of at most `size` with which all names have room.
    fn fitting(&self, size: Unit) -> Unit {
        let widest = self.names.iter().map(|name| draw::text::width(name, size)).max().unwrap_or(0);
        if widest > NAMES { (size * NAMES / widest).max(4 * PT) } else { size }
    }

    /// The number of lanes for each name, from the first of a group on, so that names of this size do not overlap.
    fn labelled(&self, size: Unit) -> usize {
        let lanes = (size * 10 / 9).unsigned_abs().div_ceil(self.height.max(1).unsigned_abs());
        lanes.next_power_of_two() as usize
    }

    fn draw_groups(&self, figure: &mut Figure, x: Unit, right: Unit, group_name: &str) {
        let mut rules = Vec::new();
        let mut first = 0;
        // The names of lanes are wider than numbers.
        let left = if self.names.is_empty() { 22 * PT } else { 6 * PT + NAMES };
        for i in 1..=self.cpus.len() {
            if i < self.cpus.len() && self.cpus[i].1 == self.cpus[first].1 {
                continue;
            }
            if let Some(group) = self.cpus[first].1 {
                let (top, bottom) = (self.top_at(first), self.top_at(i - 1) + self.height);
                let text = format!("{group_name} {group}");
                let size = 7 * PT;
                if draw::text::width(&text, size) < bottom - top {
                    let at = Point { x: x - left, y: (top + bottom) / 2 };
                    figure.push(Item::Text { at, size, anchor: Anchor::Middle, turn: Turn::Left, fill: FAINT, text });
                }
            }
            if i < self.cpus.len() {
                let y = self.top_at(i) - self.group_gap / 2 - (self.height - self.bar()) / 2;
                rules.push(Line { from: Point { x: x - 28 * PT, y }, to: Point { x: right, y } });
            }
            first = i;
        }
        let width = if self.height >= 3 * PT { 60 } else { 30 };
        figure.push(Item::Lines {
            stroke: if self.height >= 3 * PT { FAINT } else { RULE },
            width,
            dash: 0,
            lines: rules,
        });
    }
}

/// The places of neighbouring lanes whose CPUs share a core. `siblings` has, in ascending order, the CPUs with siblings, each with the first CPU of its core.
pub fn sibling_lanes(cpus: &[(Cpu, Option<u32>)], siblings: &[(Cpu, Cpu)]) -> Vec<Range<usize>> {
    let core = |cpu: Cpu| siblings.binary_search_by_key(&cpu, |(cpu, _)| *cpu).ok().map(|place| siblings[place].1);
    let (mut found, mut start) = (Vec::new(), 0);
    for lanes in cpus.chunk_by(|(a, _), (b, _)| core(*a).is_some() && core(*a) == core(*b)) {
        if lanes.len() > 1 {
            found.push(start..start + lanes.len());
        }
        start += lanes.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_beside_each_other_have_a_bracket() {
        let cpus = [0, 4, 1, 5, 2, 3].map(|cpu| (Cpu(cpu), None)).to_vec();
        let siblings = [(0, 0), (1, 1), (2, 2), (4, 0), (5, 1), (6, 2)].map(|(cpu, first)| (Cpu(cpu), Cpu(first)));
        let mut figure = Figure::new(100 * PT, 100 * PT, "lanes");
        LaneLayout::new(cpus, 0, 60 * PT).draw_siblings(&mut figure, 50 * PT, &siblings);
        let lines: Vec<Line> = figure
            .items
            .iter()
            .flat_map(|item| if let Item::Lines { lines, .. } = item { lines.clone() } else { Vec::new() })
            .collect();
        // Two brackets of three lines; CPU 6 has no lane here, so that CPU 2 is alone.
        assert_eq!(lines.len(), 6);
        assert!(lines[0].from.y == 0 && lines[0].to.y < 20 * PT && lines[3].from.y == 20 * PT, "{lines:?}");
    }

    #[test]
    fn names_of_lanes_do_not_overlap() {
        for n in [1, 16, 90, 130, 256, 1024, 4096] {
            let lanes = LaneLayout::new((0..n).map(|c| (Cpu(c), None)).collect(), 0, 700 * PT);
            let mut figure = Figure::new(1000 * PT, 800 * PT, "lanes");
            lanes.draw(&mut figure, 50 * PT, 900 * PT, "");
            let names = figure.items.iter().filter_map(|item| match item {
                Item::Text { at, size, .. } => Some((at.y, *size)),
                _ => None,
            });
            let names: Vec<(Unit, Unit)> = names.collect();
            assert!(names.windows(2).all(|w| w[1].0 - w[0].0 >= w[1].1), "{n} lanes");
            assert!(names.len() > 60.min(n as usize - 1), "{} names of {n} lanes", names.len());
        }
    }

    #[test]
    fn cpus_without_events_have_tinted_lanes() {
        let all: Vec<(Cpu, Option<u32>)> = (0..8).map(|cpu| (Cpu(cpu), None)).collect();
        let shown = [all[1], all[2], all[6]];
        let (layout, plain) = (LaneLayout::among(&shown, &all, 100, 8_000), LaneLayout::new(all.clone(), 100, 8_000));
        assert_eq!([0, 1, 2].map(|place| layout.top_of(place)), [1, 2, 6].map(|place| plain.top_of(place)));
        let mut figure = Figure::new(1000 * PT, 800 * PT, "lanes");
        layout.draw_silent(&mut figure, 10, 30);
        let tinted = |figure: &Figure| -> Vec<(Unit, Unit)> {
            let rects = figure.items.iter().flat_map(|item| match item {
                Item::Rects { fill: Paint::Solid(NO_EVENTS), rects } => rects.as_slice(),
                _ => &[],
            });
            rects.map(|rect| (rect.y, rect.h)).collect()
        };
        let expected = [0, 3, 4, 5, 7].map(|cpu| (100 + cpu * 1_000, plain.bar()));
        assert_eq!(tinted(&figure), expected);
        let mut figure = Figure::new(1000 * PT, 800 * PT, "lanes");
        LaneLayout::among(&all, &[], 100, 8_000).draw_silent(&mut figure, 10, 30);
        assert_eq!(tinted(&figure), []);
    }

    #[test]
    fn lanes_fill_the_height_and_do_not_overlap() {
        for n in [1u32, 4, 64, 512] {
            let cpus = (0..n).map(|c| (Cpu(c), Some(c / 16))).collect();
            let lanes = LaneLayout::new(cpus, 1000, 48_000);
            for i in 1..n as usize {
                assert!(lanes.top_of(i) >= lanes.top_of(i - 1) + lanes.pitch(), "{n} lanes");
            }
            assert!(lanes.bottom() <= 49_000 && lanes.bottom() > 46_000, "{n} lanes end at {}", lanes.bottom());
        }
    }
}
