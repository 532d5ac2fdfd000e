//! The recordings that the arguments choose, by group, and the sweep that the groups are.

use crate::CompareArgs;
use crate::sweep::{self, PARAMETER, Sweep, SweepFiles, SweptFiles};
use anyhow::{Context, Result, bail};
use session::groups;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The chosen recordings.
pub(crate) struct ChosenRuns {
    /// The name and the files of each group, the base first.
    pub(crate) groups: Vec<(String, Vec<PathBuf>)>,
    /// The sweep that the groups are.
    pub(crate) sweep: Option<Sweep>,
    /// The command's own number by recording.
    pub(crate) own: HashMap<PathBuf, f64>,
    /// The round of each recording of a series.
    pub(crate) rounds: HashMap<PathBuf, usize>,
    /// Whether a test ended the series.
    pub(crate) ends_early: bool,
    /// Messages about groups that are left out.
    pub(crate) notes: Vec<String>,
}

impl ChosenRuns {
    /// Finds the recordings that the arguments choose.
    pub(crate) fn of(args: &CompareArgs) -> Result<ChosenRuns> {
        match &args.folder {
            Some(path) => Ok(ChosenRuns::of_folder(folder(path)?)),
            None => ChosenRuns::of_files(args),
        }
    }

    fn of_folder(folder: groups::Folder) -> ChosenRuns {
        let sweep = Sweep::of_names(&names(&folder.groups));
        let (own, rounds, ends_early) = (folder.metrics, folder.rounds, folder.auto.is_some());
        ChosenRuns { groups: folder.groups, sweep, own, rounds, ends_early, notes: Vec::new() }
    }

    /// Groups of files that belong to no series.
    fn of_groups(groups: Vec<(String, Vec<PathBuf>)>) -> ChosenRuns {
        let (own, rounds) = (HashMap::new(), HashMap::new());
        ChosenRuns { groups, sweep: None, own, rounds, ends_early: false, notes: Vec::new() }
    }

    fn of_files(args: &CompareArgs) -> Result<ChosenRuns> {
        let sides = [("base", &args.base), ("new", &args.new)].into_iter().filter(|(_, files)| !files.is_empty());
        let mut given: Vec<(String, &str, &[String])> =
            sides.map(|(name, files)| (format!("--{name}"), name, files.as_slice())).collect();
        given.extend(args.group.iter().map(|group| (format!("--group {}", group.name()), group.name(), group.files())));
        let mut patterns = given.iter().flat_map(|(.., files)| *files).map(|file| file.contains(PARAMETER));
        let (any, all) = (patterns.clone().any(|swept| swept), patterns.all(|swept| swept));
        if any && !all {
            bail!("{PARAMETER} stands for the parameter of a sweep: either each of the files has it, or none");
        }
        if any {
            return ChosenRuns::of_patterns(&given);
        }
        let expanded = |(option, name, files): &(String, &str, &[String])| {
            Ok(((*name).to_owned(), groups::expand(files.iter().map(String::as_str), option)?))
        };
        let groups = given.iter().map(expanded).collect::<Result<Vec<_>>>()?;
        let sweep = Sweep::of_names(&names(&groups));
        Ok(ChosenRuns { sweep, ..ChosenRuns::of_groups(groups) })
    }

    /// The groups of patterns, each of which has the parameter.
    fn of_patterns(given: &[(String, &str, &[String])]) -> Result<ChosenRuns> {
        let variant = |(option, name, files): &(String, &str, &[String])| {
            let mut all = SweptFiles::new();
            for pattern in *files {
                let found = sweep::find(pattern).with_context(|| pattern.clone())?;
                if found.is_empty() {
                    bail!("{option}: no file matches {pattern}, with a number for {PARAMETER}");
                }
                for (parameter, files) in found {
                    all.entry(parameter).or_default().extend(files);
                }
            }
            Ok(((*name).to_owned(), all))
        };
        let variants = given.iter().map(variant).collect::<Result<Vec<_>>>()?;
        let Some(SweepFiles { sweep, groups, notes }) = Sweep::of_files(&variants) else {
            bail!("a sweep needs two numbers for {PARAMETER} at which every variant has runs");
        };
        Ok(ChosenRuns { sweep: Some(sweep), notes, ..ChosenRuns::of_groups(groups) })
    }
}

fn names(groups: &[(String, Vec<PathBuf>)]) -> Vec<&str> {
    groups.iter().map(|(name, _)| name.as_str()).collect()
}

/// The runs of a folder.
fn folder(path: &Path) -> Result<groups::Folder> {
    let Some(folder) = groups::Folder::open(path)? else {
        let (name, word) = (path.display(), session::args::shell_word(path.as_os_str()));
        bail!(
            "{name} is not a folder of schedviz record --runs; to compare recordings: schedviz compare --base {word} --new FILE"
        );
    };
    Ok(folder)
}
