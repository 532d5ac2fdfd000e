//! Files that are compressed as a whole.

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use parse::{Error, Source};
use std::io::{self, Read};
use transcript::{Sorted, expanded_limit};

/// The word of Android's `atrace -z` before the compressed text of a trace, and the first byte of that; messages may precede it.
const ATRACE: &[u8] = b"TRACE:\n\x78";

/// Returns the content of a file that is compressed by gzip or zstd, or by Android's atrace; nothing of another.
pub(crate) fn expanded(source: &Source) -> Result<Option<Source>, Error> {
    let head = source.get(&(0..source.size().min(256))).unwrap_or_default();
    let atrace = head.windows(ATRACE.len()).position(|part| part == ATRACE);
    let start = atrace.map_or(0, |at| at.saturating_add(ATRACE.len()).saturating_sub(1) as u64);
    let bytes = source.reader(start);
    let failed = |why: io::Error| match why.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::PermissionDenied => {
            Error::Io { path: std::env::temp_dir(), source: why }
        }
        _ => Error::Foreign { what: format!("a compressed file that is cut or damaged at its beginning ({why})") },
    };
    let plain = if head.starts_with(&[0x1f, 0x8b]) {
        write(&mut MultiGzDecoder::new(bytes), expanded_limit(source.size()))
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        zstd::stream::read::Decoder::new(bytes).and_then(|mut bytes| write(&mut bytes, expanded_limit(source.size())))
    } else if atrace.is_some_and(|at| head.get(..at).unwrap_or_default().is_ascii()) {
        write(&mut ZlibDecoder::new(bytes), expanded_limit(source.size()))
    } else {
        return Ok(None);
    };
    plain.map(Some).map_err(failed)
}

/// Writes bytes where they can be read again. What comes before damage is kept, as of a file that was cut there.
fn write(from: &mut dyn Read, most: u64) -> io::Result<Source> {
    let (mut out, mut buffer, mut written) = (Sorted::default(), vec![0; 1 << 20], 0u64);
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) if written == 0 => return Err(why),
            Err(_) => break,
        };
        let read = read.min(usize::try_from(most.saturating_sub(written)).unwrap_or(usize::MAX));
        if read == 0 {
            break;
        }
        out.append(buffer.get(..read).unwrap_or_default())?;
        written = written.saturating_add(read as u64);
    }
    Ok(out.into_source())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn of(bytes: Vec<u8>) -> Result<Option<Vec<u8>>, Error> {
        let plain = expanded(&Source::Memory(bytes))?;
        Ok(plain.map(|plain| plain.get(&(0..plain.size())).unwrap()))
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn whole_files_are_decompressed() {
        let plain: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(of(gzip(&plain)).unwrap().as_deref(), Some(&plain[..]));
        assert_eq!(of([gzip(&plain[..1000]), gzip(&plain[1000..])].concat()).unwrap().as_deref(), Some(&plain[..]));
        assert_eq!(of(zstd::bulk::compress(&plain, 1).unwrap()).unwrap().as_deref(), Some(&plain[..]));
        assert_eq!(of(plain).unwrap(), None);
        // Of one that was cut, what comes before; of one without a beginning, nothing.
        let plain: Vec<u8> = (0..300_000u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        let packed = gzip(&plain);
        let part = of(packed[..packed.len() / 2].to_vec()).unwrap().unwrap();
        assert!(part.len() > plain.len() / 4 && plain.starts_with(&part), "{}", part.len());
        assert!(of(packed[..5].to_vec()).is_err());
    }

    #[test]
    fn texts_compressed_by_atrace_are_decompressed() {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(b"# tracer: nop\n").unwrap();
        let packed = out.finish().unwrap();
        for before in ["", "capturing trace... done\n"] {
            let file = [before.as_bytes(), b"TRACE:\n", &packed].concat();
            assert_eq!(of(file).unwrap().as_deref(), Some(&b"# tracer: nop\n"[..]));
        }
        assert_eq!(of(b"TRACE:\n# tracer: nop\n".to_vec()).unwrap(), None);
        assert!(of(b"TRACE:\n\x78\xff\xff".to_vec()).is_err());
    }

    #[test]
    fn what_a_file_may_become_is_bounded() {
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
        let plain = expanded(&Source::Memory(bomb.clone())).unwrap().unwrap();
        assert_eq!(plain.size(), expanded_limit(bomb.len() as u64));
    }
}
