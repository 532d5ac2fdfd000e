//! The `schedviz` program as a library: what its tests and `main` share.
//!
//! In go the words of the command line, out come files, text and the exit status ([`run`]). [`COMMANDS`] is the list of commands,
//! which everything else follows from. Begin reading in `program.rs`, then `registry.rs`.

mod commands;
mod registry;

pub use registry::COMMANDS;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use question::{Entry, Invocation};
use session::{args, inputs, messages, pager, summary, writer};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Does what the command line asks for.
pub fn run() -> ExitCode {
    let mut command = registry::command_line();
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_paged = !takes_no_pager(&mut words);
    if names_a_recording(&command, &words) {
        words.insert(1, "findings".into());
    } else if words.get(1).is_none_or(|word| command.find_subcommand(word).is_none()) {
        // Help on the whole program shows all commands; elsewhere the arguments of one are enough.
        registry::define_all(&mut command);
    }
    // `workcons --summary` ends with findings. These are made of the report of workcons, which therefore cannot call them itself.
    summary::take_findings(findings::summary);
    let done = match asked(&mut command, &words) {
        Ok((entry, work)) => {
            if is_paged && entry.is_paged {
                pager::enable();
            }
            status(work())
        }
        Err(refused) => refusal(&with_tip(refused, &words), is_paged),
    };
    pager::end();
    done
}

/// Takes `--no-pager` out of the command line, wherever it stands; of one that runs another program, in front alone. Returns whether it was there.
fn takes_no_pager(words: &mut Vec<OsString>) -> bool {
    let last = if words.get(1).is_some_and(|word| word == "record") { 1 } else { words.len() };
    let found = words.iter().take(last).take_while(|word| *word != "--").position(|word| word == registry::NO_PAGER);
    found.map(|at| words.remove(at)).is_some()
}

/// Whether the command line names a recording without a command, `schedviz trace.dat`: its first word is a file, or an option and the first word
/// behind it that is a file or a command is a file. A command is one, whatever files there are.
fn names_a_recording(command: &Command, words: &[OsString]) -> bool {
    // A pipe of the shell is none that `is_file` knows, and a folder is more often a mistyped command.
    let is_file = |word: &OsString| Path::new(word).metadata().is_ok_and(|file| !file.is_dir());
    let mut words = words.iter().skip(1);
    let Some(first) = words.next() else { return false };
    if !first.as_encoded_bytes().starts_with(b"-") {
        return command.find_subcommand(first).is_none() && is_file(first);
    }
    if first == "--" {
        return words.next().is_some_and(is_file);
    }
    let of_program = ["-h", "--help", "-V", "--version"].iter().any(|option| first == option);
    let told = words.find(|word| command.find_subcommand(word).is_some() || is_file(word));
    !of_program && told.is_some_and(|word| command.find_subcommand(word).is_none())
}

/// Returns the work that the command line asks for. The files that it names are registered first: no output may replace them.
fn asked(command: &mut Command, words: &[OsString]) -> Result<(&'static Entry, Invocation), clap::Error> {
    let mut matches = command.try_get_matches_from_mut(words)?;
    let registered = inputs::register(command, &matches);
    let (entry, work) = invocation(&mut matches).map_err(|error| error.format(command))?;
    Ok((entry, Box::new(move || registered.and_then(|()| work()))))
}

/// Takes the chosen command and its arguments from what clap has matched.
fn invocation(matches: &mut ArgMatches) -> Result<(&'static Entry, Invocation), clap::Error> {
    let chosen = matches.remove_subcommand();
    let found = chosen.and_then(|(name, matches)| Some((COMMANDS.iter().find(|entry| entry.name == name)?, matches)));
    let Some((entry, mut matches)) = found else { return Err(clap::Error::new(ErrorKind::MissingSubcommand)) };
    Ok((entry, entry.parse(&mut matches)?))
}

/// The exit status of work that was done, or that ended with an error, which is printed.
fn status(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        // The reader of the output, such as head, has seen enough.
        Err(error) if writer::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let mut message = format!("{error:#}");
            // Names of files and typed words are in it.
            sched::event::escape_lines(&mut message, 0);
            messages::emit(&message);
            ExitCode::from(1)
        }
    }
}

/// Prints help, or what is wrong with the command line. clap would exit with 2, which here means that a limit is exceeded.
fn refusal(error: &clap::Error, is_paged: bool) -> ExitCode {
    if is_paged && error.kind() == ErrorKind::DisplayHelp {
        pager::enable();
        if pager::begin() {
            // clap colours text for terminals alone, and the pager is a pipe.
            let text = error.render();
            let text = if messages::is_plain() { text.to_string() } else { text.ansi().to_string() };
            return status(writer::print(text.as_bytes()).map(|()| ExitCode::SUCCESS));
        }
    }
    // Help that could not be printed is an error, but for a reader, such as head, that has seen enough.
    let failed = error.print().is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe);
    ExitCode::from(u8::from(failed || error.use_stderr()))
}

/// Adds a tip to the error of a command line that names several recordings as other programs do, or one that does not exist.
fn with_tip(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => several_recordings(words),
        ErrorKind::InvalidSubcommand if error.get(ContextKind::SuggestedSubcommand).is_none() => no_recording(words),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The command line that `compare OLD NEW...` or `findings OLD NEW...` stands for; nothing where another command or an option comes before the
/// second file.
fn several_recordings(words: &[OsString]) -> Option<String> {
    let mut words = words.iter().skip(1);
    words.next().filter(|word| *word == "compare" || *word == "findings")?;
    let mut files = words.take_while(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let (base, new) = (files.next()?, files.map(|word| args::shell_word(word)).collect::<Vec<_>>());
    let base = args::shell_word(base);
    let tip = format!("to compare recordings: schedviz compare --base {base} --new {}", new.join(" "));
    (!new.is_empty()).then_some(tip)
}

/// A tip on a first word that looks like the name of a file, which does not exist.
fn no_recording(words: &[OsString]) -> Option<String> {
    let word = words.get(1).filter(|word| word.as_encoded_bytes().iter().any(|byte| b"./".contains(byte)))?;
    let is_folder = Path::new(word).is_dir();
    let what = if is_folder { "is a folder; name a command before it" } else { "is no file here either" };
    Some(format!("{} {what}", args::shell_word(word)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::registry::command_line().debug_assert();
    }
}
