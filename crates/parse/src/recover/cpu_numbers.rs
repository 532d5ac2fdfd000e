//! CPUs whose data stand under another's number.
//!
//! `trace-cmd restore` makes a trace of the `trace.dat.cpuN` that a killed recorder left, and numbers them in the
//! order in which it is given them; a shell gives `trace.dat.cpu*` with `cpu10` before `cpu2`. Every switch to or away
//! from the idle task shows whose data they are: its name is `swapper/2`.

use crate::file::header::HeaderOptions;
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::recover::cpu_table::idle_cpu;
use crate::ring::unit::CpuPages;
use sched::{Cpu, Diagnostics};
use std::collections::BTreeSet;

/// Number of units of a CPU that are searched for its idle task.
const SEARCHED: usize = 64;

/// Gives each CPU the number of its idle task, where the file does not name its recorder, as in one that was restored.
pub(crate) fn settle(source: &Source, options: &HeaderOptions, lanes: &mut [CpuPages], diagnostics: &mut Diagnostics) {
    if options.uname.is_some() || !options.stats.is_empty() {
        return;
    }
    let idle = |pages: &CpuPages| {
        (0..pages.units().min(SEARCHED))
            .find_map(|unit| pages.with_bytes(source, unit, |bytes| bytes.ok().and_then(idle_cpu)))
    };
    let named_lanes: Vec<(u32, Option<u32>)> = lanes.iter().map(|pages| (pages.cpu.0, idle(pages))).collect();
    let Some(numbers) = numbers(&named_lanes) else { return };
    for (pages, number) in lanes.iter_mut().zip(numbers) {
        if pages.cpu.0 != number {
            diagnostics.add_at(FileIssue::MisnumberedCpu, || format!("CPU {number} stood as {}", pages.cpu));
            pages.cpu = Cpu(number);
        }
    }
    lanes.sort_by_key(|pages| pages.cpu);
}

/// The numbers of CPUs that stand under these and have these idle tasks, if any is to change. For one without an idle
/// task it is concluded from the others, or left as it is.
fn numbers(named_lanes: &[(u32, Option<u32>)]) -> Option<Vec<u32>> {
    let named: BTreeSet<u32> = named_lanes.iter().filter_map(|(_, idle)| *idle).collect();
    let differs = named_lanes.iter().any(|(own, idle)| idle.is_some_and(|idle| idle != *own));
    let are_distinct = named.len() == named_lanes.iter().filter(|(_, idle)| idle.is_some()).count();
    if !differs || !are_distinct || named.iter().any(|cpu| *cpu >= Cpu::LIMIT) {
        return None;
    }
    let listing = listing(named_lanes);
    let mut taken = named.clone();
    taken.extend(
        named_lanes.iter().filter_map(|(own, idle)| idle.is_none().then_some(*own)).filter(|_| listing.is_none()),
    );
    let mut number = |(own, idle): &(u32, Option<u32>)| match (idle, &listing) {
        (Some(idle), _) => *idle,
        (None, Some(listing)) => listing.get(*own as usize).copied().unwrap_or(*own),
        // Where two claim a number it is that of the one whose idle task has it.
        (None, None) if !named.contains(own) => *own,
        (None, None) => {
            let free = (0..Cpu::LIMIT).find(|cpu| !taken.contains(cpu)).unwrap_or(*own);
            taken.insert(free);
            free
        }
    };
    Some(named_lanes.iter().map(&mut number).collect())
}

/// The file at each number where the files were given as a shell lists them, if that is how they were.
fn listing(named_lanes: &[(u32, Option<u32>)]) -> Option<Vec<u32>> {
    let count = named_lanes.iter().map(|(own, idle)| idle.map_or(*own, |idle| idle.max(*own))).max()?.saturating_add(1);
    let mut listing: Vec<u32> = (0..count.min(Cpu::LIMIT)).collect();
    listing.sort_by_cached_key(u32::to_string);
    let agrees = |(own, idle): &(u32, Option<u32>)| idle.is_none_or(|idle| listing.get(*own as usize) == Some(&idle));
    named_lanes.iter().all(agrees).then_some(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file at each number, with the idle tasks of all but `silent`.
    fn named_lanes(order: &[u32], silent: &[u32]) -> Vec<(u32, Option<u32>)> {
        (0..).zip(order).map(|(own, cpu)| (own, Some(*cpu).filter(|cpu| !silent.contains(cpu)))).collect()
    }

    #[test]
    fn as_a_shell_lists_them() {
        let order = [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(numbers(&named_lanes(&order, &[])), Some(order.to_vec()));
        assert_eq!(numbers(&named_lanes(&order, &[0, 10, 5])), Some(order.to_vec()), "the others show how they stand");
    }

    #[test]
    fn in_another_order() {
        assert_eq!(numbers(&named_lanes(&[1, 0, 3, 2], &[])), Some(vec![1, 0, 3, 2]));
        assert_eq!(numbers(&named_lanes(&[2, 1, 0], &[1])), Some(vec![2, 1, 0]));
        // Two of three swapped, of which one is silent: its number is the one that is left.
        assert_eq!(numbers(&named_lanes(&[1, 0, 2], &[0])), Some(vec![1, 0, 2]));
    }

    #[test]
    fn as_they_should_be_or_without_telling() {
        assert_eq!(numbers(&named_lanes(&[0, 1, 2], &[1])), None);
        assert_eq!(numbers(&named_lanes(&[1, 0], &[0, 1])), None);
        assert_eq!(numbers(&[(0, Some(1)), (1, Some(1))]), None, "one idle task twice is no evidence");
        assert_eq!(numbers(&[(0, Some(u32::MAX))]), None);
    }
}
