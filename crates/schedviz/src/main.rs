//! The `schedviz` program: glue between the reader, the analyses and the devices.

mod commands;
mod registry;

use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use question::Invocation;
use registry::COMMANDS;
use session::{args, inputs, messages, writer};
use std::path::Path;
use std::process::ExitCode;

// The allocator of musl has one lock for all threads and maps each large block anew: with 16 threads `why` took 1.7 to 2 times as long as with glibc
// (docs/performance.md).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    session::summary::take_findings(findings::summary);
    let mut command = registry::command_line();
    if !names_a_command(&command) {
        registry::define_all(&mut command);
    }
    let parsed = command.try_get_matches_from_mut(std::env::args_os()).and_then(|mut matches| {
        let registered = inputs::register(&command, &matches);
        let invocation = invocation(&mut matches).map_err(|e| e.format(&mut command))?;
        Ok((invocation, registered))
    });
    let (invocation, registered) = match parsed {
        Ok(parsed) => parsed,
        Err(e) => {
            let e = with_tip(e);
            // Help that could not be printed is an error, but for a reader, such as head, that has seen enough.
            let failed = e.print().is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe);
            // clap would exit with 2, which here means that a limit is exceeded.
            return ExitCode::from(u8::from(failed || e.use_stderr()));
        }
    };
    match registered.and_then(|()| invocation()) {
        Ok(code) => code,
        // The reader of the output, such as head, has seen enough.
        Err(e) if writer::is_closed_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            let mut message = format!("{e:#}");
            // Names of files and typed words are in it.
            sched::event::escape_lines(&mut message, 0);
            messages::emit(&message);
            ExitCode::from(1)
        }
    }
}

/// Returns the work that the command line asks for.
fn invocation(matches: &mut ArgMatches) -> Result<Invocation, clap::Error> {
    let chosen = matches.remove_subcommand();
    let found = chosen.and_then(|(name, matches)| Some((COMMANDS.iter().find(|entry| entry.name == name)?, matches)));
    let Some((entry, mut matches)) = found else { return Err(clap::Error::new(ErrorKind::MissingSubcommand)) };
    entry.parse(&mut matches)
}

/// Whether the command line begins with a command's name.
fn names_a_command(command: &clap::Command) -> bool {
    std::env::args_os().nth(1).is_some_and(|word| command.find_subcommand(word).is_some())
}

/// Adds a tip to the error of a command line that names a trace without a command.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && Path::new(word).is_file()
    {
        let tip = format!("this is a file; to see its content: schedviz info {}", args::shell_word(word.as_ref()));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if error.kind() == clap::error::ErrorKind::UnknownArgument
        && let Some(tip) = two_recordings(std::env::args_os().skip(1))
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The command line that `compare OLD NEW...` stands for, with the words of the command line behind the program's name; nothing where
/// another command or an option comes before the second file.
fn two_recordings(mut words: impl Iterator<Item = std::ffi::OsString>) -> Option<String> {
    words.next().filter(|word| word == "compare")?;
    let mut files = words.take_while(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let (base, new) = (files.next()?, files.map(|word| args::shell_word(&word)).collect::<Vec<_>>());
    let base = args::shell_word(&base);
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
