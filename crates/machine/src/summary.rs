//! A machine in one line.

use crate::{CpuPlace, Machine};
use sched::event::CleanText;
use std::collections::BTreeSet;

impl Machine {
    /// The facts that a table of measurements needs in its header, in the order of their weight, such as
    /// `8 CPUs, 2 sockets, 2 nodes, 2 LLCs, SMT off, preemption full, base slice 3 ms, virtualised (QEMU)`.
    pub fn summary(&self) -> String {
        let mut words = self.places_in_words();
        words.extend(self.cpus.smt.as_ref().map(|smt| format!("SMT {smt}")));
        words.extend(self.cpus.isolated.as_ref().map(|cpus| format!("isolated {cpus}")));
        words.extend(self.cpus.nohz_full.as_ref().map(|cpus| format!("nohz_full {cpus}")));
        words.extend(self.kernel.preemption.as_ref().map(|model| format!("preemption {model}")));
        words.extend(self.base_slice_ms().map(|slice| format!("base slice {slice} ms")));
        words.extend(self.scheduler.ext.as_ref().map(|ops| format!("sched_ext {ops}")));
        if !self.cpus.governors.is_empty() {
            words.push(format!("governor {}", self.cpus.governors.join(" and ")));
        }
        match (self.virtualised, &self.hypervisor) {
            (Some(true), Some(name)) => words.push(format!("virtualised ({name})")),
            (Some(true), None) => words.push("virtualised".to_owned()),
            _ => {}
        }
        if words.is_empty() { "nothing known".to_owned() } else { words.join(", ") }
    }

    /// The number of hits of probes that the kernel did not record.
    pub fn missed_hits(&self) -> u64 {
        self.missed_probes.values().copied().fold(0, u64::saturating_add)
    }

    /// The probes with hits that the kernel did not record, those with the most first: `kicked 2, unthrottle 1`. At most eight are named; `?` has a
    /// name that no kernel takes, since the text goes to terminals.
    pub fn missed_by_probe(&self) -> String {
        const NAMED: usize = 8;
        let mut missed: Vec<_> = self.missed_probes.iter().collect();
        missed.sort_by_key(|(name, number)| (std::cmp::Reverse(**number), *name));
        let named = |(name, number): &(&CleanText, &u64)| {
            format!("{} {number}", if is_probe(name) { name.as_str() } else { "?" })
        };
        let named: Vec<String> = missed.iter().take(NAMED).map(named).collect();
        let more = if missed.len() > NAMED { ", …" } else { "" };
        named.join(", ") + more
    }

    /// The CPUs and what they form, such as `8 CPUs`, `2 sockets`, `2 nodes`, `2 LLCs`.
    pub(crate) fn places_in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let places = &self.cpus.places;
        let count = sched::nouns::counted::<usize>;
        if !places.is_empty() {
            words.push(count(places.len(), "CPU"));
        }
        let mut group = |name: &str, of: fn(&CpuPlace) -> Option<u32>| {
            let distinct: BTreeSet<u32> = places.iter().filter_map(of).collect();
            if !distinct.is_empty() {
                words.push(count(distinct.len(), name));
            }
        };
        group("socket", |place| place.socket);
        group("node", |place| place.node);
        group("LLC", |place| place.llc);
        group("cluster", |place| place.cluster);
        words
    }

    /// The base slice, or the minimum granularity of kernels before 6.6, in milliseconds.
    pub(crate) fn base_slice_ms(&self) -> Option<f64> {
        let names = ["base_slice_ns", "min_granularity_ns", "sched_min_granularity_ns"];
        let text = names.iter().find_map(|name| self.scheduler.tunable(name))?;
        text.parse::<u64>().ok().map(|ns| ns as f64 / 1e6)
    }
}

/// Whether the kernel takes a name for a probe (`is_good_name` and `MAX_EVENT_NAME_LEN` in its trace_probe).
fn is_probe(name: &str) -> bool {
    name.len() < 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
