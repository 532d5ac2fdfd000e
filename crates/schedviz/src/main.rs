//! The `schedviz` program: glue between the reader, the analyses and the devices.

mod commands;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser};
use commands::Command;
use session::{args, inputs, messages, writer};
use std::path::Path;
use std::process::ExitCode;

/// See what the Linux scheduler did, from what trace-cmd recorded
#[derive(Debug, Parser)]
#[command(name = "schedviz", version, max_term_width = 80, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
First steps:
  schedviz record -- make -j8                   record a run, as trace.dat
  schedviz info trace.dat                       its contents and its losses
  schedviz dat2graph trace.dat                  what ran on every CPU
  schedviz dat2graph trace.dat --min 3 --max 3.2 --color-by command
  schedviz running-waiting trace.dat --forked   when tasks waited beside idle
                                                CPUs
  schedviz workcons trace.dat                   how often that happened
  schedviz why trace.dat                        why it happened
  schedviz path trace.dat                       whether it cost time
  schedviz stepper trace.dat --tui              the run queues, event by event
  schedviz view trace.dat                       all of it, to move through in
                                                a browser
  schedviz list trace.dat --min 1.2 --max 1.21  the events as text
  schedviz migrations trace.dat                 the causes of migrations
  schedviz plot locks trace.dat                 figures by a specification
  schedviz latency trace.dat                    how long woken tasks waited
  schedviz utilization trace.dat                CPU time by class, like mpstat
  schedviz fairness trace.dat --forked          how evenly CPU time was shared
  schedviz report trace.dat                     all of these in one page
  schedviz compare --base 'old.*.dat' --new 'new.*.dat'
                                                what a patch changed
  schedviz schedstat before after --time 5.9    counters of /proc/schedstat

Exit status:
  0  done
  1  error
  2  a given limit is exceeded
  3  the trace has too many losses to judge a limit";

fn main() -> ExitCode {
    let mut command = Cli::command();
    if !names_a_command(&command) {
        commands::define_all(&mut command);
    }
    let parsed = command.try_get_matches_from_mut(std::env::args_os()).and_then(|mut matches| {
        let registered = inputs::register(&command, &matches);
        let cli = Cli::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut command))?;
        Ok((cli, registered))
    });
    let (cli, registered) = match parsed {
        Ok(parsed) => parsed,
        Err(e) => {
            let e = with_tip(e);
            // Help that could not be printed is an error, but for a reader, such as head, that has seen enough.
            let failed = e.print().is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe);
            // clap would exit with 2, which here means that a limit is exceeded.
            return ExitCode::from(u8::from(failed || e.use_stderr()));
        }
    };
    match registered.and_then(|()| cli.command.run()) {
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
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
