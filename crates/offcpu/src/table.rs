//! The stacks of the report as a table: one line for each command and stack.

use crate::OffCpuReport;
use anyhow::Result;
use sched::Comm;
use session::csv::{CsvWriter, known, word};
use std::io::Write;

/// Writes the stacks as comma-separated values, each with its functions from the outermost to the innermost one.
pub(crate) fn table(report: &OffCpuReport, out: &mut dyn Write) -> Result<()> {
    let mut table =
        CsvWriter::new(out, "command,kind,shown_by,asleep_ns,runnable_ns,switches,stack,woken_in,waker,waker_stack")?;
    for row in &report.stacks {
        let (kind, shown_by) = (word(row.kind)?, known(row.shown_by.as_deref()));
        let joined = |frames: &[String]| frames.iter().rev().map(String::as_str).collect::<Vec<&str>>().join(";");
        let stack = joined(&row.frames);
        let (mut woken_in, mut waker, mut waker_stack) = (String::new(), Comm::EMPTY, String::new());
        if let Some(by) = &row.waker {
            (woken_in, waker, waker_stack) = (word(by.context)?, by.command, joined(&by.frames));
        }
        let [asleep, runnable] = [row.asleep_ns, row.runnable_ns].map(|time| known(time.map(|time| time.0)));
        let switches = row.switches;
        let columns: [&dyn std::fmt::Display; 10] =
            [&row.command, &kind, &shown_by, &asleep, &runnable, &switches, &stack, &woken_in, &waker, &waker_stack];
        table.row(&columns)?;
    }
    table.finish()
}
