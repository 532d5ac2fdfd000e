//! perf's compressed records: the input is what they decompress to, or, after an odd first byte, the compressed bytes
//! themselves. The second byte is the length of a piece.
#![no_main]

use std::sync::LazyLock;
use testkit::{PerfForm, PerfBuilder, TraceBuilder};
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

/// A stream with all that precedes the records.
static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    PerfBuilder { form: PerfForm::Stream, ..PerfBuilder::default() }.build(&TraceBuilder::default(), &[])
});

/// A record of compressed bytes (`PERF_RECORD_COMPRESSED`).
fn record(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(81u32.to_le_bytes());
    out.extend([0, 0]);
    out.extend((8 + bytes.len() as u16).to_le_bytes());
    out.extend(bytes);
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([kind, length], bytes)) = bytes.split_first_chunk() else { return };
    let pieces = bytes.chunks(1 + 16 * usize::from(*length));
    let mut file = HEAD.clone();
    if kind % 2 == 1 {
        pieces.for_each(|piece| record(&mut file, piece));
    } else {
        let mut encoder = Encoder::new(1).expect("an encoder");
        for piece in pieces {
            let (mut input, mut space) = (InBuffer::around(piece), vec![0; 2 * piece.len() + 1000]);
            let mut output = OutBuffer::around(space.as_mut_slice());
            encoder.run(&mut input, &mut output).expect("compressed");
            encoder.flush(&mut output).expect("flushed");
            record(&mut file, output.as_slice());
        }
    }
    perfdata::fuzz(&file);
});
