//! `schedviz machine`: the machine that a trace is recorded on, as a file beside the trace.

use anyhow::{Result, bail};
use machine::{Machine, Root};
use question::Subcommand;
use sched::event::CleanText;
use session::formats::{Formats, OutputArgs, OutputName, Renderings};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::text::lines;

/// Describe this machine: topology, kernel, scheduler settings, cgroups, affinity of the tasks
///
/// Every command that reads NAME.dat uses NAME.machine.json beside it; --topology has precedence. Write the file on the
/// traced machine, while the traced work runs: the CPUs that tasks may use are in it. It holds no host name, no user
/// name, no environment and no arguments. Some settings are readable by root alone.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct MachineArgs {
    /// Folder that has the machine's sys and proc in it, such as the root of the host in a container
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
    /// Keep the values of all parameters on the kernel's command line, some of which can identify the machine
    #[arg(long)]
    keep_arguments: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// Print only errors to standard error
    #[arg(short, long)]
    quiet: bool,
}

/// The forms of its output.
const FORMATS: Formats = Formats::TEXT;

const EXAMPLES: &str = "\
Examples:
  sudo schedviz machine -o trace.machine.json      the machine of trace.dat
  schedviz machine                                 a summary";

/// The machine file.
#[derive(Debug)]
pub(crate) struct MachineCommand;

impl Subcommand for MachineCommand {
    const NAME: &'static str = "machine";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("How do I record a run, and the machine it ran on?", ""));
    type Args = MachineArgs;

    fn run(args: &MachineArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Reads the machine and prints or saves it.
pub(crate) fn run(args: &MachineArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    if !args.root.is_dir() {
        bail!("--root: {} is not a folder", args.root.display());
    }
    let machine = Machine::read(&Root::at(&args.root), args.keep_arguments);
    let origin = OutputName::whole(Path::new("trace.machine"));
    let summary = Renderings::words(|| text(&machine));
    let forms = if args.quiet && args.output.wants_file() { summary.untold() } else { summary };
    args.output.give(&origin, "machine", &machine, forms, args.quiet)
}

fn text(machine: &Machine) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            lines(&mut out, 100, 0, 11, &format!("{name:<10} {value}"));
        }
    };
    line("machine", &machine.summary());
    let kernel = &machine.kernel;
    let words = [&kernel.release, &kernel.version, &kernel.architecture].map(Option::as_deref);
    line("kernel", &words.into_iter().flatten().collect::<Vec<_>>().join(" "));
    line("booted", kernel.command_line.as_deref().unwrap_or(""));
    line("model", machine.cpus.model.as_deref().unwrap_or(""));
    for node in &machine.cpus.nodes {
        line(&format!("node {}", node.node), &format!("CPUs {}", node.cpus));
    }
    let off: Vec<&str> =
        machine.scheduler.features.iter().map(CleanText::as_str).filter(|f| f.starts_with("NO_")).collect();
    line("features", &off.join(" "));
    for domain in &machine.scheduler.domains {
        let name = domain.settings.get("name").map_or("?", CleanText::as_str);
        line(&format!("domain {}", domain.level), &format!("{name}, CPUs {}", domain.cpus));
    }
    for cgroup in machine.cgroups.iter().filter(|cgroup| cgroup.is_limited()) {
        let limits = [("cpu.max", &cgroup.cpu_max), ("cpuset.cpus", &cgroup.cpus), ("partition", &cgroup.partition)];
        let limits = limits.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        let tasks = Some(cgroup.tasks.len()).filter(|tasks| *tasks > 0).map(|tasks| format!("{tasks} of the tasks"));
        let words: Vec<String> = limits.chain(tasks).collect();
        line("cgroup", format!("{} {}", cgroup.path, words.join(", ")).trim_end());
    }
    for affinity in &machine.affinity {
        for (cpus, tasks) in &affinity.tasks {
            let several = if cpus.contains(['-', ',']) { "s" } else { "" };
            line("affinity", &format!("CPU{several} {cpus} for {} of the tasks", tasks.len()));
        }
    }
    sched::event::escape_lines(&mut out, 0);
    out
}
