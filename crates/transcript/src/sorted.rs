//! Bytes that are read again later: in memory while they are few, in a temporary file without a name otherwise.

use crate::limits;
use parse::Source;
use std::fs::File;
use std::io::{Error, Write};

/// A writer of bytes that are read again: up to 32 MiB in memory, more in a temporary file without a name.
#[derive(Debug, Default)]
pub struct Sorted {
    memory: Vec<u8>,
    file: Option<(File, u64)>,
}

impl Sorted {
    /// Appends bytes; returns their place.
    ///
    /// # Errors
    ///
    /// Those of the temporary file.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64, Error> {
        if self.file.is_none() && (self.memory.len() as u64).saturating_add(bytes.len() as u64) > limits::IN_MEMORY {
            let mut file = tempfile::tempfile()?;
            file.write_all(&self.memory)?;
            self.file = Some((file, self.memory.len() as u64));
            self.memory = Vec::new();
        }
        match &mut self.file {
            Some((file, size)) => {
                file.write_all(bytes)?;
                let behind = size.saturating_add(bytes.len() as u64);
                Ok(std::mem::replace(size, behind))
            }
            None => {
                let at = self.memory.len() as u64;
                self.memory.extend_from_slice(bytes);
                Ok(at)
            }
        }
    }

    /// Returns a source that reads all bytes that were written.
    pub fn into_source(self) -> Source {
        match self.file {
            Some((file, size)) => Source::File(file, size),
            None => Source::Memory(self.memory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_goes_to_a_file() {
        let mut sorted = Sorted::default();
        let block = vec![7u8; 1 << 20];
        for nth in 0..40u64 {
            assert_eq!(sorted.append(&block).unwrap(), nth << 20);
        }
        assert_eq!(sorted.append(b"end").unwrap(), 40 << 20);
        assert!(sorted.file.is_some() && sorted.memory.is_empty());
        let source = sorted.into_source();
        assert_eq!(source.size(), (40 << 20) + 3);
        assert_eq!(source.get(&((40 << 20) - 1..(40 << 20) + 3)).as_deref(), Some(&b"\x07end"[..]));
    }
}
