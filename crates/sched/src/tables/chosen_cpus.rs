//! Selections of CPUs.

use crate::event::Cpu;

/// A selection of CPUs: all by default, or some. A look-up takes the same time for any number of CPUs, since every
/// event needs one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenCpus {
    /// Whether each CPU is selected, by its number. `None` if all CPUs are selected.
    some: Option<Vec<bool>>,
}

impl ChosenCpus {
    /// Selects only these CPUs.
    pub fn only(cpus: impl IntoIterator<Item = Cpu>) -> ChosenCpus {
        let mut some = Vec::new();
        for cpu in cpus {
            some.resize(some.len().max(cpu.index() + 1), false);
            some[cpu.index()] = true;
        }
        ChosenCpus { some: Some(some) }
    }

    /// Whether all CPUs are selected.
    pub fn are_all(&self) -> bool {
        self.some.is_none()
    }

    /// Whether this CPU is selected.
    #[inline]
    pub fn has(&self, cpu: Cpu) -> bool {
        self.some.as_ref().is_none_or(|some| some.get(cpu.index()) == Some(&true))
    }

    /// Iterates over the CPUs that were named, in ascending order; over none if all CPUs are selected.
    pub fn named(&self) -> impl Iterator<Item = Cpu> {
        (0..).map(Cpu).zip(self.some.iter().flatten()).filter_map(|(cpu, is)| is.then_some(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_cpus_or_all() {
        let some = ChosenCpus::only([Cpu(9), Cpu(2)]);
        assert!(some.has(Cpu(2)) && some.has(Cpu(9)) && !some.has(Cpu(0)) && !some.has(Cpu(10)) && !some.are_all());
        assert_eq!(some.named().collect::<Vec<_>>(), [Cpu(2), Cpu(9)]);
        let (all, none) = (ChosenCpus::default(), ChosenCpus::only([]));
        assert!(all.are_all() && all.has(Cpu(4_000)) && all.named().next().is_none());
        assert!(!none.are_all() && !none.has(Cpu(0)));
    }
}
