//! The rows of the report as a table: one line for each task.

use crate::{JobRow, JobTimes, JobsReport};
use anyhow::Result;
use session::csv::{CsvWriter, known, word};
use std::fmt::Display;
use std::io::Write;

/// Writes the tasks as comma-separated values.
pub(crate) fn table(report: &JobsReport, out: &mut dyn Write) -> Result<()> {
    let times = ["response", "run", "waited"]
        .map(|of| ["mean", "p50", "p90", "p99", "max"].map(|what| format!("{of}_{what}_ns")).join(","));
    let columns = format!("pid,command,jobs,earlier,period_ns,deadline_ns,deadline_by,missed,{}", times.join(","));
    let mut table = CsvWriter::new(out, &columns)?;
    for row in &report.tasks {
        let JobRow { pid, command, jobs, earlier, period_ns, deadline_ns, deadline_by, missed, .. } = row;
        let [period, deadline] = [period_ns, deadline_ns].map(|time| known(time.map(|time| time.0)));
        let (missed, by) = (known(*missed), deadline_by.map(word).transpose()?.unwrap_or_default());
        let times: Vec<u64> = [row.response, row.run, row.waited].iter().flat_map(numbers).collect();
        let mut all: Vec<&dyn Display> = vec![pid, command, jobs, earlier, &period, &deadline, &by, &missed];
        all.extend(times.iter().map(|time| time as &dyn Display));
        table.row(&all)?;
    }
    table.finish()
}

fn numbers(times: &JobTimes) -> [u64; 5] {
    let JobTimes { mean_ns, p50_ns, p90_ns, p99_ns, max_ns } = *times;
    [mean_ns, p50_ns, p90_ns, p99_ns, max_ns].map(|time| time.0)
}
