//! Figures of any events, by a specification that reads like its figure.
//!
//! In go TOML and a trace, out come a figure, a table and JSON. A [`Spec`] is understood from TOML, compared with the events of
//! the trace ([`Plan`]), and shown the events of a window in the order of time ([`Plot`]), which gives a [`PlotReport`]. Begin
//! reading in `spec.rs`, then `compile.rs` and `measure.rs`.
//!
//! ```
//! use plot::{Spec, explain};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let spec = Spec::parse(
//!     r#"
//! title = "Migrations"
//!
//! [[point]]
//! name = "migration"
//! event = "sched:sched_migrate_task"
//! "#,
//! )?;
//! println!("{}", explain(&spec));
//! # Ok(())
//! # }
//! ```

mod args;
mod before;
mod catalog;
pub(crate) mod color;
mod compile;
mod drawn;
mod explain;
pub mod expr;
mod figure;
mod look;
mod marks;
mod measure;
mod pairing;
mod picked;
mod question;
mod read_before;
mod recorded;
mod report;
mod rows;
mod seen;
mod series;
mod spec;
mod specified;
mod system_calls;
mod views;

pub use args::PlotArgs;
pub use before::{Before, Carried, CarriedPart};
pub use catalog::{Catalog, EventInfo};
pub use compile::Plan;
pub use drawn::{Bar, Drawn, MIXED, PointMark, Room, RowDrawn, WindowDrawn};
pub use explain::explain;
pub use figure::{Options, figure};
pub use measure::{Found, Plot, Window};
pub use question::{KeptPlot, PlotQuestion, check, kept, numbers, section};
pub use read_before::note;
pub use report::{IntervalReport, LaneOf, LookOf, PlotReport, PointReport, SeriesReport, ValueReport, text};
pub use seen::Event;
pub use series::LineReport;
pub use spec::*;
pub use views::{VIEWS, View};

/// A number with at most six significant digits.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let digits = (5.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
