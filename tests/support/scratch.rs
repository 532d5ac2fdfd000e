//! Folders for the files of tests.

use std::path::{Path, PathBuf};

/// A directory for the files of a test, which is removed behind it; the files of a test that failed stay.
pub(crate) struct Scratch(PathBuf);

impl std::ops::Deref for Scratch {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // A test may have removed it.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Creates a directory for the files of a test.
pub(crate) fn scratch(name: &str) -> Scratch {
    let folder = std::env::temp_dir().join(format!("schedviz-test-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    Scratch(folder)
}
