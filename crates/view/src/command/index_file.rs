//! The index of a trace in a file: `--index`.

use crate::{Digest, Unusable, Viewed};
use anyhow::{Context, Result, bail};
use session::Session;
use session::args::ReadArgs;
use session::atomic_file::AtomicFile;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The number of pieces of a trace that identify it, and the bytes of each.
const PIECES: u64 = 64;
const PIECE: u64 = 4096;

/// The trace with the index from this file. If there is none, or it does not fit, the index is made anew and written there.
pub(super) fn with_index<'s>(
    mut trace: Viewed<'s>,
    session: &'s Session,
    read: &'s ReadArgs,
    file: &'s Path,
) -> Result<Viewed<'s>> {
    let context = || format!("--index {}", file.display());
    let key = key(session, read).with_context(context)?;
    if std::fs::metadata(file).is_ok_and(|known| !known.is_file()) {
        bail!("--index {}: not a regular file", file.display());
    }
    let found = match File::open(file) {
        Ok(found) => Some(found),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e).with_context(context),
    };
    match found.map(|found| trace.take_index(key, BufReader::new(found))) {
        Some(Ok(())) => {
            opened::will_read(file);
            return Ok(trace);
        }
        Some(Err(Unusable::Foreign)) => {
            bail!("--index {}: this file is no index, and is not replaced; choose another name", file.display());
        }
        Some(Err(Unusable::Stale(why))) => {
            read.message(&format!("{}: {why}; the index is made anew", file.display()));
        }
        None => {}
    }
    // A place that cannot be written to is an error now, not after the trace was read.
    let whole = Mutex::new(Some(AtomicFile::create(file).with_context(context)?));
    Ok(trace.saving(move |index| {
        let whole = whole.lock().unwrap_or_else(PoisonError::into_inner).take();
        let written = whole.map_or(Ok(()), |whole| {
            let mut out = BufWriter::new(whole);
            index.write(key, &mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
        });
        if let Err(e) = written {
            read.message(&format!("--index: {e}"));
        }
    }))
}

/// A number that identifies a trace, the machine file beside it and the options of its reading: by its size and by pieces at equal distances, of which
/// the first has the start of the header.
fn key(session: &Session, read: &ReadArgs) -> io::Result<u64> {
    let mut file = opened::file(session.path())?;
    let size = file.metadata()?.len();
    let mut digest = Digest::default();
    digest.add(env!("CARGO_PKG_VERSION").as_bytes());
    digest.add(read.reading().as_bytes());
    digest.add(&size.to_le_bytes());
    // The violation depends on the CPUs that tasks may use.
    digest.add(&serde_json::to_vec(&session.machine)?);
    let mut piece = Vec::new();
    for nth in 0..PIECES {
        let last = u128::from(size.saturating_sub(PIECE));
        file.seek(SeekFrom::Start((last * u128::from(nth) / u128::from(PIECES - 1)) as u64))?;
        piece.clear();
        file.by_ref().take(PIECE).read_to_end(&mut piece)?;
        digest.add(&piece);
    }
    Ok(digest.value())
}
