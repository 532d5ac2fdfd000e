//! The rows of the report as a table: one line for each measure of each task or command.

use crate::{LatencyReport, TasksBy};
use anyhow::Result;
use session::csv::{CsvWriter, DISTRIBUTION, distribution, fields, known, word};
use std::fmt::Display;
use std::io::Write;

/// Writes the table of measures as comma-separated values.
pub(crate) fn table(report: &LatencyReport, out: &mut dyn Write) -> Result<()> {
    let by_group = matches!(report.by, TasksBy::Process | TasksBy::Cgroup | TasksBy::Params | TasksBy::Stack);
    let of = if by_group { "process,group" } else { "pid,command" };
    let mut table = CsvWriter::new(out, &format!("{of},measure,{},began_before", DISTRIBUTION.join(",")))?;
    for row in &report.rows {
        // The group of a row is empty where it is unknown.
        let group = row.group.as_ref();
        let pid = known(row.pid.or(group.and_then(|group| group.process)));
        let name = group.map_or(row.command.map(|command| command.to_string()), |group| group.name.clone());
        let name = known(name);
        for named in &row.measures {
            let (measure, numbers) = (word(named.measure)?, distribution(&named.summary));
            let mut all: Vec<&dyn Display> = vec![&pid, &name, &measure];
            all.extend(fields(&numbers));
            all.push(&named.began_before);
            table.row(&all)?;
        }
    }
    table.finish()
}
