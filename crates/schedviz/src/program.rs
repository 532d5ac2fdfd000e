//! The `schedviz` program as a library: what its tests and `main` share.
//!
//! In go the words of the command line, out come files, text and the exit status ([`run`]). [`COMMANDS`] is the list of commands,
//! which everything else follows from. Begin reading in `program.rs`, then `registry.rs`.

mod commands;
mod registry;

pub use registry::COMMANDS;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use question::Invocation;
use session::{args, inputs, messages, summary, writer};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Does what the command line asks for.
pub fn run() -> ExitCode {
    let mut command = registry::command_line();
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let first = words.get(1);
    if first.is_none_or(|word| command.find_subcommand(word).is_none()) {
        if first.is_some_and(|word| Path::new(word).is_file()) {
            words.insert(1, "findings".into());
        } else {
            // Help on the whole program shows all commands; elsewhere the arguments of one are enough.
            registry::define_all(&mut command);
        }
    }
    // `workcons --summary` ends with findings. These are made of the report of workcons, which therefore cannot call them itself.
    summary::take_findings(findings::summary);
    match asked(&mut command, &words) {
        Ok(work) => status(work()),
        Err(refused) => refusal(&with_tip(refused, &words)),
    }
}

/// Returns the work that the command line asks for. The files that it names are registered first: no output may replace them.
fn asked(command: &mut Command, words: &[OsString]) -> Result<Invocation, clap::Error> {
    let mut matches = command.try_get_matches_from_mut(words)?;
    let registered = inputs::register(command, &matches);
    let work = invocation(&mut matches).map_err(|error| error.format(command))?;
    Ok(Box::new(move || registered.and_then(|()| work())))
}

/// Takes the chosen command and its arguments from what clap has matched.
fn invocation(matches: &mut ArgMatches) -> Result<Invocation, clap::Error> {
    let chosen = matches.remove_subcommand();
    let found = chosen.and_then(|(name, matches)| Some((COMMANDS.iter().find(|entry| entry.name == name)?, matches)));
    let Some((entry, mut matches)) = found else { return Err(clap::Error::new(ErrorKind::MissingSubcommand)) };
    entry.parse(&mut matches)
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
fn refusal(error: &clap::Error) -> ExitCode {
    // Help that could not be printed is an error, but for a reader, such as head, that has seen enough.
    let failed = error.print().is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe);
    ExitCode::from(u8::from(failed || error.use_stderr()))
}

/// Adds a tip to the error of a command line that compares two recordings as other programs do.
fn with_tip(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(tip) = two_recordings(words)
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The command line that `compare OLD NEW...` stands for; nothing where another command or an option comes before the second file.
fn two_recordings(words: &[OsString]) -> Option<String> {
    let mut words = words.iter().skip(1);
    words.next().filter(|word| *word == "compare")?;
    let mut files = words.take_while(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let (base, new) = (files.next()?, files.map(|word| args::shell_word(word)).collect::<Vec<_>>());
    let base = args::shell_word(base);
    let tip = format!("to compare recordings: schedviz compare --base {base} --new {}", new.join(" "));
    (!new.is_empty()).then_some(tip)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::registry::command_line().debug_assert();
    }
}
