//! The time of each class as a table: one line for each interval, or for each CPU.

use crate::{Shares, TimesByGroup, UtilizationReport};
use anyhow::Result;
use membership::TasksBy;
use session::csv::{CsvWriter, known, task_fields};
use std::fmt::Display;
use std::io::Write;

/// Writes the table: the machine by interval, or each CPU or each group of tasks over the whole window.
pub(crate) fn table(report: &UtilizationReport, per_cpu: bool, out: &mut dyn Write) -> Result<()> {
    const CLASSES: &str =
        "app_ns,other_ns,kernel_ns,stopper_ns,rt_ns,irq_ns,unknown_ns,offline_ns,idle_ns,injected_ns,rt_possible_ns";
    if let Some(groups) = &report.groups {
        return of_groups(groups, out);
    }
    if per_cpu {
        let mut table = CsvWriter::new(out, &format!("cpu,{CLASSES}"))?;
        report.cpus.iter().try_for_each(|of| row(&mut table, &[&of.cpu], &of.shares))?;
        table.finish()
    } else {
        let mut table = CsvWriter::new(out, &format!("start_in_trace_ns,length_ns,{CLASSES}"))?;
        let mut intervals = report.intervals.iter();
        intervals.try_for_each(|of| row(&mut table, &[&of.start_in_trace_ns, &of.length_ns.0], &of.shares))?;
        table.finish()
    }
}

/// Writes the time of each group of tasks.
fn of_groups(groups: &TimesByGroup, out: &mut dyn Write) -> Result<()> {
    let of = match groups.by {
        TasksBy::Task | TasksBy::Command => "pid,command",
        TasksBy::Process | TasksBy::Cgroup | TasksBy::Params | TasksBy::Stack => "process,group",
    };
    let mut table = CsvWriter::new(out, &format!("{of},run_ns,cpu_percent,tasks_percent"))?;
    for row in &groups.rows {
        let [pid, name] = task_fields(&row.of);
        table.row(&[&pid, &name, &row.run_ns, &row.cpu_percent, &row.tasks_percent])?;
    }
    table.finish()
}

/// Writes the row of a CPU or an interval: the time of each class, with an empty field for the application's if it is unknown.
fn row(table: &mut CsvWriter<&mut dyn Write>, of: &[&dyn Display], s: &Shares) -> Result<()> {
    let app = known(s.app_ns);
    let mut all = of.to_vec();
    all.push(&app);
    let of_tasks: [&dyn Display; 4] = [&s.other_ns, &s.kernel_ns, &s.stopper_ns, &s.rt_ns];
    let rest: [&dyn Display; 6] =
        [&s.irq_ns, &s.unknown_ns, &s.offline_ns, &s.idle_ns, &s.injected_ns, &s.rt_possible_ns];
    all.extend(of_tasks);
    all.extend(rest);
    table.row(&all)
}
