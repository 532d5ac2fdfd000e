//! The columns of the panels as a table.

use crate::Report;
use anyhow::Result;
use session::csv::{CsvWriter, known};
use std::io::Write;

/// Writes the columns as comma-separated values.
pub(crate) fn table(report: &Report, out: &mut dyn Write) -> Result<()> {
    let columns = "panel,start_s,running_mean,running_min,running_max,total_mean,total_min,total_max,violated_ns,unknown_ns,offline";
    let mut table = CsvWriter::new(out, columns)?;
    for panel in &report.panels {
        for c in &panel.columns {
            let (r, t) = (c.running, c.total);
            table.row(&[
                &panel.name,
                &format_args!("{:.9}", c.start_ns as f64 / 1e9),
                &format_args!("{:.6}", r.mean),
                &r.min,
                &r.max,
                &format_args!("{:.6}", t.mean),
                &t.min,
                &t.max,
                &known(c.violated_ns),
                &c.unknown_ns,
                &format_args!("{:.6}", c.offline),
            ])?;
        }
    }
    table.finish()
}
