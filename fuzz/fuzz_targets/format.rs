//! `parse::fuzzing::format`: any bytes, no panic, no overflow, no unbounded allocation.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    parse::fuzzing::format(bytes);
});
