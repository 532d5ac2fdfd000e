//! The SVG device. A group of marks is one path with integer coordinates.

use crate::figure::{Anchor, Figure, Item, Paint, Point};
use crate::unit::Unit;
use std::fmt::Write;

const FONTS: &str = "Helvetica, Arial, 'Liberation Sans', sans-serif";

/// Returns the figure as an SVG document.
pub fn svg(figure: &Figure) -> String {
    document(figure, "h")
}

/// Returns the `nth` figure of an HTML page as SVG: its identifiers differ from those of the other figures.
pub fn svg_among(figure: &Figure, nth: usize) -> String {
    document(figure, &format!("h{nth}"))
}

fn document(figure: &Figure, hatch: &str) -> String {
    let mut out = String::new();
    let (w, h) = (figure.width, figure.height);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}pt\" height=\"{}pt\" viewBox=\"0 0 {w} {h}\" font-family=\"{FONTS}\">\n<title>{}</title>\n",
        f64::from(w) / 100.0,
        f64::from(h) / 100.0,
        escape(&figure.title)
    );
    let _ = writeln!(
        out,
        "<defs><pattern id=\"{hatch}\" width=\"300\" height=\"300\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 0h300v300h-300z\" fill=\"#ededed\"/><path d=\"M-100 400l500-500M-100 100l200-200M200 400l200-200\" stroke=\"#737373\" stroke-width=\"40\"/></pattern></defs>",
    );
    let _ = writeln!(out, "<path d=\"M0 0h{w}v{h}h-{w}z\" fill=\"#fff\"/>");
    for item in &figure.items {
        write_item(&mut out, item, hatch);
    }
    out.push_str("</svg>\n");
    out
}

/// Adds a command of a path: a letter and its numbers.
fn path(out: &mut String, letter: char, numbers: &[Unit]) {
    out.push(letter);
    for (i, number) in numbers.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        out.push_str(itoa::Buffer::new().format(*number));
    }
}

/// Adds a path through points, with absolute coordinates.
fn through(out: &mut String, points: &[Point]) {
    for (i, p) in points.iter().enumerate() {
        path(out, if i == 0 { 'M' } else { 'L' }, &[p.x, p.y]);
    }
}

fn paint(fill: Paint, hatch: &str) -> String {
    match fill {
        Paint::Solid(color) => color.hex(),
        Paint::Hatch => format!("url(#{hatch})"),
    }
}

fn dashes(dash: Unit) -> String {
    if dash > 0 { format!(" stroke-dasharray=\"{dash}\"") } else { String::new() }
}

fn write_item(out: &mut String, item: &Item, hatch: &str) {
    match item {
        Item::Rects { fill, rects } => {
            let fill = paint(*fill, hatch);
            let _ = write!(out, "<path fill=\"{fill}\" shape-rendering=\"crispEdges\" d=\"");
            let mut at = Point { x: 0, y: 0 };
            for (i, r) in rects.iter().enumerate() {
                let (x, y) = (r.x, r.y);
                match i {
                    0 => path(out, 'M', &[x, y]),
                    _ => path(out, 'm', &[x - at.x, y - at.y]),
                }
                path(out, 'h', &[r.w]);
                path(out, 'v', &[r.h]);
                path(out, 'h', &[-r.w]);
                out.push('z');
                at = Point { x, y };
            }
            out.push_str("\"/>\n");
        }
        Item::Lines { stroke, width, dash, lines } => {
            let dashes = dashes(*dash);
            let _ = write!(out, "<path stroke=\"{}\" stroke-width=\"{width}\"{dashes} d=\"", stroke.hex());
            for l in lines {
                path(out, 'M', &[l.from.x, l.from.y]);
                path(out, 'l', &[l.to.x - l.from.x, l.to.y - l.from.y]);
            }
            out.push_str("\"/>\n");
        }
        Item::Polylines { stroke, width, dash, polylines } => {
            let (stroke, dashes) = (stroke.hex(), dashes(*dash));
            let _ = write!(
                out,
                "<path fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes} d=\""
            );
            polylines.iter().for_each(|points| through(out, points));
            out.push_str("\"/>\n");
        }
        Item::Polygons { fill, polygons } => {
            let _ = write!(out, "<path fill=\"{}\" d=\"", paint(*fill, hatch));
            for corners in polygons {
                through(out, corners);
                out.push('z');
            }
            out.push_str("\"/>\n");
        }
        Item::Markers { shape, fill, size, at } => {
            let _ = write!(out, "<path fill=\"{}\" stroke=\"#fff\" stroke-width=\"{}\" d=\"", fill.hex(), size / 10);
            for point in at {
                through(out, &shape.corners(*point, *size));
                out.push('z');
            }
            out.push_str("\"/>\n");
        }
        Item::Text { at, size, anchor, turn, fill, text } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let (x, y) = (at.x, at.y);
            let turn = match turn.degrees() {
                0 => String::new(),
                degrees => format!(" transform=\"rotate({degrees} {x} {y})\""),
            };
            let fill = fill.hex();
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\"{anchor}{turn} xml:space=\"preserve\">{}</text>",
                escape(text)
            );
        }
    }
}

/// Escapes markup and replaces control characters, so that a name in a trace cannot add elements to a
/// figure.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_stays_text() {
        assert_eq!(escape("<script>&\"\x1b"), "&lt;script&gt;&amp;&quot;\u{fffd}");
    }
}
