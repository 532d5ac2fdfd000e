//! The threads of a guest's vCPUs by their names in the recording of its host (`docs/read-the-numbers.md#host-and-guest`).

use parse::{Error, Trace, Vcpu, Want};
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, EventKind, EventSource, Pid};
use std::ops::ControlFlow;

/// The result of a search for threads that are named as QEMU names those of vCPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedThreads {
    /// The threads with such names, one of each vCPU; empty if there is none.
    Found(Vec<Vcpu>),
    /// Such names are those of several guests: two threads have this one, or the guest has no such vCPU.
    Several(Comm),
}

/// The vCPU of a thread with this name: `CPU 3/KVM`, or `CPU 3/TCG` under emulation.
fn vcpu_of(name: Comm) -> Option<Cpu> {
    let rest = name.as_bytes().strip_prefix(b"CPU ")?;
    let number = rest.strip_suffix(b"/KVM").or_else(|| rest.strip_suffix(b"/TCG"))?;
    let is_number = number.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(number).ok().filter(|_| is_number)?.parse().ok().map(Cpu)
}

impl NamedThreads {
    /// Looks for the threads of a guest with this number of CPUs in all of its host's recording.
    pub(super) fn of(host: &Trace, cpus: u32) -> Result<NamedThreads, Error> {
        let mut found: SeededMap<Cpu, Pid> = SeededMap::default();
        let mut other = None;
        host.events_of(Want::Switches)?.events(&mut |events| {
            for event in events {
                let EventKind::Switch { prev, next, .. } = &event.kind else { continue };
                for task in [prev, next] {
                    let Some(vcpu) = vcpu_of(task.comm) else { continue };
                    if vcpu.0 >= cpus.min(Cpu::LIMIT) || *found.entry(vcpu).or_insert(task.pid) != task.pid {
                        other = Some(task.comm);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        let mut vcpus: Vec<Vcpu> = found.into_iter().map(|(vcpu, pid)| Vcpu { vcpu, pid }).collect();
        vcpus.sort_unstable_by_key(|known| known.vcpu);
        Ok(other.map_or(NamedThreads::Found(vcpus), NamedThreads::Several))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_tells_its_vcpu_by_its_name() {
        let vcpu = |name: &[u8]| vcpu_of(Comm::new(name)).map(|cpu| cpu.0);
        assert_eq!([b"CPU 0/KVM".as_slice(), b"CPU 17/TCG"].map(vcpu), [Some(0), Some(17)]);
        let others =
            [b"CPU 0".as_slice(), b"CPU /KVM", b"CPU +1/KVM", b"CPU 1/KVMX", b"CPU 99999999/KVM", b"qemu", b""];
        assert_eq!(others.map(vcpu), [None, None, None, None, Some(99_999_999), None, None]);
    }
}
