//! The traced command: created before recording starts, executed once it has started.
//!
//! A fork within the recording would make the command a child of this program, whose own setting up is no part of the
//! traced work. This program therefore starts itself as a helper that stops at once, switches recording on, and continues the
//! helper, which executes the command: the first event of the recording that matters is that exec. A helper that cannot execute
//! the command writes the reason to a nameless file of this program.

mod command_tasks;

use crate::signals::Forwarder;
use anyhow::{Context, Result, bail};
use command_tasks::TasksReader;
use machine::RunningTasks;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_parent_process_death_signal, waitpid};
use session::atomic_file::new_file;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Instant;

/// The name of the hidden command of the program that calls [`run_helper`].
const HELPER: &str = "run-when-continued";

/// Stop, and execute a command when continued
#[derive(Clone, Debug, clap::Args)]
pub struct HelperArgs {
    /// File for the reason why the command cannot be executed
    reason: PathBuf,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Stops this process, and executes the command in its place once it is continued.
///
/// The program must have this as its hidden command `run-when-continued`: [`run`](crate::run) starts the program once more by
/// that name.
pub(crate) fn run_helper(args: &HelperArgs) -> Result<()> {
    let [program, arguments @ ..] = args.command.as_slice() else { bail!("no command") };
    // A stopped process would outlive a program that is killed now. The command itself is not bound to it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    kill_process(getpid(), Signal::STOP)?;
    set_parent_process_death_signal(None)?;
    let error = Command::new(program).args(arguments).exec();
    let error = anyhow::Error::new(error).context(format!("cannot run {}", program.display()));
    // The other program prints it, and is to know that this is not the status of the command.
    match OpenOptions::new().write(true).open(&args.reason).and_then(|mut file| write!(file, "{error:#}")) {
        Ok(()) => Ok(()),
        Err(_) => Err(error),
    }
}

/// The command, stopped before its exec.
pub(crate) struct Traced<'s> {
    helper: Option<Child>,
    pid: Pid,
    signals: &'s Forwarder,
    /// The reading of its tasks, once it runs.
    reader: Option<TasksReader>,
    /// The reason why the command could not be executed, if that is so.
    reason: File,
}

/// The end of the command.
pub(crate) struct EndedCommand {
    /// Exit status of the command.
    pub(crate) status: ExitStatus,
    /// The time from its exec to its end in seconds.
    pub(crate) seconds: f64,
    /// The tasks of the command, as they were while it ran.
    pub(crate) running: RunningTasks,
}

impl<'s> Traced<'s> {
    /// Starts the helper and waits until it has stopped.
    /// The command's output goes to `capture` if there is one.
    pub(crate) fn spawn(command: &[OsString], signals: &'s Forwarder, capture: Option<&Path>) -> Result<Traced<'s>> {
        let program = std::env::current_exe().context("this program's own file")?;
        let reason = tempfile::tempfile().context("a temporary file")?;
        let mut helper = Command::new(program);
        let path = format!("/proc/{}/fd/{}", std::process::id(), reason.as_raw_fd());
        helper.args([HELPER, &path, "--"]).args(command);
        if let Some(path) = capture {
            let file = new_file(path).with_context(|| path.display().to_string())?;
            helper.stdout(file.try_clone()?).stderr(file);
        }
        let helper = helper.spawn().context("a helper")?;
        let pid = Pid::from_child(&helper);
        let traced = Traced { helper: Some(helper), pid, signals, reader: None, reason };
        match waitpid(Some(pid), WaitOptions::UNTRACED)? {
            Some((_, status)) if status.stopped() => {}
            _ => bail!("the helper that executes the command ended before it did"),
        }
        signals.set_command(Some(pid));
        Ok(traced)
    }

    /// Lets the command run, and waits for its end.
    pub(crate) fn run(mut self) -> Result<EndedCommand> {
        let start = Instant::now();
        self.resume()?;
        self.wait(start)
    }

    /// Lets the command run.
    pub(crate) fn resume(&mut self) -> Result<()> {
        kill_process(self.pid, Signal::CONT)?;
        self.reader = TasksReader::begin(self.pid.as_raw_nonzero().get());
        Ok(())
    }

    /// Waits for the end of a command that was started at `start`. A command that could not be executed is an error.
    pub(crate) fn wait(mut self, start: Instant) -> Result<EndedCommand> {
        let Some(mut helper) = self.helper.take() else { bail!("waited for twice") };
        let status = helper.wait();
        let seconds = start.elapsed().as_secs_f64();
        let running = self.running();
        self.signals.set_command(None);
        let mut reason = String::new();
        self.reason.rewind()?;
        self.reason.read_to_string(&mut reason)?;
        if !reason.is_empty() {
            bail!("{reason}; nothing is saved");
        }
        Ok(EndedCommand { status: status?, seconds, running })
    }

    /// Ends the reading of its tasks; what was found. Nothing, where that was asked before.
    pub(crate) fn running(&mut self) -> RunningTasks {
        self.reader.take().map(TasksReader::end).unwrap_or_default()
    }

    /// Ends the reading of its tasks while it runs on; what was found.
    pub(crate) fn running_so_far(&mut self) -> RunningTasks {
        self.reader.take().map(TasksReader::end_while_it_runs).unwrap_or_default()
    }

    /// Whether the command has ended, without waiting.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.helper.as_mut().is_none_or(|helper| !matches!(helper.try_wait(), Ok(None)))
    }

    /// Asks the command to end.
    pub(crate) fn terminate(&self) {
        // It may have ended just now.
        let _ = kill_process(self.pid, Signal::TERM);
    }
}

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        // An error on the way to its start leaves a stopped helper.
        if let Some(mut helper) = self.helper.take() {
            self.signals.set_command(None);
            let _ = helper.kill();
            let _ = helper.wait();
        }
    }
}
