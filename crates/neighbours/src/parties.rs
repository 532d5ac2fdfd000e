//! The victims and the culprits.

use membership::{CgroupIndex, Cgroups, FollowedCgroups, stem};
use sched::kthread::command;
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{Comm, PerTask, Pid, SchedState, TaskId, Ts};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::Options;

/// The rule by which tasks form victims and culprits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The cgroup of the task
    Cgroup,
    /// The name of the task, without its numbers and random parts
    Command,
    /// The process of the task
    Process,
    /// The traced command with its descendants, and all others
    Application,
}

impl By {
    /// The name of the groups, in the plural.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            By::Cgroup => "cgroups",
            By::Command => "commands",
            By::Process => "processes",
            By::Application => "application and others",
        }
    }
}

/// The kind of a victim or a culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PartyKind {
    /// Tasks of a cgroup, a command or a process, the application, or the tasks outside of it.
    Tasks,
    /// Tasks whose cgroup is unknown.
    UnknownGroup,
    /// Threads of the kernel.
    Kernel,
    /// Interrupts, hard and soft: a culprit only.
    Interrupts,
    /// The idle task of a CPU on which tasks are queued, less than 1 ms before it switches to one of them: a culprit only.
    Idle,
    /// The idle task of a CPU that holds its own tasks back, for 1 ms or longer: a culprit only.
    HeldBack,
    /// An unknown occupant of the CPU: a culprit only.
    Unknown,
    /// The groups beyond the maximum number.
    Rest,
}

/// The key of a victim or a culprit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PartyKey {
    Cgroup(CgroupIndex),
    Command(String),
    Process(Pid),
    Application(bool),
    /// One of a kind, which needs no key.
    Kind(PartyKind),
    KernelCommand(Comm),
}

/// Maximum number of victims and culprits together.
pub(crate) const MOST: usize = 1000;

/// A victim or a culprit.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    pub(crate) kind: PartyKind,
    pub(crate) name: String,
    /// The distinct names of its tasks, up to two.
    pub(crate) comms: Vec<Comm>,
    /// The number of tasks that came to the group, by their lives.
    pub(crate) tasks: u64,
}

/// The properties of a task that make it one of its group.
type Traits = (Pid, Comm, Option<CgroupIndex>, bool, bool);

/// The victims and culprits as they come.
pub(crate) struct Parties<'o> {
    places: SeededMap<PartyKey, usize>,
    /// The keys of all, in their order.
    keys: Vec<PartyKey>,
    pub(crate) all: Vec<Party>,
    homes: PerTask<(Traits, usize)>,
    /// The first group of each task in a later piece of a pass, in the order in which they came.
    first: Option<Vec<(TaskId, Traits, usize)>>,
    /// The cgroup of each task, as of the present instant.
    pub(crate) cgroups: FollowedCgroups<'o>,
    /// The number of tasks whose process no record shows, by their lives.
    pub(crate) without_process: u64,
}

impl<'o> Parties<'o> {
    /// The places of the culprits that are no tasks.
    pub(crate) const INTERRUPTS: usize = 0;
    pub(crate) const IDLE: usize = 1;
    pub(crate) const UNKNOWN: usize = 2;
    pub(crate) const HELD_BACK: usize = 3;

    pub(crate) fn new(cgroups: &'o Cgroups) -> Parties<'o> {
        let kinds = [
            (PartyKind::Interrupts, "interrupts"),
            (PartyKind::Idle, "idle (switching)"),
            (PartyKind::Unknown, "unknown"),
            (PartyKind::HeldBack, "idle (held back)"),
        ];
        let mut parties = Parties {
            places: SeededMap::default(),
            keys: Vec::new(),
            all: Vec::new(),
            homes: PerTask::default(),
            first: None,
            cgroups: FollowedCgroups::new(cgroups),
            without_process: 0,
        };
        for (kind, name) in kinds {
            parties.place(PartyKey::Kind(kind), kind, || name.to_owned());
        }
        parties
    }

    /// Notes from now on the first group of each task: a later piece of a pass begins.
    pub(crate) fn resume(&mut self, at: Ts) {
        self.cgroups.resume(at);
        self.first = Some(Vec::new());
    }

    /// The number of tasks that came to a group in this piece so far.
    pub(crate) fn newcomers(&self) -> usize {
        self.first.as_ref().map_or(0, Vec::len)
    }

    /// Whether the groups of a later piece can be added. Its first `found` tasks were there as it began: they are where they were here.
    pub(crate) fn fits(&self, later: &Parties<'_>, found: usize) -> bool {
        let new = || later.places.keys().filter(|key| !self.places.contains_key(key)).count();
        let has_room = self.all.len() + later.all.len() <= MOST || self.all.len() + new() <= MOST;
        let is_here = |(task, traits, place): &(TaskId, Traits, usize)| {
            self.homes.get(*task).is_some_and(|(known, at)| known == traits && self.is_same(*at, later, *place))
        };
        has_room && later.first.iter().flatten().take(found).all(is_here)
    }

    /// Whether a place of a later piece has the group of a place here.
    pub(crate) fn is_same(&self, place: usize, later: &Parties<'_>, of_later: usize) -> bool {
        place < self.all.len() && self.keys.get(place) == later.keys.get(of_later)
    }

    /// Adds the groups of a later piece, and returns the place of each here. A task that is where it was is one of the group already.
    pub(crate) fn join(&mut self, later: Parties<'o>) -> Vec<usize> {
        let Parties { all, keys, homes, first, cgroups, .. } = later;
        let mut places = Vec::with_capacity(all.len());
        for (key, party) in keys.into_iter().zip(all) {
            let Party { kind, name, comms, tasks } = party;
            let place = self.place(key, kind, || name);
            let party = &mut self.all[place];
            party.tasks += tasks;
            for comm in comms {
                if party.comms.len() < 2 && !party.comms.contains(&comm) {
                    party.comms.push(comm);
                }
            }
            places.push(place);
        }
        for (task, traits, place) in first.into_iter().flatten() {
            let is_known = self.homes.get(task).is_some_and(|(known, _)| *known == traits);
            self.all[places[place]].tasks -= u64::from(is_known);
        }
        for (task, (traits, place)) in homes.iter() {
            self.homes.insert(task, (*traits, places[*place]));
        }
        self.cgroups = cgroups;
        places
    }

    fn place(&mut self, key: PartyKey, kind: PartyKind, name: impl FnOnce() -> String) -> usize {
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let (key, kind, name) = match self.all.len() < MOST {
            true => (key, kind, name()),
            false => (PartyKey::Kind(PartyKind::Rest), PartyKind::Rest, "all further ones".to_owned()),
        };
        *self.places.entry(key.clone()).or_insert_with(|| {
            self.keys.push(key);
            self.all.push(Party { kind, name, comms: Vec::new(), tasks: 0 });
            self.all.len() - 1
        })
    }

    /// Returns the place of the group that a task belongs to now.
    pub(crate) fn of(&mut self, task: &Task, state: &SchedState, options: &Options<'_>) -> usize {
        let cgroup = match options.by {
            By::Cgroup => self.cgroups.of(task.pid),
            _ => None,
        };
        let is_kernel = task.kin.is_of_kernel(task.comm);
        let traits = (task.pid, task.comm, cgroup, task.kin.descends, is_kernel);
        if let Some((_, place)) = self.homes.get(task.id()).filter(|(other, _)| *other == traits) {
            return *place;
        }
        let place = self.find(task, cgroup, is_kernel, state, options);
        if let Some(first) = self.first.as_mut().filter(|_| self.homes.get(task.id()).is_none()) {
            first.push((task.id(), traits, place));
        }
        self.homes.insert(task.id(), (traits, place));
        let party = &mut self.all[place];
        party.tasks += 1;
        if party.comms.len() < 2 && !party.comms.contains(&task.comm) {
            party.comms.push(task.comm);
        }
        place
    }

    fn find(
        &mut self,
        task: &Task,
        cgroup: Option<CgroupIndex>,
        is_kernel: bool,
        state: &SchedState,
        options: &Options<'_>,
    ) -> usize {
        use PartyKind::{Kernel, Tasks, UnknownGroup};
        match (options.by, cgroup) {
            (By::Command | By::Process, _) if is_kernel => {
                let command = command(task.comm);
                self.place(PartyKey::KernelCommand(command), Kernel, || command.to_string())
            }
            _ if is_kernel => self.place(PartyKey::Kind(Kernel), Kernel, || "kernel threads".to_owned()),
            (By::Cgroup, Some(cgroup)) => {
                self.place(PartyKey::Cgroup(cgroup), Tasks, || options.cgroups.name(cgroup).to_owned())
            }
            (By::Cgroup, None) => {
                self.place(PartyKey::Kind(UnknownGroup), UnknownGroup, || "unknown cgroup".to_owned())
            }
            (By::Command, _) => {
                let name = stem(task.comm);
                self.place(PartyKey::Command(name.clone()), Tasks, || {
                    if name.is_empty() { "unnamed tasks".to_owned() } else { name }
                })
            }
            (By::Process, _) => {
                let leader = options.processes.leader(task.pid, state.now());
                self.without_process += u64::from(leader.is_none());
                let leader = leader.unwrap_or(task.pid);
                let comm = match leader == task.pid {
                    true => task.comm,
                    false => state.task_of(leader).map_or(Comm::EMPTY, |leader| leader.comm),
                };
                let place = self.place(PartyKey::Process(leader), Tasks, String::new);
                // A process has the latest name of its leader.
                let party = &mut self.all[place];
                if party.kind == Tasks && (party.name.is_empty() || !comm.is_empty()) {
                    party.name = leader.named(comm);
                }
                place
            }
            (By::Application, _) => {
                let descends = task.kin.descends;
                let name = if descends { "application" } else { "others" };
                self.place(PartyKey::Application(descends), Tasks, || name.to_owned())
            }
        }
    }

    /// Returns the group into which each one goes in the end: a command whose name has a part of letters in the place of the random part
    /// of others joins those.
    pub(crate) fn joined(&self, by: By) -> Vec<usize> {
        let mut into: Vec<usize> = (0..self.all.len()).collect();
        if by != By::Command {
            return into;
        }
        let random: BTreeMap<&str, usize> =
            (0..).zip(&self.all).filter_map(|(place, party)| Some((party.name.strip_suffix('…')?, place))).collect();
        for (place, party) in self.all.iter().enumerate().filter(|(_, party)| party.kind == PartyKind::Tasks) {
            let cut = party.name.trim_end_matches(|c: char| c.is_ascii_lowercase() || c == 'N');
            let is_long = party.name.len() - cut.len() >= 6 && !cut.is_empty();
            if let Some(other) = random.get(cut).filter(|_| is_long) {
                into[place] = *other;
            }
        }
        into
    }
}
