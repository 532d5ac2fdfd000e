//! `record --why`: the probes on the load balancer.

use super::{RecordArgs, message};
use anyhow::{Context, Result};
use record::btf::Btf;
use record::probes::{Kernel, Probe};
use std::path::Path;
use tracefs::{Probes, Tracefs};

/// The probes for the kernel with this type information, on a machine with this many possible CPUs.
pub(crate) fn of_kernel(path: &Path, cpus: u32) -> Result<Vec<Probe>> {
    let bytes = machine::read_bounded(path, record::btf::MAX_BYTES as u64).with_context(|| {
        format!("--why needs the kernel's type information (CONFIG_DEBUG_INFO_BTF): {}", path.display())
    })?;
    let btf = Btf::parse(bytes).with_context(|| path.display().to_string())?;
    Ok(Kernel::new(&btf).with_cpus(cpus).probes())
}

/// Adds them, and prints which the kernel takes and the cost of each that it does not.
pub(crate) fn add(args: &RecordArgs, tracefs: &Tracefs, wished: &[Probe]) -> Result<Probes> {
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
