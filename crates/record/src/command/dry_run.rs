//! `record --dry-run`: a second of the command, for the rates.

use super::{RecordArgs, buffer_words};
use crate::kernel::available_kb;
use crate::plan::buffers::{Calibration, CpuRate, event_cost_ns, format_size};
use crate::signals::{Forwarder, exit_code};
use crate::traced::Traced;
use anyhow::{Result, bail};
use session::warnings::grouped;
use session::writer::print;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tracefs::Instance;

/// The length of a dry run.
const LENGTH: Duration = Duration::from_secs(1);

/// The length of the planned recording in seconds where --time does not give it.
const PLANNED: f64 = 10.0;

/// The number of markers by which the cost of an event is measured.
const MARKERS: u32 = 10_000;

/// Runs the command for a second and prints the rates.
pub(crate) fn run(args: &RecordArgs, instance: Instance, signals: &Forwarder) -> Result<ExitCode> {
    let mut cost = event_cost(&instance)?;
    let with_stack = if args.stacks { stack_cost(&instance)? } else { None };
    // A record with its stack is two: at most half of all records are stacks.
    cost = cost.map(|cost| with_stack.map_or(cost, |pair| cost.max(pair / 2.0)));
    let is_of_machine = args.command.is_empty();
    let mut traced = (!is_of_machine).then(|| Traced::spawn(&args.command, signals, None)).transpose()?;
    if let Some(signal) = signals.first() {
        return Ok(ExitCode::from(exit_code(signal)));
    }
    instance.start()?;
    let start = Instant::now();
    traced.as_mut().map_or(Ok(()), Traced::resume)?;
    while start.elapsed() < LENGTH && !traced.as_mut().is_some_and(Traced::has_ended) {
        std::thread::sleep(Duration::from_millis(10).min(LENGTH.saturating_sub(start.elapsed())));
    }
    instance.stop()?;
    let seconds = start.elapsed().as_secs_f64();
    if let Some(traced) = traced {
        traced.terminate();
        traced.wait(start)?;
    }
    let stats = instance.stats();
    instance.remove()?;
    if let Some(signal) = signals.first() {
        return Ok(ExitCode::from(exit_code(signal)));
    }
    let rates: Vec<CpuRate> = stats
        .iter()
        .map(|stats| CpuRate {
            cpu: stats.cpu,
            events: stats.recorded() + stats.lost(),
            bytes: stats.bytes,
            kept: stats.entries,
        })
        .collect();
    let Some(found) = Calibration::of(&rates, seconds, args.running.time.unwrap_or(PLANNED), cost) else {
        bail!("no event was recorded in {seconds:.3} s; is the command still starting?");
    };
    let mut text = text(&found);
    if args.stacks {
        text.push_str(&price(with_stack));
    }
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The cost of one event in nanoseconds: writing markers costs the same but for the event when recording is off.
fn event_cost(instance: &Instance) -> Result<Option<f64>> {
    let mut markers = instance.markers()?;
    let mut timed = || {
        let start = Instant::now();
        for _ in 0..MARKERS {
            // With recording off the kernel refuses the write, after the same way into it.
            let _ = markers.write_all(b"schedviz");
        }
        u64::try_from(start.elapsed().as_nanos())
    };
    instance.start()?;
    let on = timed()?;
    instance.stop()?;
    let off = timed()?;
    instance.clear()?;
    Ok(event_cost_ns(on, off, u64::from(MARKERS)))
}

/// The event of markers.
const MARKER: &str = "ftrace/print";

/// The cost of one event with the kernel's stack behind it in nanoseconds; nothing where the kernel has no trigger for markers.
fn stack_cost(instance: &Instance) -> Result<Option<f64>> {
    if instance.add_stacks(MARKER).is_err() {
        return Ok(None);
    }
    let cost = event_cost(instance);
    instance.remove_stacks(MARKER)?;
    cost
}

/// The price of stacks, for people.
fn price(with_stack: Option<f64>) -> String {
    match with_stack {
        Some(pair) => format!(
            "a switch or wakeup costs about {:.0} ns with its stack; the rates above have both records\n",
            pair.max(0.0)
        ),
        None => "the price of a stack is unknown; the rates above have the records of stacks\n".to_owned(),
    }
}

fn text(found: &Calibration) -> String {
    let mut out = String::new();
    let all_kb = found.buffer_kb.saturating_mul(found.cpus.len() as u64);
    let is_too_much = available_kb().is_some_and(|available| all_kb > available / 2);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "dry run of {:.3} s:", found.seconds);
    let _ = writeln!(out, "{:>6}  {:>12}  {:>12}", "CPU", "events/s", "kB/s");
    let rate = |events: u64| events as f64 / found.seconds;
    for cpu in found.cpus.iter().filter(|cpu| cpu.events > 0) {
        let kb = rate(cpu.events) * found.bytes_per_event / 1000.0;
        let _ = writeln!(out, "{:>6}  {:>12}  {kb:>12.0}", cpu.cpu, grouped(rate(cpu.events).round() as u64));
    }
    let all = found.events_per_second;
    let _ =
        writeln!(out, "{:>6}  {:>12}  {:>12.0}", "all", grouped(all.round() as u64), found.bytes_per_second / 1000.0);
    let _ = writeln!(
        out,
        "\nfor {} s: {}, a recording of about {}\nrecord with --buffer {}M{}",
        found.planned_seconds,
        buffer_words(found.buffer_kb),
        format_size((found.bytes_per_second * found.planned_seconds / 1024.0).ceil() as u64),
        found.buffer_kb.div_ceil(1 << 10),
        if is_too_much { ",\nor with --stream: these buffers need more than half of the available memory" } else { "" }
    );
    let _ = match found.slowdown_percent {
        Some(percent) => writeln!(
            out,
            "recording takes about {percent:.2} % of the time of the busiest CPU{}",
            found.busiest.map_or(String::new(), |cpu| format!(" (CPU {cpu})"))
        ),
        None => writeln!(out, "the cost of an event is unknown: no slowdown is estimated"),
    };
    out
}
