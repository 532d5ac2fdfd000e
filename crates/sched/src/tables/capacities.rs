//! The capacities of CPUs.

use crate::event::Cpu;
use std::sync::Arc;

/// The capacities of the CPUs of a machine on which they differ; empty where they are all the same, or unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuCapacities {
    /// The capacity of each CPU by its number, the largest one where it is unknown.
    of: Arc<[u32]>,
    largest: u32,
}

impl CpuCapacities {
    /// Maximum number of different capacities. Where there are more, they are left out.
    pub const MOST: usize = 8;

    /// Makes the capacities of CPUs, such as `cpu_capacity` has them, where they differ, and are at most [`CpuCapacities::MOST`] different ones.
    pub fn of(cpus: impl IntoIterator<Item = (Cpu, u32)>) -> CpuCapacities {
        let mut of: Vec<u32> = Vec::new();
        for (cpu, capacity) in cpus.into_iter().filter(|(cpu, capacity)| cpu.0 < Cpu::LIMIT && *capacity > 0) {
            of.resize(of.len().max(cpu.index() + 1), 0);
            of[cpu.index()] = capacity;
        }
        let mut different: Vec<u32> = of.iter().copied().filter(|capacity| *capacity > 0).collect();
        different.sort_unstable();
        different.dedup();
        let Some(largest) = different.last().copied().filter(|_| (2..=CpuCapacities::MOST).contains(&different.len()))
        else {
            return CpuCapacities::default();
        };
        of.iter_mut().filter(|capacity| **capacity == 0).for_each(|capacity| *capacity = largest);
        CpuCapacities { of: of.into(), largest }
    }

    /// Whether all CPUs count alike.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.largest == 0
    }

    /// The capacity of a CPU, that of the largest one where it is unknown; 1 where all CPUs count alike.
    #[inline]
    pub fn at(&self, cpu: Cpu) -> u32 {
        if self.is_empty() { 1 } else { self.of.get(cpu.index()).copied().unwrap_or(self.largest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_that_differ_are_known_for_every_cpu() {
        let of = |capacities: &[u32]| {
            let all = CpuCapacities::of((0..).map(Cpu).zip(capacities.iter().copied()));
            (0..4).map(|cpu| all.at(Cpu(cpu))).collect::<Vec<_>>()
        };
        assert_eq!(of(&[512, 0, 1024]), [512, 1024, 1024, 1024]);
        assert_eq!([of(&[]), of(&[0, 0]), of(&[1024, 0, 1024])], [[1; 4], [1; 4], [1; 4]]);
        assert_eq!((of(&[1, 2, 3, 4, 5, 6, 7, 8]), of(&[1, 2, 3, 4, 5, 6, 7, 8, 9])), (vec![1, 2, 3, 4], vec![1; 4]));
    }
}
