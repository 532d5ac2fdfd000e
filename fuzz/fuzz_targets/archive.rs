//! The kernel's buffers in a tar archive: formats that are right, then the pages of a CPU, or any files of the archive.
#![no_main]

use parse::{Options, Source};
use std::sync::LazyLock;
use testkit::{TraceBuilder, tar};

/// An archive with the formats alone, without its end.
static FORMATS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let builder = TraceBuilder::default();
    let mut files = vec![("events/header_page".to_owned(), builder.header_page().into_bytes())];
    for (nth, (system, text)) in builder.layout().formats().into_iter().enumerate() {
        files.push((format!("events/{system}/event{nth}/format"), text.into_bytes()));
    }
    let mut archive = tar(&files);
    archive.truncate(archive.len() - 1024);
    archive
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let rest = match kind % 2 {
        0 => tar(&[("per_cpu/cpu0/trace_pipe_raw".to_owned(), bytes.to_vec())]),
        _ => bytes.to_vec(),
    };
    let archive = [&FORMATS[..], &rest].concat();
    let options = Options { threads: 1, ..Options::default() };
    let Ok(trace) = recordings::of_source(Source::Memory(archive), options) else { return };
    trace.records(&mut |_| std::ops::ControlFlow::Continue(()));
});
