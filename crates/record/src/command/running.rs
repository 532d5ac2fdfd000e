//! A recording of a machine that runs already: for some time, or while processes live, instead of during a command.

use crate::signals::Forwarder;
use crate::traced::{EndedCommand, Traced};
use anyhow::{Result, bail};
use machine::{RecordedApplication, Root, RunningTasks};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The time between two looks at the processes.
const BETWEEN: Duration = Duration::from_millis(20);

/// A machine that runs already
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RunningArgs {
    /// Record the running machine for this many seconds, without a command; with --dry-run the length of the planned recording
    /// [default there: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "A running machine")]
    pub(super) time: Option<f64>,
    /// Record the running machine; the application is these processes. Ends with --time, with the last of them, or with Ctrl-C
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..),
          conflicts_with_all = ["command", "dry_run", "clean", "runs", "counters", "cgroup", "forward_status", "keep_output"],
          help_heading = "A running machine")]
    pid: Vec<i32>,
    /// Record the running machine; the application is this cgroup and those below it, such as /system.slice. Ends with --time or
    /// with Ctrl-C
    #[arg(long, value_name = "PATH",
          conflicts_with_all = ["command", "dry_run", "clean", "runs", "counters", "forward_status", "keep_output"],
          help_heading = "A running machine")]
    cgroup: Option<String>,
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok();
    seconds
        .filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0 && *seconds <= MOST_SECONDS)
        .ok_or_else(|| "a number of seconds above zero is needed".to_owned())
}

/// The greatest length of a recording in seconds, a year.
const MOST_SECONDS: f64 = 366.0 * 86_400.0;

impl RunningArgs {
    /// The application that the recording is made of, without a command. Refused where it does not exist.
    pub(super) fn application(&self, root: &Root) -> Result<RecordedApplication> {
        if let Some(missing) = self.pid.iter().find(|pid| !is_alive(root, **pid)) {
            bail!("--pid {missing}: there is no such process");
        }
        let Some(cgroup) = &self.cgroup else {
            return Ok(match self.pid.as_slice() {
                [] => RecordedApplication::Machine,
                pids => RecordedApplication::Processes(pids.to_vec()),
            });
        };
        let path = cgroup.strip_prefix("/sys/fs/cgroup").unwrap_or(cgroup).trim_matches('/');
        let exists = ["", "cpu", "cpu,cpuacct", "unified"]
            .iter()
            .any(|hierarchy| root.join(PathBuf::from("sys/fs/cgroup").join(hierarchy).join(path)).is_dir());
        if !exists || path.split('/').any(|part| part == "..") {
            bail!("--cgroup {cgroup}: there is no such cgroup in /sys/fs/cgroup");
        }
        Ok(RecordedApplication::Cgroup(format!("/{path}").into()))
    }

    /// The span of time to be recorded.
    pub(super) fn span<'s>(&self, root: &Root, signals: &'s Forwarder) -> RecordedSpan<'s> {
        RecordedSpan {
            time: self.time.map(Duration::from_secs_f64),
            pids: self.pid.clone(),
            root: root.clone(),
            signals,
        }
    }
}

fn is_alive(root: &Root, pid: i32) -> bool {
    root.join(format!("proc/{pid}")).exists()
}

/// A span of time that is recorded without a command.
pub(super) struct RecordedSpan<'s> {
    time: Option<Duration>,
    pids: Vec<i32>,
    root: Root,
    signals: &'s Forwarder,
}

impl RecordedSpan<'_> {
    fn has_ended(&self, start: Instant) -> bool {
        self.time.is_some_and(|time| start.elapsed() >= time)
            || self.signals.first().is_some()
            || !self.pids.is_empty() && !self.pids.iter().any(|pid| is_alive(&self.root, *pid))
    }

    fn ended(start: Instant) -> EndedCommand {
        EndedCommand {
            status: ExitStatus::from_raw(0),
            seconds: start.elapsed().as_secs_f64(),
            running: RunningTasks::default(),
        }
    }

    fn run(self) -> EndedCommand {
        let start = Instant::now();
        while !self.has_ended(start) {
            let left = self.time.map_or(BETWEEN, |time| time.saturating_sub(start.elapsed()));
            std::thread::sleep(BETWEEN.min(left));
        }
        RecordedSpan::ended(start)
    }
}

/// The work or the time that a recording lasts for.
pub(super) enum Lasting<'s> {
    /// The traced command.
    Command(Traced<'s>),
    /// A span of time.
    Span(RecordedSpan<'s>),
}

impl Lasting<'_> {
    /// Lets the command run, or the time pass, to the end.
    pub(super) fn run(self) -> Result<EndedCommand> {
        match self {
            Lasting::Command(traced) => traced.run(),
            Lasting::Span(span) => Ok(span.run()),
        }
    }

    /// Lets the command run, or the time pass; `meanwhile` is called until the end.
    pub(super) fn run_beside(self, mut meanwhile: impl FnMut() -> Result<()>) -> Result<EndedCommand> {
        let start = Instant::now();
        match self {
            Lasting::Command(mut traced) => {
                traced.resume()?;
                while !traced.has_ended() {
                    meanwhile()?;
                }
                traced.wait(start)
            }
            Lasting::Span(span) => {
                while !span.has_ended(start) {
                    meanwhile()?;
                }
                Ok(RecordedSpan::ended(start))
            }
        }
    }
}
