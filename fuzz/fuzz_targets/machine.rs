//! A machine file, and all that is taken from one.
#![no_main]

use machine::Machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(machine) = Machine::parse(&String::from_utf8_lossy(bytes)) else { return };
    let topology = machine.topology();
    assert!(topology.cpus().all(|cpu| cpu.0 < sched::Cpu::LIMIT));
    let text = serde_json::to_string(&machine.anonymous()).expect("JSON");
    let again = Machine::parse(&text).expect("a machine file");
    assert_eq!(again.topology(), topology);
});
