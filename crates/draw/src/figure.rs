//! A figure: marks in hundredths of a point, the origin at the upper left.

use serde::Serialize;

/// Hundredths of a point (1/7200 inch): fine enough for print, and an integer, so that a figure is
/// the same everywhere.
pub type Unit = i32;

/// One point.
pub const PT: Unit = 100;

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Color(pub [u8; 3]);

impl Color {
    /// Black.
    pub const BLACK: Color = Color([0, 0, 0]);
    /// White.
    pub const WHITE: Color = Color([255, 255, 255]);

    /// From red, green and blue.
    pub const fn rgb(r: u8, g: u8, b: u8) -> Color {
        Color([r, g, b])
    }

    /// A grey.
    pub const fn grey(level: u8) -> Color {
        Color([level; 3])
    }

    /// `#rrggbb`.
    pub fn hex(self) -> String {
        let [r, g, b] = self.0;
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// What an area is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Paint {
    /// One colour.
    Solid(Color),
    /// Diagonal lines on a light ground: nothing is known here.
    Hatch,
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Rect {
    pub x: Unit,
    pub y: Unit,
    pub w: Unit,
    pub h: Unit,
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Point {
    pub x: Unit,
    pub y: Unit,
}

/// Where a text's position is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

impl Anchor {
    /// How far left of its position a text of this width begins.
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
    /// From left to right.
    #[default]
    None,
    /// From bottom to top.
    Left,
    /// From top to bottom.
    Right,
    /// Upside down, from right to left.
    Over,
}

impl Turn {
    /// The angle in degrees, clockwise.
    pub(crate) fn degrees(self) -> i16 {
        match self {
            Turn::None => 0,
            Turn::Left => -90,
            Turn::Right => 90,
            Turn::Over => 180,
        }
    }

    /// The unit vector along the text, in the figure's coordinates.
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
    /// A triangle standing on its point.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A square.
    Square,
    /// A vertical bar.
    Bar,
    /// A triangle standing on its base.
    Peak,
}

impl Shape {
    /// All of them, in the order they are handed out.
    pub const ALL: [Shape; 5] = [Shape::Triangle, Shape::Diamond, Shape::Square, Shape::Peak, Shape::Bar];

    /// The corners of the shape around `at`.
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

/// A straight line.
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
    /// Filled rectangles.
    Rects { fill: Paint, rects: Vec<Rect> },
    /// Lines; `dash` is the length of dashes and of gaps, 0 for none.
    Lines { stroke: Color, width: Unit, dash: Unit, lines: Vec<Line> },
    /// Connected lines with round joins, each through its points; `dash` as for `Lines`.
    Polylines { stroke: Color, width: Unit, dash: Unit, polylines: Vec<Vec<Point>> },
    /// Filled polygons, each by its corners; where one overlaps itself it is filled too.
    Polygons { fill: Paint, polygons: Vec<Vec<Point>> },
    /// Markers, outlined in white so that they show on any ground.
    Markers { shape: Shape, fill: Color, size: Unit, at: Vec<Point> },
    /// One line of text, its baseline through `at`.
    Text { at: Point, size: Unit, anchor: Anchor, turn: Turn, fill: Color, text: String },
}

/// A figure of one page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Its width.
    pub width: Unit,
    /// Its height.
    pub height: Unit,
    /// Its title, for the document's properties.
    pub title: String,
    /// Its marks, from back to front.
    pub items: Vec<Item>,
}

impl Figure {
    /// An empty figure.
    pub fn new(width: Unit, height: Unit, title: &str) -> Figure {
        Figure { width, height, title: title.to_owned(), items: Vec::new() }
    }

    /// Puts an item in front; one without marks is left out.
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

    /// Puts a text in front. Characters beyond the standard PDF encoding are escaped.
    pub fn text(&mut self, at: Point, size: Unit, anchor: Anchor, fill: Color, text: &str) {
        let text = crate::text::printable(text);
        self.push(Item::Text { at, size, anchor, turn: Turn::None, fill, text });
    }

    /// How many marks it has.
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
