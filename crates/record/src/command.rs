//! `schedviz record`: records a command with the events that the analyses need, and the machine beside the trace.

mod check;
mod counted;
mod dry_run;
mod kept_output;
mod probes;
mod running;
mod runs;
mod save;
mod series_test;
mod stream;
mod until;

use crate::kernel::{RunningKernel, available_kb};
use crate::plan::buffers::{default_size, format_size, parse_size};
use crate::plan::events::{EventPlan, WantedEvents};
use crate::signals::{self, Forwarder};
use crate::traced;
use crate::traced::{EndedCommand, Traced};
use anyhow::{Context, Result, bail};
use machine::{Machine, RecordedApplication, Root};
use question::Subcommand;
use regex::Regex;
use running::Lasting;
use runs::Variant;
use save::Saved;
use sched::event::CleanText;
use series_test::RunCount;
use session::formats::json;
use session::warnings::grouped;
use session::writer::replace;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracefs::{Instance, Need, Settings, Tracefs};

/// Record a command, or a machine that runs already: its scheduler events as TRACE.dat, the machine as TRACE.machine.json
///
/// The kernel keeps the events in memory while the command runs, in buffers of this recording's own; they are saved
/// afterwards. They include the moves between cgroups and the flags of new tasks, which show the cgroup and the process of each
/// task. No process runs meanwhile for the recording's sake, but the buffers must hold all of it: --dry-run
/// reports how large they must be. The machine is left as it was, also after an interrupt. Needs root, or write access to tracefs.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RecordArgs {
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["clean", "until", "time", "pid", "cgroup"])]
    command: Vec<OsString>,
    /// File to write, and the machine file beside it; with --runs the folder to create [default: trace.dat,
    /// trace.data with --counters, or runs]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also record the load balancer's decisions and requests to reschedule, by probes made for this kernel; prints which it
    /// takes
    #[arg(
        long,
        help_heading = "Events",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "balance",
        value_name = "WHAT"
    )]
    why: Option<probes::WhyProbes>,
    /// Also record interrupts and softirqs
    #[arg(long, help_heading = "Events")]
    irq: bool,
    /// Also record the frequencies of the CPUs
    #[arg(long, help_heading = "Events")]
    frequency: bool,
    /// Also record what ends sleeps, for whatif: interrupts, timers, completed requests of disks, and the calls that sleep for a time
    #[arg(long, help_heading = "Events")]
    whatif: bool,
    /// Also record NUMA balancing in detail
    #[arg(long, help_heading = "Events")]
    numa: bool,
    /// Also record the kernel's stack at each switch and each wakeup, for offcpu and --by stack; --dry-run shows the price. perf record -g
    /// has the stacks of programs as well
    #[arg(long, conflicts_with = "counters", help_heading = "Events")]
    stacks: bool,
    /// Also count processor cycles and cache misses by run, where this machine can; perf records then, not the kernel's tracer
    #[arg(long, conflicts_with_all = ["dry_run", "clean", "until", "stream", "runs", "clock"], help_heading = "Events")]
    counters: bool,
    /// Also record this event, or this system of events: sched:sched_stat_runtime, irq. May be repeated
    #[arg(short, long, value_name = "EVENT", help_heading = "Events")]
    event: Vec<String>,
    /// Size of each CPU's buffer: a number of KiB, or with K, M or G [default: an eighth of the available memory over all
    /// CPUs, from 1M to 64M]
    #[arg(short, long, value_name = "SIZE", value_parser = parse_size, help_heading = "Buffers")]
    buffer: Option<u64>,
    /// Read the buffers while the command runs, for a recording larger than the buffers; this program then runs beside the
    /// command, and is in the trace
    #[arg(long, conflicts_with_all = ["dry_run", "clean", "until"], help_heading = "Buffers")]
    stream: bool,
    /// Flight recorder: keep only the latest events, follow the machine, and save once a measure exceeds a limit in an
    /// interval. Measures: violation and cpu-time-lost (%), waiting (tasks), wakeup-p99, wakeup-max and wait-max (with a unit)
    #[arg(long, value_name = "MEASURE>LIMIT/INTERVAL", value_parser = until::StopCondition::parse,
          conflicts_with_all = ["dry_run", "clean", "runs"], help_heading = "Buffers")]
    until: Option<until::StopCondition>,
    /// Clock of the kernel [default: local]
    #[arg(short = 'C', long, value_name = "NAME", value_parser = CLOCKS, help_heading = "Buffers")]
    clock: Option<String>,
    /// Run the command for a second, record nothing, and report rates, the buffers needed and the slowdown to expect
    #[arg(long, help_heading = "Buffers")]
    dry_run: bool,
    #[command(flatten)]
    running: running::RunningArgs,
    /// Number of recordings of each variant, in a folder that compare and workcons read as groups; auto: until a test decides that the
    /// variants differ, or --max-runs is reached
    #[arg(long, value_name = "N|auto", value_parser = RunCount::parse, conflicts_with_all = ["dry_run", "clean"], help_heading = "Runs")]
    runs: Option<RunCount>,
    /// Maximum number of recordings of each variant, for --runs auto
    #[arg(long, value_name = "N", default_value_t = 20, requires = "runs", help_heading = "Runs")]
    max_runs: usize,
    /// Variant of the runs: its name, and a shell command that sets it up before each of its runs. Repeat for several; their runs
    /// alternate in random order
    #[arg(long, value_name = "NAME=SETUP", value_parser = Variant::parse, requires = "runs", help_heading = "Runs")]
    variant: Vec<Variant>,
    /// The command's own number: an expression whose first group, or whole match, is the number in the last match in its output
    #[arg(long, value_name = "REGEX", value_parser = Regex::new, requires = "runs", help_heading = "Runs")]
    metric: Option<Regex>,
    /// Number of further runs of each variant without tracing, for the cost of tracing
    #[arg(long, value_name = "N", default_value_t = 0, requires = "runs", help_heading = "Runs")]
    untraced: usize,
    /// Seed of the order of the runs
    #[arg(long, value_name = "N", default_value_t = 1, requires = "runs", help_heading = "Runs")]
    seed: u64,
    /// Exit with the status of the command, where the recording is complete or the command failed; 128 and the number of a signal
    #[arg(long, conflicts_with_all = ["dry_run", "clean", "until", "runs"])]
    forward_status: bool,
    /// Keep the command's output as TRACE.out beside the recording, and print it afterwards; that of a benchmark is always kept
    #[arg(long, conflicts_with_all = ["dry_run", "clean", "until", "runs"])]
    keep_output: bool,
    /// Remove what killed recordings left in the kernel; those that run are not touched
    #[arg(long, conflicts_with_all = ["command", "dry_run"])]
    clean: bool,
    /// Keep the values of all parameters on the kernel's command line in the machine file
    #[arg(long)]
    keep_arguments: bool,
    /// Folder where tracefs is mounted [default: /sys/kernel/tracing or /sys/kernel/debug/tracing]
    #[arg(long, value_name = "FOLDER", help_heading = "Programs and places")]
    tracefs: Option<PathBuf>,
    /// Type information of the running kernel, for --why
    #[arg(long, value_name = "FILE", default_value = "/sys/kernel/btf/vmlinux", help_heading = "Programs and places")]
    btf: PathBuf,
    /// The perf to record with, for --counters
    #[arg(long, value_name = "PROGRAM", default_value = "perf", help_heading = "Programs and places")]
    perf: PathBuf,
    /// Print only losses and errors to standard error
    #[arg(short, long)]
    quiet: bool,
    /// Colour in messages
    #[arg(long, value_enum, default_value_t = clap::ColorChoice::Auto, value_name = "WHEN")]
    color: clap::ColorChoice,
}

/// The clocks that count nanoseconds.
const CLOCKS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];

const EXAMPLES: &str = "\
Examples:
  sudo schedviz record -- make -j8           trace.dat and trace.machine.json
  sudo schedviz record -o old.1.dat --why -- ./benchmark
                                             with the balancer's decisions
  sudo schedviz record --stacks -- ./benchmark
                                             with the stacks of switches and wakeups
  sudo schedviz record --time 10             ten seconds of a machine that runs
                                             already; or --until, see below
  sudo schedviz record --pid 1217 --time 10  process 1217 is the application
  sudo schedviz record --cgroup /system.slice --time 10
                                             what runs in that cgroup is it
  sudo schedviz record --whatif -- ./benchmark
                                             with the causes of sleeps
  sudo schedviz record --dry-run --stacks -- ./benchmark
                                             the price of a stack, and the rates
  sudo schedviz record --dry-run --time 60 -- ./benchmark
                                             the buffers that a minute needs
  sudo schedviz record --buffer 256M -- ./benchmark
  sudo schedviz record --runs 5 --variant on='echo 1 > KNOB' \\
      --variant off='echo 0 > KNOB' -o knob -- ./benchmark
  schedviz compare knob
  sudo schedviz record --runs auto --max-runs 30 --variant on='echo 1 > KNOB' \\
      --variant off='echo 0 > KNOB' -o knob -- hackbench -g 10
                                             as many runs as it takes
  sudo schedviz record -o old.1.dat -- hackbench -g 10
                                             its time becomes a metric
  sudo schedviz record --until 'violation>20%/1s' -o caught.dat
                                             the seconds before it happened
  sudo schedviz record --clean               after a kill -9

The status of the command is printed, and passed on with --forward-status.

Exit status:
  0         recorded completely
  1         error, such as a command that cannot be run: nothing is saved
  3         events were lost, or the file and the kernel's counters disagree;
            with --until: the limit was never exceeded, and nothing is saved
  130, 143  interrupted or terminated; the recording until then is saved";

/// The process that becomes the traced command once it is continued.
#[derive(Debug)]
pub struct RunWhenContinued;

impl Subcommand for RunWhenContinued {
    const NAME: &'static str = "run-when-continued";
    const IS_HIDDEN: bool = true;
    const IS_PAGED: bool = false;
    type Args = traced::HelperArgs;

    fn run(args: &traced::HelperArgs) -> Result<ExitCode> {
        traced::run_helper(args).map(|()| ExitCode::SUCCESS)
    }
}

/// A recording of a command or a span of time.
#[derive(Debug)]
pub struct RecordCommand;

impl Subcommand for RecordCommand {
    const NAME: &'static str = "record";
    const IS_PAGED: bool = false;
    const FIRST_STEP: Option<(&'static str, &'static str)> = Some(("record -- make -j8", "record a run, as trace.dat"));
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("How do I record a run, and the machine it ran on?", "-- COMMAND"));
    const BRIEF: &'static [&'static str] = &["why", "stacks", "time", "pid", "cgroup", "until", "runs"];
    type Args = RecordArgs;

    fn run(args: &RecordArgs) -> Result<ExitCode> {
        run(args)
    }
}

/// Records the command as the arguments ask, and returns the exit status of the program.
pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode> {
    let tracefs = Tracefs::find(args.tracefs.as_deref())?;
    if args.clean {
        return clean(args, &tracefs);
    }
    let signals = Forwarder::install()?;
    let code = match recorded(args, &tracefs, &signals) {
        Ok(code) => code,
        Err(error) => match error.downcast::<Interrupted>() {
            Ok(interrupted) => {
                message(&interrupted.to_string());
                ExitCode::FAILURE
            }
            Err(error) => return Err(error),
        },
    };
    Ok(signals.first().map_or(code, |signal| ExitCode::from(signals::exit_code(signal))))
}

/// A signal arrived before the command began: there is nothing to save.
#[derive(Clone, Copy, Debug)]
struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted before the command began: nothing is saved")
    }
}

impl std::error::Error for Interrupted {}

/// Sets up the recording, and makes it.
fn recorded(args: &RecordArgs, tracefs: &Tracefs, signals: &Forwarder) -> Result<ExitCode> {
    let needs: &[Need] = if args.why.is_some() { &[Need::Instance, Need::Probes] } else { &[Need::Instance] };
    tracefs.check(needs)?;
    for other in tracefs.others() {
        args.note(&format!("tracefs has {other} as well: its cost is in this recording"));
    }
    let root = Root::running();
    let (wished, imbalances) = match args.why {
        Some(why) => probes::of_kernel(&args.btf, &root, why)?,
        None => (Vec::new(), Vec::new()),
    };
    let series = args.runs.map(|runs| runs::RunSeries::of(args, runs)).transpose()?;
    let usual = if args.counters { "trace.data" } else { "trace.dat" };
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from(usual));
    if args.counters {
        counted::check_perf(args)?;
    }
    save::check(series.as_ref().map_or(output.as_path(), runs::RunSeries::list))?;
    if args.running.time.is_some() && !args.dry_run {
        let refused =
            [(!args.command.is_empty(), "a command"), (args.counters, "--counters"), (args.runs.is_some(), "--runs")];
        if let Some((_, what)) = refused.iter().find(|(is_given, _)| *is_given) {
            bail!("--time records a machine that runs already, without {what}; leave one of the two out");
        }
    }
    let is_of_machine = args.command.is_empty();
    let application = is_of_machine.then(|| args.running.application(&root)).transpose()?;
    let wanted = WantedEvents {
        irq: args.irq,
        frequency: args.frequency,
        numa: args.numa,
        whatif: args.whatif,
        why: args.why.is_some(),
        stacks: args.stacks,
        more: args.event.clone(),
    };
    let plan = EventPlan::new(&wanted, &RunningKernel(tracefs))?;
    for (event, cost) in &plan.missing {
        args.note(&format!("{event} does not exist on this kernel: {cost}"));
    }
    // Instances use the probes: they go first, here and where an error ends this.
    let probes = probes::add(args, tracefs, &wished)?;
    let mut events = plan.events;
    events.extend((!probes.names().is_empty()).then(|| probes.group().to_owned()));
    let buffer_kb = args.buffer.unwrap_or_else(|| default_size(available_kb(), root.online()));
    let settings = Settings { buffer_kb, clock: args.clock.clone(), events, stacks: plan.stacks };
    let recorder = Recorder { args, tracefs, root, application, settings, imbalances, probes: &probes, signals };
    let complete = match series {
        _ if args.dry_run => return dry_run::run(args, Instance::create(tracefs, &recorder.settings)?, signals),
        Some(series) => series.record(&recorder)?,
        None => match &args.until {
            Some(until) => {
                let code = recorder.record_until(until, &output)?;
                probes.remove()?;
                return Ok(code);
            }
            None => {
                let run = recorder.record_alone(&output)?;
                probes.remove()?;
                return Ok(run.exit_code(args.forward_status));
            }
        },
    };
    probes.remove()?;
    Ok(code(complete))
}

/// The exit status of a recording or a series, by whether no event is missing.
fn code(complete: bool) -> ExitCode {
    if complete { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

impl RecordedRun {
    /// The exit status of the program: that of the command where it failed and is passed on, else that of the recording.
    fn exit_code(&self, forward: bool) -> ExitCode {
        let status = self.ended.status;
        let of_command = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        match u8::try_from(of_command) {
            Ok(failed) if forward && failed != 0 => ExitCode::from(failed),
            _ => code(self.complete),
        }
    }
}

/// The parts that all recordings of a call share.
struct Recorder<'r> {
    args: &'r RecordArgs,
    tracefs: &'r Tracefs,
    root: Root,
    /// The application, where no command is recorded.
    application: Option<RecordedApplication>,
    settings: Settings,
    /// The kernel's kinds of imbalance.
    imbalances: Vec<CleanText>,
    probes: &'r tracefs::Probes,
    signals: &'r Forwarder,
}

/// A run of the command that was recorded.
struct RecordedRun {
    ended: EndedCommand,
    /// Whether no event is missing.
    complete: bool,
}

impl Recorder<'_> {
    /// Records the command once. Its output goes to `capture` if there is one.
    fn record(&self, output: &Path, capture: Option<&Path>) -> Result<RecordedRun> {
        if self.args.counters {
            return counted::record(self, output, capture);
        }
        let instance = Instance::create(self.tracefs, &self.settings)?;
        let lasting = match &self.application {
            None => Lasting::Command(Traced::spawn(&self.args.command, self.signals, capture)?),
            Some(_) => Lasting::Span(self.args.running.span(&self.root, self.signals)),
        };
        // With the command's first task, whose CPUs the tasks that it forks inherit.
        let mut machine = self.machine();
        let mut stream = self.args.stream.then(|| stream::Stream::open(self.tracefs, &instance, output)).transpose()?;
        self.go_on()?;
        let before = self.probes.missed();
        instance.start()?;
        let ended = match &mut stream {
            Some(stream) => stream.follow(lasting)?,
            None => lasting.run()?,
        };
        instance.stop()?;
        machine.add_running(&ended.running);
        self.finish(&mut machine, &before);
        let (saved, stats) = match stream {
            Some(stream) => stream.save(self, instance, &machine, output)?,
            None => self.save(instance, &machine, output)?,
        };
        let verdict = check::LossVerdict::of(&stats, &saved.trace);
        let recorded = format!(
            "{} {} on {}",
            grouped(verdict.in_file()),
            sched::nouns::noun(verdict.in_file(), "event"),
            sched::nouns::counted(verdict.cpus(), "CPU")
        );
        self.keep(&machine, &recorded, output, &saved, &ended)?;
        let complete = verdict.report(self.settings.buffer_kb, self.args.is_coloured());
        probes::check(self.args, &saved.trace, &machine)?;
        Ok(RecordedRun { ended, complete })
    }

    /// Reads the description of this machine.
    fn machine(&self) -> Machine {
        let mut machine = Machine::read(&self.root, self.args.keep_arguments);
        machine.scheduler.imbalances.clone_from(&self.imbalances);
        machine.application.clone_from(&self.application);
        machine
    }

    /// Adds what the machine shows at the end of a recording, and the hits that were missed since there were `before`.
    fn finish(&self, machine: &mut Machine, before: &BTreeMap<String, u64>) {
        machine.finish(&self.root);
        machine.missed_probes = probes::missed_since(before, self.probes);
    }

    /// Fails if a signal has arrived, just before the command begins.
    fn go_on(&self) -> Result<()> {
        match self.signals.first() {
            Some(_) => Err(Interrupted.into()),
            None => Ok(()),
        }
    }

    /// Writes the machine beside the recording, and prints the number of events that were recorded, and where they are.
    fn keep(
        &self,
        machine: &Machine,
        recorded: &str,
        output: &Path,
        saved: &Saved,
        ended: &EndedCommand,
    ) -> Result<()> {
        let machine_file = Machine::path_beside(output);
        replace(&machine_file, &json(machine)?)?;
        self.args.note(&format!(
            "recorded {recorded} in {:.3} s: {} ({} kB), {}",
            ended.seconds,
            output.display(),
            saved.bytes.div_ceil(1000),
            machine_file.display()
        ));
        if !ended.status.success() {
            self.args.note(&format!("the command failed: {}", ended.status));
        }
        Ok(())
    }

    /// Runs the command once without tracing.
    fn run_untraced(&self, capture: &Path) -> Result<EndedCommand> {
        Traced::spawn(&self.args.command, self.signals, Some(capture))?.run()
    }
}

fn clean(args: &RecordArgs, tracefs: &Tracefs) -> Result<ExitCode> {
    let removed = tracefs.clean()?;
    match removed.as_slice() {
        [] => args.note("there was nothing to remove"),
        removed => args.note(&format!("removed {}", removed.join(", "))),
    }
    let others = tracefs.others();
    if !others.is_empty() {
        args.note(&format!("left alone: {}", others.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

impl RecordArgs {
    /// Prints a line that --quiet leaves out.
    fn note(&self, text: &str) {
        if !self.quiet {
            message(text);
        }
    }

    fn is_coloured(&self) -> bool {
        session::messages::are_coloured(self.color)
    }
}

/// Prints a line; names of files may be in it.
fn message(text: &str) {
    let mut line = text.to_owned();
    sched::event::escape_lines(&mut line, 0);
    session::messages::emit(&line);
}

/// The settings of a dry run for the message about buffers.
fn buffer_words(kb: u64) -> String {
    format!("buffers of {} per CPU", format_size(kb))
}

/// A program that can be found, as the shell would find it.
fn find_program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The folder of a file that is to be written.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Adds the path to an error.
fn named<T>(result: std::io::Result<T>, path: &Path) -> Result<T> {
    result.with_context(|| path.display().to_string())
}
