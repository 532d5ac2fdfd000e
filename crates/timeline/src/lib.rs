//! The shared look of schedviz's figures: the page, the scales, the lanes, the palette, and the columns that stand for more than
//! fits.
//!
//! In go intervals and curves over time, out come marks of a [`draw::Figure`] with title, axis and legend. Begin reading in
//! `page.rs`, then `columns.rs`.
//!
//! ```
//! use sched::Ts;
//! use timeline::Division;
//!
//! // Two intervals of a window of 100 ns, and the parts of a stretch from 40 to 70 in each.
//! let mut parts = Vec::new();
//! Division::into_parts(Ts(0), Ts(100), 2).split(Ts(40), Ts(70), |part, from, to| parts.push((part, to.since(from).0)));
//! assert_eq!(parts, [(0, 10), (1, 20)]);
//! ```

pub mod axis;
pub mod causes;
pub mod columns;
mod cpu_lanes;
mod division;
mod drawable;
pub mod histogram;
pub mod lanes;
pub mod page;
mod page_address;
pub mod palette;
mod rows;
pub mod scale;
mod sheet;
mod steps;
pub mod strips;
pub mod table;
pub mod text;
mod turns;

pub use axis::{Axis, AxisUnit};
pub use columns::{Columns, Piece, PieceClass};
pub use cpu_lanes::CpuLanes;
pub use division::Division;
pub use drawable::{Drawable, Next};
pub use lanes::{LaneLayout, sibling_lanes};
pub use page::{LegendEntry, Page, Swatch};
pub use page_address::PageAddress;
pub use palette::PALETTE;
pub use rows::Rows;
pub use scale::{Tick, TimeScale};
pub use sheet::Sheet;
pub use steps::steps;
pub use turns::Turns;
