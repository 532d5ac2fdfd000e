//! The cgroup of each task.

use crate::Processes;
use crate::past_groups::PastGroups;
use machine::Machine;
use parse::{EventFormat, Record, TaskRecords, Trace};
use sched::limits::PIDS;
use sched::seeded::{SeededMap, SeededSet};
use sched::{Past, Pid, Tracepoint, Ts, event::escape};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The ID of the root of the unified hierarchy.
const ROOT: u64 = 1;

/// Maximum number of records of moves that are kept; later ones are not followed, and the tasks that they name are in an unknown cgroup
/// from then on.
const MOST_CHANGES: usize = 1 << 22;

/// A cgroup as records name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CgroupName {
    Id(u64),
    Path(String),
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
    names: Vec<String>,
    changes: Vec<CgroupChange>,
    /// The paths by ID, of cgroups with tasks or without.
    ids: Vec<(u64, String)>,
    records_forks: bool,
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
        let mut learned = Learned { processes: Some(processes), ..Learned::default() };
        let past = trace.past().map(|past| &**past);
        let noted = PastGroups::of(past);
        let has_note = noted.is_some();
        learned.start(machine, !has_note);
        learned.records_forks = noted.as_ref().is_some_and(|note| note.records_forks);
        learned.go_on(noted, past);
        let mut kinds: SeededMap<u16, Shows> =
            trace.formats().iter().filter_map(|format| Some((format.id, kind(format)?))).collect();
        kinds.extend(trace.format_of(Tracepoint::Fork).map(|format| (format.id, Shows::Fork)));
        let has_any = kinds.iter().any(|(id, shows)| !matches!(shows, Shows::Fork) && trace.occurs(*id));
        learned.records_forks |= trace.probe("group_fork").is_some_and(|format| trace.occurs(format.id));
        let sampled = trace.memberships();
        let mut sampled = sampled.map_or(&[][..], |records| learned.sampled(records));
        if has_any || has_note || !learned.now.is_empty() || !sampled.is_empty() {
            trace.records(&mut |record| {
                while let Some(((ts, pid, cgroup), rest)) =
                    sampled.split_first().filter(|((ts, ..), _)| *ts <= record.ts)
                {
                    learned.join(*ts, *pid, Some(CgroupName::Id(*cgroup)));
                    sampled = rest;
                }
                if let Some(shows) = kinds.get(&record.id()) {
                    learned.follow(*shows, record);
                }
                ControlFlow::Continue(())
            });
        }
        machine.into_iter().filter(|_| !has_note).for_each(|machine| learned.end(machine));
        learned.finish()
    }

    /// Returns the cgroups of tasks that never move, each with the path of its cgroup.
    pub fn listed(tasks: &[(Pid, &str)]) -> Cgroups {
        let mut learned = Learned::default();
        for (pid, path) in tasks {
            learned.join(Ts::MIN, *pid, Some(CgroupName::Path((*path).to_owned())));
        }
        learned.finish()
    }

    /// The cgroups that these moves make, in the order of time: each the instant, the task, and the path of the cgroup that it joins,
    /// absent where that is unknown.
    pub fn of_moves(moves: &[(Ts, Pid, Option<&str>)]) -> Cgroups {
        let mut learned = Learned::default();
        for (ts, pid, path) in moves {
            learned.join(*ts, *pid, path.map(|path| CgroupName::Path(path.to_owned())));
        }
        learned.finish()
    }

    /// The paths of the cgroups, in the order of their indices; `cgroup N` for one that is known by its ID alone.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a cgroup.
    pub fn name(&self, cgroup: CgroupIndex) -> &str {
        self.names.get(cgroup.0 as usize).map_or("", String::as_str)
    }

    /// The paths of cgroups by their IDs, of those without tasks as well.
    pub(crate) fn ids(&self) -> &[(u64, String)] {
        &self.ids
    }

    /// Whether the probe on forks has records, so that forks show nothing else.
    pub(crate) fn records_forks(&self) -> bool {
        self.records_forks
    }

    /// The changes of cgroups, in the order of time.
    pub fn changes(&self) -> &[CgroupChange] {
        &self.changes
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

/// The cgroups as records show them, one after the other.
#[derive(Default)]
struct Learned<'p> {
    processes: Option<&'p Processes>,
    paths: BTreeMap<u64, String>,
    now: SeededMap<Pid, CgroupName>,
    changes: Vec<(Ts, Pid, Option<CgroupName>)>,
    records_forks: bool,
}

impl Learned<'_> {
    /// Takes the paths of the machine file, and the tasks of the list at the start where `with_tasks` holds.
    fn start(&mut self, machine: Option<&Machine>, with_tasks: bool) {
        self.paths.insert(ROOT, "/".to_owned());
        let Some(machine) = machine else { return };
        for cgroup in &machine.cgroups {
            if let Some(id) = cgroup.id {
                self.paths.insert(id, escape(cgroup.path.as_bytes()).into_owned());
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
            self.paths.insert(*id, escape(path).into_owned());
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
    fn go_on(&mut self, noted: Option<PastGroups>, past: Option<&Past>) {
        if let Some(PastGroups { cgroups, paths, ids, .. }) = noted {
            ids.into_iter().take(PIDS).for_each(|(id, path)| drop(self.paths.insert(id, path)));
            for (pid, place) in cgroups {
                let Some(path) = paths.get(place as usize) else { continue };
                let id = path.strip_prefix("cgroup ").and_then(|id| id.parse().ok());
                let name = id.map_or_else(|| CgroupName::Path(path.clone()), CgroupName::Id);
                self.join(Ts::MIN, pid, Some(name));
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

    fn follow(&mut self, shows: Shows, record: &Record<'_>) {
        let pid = |field: &str| record.number(field).and_then(|pid| i32::try_from(pid).ok()).map(Pid);
        let id = |field: &str| record.number(field).map(|id| CgroupName::Id(id.cast_unsigned()));
        let path = |field: &str| record.bytes(field).map(|path| escape(path).into_owned());
        let ts = record.ts;
        match shows {
            Shows::Fork => {
                // Since 6.16 the names are of variable length; the numbers keep theirs.
                if let (Some(parent), Some(child), false) = (pid("parent_pid"), pid("child_pid"), self.records_forks) {
                    self.join(ts, child, self.now.get(&parent).cloned());
                }
            }
            Shows::Joins => {
                if let (Some(pid), Some(cgroup)) = (pid("pid"), id("cgroup")) {
                    self.join(ts, pid, Some(cgroup));
                }
            }
            Shows::Switches => {
                for (task, cgroup) in [("prev", "pcg"), ("next", "ncg")] {
                    if let (Some(pid), Some(cgroup)) = (pid(task), id(cgroup)) {
                        self.join(ts, pid, Some(cgroup));
                    }
                }
            }
            Shows::Path => {
                if let (Some(0), Some(CgroupName::Id(id)), Some(path)) = (record.number("root"), id("id"), path("path"))
                {
                    self.name(id, path);
                }
            }
            Shows::Attach => {
                let (Some(0), Some(pid), Some(path)) = (record.number("dst_root"), pid("pid"), path("dst_path")) else {
                    return;
                };
                let cgroup = self.attached(record.number("dst_id").map(i64::cast_unsigned), path);
                // The record is of the first thread where a whole process moves.
                let others: Vec<Pid> = self.processes.iter().flat_map(|processes| processes.threads(pid, ts)).collect();
                for task in others.into_iter().chain([pid]) {
                    self.join(ts, task, Some(cgroup.clone()));
                }
            }
        }
    }

    /// The cgroup that tasks come to, by its ID where that is known: an anonymous part has a path of crosses alone.
    fn attached(&mut self, id: Option<u64>, path: String) -> CgroupName {
        let Some(id) = id else { return CgroupName::Path(path) };
        let is_hidden = !path.is_empty() && path.bytes().all(|byte| byte == b'x');
        if !is_hidden && !self.paths.contains_key(&id) {
            self.name(id, path);
        }
        CgroupName::Id(id)
    }

    /// A cgroup has this path.
    fn name(&mut self, id: u64, path: String) {
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
        let Learned { paths, changes, records_forks, .. } = self;
        let name = |cgroup: &CgroupName| match cgroup {
            CgroupName::Path(path) => path.clone(),
            CgroupName::Id(id) => paths.get(id).cloned().unwrap_or_else(|| format!("cgroup {id}")),
        };
        let mut places: BTreeMap<String, CgroupIndex> = BTreeMap::new();
        let mut names = Vec::new();
        let changes = changes
            .into_iter()
            .map(|(ts, pid, cgroup)| {
                let cgroup = cgroup.as_ref().map(|cgroup| {
                    *places.entry(name(cgroup)).or_insert_with_key(|name| {
                        names.push(name.clone());
                        CgroupIndex(names.len() as u32 - 1)
                    })
                });
                CgroupChange { ts, pid, cgroup }
            })
            .collect();
        Cgroups { names, changes, ids: paths.into_iter().collect(), records_forks }
    }
}
