//! `schedviz migrations`: which tasks were migrated, why, how far, and when they ran.

use super::events::balance::{self, Choice};
use anyhow::Result;
use session::args::{TaskArgs, TraceArgs};
use session::formats::{Formats, OutputArgs};

/// Which tasks were migrated, and why: steals, balancing, wakeup placements, NUMA moves
///
/// Migrations by cause and distance, with the time until each task ran; herds, which are at least four queued tasks that
/// leave one CPU for one other within a millisecond; and, with probes on the balancer (group lb), the outcome of its
/// attempts.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct MigrationsArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Draw what ran in colour, not in pale grey
    #[arg(long)]
    in_color: bool,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const FORMATS: Formats = Formats::figure_of("migrations").and_text().and_table();

const EXAMPLES: &str = "\
Examples:
  schedviz migrations trace.dat                            the causes, and a figure as trace.migrations.pdf
  schedviz migrations trace.dat --topology lscpu.json      with distances (lscpu -e -J > lscpu.json)
  schedviz migrations trace.dat --tasks '^redis' -o moves.csv   one by one, as a table";

/// Finds the causes, prints and draws.
pub(crate) fn run(args: &MigrationsArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.tasks.without_forked("migrations")?;
    let session = args.trace.open()?;
    args.tasks.check(&session)?;
    let MigrationsArgs { tasks, output, in_color, .. } = args;
    balance::run(&Choice { tasks, output, in_color: *in_color, command: "migrations" }, &session)
}
