//! The stretches of every CPU as a table.

use anyhow::Result;
use lanes::Options;
use parse::{CpuReader, Want};
use sched::{Cpu, CpuFold, CpuSpan, Current};
use session::Session;
use session::csv::CsvWriter;
use std::io::Write;
use std::ops::ControlFlow;

/// The table on its way to the output.
type Stretches<'o> = CsvWriter<&'o mut dyn Write>;

/// Writes the table: CPU by CPU in display order, the spans of each tile the window. If tasks are chosen, the stretches of
/// the others are left out. One CPU is read at a time, so that no table is held.
pub(crate) fn table(session: &Session, options: &Options, out: &mut dyn Write) -> Result<()> {
    let mut table = CsvWriter::new(out, "cpu,start_ns,length_ns,what,pid,command")?;
    let reader = session.trace.cpu_reader(Want::Switches).map_err(|e| session.named(e))?;
    options.cpus.iter().try_for_each(|(cpu, _)| of_cpu(&reader, *cpu, options, &mut table))?;
    table.finish()
}

fn of_cpu(reader: &CpuReader<'_>, cpu: Cpu, options: &Options, table: &mut Stretches<'_>) -> Result<()> {
    let mut fold = CpuFold::new(cpu, options.from, options.to);
    let mut written = Ok(());
    let mut write = |span: &CpuSpan, written: &mut Result<()>| {
        let span = reader.named(span);
        if written.is_ok() && options.coloring.chooses(&span) {
            *written = row(&span, table);
        }
    };
    // Only the first buffer has the switches.
    for buffer in reader.buffers_of(cpu).into_iter().take(1) {
        reader.events(buffer, cpu, Some(options.from), &mut |event| {
            fold.apply(event, &mut |span| write(span, &mut written));
            if fold.is_done() || written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    fold.finish(&mut |span| write(span, &mut written));
    written
}

fn row(span: &CpuSpan, table: &mut Stretches<'_>) -> Result<()> {
    let (cpu, start, length) = (span.cpu, span.start.0, span.duration().0);
    let what = match span.current {
        Current::Task(pid) => return table.row(&[&cpu, &start, &length, &"task", &pid, &span.comm]),
        Current::Idle => "idle",
        Current::Unknown => "unknown",
        Current::Offline => "offline",
    };
    table.row(&[&cpu, &start, &length, &what, &"", &""])
}
