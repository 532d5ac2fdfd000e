//! The members as a table: one line for each, with its run lengths and its waits.

use crate::FairnessReport;
use anyhow::Result;
use session::csv::{DISTRIBUTION, distribution, quoted};
use std::io::Write;

/// Writes the table of members as comma-separated values.
pub(crate) fn table(report: &FairnessReport, out: &mut dyn Write) -> Result<()> {
    let of = |what: &str| DISTRIBUTION.map(|column| format!("{what}_{column}")).join(",");
    let shares = "run_ns,wait_ns,share_percent,expected_percent,weight,got_percent";
    writeln!(out, "member,{shares},{},{}", of("runs"), of("waits"))?;
    for m in &report.members {
        let (member, run, wait) = (quoted(&m.name), m.run_ns.0, m.wait_ns.0);
        let (runs, waits) = (distribution(&m.runs), distribution(&m.waits));
        let shares = format!("{},{},{},{}", m.share_percent, m.expected_percent, m.weight, m.got_percent);
        writeln!(out, "{member},{run},{wait},{shares},{runs},{waits}")?;
    }
    Ok(())
}
