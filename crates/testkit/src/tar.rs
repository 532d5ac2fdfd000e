//! Archives of files.

/// A tar archive of files, each with its name of at most 100 bytes, by the format's description (POSIX `ustar`, without check sums).
#[must_use]
pub fn tar(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        let mut head = vec![0u8; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        head[156] = b'0';
        head[257..263].copy_from_slice(b"ustar\0");
        out.extend(head);
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}
