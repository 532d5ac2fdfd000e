//! The tasks of a trace, each with its place in the list that tiles refer to.

use crate::columns::lane::{Id, OTHERS};
use sched::lineage::Kin;
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, CpuSpan, Pid, SchedState, TaskState};

/// A task of the trace, as the page lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskEntry {
    /// The number of the task.
    pub pid: Pid,
    /// The most recent command name; empty if none was seen.
    pub comm: Comm,
    /// The time that it ran, in nanoseconds.
    pub run_ns: u64,
    /// The CPU that it ran on first.
    pub home: Option<Cpu>,
    /// The task that forked it, if the trace shows that.
    pub parent: Option<Pid>,
    /// Whether it is the traced command or descends from it.
    pub application: bool,
}

/// The tasks in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    places: SeededMap<Pid, Id>,
    list: Vec<TaskEntry>,
}

impl Tasks {
    /// The maximum number of tasks that have a place: in tiles a place has at most two bytes. Tasks that are first seen
    /// later are shown as other tasks.
    pub(crate) const MOST: usize = 16_380;

    /// The tasks, by their places.
    pub fn list(&self) -> &[TaskEntry] {
        &self.list
    }

    /// The task with this number.
    pub fn of(&self, pid: Pid) -> Option<&TaskEntry> {
        self.list.get(*self.places.get(&pid)? as usize)
    }

    /// The place of a task; that of all other tasks if it has none of its own.
    pub(crate) fn place(&self, pid: Pid) -> Id {
        self.places.get(&pid).copied().unwrap_or(OTHERS)
    }

    /// The place of the first task of the same command name, for each place: that of the task itself where its name is unknown.
    pub(crate) fn first_of_command(&self) -> Vec<Id> {
        let mut first: SeededMap<Comm, Id> = SeededMap::default();
        let of = |(place, task): (Id, &TaskEntry)| match task.comm.is_empty() {
            true => place,
            false => *first.entry(task.comm).or_insert(place),
        };
        (0..).zip(&self.list).map(of).collect()
    }

    /// The place of a task; one that is seen for the first time gets a place if there is one left, else that of all
    /// other tasks.
    pub(crate) fn place_of_new(&mut self, pid: Pid, state: &SchedState) -> Id {
        if let Some(place) = self.places.get(&pid) {
            return *place;
        }
        self.add(TaskEntry::first_seen(pid, state))
    }

    /// The place of a task that a sample shows; that of all other tasks if there is none left.
    pub(crate) fn place_of_sampled(&mut self, pid: Pid, comm: Comm) -> Id {
        if let Some(place) = self.places.get(&pid) {
            return *place;
        }
        self.add(TaskEntry { pid, comm, run_ns: 0, home: None, parent: None, application: false })
    }

    /// Gives places to the tasks that wait at the end and never ran, in the order of their PIDs.
    pub(crate) fn meet_waiting(&mut self, state: &SchedState) {
        let waits = |task: &&sched::Task| matches!(task.state, TaskState::Waiting(_) | TaskState::Throttled(_));
        let mut pids: Vec<Pid> = state.living().filter(waits).map(|task| task.pid).collect();
        pids.sort_unstable();
        pids.into_iter().for_each(|pid| _ = self.place_of_new(pid, state));
    }

    /// Gives a task a place, if there is one.
    pub(crate) fn add(&mut self, task: TaskEntry) -> Id {
        if self.list.len() == Self::MOST {
            return OTHERS;
        }
        let place = self.list.len() as Id;
        self.places.insert(task.pid, place);
        self.list.push(task);
        place
    }

    /// A CPU's span has ended in which the task of this place ran.
    pub(crate) fn ran(&mut self, place: Id, pid: Pid, span: &CpuSpan, state: &SchedState) {
        let Some(entry) = self.list.get_mut(place as usize) else { return };
        entry.run_ns += span.duration().0;
        entry.run(span.cpu, span.comm, || state.kin(pid));
    }

    /// Adds the tasks of a later piece of a pass. Returns the places here of its places.
    pub(crate) fn join(&mut self, later: PieceTasks) -> Vec<Id> {
        let place_of = |task: &PieceTask| match self.places.get(&task.seen.pid) {
            Some(place) => *place,
            None => self.add(TaskEntry { run_ns: 0, home: None, ..task.seen }),
        };
        let places: Vec<Id> = later.list.iter().map(place_of).collect();
        for ProgramRun { place, cpu, comm, kin } in later.programs {
            let place = places.get(place as usize).copied().unwrap_or(OTHERS);
            if let Some(entry) = self.list.get_mut(place as usize) {
                entry.run(cpu, comm, || kin);
            }
        }
        for (place, task) in places.iter().zip(&later.list) {
            if let Some(entry) = self.list.get_mut(*place as usize) {
                entry.run_ns += task.seen.run_ns;
            }
        }
        places
    }
}

impl TaskEntry {
    /// A task that is seen for the first time.
    fn first_seen(pid: Pid, state: &SchedState) -> TaskEntry {
        let kin = state.kin(pid);
        let comm = state.task_of(pid).map_or(Comm::EMPTY, |task| task.comm);
        TaskEntry { pid, comm, run_ns: 0, home: None, parent: kin.parent, application: kin.descends }
    }

    /// The task ran on a CPU, under this name; `kin` is that of the time.
    fn run(&mut self, cpu: Cpu, comm: Comm, kin: impl FnOnce() -> Kin) {
        let is_first = self.home.is_none();
        self.home = self.home.or(Some(cpu));
        if is_first || self.comm != comm && !comm.is_empty() {
            // A program that was executed can make the task the traced command, and a sample shows no kin.
            let kin = kin();
            self.comm = if comm.is_empty() { self.comm } else { comm };
            self.parent = kin.parent.or(self.parent);
            self.application |= kin.descends;
        }
    }
}

/// The tasks of a later piece of a pass, with places of their own.
#[derive(Debug, Default)]
pub(crate) struct PieceTasks {
    places: SeededMap<Pid, Id>,
    list: Vec<PieceTask>,
    /// The runs at which the facts about a task can change, in the order of their ends.
    programs: Vec<ProgramRun>,
    /// Whether there were more tasks than can have a place.
    is_over: bool,
}

/// A task of a piece.
#[derive(Debug)]
struct PieceTask {
    /// The task as it was first seen in the piece, with the time that it ran there.
    seen: TaskEntry,
    /// The name under which it ran last in the piece.
    latest: Option<Comm>,
}

/// The first run of a task in a piece, or under another name than the one before.
#[derive(Debug)]
struct ProgramRun {
    place: Id,
    cpu: Cpu,
    comm: Comm,
    kin: Kin,
}

impl PieceTasks {
    /// Whether there were more tasks than can have a place: the place of one in the piece is then unknown.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The place of a task within the piece.
    pub(crate) fn place_of_new(&mut self, pid: Pid, state: &SchedState) -> Id {
        if let Some(place) = self.places.get(&pid) {
            return *place;
        }
        if self.list.len() == Tasks::MOST {
            self.is_over = true;
            return OTHERS;
        }
        let place = self.list.len() as Id;
        self.places.insert(pid, place);
        self.list.push(PieceTask { seen: TaskEntry::first_seen(pid, state), latest: None });
        place
    }

    /// A CPU's span has ended in which the task of this place ran.
    pub(crate) fn ran(&mut self, place: Id, pid: Pid, span: &CpuSpan, state: &SchedState) {
        let Some(task) = self.list.get_mut(place as usize) else { return };
        task.seen.run_ns += span.duration().0;
        if task.latest != Some(span.comm) {
            task.latest = Some(span.comm);
            self.programs.push(ProgramRun { place, cpu: span.cpu, comm: span.comm, kin: state.kin(pid) });
        }
    }
}
