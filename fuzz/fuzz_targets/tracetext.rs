//! A printed trace: lines of every printer, and units of their events in time order. An input of odd length is the data of a page as well: as it is,
//! which may be JSON, and compressed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = tracetext::fuzz(bytes);
    if bytes.len() % 2 == 1 {
        let _ = tracetext::fuzz(&testkit::viewer_page(&[bytes.to_vec(), testkit::gzip(bytes)]));
    }
});
