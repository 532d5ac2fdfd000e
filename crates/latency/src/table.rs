//! The rows of the report as a table: one line for each measure of each task or command.

use crate::LatencyReport;
use anyhow::Result;
use session::csv::{DISTRIBUTION, distribution, known, quoted, word};
use std::io::Write;

/// Writes the table of measures as comma-separated values.
pub(crate) fn table(report: &LatencyReport, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "pid,command,measure,{},began_before", DISTRIBUTION.join(","))?;
    for row in &report.rows {
        let (pid, command) = (known(row.pid), row.command.to_string());
        for named in &row.measures {
            let measure = word(named.measure)?;
            let (command, numbers) = (quoted(&command), distribution(&named.summary));
            writeln!(out, "{pid},{command},{measure},{numbers},{}", named.began_before)?;
        }
    }
    Ok(())
}
