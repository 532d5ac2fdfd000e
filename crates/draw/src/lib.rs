//! Figures as data, and the devices that draw them.
//!
//! In goes a [`Figure`], a list of marks in hundredths of a point that knows nothing of tasks, CPUs and traces; out come the
//! bytes of a PDF, an SVG or a PNG ([`pdf`], [`svg`], [`png`]). The same figure gives the same bytes on every machine. Begin
//! reading in `figure.rs`, then `svg.rs`, the shortest device.
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
