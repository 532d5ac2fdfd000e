//! Draws the colours of tasks as a figure: marks on a page, and the devices that draw them.
//!
//! `cargo run --example swatches > palette.svg`
#![allow(clippy::print_stdout)]

use draw::{Anchor, Figure, Item, PT, Paint, Point, Rect};
use timeline::PALETTE;

fn main() {
    let mut figure = Figure::new(330 * PT, 60 * PT, "the palette");
    for (i, color) in (0..).zip(PALETTE) {
        let x = (10 + 20 * i) * PT;
        let rects = vec![Rect { x, y: 10 * PT, w: 16 * PT, h: 25 * PT }];
        figure.push(Item::Rects { fill: Paint::Solid(color), rects });
        let at = Point { x: x + 8 * PT, y: 48 * PT };
        figure.text(at, 8 * PT, Anchor::Middle, draw::Color::BLACK, &i.to_string());
    }
    print!("{}", draw::svg(&figure));
}
