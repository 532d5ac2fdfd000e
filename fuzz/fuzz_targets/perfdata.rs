//! A perf.data file: header, attributes, features, records, and units of them in time order.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    perfdata::fuzz(bytes);
});
