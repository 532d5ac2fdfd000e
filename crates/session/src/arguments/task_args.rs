//! The selection of tasks.

use anyhow::{Result, bail};
use membership::SchedPolicy;
use regex::Regex;
use sched::chosen::is_match;
use sched::state::Task;
use sched::{Pid, SchedState, TaskFilter};

/// The tasks to show
#[derive(Clone, Debug, clap::Args)]
pub struct TaskArgs {
    /// Only tasks whose name or command matches, as reports print it (kworker/3:1, kworker/N:N). dat2graph draws the
    /// others dark grey, the rest leave them out
    #[arg(long, value_name = "REGEX", value_parser = Regex::new, help_heading = "Tasks")]
    tasks: Option<Regex>,
    /// Not the tasks whose name or command matches
    #[arg(long, value_name = "REGEX", value_parser = Regex::new, help_heading = "Tasks")]
    exclude_tasks: Option<Regex>,
    /// Only these tasks, by number
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Tasks")]
    pid: Vec<i32>,
    /// Only tasks of cgroups whose path matches, such as ^/system.slice
    #[arg(long, value_name = "REGEX", value_parser = Regex::new, help_heading = "Tasks")]
    pub(crate) cgroup: Option<Regex>,
    /// Only tasks of these scheduling policies; `fair` and `real-time` take the tasks of the class whose policy is unknown as well
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', help_heading = "Tasks")]
    pub(crate) policy: Vec<SchedPolicy>,
    /// Only the traced command and what descends from it
    #[arg(long, help_heading = "Tasks")]
    pub forked: bool,
}

impl TaskArgs {
    /// The filter that `--tasks`, `--exclude-tasks` and `--pid` make together.
    pub fn filter(&self) -> TaskFilter {
        let pids = self.pid.iter().copied().map(Pid).collect();
        TaskFilter { tasks: self.tasks.clone(), exclude: self.exclude_tasks.clone(), pids }
    }

    /// The options that select tasks by name and number, as they are typed; empty without any.
    pub fn typed(&self) -> String {
        let chosen = [
            self.tasks.as_ref().map(|tasks| format!("--tasks {tasks}")),
            self.exclude_tasks.as_ref().map(|tasks| format!("--exclude-tasks {tasks}")),
            (!self.pid.is_empty()).then(|| {
                let pids: Vec<String> = self.pid.iter().map(i32::to_string).collect();
                format!("--pid {}", pids.join(","))
            }),
        ];
        chosen.into_iter().flatten().collect::<Vec<String>>().join(" ")
    }

    /// Whether the selection depends on names of tasks.
    pub fn is_by_name(&self) -> bool {
        self.tasks.is_some() || self.exclude_tasks.is_some()
    }

    /// Whether only some tasks were asked for.
    pub fn is_any(&self) -> bool {
        self.chooses() || self.exclude_tasks.is_some()
    }

    /// Whether some tasks are chosen by a property that they have, not by one that they lack.
    pub fn chooses(&self) -> bool {
        self.tasks.is_some() || !self.pid.is_empty() || self.forked || self.is_by_group()
    }

    /// Whether tasks are chosen by their cgroups or their policies.
    fn is_by_group(&self) -> bool {
        self.cgroup.is_some() || !self.policy.is_empty()
    }

    /// The tasks that are counted, in words.
    pub fn which(&self) -> &'static str {
        match (self.forked, self.is_any()) {
            (true, _) => "the traced command's tasks",
            (_, true) => "chosen tasks",
            _ => "all tasks",
        }
    }

    /// Returns the function that decides whether a task is left out; nothing where none is.
    pub fn excluder(&self) -> Option<impl Fn(&Task, &SchedState) -> bool + use<>> {
        let exclude = self.exclude_tasks.clone();
        exclude.map(|exclude| move |task: &Task, _: &SchedState| is_match(&exclude, task.comm))
    }

    /// Leaves `--forked` out of the help of a command that refuses it by [`TaskArgs::without_forked`].
    #[must_use]
    pub fn hide_forked(argument: clap::Arg) -> clap::Arg {
        if argument.get_id() == "forked" { argument.hide(true) } else { argument }
    }

    /// Refuses `--forked` where a command does not follow who forked whom.
    pub fn without_forked(&self, command: &str) -> Result<()> {
        if self.forked {
            bail!("{command} does not know --forked; choose tasks with --tasks, --exclude-tasks or --pid");
        }
        Ok(())
    }
}
