//! The other commands of the program, as far as the page shows their results.

use crate::drawing::{Drawing, Format};
use crate::missed::MissedSteals;

/// The other commands, for the traces that are shown. An error is the reason for which there is no answer.
pub trait Commands: Sync {
    /// A window as a figure of `dat2graph`.
    fn figure(&self, trace: usize, drawing: &Drawing, format: Format) -> Result<Vec<u8>, String>;

    /// The command line that draws the same figure.
    fn command(&self, trace: usize, drawing: &Drawing) -> Result<String, String>;

    /// The missed steals of a trace, as `why` counts them.
    fn missed_steals(&self, trace: usize) -> Result<MissedSteals, String>;
}
