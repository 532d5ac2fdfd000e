//! The commands: each has its arguments and its examples, asks an analysis, and gives what that found.

mod compare;
mod cut;
mod dat2graph;
mod events;
mod export;
mod fairness;
mod info;
mod latency;
mod machine;
mod manual;
mod migrations;
mod path;
mod plot;
#[cfg(target_os = "linux")]
mod record;
mod report;
mod running_waiting;
mod schedstat;
#[cfg(test)]
mod schemas;
mod stepper;
#[cfg(target_os = "linux")]
mod top;
mod utilization;
mod view;
mod why;
mod workcons;

use anyhow::Result;
use std::process::ExitCode;

/// Each variant's help is that of its arguments.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Info(info::InfoArgs),
    Dat2graph(Box<dat2graph::Dat2graphArgs>),
    RunningWaiting(Box<running_waiting::RunningWaitingArgs>),
    Workcons(Box<workcons::WorkconsArgs>),
    Why(Box<why::WhyArgs>),
    Path(Box<path::PathArgs>),
    Stepper(Box<stepper::StepperArgs>),
    Events(Box<events::EventsArgs>),
    Migrations(Box<migrations::MigrationsArgs>),
    View(Box<view::ViewArgs>),
    List(Box<events::list::ListArgs>),
    Latency(Box<latency::LatencyArgs>),
    Utilization(Box<utilization::UtilizationArgs>),
    Fairness(Box<fairness::FairnessArgs>),
    Plot(Box<plot::PlotArgs>),
    Report(report::ReportArgs),
    Compare(Box<compare::CompareArgs>),
    Schedstat(Box<schedstat::SchedstatArgs>),
    Export(Box<export::ExportArgs>),
    Cut(Box<cut::CutArgs>),
    #[cfg(target_os = "linux")]
    Record(Box<record::RecordArgs>),
    #[cfg(target_os = "linux")]
    Top(Box<top::TopArgs>),
    Machine(machine::MachineArgs),
    /// The process that becomes the traced command
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    RunWhenContinued(record::traced::HelperArgs),
    Manual(manual::ManualArgs),
}

impl Command {
    /// Runs the command, and returns the exit code.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Command::Info(args) => info::run(&args)?,
            Command::Dat2graph(args) => dat2graph::run(&args)?,
            Command::RunningWaiting(args) => running_waiting::run(&args)?,
            Command::Why(args) => why::run(&args)?,
            Command::Path(args) => path::run(&args)?,
            Command::Stepper(args) => stepper::run(&args)?,
            Command::Events(args) => events::run(&args)?,
            Command::Migrations(args) => migrations::run(&args)?,
            Command::View(args) => view::run(&args)?,
            Command::List(args) => events::list::run(&args)?,
            Command::Latency(args) => latency::run(&args)?,
            Command::Utilization(args) => utilization::run(&args)?,
            Command::Fairness(args) => fairness::run(&args)?,
            Command::Plot(args) => plot::run(&args)?,
            Command::Report(args) => report::run(&args)?,
            Command::Schedstat(args) => schedstat::run(&args)?,
            Command::Export(args) => export::run(&args)?,
            Command::Cut(args) => cut::run(&args)?,
            Command::Machine(args) => machine::run(&args)?,
            Command::Manual(args) => manual::run(&args)?,
            #[cfg(target_os = "linux")]
            Command::RunWhenContinued(args) => record::traced::run_helper(&args)?,
            #[cfg(target_os = "linux")]
            Command::Top(args) => top::run(&args)?,
            // These judge.
            #[cfg(target_os = "linux")]
            Command::Record(args) => return record::run(&args),
            Command::Workcons(args) => return workcons::run(&args),
            Command::Compare(args) => return compare::run(&args),
        }
        Ok(ExitCode::SUCCESS)
    }
}
