//! The rows of the report as a table: one line for each command, task or CPU.

use crate::{PreemptionRow, PreemptionsReport};
use anyhow::Result;
use session::csv::{CsvWriter, DISTRIBUTION, distribution, fields, known};
use std::fmt::Display;
use std::io::Write;

/// Writes the tables of the tasks that were asked and of those that profited as comma-separated values.
pub(crate) fn table(report: &PreemptionsReport, out: &mut dyn Write) -> Result<()> {
    let prefixed = |prefix: &str| DISTRIBUTION.map(|name| format!("{prefix}_{name}")).join(",");
    let columns = format!(
        "role,pid,cpu,command,requests,lazy,preempted,slept,kept,{},{},{},{}",
        prefixed("at_least"),
        prefixed("at_most"),
        prefixed("request_left"),
        prefixed("waited")
    );
    let mut table = CsvWriter::new(out, &columns)?;
    let asked = report.rows.iter().map(|row| ("asked", row));
    for (role, row) in asked.chain(report.profiteers.iter().map(|row| ("profited", row))) {
        let PreemptionRow { requests, lazy, preempted, slept, kept, .. } = row;
        let (pid, cpu) = (known(row.pid.or(row.group.as_ref().and_then(|group| group.process))), known(row.cpu));
        // The name of a group is empty where it is unknown.
        let command = row.group.as_ref().map_or_else(|| known(row.command), |group| known(group.name.as_ref()));
        let lengths = [&row.at_least, &row.at_most, &row.request_left, &row.profited].map(distribution);
        let mut all: Vec<&dyn Display> = vec![&role, &pid, &cpu, &command, requests, lazy, preempted, slept, kept];
        lengths.iter().for_each(|numbers| all.extend(fields(numbers)));
        table.row(&all)?;
    }
    table.finish()
}
