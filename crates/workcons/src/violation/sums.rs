//! The sizes of the sets and the numbers of waiters, packed: the share of each CPU, and the sums over all CPUs.

use super::packed::Packed;
use super::ways::WAYS;
use sched::counted::Flags;
use sched::{Cpu, Load};

/// Four numbers of waiters: those that count, by way of counting; last, those of any kind.
pub(super) type PackedWaiters = Packed<32>;

impl PackedWaiters {
    /// One waiter, for each way that counts it.
    #[inline]
    pub(super) fn one(flags: Flags) -> PackedWaiters {
        let counted = |way: usize| u32::from(flags >> way & 1);
        // The first way counts all.
        let any = PackedWaiters::of(WAYS, counted(0));
        (0..WAYS).fold(any, |sum, way| sum.add(PackedWaiters::of(way, counted(way))))
    }
}

/// Six numbers of CPUs: those that idle, that are unknown, that run a task, and by way of counting those that are overloaded.
pub(super) type PackedCpus = Packed<21>;
const _: () = assert!(Cpu::LIMIT < 1 << 21);

impl PackedCpus {
    const IDLE: usize = 0;
    const UNKNOWN: usize = 1;
    const RUNNING: usize = 2;
    /// The place of the first way of counting; one for each way follows.
    const OVERLOADED: usize = 3;

    /// The number of CPUs in I.
    #[inline]
    pub(super) fn idle(self) -> u32 {
        self.at(PackedCpus::IDLE)
    }

    /// The number of CPUs whose current task is unknown.
    #[inline]
    pub(super) fn unknown(self) -> u32 {
        self.at(PackedCpus::UNKNOWN)
    }

    /// The number of CPUs that run a task.
    #[inline]
    pub(super) fn running(self) -> u32 {
        self.at(PackedCpus::RUNNING)
    }

    /// The number of CPUs in O.
    #[inline]
    pub(super) fn overloaded(self, way: usize) -> u32 {
        self.at(PackedCpus::OVERLOADED + way)
    }

    /// One CPU, overloaded for each way that counts one of these waiters.
    #[inline]
    fn overloaded_by(waiters: PackedWaiters) -> PackedCpus {
        let over = |way| PackedCpus::of(PackedCpus::OVERLOADED + way, u32::from(waiters.at(way) > 0));
        (0..WAYS).fold(PackedCpus::ZEROS, |sum, way| sum.add(over(way)))
    }
}

/// The numbers of CPUs and of waiters: the share of one CPU, or the sums over all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SetSums {
    /// The numbers of CPUs.
    pub(super) cpus: PackedCpus,
    /// The waiters on CPUs that run a task, for each way of counting; last, those of any kind on any CPU that takes
    /// part.
    pub(super) waiters: PackedWaiters,
}

impl SetSums {
    /// The sums with another share.
    #[inline]
    pub(super) fn add(&self, other: &SetSums) -> SetSums {
        SetSums { cpus: self.cpus.add(other.cpus), waiters: self.waiters.add(other.waiters) }
    }

    /// The difference from an older share, to be added to the sums.
    #[inline]
    pub(super) fn less(&self, other: &SetSums) -> SetSums {
        SetSums { cpus: self.cpus.less(other.cpus), waiters: self.waiters.less(other.waiters) }
    }
}

/// A CPU, and its share in the sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuShare {
    /// The present load.
    pub(super) load: Load,
    /// The waiters on the CPU that count.
    pub(super) waiters: PackedWaiters,
    /// The share when the CPU was last settled.
    pub(super) share: SetSums,
}

/// The share of a CPU with a certain load: the CPU itself, and masks of the numbers that depend on its waiters.
#[derive(Clone, Copy, Debug)]
struct LoadShare {
    cpus: PackedCpus,
    overloaded: PackedCpus,
    waiters: PackedWaiters,
}

impl LoadShare {
    /// The definition of I and O, by load.
    const ALL: [LoadShare; 8] = {
        let none = LoadShare { cpus: PackedCpus::ZEROS, overloaded: PackedCpus::ZEROS, waiters: PackedWaiters::ZEROS };
        let any = LoadShare { waiters: PackedWaiters::of(WAYS, u32::MAX), ..none };
        let runs = LoadShare {
            cpus: PackedCpus::of(PackedCpus::RUNNING, 1),
            overloaded: PackedCpus::ALL,
            waiters: PackedWaiters::ALL,
        };
        let mut all = [none; 8];
        all[Load::Unknown as usize] = LoadShare { cpus: PackedCpus::of(PackedCpus::UNKNOWN, 1), ..any };
        all[Load::Idle as usize] = LoadShare { cpus: PackedCpus::of(PackedCpus::IDLE, 1), ..any };
        all[Load::SwitchPending as usize] = any;
        all[Load::Busy as usize] = runs;
        all[Load::Overloaded as usize] = runs;
        all[Load::Unserved as usize] = LoadShare { cpus: PackedCpus::of(PackedCpus::IDLE, 1), ..runs };
        all
    };
}

impl CpuShare {
    /// The share of the CPU as it is now.
    #[inline]
    pub(super) fn present(&self) -> SetSums {
        let of_load = &LoadShare::ALL[self.load as usize];
        let overloaded = PackedCpus::overloaded_by(self.waiters).and(of_load.overloaded);
        SetSums { cpus: of_load.cpus.add(overloaded), waiters: self.waiters.and(of_load.waiters) }
    }
}
