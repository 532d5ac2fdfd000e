//! The cgroup of each task.

use crate::Processes;
use crate::past_groups::PastGroups;
use crate::unsettled::{BothValues, RunStarts, UnsettledRuns};
use machine::Machine;
use parse::{EventFormat, Record, TaskRecords, Trace};
use sched::event::CleanText;
use sched::limits::PIDS;
use sched::seeded::{SeededMap, SeededSet};
use sched::{Cpu, Past, Pid, Tracepoint, Ts};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// The ID of the root of the unified hierarchy.
const ROOT: u64 = 1;

/// Maximum number of records of moves that are kept; later ones are not followed, and the tasks that they name are in an unknown cgroup
/// from then on.
const MOST_CHANGES: usize = 1 << 22;

/// A cgroup as records name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CgroupName {
    Id(u64),
    Path(CleanText),
}

/// The position of a cgroup in [`Cgroups::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupIndex(u32);

impl CgroupIndex {
    /// The position as an index into the names.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An instant at which a task joins a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupChange {
    /// The instant of the record; [`Ts::MIN`] for the list of the machine file.
    pub ts: Ts,
    /// The PID of the task.
    pub pid: Pid,
    /// The cgroup that the task joins; absent where it is unknown from then on.
    pub cgroup: Option<CgroupIndex>,
}

/// The cgroups of all tasks over the time of a trace.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    names: Vec<CleanText>,
    changes: Vec<CgroupChange>,
    /// The paths by ID, of cgroups with tasks or without.
    ids: Vec<(u64, CleanText)>,
    /// The runs within which their task came to another cgroup at an instant that no event shows.
    unsettled: UnsettledRuns<CgroupIndex>,
    records_forks: bool,
    /// The places of the changes by their tasks, in order; made for the first piece of a pass that asks.
    by_task: OnceLock<Vec<(Pid, u32)>>,
}

/// The way in which a record shows cgroups.
#[derive(Clone, Copy)]
enum Shows {
    /// `cgroup:cgroup_attach_task`: a task, or all threads of its process, move.
    Attach,
    /// `cgroup:cgroup_mkdir`: a cgroup has this path.
    Path,
    /// The probes `group` and `group_fork` of `record --why`.
    Joins,
    /// A probe on `sched_switch` with the cgroups of both tasks.
    Switches,
    /// A fork: the child has the cgroup of its parent.
    Fork,
}

impl Cgroups {
    /// Learns the cgroups of a trace: from the list of the machine file at the start, and from the records of moves and forks, and of
    /// probes that record cgroups.
    pub fn of(trace: &Trace, machine: Option<&Machine>, processes: &Processes) -> Cgroups {
        let mut records = CgroupRecords::begin(trace, machine, PastGroups::of(trace).as_deref());
        if records.follows {
            trace.records(&mut |record| {
                records.follow(record);
                records.settle(processes);
                ControlFlow::Continue(())
            });
        }
        records.finish(machine, processes)
    }

    /// Returns the cgroups of tasks that never move, each with the path of its cgroup.
    pub fn listed(tasks: &[(Pid, &str)]) -> Cgroups {
        let mut learned = Learned::default();
        for (pid, path) in tasks {
            learned.join(Ts::MIN, *pid, Some(CgroupName::Path((*path).into())));
        }
        learned.finish()
    }

    /// The cgroups that these moves make, in the order of time: each the instant, the task, and the path of the cgroup that it joins,
    /// absent where that is unknown.
    pub fn of_moves(moves: &[(Ts, Pid, Option<&str>)]) -> Cgroups {
        let mut learned = Learned::default();
        for (ts, pid, path) in moves {
            learned.join(*ts, *pid, path.map(|path| CgroupName::Path(path.into())));
        }
        learned.finish()
    }

    /// The paths of the cgroups, in the order of their indices; `cgroup N` for one that is known by its ID alone.
    pub fn names(&self) -> &[CleanText] {
        &self.names
    }

    /// The name of a cgroup.
    pub fn name(&self, cgroup: CgroupIndex) -> &str {
        self.names.get(cgroup.0 as usize).map_or("", CleanText::as_str)
    }

    /// The paths of cgroups by their IDs, of those without tasks as well.
    pub(crate) fn ids(&self) -> &[(u64, CleanText)] {
        &self.ids
    }

    /// Whether the probe on forks has records, so that forks show nothing else.
    pub(crate) fn records_forks(&self) -> bool {
        self.records_forks
    }

    /// The cgroups of a task at the start and at the end of its run, for an instant of a run within which it moved without an event that
    /// shows when; nothing elsewhere.
    pub(crate) fn of_unsettled_run(&self, pid: Pid, ts: Ts) -> Option<BothValues<CgroupIndex>> {
        self.unsettled.at(pid, ts)
    }

    /// The first instant after `ts` at which such a run of a task begins or ends.
    pub(crate) fn next_unsettled(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        self.unsettled.next_change(pid, ts)
    }

    /// The changes of cgroups, in the order of time.
    pub fn changes(&self) -> &[CgroupChange] {
        &self.changes
    }

    /// The cgroup of a task behind the first `taken` changes; nothing where it is unknown.
    pub(crate) fn behind(&self, taken: usize, pid: Pid) -> Option<CgroupIndex> {
        let by_task = self.by_task.get_or_init(|| {
            let mut by_task: Vec<(Pid, u32)> = self.changes.iter().map(|change| change.pid).zip(0..).collect();
            by_task.sort_unstable();
            by_task
        });
        let next = by_task.partition_point(|(of, place)| (*of, *place as usize) < (pid, taken));
        let (_, place) = by_task[..next].last().filter(|(of, _)| *of == pid)?;
        self.changes[*place as usize].cgroup
    }
}

/// Returns the way in which records of this format show cgroups, if they do.
fn kind(format: &EventFormat) -> Option<Shows> {
    let has = |fields: &[&str]| fields.iter().all(|field| format.field(field).is_some());
    Some(match (format.system.as_str(), format.name.as_str()) {
        ("cgroup", "cgroup_attach_task") => Shows::Attach,
        ("cgroup", "cgroup_mkdir") => Shows::Path,
        ("lb", "group" | "group_fork") if has(&["pid", "cgroup"]) => Shows::Joins,
        _ if has(&["prev", "next", "pcg", "ncg"]) => Shows::Switches,
        _ => return None,
    })
}

/// A fact about cgroups that a record shows.
enum CgroupFact {
    /// A child has the cgroup of its parent.
    Fork { parent: Pid, child: Pid },
    /// A task is in a cgroup.
    Joins(Pid, CgroupName),
    /// A cgroup has a path.
    Path(u64, CleanText),
    /// A task, or all threads of its process, move to the cgroup with this ID, if it is known, and path.
    Attach(Pid, Option<u64>, CleanText),
    /// A CPU switches from `prev`, which leaves its run in the cgroup `after`, to `next`.
    Run { cpu: Cpu, prev: Pid, next: Pid, after: CgroupName, is_behind_loss: bool },
}

/// Maximum number of facts of one instant that wait for its last record.
const MOST_AT_ONCE: usize = 1024;

/// The records of a trace that show cgroups, as they come.
pub(crate) struct CgroupRecords<'t> {
    learned: Learned,
    kinds: SeededMap<u16, Shows>,
    /// The cgroups of tasks in perf's samples that are still to come.
    sampled: &'t [(Ts, Pid, u64)],
    /// The facts of the latest instant, which are learned once the processes at the end of that instant are known.
    waiting: Vec<(Ts, CgroupFact)>,
    has_note: bool,
    /// Whether the records are to be followed.
    pub(crate) follows: bool,
}

impl<'t> CgroupRecords<'t> {
    /// Learns the cgroups before the records of the trace, by the note of a part or by the machine file.
    pub(crate) fn begin(trace: &'t Trace, machine: Option<&Machine>, noted: Option<&PastGroups>) -> CgroupRecords<'t> {
        let mut learned = Learned::default();
        let has_note = noted.is_some();
        learned.start(machine, !has_note);
        learned.records_forks = noted.is_some_and(|note| note.records_forks);
        learned.go_on(noted, trace.past().map(|past| &**past));
        let mut kinds: SeededMap<u16, Shows> =
            trace.formats().iter().filter_map(|format| Some((format.id, kind(format)?))).collect();
        kinds.extend(trace.format_of(Tracepoint::Fork).map(|format| (format.id, Shows::Fork)));
        let has_any = kinds.iter().any(|(id, shows)| !matches!(shows, Shows::Fork) && trace.occurs(*id));
        learned.records_forks |= trace.probe("group_fork").is_some_and(|format| trace.occurs(format.id));
        let sampled = trace.memberships().map_or(&[][..], |records| learned.sampled(records));
        let follows = has_any || has_note || !learned.now.is_empty() || !sampled.is_empty();
        CgroupRecords { learned, kinds, sampled, waiting: Vec::new(), has_note, follows }
    }

    /// Whether a record at this instant ends that of the facts that wait.
    pub(crate) fn is_behind(&self, ts: Ts) -> bool {
        self.waiting.last().is_some_and(|(of, _)| *of != ts) || self.waiting.len() >= MOST_AT_ONCE
    }

    /// Takes the facts that a record shows. Records come in the order of the trace.
    pub(crate) fn follow(&mut self, record: &Record<'_>) {
        while let Some(((ts, pid, cgroup), rest)) = self.sampled.split_first().filter(|((ts, ..), _)| *ts <= record.ts)
        {
            self.learned.join(*ts, *pid, Some(CgroupName::Id(*cgroup)));
            self.sampled = rest;
        }
        if let Some(shows) = self.kinds.get(&record.id()) {
            let forks = !self.learned.records_forks;
            facts(*shows, record, forks).into_iter().flatten().for_each(|fact| self.waiting.push((record.ts, fact)));
        }
    }

    /// Learns the facts that wait, by the processes that all records up to its instant show.
    pub(crate) fn settle(&mut self, processes: &Processes) {
        for (ts, fact) in self.waiting.drain(..) {
            self.learned.learn(ts, fact, processes);
        }
    }

    /// The cgroups, once all records were followed.
    pub(crate) fn finish(mut self, machine: Option<&Machine>, processes: &Processes) -> Cgroups {
        self.settle(processes);
        machine.into_iter().filter(|_| !self.has_note).for_each(|machine| self.learned.end(machine));
        self.learned.finish()
    }
}

/// The facts that a record shows; forks are left out unless `forks`, since a probe shows the same.
fn facts(shows: Shows, record: &Record<'_>, forks: bool) -> [Option<CgroupFact>; 3] {
    let pid = |field: &str| record.number(field).and_then(|pid| i32::try_from(pid).ok()).map(Pid);
    let id = |field: &str| record.number(field).map(|id| CgroupName::Id(id.cast_unsigned()));
    let path = |field: &str| record.bytes(field).map(CleanText::of_bytes);
    let joins = |task: &str, cgroup: &str| Some(CgroupFact::Joins(pid(task)?, id(cgroup)?));
    match shows {
        // Since 6.16 the names are of variable length; the numbers keep theirs.
        Shows::Fork => {
            let tasks = pid("parent_pid").zip(pid("child_pid")).filter(|_| forks);
            [tasks.map(|(parent, child)| CgroupFact::Fork { parent, child }), None, None]
        }
        Shows::Joins => [joins("pid", "cgroup"), None, None],
        Shows::Switches => {
            let run = pid("prev").zip(pid("next")).zip(id("pcg")).map(|((prev, next), after)| {
                let (cpu, is_behind_loss) = (record.cpu, record.lost.is_some());
                CgroupFact::Run { cpu, prev, next, after, is_behind_loss }
            });
            [run, joins("prev", "pcg"), joins("next", "ncg")]
        }
        Shows::Path => match (record.number("root"), record.number("id"), path("path")) {
            (Some(0), Some(id), Some(path)) => [Some(CgroupFact::Path(id.cast_unsigned(), path)), None, None],
            _ => [None, None, None],
        },
        Shows::Attach => match (record.number("dst_root"), pid("pid"), path("dst_path")) {
            (Some(0), Some(pid), Some(path)) => {
                [Some(CgroupFact::Attach(pid, record.number("dst_id").map(i64::cast_unsigned), path)), None, None]
            }
            _ => [None, None, None],
        },
    }
}

/// The cgroups as records show them, one after the other.
#[derive(Default)]
struct Learned {
    paths: BTreeMap<u64, CleanText>,
    now: SeededMap<Pid, CgroupName>,
    changes: Vec<(Ts, Pid, Option<CgroupName>)>,
    /// The start of the run of each CPU's task.
    starts: RunStarts,
    /// The runs within which a task moved unseen: the task, the start, the end, and both cgroups.
    moved_within: Vec<(Pid, Ts, Ts, BothValues<CgroupName>)>,
    records_forks: bool,
}

impl Learned {
    /// Takes the paths of the machine file, and the tasks of the list at the start where `with_tasks` holds.
    fn start(&mut self, machine: Option<&Machine>, with_tasks: bool) {
        self.paths.insert(ROOT, "/".into());
        let Some(machine) = machine else { return };
        for cgroup in &machine.cgroups {
            if let Some(id) = cgroup.id {
                self.paths.insert(id, cgroup.path.clone());
            }
        }
        for (pid, cgroup) in machine.members().chain(machine.groups()).filter(|_| with_tasks) {
            if !self.now.contains_key(&pid) {
                self.join(Ts::MIN, pid, Some(CgroupName::Id(cgroup.number())));
            }
        }
    }

    /// Takes the paths of the cgroups in perf's samples, and the cgroup of each task in its first sample, which holds before as well.
    /// Returns the cgroups of tasks by time.
    fn sampled<'r>(&mut self, records: &'r TaskRecords) -> &'r [(Ts, Pid, u64)] {
        for (id, path) in &records.paths {
            self.paths.insert(*id, CleanText::of_bytes(path));
        }
        let mut seen: SeededSet<Pid> = SeededSet::default();
        for (_, pid, cgroup) in &records.cgroups {
            if seen.insert(*pid) {
                self.join(Ts::MIN, *pid, Some(CgroupName::Id(*cgroup)));
            }
        }
        &records.cgroups
    }

    /// Takes the cgroups of tasks from the note of a part. Without one, the throttling of before shows some.
    fn go_on(&mut self, noted: Option<&PastGroups>, past: Option<&Past>) {
        if let Some(PastGroups { cgroups, paths, ids, .. }) = noted {
            ids.iter().take(PIDS).for_each(|(id, path)| drop(self.paths.insert(*id, path.clone())));
            for (pid, place) in cgroups {
                let Some(path) = paths.get(*place as usize) else { continue };
                let id = path.strip_prefix("cgroup ").and_then(|id| id.parse().ok());
                let name = id.map_or_else(|| CgroupName::Path(path.clone()), CgroupName::Id);
                self.join(Ts::MIN, *pid, Some(name));
            }
            return;
        }
        let groups = past.and_then(|past| past.throttling.as_ref()).map_or(&[][..], |throttling| &throttling.groups);
        for (pid, cgroup) in groups {
            self.join(Ts::MIN, *pid, Some(CgroupName::Id(*cgroup)));
        }
    }

    fn join(&mut self, ts: Ts, pid: Pid, cgroup: Option<CgroupName>) {
        if pid.is_idle() || self.now.get(&pid) == cgroup.as_ref() {
            return;
        }
        let is_full = self.changes.len() >= MOST_CHANGES || (self.now.len() >= PIDS && !self.now.contains_key(&pid));
        let cgroup = cgroup.filter(|_| !is_full);
        match &cgroup {
            Some(cgroup) => drop(self.now.insert(pid, cgroup.clone())),
            None => drop(self.now.remove(&pid)),
        }
        if self.changes.len() < 2 * MOST_CHANGES {
            self.changes.push((ts, pid, cgroup));
        }
    }

    fn learn(&mut self, ts: Ts, fact: CgroupFact, processes: &Processes) {
        match fact {
            CgroupFact::Fork { parent, child } => self.join(ts, child, self.now.get(&parent).cloned()),
            CgroupFact::Joins(pid, cgroup) => self.join(ts, pid, Some(cgroup)),
            CgroupFact::Path(id, path) => self.name(id, path),
            CgroupFact::Run { cpu, prev, next, after, is_behind_loss } => {
                if is_behind_loss {
                    self.starts.lose(cpu);
                }
                let start = self.starts.switch(cpu, prev, next, ts);
                self.end_run(ts, (prev, after), start);
            }
            CgroupFact::Attach(pid, id, path) => {
                let cgroup = self.attached(id, path);
                // The record is of the first thread where a whole process moves.
                let others: Vec<Pid> = processes.threads(pid, ts).collect();
                for task in others.into_iter().chain([pid]) {
                    self.join(ts, task, Some(cgroup.clone()));
                }
            }
        }
    }

    /// Takes a switch: a task that leaves its run in another cgroup than it began it in moved in between.
    fn end_run(&mut self, ts: Ts, (prev, after): (Pid, CgroupName), start: Option<Ts>) {
        let before = self.now.get(&prev).filter(|before| **before != after && !prev.is_idle());
        if let (Some(before), Some(start)) = (before, start)
            && self.moved_within.len() < MOST_CHANGES
        {
            self.moved_within.push((prev, start, ts, (before.clone(), after)));
        }
    }

    /// The cgroup that tasks come to, by its ID where that is known: an anonymous part has a path of crosses alone.
    fn attached(&mut self, id: Option<u64>, path: CleanText) -> CgroupName {
        let Some(id) = id else { return CgroupName::Path(path) };
        let is_hidden = !path.is_empty() && path.bytes().all(|byte| byte == b'x');
        if !is_hidden && !self.paths.contains_key(&id) {
            self.name(id, path);
        }
        CgroupName::Id(id)
    }

    /// A cgroup has this path.
    fn name(&mut self, id: u64, path: CleanText) {
        if self.paths.len() < PIDS || self.paths.contains_key(&id) {
            self.paths.insert(id, path);
        }
    }

    /// Takes the cgroups of tasks that neither the list at the start nor any record shows from the list of the machine file at the end.
    fn end(&mut self, machine: &Machine) {
        let known: SeededSet<Pid> = self.changes.iter().map(|(_, pid, _)| *pid).collect();
        let behind = self.changes.len();
        for (pid, cgroup) in machine.members_at_end().filter(|(pid, _)| !known.contains(pid)) {
            self.join(Ts::MIN, pid, Some(CgroupName::Id(cgroup.number())));
        }
        // They hold from the start on.
        let added = self.changes.len() - behind;
        self.changes.rotate_right(added);
    }

    /// Gives each cgroup its name.
    fn finish(self) -> Cgroups {
        let Learned { paths, changes, moved_within, records_forks, .. } = self;
        let mut named = NamedCgroups { paths: &paths, places: BTreeMap::new(), names: Vec::new() };
        let changes = changes
            .into_iter()
            .map(|(ts, pid, cgroup)| CgroupChange { ts, pid, cgroup: cgroup.map(|cgroup| named.place(&cgroup)) })
            .collect();
        let mut unsettled = UnsettledRuns::default();
        for (pid, start, end, (before, after)) in moved_within {
            unsettled.add(pid, start, end, (named.place(&before), named.place(&after)));
        }
        let names = named.names;
        let by_task = OnceLock::new();
        Cgroups { names, changes, ids: paths.into_iter().collect(), unsettled, records_forks, by_task }
    }
}

/// The cgroups by their paths, in the order in which they are first named.
struct NamedCgroups<'p> {
    paths: &'p BTreeMap<u64, CleanText>,
    places: BTreeMap<CleanText, CgroupIndex>,
    names: Vec<CleanText>,
}

impl NamedCgroups<'_> {
    /// The place of a cgroup.
    fn place(&mut self, cgroup: &CgroupName) -> CgroupIndex {
        let name = match cgroup {
            CgroupName::Path(path) => path.clone(),
            CgroupName::Id(id) => self.paths.get(id).cloned().unwrap_or_else(|| format!("cgroup {id}").into()),
        };
        let names = &mut self.names;
        *self.places.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            CgroupIndex(names.len() as u32 - 1)
        })
    }
}
