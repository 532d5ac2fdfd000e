//! A simulated run as a recording: whatever reads a trace reads it, `view` beside the trace itself.

mod layout;
mod pages;

use crate::engine::{EngineOptions, Policy, simulate};
use crate::model::Model;
use pages::{HEAD, PAGE, Pages};
use sched::Cpu;
use std::io::{self, Seek, Write};
use std::ops::ControlFlow;
use tracefs::TraceFile;

/// Writes the run of `model` under a policy as a trace.dat of this machine's byte order. `kernel` is the release that the file names.
///
/// A reader puts events of one instant in the order of their CPUs. Where the simulation has another one, such as a wakeup before the run
/// of the woken task, the later event is a nanosecond later in the file.
///
/// # Errors
///
/// Those of writing to `out`, and to a temporary file with the pages.
pub fn write_run(
    model: &Model,
    policy: &mut dyn Policy,
    options: &EngineOptions<'_>,
    kernel: &str,
    out: &mut (impl Write + Seek),
) -> io::Result<()> {
    let mut pages = Pages::new()?;
    let (mut record, mut failed) = (Vec::new(), Ok(()));
    let mut last = (0, Cpu(0));
    simulate(model, policy, options, &mut |event| {
        record.clear();
        if layout::record(&event, &mut record) {
            let at = u64::try_from(event.ts.0).unwrap_or(0).max(last.0 + u64::from(event.cpu != last.1));
            last = (at, event.cpu);
            failed = pages.add(event.cpu.index(), at, &record);
        }
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    failed?;
    pages.end()?;
    let file = TraceFile::of_formats(&layout::formats(), PAGE, HEAD, kernel);
    let cpus = pages.cpus();
    file.write(&cpus, &mut |cpu, out| pages.write(cpu, out), out)?;
    Ok(())
}
