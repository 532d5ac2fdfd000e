//! The time of each class as a table: one line for each interval, or for each CPU.

use crate::{Shares, UtilizationReport};
use anyhow::Result;
use session::csv::known;
use std::io::Write;

/// Writes the table: the machine by interval, or each CPU over the whole window.
pub(crate) fn table(report: &UtilizationReport, per_cpu: bool, out: &mut dyn Write) -> Result<()> {
    const CLASSES: &str = "app_ns,other_ns,kernel_ns,stopper_ns,rt_ns,irq_ns,unknown_ns,offline_ns,idle_ns";
    if per_cpu {
        writeln!(out, "cpu,{CLASSES}")?;
        for of in &report.cpus {
            writeln!(out, "{},{}", of.cpu, fields(&of.shares))?;
        }
    } else {
        writeln!(out, "start_in_trace_ns,length_ns,{CLASSES}")?;
        for of in &report.intervals {
            writeln!(out, "{},{},{}", of.start_in_trace_ns, of.length_ns.0, fields(&of.shares))?;
        }
    }
    Ok(())
}

/// Returns the time of each class; an empty field for the application's if it is unknown.
fn fields(s: &Shares) -> String {
    let rest = [s.other_ns, s.kernel_ns, s.stopper_ns, s.rt_ns, s.irq_ns, s.unknown_ns, s.offline_ns, s.idle_ns];
    format!("{},{}", known(s.app_ns), rest.map(|ns| ns.to_string()).join(","))
}
