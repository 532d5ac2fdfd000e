//! The one list of the program's commands: command line, help, the sections of `report` and the JSON schemas follow from it, and
//! so does the table in the README. Tests compare the rest of the documentation with it.

mod arguments;
mod completions;
mod described;
#[cfg(test)]
mod documentation;
mod manual;
mod mcp;
mod report;
#[cfg(all(test, feature = "schema"))]
mod schemas;
mod values;

use crate::commands;
use question::Entry;
use std::fmt::Write;

/// The commands, in the order of help; the sections of a report have the same order.
pub const COMMANDS: &[Entry] = &[
    #[cfg(target_os = "linux")]
    Entry::command::<record::RecordCommand>(),
    Entry::question::<findings::FindingsQuestion>(),
    Entry::command::<commands::info::InfoCommand>(),
    Entry::question::<dat2graph::Dat2graphQuestion>(),
    Entry::question::<running_waiting::RunningWaitingQuestion>(),
    Entry::question::<workcons::WorkconsQuestion>(),
    Entry::question::<why::WhyQuestion>(),
    Entry::question::<path::PathQuestion>(),
    Entry::question::<whatif::WhatifQuestion>(),
    Entry::question::<utilization::UtilizationQuestion>(),
    Entry::question::<latency::LatencyQuestion>(),
    Entry::question::<preemptions::PreemptionsQuestion>(),
    Entry::question::<wakers::WakersQuestion>(),
    Entry::question::<jobs::JobsQuestion>(),
    Entry::question::<picks::PicksQuestion>(),
    Entry::question::<offcpu::OffCpuQuestion>(),
    Entry::question::<fairness::FairnessQuestion>(),
    Entry::question::<neighbours::NeighboursQuestion>(),
    Entry::question::<residency::ResidencyQuestion>(),
    Entry::question::<events::MigrationsQuestion>(),
    Entry::question::<events::EventsQuestion>(),
    Entry::question::<plot::PlotQuestion>(),
    Entry::question::<stepper::StepperQuestion>(),
    Entry::command::<view::ViewCommand>(),
    Entry::command::<events::ListCommand>(),
    Entry::command::<report::ReportCommand>(),
    Entry::question::<compare::CompareQuestion>(),
    Entry::question::<schedstat::SchedstatQuestion>(),
    Entry::command::<export::ExportCommand>(),
    Entry::command::<commands::cut::CutCommand>(),
    Entry::command::<reproduce::ReproduceCommand>(),
    #[cfg(target_os = "linux")]
    Entry::command::<record::TopCommand>(),
    Entry::command::<commands::machine::MachineCommand>(),
    Entry::command::<mcp::McpCommand>(),
    Entry::command::<manual::ManualCommand>(),
    Entry::command::<values::CompleteCommand>(),
    #[cfg(target_os = "linux")]
    Entry::command::<record::RunWhenContinued>(),
];

/// The headings of `schedviz --help`, each with the command that is the first one below it.
const HEADINGS: &[(&str, &str)] = &[
    ("Begin here", "record"),
    ("Work conservation: idle CPUs beside waiting tasks", "dat2graph"),
    ("CPUs, tasks and the scheduler's decisions", "utilization"),
    ("Events and instants", "events"),
    ("Reports, comparisons and tables", "report"),
    ("This machine and this program", "top"),
];

/// The column of `schedviz --help` in which the description of a command begins.
const DESCRIPTION: usize = 19;

/// The columns of the narrowest terminal that shows help without broken lines.
const TERMINAL: usize = 80;

/// The commands below their headings, each with its description, as `schedviz --help` shows them.
fn grouped_commands(command: &clap::Command) -> String {
    let header = command.get_styles().get_header();
    let name = command.get_styles().get_literal();
    let mut out = String::new();
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    for command in shown {
        if let Some((heading, _)) = HEADINGS.iter().find(|(_, first)| *first == command.get_name()) {
            let above = if out.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{above}{header}{heading}:{header:#}");
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let names =
            [command.get_name()].into_iter().chain(command.get_visible_aliases()).collect::<Vec<_>>().join(", ");
        let pad = DESCRIPTION.saturating_sub(2 + names.len());
        let _ = write!(out, "  {name}{names}{name:#}{:pad$}", "");
        let mut lines = String::new();
        timeline::text::lines(&mut lines, TERMINAL, DESCRIPTION, DESCRIPTION, &about);
        out.push_str(lines.trim_start());
    }
    out
}

/// The column of `schedviz --help` in which the purpose of a first step begins.
const PURPOSE: usize = 48;

/// The lines behind the list of commands in `schedviz --help`.
fn after_help() -> String {
    let mut out = "First steps:\n".to_owned();
    for (line, purpose) in COMMANDS.iter().filter_map(|entry| entry.first_step) {
        let command = format!("  schedviz {line}");
        // A long command has its purpose on the next line. Writing to a string cannot fail.
        let _ = match command.len() < PURPOSE {
            true => writeln!(out, "{command:<PURPOSE$}{purpose}"),
            false => writeln!(out, "{command}\n{:PURPOSE$}{purpose}", ""),
        };
    }
    out + EXIT_STATUS
}

/// The option that keeps text out of the pager.
pub(crate) const NO_PAGER: &str = "--no-pager";

const EXIT_STATUS: &str = "
Exit status:
  0  done
  1  error
  2  a given limit is exceeded
  3  the trace has too many losses to judge a limit";

/// Returns the definition of the command line.
pub(crate) fn command_line() -> clap::Command {
    clap::Command::new("schedviz")
        .version(env!("CARGO_PKG_VERSION"))
        .about("See what the Linux scheduler did, from a recording by schedviz, trace-cmd or perf")
        .override_usage("schedviz <COMMAND>\n       schedviz <TRACE>     the same as schedviz findings <TRACE>")
        .max_term_width(80)
        .arg(
            // `program.rs` takes it from the command line before clap sees it: it may stand behind the command as well.
            clap::Arg::new("no-pager")
                .long(NO_PAGER.trim_start_matches('-'))
                .action(clap::ArgAction::SetTrue)
                .help("Print long text on the terminal itself, not through SCHEDVIZ_PAGER, PAGER or less"),
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(COMMANDS.iter().map(Entry::definition))
}

/// Defines the arguments of every command and the first steps, for pages that show them all. The commands come first: `help` copies their
/// descriptions.
pub(crate) fn define_all(command: &mut clap::Command) {
    *command = std::mem::take(command).after_help(after_help());
    command.get_subcommands_mut().for_each(clap::Command::build);
    command.build();
    let header = *command.get_styles().get_header();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\n{header}Options:{header:#}\n{{options}}{{after-help}}",
        grouped_commands(command)
    );
    *command = std::mem::take(command).help_template(template);
}
