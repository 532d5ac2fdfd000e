//! Where the recordings are.

use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/schedviz is two levels down").to_owned()
}

/// A fixture, by its file name.
pub fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures").join(name)
}

/// All fixtures, and all recordings below the folder that `SCHEDVIZ_TRACES` names.
pub fn recordings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join("tests/fixtures"), &mut found);
    if let Some(more) = std::env::var_os("SCHEDVIZ_TRACES") {
        let before = found.len();
        collect(Path::new(&more), &mut found);
        assert!(found.len() > before, "SCHEDVIZ_TRACES names a folder without recordings: {more:?}");
    }
    found.sort();
    assert!(found.iter().any(|p| p.ends_with("tests/fixtures/hackbench.dat")));
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of recordings").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "dat") {
            found.push(path);
        }
    }
}
