//! The PNG device: antialiased drawing at any resolution, with an embedded font.

use crate::figure::{Color, Figure, Item, Paint, Point};
use crate::text;
use crate::unit::Unit;
use tiny_skia::{
    FillRule, FilterQuality, LineCap, LineJoin, Paint as Ink, Path, PathBuilder, Pattern, Pixmap, Rect, SpreadMode,
    Stroke, StrokeDash, Transform,
};
use ttf_parser::{Face, OutlineBuilder};

/// Liberation Sans, reduced to Latin-1; see `crates/draw/fonts/README.md`.
pub(crate) const FONT: &[u8] = include_bytes!("../fonts/sans.ttf");

/// The maximum number of pixels of a picture.
const MOST_PIXELS: f64 = 1e8;

/// The reason why there is no picture.
#[derive(Clone, Debug, PartialEq)]
pub enum PngError {
    /// The picture would have more than 100 million pixels, or none.
    Size {
        /// The requested resolution, in dots per inch.
        dpi: f64,
    },
    /// The picture could not be encoded.
    Encoding(String),
}

impl std::fmt::Display for PngError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PngError::Size { dpi } => {
                write!(f, "at {dpi} dots per inch the picture has no pixels, or more than 100 million")
            }
            PngError::Encoding(what) => write!(f, "the picture cannot be encoded: {what}"),
        }
    }
}

impl std::error::Error for PngError {}

/// Returns the figure as a PNG file with a resolution of `dpi` dots per inch.
pub fn png(figure: &Figure, dpi: f64) -> Result<Vec<u8>, PngError> {
    let scale = dpi / 7200.0;
    let size = |units: i32| (f64::from(units) * scale).ceil();
    let (w, h) = (size(figure.width), size(figure.height));
    if !(w >= 1.0 && h >= 1.0 && w * h <= MOST_PIXELS) {
        return Err(PngError::Size { dpi });
    }
    let mut canvas = Pixmap::new(w as u32, h as u32).ok_or(PngError::Size { dpi })?;
    canvas.fill(tiny_skia::Color::WHITE);
    let transform = Transform::from_scale(scale as f32, scale as f32);
    let tile = hatch_tile();
    let font = Face::parse(FONT, 0).map_err(|e| PngError::Encoding(e.to_string()))?;
    for item in &figure.items {
        draw(&mut canvas, item, transform, &tile, &font);
    }
    canvas.encode_png().map_err(|e| PngError::Encoding(e.to_string()))
}

fn solid(color: Color) -> Ink<'static> {
    let mut ink = Ink::default();
    let [r, g, b] = color.0;
    ink.set_color_rgba8(r, g, b, 255);
    ink
}

fn draw(canvas: &mut Pixmap, item: &Item, transform: Transform, tile: &Pixmap, font: &Face<'_>) {
    match item {
        Item::Rects { fill, rects } => {
            let ink = ink(*fill, tile);
            for r in rects {
                if let Some(rect) = Rect::from_xywh(r.x as f32, r.y as f32, r.w as f32, r.h as f32) {
                    canvas.fill_rect(rect, &ink, transform, None);
                }
            }
        }
        Item::Lines { stroke, width, dash, lines } => {
            let mut path = PathBuilder::new();
            for line in lines {
                path.move_to(line.from.x as f32, line.from.y as f32);
                path.line_to(line.to.x as f32, line.to.y as f32);
            }
            if let Some(path) = path.finish() {
                canvas.stroke_path(&path, &solid(*stroke), &pen(*width, *dash), transform, None);
            }
        }
        Item::Polylines { stroke, width, dash, polylines } => {
            let mut path = PathBuilder::new();
            polylines.iter().for_each(|points| through(&mut path, points));
            if let Some(path) = path.finish() {
                let pen = Stroke { line_join: LineJoin::Round, ..pen(*width, *dash) };
                canvas.stroke_path(&path, &solid(*stroke), &pen, transform, None);
            }
        }
        Item::Polygons { fill, polygons } => {
            let ink = ink(*fill, tile);
            for path in polygons.iter().filter_map(|corners| polygon(corners)) {
                canvas.fill_path(&path, &ink, FillRule::Winding, transform, None);
            }
        }
        Item::Markers { shape, fill, size, at } => {
            for point in at {
                if let Some(path) = polygon(&shape.corners(*point, *size)) {
                    canvas.fill_path(&path, &solid(*fill), FillRule::Winding, transform, None);
                    let outline = Stroke { width: *size as f32 / 10.0, ..Stroke::default() };
                    canvas.stroke_path(&path, &solid(Color::WHITE), &outline, transform, None);
                }
            }
        }
        Item::Text { at, size, anchor, turn, fill, text } => {
            let back = anchor.back(text::width(text, *size));
            let place = Transform::from_translate(at.x as f32, at.y as f32);
            let turned = place.pre_rotate(f32::from(turn.degrees()));
            let pen = turned.pre_translate(-back as f32, 0.0);
            if let Some(path) = outline(font, text, *size as f32) {
                canvas.fill_path(&path, &solid(*fill), FillRule::Winding, transform.pre_concat(pen), None);
            }
        }
    }
}

fn ink(fill: Paint, tile: &Pixmap) -> Ink<'_> {
    match fill {
        Paint::Solid(color) => solid(color),
        Paint::Hatch => {
            let scale = Transform::from_scale(25.0, 25.0);
            let shader = Pattern::new(tile.as_ref(), SpreadMode::Repeat, FilterQuality::Bilinear, 1.0, scale);
            Ink { shader, ..Ink::default() }
        }
    }
}

fn pen(width: Unit, dash: Unit) -> Stroke {
    let dash = if dash > 0 { StrokeDash::new(vec![dash as f32; 2], 0.0) } else { None };
    Stroke { width: width as f32, line_cap: LineCap::Butt, dash, ..Stroke::default() }
}

fn through(path: &mut PathBuilder, points: &[Point]) {
    for (i, p) in points.iter().enumerate() {
        if i == 0 {
            path.move_to(p.x as f32, p.y as f32);
        } else {
            path.line_to(p.x as f32, p.y as f32);
        }
    }
}

fn polygon(corners: &[Point]) -> Option<Path> {
    let mut path = PathBuilder::new();
    through(&mut path, corners);
    path.close();
    path.finish()
}

/// Returns one tile of the hatch, twelve pixels for three points.
fn hatch_tile() -> Pixmap {
    let Some(mut tile) = Pixmap::new(12, 12) else { unreachable!("twelve is not zero") };
    tile.fill(tiny_skia::Color::from_rgba8(0xed, 0xed, 0xed, 255));
    let mut path = PathBuilder::new();
    for (x0, y0, x1, y1) in [(-4.0, 16.0, 16.0, -4.0), (-4.0, 4.0, 4.0, -4.0), (8.0, 16.0, 16.0, 8.0)] {
        path.move_to(x0, y0);
        path.line_to(x1, y1);
    }
    if let Some(path) = path.finish() {
        let stroke = Stroke { width: 1.6, ..Stroke::default() };
        tile.stroke_path(&path, &solid(Color::grey(0x73)), &stroke, Transform::identity(), None);
    }
    tile
}

/// Returns the outline of a line of text with its baseline at the origin. The table of widths places the
/// characters, as in the other devices.
fn outline(font: &Face<'_>, text: &str, size: f32) -> Option<Path> {
    let mut pen = Pen { path: PathBuilder::new(), x: 0.0, scale: size / f32::from(font.units_per_em()) };
    let mut before = String::new();
    for c in text.chars() {
        if let Some(glyph) = font.glyph_index(c) {
            pen.x = text::width(&before, size as i32) as f32;
            font.outline_glyph(glyph, &mut pen);
        }
        before.push(c);
    }
    pen.path.finish()
}

struct Pen {
    path: PathBuilder,
    x: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
