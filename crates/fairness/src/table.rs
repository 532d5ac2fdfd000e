//! The members as a table: one line for each, with its run lengths and its waits.

use crate::FairnessReport;
use anyhow::Result;
use session::csv::{CsvWriter, DISTRIBUTION, distribution, fields};
use std::fmt::Display;
use std::io::Write;

/// Writes the table of members as comma-separated values.
pub(crate) fn table(report: &FairnessReport, out: &mut dyn Write) -> Result<()> {
    let of = |what: &str| DISTRIBUTION.map(|column| format!("{what}_{column}")).join(",");
    let shares = "run_ns,wait_ns,share_percent,expected_percent,weight,got_percent";
    let mut table = CsvWriter::new(out, &format!("member,{shares},{},{}", of("runs"), of("waits")))?;
    for m in &report.members {
        let (runs, waits) = (distribution(&m.runs), distribution(&m.waits));
        let mut all: Vec<&dyn Display> =
            vec![&m.name, &m.run_ns.0, &m.wait_ns.0, &m.share_percent, &m.expected_percent, &m.weight, &m.got_percent];
        all.extend(fields(&runs).chain(fields(&waits)));
        table.row(&all)?;
    }
    if let Some(rest) = &report.without_time {
        let (name, runs, waits) = (rest.name(), distribution(&rest.runs), distribution(&rest.waits));
        // It has no share, and none is expected.
        let mut all: Vec<&dyn Display> = vec![&name, &0, &0, &0.0, &"", &"", &""];
        all.extend(fields(&runs).chain(fields(&waits)));
        table.row(&all)?;
    }
    table.finish()
}
