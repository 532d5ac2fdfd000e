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
mod report;
mod running_waiting;
mod schedstat;
#[cfg(test)]
mod schemas;
mod stepper;
mod utilization;
mod view;
mod why;
mod workcons;

use anyhow::Result;
use clap::{ArgMatches, Args, FromArgMatches};
use std::ops::Deref;
use std::process::ExitCode;

/// Each variant's help is that of its arguments.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Info(Deferred<info::InfoArgs>),
    Dat2graph(Deferred<dat2graph::Dat2graphArgs>),
    RunningWaiting(Deferred<running_waiting::RunningWaitingArgs>),
    Workcons(Deferred<workcons::WorkconsArgs>),
    Why(Deferred<why::WhyArgs>),
    Path(Deferred<path::PathArgs>),
    Stepper(Deferred<stepper::StepperArgs>),
    Events(Deferred<events::EventsArgs>),
    Migrations(Deferred<migrations::MigrationsArgs>),
    View(Deferred<view::ViewArgs>),
    List(Deferred<events::list::ListArgs>),
    Latency(Deferred<latency::LatencyArgs>),
    Utilization(Deferred<utilization::UtilizationArgs>),
    Fairness(Deferred<fairness::FairnessArgs>),
    Plot(Deferred<plot::PlotArgs>),
    Report(Deferred<report::ReportArgs>),
    Compare(Deferred<compare::CompareArgs>),
    Schedstat(Deferred<schedstat::SchedstatArgs>),
    Export(Deferred<export::ExportArgs>),
    Cut(Deferred<cut::CutArgs>),
    #[cfg(target_os = "linux")]
    Record(Deferred<record::RecordArgs>),
    #[cfg(target_os = "linux")]
    Top(Deferred<record::top::TopArgs>),
    Machine(Deferred<machine::MachineArgs>),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    RunWhenContinued(Deferred<record::traced::HelperArgs>),
    Manual(Deferred<manual::ManualArgs>),
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
            Command::Top(args) => record::top::run(&args)?,
            // These judge.
            #[cfg(target_os = "linux")]
            Command::Record(args) => return record::run(&args),
            Command::Workcons(args) => return workcons::run(&args),
            Command::Compare(args) => return compare::run(&args),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Defines the arguments of every command, for pages that show them all. The commands come first: `help` copies their
/// descriptions.
pub(crate) fn define_all(command: &mut clap::Command) {
    command.get_subcommands_mut().for_each(clap::Command::build);
    command.build();
}

/// The arguments of a command, which are defined when the command is used: to define those of all commands takes longer
/// than to read a small trace.
#[derive(Debug)]
pub(crate) struct Deferred<A>(Box<A>);

impl<A> Deref for Deferred<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A: Args> Args for Deferred<A> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.defer(A::augment_args)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command.defer(A::augment_args_for_update)
    }
}

impl<A: FromArgMatches> FromArgMatches for Deferred<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(|args| Deferred(Box::new(args)))
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches_mut(matches).map(|args| Deferred(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}
