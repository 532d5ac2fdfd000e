//! The selection of tasks.

use crate::Session;
use anyhow::{Result, bail};
use membership::{SchedPolicy, TaskGroups, TasksBy};
use regex::Regex;
use sched::chosen::is_match;
use sched::state::Task;
use sched::{Pid, SchedState, TaskFilter};
use std::sync::Arc;

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
    cgroup: Option<Regex>,
    /// Only tasks of these scheduling policies; `fair` and `real-time` take the tasks of the class whose policy is unknown as well
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', help_heading = "Tasks")]
    policy: Vec<SchedPolicy>,
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

    /// Returns the function that decides whether a task of a trace is chosen by any of these options, in the present state.
    pub fn chooser(&self, session: &Session) -> Result<impl Fn(&Task, &SchedState) -> bool + use<>> {
        let (filter, forked) = (self.filter(), self.forked);
        let groups = ChosenGroups::of(self.cgroup.as_ref(), &self.policy, session)?;
        Ok(move |task: &Task, state: &SchedState| {
            filter.takes(task.pid, || task.comm)
                && (!forked || task.kin.descends)
                && groups.as_ref().is_none_or(|groups| groups.takes(task, state))
        })
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

    /// Refuses `--forked` where a command does not follow who forked whom, and with it cgroups and policies.
    pub fn without_forked(&self, command: &str) -> Result<()> {
        self.without_groups(command)?;
        if self.forked {
            bail!("{command} does not know --forked; choose tasks with --tasks, --exclude-tasks or --pid");
        }
        Ok(())
    }

    /// Refuses `--cgroup` and `--policy` where a command chooses tasks by names and numbers alone.
    pub fn without_groups(&self, command: &str) -> Result<()> {
        if self.is_by_group() {
            bail!("{command} does not know --cgroup and --policy; choose tasks with --tasks, --exclude-tasks or --pid");
        }
        Ok(())
    }
}

/// The groups of tasks that `--cgroup` and `--policy` choose.
struct ChosenGroups {
    /// The cgroups of tasks, and whether each is chosen, by its index.
    cgroups: Option<(Arc<TaskGroups>, Vec<bool>)>,
    /// The parameters of tasks, and the policies that are chosen.
    policies: Option<(Arc<TaskGroups>, Vec<SchedPolicy>)>,
}

impl ChosenGroups {
    /// Learns the groups; nothing where neither option is given.
    fn of(cgroup: Option<&Regex>, policies: &[SchedPolicy], session: &Session) -> Result<Option<ChosenGroups>> {
        if cgroup.is_none() && policies.is_empty() {
            return Ok(None);
        }
        let of_cgroup = |pattern: &Regex| -> Result<_> {
            let groups = session.task_groups(TasksBy::Cgroup)?;
            let chosen: Vec<bool> = groups.cgroup_names().iter().map(|path| pattern.is_match(path)).collect();
            if !chosen.contains(&true) {
                let name = session.name();
                bail!(
                    "--cgroup {pattern}: there is no such cgroup in {name}; schedviz fairness --by cgroup lists those it has"
                );
            }
            Ok((groups, chosen))
        };
        let cgroups = cgroup.map(of_cgroup).transpose()?;
        let policies = match policies {
            [] => None,
            policies => Some((session.task_groups(TasksBy::Params)?, policies.to_vec())),
        };
        Ok(Some(ChosenGroups { cgroups, policies }))
    }

    /// Whether a task is chosen in the present state. One whose cgroup or parameters are unknown is not.
    fn takes(&self, task: &Task, state: &SchedState) -> bool {
        let now = state.now();
        self.cgroups.as_ref().is_none_or(|(groups, chosen)| {
            groups.cgroup(task.pid, now).is_some_and(|cgroup| chosen.get(cgroup.index()).copied().unwrap_or(false))
        }) && self.policies.as_ref().is_none_or(|(groups, policies)| {
            let params = groups.params(task, now);
            params.is_some_and(|params| policies.iter().any(|policy| policy.takes(params.policy)))
        })
    }
}
