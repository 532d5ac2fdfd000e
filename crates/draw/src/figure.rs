//! A figure: marks in hundredths of a point, the origin at the upper left.

use crate::unit::Unit;
use serde::Serialize;

/// A colour, as levels of red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Color(pub [u8; 3]);

impl Color {
    /// The colour black.
    pub const BLACK: Color = Color([0, 0, 0]);
    /// The colour white.
    pub const WHITE: Color = Color([255, 255, 255]);

    /// Returns the colour with these levels of red, green and blue.
    pub const fn rgb(r: u8, g: u8, b: u8) -> Color {
        Color([r, g, b])
    }

    /// Returns the grey with this level.
    pub const fn grey(level: u8) -> Color {
        Color([level; 3])
    }

    /// Returns a pale form of the colour, for an area below its line: a third of it on white.
    #[must_use]
    pub fn pale(self) -> Color {
        Color(self.0.map(|level| (u16::from(level) / 3 + 170).min(255) as u8))
    }

    /// Returns the colour as `#rrggbb`.
    pub fn hex(self) -> String {
        let [r, g, b] = self.0;
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// The filling of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Paint {
    /// One colour throughout.
    Solid(Color),
    /// Diagonal lines on a light ground, for unknown values.
    Hatch,
}

/// A rectangle, by its upper left corner and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Rect {
    pub x: Unit,
    pub y: Unit,
    pub w: Unit,
    pub h: Unit,
}

/// A point of a figure, from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Point {
    pub x: Unit,
    pub y: Unit,
}

/// The part of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Anchor {
    /// The left end of the text is at its position.
    Start,
    /// The middle of the text is at its position.
    Middle,
    /// The right end of the text is at its position.
    End,
}

impl Anchor {
    /// Returns the distance from the beginning of a text of this width to its position.
    pub(crate) fn back(self, width: Unit) -> Unit {
        match self {
            Anchor::Start => 0,
            Anchor::Middle => width / 2,
            Anchor::End => width,
        }
    }
}

/// The direction in which a text reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Turn {
    /// The text reads from left to right.
    #[default]
    None,
    /// The text reads from bottom to top.
    Left,
    /// The text reads from top to bottom.
    Right,
    /// The text is upside down, and reads from right to left.
    Over,
}

impl Turn {
    /// Returns the angle in degrees, clockwise.
    pub(crate) fn degrees(self) -> i16 {
        match self {
            Turn::None => 0,
            Turn::Left => -90,
            Turn::Right => 90,
            Turn::Over => 180,
        }
    }

    /// Returns the unit vector along the text, in the coordinates of the figure.
    pub(crate) fn along(self) -> (Unit, Unit) {
        match self {
            Turn::None => (1, 0),
            Turn::Left => (0, -1),
            Turn::Right => (0, 1),
            Turn::Over => (-1, 0),
        }
    }
}

/// The form of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Shape {
    /// A triangle that points down.
    Triangle,
    /// A square that stands on a corner.
    Diamond,
    /// A square that stands on a side.
    Square,
    /// A narrow vertical bar.
    Bar,
    /// A triangle that points up.
    Peak,
}

impl Shape {
    /// All shapes, in the order of their use.
    pub const ALL: [Shape; 5] = [Shape::Triangle, Shape::Diamond, Shape::Square, Shape::Peak, Shape::Bar];

    /// Returns the corners of the shape around `at`.
    pub fn corners(self, at: Point, size: Unit) -> Vec<Point> {
        let r = size / 2;
        let offsets: &[(Unit, Unit)] = match self {
            Shape::Triangle => &[(-1, -1), (1, -1), (0, 1)],
            Shape::Peak => &[(-1, 1), (1, 1), (0, -1)],
            Shape::Diamond => &[(0, -1), (1, 0), (0, 1), (-1, 0)],
            Shape::Square => &[(-1, -1), (1, -1), (1, 1), (-1, 1)],
            Shape::Bar => &[(-1, -4), (1, -4), (1, 4), (-1, 4)],
        };
        let scale = |v: Unit| if self == Shape::Bar { v * r / 4 } else { v * r };
        offsets.iter().map(|(dx, dy)| Point { x: at.x + scale(*dx), y: at.y + scale(*dy) }).collect()
    }
}

/// A straight line between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Line {
    pub from: Point,
    pub to: Point,
}

/// A group of marks of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub enum Item {
    /// Rectangles that are filled.
    Rects { fill: Paint, rects: Vec<Rect> },
    /// Lines; `dash` is the length of the dashes and of the gaps between them, 0 for a solid line.
    Lines { stroke: Color, width: Unit, dash: Unit, lines: Vec<Line> },
    /// Connected lines with round joins, each through its points; `dash` is that of `Lines`.
    Polylines { stroke: Color, width: Unit, dash: Unit, polylines: Vec<Vec<Point>> },
    /// Filled polygons, each by its corners; a part where a polygon overlaps itself is filled too.
    Polygons { fill: Paint, polygons: Vec<Vec<Point>> },
    /// Markers with a white outline, which makes them visible on any ground.
    Markers { shape: Shape, fill: Color, size: Unit, at: Vec<Point> },
    /// One line of text, with its baseline through `at`.
    Text { at: Point, size: Unit, anchor: Anchor, turn: Turn, fill: Color, text: String },
}

/// A figure of one page.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The width of the page.
    pub width: Unit,
    /// The height of the page.
    pub height: Unit,
    /// The title in the properties of the document.
    pub title: String,
    /// The marks, from back to front.
    pub items: Vec<Item>,
}

impl Figure {
    /// Returns an empty figure of this size and title.
    pub fn new(width: Unit, height: Unit, title: &str) -> Figure {
        Figure { width, height, title: title.to_owned(), items: Vec::new() }
    }

    /// Adds an item in front of all others. An item without marks is left out.
    pub fn push(&mut self, item: Item) {
        let empty = match &item {
            Item::Rects { rects, .. } => rects.is_empty(),
            Item::Lines { lines, .. } => lines.is_empty(),
            Item::Polylines { polylines, .. } => polylines.is_empty(),
            Item::Polygons { polygons, .. } => polygons.is_empty(),
            Item::Markers { at, .. } => at.is_empty(),
            Item::Text { text, .. } => text.is_empty(),
        };
        if !empty {
            self.items.push(item);
        }
    }

    /// Adds a text in front of all other items. Characters beyond the standard PDF encoding are escaped.
    pub fn text(&mut self, at: Point, size: Unit, anchor: Anchor, fill: Color, text: &str) {
        let text = crate::text::printable(text);
        self.push(Item::Text { at, size, anchor, turn: Turn::None, fill, text });
    }

    /// Returns the figure with all lengths, texts included, multiplied by `numerator` / `denominator`.
    pub fn scaled(mut self, numerator: Unit, denominator: Unit) -> Figure {
        let (n, d) = (i64::from(numerator), i64::from(denominator.max(1)));
        let length = |v: &mut Unit| {
            *v = (i64::from(*v) * n).div_euclid(d).clamp(i64::from(Unit::MIN), i64::from(Unit::MAX)) as Unit;
        };
        // A stroke or a mark that exists keeps a width.
        let pen = |v: &mut Unit| {
            let least = Unit::from(*v > 0);
            length(v);
            *v = (*v).max(least);
        };
        let point = |p: &mut Point| {
            length(&mut p.x);
            length(&mut p.y);
        };
        length(&mut self.width);
        length(&mut self.height);
        for item in &mut self.items {
            match item {
                Item::Rects { rects, .. } => rects.iter_mut().for_each(|r| {
                    // Edges are scaled, not sizes: rectangles side by side stay side by side.
                    let (mut right, mut bottom) = (r.x.saturating_add(r.w), r.y.saturating_add(r.h));
                    [&mut r.x, &mut r.y, &mut right, &mut bottom].into_iter().for_each(length);
                    (r.w, r.h) = ((right - r.x).max(r.w.signum()), (bottom - r.y).max(r.h.signum()));
                }),
                Item::Lines { width, dash, lines, .. } => {
                    [width, dash].into_iter().for_each(pen);
                    lines.iter_mut().flat_map(|line| [&mut line.from, &mut line.to]).for_each(point);
                }
                Item::Polylines { width, dash, polylines, .. } => {
                    [width, dash].into_iter().for_each(pen);
                    polylines.iter_mut().flatten().for_each(point);
                }
                Item::Polygons { polygons, .. } => polygons.iter_mut().flatten().for_each(point),
                Item::Markers { size, at, .. } => {
                    pen(size);
                    at.iter_mut().for_each(point);
                }
                Item::Text { at, size, .. } => {
                    pen(size);
                    point(at);
                }
            }
        }
        self
    }

    /// Returns the number of marks.
    pub fn marks(&self) -> usize {
        let count = |item: &Item| match item {
            Item::Rects { rects, .. } => rects.len(),
            Item::Lines { lines, .. } => lines.len(),
            Item::Polylines { polylines, .. } => polylines.len(),
            Item::Polygons { polygons, .. } => polygons.len(),
            Item::Markers { at, .. } => at.len(),
            Item::Text { .. } => 1,
        };
        self.items.iter().map(count).sum()
    }
}
