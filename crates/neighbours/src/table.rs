//! The pairs as a table: one line for each.

use crate::NeighboursReport;
use anyhow::Result;
use session::csv::{CsvWriter, word};
use std::io::Write;

/// Writes the table of pairs as comma-separated values.
pub(crate) fn table(report: &NeighboursReport, out: &mut dyn Write) -> Result<()> {
    let mut table = CsvWriter::new(out, "victim,culprit,kind,wait_ns,share_percent,preemptions")?;
    for pair in &report.pairs {
        let kind = word(pair.kind)?;
        table.row(&[&pair.victim, &pair.culprit, &kind, &pair.wait_ns.0, &pair.share_percent, &pair.preemptions])?;
    }
    table.finish()
}
