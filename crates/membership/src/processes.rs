//! The process of each task.

use crate::past_groups::PastGroups;
use machine::Machine;
use parse::{Record, Trace};
use sched::limits::{PIDS, keep_of_pid};
use sched::seeded::SeededMap;
use sched::{Pid, Tracepoint, Ts};
use std::ops::ControlFlow;

/// The flag of `clone` by which the child becomes a thread of the caller's process (`CLONE_THREAD`).
const CLONE_THREAD: i64 = 0x1_0000;

/// Maximum number of threads of a process that move to another cgroup with it.
const MOST_THREADS: usize = 1024;

/// The process of each task over the time of a trace, by the PID of its first thread, the leader.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// The leader of each PID from an instant on, in the order of time; absent where it is unknown.
    leaders: SeededMap<Pid, Vec<(Ts, Option<Pid>)>>,
    /// The PIDs that have ever been threads of each leader's process, but the leader.
    members: SeededMap<Pid, Vec<Pid>>,
    /// The number of the event of an exec.
    exec: Option<u16>,
    /// Whether the records of the trace show processes: they have the flags of `clone`, or a list has a beginning for them.
    are_shown: bool,
}

impl Processes {
    /// Learns the processes of a trace: from the list of the machine file at the start, from the records of `task:task_newtask`, and
    /// from the programs that tasks execute.
    pub fn of(trace: &Trace, machine: Option<&Machine>) -> Processes {
        let (mut processes, follows) = Processes::begin(trace, machine, PastGroups::of(trace).as_deref());
        if follows {
            trace.records(&mut |record| {
                processes.follow(record);
                ControlFlow::Continue(())
            });
        }
        processes
    }

    /// Learns the processes before the records of the trace, by the note of a part or by the machine file, and whether the records are to be
    /// followed.
    pub(crate) fn begin(trace: &Trace, machine: Option<&Machine>, past: Option<&PastGroups>) -> (Processes, bool) {
        let mut processes = Processes::default();
        let (has_past, shown_in_whole) = (past.is_some(), past.map(|past| past.shows_processes));
        for (pid, leader) in past.into_iter().flat_map(|past| &past.processes) {
            processes.learn(*pid, Ts::MIN, *leader);
        }
        // The note of a part takes the place of the list.
        for (leader, thread) in machine.iter().filter(|_| !has_past).flat_map(|machine| machine.threads()) {
            processes.learn(thread, Ts::MIN, Some(leader));
        }
        for (ts, task, process) in trace.memberships().map_or(&[][..], |records| &records.processes) {
            processes.learn(*task, *ts, Some(*process));
        }
        if trace.memberships().is_some_and(|records| !records.processes.is_empty()) {
            // They have the execs as well.
            return (processes, false);
        }
        processes.exec = trace.format_of(Tracepoint::Exec).map(|format| format.id);
        let has_flags = trace.format_named("task", "task_newtask").is_some_and(|format| trace.occurs(format.id));
        processes.are_shown = shown_in_whole.unwrap_or(has_flags || !processes.leaders.is_empty());
        let follows = processes.are_shown;
        (processes, follows)
    }

    /// Whether the trace or the machine file shows the process of any task.
    pub fn are_known(&self) -> bool {
        !self.leaders.is_empty()
    }

    /// Whether records of the trace show processes beside those of a list.
    pub(crate) fn are_shown(&self) -> bool {
        self.are_shown
    }

    /// Returns the leader of the process that a task belongs to; nothing where that is unknown.
    pub fn leader(&self, pid: Pid, ts: Ts) -> Option<Pid> {
        let changes = self.leaders.get(&pid)?;
        let behind = changes.partition_point(|(from, _)| *from <= ts);
        changes.get(behind.checked_sub(1)?)?.1
    }

    /// The first instant after `ts` at which the process of a task changes.
    pub(crate) fn next_change(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        let changes = self.leaders.get(&pid)?;
        changes.get(changes.partition_point(|(from, _)| *from <= ts)).map(|(from, _)| *from)
    }

    /// The threads of the process of `leader` at an instant, in no order.
    pub(crate) fn threads(&self, leader: Pid, ts: Ts) -> impl Iterator<Item = Pid> {
        let ever = self.members.get(&leader).into_iter().flatten().copied();
        ever.filter(move |pid| self.leader(*pid, ts) == Some(leader))
    }

    /// The leader of each task of which a record up to an instant, or a list, shows the process or that it is unknown, by PID.
    pub(crate) fn at(&self, ts: Ts) -> Vec<(Pid, Option<Pid>)> {
        let is_shown = |changes: &Vec<(Ts, Option<Pid>)>| changes.first().is_some_and(|(from, _)| *from <= ts);
        let shown = self.leaders.iter().filter(|(_, changes)| is_shown(changes));
        let mut all: Vec<(Pid, Option<Pid>)> = shown.map(|(pid, _)| (*pid, self.leader(*pid, ts))).collect();
        all.sort_unstable();
        all
    }

    fn learn(&mut self, pid: Pid, ts: Ts, leader: Option<Pid>) {
        if let Some(leader) = leader.filter(|leader| *leader != pid) {
            let members = self.members.entry(leader).or_default();
            if !members.contains(&pid) && members.len() < MOST_THREADS {
                members.push(pid);
            }
        }
        if let Some(changes) = self.leaders.get_mut(&pid) {
            if changes.last().is_none_or(|(_, last)| *last != leader) && changes.len() < PIDS {
                changes.push((ts, leader));
            }
        } else {
            keep_of_pid(&mut self.leaders, pid, vec![(ts, leader)]);
        }
    }

    /// Learns the processes that a record shows. Records come in the order of the trace.
    pub(crate) fn follow(&mut self, record: &Record<'_>) {
        let Some(format) = record.format() else { return };
        let pid = |field: &str| record.number(field).and_then(|pid| i32::try_from(pid).ok()).map(Pid);
        match (format.system.as_str(), format.name.as_str()) {
            ("task", "task_newtask") => {
                let (Some(child), Some(flags)) = (pid("pid"), record.number("clone_flags")) else { return };
                let leader = match flags & CLONE_THREAD {
                    0 => Some(child),
                    // The thread that calls `clone` is of the same process, even if its own record is not in the trace.
                    _ => self.leader(record.pid(), record.ts),
                };
                self.learn(child, record.ts, leader);
            }
            // All other threads of the process are gone, and the one that executes has the leader's PID.
            _ if Some(format.id) == self.exec => {
                if let Some(pid) = pid("pid") {
                    self.learn(pid, record.ts, Some(pid));
                }
            }
            _ => {}
        }
    }
}
