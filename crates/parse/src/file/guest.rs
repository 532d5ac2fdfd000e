//! A guest in its host's file: the option GUEST (`docs/trace-dat.md`, section 9).

use crate::bytes::{Bytes, Eof};
use crate::limits;
use sched::event::CleanText;
use sched::seeded::SeededSet;
use sched::{Cpu, Pid};
use serde::Serialize;

/// A guest that was recorded together with its host, as the host's file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Guest {
    /// The name of the guest.
    pub name: CleanText,
    /// The trace id of the guest's recording.
    pub trace_id: u64,
    /// The vCPUs with the PID of the host's thread that runs each, as the recorder found them; none if it found none.
    pub vcpus: Vec<Vcpu>,
}

/// A CPU of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Vcpu {
    /// The number of the CPU in the guest.
    pub vcpu: Cpu,
    /// The PID of its thread on the host.
    pub pid: Pid,
}

impl Guest {
    /// Parses the payload of the option, and tells whether all vCPUs are within the limits. A CPU that occurs again, and a PID that no thread
    /// has, are left out.
    pub(crate) fn parse(mut payload: Bytes<'_>) -> Result<(Guest, bool), Eof> {
        let name = payload.cstr()?;
        let name = CleanText::of_bytes(name.get(..limits::NAME).unwrap_or(name));
        let trace_id = payload.u64()?;
        let count = payload.u32()?;
        let (mut vcpus, mut known): (Vec<Vcpu>, SeededSet<Cpu>) = Default::default();
        let mut is_whole = true;
        for _ in 0..count {
            let (vcpu, pid) = (Cpu(payload.u32()?), Pid(payload.u32()?.cast_signed()));
            is_whole &= vcpu.0 < Cpu::LIMIT && vcpus.len() < limits::VCPUS;
            if !is_whole {
                break;
            }
            if pid.0 > 0 && known.insert(vcpu) {
                vcpus.push(Vcpu { vcpu, pid });
            }
        }
        vcpus.sort_unstable_by_key(|known| known.vcpu);
        Ok((Guest { name, trace_id, vcpus }, is_whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Endian;

    fn guest(count: u32, vcpus: &[(u32, u32)]) -> Result<(Guest, bool), Eof> {
        let mut payload = [b"fedora\0".as_slice(), &7_u64.to_le_bytes(), &count.to_le_bytes()].concat();
        for (vcpu, pid) in vcpus {
            payload.extend([vcpu.to_le_bytes(), pid.to_le_bytes()].concat());
        }
        Guest::parse(Bytes::new(&payload, 0, Endian::Little))
    }

    #[test]
    fn a_guest_has_its_threads() {
        let (found, is_whole) = guest(4, &[(1, 31), (0, 30), (1, 32), (2, 0)]).unwrap();
        let vcpu = |(vcpu, pid)| Vcpu { vcpu: Cpu(vcpu), pid: Pid(pid) };
        assert_eq!((&*found.name, found.trace_id, is_whole), ("fedora", 7, true));
        assert_eq!(found.vcpus, [(0, 30), (1, 31)].map(vcpu), "the first of two, and no thread 0");
    }

    #[test]
    fn vcpus_of_a_guest_have_a_limit() {
        assert!(guest(u32::MAX, &[(0, 30)]).is_err(), "fewer bytes than vCPUs");
        let many: Vec<(u32, u32)> = (0..5_000).map(|vcpu| (vcpu, vcpu + 1)).collect();
        let (found, is_whole) = guest(5_000, &many).unwrap();
        assert_eq!((found.vcpus.len(), is_whole), (limits::VCPUS, false));
        let (found, is_whole) = guest(2, &[(Cpu::LIMIT, 30), (0, 31)]).unwrap();
        assert!(found.vcpus.is_empty() && !is_whole, "no CPU has such a number");
    }
}
