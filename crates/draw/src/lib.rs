//! Figures as data, and the devices that draw them.
//!
//! A [`Figure`] is a list of marks in hundredths of a point, independent of tasks, CPUs and
//! traces; it can be compared, counted and serialised. [`pdf`], [`svg`] and [`png`] are pure
//! functions of it: the same figure gives the same bytes on every machine.
//!
//! ```
//! use draw::{Color, Figure, Item, Paint, Rect};
//! let mut figure = Figure::new(200 * draw::PT, 100 * draw::PT, "an example");
//! figure.push(Item::Rects {
//!     fill: Paint::Solid(Color::rgb(0x40, 0x88, 0xb8)),
//!     rects: vec![Rect { x: 1000, y: 1000, w: 5000, h: 800 }],
//! });
//! assert!(draw::pdf(&[figure.clone()]).starts_with(b"%PDF-1.7"));
//! assert!(draw::svg(&figure).starts_with("<svg "));
//! ```

mod chart;
mod figure;
mod pdf;
mod pdf_font;
mod png;
mod svg;
pub mod text;
mod unit;

pub use chart::{ChartArea, ChartError};
pub use figure::{Anchor, Color, Figure, Item, Line, Paint, Point, Rect, Shape, Turn};
pub use pdf::{pdf, pdf_with_fonts};
pub use png::{PngError, png};
pub use svg::{svg, svg_among};
pub use unit::{PT, Unit};
