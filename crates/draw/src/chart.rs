//! Charts by plotters: a part of a [`Figure`] as a drawing backend.
//!
//! A chart that plotters draws on a [`ChartArea`] becomes marks of the figure, which the same devices write as all
//! other marks. A coordinate of plotters is a hundredth of a point: sizes of text, margins and strokes are given in
//! [`Unit`]s, such as `8 * PT`.
//!
//! ```
//! use draw::{ChartArea, Figure, PT, Rect};
//! use plotters::prelude::*;
//! let mut figure = Figure::new(300 * PT, 200 * PT, "squares");
//! let area = ChartArea::new(&mut figure, Rect { x: 0, y: 0, w: 300 * PT, h: 200 * PT }).into_drawing_area();
//! let size = 8 * PT as u32;
//! let mut chart = ChartBuilder::on(&area).margin(size).set_all_label_area_size(3 * size).build_cartesian_2d(0..10, 0..100)?;
//! chart.configure_mesh().label_style(("sans-serif", size)).draw()?;
//! chart.draw_series(LineSeries::new((0..=10).map(|x| (x, x * x)), BLUE.stroke_width(80)))?;
//! drop((chart, area));
//! assert!(draw::svg(&figure).contains("stroke-linejoin"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::figure::{Anchor, Color, Figure, Item, Paint, Point, Rect, Turn};
use crate::text;
use crate::unit::Unit;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};

/// The least width of a stroke, a quarter of a point. By default plotters' strokes are one coordinate wide, too thin
/// for a printer.
const HAIRLINE: Unit = 25;

/// The height of a capital letter of Helvetica, in thousandths of the size of the text.
const CAPITAL: i64 = 718;

/// The number of corners of the polygon that stands for a circle.
const CIRCLE: u32 = 48;

/// A part of a figure on which plotters draws.
///
/// Colours with an alpha below 1 are mixed with white, since marks are opaque and hide the marks behind them.
pub struct ChartArea<'f> {
    figure: &'f mut Figure,
    area: Rect,
}

/// The reason why a chart cannot be drawn: it has a bitmap. All other drawing succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartError;

impl std::fmt::Display for ChartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bitmap cannot become part of a figure; draw shapes instead")
    }
}

impl std::error::Error for ChartError {}

type Drawn = Result<(), DrawingErrorKind<ChartError>>;

impl<'f> ChartArea<'f> {
    /// Returns the part of the figure that `area` covers, in hundredths of a point from the figure's upper left corner.
    pub fn new(figure: &'f mut Figure, area: Rect) -> ChartArea<'f> {
        ChartArea { figure, area }
    }

    fn point(&self, (x, y): BackendCoord) -> Point {
        Point { x: self.area.x.saturating_add(x), y: self.area.y.saturating_add(y) }
    }

    fn points(&self, path: impl IntoIterator<Item = BackendCoord>) -> Vec<Point> {
        path.into_iter().map(|at| self.point(at)).collect()
    }

    /// Adds a connected line. It becomes a part of the item before it if that has the same look, so that a series of
    /// segments is one item.
    fn stroke(&mut self, style: &impl BackendStyle, points: Vec<Point>) {
        let Some(color) = opaque(style.color()) else { return };
        let thickness = Unit::try_from(style.stroke_width()).unwrap_or(Unit::MAX).max(HAIRLINE);
        if points.len() < 2 {
            return;
        }
        if let Some(Item::Polylines { stroke, width, dash: 0, polylines }) = self.figure.items.last_mut()
            && (*stroke, *width) == (color, thickness)
        {
            return polylines.push(points);
        }
        self.figure.push(Item::Polylines { stroke: color, width: thickness, dash: 0, polylines: vec![points] });
    }

    fn fill(&mut self, style: &impl BackendStyle, corners: Vec<Point>) {
        let Some(color) = opaque(style.color()) else { return };
        if corners.len() > 2 {
            self.figure.push(Item::Polygons { fill: Paint::Solid(color), polygons: vec![corners] });
        }
    }
}

/// Returns the colour mixed with white; `None` if it is transparent.
fn opaque(BackendColor { alpha, rgb: (r, g, b) }: BackendColor) -> Option<Color> {
    let alpha = alpha.clamp(0.0, 1.0);
    let mix = |level: u8| (255.0 - alpha * (255.0 - f64::from(level))).round() as u8;
    (alpha > 0.0).then(|| Color::rgb(mix(r), mix(g), mix(b)))
}

/// Returns the size of a text in whole units.
fn size_of(style: &impl BackendTextStyle) -> Unit {
    style.size().round().clamp(0.0, 1e6) as Unit
}

impl DrawingBackend for ChartArea<'_> {
    type ErrorType = ChartError;

    fn get_size(&self) -> (u32, u32) {
        let size = |length: Unit| u32::try_from(length).unwrap_or(0);
        (size(self.area.w), size(self.area.h))
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> Drawn {
        self.draw_circle(at, HAIRLINE as u32, &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        let points = self.points([from, to]);
        self.stroke(style, points);
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, fill: bool) -> Drawn {
        let (left, right) = (from.0.min(to.0), from.0.max(to.0));
        let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
        let corners = self.points([(left, top), (right, top), (right, bottom), (left, bottom)]);
        if fill {
            let (x, y) = (corners[0].x, corners[0].y);
            let rect = Rect { x, y, w: corners[2].x.saturating_sub(x), h: corners[2].y.saturating_sub(y) };
            if let Some(color) = opaque(style.color()) {
                self.figure.push(Item::Rects { fill: Paint::Solid(color), rects: vec![rect] });
            }
        } else {
            let closed = corners.iter().chain(&corners[..1]).copied().collect();
            self.stroke(style, closed);
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        let points = self.points(path);
        self.stroke(style, points);
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(&mut self, at: BackendCoord, radius: u32, style: &S, fill: bool) -> Drawn {
        let (center, radius) = (self.point(at), f64::from(radius));
        let corner = |nth: u32| {
            let angle = std::f64::consts::TAU * f64::from(nth) / f64::from(CIRCLE);
            let (y, x) = (radius * angle.sin(), radius * angle.cos());
            Point { x: center.x.saturating_add(x.round() as Unit), y: center.y.saturating_add(y.round() as Unit) }
        };
        if fill {
            self.fill(style, (0..CIRCLE).map(corner).collect());
        } else {
            self.stroke(style, (0..=CIRCLE).map(|nth| corner(nth % CIRCLE)).collect());
        }
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, vert: I, style: &S) -> Drawn {
        let corners = self.points(vert);
        self.fill(style, corners);
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, at: BackendCoord) -> Drawn {
        let Some(fill) = opaque(style.color()) else { return Ok(()) };
        let (position, size) = (style.anchor(), size_of(style));
        let anchor = match position.h_pos {
            HPos::Left => Anchor::Start,
            HPos::Center => Anchor::Middle,
            HPos::Right => Anchor::End,
        };
        let capital = (i64::from(size) * CAPITAL / 1000) as Unit;
        let down = match position.v_pos {
            VPos::Top => capital,
            VPos::Center => capital / 2,
            VPos::Bottom => 0,
        };
        let turn = match style.transform() {
            FontTransform::None => Turn::None,
            FontTransform::Rotate90 => Turn::Right,
            FontTransform::Rotate180 => Turn::Over,
            FontTransform::Rotate270 => Turn::Left,
        };
        // The step from the anchor to the baseline is perpendicular to the direction of reading.
        let (x, y) = turn.along();
        let corner = self.point(at);
        let at = Point { x: corner.x.saturating_sub(y * down), y: corner.y.saturating_add(x * down) };
        self.figure.push(Item::Text { at, size, anchor, turn, fill, text: text::printable(text) });
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<ChartError>> {
        let size = size_of(style);
        let width = text::width(&text::printable(text), size);
        Ok((u32::try_from(width).unwrap_or(0), u32::try_from(size).unwrap_or(0)))
    }

    fn blit_bitmap(&mut self, _: BackendCoord, _: (u32, u32), _: &[u8]) -> Drawn {
        Err(DrawingErrorKind::DrawingError(ChartError))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::style::{BLACK, BLUE, Color as _, IntoFont, RED, ShapeStyle, TextStyle};

    fn area(figure: &mut Figure) -> ChartArea<'_> {
        ChartArea::new(figure, crate::Rect { x: 1_000, y: 2_000, w: 4_000, h: 3_000 })
    }

    #[test]
    fn marks_stand_where_plotters_puts_them() {
        let mut figure = Figure::new(10_000, 10_000, "");
        let mut backend = area(&mut figure);
        backend.draw_line((0, 0), (10, 20), &ShapeStyle::from(&RED)).expect("drawn");
        backend.draw_line((10, 20), (30, 0), &ShapeStyle::from(&RED)).expect("drawn");
        backend.draw_rect((30, 40), (10, 20), &BLUE.mix(0.5), true).expect("drawn");
        backend.fill_polygon([(0, 0), (5, 0), (5, 5)], &BLACK.mix(0.0)).expect("drawn");
        let p = |x, y| Point { x: 1_000 + x, y: 2_000 + y };
        let line = Item::Polylines {
            stroke: crate::Color([255, 0, 0]),
            width: HAIRLINE,
            dash: 0,
            polylines: vec![vec![p(0, 0), p(10, 20)], vec![p(10, 20), p(30, 0)]],
        };
        let rects = vec![crate::Rect { x: 1_010, y: 2_020, w: 20, h: 20 }];
        assert_eq!(figure.items, [line, Item::Rects { fill: Paint::Solid(crate::Color([128, 128, 255])), rects }]);
    }

    #[test]
    fn texts_turn_about_their_anchors() {
        let style = |transform: FontTransform| {
            let font = ("sans-serif", 1_000).into_font().transform(transform);
            TextStyle::from(font).pos(plotters_backend::text_anchor::Pos::new(HPos::Center, VPos::Top))
        };
        let mut figure = Figure::new(10_000, 10_000, "");
        let mut backend = area(&mut figure);
        let turns = [FontTransform::None, FontTransform::Rotate90, FontTransform::Rotate180, FontTransform::Rotate270];
        for transform in turns {
            backend.draw_text("Wi", &style(transform), (100, 100)).expect("drawn");
        }
        let width = backend.estimate_text_size("Wi", &style(FontTransform::None)).expect("a size");
        assert_eq!(width, (944 + 222, 1_000));
        let placed: Vec<_> = figure
            .items
            .iter()
            .map(|item| match item {
                Item::Text { at, turn, anchor: Anchor::Middle, size: 1_000, .. } => (at.x - 1_100, at.y - 2_100, *turn),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [(0, 718, Turn::None), (-718, 0, Turn::Right), (0, -718, Turn::Over), (718, 0, Turn::Left)];
        assert_eq!(placed, expected);
    }

    #[test]
    fn a_bitmap_is_refused() {
        let mut figure = Figure::new(100, 100, "");
        assert!(area(&mut figure).blit_bitmap((0, 0), (1, 1), &[0; 3]).is_err());
        assert_eq!(figure.marks(), 0);
    }
}
