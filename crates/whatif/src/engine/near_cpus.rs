//! The CPUs around each CPU, the nearest first. They take room by the number of CPUs, and not by that of pairs.

use crate::domains::Domains;
use sched::topology::{CpuLocation, Distance};
use sched::{Cpu, Topology};
use std::collections::BTreeMap;

/// The levels at which CPUs share anything: those of all distances but [`Distance::Machine`].
const LEVELS: usize = Distance::ALL.len() - 1;

/// The CPUs that take part, by the levels that they share.
#[derive(Clone, Debug, Default)]
pub(crate) struct NearCpus {
    /// The place of each CPU, as far as it is known.
    places: Vec<Option<CpuLocation>>,
    /// The CPUs that take part, in ascending order.
    all: Vec<Cpu>,
    /// The CPUs of each core, cluster, cache and node that take part, in ascending order.
    sharing: [BTreeMap<u32, Vec<Cpu>>; LEVELS],
}

impl NearCpus {
    /// The surroundings of the CPUs below `count`, of which `usable` take part.
    pub(crate) fn new(count: usize, usable: impl Iterator<Item = Cpu>, topology: &Topology) -> NearCpus {
        let places: Vec<Option<CpuLocation>> = (0..count as u32).map(|cpu| topology.place(Cpu(cpu)).copied()).collect();
        let mut found = NearCpus { places, all: usable.collect(), ..NearCpus::default() };
        for cpu in &found.all {
            let place = found.places.get(cpu.index()).copied().flatten().unwrap_or_default();
            for (sharing, number) in found.sharing.iter_mut().zip(place.levels()) {
                if let Some(number) = number {
                    sharing.entry(number).or_default().push(*cpu);
                }
            }
        }
        found
    }

    /// The scheduling domains of the CPUs that take part.
    pub(crate) fn domains(&self) -> Domains {
        let place = |cpu: Cpu| self.places.get(cpu.index()).copied().flatten();
        Domains::new(self.places.len(), &self.all, |cpu, level| place(cpu)?.levels().get(level).copied().flatten())
    }

    /// The distance between two CPUs; [`Distance::Machine`] where a place is not known.
    pub(crate) fn distance(&self, a: Cpu, b: Cpu) -> Distance {
        let place = |cpu: Cpu| self.places.get(cpu.index()).copied().flatten();
        let (Some(a), Some(b)) = (place(a), place(b)) else { return Distance::Machine };
        a.distance(&b)
    }

    /// The other CPUs, the nearest first. Among those at one distance the CPUs behind this one come first, so that not all turn to the same one.
    pub(crate) fn nearest(&self, cpu: Cpu) -> impl Iterator<Item = (Distance, Cpu)> {
        Distance::ALL.into_iter().enumerate().flat_map(move |(level, distance)| {
            let sharing = self.sharing(cpu, level);
            let (before, behind) = sharing.split_at(sharing.partition_point(|other| *other < cpu));
            let at_distance = move |other: &Cpu| *other != cpu && self.distance(cpu, *other) == distance;
            behind.iter().chain(before).copied().filter(at_distance).map(move |other| (distance, other))
        })
    }

    /// The CPUs that share this level with `cpu`; all at the last one.
    fn sharing(&self, cpu: Cpu, level: usize) -> &[Cpu] {
        let Some(sharing) = self.sharing.get(level) else { return &self.all };
        let place = self.places.get(cpu.index()).copied().flatten();
        let number = place.and_then(|place| place.levels().get(level).copied().flatten());
        number.and_then(|number| sharing.get(&number)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order is that of all pairs, sorted, also where levels cross one another and CPUs have no place.
    #[test]
    fn the_nearest_cpus_come_first_whatever_they_share() {
        let mut random = testkit::Rng::new(5);
        for _ in 0..50 {
            let mut topology = Topology::default();
            let mut level = |of: usize| Some(random.below(of) as u32).filter(|number| *number > 0);
            for cpu in (0..40).filter(|cpu| cpu % 7 != 3) {
                let (core, cluster, llc, node, socket) = (level(20), level(12), level(6), level(4), level(3));
                topology.set(Cpu(cpu), CpuLocation { core, cluster, llc, node, socket });
            }
            let usable = || (0..40).map(Cpu).filter(|cpu| cpu.0 % 5 != 4);
            let found = NearCpus::new(40, usable(), &topology);
            for cpu in (0..40).map(Cpu) {
                let distance = |other: Cpu| topology.distance(cpu, other).unwrap_or(Distance::Machine);
                let others = usable().filter(|other| *other != cpu);
                let mut sorted: Vec<(Distance, Cpu)> = others.map(|other| (distance(other), other)).collect();
                sorted.sort_by_key(|(distance, other)| (*distance, *other < cpu, *other));
                assert_eq!(found.nearest(cpu).collect::<Vec<_>>(), sorted);
            }
        }
    }

    #[test]
    fn tens_of_thousands_of_cpus_take_room_once() {
        let found = NearCpus::new(65_535, (0..65_535).map(Cpu), &Topology::default());
        assert_eq!(found.nearest(Cpu(9)).next(), Some((Distance::Machine, Cpu(10))));
        assert_eq!(found.nearest(Cpu(9)).count(), 65_534);
    }
}
