//! `schedviz reproduce`: the work of a trace as a program.

use crate::follow::{Choice, FollowedWork, Follower};
use crate::load::{LoadStart, Reproduction};
use crate::written::{Facts, WrittenLoad};
use crate::{c_program, rt_app};
use anyhow::{Result, bail};
use membership::{Cgroups, ParamsHistory, Processes, TaskGroups};
use question::Subcommand;
use sched::Ts;
use session::args::{BeginArgs, ReadArgs, TaskArgs, TimeArgs, WindowArgs};
use session::{Session, warnings, writer};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use whatif::{Model, ModelTask, Unfit, build_options};

/// The work of a trace as a program that does it again, to be attached to a report: C, or a file for rt-app
///
/// The program has the bursts of CPU time of each task, its sleeps, the wakeups between tasks, forks and priorities, and no name of the trace.
/// It needs neither the data nor the programs that were traced, and runs on any kernel: record it there.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReproduceArgs {
    /// The recording, in any format that is read
    trace: PathBuf,
    /// File to write: FILE.c for a C program, FILE.json for rt-app
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: PathBuf,
    /// Write the names of commands and cgroups; without it tasks are t1, t2, ... and cgroups /g1, /g2, ...
    #[arg(long, help_heading = "Output")]
    names: bool,
    /// Write the CPUs that tasks may use, for rt-app; the C program always has them, and binds tasks with its own --affinity
    #[arg(long, help_heading = "Output")]
    affinity: bool,
    /// Put tasks into cgroups (task groups), for rt-app
    #[arg(long, help_heading = "Output")]
    cgroups: bool,
    /// Also reproduce kernel threads; the kernel that runs the program has its own
    #[arg(long, help_heading = "Tasks")]
    kernel_threads: bool,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    read: ReadArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz reproduce trace.dat -o load.c      then cc -O2 -pthread load.c -o load,
                                              and schedviz record ./load
  schedviz reproduce trace.dat -o load.json   then rt-app load.json
  schedviz reproduce trace.dat -o load.c --min 3 --max 3.2 --forked
                                              a fifth of a second of the traced
                                              command";

/// The work of a trace as a program.
#[derive(Debug)]
pub struct ReproduceCommand;

impl Subcommand for ReproduceCommand {
    const NAME: &'static str = "reproduce";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Can others run this load, without my programs and data?", "TRACE -o load.c"));
    const BRIEF: &'static [&'static str] = &["output", "names"];
    type Args = ReproduceArgs;

    fn run(args: &ReproduceArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Maximum number of tasks of a program, each of which is a thread: fewer than systems allow to one user.
pub(crate) const MOST_TASKS: usize = 4096;

/// Maximum number of actions of a program: a compiler takes some seconds and 200 MB for the tables then.
pub(crate) const MOST_ACTIONS: u64 = 1 << 20;

/// The form of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramForm {
    C,
    RtApp,
}

impl ProgramForm {
    fn of(args: &ReproduceArgs) -> Result<ProgramForm> {
        let form = match args.output.extension().and_then(OsStr::to_str) {
            Some("c") => ProgramForm::C,
            Some("json") => ProgramForm::RtApp,
            _ => bail!("{}: choose FILE.c for a C program, or FILE.json for rt-app", args.output.display()),
        };
        let of_rt_app = [("--affinity", args.affinity), ("--cgroups", args.cgroups)];
        match of_rt_app.iter().find(|(_, is_given)| form == ProgramForm::C && *is_given) {
            Some((option, _)) => bail!("{option} is of a file for rt-app; write FILE.json"),
            None => Ok(form),
        }
    }
}

fn run(args: &ReproduceArgs) -> Result<()> {
    let form = ProgramForm::of(args)?;
    let session = Session::open(&args.trace, &args.read, &WindowArgs::of_time(&args.time))?.with_judged_command()?;
    args.tasks.check(&session)?;
    let load = load(args, &session)?;
    let counts = load.counts();
    if let Some(why) = too_large(load.tasks.len(), counts.actions()) {
        bail!("{}: {why}; choose a part with --min and --max, or tasks with --tasks or --forked", session.name());
    }
    let written = WrittenLoad::new(&load, counts, facts(&session, &load), args.names);
    let message = writer::stream(&args.output, |out| {
        match form {
            ProgramForm::C => c_program::write(&written, out)?,
            ProgramForm::RtApp => rt_app::write(&written, out, args.affinity, args.cgroups)?,
        }
        Ok(())
    })?;
    let message = message.into_iter().chain(written.told.lines());
    message.chain([next(args, form, &written)]).for_each(|line| args.read.message(&line));
    Ok(())
}

/// The work of the chosen tasks.
fn load(args: &ReproduceArgs, session: &Session) -> Result<Reproduction> {
    let most_turns = Model::most_turns_of(std::fs::metadata(session.path())?.len());
    let (build, chooser) = (build_options(session, most_turns), args.tasks.chooser(session)?);
    let follower = || Follower::new(&build, &chooser);
    let outcome = session.follow(&BeginArgs::default(), session.window, follower)?;
    let FollowedWork { model, choices, no_application } = outcome.output;
    let name = session.name();
    if let Some(why) = no_application.filter(|_| args.tasks.forked) {
        bail!("{name}: {}; select tasks with --tasks or --application", sched::without_application(why));
    }
    if model.is_cut() {
        bail!("{name}: tasks change their state more than {most_turns} times; choose a part with --min and --max");
    }
    if let Some(unfit @ Unfit::Contradictory(_)) = Unfit::of(session, &outcome.diagnostics, model.switches) {
        bail!("{name}: {}; {}", unfit.reason(), unfit.advice());
    }
    warnings::warn_of(None, &outcome.diagnostics, &args.read);
    session.why_no_wakeups().into_iter().for_each(|why| args.read.message(&format!("{name}: {why}")));
    let choice = |task: &ModelTask| task.id.and_then(|id| choices.get(&id)).copied().unwrap_or_default();
    let is_chosen = |choice: Choice| choice.is_chosen && !choice.is_recorder;
    let keeps = |task: &ModelTask| {
        let choice = choice(task);
        is_chosen(choice) && (args.kernel_threads || !choice.is_of_kernel)
    };
    let mut load = Reproduction::of(&model, &keeps);
    if load.tasks.is_empty() {
        bail!("{name}: no task that is chosen used a CPU in the window");
    }
    let left_out = |task: &&ModelTask| is_chosen(choice(task)) && !keeps(task) && task.has_work();
    load.lost.kernel_threads = model.tasks.iter().filter(left_out).count() as u64;
    load.lost.deadlines = load.tasks.iter().filter(|task| task.prio < 0).count() as u64;
    Ok(load)
}

/// The policies and the cgroups of the tasks as they begin.
fn facts(session: &Session, load: &Reproduction) -> Vec<Facts> {
    let (trace, machine) = (&session.trace, session.machine.as_ref());
    let params = ParamsHistory::of(trace, machine);
    let groups = TaskGroups::of_cgroups(Cgroups::of(trace, machine, &Processes::of(trace, machine)));
    let facts = load.tasks.iter().map(|task| {
        let at = match task.start {
            LoadStart::At(ns) => Ts(session.from.0.saturating_add(ns as i64)),
            LoadStart::Beginning => session.from,
            // The records of a child are at its birth.
            LoadStart::Parent => session.to,
        };
        let cgroup = groups.cgroup(task.pid, at).and_then(|cgroup| groups.cgroup_names().get(cgroup.index()));
        Facts { policy: params.policy(task.pid, at), cgroup: cgroup.map(ToString::to_string) }
    });
    facts.collect()
}

/// The reason why no program has so many tasks and actions; nothing where one can have them.
pub(crate) fn too_large(tasks: usize, actions: u64) -> Option<String> {
    let grouped = warnings::grouped;
    if tasks > MOST_TASKS {
        let (tasks, most) = (grouped(tasks as u64), grouped(MOST_TASKS as u64));
        return Some(format!("{tasks} tasks are more than the {most} threads of a program"));
    }
    let most = grouped(MOST_ACTIONS);
    (actions > MOST_ACTIONS).then(|| format!("{} actions are more than the {most} of a program", grouped(actions)))
}

/// The command that comes next.
fn next(args: &ReproduceArgs, form: ProgramForm, written: &WrittenLoad<'_>) -> String {
    let file = args.output.display();
    match form {
        ProgramForm::C => format!("run it: cc -O2 -pthread {file} -o load && ./load"),
        ProgramForm::RtApp if written.cgroups() > 0 && args.cgroups => {
            format!("run it: rt-app {file}, where the cpu controller is mounted")
        }
        ProgramForm::RtApp => format!("run it: rt-app {file} (of April 2026 or later, which has sem_post)"),
    }
}
