//! The edges of the report as a table: one line for each.

use crate::{WakeEdge, WakersReport};
use anyhow::Result;
use session::csv::{CsvWriter, DISTRIBUTION, distribution, fields, known};
use std::fmt::Display;
use std::io::Write;

/// Writes the edges as comma-separated values, those of tasks and those of interrupts.
pub(crate) fn table(report: &WakersReport, out: &mut dyn Write) -> Result<()> {
    let prefixed = |prefix: &str| DISTRIBUTION.map(|name| format!("{prefix}_{name}")).join(",");
    let columns = format!(
        "context,waker_pid,waker,woken_pid,woken,wakeups,same_cpu,same_llc,other_llc,unknown_llc,{},{}",
        prefixed("slept"),
        prefixed("waited")
    );
    let mut table = CsvWriter::new(out, &columns)?;
    let of_tasks = report.edges.iter().map(|edge| ("task", edge));
    for (context, edge) in of_tasks.chain(report.interrupts.iter().map(|edge| ("interrupt", edge))) {
        let WakeEdge { waker, woken, wakeups, same_cpu, same_llc, other_llc, unknown_llc, .. } = edge;
        let (waker_pid, woken_pid) = (known(waker.pid), known(woken.pid));
        let lengths = [&edge.slept, &edge.waited].map(distribution);
        let mut all: Vec<&dyn Display> = vec![&context, &waker_pid, &waker.command, &woken_pid, &woken.command];
        all.extend([wakeups, same_cpu, same_llc, other_llc, unknown_llc].map(|number| number as &dyn Display));
        lengths.iter().for_each(|numbers| all.extend(fields(numbers)));
        table.row(&all)?;
    }
    table.finish()
}
