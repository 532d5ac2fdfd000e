//! The edges of the report as a table: one line for each.

use crate::{WakeEdge, WakeParty, WakersReport};
use anyhow::Result;
use session::csv::{CsvWriter, DISTRIBUTION, distribution, fields, known};
use std::fmt::Display;
use std::io::Write;

/// The PID and the name of a node: of a process those of its first thread.
fn columns_of(party: &WakeParty) -> (String, String) {
    let WakeParty { pid, command, group } = party;
    let (leader, name) = group.as_ref().map_or((None, None), |group| (group.process, group.name.clone()));
    (known(pid.or(leader)), command.map(|command| command.to_string()).or(name).unwrap_or_default())
}

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
        let [(waker_pid, waker), (woken_pid, woken)] = [waker, woken].map(columns_of);
        let lengths = [&edge.slept, &edge.waited].map(distribution);
        let mut all: Vec<&dyn Display> = vec![&context, &waker_pid, &waker, &woken_pid, &woken];
        let [same_llc, other_llc] = [*same_llc, *other_llc].map(known);
        all.extend([wakeups, same_cpu].map(|number| number as &dyn Display));
        all.extend([&same_llc as &dyn Display, &other_llc, unknown_llc]);
        lengths.iter().for_each(|numbers| all.extend(fields(numbers)));
        table.row(&all)?;
    }
    table.finish()
}
