//! The rows of the report as a table: one line for each measure of each task or command.

use crate::LatencyReport;
use anyhow::Result;
use session::csv::{CsvWriter, DISTRIBUTION, distribution, fields, known, word};
use std::fmt::Display;
use std::io::Write;

/// Writes the table of measures as comma-separated values.
pub(crate) fn table(report: &LatencyReport, out: &mut dyn Write) -> Result<()> {
    let columns = format!("pid,command,measure,{},began_before", DISTRIBUTION.join(","));
    let mut table = CsvWriter::new(out, &columns)?;
    for row in &report.rows {
        let pid = known(row.pid);
        for named in &row.measures {
            let (measure, numbers) = (word(named.measure)?, distribution(&named.summary));
            let mut all: Vec<&dyn Display> = vec![&pid, &row.command, &measure];
            all.extend(fields(&numbers));
            all.push(&named.began_before);
            table.row(&all)?;
        }
    }
    table.finish()
}
