//! A topology in any of its forms, and a list of CPUs.
#![no_main]

use sched::Topology;
use sched::topology::{CpuOrder, format_cpu_list, parse_cpu_list};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Some(cpus) = parse_cpu_list(&text) {
        assert!(cpus.is_sorted_by(|a, b| a < b), "each CPU once");
        assert_eq!(parse_cpu_list(&format_cpu_list(&cpus)), Some(cpus));
    }
    let Ok(topology) = Topology::parse(&text) else { return };
    let cpus: Vec<_> = topology.cpus().collect();
    for order in [CpuOrder::Number, CpuOrder::Socket, CpuOrder::Node, CpuOrder::Llc] {
        let mut arranged = cpus.clone();
        topology.arrange(&mut arranged, order);
        arranged.sort_unstable();
        assert_eq!(arranged, cpus);
    }
    if let (Some(first), Some(last)) = (cpus.first(), cpus.last()) {
        assert_eq!(topology.distance(*first, *last), topology.distance(*last, *first));
    }
});
