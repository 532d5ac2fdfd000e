//! Names and processes of tasks, from the process tree, from descriptions of tracks, and from the creation of tasks.

use crate::ahead::ReadAhead;
use crate::limits;
use crate::wire::{Wire, WireContent, WirePart, parts};
use parse::TaskRecords;
use sched::seeded::SeededMap;
use sched::{Comm, Pid, Ts};
use std::ops::Range;

/// The numbers of the fields of `ProcessTree`, and of a process and a thread in it.
mod tree {
    pub(super) const PROCESSES: u32 = 1;
    pub(super) const THREADS: u32 = 2;
    pub(super) const PID: u32 = 1;
    pub(super) const CMDLINE: u32 = 3;
    pub(super) const CMDLINE_IS_COMM: u32 = 9;
    pub(super) const TID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const TGID: u32 = 3;
}

/// The numbers of the fields of `ThreadDescriptor`.
mod thread {
    pub(super) const PROCESS: u32 = 1;
    pub(super) const TID: u32 = 2;
    pub(super) const NAME: u32 = 5;
}

/// `CLONE_THREAD`: the new task is a thread of its parent's process.
const CLONE_THREAD: u64 = 0x10000;

/// The names and the processes of tasks.
#[derive(Debug, Default)]
pub(crate) struct ListedTasks {
    pub(crate) names: SeededMap<Pid, Comm>,
    /// Since when the latest task of a PID lives, and its process, if it is known.
    latest: SeededMap<i32, (Ts, Option<i32>)>,
    processes: Vec<(Ts, Pid, Pid)>,
    /// Whether a list of processes was read: the creation of tasks alone shows the processes of few.
    has_list: bool,
}

impl ListedTasks {
    /// A task is created.
    pub(crate) fn created(&mut self, time: u64, pid: i32, parent: i32, flags: u64) {
        let process = if flags & CLONE_THREAD == 0 {
            Some(pid)
        } else {
            // The parent of a thread is a thread of the same process.
            self.latest.get(&parent).map_or(Some(parent), |(_, process)| *process)
        };
        let since = Ts(i64::try_from(time).unwrap_or(i64::MAX));
        if self.latest.len() < limits::TASKS || self.latest.contains_key(&pid) {
            self.latest.insert(pid, (since, process));
        }
        if let Some(process) = process {
            self.push(since, pid, process);
        }
    }

    /// A task belongs to a process, by a list that was made at some time.
    fn listed(&mut self, pid: i32, process: i32) {
        if pid <= 0 || process <= 0 {
            return;
        }
        self.has_list = true;
        let since = match self.latest.get(&pid) {
            Some((_, Some(known))) if *known == process => return,
            Some((since, None)) => *since,
            // Its creation was not seen: it was there from the start on, or it is another task with the PID of one that ended unseen.
            _ => Ts::MIN,
        };
        if self.latest.len() < limits::TASKS || self.latest.contains_key(&pid) {
            self.latest.insert(pid, (since, Some(process)));
        }
        self.push(since, pid, process);
    }

    fn push(&mut self, since: Ts, pid: i32, process: i32) {
        if self.processes.len() < limits::PROCESSES {
            self.processes.push((since, Pid(pid), Pid(process)));
        }
    }

    fn name(&mut self, pid: i32, name: &[u8]) {
        let pid = Pid(pid);
        if !name.is_empty() && (self.names.len() < limits::TASKS || self.names.contains_key(&pid)) {
            self.names.insert(pid, Comm::new(name.get(..name.len().min(15)).unwrap_or_default()));
        }
    }

    /// Takes a process tree.
    pub(crate) fn tree(&mut self, source: &ReadAhead<'_>, place: Range<u64>) {
        let (mut wire, mut message) = (Wire::new(source, place), Vec::new());
        while let Ok(Some((kind, content))) = wire.field() {
            let WireContent::Bytes(place) = content else { continue };
            if wire.copy(&place, limits::MESSAGE, &mut message).is_none() {
                continue;
            }
            match kind {
                tree::PROCESSES => self.process(&message),
                tree::THREADS => {
                    let (mut tid, mut tgid, mut name) = (0, 0, &[][..]);
                    for (number, part) in parts(&message) {
                        match number {
                            tree::TID => tid = part.number() as i32,
                            tree::TGID => tgid = part.number() as i32,
                            tree::NAME => name = part.bytes(),
                            _ => {}
                        }
                    }
                    self.name(tid, name);
                    self.listed(tid, tgid);
                }
                _ => {}
            }
        }
    }

    fn process(&mut self, message: &[u8]) {
        let (mut pid, mut first, mut is_comm) = (0, None, false);
        for (number, part) in parts(message) {
            match number {
                tree::PID => pid = part.number() as i32,
                tree::CMDLINE => first = first.or(Some(part.bytes())),
                tree::CMDLINE_IS_COMM => is_comm = part.number() != 0,
                _ => {}
            }
        }
        if is_comm {
            self.name(pid, first.unwrap_or_default());
        }
        self.listed(pid, pid);
    }

    /// Takes the description of a thread.
    pub(crate) fn thread(&mut self, message: &[u8]) {
        let (mut process, mut tid, mut name) = (0, 0, &[][..]);
        for (number, part) in parts(message) {
            match (number, part) {
                (thread::PROCESS, WirePart::Number(number)) => process = number as i32,
                (thread::TID, WirePart::Number(number)) => tid = number as i32,
                (thread::NAME, WirePart::Bytes(bytes)) => name = bytes,
                _ => {}
            }
        }
        self.name(tid, name);
        self.listed(tid, process);
    }

    /// The processes of tasks in the order of time; nothing if no list shows any.
    pub(crate) fn into_records(self) -> (SeededMap<Pid, Comm>, Option<TaskRecords>) {
        let mut processes = self.processes;
        processes.sort_by_key(|(since, ..)| *since);
        let records = self.has_list.then(|| TaskRecords { processes, ..TaskRecords::default() });
        (self.names, records)
    }
}
