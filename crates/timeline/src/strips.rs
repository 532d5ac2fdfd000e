//! Pieces of lanes as rectangles on the page.

use crate::columns::{Piece, PieceClass, heights};
use crate::palette::{self, MIXED};
use crate::scale::TimeScale;
use draw::{Color, Figure, Item, Paint, Rect, Unit};
use sched::Ts;
use std::collections::BTreeMap;

/// The class that is left blank.
pub const BLANK: PieceClass = 0;
/// The class of time of which nothing is known: hatched.
pub const UNKNOWN: PieceClass = 1;
/// The class of time in which a CPU was offline: a line along the lane, nothing beside it.
pub const OFFLINE: PieceClass = 2;
/// The first class that a figure may use as it likes.
pub const FIRST: PieceClass = 3;
/// The class of the time of CPUs without any event, in a lane of several CPUs.
pub const SILENT: PieceClass = PieceClass::MAX - 1;
/// Several classes in one column, none of them large.
const MIXED_CLASS: PieceClass = PieceClass::MAX;

/// Steps in which the height of a share is drawn, where no other number is asked for.
const LEVELS: i32 = 16;

/// Edges are a multiple of this, where no other is asked for: a fourteen-hundredth of an inch, finer than any printer, and short
/// to write.
const GRID: Unit = 5;

/// Gathers the rectangles of many lanes by class, so that each colour is set once.
#[derive(Clone, Debug)]
pub struct Strips<'s> {
    scale: &'s TimeScale,
    depth: usize,
    levels: i32,
    grid: Unit,
    of_groups: bool,
    rects: BTreeMap<PieceClass, Vec<Rect>>,
    /// The rectangles that may still grow: the last ones of the lane, by class and place.
    open: Vec<(PieceClass, usize)>,
}

impl<'s> Strips<'s> {
    /// No rectangles yet, on this scale. `depth`: the number of classes that are drawn apart in a column that several
    /// share.
    pub fn new(scale: &'s TimeScale, depth: usize) -> Strips<'s> {
        Strips { scale, depth, levels: LEVELS, grid: GRID, of_groups: false, rects: BTreeMap::new(), open: Vec::new() }
    }

    /// Returns the same with the height of a share in this many steps.
    #[must_use]
    pub fn in_levels(self, levels: i32) -> Strips<'s> {
        Strips { levels, ..self }
    }

    /// Returns the same with edges at multiples of this, which keeps a file of very many intervals small.
    #[must_use]
    pub fn on_grid(self, grid: Unit) -> Strips<'s> {
        Strips { grid: grid.max(1), ..self }
    }

    /// Returns the same for lanes whose height is the time of several CPUs: offline ones take their share of it, under
    /// the upper edge.
    #[must_use]
    pub fn of_groups(self) -> Strips<'s> {
        Strips { of_groups: true, ..self }
    }

    fn place(&self, ts: Ts) -> Unit {
        let x = self.scale.at(ts);
        x - x % self.grid
    }

    /// Adds a lane whose bars go from `top` down to `top` + `bar`.
    pub fn add(&mut self, pieces: &[Piece], top: Unit, bar: Unit) {
        self.open.clear();
        for piece in pieces {
            match piece {
                Piece::Exact { class: BLANK, .. } => self.open.clear(),
                Piece::Exact { class: OFFLINE, start, end } => {
                    let (x, right, h) = (self.place(*start), self.place(*end), (bar / 8).max(1));
                    self.extend(&[(OFFLINE, Rect { x, y: top + (bar - h) / 2, w: right - x, h })]);
                }
                Piece::Exact { class, start, end } => {
                    let (x, right) = (self.place(*start), self.place(*end));
                    // An interval that is long and yet ends where it starts on the page is a
                    // figure narrower than its columns; it keeps one unit.
                    self.extend(&[(*class, Rect { x, y: top, w: (right - x).max(1), h: bar })]);
                }
                Piece::Shares { start, end, shares } => {
                    let (x, right) = (self.place(*start), self.place(*end));
                    let rects = self.stack(shares, Rect { x, y: top, w: right - x, h: bar });
                    self.extend(&rects);
                }
            }
        }
    }

    /// Adds rectangles side by side; one that continues its left neighbour extends it.
    fn extend(&mut self, new: &[(PieceClass, Rect)]) {
        let mut open = Vec::new();
        for (class, rect) in new.iter().filter(|(_, r)| r.w > 0 && r.h > 0) {
            let rects = self.rects.entry(*class).or_default();
            let continues = |r: &Rect| r.x + r.w == rect.x && (r.y, r.h) == (rect.y, rect.h);
            let joined = self.open.iter().find(|(c, i)| c == class && rects.get(*i).is_some_and(continues));
            let index = match joined {
                Some((_, index)) => {
                    rects[*index].w += rect.w;
                    *index
                }
                None => {
                    rects.push(*rect);
                    rects.len() - 1
                }
            };
            open.push((*class, index));
        }
        self.open = open;
    }

    /// Draws the gathered pieces, each class in the colour that `paint` gives it.
    pub fn draw(self, figure: &mut Figure, paint: impl Fn(PieceClass) -> Color) {
        for (class, rects) in self.rects {
            let fill = match class {
                UNKNOWN => Paint::Hatch,
                OFFLINE => Paint::Solid(palette::OFFLINE),
                SILENT => Paint::Solid(palette::NO_EVENTS),
                MIXED_CLASS => Paint::Solid(MIXED),
                class => Paint::Solid(paint(class)),
            };
            figure.push(Item::Rects { fill, rects });
        }
    }

    /// Stacks shares from below: the largest classes by number, then the mixed rest, then unknown time; blank time stays
    /// blank, as does offline time in the lane of one CPU. In a lane of several ones, offline and silent CPUs are on top.
    fn stack(&self, shares: &[(PieceClass, u64)], column: Rect) -> Vec<(PieceClass, Rect)> {
        let of = |class: PieceClass| shares.iter().find(|(c, _)| *c == class).map_or(0, |(_, ns)| *ns);
        let mut classes: Vec<(PieceClass, u64)> = shares.iter().filter(|(c, _)| is_of_a_figure(*c)).copied().collect();
        classes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let mixed: u64 = classes.get(self.depth..).map_or(0, |rest| rest.iter().map(|(_, ns)| ns).sum());
        classes.truncate(self.depth);
        classes.sort_unstable();
        let (blank, offline) = if self.of_groups { (of(BLANK), of(OFFLINE)) } else { (of(BLANK) + of(OFFLINE), 0) };
        classes.extend([(MIXED_CLASS, mixed), (UNKNOWN, of(UNKNOWN)), (BLANK, blank)]);
        classes.extend([(OFFLINE, offline), (SILENT, of(SILENT))]);
        let times: Vec<u64> = classes.iter().map(|(_, ns)| *ns).collect();
        let mut bottom = column.y + column.h;
        let mut rects = Vec::new();
        for ((class, _), h) in classes.iter().zip(heights(&times, column.h, self.levels)) {
            bottom -= h;
            if *class != BLANK {
                rects.push((*class, Rect { y: bottom.max(column.y), h, ..column }));
            }
        }
        rects
    }
}

/// Whether a class is one of those that a figure uses as it likes, rather than one of the classes that all figures share.
fn is_of_a_figure(class: PieceClass) -> bool {
    (FIRST..SILENT).contains(&class)
}

/// Whether one of these pieces has more than `depth` classes, so that some of them are mixed.
pub fn are_mixed<'p>(pieces: impl IntoIterator<Item = &'p Piece>, depth: usize) -> bool {
    pieces.into_iter().any(|piece| {
        matches!(piece, Piece::Shares { shares, .. } if shares.iter().filter(|(class, _)| is_of_a_figure(*class)).count() > depth)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_are_offline_or_silent_take_their_part_of_a_lane_of_several() {
        let scale = TimeScale { from: Ts(0), to: Ts(100), zero: Ts(0), x: 0, width: 1_000 };
        // Five CPUs for 20 ns: two tasks, an idle CPU, an offline one and one without events.
        let shares = [(BLANK, 20), (OFFLINE, 20), (FIRST, 30), (FIRST + 2, 10), (SILENT, 20)];
        let piece = Piece::Shares { start: Ts(20), end: Ts(40), shares: shares.to_vec() };
        let mut strips = Strips::new(&scale, 3).in_levels(10).of_groups();
        strips.add(&[piece], 1_000, 1_000);
        let rect = |y, h| vec![Rect { x: 200, y, w: 200, h }];
        let expected = [
            (OFFLINE, rect(1_200, 200)),
            (FIRST, rect(1_700, 300)),
            (FIRST + 2, rect(1_600, 100)),
            (SILENT, rect(1_000, 200)),
        ];
        assert_eq!(strips.rects, BTreeMap::from(expected));
        assert!(!are_mixed([&Piece::Shares { start: Ts(20), end: Ts(40), shares: shares.to_vec() }], 2));
        assert!(are_mixed([&Piece::Shares { start: Ts(20), end: Ts(40), shares: shares.to_vec() }], 1));
    }
}
