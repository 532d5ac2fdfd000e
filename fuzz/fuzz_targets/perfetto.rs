//! A Perfetto trace: packets, bundles, compact events, generic ones, and units of them in time order.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = perfetto::fuzz(bytes);
});
