//! The table, in the form of the task-stealing series.

use crate::columns::{Columns, speedup};
use crate::delta::{CpuDelta, DomainDelta};
use serde::Serialize;
use std::fmt::Write;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatRow {
    /// The name of the row: `base`, `new` or `trace`.
    pub name: String,
    /// The columns of the row.
    #[serde(flatten)]
    pub columns: Columns,
}

/// The report on two snapshots, or on two pairs of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The schema of the document: `schedviz/schedstat/1`.
    pub schema: &'static str,
    /// The version number of the snapshots.
    pub version: u32,
    /// The rows of the table.
    pub rows: Vec<StatRow>,
    /// The speedup of the second of two pairs, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_percent: Option<f64>,
    /// The differences of each CPU's counters.
    pub cpus: Vec<CpuDelta>,
    /// The load balancing by domain and kind of idleness.
    pub domains: Vec<DomainDelta>,
    /// Circumstances that limit the use of the numbers.
    pub warnings: Vec<String>,
}

impl Report {
    /// Returns the speedup of the row `new` over the row `base`, in percent.
    pub fn speedup_of(rows: &[StatRow]) -> Option<f64> {
        let time = |name: &str| rows.iter().find(|r| r.name == name).and_then(|r| r.columns.time_s);
        speedup(time("base")?, time("new")?)
    }
}

/// Returns the table of these rows. Columns without values are left out.
pub fn table(rows: &[StatRow]) -> String {
    type Get = fn(&Columns) -> Option<f64>;
    let columns: [(&str, usize, Get); 8] = [
        ("time", 3, |c| c.time_s),
        ("%busy", 2, |c| c.busy_percent),
        ("slice", 2, |c| c.slice_ms),
        ("sched", 0, |c| Some(c.sched)),
        ("idle", 0, |c| Some(c.idle)),
        ("wake", 0, |c| Some(c.wake)),
        ("%find", 2, |c| c.find_percent),
        ("steal", 0, |c| c.steal),
    ];
    let shown: Vec<_> = columns.iter().filter(|(_, _, get)| rows.iter().any(|r| get(&r.columns).is_some())).collect();
    let width = rows.iter().map(|r| r.name.chars().count()).max().unwrap_or(0).max(8);
    // Writing to a string cannot fail.
    let mut out = format!("{:width$}", "");
    for (name, ..) in &shown {
        let _ = write!(out, " {name:>8}");
    }
    out.push('\n');
    for row in rows {
        let _ = write!(out, "{:width$}", row.name);
        for (_, digits, get) in &shown {
            let digits = *digits;
            match get(&row.columns) {
                Some(value) => {
                    let _ = write!(out, " {value:>8.digits$}");
                }
                None => {
                    let _ = write!(out, " {:>8}", "-");
                }
            }
        }
        out.push('\n');
    }
    out
}

/// Returns the table of the load balancer's counters, with a line for each domain and kind of idleness.
pub fn domains_text(domains: &[DomainDelta]) -> String {
    let mut out = format!(
        "{:6} {:7} {:>8} {:>8} {:>7} {:>7} {:>7} {:>6} {:>7} {:>7}\n",
        "domain", "while", "attempts", "balanced", "failed", "success", "pulled", "hot", "nobusyq", "nobusyg"
    );
    for d in domains {
        let _ = writeln!(
            out,
            "{:6} {:7} {:>8} {:>8} {:>7} {:>7} {:>7} {:>6} {:>7} {:>7}",
            d.domain,
            d.idleness,
            d.count,
            d.balanced,
            d.failed,
            d.succeeded,
            d.gained,
            d.hot_gained,
            d.nobusyq,
            d.nobusyg
        );
    }
    out
}
