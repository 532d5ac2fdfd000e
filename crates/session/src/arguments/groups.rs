//! Groups of recordings, as options name them.

use crate::args::{ReadArgs, read_text};
use crate::runs::FILE;
use crate::runs::{AutoSeries, RunsFile};
use anyhow::{Context, Result, bail};
use sched::Ts;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The message that a file of a group is left out, since it holds the same recording as another. Twice the same run
/// is not two runs: noise would look smaller than it is.
pub fn again(group: &str, file: &str, other: &str) -> String {
    format!("{group}: {file} is left out: it is the recording of {other} again")
}

/// The facts that distinguish the runs of a group: the group, the first and last instant, and the name.
pub type Facts<'r> = (Option<&'r String>, Option<(Ts, Ts)>, &'r str);

/// Returns the runs without those of a group that hold the same recording as another of it, each with a message.
pub fn distinct<R>(runs: Vec<R>, facts: for<'r> fn(&'r R) -> Facts<'r>, read: &ReadArgs) -> Vec<R> {
    let mut kept: Vec<R> = Vec::new();
    for run in runs {
        let (group, recording, name) = facts(&run);
        let same = kept.iter().map(facts).find(|other| (other.0, other.1) == (group, recording));
        match (group, same) {
            (Some(group), Some((.., other))) => read.message(&again(group, name, other)),
            _ => kept.push(run),
        }
    }
    kept
}

/// The recordings of a question about one run or several
#[derive(Clone, Debug, clap::Args)]
pub struct RunsArgs {
    /// The recordings: one is reported in full, several in a table; a folder of schedviz record --runs stands for its groups
    #[arg(required_unless_present = "group")]
    traces: Vec<PathBuf>,
    /// Runs that belong together: NAME=FILE[,FILE...]; * in a file name stands for anything
    #[arg(long, value_name = "NAME=FILES")]
    group: Vec<GroupArg>,
}

impl RunsArgs {
    /// Returns the recordings: see [`files`].
    pub fn files(&self) -> Result<Vec<(Option<String>, PathBuf)>> {
        files(&self.traces, &self.group)
    }
}

/// The recordings that a command is given, each with its group: files without one, folders of `record --runs`, which
/// stand for their groups, and the members of `--group`.
pub fn files(traces: &[PathBuf], groups: &[GroupArg]) -> Result<Vec<(Option<String>, PathBuf)>> {
    let of_group = |(name, paths): (String, Vec<PathBuf>)| -> Vec<(Option<String>, PathBuf)> {
        paths.into_iter().map(|path| (Some(name.clone()), path)).collect()
    };
    let mut files = Vec::new();
    for path in traces {
        match Folder::open(path)? {
            None => files.push((None, path.clone())),
            Some(folder) => files.extend(folder.groups.into_iter().flat_map(of_group)),
        }
    }
    for group in groups {
        files.extend(of_group(group.members()?));
    }
    Ok(files)
}

/// The names of several files, fit to be printed. Those with the same file name have as many folders in front as
/// distinguish them.
pub fn names(paths: &[&Path]) -> Vec<String> {
    let parts = |path: &Path| -> Vec<String> {
        path.components().map(|part| sched::event::escape(part.as_os_str().as_encoded_bytes()).into_owned()).collect()
    };
    let all: Vec<Vec<String>> = paths.iter().map(|path| parts(path)).collect();
    let end = |parts: &[String], depth: usize| parts[parts.len().saturating_sub(depth)..].to_vec();
    let name = |parts: &Vec<String>| {
        let is_alone =
            |depth: &usize| all.iter().all(|other| other == parts || end(other, *depth) != end(parts, *depth));
        let depth = (1..parts.len()).find(is_alone).unwrap_or(parts.len());
        end(parts, depth).join("/").replace("//", "/")
    };
    all.iter().map(name).collect()
}

/// A group of recordings: `NAME=FILE[,FILE...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupArg {
    name: String,
    /// The names of the files, in which a `*` stands for anything.
    files: Vec<String>,
}

impl FromStr for GroupArg {
    type Err = String;

    fn from_str(text: &str) -> Result<GroupArg, String> {
        match text.split_once('=').filter(|(name, files)| !name.is_empty() && !files.is_empty()) {
            Some((name, files)) => {
                Ok(GroupArg { name: name.to_owned(), files: files.split(',').map(str::to_owned).collect() })
            }
            None => Err("this is not NAME=FILE[,FILE...]".to_owned()),
        }
    }
}

impl GroupArg {
    /// The name of the group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the files as they are given, in which a `*` stands for anything.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The name and the files.
    pub fn members(&self) -> Result<(String, Vec<PathBuf>)> {
        let files = self.files.iter().map(String::as_str);
        Ok((self.name.clone(), expand(files, &format!("--group {}", self.name))?))
    }
}

/// The recordings in a folder of `record --runs`, and the commands' own numbers.
pub struct Folder {
    /// The name and the files of each variant, the first as the base.
    pub groups: Vec<(String, Vec<PathBuf>)>,
    /// The command's own number by recording.
    pub metrics: HashMap<PathBuf, f64>,
    /// The round of each recording, from 1. A round has one recording of each variant, in random order.
    pub rounds: HashMap<PathBuf, usize>,
    /// The test that ended the series; none for a fixed number of runs.
    pub auto: Option<AutoSeries>,
}

impl Folder {
    /// Reads the list of runs in a folder; nothing if it has none.
    pub fn open(folder: &Path) -> Result<Option<Folder>> {
        let list = folder.join(FILE);
        if !list.is_file() {
            return Ok(None);
        }
        let text = read_text(&list)?;
        let runs = RunsFile::parse(&text).with_context(|| list.display().to_string())?;
        let mut files: HashMap<&str, Vec<PathBuf>> = HashMap::new();
        for run in &runs.runs {
            let file = run.trace.as_ref().map(|trace| folder.join(trace));
            files.entry(&run.variant).or_default().extend(file);
        }
        let mut files = |variant: &String| files.remove(variant.as_str()).unwrap_or_default();
        let groups = runs.variants.iter().map(|variant| (variant.clone(), files(variant))).collect();
        let metric = |run: &crate::runs::VariantRun| Some((folder.join(run.trace.as_ref()?), run.metric?));
        let round = |run: &crate::runs::VariantRun| Some((folder.join(run.trace.as_ref()?), run.number));
        Ok(Some(Folder {
            groups,
            metrics: runs.runs.iter().filter_map(metric).collect(),
            rounds: runs.runs.iter().filter_map(round).collect(),
            auto: runs.auto,
        }))
    }
}

/// The files of these names, in which a `*` stands for anything. `option` is the option with these names, for the
/// message where there is no such file.
pub fn expand<'f>(files: impl Iterator<Item = &'f str>, option: &str) -> Result<Vec<PathBuf>> {
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
            .filter(|e| crate::arguments::patterns::matches(&pattern, &e.file_name().to_string_lossy()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_same_name_are_told_apart() {
        let named = |paths: &[&str]| names(&paths.iter().map(Path::new).collect::<Vec<_>>());
        assert_eq!(named(&["a/1.dat", "b/2.dat"]), ["1.dat", "2.dat"]);
        assert_eq!(named(&["a/1.dat", "b/1.dat", "b/2.dat"]), ["a/1.dat", "b/1.dat", "2.dat"]);
        assert_eq!(named(&["x/a/1.dat", "y/a/1.dat", "1.dat"]), ["x/a/1.dat", "y/a/1.dat", "1.dat"]);
        // The same file twice has the same name.
        assert_eq!(named(&["a/1.dat", "a/1.dat", "/1.dat"]), ["a/1.dat", "a/1.dat", "/1.dat"]);
    }
}
