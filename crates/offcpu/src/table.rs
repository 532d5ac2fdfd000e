//! The stacks of the report as a table: one line for each command and stack.

use crate::OffCpuReport;
use anyhow::Result;
use session::csv::{CsvWriter, known, word};
use std::io::Write;

/// Writes the stacks as comma-separated values, each with its functions from the outermost to the innermost one.
pub(crate) fn table(report: &OffCpuReport, out: &mut dyn Write) -> Result<()> {
    let mut table = CsvWriter::new(out, "command,kind,shown_by,asleep_ns,runnable_ns,switches,stack")?;
    for row in &report.stacks {
        let (kind, shown_by) = (word(row.kind)?, known(row.shown_by.as_deref()));
        let stack = row.frames.iter().rev().map(String::as_str).collect::<Vec<&str>>().join(";");
        table.row(&[&row.command, &kind, &shown_by, &row.asleep_ns.0, &row.runnable_ns.0, &row.switches, &stack])?;
    }
    table.finish()
}
