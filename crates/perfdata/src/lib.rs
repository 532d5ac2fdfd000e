//! Reads perf.data files as traces: the samples of tracepoints are the events.
//!
//! In goes what `perf sched record`, or `perf record` with any tracepoints, wrote: files and streams (`-o -`), compressed or not,
//! of either byte order. Out comes a [`parse::Trace`], as one of a trace.dat is ([`open`]); call chains (`-g`) are those of
//! [`Trace::event_stacks`], counters read with the switches those of [`Trace::counters`]. Nothing here panics, whatever the
//! bytes. Begin reading in `scan.rs`, the one pass that finds the records of each CPU, then `units.rs`, which reads them on
//! demand.
//!
//! ```
//! use parse::{Options, Source};
//!
//! let source = Source::Memory(b"PERFILE2, and cut in its header".to_vec());
//! assert!(perfdata::is_perf_data(&source));
//! assert!(perfdata::open(source, Options::default()).is_err());
//! ```
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bytes;
mod counters;
mod decompress;
mod events;
mod header;
mod limits;
mod machine;
mod maps;
mod memberships;
mod record;
mod records;
mod scan;
mod switches;
#[cfg(test)]
mod tests;
mod units;

use crate::counters::PerfCounters;
use crate::header::PerfHeader;
use crate::machine::HeaderMachine;
use crate::scan::Scanned;
use crate::switches::Switches;
use crate::units::PerfUnits;
use parse::{CallChains, CpuUnits, Error, FileIssue, Options, Origin, Recording, Source, Trace};
use sched::event::CleanText;
use sched::{Counters, Cpu, Diagnostics};
use std::sync::Arc;
use transcript::TranscriptFacts;

/// Whether a file is a perf.data file, by its first bytes.
pub fn is_perf_data(source: &Source) -> bool {
    source.get(&(0..8)).is_some_and(|head| header::is_magic(&head))
}

/// Opens a perf.data file.
pub fn open(source: Source, options: Options) -> Result<Trace, Error> {
    Trace::of_recording(recording(source)?, options)
}

/// The content of the file: its header, and the places of its records.
fn recording(source: Source) -> Result<Recording, Error> {
    let (size, mut diagnostics) = (source.size(), Diagnostics::default());
    let mut header = PerfHeader::read(&source, &mut diagnostics)?;
    let mut found = scan::scan(&source, &mut header, &mut diagnostics)
        .map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
    if header.events.are_of_command() || header.machine.selects_tasks() {
        diagnostics.add(FileIssue::SomeTasks);
    }
    if let Some(switches) = found.switches.take_if(|switches| switches.transcript.records() > 0) {
        return of_switches(*switches, found, header, diagnostics);
    }
    let tracing_data = formats(&mut header, &found)?;
    let Scanned {
        cpus, sorted, compression, names: tasks, maps, memberships, lost_samples, lost_anywhere, is_cut, ..
    } = found;
    let marked = cpus.values().map(|records| records.lost).fold(0, u64::saturating_add);
    let machine = std::mem::take(&mut header.machine);
    let origin = origin(machine, compression, header.events.clock().into());
    let cpus: Vec<(u32, scan::CpuRecords)> = cpus.into_iter().collect();
    let lanes = cpus.iter().map(|(cpu, records)| (Cpu(*cpu), records.events, records.lost)).collect::<Vec<_>>();
    let endian = header.endian;
    let (names, more) = header.events.counter_names();
    if more {
        diagnostics.add_at(FileIssue::BeyondLimit, || "counters".to_owned());
    }
    let places = header.events.counter_places();
    let has_chains = header.events.have_chains();
    let units = Arc::new(PerfUnits::new(sorted.unwrap_or(source), size, endian, header.events, maps, cpus));
    let counters = (!names.is_empty())
        .then(|| Arc::new(PerfCounters { units: Arc::clone(&units), names, places }) as Arc<dyn Counters>);
    let chains = has_chains.then(|| Arc::clone(&units) as Arc<dyn CallChains>);
    let lane = |(number, (cpu, records, lost)): (usize, (Cpu, u64, u64))| CpuUnits {
        cpu,
        units: units.count(number),
        records,
        lost,
        is_cut,
    };
    let lanes = lanes.into_iter().enumerate().map(lane).collect();
    // The recorder's count at its end has the losses with a place in it, and those after the last event of a CPU.
    let lost_unmarked = lost_samples.saturating_sub(marked).max(lost_anywhere);
    Ok(Recording {
        origin,
        endian,
        tracing_data,
        names: tasks,
        lanes,
        units,
        counters,
        chains,
        memberships: memberships.into_records(),
        lost_unmarked,
        diagnostics,
    })
}

/// The facts about a recording.
fn origin(machine: HeaderMachine, compression: bool, clock: CleanText) -> Origin {
    let topology = machine.settled_topology();
    Origin {
        format: "perf.data",
        version: 2,
        compression: if compression { "zstd".into() } else { CleanText::default() },
        uname: machine.uname(),
        recorder: machine.perf.map(|version| format!("perf {version}").into()),
        clock,
        cpus: machine.cpus,
        topology,
        command: machine.command,
    }
}

/// The recording of switches without tracepoints.
fn of_switches(
    switches: Switches,
    found: Scanned,
    mut header: PerfHeader,
    mut diagnostics: Diagnostics,
) -> Result<Recording, Error> {
    diagnostics.add(FileIssue::NoContext);
    let clock = header.events.clock().into();
    let facts = TranscriptFacts {
        origin: origin(std::mem::take(&mut header.machine), found.compression, clock),
        names: found.names,
        memberships: found.memberships.into_records(),
        is_cut: found.is_cut,
        lost_unmarked: found.lost_anywhere,
        diagnostics,
    };
    switches.transcript.finish(facts).map_err(|source| Error::Io { path: std::env::temp_dir(), source })
}

/// The event formats, or why no event can be read.
fn formats(header: &mut PerfHeader, found: &Scanned) -> Result<Vec<u8>, Error> {
    let none = |why: &str| Err(Error::NoEvents { why: why.to_owned() });
    let (any, usable) = header.events.tracepoints();
    if let Some(formats) = header.tracing_data.take().filter(|_| usable) {
        return Ok(formats);
    }
    match (any, usable) {
        (_, true) if header.is_cut || found.is_cut => none(
            "the perf.data file was cut, or its recording was killed: its event formats, which perf writes last, are missing",
        ),
        (_, true) => none("the perf.data file has no event formats"),
        (true, false) => none("the samples of the perf.data file lack the time, the CPU or the fields of their events"),
        (false, false) if found.switches.as_ref().is_some_and(|switches| switches.of_tasks > 0) => none(
            "the perf.data file has the switches of single tasks, which do not show what ran beside them; record the machine: `perf record -a --switch-events`",
        ),
        (false, false) => none(
            "the perf.data file has no tracepoints; record with `perf sched record` or `perf record -a -e 'sched:*'`",
        ),
    }
}

/// Reads all records of all CPUs, in time order and by CPU; returns their number. The fuzz target calls this function.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> u64 {
    let source = Source::Memory(bytes.to_vec());
    if !is_perf_data(&source) {
        return 0;
    }
    let Ok(trace) = open(source, Options { threads: 1, ..Options::default() }) else { return 0 };
    let mut records = 0u64;
    let mut last = sched::Ts::MIN;
    let mut readings = trace.counters().map(sched::counters::Readings::of);
    trace.records(&mut |record| {
        if let Some(readings) = &mut readings {
            readings.at(record.cpu, record.ts);
        }
        assert!(record.ts >= last, "the records are in order");
        (last, records) = (record.ts, records.saturating_add(1));
        std::ops::ControlFlow::Continue(())
    });
    let counted: u64 = trace.counts().buffers.iter().map(parse::BufferCounts::total).sum();
    assert!(counted <= records, "an event without a number is a record as well");
    records
}
