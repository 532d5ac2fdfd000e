//! In which row a CPU is shown.

use sched::Cpu;

/// The places of the CPUs that are shown, found by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    by_cpu: Vec<Option<u32>>,
}

impl Rows {
    /// The rows of `cpus` in display order, each with its group.
    pub fn new(cpus: &[(Cpu, Option<u32>)]) -> Rows {
        let mut by_cpu = vec![None; cpus.iter().map(|(cpu, _)| cpu.index() + 1).max().unwrap_or(0)];
        for ((cpu, _), row) in cpus.iter().zip(0..) {
            by_cpu[cpu.index()] = Some(row);
        }
        Rows { by_cpu }
    }

    /// The row of `cpu`; none if it is not shown.
    pub fn of(&self, cpu: Cpu) -> Option<usize> {
        self.by_cpu.get(cpu.index()).copied().flatten().map(|row| row as usize)
    }
}
