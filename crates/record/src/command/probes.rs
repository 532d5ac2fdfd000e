//! `record --why`: the probes on the load balancer.

use super::{RecordArgs, check, message};
use crate::plan::btf::{Btf, MAX_BYTES};
use crate::plan::probes::{KernelProbe, MOST_GROUPS, PARAMETERS, ProbeWriter, TRACEPOINTS};
use anyhow::{Context, Result};
use machine::{Machine, Root};
use parse::{Trace, Want};
use sched::event::CleanText;
use sched::{EventKind, EventSource, SchedEvent};
use session::warnings::grouped;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use tracefs::{Probes, Tracefs};

/// The decisions that probes record
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WhyProbes {
    /// The load balancer, throttling, requests to reschedule
    Balance,
    /// The same, and the numbers by which the fair class picks tasks: one record more at each switch
    Picks,
}

/// The probes for the kernel with this type information, on this machine, and its kinds of imbalance.
pub(crate) fn of_kernel(path: &Path, root: &Root, why: WhyProbes) -> Result<(Vec<KernelProbe>, Vec<CleanText>)> {
    let bytes = machine::read_bounded(path, MAX_BYTES as u64).with_context(|| {
        format!("--why needs the kernel's type information (CONFIG_DEBUG_INFO_BTF): {}", path.display())
    })?;
    let btf = Btf::parse(bytes).with_context(|| path.display().to_string())?;
    let kernel = ProbeWriter::new(&btf).with_cpus(root.possible());
    let mut probes = kernel.probes();
    if why == WhyProbes::Picks {
        // One level more than there is: the command can make groups of its own.
        probes.push(kernel.picks(machine::levels_of_groups(root, MOST_GROUPS) + 1));
    }
    Ok((probes, kernel.imbalances()))
}

/// Adds them, and prints which the kernel takes and the cost of each that it does not.
pub(crate) fn add(args: &RecordArgs, tracefs: &Tracefs, wished: &[KernelProbe]) -> Result<Probes> {
    let mut probes = Probes::none(tracefs);
    for probe in wished {
        let missing = if probe.alternatives.is_empty() {
            Some("this kernel has no such function".to_owned())
        } else {
            probes.add_any(&probe.alternatives)?.map(|refused| refused.reason)
        };
        let line = match missing {
            None => format!("probe {:<18} {}", probe.name, probe.purpose),
            Some(reason) => format!("probe {:<18} missing ({reason}): {}", probe.name, probe.cost),
        };
        args.note(&line);
    }
    if !wished.is_empty() && probes.names().is_empty() {
        message("this kernel takes none of the probes: the recording has the scheduler's events alone");
    }
    Ok(probes)
}

/// Prints the number of records of each probe on a tracepoint, since the kernel takes some for tracepoints that it does not have, and of changes of
/// parameters.
fn count(args: &RecordArgs, trace: &Trace) -> Result<()> {
    let format = |name| Some((trace.format_named(tracefs::GROUP, name)?.id, name));
    let counted: Vec<(u16, &str)> = TRACEPOINTS.into_iter().chain([PARAMETERS]).filter_map(format).collect();
    if counted.is_empty() {
        return Ok(());
    }
    let mut records = vec![0_u64; counted.len()];
    trace.events_of(Want::Everything)?.events(&mut |events| {
        for event in events {
            if let EventKind::Probe { id, .. } | EventKind::Other { id } = event.kind
                && let Some(place) = counted.iter().position(|(counted, _)| *counted == id)
            {
                records[place] += 1;
            }
        }
        ControlFlow::Continue(())
    })?;
    for ((_, name), records) in counted.iter().zip(records) {
        args.note(&format!("probe {name:<18} {}", sched::nouns::counted(records, "record")));
    }
    Ok(())
}

/// The hits that the kernel did not record since there were `before`.
pub(crate) fn missed_since(before: &BTreeMap<String, u64>, probes: &Probes) -> BTreeMap<CleanText, u64> {
    let since = |(name, number): (String, u64)| {
        let number = number.saturating_sub(before.get(&name).copied().unwrap_or(0));
        (number > 0).then(|| (name.into(), number))
    };
    probes.missed().into_iter().filter_map(since).collect()
}

/// Names the probes of which hits have no record, and those that the kernel has taken and that recorded nothing, although CPUs went idle: those
/// that fire then, or all. Analyses take the latter for not recorded.
pub(crate) fn check(args: &RecordArgs, trace: &Trace, machine: &Machine) -> Result<()> {
    count(args, trace)?;
    if !machine.missed_probes.is_empty() {
        let by_probe = machine.missed_by_probe();
        let text = format!(
            "{} of probes without a record ({by_probe}): the kernel records none within another one's handler, as of an interrupt that arrives meanwhile",
            sched::nouns::counted(machine.missed_hits(), "hit")
        );
        check::problem("MISSED", text, args.is_coloured());
    }
    let silent = trace.silent_probes();
    if silent.is_empty() {
        return Ok(());
    }
    let mut times = 0_u64;
    trace.events_of(Want::Switches)?.events(&mut |events| {
        let idles = |event: &&SchedEvent| matches!(event.kind, EventKind::Switch { next, .. } if next.pid.is_idle());
        times += events.iter().filter(idles).count() as u64;
        ControlFlow::Continue(())
    })?;
    if times == 0 {
        return Ok(());
    }
    let went_idle =
        if times == 1 { "a CPU went idle".to_owned() } else { format!("CPUs went idle {} times", grouped(times)) };
    let text = match silent.as_slice() {
        silent if trace.probe("load_balance").is_none() && silent.contains(&"load_balance") => format!(
            "no probe recorded anything, although {went_idle}: kprobes are switched off (debugfs kprobes/enabled, kernel.ftrace_enabled), and the probes count as not recorded"
        ),
        silent => format!(
            "no record by the probes {}, although {went_idle}: this kernel never calls the probed functions, and the probes count as not recorded",
            silent.join(", ")
        ),
    };
    check::problem("MISSING", text, args.is_coloured());
    Ok(())
}
