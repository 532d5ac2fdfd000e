//! Groups of recordings, as options name them.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// That a file of a group is left out, since it holds the same recording as another. Twice the same run is not two
/// runs: noise would look smaller than it is.
pub(crate) fn again(group: &str, file: &str, other: &str) -> String {
    format!("{group}: {file} is left out: it is the recording of {other} again")
}

/// The files of `NAME=FILE[,FILE...]`.
pub(crate) fn members(group: &str) -> Result<(String, Vec<PathBuf>)> {
    let Some((name, files)) = group.split_once('=').filter(|(name, files)| !name.is_empty() && !files.is_empty())
    else {
        bail!("--group: {group:?} is not NAME=FILE[,FILE...]");
    };
    Ok((name.to_owned(), expand(files.split(','), &format!("--group {name}"))?))
}

/// Files by their names, in which a `*` stands for anything; `option`: who names them.
pub(crate) fn expand<'f>(files: impl Iterator<Item = &'f str>, option: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for file in files {
        let path = Path::new(file);
        let pattern = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if !pattern.contains('*') {
            found.push(path.to_owned());
            continue;
        }
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut matching: Vec<PathBuf> = entries
            .flatten()
            .filter(|e| crate::patterns::matches(&pattern, &e.file_name().to_string_lossy()))
            .map(|e| e.path())
            .collect();
        if matching.is_empty() {
            bail!("{option}: no file matches {file}");
        }
        matching.sort();
        found.extend(matching);
    }
    Ok(found)
}
