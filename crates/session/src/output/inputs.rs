//! The files that a command reads: none of them is ever written to.
//!
//! The crate `opened` remembers each file that is opened for reading, and every output asks it before it takes its place
//! ([`refuse`], [`refuse_folder`]). A command reads some files only after a long time; every word of the command line that names
//! a file is therefore taken for an input from the start, whichever option it belongs to.

use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use machine::Machine;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// The options that name an output: their words are no inputs.
pub const OUTPUTS: [&str; 5] = ["output", "perfetto", "index", "summary", "as_trace"];

/// The argument that holds a command to run.
const COMMAND: &str = "command";

/// Notes the inputs that the command line names, and refuses an output file that is one of them, before any work is
/// done.
pub fn register(command: &Command, matches: &ArgMatches) -> Result<()> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let Some(command) = command.find_subcommand(name) else { return Ok(()) };
    let arguments = command.get_arguments().map(|argument| argument.get_id().as_str());
    for argument in arguments.filter(|id| !OUTPUTS.contains(id)) {
        for word in matches.try_get_raw(argument).ok().flatten().into_iter().flatten() {
            // The words of a command that is run name no traces, with a machine file beside them.
            let files = if argument == COMMAND { vec![PathBuf::from(word)] } else { candidates(word) };
            files.iter().for_each(|path| opened::will_read(path));
        }
    }
    let named = OUTPUTS.iter().filter_map(|option| matches.try_get_raw(option).ok().flatten()).flatten();
    for output in named.map(Path::new) {
        refuse(output)?;
        if output.is_dir() {
            refuse_folder(output)?;
        }
    }
    Ok(())
}

/// The files that a word of the command line may name: itself, or the members of a group, `NAME=FILE[,FILE...]`; with
/// `*` those that match; those in a folder of runs, and the machine file beside each.
pub fn candidates(word: &OsStr) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from(word)];
    let Some(text) = word.to_str() else { return found };
    let members = text.split_once('=').map_or(text, |(_, members)| members);
    for member in members.split(',').chain([text]) {
        found.extend(crate::groups::expand([member].into_iter(), "").unwrap_or_default());
    }
    // A folder of runs stands for the files in it.
    let folders = found.iter().filter(|path| path.join(crate::runs::FILE).is_file());
    let inside: Vec<PathBuf> = folders
        .filter_map(|path| path.read_dir().ok())
        .flat_map(|entries| entries.flatten().map(|e| e.path()))
        .collect();
    found.extend(inside);
    // The machine file beside a trace is read with it.
    found.extend(found.clone().iter().map(|path| Machine::path_beside(path)));
    found
}

/// Refuses to write to an input.
pub fn refuse(output: &Path) -> io::Result<()> {
    let Some(input) = opened::same_as(output) else { return Ok(()) };
    let (output, input) = (output.display(), input.display());
    Err(io::Error::other(format!("{output} is an input of this command ({input}); choose another name for the output")))
}

/// Refuses to replace a folder that has an input in it.
pub fn refuse_folder(output: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(output) else { return Ok(()) };
    for entry in entries.flatten() {
        refuse(&entry.path())?;
    }
    if let Some(input) = opened::inside(output) {
        let (output, input) = (output.display(), input.display());
        bail!("the folder {output} has an input of this command in it ({input}); choose another name for the output");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_files() {
        let named = |word: &str| candidates(OsStr::new(word));
        let has = |word: &str, path: &str| named(word).contains(&PathBuf::from(path));
        assert!(has("a,b=c.dat", "a,b=c.dat") && has("a,b=c.dat", "c.dat"));
        assert!(has("new=x/1.dat,x/2.dat", "x/2.dat") && has("a.dat,b.dat", "b.dat"));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/output");
        assert!(has(&format!("{folder}/*puts.rs"), &format!("{folder}/inputs.rs")));
    }
}
