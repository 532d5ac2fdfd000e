//! Pieces of lanes as rectangles on the page.

use crate::columns::{Class, Piece, heights};
use crate::palette::{self, MIXED};
use crate::scale::TimeScale;
use draw::{Color, Figure, Item, Paint, Rect, Unit};
use sched::Ts;
use std::collections::BTreeMap;

/// The class that is left blank.
pub const BLANK: Class = 0;
/// The class of time of which nothing is known: hatched.
pub const UNKNOWN: Class = 1;
/// The class of time in which a CPU was offline: a line along the lane, nothing beside it.
pub const OFFLINE: Class = 2;
/// The first class that a figure may use as it likes.
pub const FIRST: Class = 3;
/// Several classes in one column, none of them large.
const MIXED_CLASS: Class = Class::MAX;

/// Steps in which the height of a share is drawn.
const LEVELS: i32 = 16;

/// Edges are a multiple of this: a fourteen-hundredth of an inch, finer than any printer, and short
/// to write.
const GRID: Unit = 5;

/// Gathers the rectangles of many lanes by class, so that each colour is set once.
#[derive(Clone, Debug)]
pub struct Strips<'s> {
    scale: &'s TimeScale,
    depth: usize,
    rects: BTreeMap<Class, Vec<Rect>>,
    /// Those that may still grow: the last ones of the lane.
    open: Vec<(Class, usize)>,
}

impl<'s> Strips<'s> {
    /// On this scale; `depth` classes of a column that several share are drawn apart.
    pub fn new(scale: &'s TimeScale, depth: usize) -> Strips<'s> {
        Strips { scale, depth, rects: BTreeMap::new(), open: Vec::new() }
    }

    fn place(&self, ts: Ts) -> Unit {
        let x = self.scale.at(ts);
        x - x % GRID
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
                    let rects = stack(shares, self.depth, Rect { x, y: top, w: right - x, h: bar });
                    self.extend(&rects);
                }
            }
        }
    }

    /// Adds rectangles side by side; one that continues its left neighbour extends it.
    fn extend(&mut self, new: &[(Class, Rect)]) {
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

    /// Draws the gathered pieces.
    pub fn draw(self, figure: &mut Figure, paint: impl Fn(Class) -> Color) {
        for (class, rects) in self.rects {
            let fill = match class {
                UNKNOWN => Paint::Hatch,
                OFFLINE => Paint::Solid(palette::OFFLINE),
                MIXED_CLASS => Paint::Solid(MIXED),
                class => Paint::Solid(paint(class)),
            };
            figure.push(Item::Rects { fill, rects });
        }
    }
}

/// Stacks shares from below: the largest classes by number, then the mixed rest, then unknown
/// time; blank and offline time stays blank on top.
fn stack(shares: &[(Class, u64)], depth: usize, column: Rect) -> Vec<(Class, Rect)> {
    let of = |class: Class| shares.iter().find(|(c, _)| *c == class).map_or(0, |(_, ns)| *ns);
    let mut classes: Vec<(Class, u64)> = shares.iter().filter(|(c, _)| *c >= FIRST).copied().collect();
    classes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let mixed: u64 = classes.get(depth..).map_or(0, |rest| rest.iter().map(|(_, ns)| ns).sum());
    classes.truncate(depth);
    classes.sort_unstable();
    classes.extend([(MIXED_CLASS, mixed), (UNKNOWN, of(UNKNOWN)), (BLANK, of(BLANK) + of(OFFLINE))]);
    let times: Vec<u64> = classes.iter().map(|(_, ns)| *ns).collect();
    let mut bottom = column.y + column.h;
    let mut rects = Vec::new();
    for ((class, _), h) in classes.iter().zip(heights(&times, column.h, LEVELS)) {
        bottom -= h;
        if *class != BLANK {
            rects.push((*class, Rect { y: bottom.max(column.y), h, ..column }));
        }
    }
    rects
}
