//! The rows of the report as a table: one line for each command, task, group of tasks or CPU.

use crate::PicksReport;
use anyhow::Result;
use session::csv::{CsvWriter, DISTRIBUTION, distribution, fields, known};
use std::fmt::Display;
use std::io::Write;

/// Writes the rows as comma-separated values.
pub(crate) fn table(report: &PicksReport, out: &mut dyn Write) -> Result<()> {
    let prefixed = |prefix: &str| DISTRIBUTION.map(|name| format!("{prefix}_{name}")).join(",");
    let columns = format!(
        "pid,cpu,command,picks,unexplained,lag_count,lag_least_ns,lag_median_ns,lag_greatest_ns,debt_most_ns,debt_lasted_ns,debt_paid,{},{},{}",
        prefixed("late"),
        prefixed("requested"),
        prefixed("runs")
    );
    let mut table = CsvWriter::new(out, &columns)?;
    for row in &report.rows {
        let (pid, cpu) = (known(row.pid.or(row.group.as_ref().and_then(|group| group.process))), known(row.cpu));
        // The name of a group is empty where it is unknown.
        let command = row.group.as_ref().map_or_else(|| known(row.command), |group| known(group.name.as_ref()));
        let debt = row.longest_debt;
        let lag = [row.lag.least_ns, row.lag.median_ns, row.lag.greatest_ns].map(known);
        let debts = [
            known(debt.map(|debt| debt.most_ns.0)),
            known(debt.map(|debt| debt.lasted_ns.0)),
            known(debt.map(|debt| debt.paid)),
        ];
        let lengths = [&row.late, &row.requested, &row.runs].map(distribution);
        let mut all: Vec<&dyn Display> = vec![&pid, &cpu, &command, &row.picks, &row.unexplained, &row.lag.count];
        all.extend(fields(&lag));
        all.extend(fields(&debts));
        lengths.iter().for_each(|numbers| all.extend(fields(numbers)));
        table.row(&all)?;
    }
    table.finish()
}
