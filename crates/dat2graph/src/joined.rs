//! The lanes of `schedviz dat2graph`: `--lanes`.

use crate::Dat2graphArgs;
use anyhow::{Result, bail};
use lanes::{LaneGroups, LanesOf, MANY_LANES, Options};
use sched::topology::CpuOrder;
use session::Session;
use session::args::needs_groups;

/// The option for which each CPU must have its own lane, if it is given.
fn needs_cpus(args: &Dat2graphArgs) -> Option<&'static str> {
    match () {
        () if args.draw_path => Some("--path"),
        () if args.path_to.is_some() => Some("--path-to"),
        () if args.wakeups => Some("--wakeups"),
        () if args.frequency => Some("--frequency"),
        () if args.host.host.is_some() => Some("--host"),
        () => None,
    }
}

/// Refuses lanes of groups where the topology lacks them, or where each CPU must have its own.
pub(crate) fn check(args: &Dat2graphArgs, session: &Session) -> Result<()> {
    let topology = &session.topology;
    let (option, order) = match args.lanes {
        None | Some(LanesOf::Cpu) => return Ok(()),
        Some(LanesOf::Core) if topology.is_empty() || LanesOf::Core.is_known(topology) => {
            ("--lanes core", CpuOrder::Number)
        }
        Some(LanesOf::Core) => {
            bail!(
                "--lanes core: the topology has no cores; lscpu -e -J does, and so do the lines that --topology takes"
            )
        }
        Some(LanesOf::Llc) => ("--lanes llc", CpuOrder::Llc),
        Some(LanesOf::Node) => ("--lanes node", CpuOrder::Node),
    };
    if let Some(other) = needs_cpus(args) {
        bail!("{other} is drawn CPU by CPU: give --lanes cpu with it rather than {option}");
    }
    // Without any topology it has no caches either.
    needs_groups(topology, if topology.is_empty() { CpuOrder::Llc } else { order }, option)
}

/// Joins the CPUs that share a lane: those of the groups that are asked for, or else of groups that make few enough lanes.
pub(crate) fn join(args: &Dat2graphArgs, session: &Session, options: &mut Options) {
    match args.lanes {
        Some(lanes) => options.groups = LaneGroups::new(lanes, options.drawn(), &session.topology),
        None if needs_cpus(args).is_none() => session.join_lanes(options),
        None => {}
    }
}

/// Names the way to fewer lanes where they cannot be distinguished.
pub(crate) fn advise(args: &Dat2graphArgs, session: &Session, options: &Options) {
    let usual = args.lanes.is_none() && needs_cpus(args).is_none();
    if usual && session.topology.is_empty() && options.lane_count() > MANY_LANES {
        session.read.message(&format!(
            "{} CPUs are more than {MANY_LANES} lanes; with the machine's topology (--topology, or a file of schedviz machine beside the \
             trace), caches or nodes have a lane each",
            options.lane_count()
        ));
    }
}
