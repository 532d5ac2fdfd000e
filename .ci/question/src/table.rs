//! The report as a table: a line for each CPU.

use crate::SampleReport;
use anyhow::Result;
use session::csv::CsvWriter;
use std::io::Write;

/// Writes the rows as comma-separated values.
pub(crate) fn table(report: &SampleReport, out: &mut dyn Write) -> Result<()> {
    let mut table = CsvWriter::new(out, "cpu,switches")?;
    for row in &report.cpus {
        table.row(&[&row.cpu.0, &row.switches])?;
    }
    table.finish()
}
