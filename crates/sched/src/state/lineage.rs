//! The parents of tasks, and the descendants of the traced command.

use crate::event::kthread::is_kernel_thread;
use crate::event::{Comm, EventKind, Pid, SchedEvent, StateClass, Ts};
use crate::state::application::{Application, ApplicationBasis, Members};
use crate::tables::history::History;
use crate::tables::limits::{PIDS, keep_of_pid};
use crate::tables::seeded::SeededMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The origin of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kin {
    /// The PID of the task that forked this one, if the fork is in the trace.
    pub parent: Option<Pid>,
    /// Whether the task was forked while the trace ran.
    pub forked: bool,
    /// Whether the task is one of the application: the traced command, what descends from it and what works for it, or
    /// the chosen tasks. False for every task if the application is unknown, or if there is none.
    pub descends: bool,
    /// Whether the task works for the application without descending from the traced command.
    #[serde(default)]
    pub helps: bool,
}

impl Kin {
    /// Whether the task is a kernel thread, by its name or by its parent.
    pub fn is_of_kernel(self, comm: Comm) -> bool {
        is_kernel_thread(comm) || self.parent == Some(Pid::KTHREADD)
    }
}

/// The lineage of tasks as of the events seen so far.
///
/// `trace-cmd record COMMAND` forks, switches tracing on *in the child*, and then executes the command: the fork is not
/// in the trace, the `sched_process_exec` is, usually as one of the first five events. Therefore the traced command is
/// the first task to execute a program that was not forked within the trace and that, where its name was seen before,
/// was called `trace-cmd` (or `schedviz`, whose `record` does the same, or `perf-exec`, as `perf record` calls the task
/// that is to execute its command). The task has the program's name before its exec event: where it was preempted on
/// the way, as in 8 of 131 recordings, that name was seen, and shows nothing.
#[derive(Clone, Debug, Default)]
pub struct Lineage {
    kin: SeededMap<Pid, Kin>,
    root: Option<Pid>,
    /// Whether the root was given, rather than found among the events seen so far.
    given: bool,
    /// Whether the root has executed its program.
    executed: bool,
    /// The names of tasks before their latest ones, where recorded, until the traced command is known.
    before: SeededMap<Pid, Comm>,
    /// The tasks that belong to the application by themselves.
    members: Members,
}

impl Lineage {
    /// Makes the lineage at the start of a trace, before its first event. `root` is the traced command's first task, if
    /// a look ahead has found it: the command before its exec is the command.
    pub(crate) fn of_application(root: Option<Pid>, application: Arc<Application>) -> Lineage {
        let mut lineage = Lineage { root, given: root.is_some(), ..Lineage::default() };
        if let Some(root) = root {
            lineage.kin.entry(root).or_default().descends = true;
        }
        lineage.choose(application);
        lineage
    }

    /// Makes this the application. Where it is not that of the traced command, no task descends any more but those that
    /// are named.
    pub(crate) fn choose(&mut self, application: Arc<Application>) {
        if application.basis != ApplicationBasis::Command {
            self.kin.values_mut().for_each(|kin| (kin.descends, kin.helps) = (false, false));
            (self.root, self.given, self.executed) = (application.root, true, true);
            self.before = SeededMap::default();
        }
        for member in application.members.iter().filter(|member| member.life == 0) {
            let kin = self.kin.entry(member.pid).or_default();
            (kin.helps, kin.descends) = (member.helps && !kin.descends, true);
        }
        self.members = Members::of(application);
    }

    /// The application, as far as it is not that of the traced command, for a part that begins here; nothing where it is.
    pub(crate) fn application_from_here(&self) -> Option<Application> {
        let application = self.members.beginning_now();
        (application != Application::default()).then_some(application)
    }

    /// The property that makes tasks part of the application.
    pub fn basis(&self) -> ApplicationBasis {
        self.members.application().basis
    }

    /// Restores a lineage from its note: the origins of tasks, the traced command's first task and whether it has
    /// executed the command, and the names of tasks before their latest ones.
    pub(crate) fn noted(
        kin: impl Iterator<Item = (Pid, Kin)>,
        root: Option<Pid>,
        executed: bool,
        before: impl Iterator<Item = (Pid, Comm)>,
        application: Arc<Application>,
    ) -> Lineage {
        let members = Members::of(application);
        let given = root.is_some() || members.application().basis != ApplicationBasis::Command;
        Lineage { kin: kin.collect(), root, given, executed, before: before.collect(), members }
    }

    /// Returns the origins of all tasks, in the order of PIDs.
    pub(crate) fn origins(&self) -> Vec<(Pid, Kin)> {
        let mut kin: Vec<(Pid, Kin)> = self.kin.iter().map(|(pid, kin)| (*pid, *kin)).collect();
        kin.sort_unstable_by_key(|(pid, _)| *pid);
        kin
    }

    /// Returns the names of tasks before their latest ones, in the order of PIDs.
    pub(crate) fn former_names(&self) -> Vec<(Pid, Comm)> {
        let mut before: Vec<(Pid, Comm)> = self.before.iter().map(|(pid, name)| (*pid, *name)).collect();
        before.sort_unstable();
        before
    }

    /// Whether the root has executed its program.
    pub(crate) fn has_executed(&self) -> bool {
        self.executed
    }

    /// Whether the root was found among the events seen so far, rather than given.
    pub(crate) fn has_found_root(&self) -> bool {
        self.root.is_some() && !self.given
    }

    /// The traced command's first task: given, or known since its exec was seen. Of chosen tasks, the one whose critical
    /// path is that of the application.
    pub fn root(&self) -> Option<Pid> {
        self.root
    }

    /// The origin of `pid`, as far as the events seen so far show it.
    pub fn of(&self, pid: Pid) -> Kin {
        self.kin.get(&pid).copied().unwrap_or_default()
    }

    /// The approximate number of bytes of a copy.
    pub(crate) fn bytes(&self) -> usize {
        self.kin.len() * size_of::<(Pid, Kin)>() + self.before.len() * size_of::<(Pid, Comm)>() + self.members.bytes()
    }

    /// Follows a `sched_process_fork`.
    pub fn fork(&mut self, parent: Pid, child: Pid) {
        let Kin { descends, helps, .. } = self.of(parent);
        let mut kin = Kin { parent: Some(parent), forked: true, descends, helps };
        if let Some(member) = self.members.fork(child) {
            (kin.helps, kin.descends) = (member.helps && (!descends || helps), true);
        }
        keep_of_pid(&mut self.kin, child, kin);
    }

    /// Forgets a task, which is dead, so that its PID is free: in a long trace more tasks die than there is memory for.
    pub fn forget(&mut self, pid: Pid) {
        self.kin.remove(&pid);
        self.before.remove(&pid);
    }

    /// Follows a `task_rename`; `before` is the name of the task until then.
    pub fn rename(&mut self, pid: Pid, before: Comm) {
        if !self.executed {
            keep_of_pid(&mut self.before, pid, before);
        }
    }

    /// Follows a `sched_process_exec` of this program. `name` is the name of the task before, empty if unknown.
    pub fn exec(&mut self, pid: Pid, old_pid: Pid, program: Comm, name: Comm) {
        if pid != old_pid {
            let kin = self.kin.remove(&old_pid).unwrap_or_default();
            let leader = self.kin.entry(pid).or_default();
            leader.helps = if leader.descends { leader.helps } else { kin.helps };
            leader.descends |= kin.descends;
        }
        if self.basis() != ApplicationBasis::Command {
            return;
        }
        // An exec takes its name before its event.
        let name = self.before.remove(&old_pid).unwrap_or(name);
        let recorders = [b"trace-cmd".as_slice(), b"schedviz", b"perf-exec"].map(Comm::new);
        let traced = name.is_empty() || name == program || recorders.contains(&name);
        if self.root.is_none_or(|root| root == pid) && traced && !self.of(pid).forked {
            self.root = Some(pid);
            self.executed = true;
            self.kin.entry(pid).or_default().descends = true;
        }
    }
}

/// The lineage of tasks from their events alone, without the rest of the state.
#[derive(Clone, Debug, Default)]
pub struct LineageSteps {
    now: Lineage,
    /// The names of tasks, kept while they help to find the traced command.
    names: SeededMap<Pid, Comm>,
}

impl LineageSteps {
    /// Begins with a known lineage.
    pub(crate) fn from(now: Lineage) -> LineageSteps {
        LineageSteps { now, names: SeededMap::default() }
    }

    /// Begins where nothing but the application is known.
    pub fn of_application(application: &Arc<Application>) -> LineageSteps {
        LineageSteps::from(Lineage::of_application(None, application.clone()))
    }

    /// The lineage as of the latest event.
    pub fn now(&self) -> &Lineage {
        &self.now
    }

    /// Follows the next event of a trace. Forks, execs and renames show the lineage, switches the names; other events
    /// change nothing. Returns the task whose origin may have changed.
    pub fn learn(&mut self, event: &SchedEvent) -> Option<Pid> {
        match event.kind {
            EventKind::Fork { parent, child, child_comm } => {
                self.now.fork(parent, child);
                self.name(child, child_comm);
                Some(child)
            }
            EventKind::Exec { pid, old_pid, program } => {
                self.now.exec(pid, old_pid, program, self.names.get(&old_pid).copied().unwrap_or_default());
                Some(pid)
            }
            EventKind::Rename { pid, before, .. } => {
                self.now.rename(pid, before);
                None
            }
            EventKind::Switch { prev, state, next } => {
                if state.class == StateClass::Dead {
                    self.now.forget(prev.pid);
                }
                self.name(next.pid, next.comm);
                None
            }
            _ => None,
        }
    }

    /// Keeps the name of a task until the traced command is known.
    fn name(&mut self, pid: Pid, comm: Comm) {
        if self.now.root().is_none() {
            keep_of_pid(&mut self.names, pid, comm);
        }
    }
}

/// The lineage of tasks at any instant of a trace.
#[derive(Clone, Debug, Default)]
pub struct LineageHistory {
    steps: LineageSteps,
    changes: SeededMap<Pid, History<Kin>>,
}

impl LineageHistory {
    /// Makes a history that begins with a known lineage.
    pub(crate) fn from(now: Lineage) -> LineageHistory {
        let changes = now.kin.iter().map(|(pid, kin)| (*pid, History::new(Ts::MIN, *kin))).collect();
        LineageHistory { steps: LineageSteps::from(now), changes }
    }

    /// Makes a history that begins where nothing but the application is known.
    pub fn of_application(application: &Arc<Application>) -> LineageHistory {
        LineageHistory::from(Lineage::of_application(None, application.clone()))
    }

    /// Follows the next event of a trace. Forks, execs and renames show the lineage, switches the names; other events
    /// change nothing.
    pub fn learn(&mut self, event: &SchedEvent) {
        let Some(changed) = self.steps.learn(event) else { return };
        if self.changes.len() >= PIDS && !self.changes.contains_key(&changed) {
            return;
        }
        let kin = self.steps.now.of(changed);
        self.changes.entry(changed).or_insert_with(|| History::new(event.ts, kin)).learn(event.ts, kin);
    }

    /// The traced command's first task, if its exec was seen.
    pub fn root(&self) -> Option<Pid> {
        self.steps.now.root()
    }

    /// Whether it is known which tasks are those of the application.
    pub fn knows_application(&self) -> bool {
        match self.steps.now.basis() {
            ApplicationBasis::Command => self.root().is_some(),
            basis => basis.why_none().is_none(),
        }
    }

    /// The origin of the task that had this PID at `ts`.
    pub fn of(&self, pid: Pid, ts: Ts) -> Kin {
        let Some(changes) = self.changes.get(&pid) else { return Kin::default() };
        // Before its exec the traced command is known already: it is the same task.
        let before = || Some(changes.first()).filter(|kin| !kin.forked);
        changes.at(ts).or_else(before).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make() -> Comm {
        Comm::of_program(b"/usr/bin/make\0stale")
    }

    #[test]
    fn the_first_exec_is_the_traced_command() {
        let mut lineage = Lineage::default();
        lineage.exec(Pid(318), Pid(318), make(), Comm::EMPTY);
        lineage.fork(Pid(318), Pid(319));
        lineage.fork(Pid(1), Pid(400));
        lineage.exec(Pid(400), Pid(400), make(), Comm::EMPTY);
        assert_eq!(lineage.root(), Some(Pid(318)));
        assert!(lineage.of(Pid(319)).descends && lineage.of(Pid(318)).descends);
        assert!(!lineage.of(Pid(400)).descends && lineage.of(Pid(400)).forked);
    }

    #[test]
    fn a_known_other_name_is_not_the_traced_command() {
        let mut lineage = Lineage::default();
        lineage.exec(Pid(7), Pid(7), make(), Comm::new(b"cron"));
        assert_eq!(lineage.root(), None);
        for recorder in [b"trace-cmd".as_slice(), b"schedviz", b"perf-exec"] {
            let mut lineage = lineage.clone();
            lineage.exec(Pid(8), Pid(8), make(), Comm::new(recorder));
            assert_eq!(lineage.root(), Some(Pid(8)));
        }
    }

    #[test]
    fn the_programs_own_name_does_not_tell_who_it_was() {
        let mut lineage = Lineage::default();
        lineage.exec(Pid(8), Pid(8), make(), make());
        assert_eq!(lineage.root(), Some(Pid(8)));
    }

    #[test]
    fn a_thread_that_executes_takes_the_leaders_number() {
        let mut lineage = Lineage::default();
        lineage.exec(Pid(10), Pid(10), make(), Comm::EMPTY);
        lineage.fork(Pid(10), Pid(11));
        lineage.exec(Pid(10), Pid(11), make(), Comm::EMPTY);
        assert!(lineage.of(Pid(10)).descends);
        assert_eq!(lineage.of(Pid(11)), Kin::default());
    }

    #[test]
    fn history_knows_reused_numbers() {
        let at = |ts, kind| SchedEvent { ts: Ts(ts), cpu: Default::default(), pid: Pid(1), flags: 0, kind };
        let fork = |parent, child| EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: Comm::EMPTY };
        let exec = EventKind::Exec { pid: Pid(5), old_pid: Pid(5), program: Comm::EMPTY };
        let events = [at(1, exec), at(2, fork(5, 9)), at(10, fork(1, 9))];
        let mut history = LineageHistory::default();
        events.iter().for_each(|event| history.learn(event));
        assert!(history.of(Pid(5), Ts(0)).descends);
        assert!(!history.of(Pid(9), Ts(1)).forked);
        assert!(history.of(Pid(9), Ts(2)).descends);
        assert!(!history.of(Pid(9), Ts(11)).descends);
    }
}
