//! The PDF device. It uses the viewer's Helvetica, or embeds a font on request, and writes no dates.

use crate::figure::{Color, Figure, Item, Paint, Point};
use crate::pdf_font::{Font, Subset, deflate};
use crate::text;
use crate::unit::Unit;
use pdf_writer::types::{ColorSpaceOperand, LineJoinStyle, PaintType, TilingType};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

const FONT: Name<'static> = Name(b"F");
const HATCH: Name<'static> = Name(b"H");

/// Returns the figures as a PDF file, one page per figure. Its title is that of the first figure.
pub fn pdf(figures: &[Figure]) -> Vec<u8> {
    write(figures, &Font::Named)
}

/// Returns the same file with an embedded font, reduced to the characters in use: every viewer and every printer shows
/// the same letters.
pub fn pdf_with_fonts(figures: &[Figure]) -> Vec<u8> {
    write(figures, &Subset::of(figures).map_or(Font::Named, Font::Embedded))
}

fn write(figures: &[Figure], text_font: &Font) -> Vec<u8> {
    let [catalog, pages, font, hatch, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let page_id = |nth: usize| Ref::new(6 + 2 * nth as i32);
    let contents = |nth: usize| Ref::new(7 + 2 * nth as i32);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids((0..figures.len()).map(page_id)).count(figures.len() as i32);
    for (nth, figure) in figures.iter().enumerate() {
        let mut page = pdf.page(page_id(nth));
        page.media_box(Rect::new(0.0, 0.0, points(figure.width), points(figure.height)));
        page.parent(pages).contents(contents(nth));
        let mut resources = page.resources();
        resources.fonts().pair(FONT, font);
        resources.patterns().pair(HATCH, hatch);
        resources.finish();
        page.finish();
        pdf.stream(contents(nth), &deflate(&content(figure, text_font))).filter(Filter::FlateDecode);
    }
    text_font.write(&mut pdf, font, page_id(figures.len()));
    hatch_pattern(&mut pdf, hatch);
    let mut document = pdf.document_info(info);
    document.title(TextStr(figures.first().map_or("", |figure| &figure.title)));
    document.producer(TextStr(concat!("schedviz ", env!("CARGO_PKG_VERSION"))));
    document.finish();
    pdf.finish()
}

fn points(units: Unit) -> f32 {
    units as f32 / 100.0
}

/// Writes the hatch: a light ground with dark diagonal lines, three points apart.
fn hatch_pattern(pdf: &mut Pdf, id: Ref) {
    let mut content = Content::new();
    content.set_fill_gray(0.93).rect(0.0, 0.0, 3.0, 3.0).fill_nonzero();
    content.set_stroke_gray(0.45).set_line_width(0.4);
    content.move_to(-1.0, -1.0).line_to(4.0, 4.0).stroke();
    content.move_to(-1.0, 2.0).line_to(1.0, 4.0).stroke();
    content.move_to(2.0, -1.0).line_to(4.0, 1.0).stroke();
    let bytes = content.finish();
    let mut pattern = pdf.tiling_pattern(id, &bytes);
    pattern.paint_type(PaintType::Colored).tiling_type(TilingType::ConstantSpacing);
    pattern.bbox(Rect::new(0.0, 0.0, 3.0, 3.0)).x_step(3.0).y_step(3.0);
    pattern.resources();
    pattern.finish();
}

fn content(figure: &Figure, font: &Font) -> Vec<u8> {
    let mut c = Content::new();
    // This transformation makes all coordinates below integers: hundredths of a point from the upper left corner.
    c.save_state().transform([0.01, 0.0, 0.0, -0.01, 0.0, points(figure.height)]);
    c.set_fill_gray(1.0).rect(0.0, 0.0, figure.width as f32, figure.height as f32).fill_nonzero();
    for item in &figure.items {
        match item {
            Item::Rects { fill, rects } => {
                set_paint(&mut c, *fill);
                for r in rects {
                    c.rect(r.x as f32, r.y as f32, r.w as f32, r.h as f32);
                }
                c.fill_nonzero();
            }
            Item::Lines { stroke, width, dash, lines } => {
                set_stroke(&mut c, *stroke);
                set_pen(&mut c, *width, *dash);
                for line in lines {
                    c.move_to(line.from.x as f32, line.from.y as f32).line_to(line.to.x as f32, line.to.y as f32);
                }
                c.stroke();
            }
            Item::Polylines { stroke, width, dash, polylines } => {
                set_stroke(&mut c, *stroke);
                set_pen(&mut c, *width, *dash);
                c.set_line_join(LineJoinStyle::RoundJoin);
                polylines.iter().for_each(|points| polygon(&mut c, points));
                c.stroke().set_line_join(LineJoinStyle::MiterJoin);
            }
            Item::Polygons { fill, polygons } => {
                set_paint(&mut c, *fill);
                for corners in polygons {
                    polygon(&mut c, corners);
                    c.close_path();
                }
                c.fill_nonzero();
            }
            Item::Markers { shape, fill, size, at } => {
                set_fill(&mut c, *fill);
                c.set_stroke_gray(1.0).set_line_width(*size as f32 / 10.0).set_dash_pattern([], 0.0);
                for point in at {
                    polygon(&mut c, &shape.corners(*point, *size));
                    c.close_fill_nonzero_and_stroke();
                }
            }
            Item::Text { at, size, anchor, turn, fill, text } => {
                let back = anchor.back(text::width(text, *size));
                set_fill(&mut c, *fill);
                let (dx, dy) = turn.along();
                let (x, y) = ((at.x - dx * back) as f32, (at.y - dy * back) as f32);
                let (dx, dy) = (dx as f32, dy as f32);
                // The transformation turns the page upside down, so text is turned back. Adding zero avoids -0.
                let matrix = [dx, dy, dy, 0.0 - dx, x, y];
                let bytes = font.encode(text);
                c.begin_text().set_font(FONT, *size as f32).set_text_matrix(matrix).show(Str(&bytes)).end_text();
            }
        }
    }
    c.restore_state();
    c.finish().to_vec()
}

fn set_paint(c: &mut Content, fill: Paint) {
    match fill {
        Paint::Solid(color) => set_fill(c, color),
        Paint::Hatch => {
            c.set_fill_color_space(ColorSpaceOperand::Pattern).set_fill_pattern([], HATCH);
        }
    }
}

fn set_pen(c: &mut Content, width: Unit, dash: Unit) {
    let pattern: &[f32] = if dash > 0 { &[dash as f32] } else { &[] };
    c.set_line_width(width as f32).set_dash_pattern(pattern.iter().copied(), 0.0);
}

fn polygon(c: &mut Content, corners: &[Point]) {
    for (i, p) in corners.iter().enumerate() {
        if i == 0 {
            c.move_to(p.x as f32, p.y as f32);
        } else {
            c.line_to(p.x as f32, p.y as f32);
        }
    }
}

/// Returns the levels with three digits, which are enough to distinguish 256 levels.
fn levels(color: Color) -> [f32; 3] {
    color.0.map(|level| (f32::from(level) / 255.0 * 1000.0).round() / 1000.0)
}

fn set_fill(c: &mut Content, color: Color) {
    let [r, g, b] = levels(color);
    c.set_fill_rgb(r, g, b);
}

fn set_stroke(c: &mut Content, color: Color) {
    let [r, g, b] = levels(color);
    c.set_stroke_rgb(r, g, b);
}
