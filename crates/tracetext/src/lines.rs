//! The lines of a file, read in pieces.

use crate::limits;
use memchr::memchr;
use parse::Source;

/// Bytes of a file that are read at once.
const WINDOW: u64 = 1 << 20;

/// Passes each line of a file to `take`, without its end; lines beyond the limit are left out. Returns the number of these. An error of `take`
/// ends it.
pub(crate) fn each<E>(source: &Source, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<u64, E> {
    let (mut at, mut rest, mut buffer) = (0, Vec::new(), Vec::new());
    let (mut left_out, mut is_long) = (0u64, false);
    while at < source.size() {
        let end = at.saturating_add(WINDOW).min(source.size());
        let Some(mut bytes) = source.read(&(at..end), &mut buffer) else { break };
        at = end;
        while let Some(length) = memchr(b'\n', bytes) {
            let line = bytes.get(..length).unwrap_or_default();
            bytes = bytes.get(length.saturating_add(1)..).unwrap_or_default();
            let is_whole = !std::mem::take(&mut is_long) && rest.len().saturating_add(length) <= limits::LINE;
            if !is_whole {
                left_out = left_out.saturating_add(1);
            } else if rest.is_empty() {
                take(line)?;
            } else {
                rest.extend_from_slice(line);
                take(&rest)?;
            }
            rest.clear();
        }
        is_long |= rest.len().saturating_add(bytes.len()) > limits::LINE;
        if is_long {
            rest.clear();
        } else {
            rest.extend_from_slice(bytes);
        }
    }
    if is_long {
        left_out = left_out.saturating_add(1);
    } else if !rest.is_empty() {
        take(&rest)?;
    }
    Ok(left_out)
}
