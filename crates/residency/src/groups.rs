//! The groups of tasks: tasks, processes, commands.

use crate::Options;
use membership::stem;
use sched::kthread::command;
use sched::limits::ROWS;
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{Comm, PerTask, Pid, SchedState};
use serde::Serialize;

/// The rule by which tasks form groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GroupedBy {
    /// Each task by itself
    Task,
    /// The process of the task
    Process,
    /// The name of the task, without its numbers and random parts
    Command,
}

impl GroupedBy {
    /// The name of the groups, in the plural.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            GroupedBy::Task => "tasks",
            GroupedBy::Process => "processes",
            GroupedBy::Command => "commands",
        }
    }
}

/// The key of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ResidentKey {
    Task(Pid),
    Process(Pid),
    Command(String),
    /// The tasks beyond the number of groups.
    Rest,
}

/// The groups as they come, each with its name and the number of its tasks.
#[derive(Default)]
pub(crate) struct Groups {
    places: SeededMap<ResidentKey, usize>,
    pub(crate) all: Vec<(String, u64)>,
    homes: PerTask<((Pid, Comm), usize)>,
    /// The number of tasks whose process no record shows, by their lives and names.
    pub(crate) without_process: u64,
}

impl Groups {
    /// Forgets the tasks that were counted before the window; the groups keep their places.
    pub(crate) fn begin(&mut self) {
        self.homes = PerTask::default();
        self.without_process = 0;
        self.all.iter_mut().for_each(|(_, tasks)| *tasks = 0);
    }

    /// Returns the place of the group that a task belongs to; nothing for a task that is not measured.
    pub(crate) fn of(&mut self, task: &Task, state: &SchedState, options: &Options<'_>) -> Option<usize> {
        if options.tasks.is_some_and(|chosen| !chosen(task, state)) {
            return None;
        }
        let traits = (task.pid, task.comm);
        if let Some((_, place)) = self.homes.get(task.id()).filter(|(other, _)| *other == traits) {
            return Some(*place);
        }
        let is_kernel = task.kin.is_of_kernel(task.comm);
        let (key, name) = match options.by {
            GroupedBy::Task => (ResidentKey::Task(task.pid), task.pid.named(task.comm)),
            GroupedBy::Command | GroupedBy::Process if is_kernel => {
                let name = command(task.comm).to_string();
                (ResidentKey::Command(name.clone()), name)
            }
            GroupedBy::Command => {
                let name = stem(task.comm);
                let shown = if name.is_empty() { "unnamed tasks".to_owned() } else { name.clone() };
                (ResidentKey::Command(name), shown)
            }
            GroupedBy::Process => {
                let leader = options.processes.leader(task.pid, state.now());
                self.without_process += u64::from(leader.is_none());
                let leader = leader.unwrap_or(task.pid);
                let of_leader = match leader == task.pid {
                    true => task.comm,
                    false => state.task_of(leader).map_or(Comm::EMPTY, |leader| leader.comm),
                };
                (ResidentKey::Process(leader), leader.named(of_leader))
            }
        };
        let is_new = !self.places.contains_key(&key);
        let is_full = is_new && self.all.len() >= ROWS;
        let (key, name) = if is_full { (ResidentKey::Rest, "all further ones".to_owned()) } else { (key, name) };
        let is_of_leader = !matches!(&key, ResidentKey::Process(leader) if *leader != task.pid);
        let place = *self.places.entry(key).or_insert_with(|| {
            self.all.push((name.clone(), 0));
            self.all.len() - 1
        });
        // A task or a process has its latest name.
        if is_of_leader {
            self.all[place].0 = name;
        }
        self.all[place].1 += 1;
        self.homes.insert(task.id(), (traits, place));
        Some(place)
    }
}
