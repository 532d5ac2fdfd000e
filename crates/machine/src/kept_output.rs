//! The output of a command that a recording keeps beside itself.

use sched::event::CleanText;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Result};
use std::path::Path;

/// The file with the output of the recorded command, as the recording left it. A later recording of the same name replaces the file only
/// while its content is still this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptOutput {
    /// The name of the file, which lies in the folder of the recording.
    pub file: CleanText,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The FNV-1a hash of the content, 64 bits in hexadecimal.
    pub hash: CleanText,
}

impl KeptOutput {
    /// Describes the file at this path by its content, which is read in pieces. The file is not noted as an input: it may be replaced.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn of(path: &Path) -> Result<KeptOutput> {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 16]);
        let (mut bytes, mut hash) = (0, OFFSET);
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            hash = piece.iter().take(read).fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
        }
        let file = path.file_name().map(|name| CleanText::of_bytes(name.as_encoded_bytes()));
        Ok(KeptOutput { file: file.unwrap_or_default(), bytes, hash: format!("{hash:016x}").into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes of the reference: http://www.isthe.com/chongo/tech/comp/fnv.
    #[test]
    fn a_file_is_known_by_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        for (text, hash) in [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            let path = folder.path().join("trace.out");
            std::fs::write(&path, text).expect("written");
            let expected = KeptOutput { file: "trace.out".into(), bytes: text.len() as u64, hash: hash.into() };
            assert_eq!(KeptOutput::of(&path).expect("read"), expected);
        }
    }
}
