//! The results of other commands that the page shows.

use super::missed;
use crate::session::Session;
use anyhow::{Context, Result};
use view::{Commands, Drawing, Format, MissedSteals};

/// The traces that are shown.
pub(super) struct Sessions<'s>(pub(super) &'s [Session]);

impl Sessions<'_> {
    fn of(&self, trace: usize) -> Result<&Session> {
        self.0.get(trace).context("no such trace")
    }
}

/// An answer to the page: the chain of an error becomes one line.
fn told<T>(answer: Result<T>) -> Result<T, String> {
    answer.map_err(|e| format!("{e:#}"))
}

impl Commands for Sessions<'_> {
    fn figure(&self, trace: usize, drawing: &Drawing, format: Format) -> Result<Vec<u8>, String> {
        told(self.draw(trace, drawing, format))
    }

    fn command(&self, trace: usize, drawing: &Drawing) -> Result<String, String> {
        told(self.line(trace, drawing))
    }

    fn missed_steals(&self, trace: usize) -> Result<MissedSteals, String> {
        told(self.of(trace).and_then(missed::of))
    }
}
