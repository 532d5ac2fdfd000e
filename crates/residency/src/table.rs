//! The groups as a table: one line for each.

use crate::ResidencyReport;
use anyhow::Result;
use session::csv::{CsvWriter, known};
use std::io::Write;

const COLUMNS: &str = "group,tasks,run_ns,home_llc,residency_percent,home_node,node_residency_percent,home_occupancy,moves,\
    moves_per_second,returns_10ms,returns_100ms,beside_busy_percent,placements,placed_beside_llc,placed_beside_node,placed_beside_beyond";

/// Writes the table of groups as comma-separated values.
pub(crate) fn table(report: &ResidencyReport, out: &mut dyn Write) -> Result<()> {
    let mut table = CsvWriter::new(out, COLUMNS)?;
    for of in &report.groups {
        table.row(&[
            &of.name,
            &of.tasks,
            &of.run_ns.0,
            &known(of.home_llc),
            &known(of.residency_percent),
            &known(of.home_node),
            &known(of.node_residency_percent),
            &known(of.home_occupancy),
            &of.moves,
            &of.moves_per_second,
            &of.returns_10ms,
            &of.returns_100ms,
            &known(of.beside_busy_percent),
            &of.placements,
            &of.placed_beside.llc,
            &of.placed_beside.node,
            &of.placed_beside.beyond,
        ])?;
    }
    table.finish()
}
