//! A printed trace: lines of every printer, and units of their events in time order.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = tracetext::fuzz(bytes);
});
