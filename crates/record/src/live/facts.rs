//! The facts about the running machine that no event shows: the CPUs that tasks may use, the CPUs that idle without any event,
//! and the threads of this program.

use sched::topology::parse_cpu_list;
use sched::{Affinity, Cpu, CpuSet, EventKind, Past, Pid, PrevState, SchedEvent, StateClass};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The times of a CPU since the machine was booted, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
}

/// A CPU without any event has idled if it did for this share of an interval, in percent. The kernel's ticks are coarse.
const IDLES: u64 = 95;

/// The files of the kernel, as they were read last.
pub(super) struct LiveFacts {
    /// The folder `/proc`.
    proc: PathBuf,
    /// The CPUs that are online.
    online: CpuSet,
    /// The CPUs that tasks may use, as read after the interval before.
    before: HashMap<Pid, CpuSet>,
    ticks: HashMap<Cpu, Ticks>,
    own: HashSet<Pid>,
}

impl LiveFacts {
    /// Begins with a folder that is `/proc`, on a machine on which these CPUs are online.
    pub(super) fn new(proc: &Path, online: impl IntoIterator<Item = Cpu>) -> LiveFacts {
        let online = online.into_iter().collect();
        let mut facts = LiveFacts {
            proc: proc.to_owned(),
            online,
            before: HashMap::new(),
            ticks: HashMap::new(),
            own: HashSet::new(),
        };
        facts.ticks = facts.read_ticks();
        facts
    }

    /// The number of CPUs that are online.
    pub(super) fn online(&self) -> usize {
        self.online.len() as usize
    }

    /// Reads the numbers of this program's threads.
    pub(super) fn read_own(&mut self) -> HashSet<Pid> {
        let entries = std::fs::read_dir(self.proc.join("self/task")).into_iter().flatten().flatten();
        let threads = entries.filter_map(|entry| Some(Pid(entry.file_name().to_str()?.parse().ok()?)));
        // A thread that has ended meanwhile is in this interval as well.
        self.own.extend(threads);
        self.own.clone()
    }

    /// Reads the CPUs that tasks may use which wait in these events, or fork a task, or waited before.
    pub(super) fn affinity(&mut self, events: &[SchedEvent], past: Option<&Past>) -> Affinity {
        let mut affinity = Affinity::new(self.online.cpus());
        let mut now = HashMap::new();
        for pid in waiting(events, past) {
            // A task that has ended has the CPUs that it had before, or those of the task that forked it.
            if let Some(set) = self.allowed(pid).or_else(|| self.before.get(&pid).cloned()) {
                self.before.get(&pid).into_iter().for_each(|before| affinity.add(pid, before));
                affinity.add(pid, &set);
                now.insert(pid, set);
            }
        }
        self.before = now;
        affinity
    }

    /// The CPUs that a task may use, if it lives.
    fn allowed(&self, pid: Pid) -> Option<CpuSet> {
        let status = std::fs::read_to_string(self.proc.join(format!("{pid}/status"))).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(parse_cpu_list(list.trim())?.into_iter().collect())
    }

    /// The CPUs of `silent`, which have had no event so far, that have idled since this was called last, by the kernel's
    /// account.
    pub(super) fn idle(&mut self, is_silent: impl Fn(Cpu) -> bool) -> Vec<Cpu> {
        let silent: Vec<Cpu> = self.online.cpus().filter(|cpu| is_silent(*cpu)).collect();
        if silent.is_empty() {
            return silent;
        }
        let before = std::mem::take(&mut self.ticks);
        self.ticks = self.read_ticks();
        let has_idled = |cpu: &Cpu| {
            let (Some(before), Some(now)) = (before.get(cpu), self.ticks.get(cpu)) else { return false };
            let (idle, all) = (now.idle.saturating_sub(before.idle), now.all.saturating_sub(before.all));
            all > 0 && idle.saturating_mul(100) >= all.saturating_mul(IDLES)
        };
        silent.into_iter().filter(has_idled).collect()
    }

    fn read_ticks(&self) -> HashMap<Cpu, Ticks> {
        let text = std::fs::read_to_string(self.proc.join("stat")).unwrap_or_default();
        text.lines().filter_map(ticks).collect()
    }
}

/// Reads a line such as `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`; guests are in `user` and `nice`.
fn ticks(line: &str) -> Option<(Cpu, Ticks)> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    let cpu = Cpu(words.next()?.parse().ok()?);
    let times: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
    let idle = times.get(3)?.saturating_add(times.get(4).copied().unwrap_or(0));
    Some((cpu, Ticks { idle, all: times.iter().fold(0, |sum, n| sum.saturating_add(*n)) }))
}

/// The tasks that begin to wait in these events, and those that fork.
fn waiting(events: &[SchedEvent], past: Option<&Past>) -> HashSet<Pid> {
    let mut tasks: HashSet<Pid> = HashSet::new();
    for event in events {
        match event.kind {
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
                tasks.insert(task.pid)
            }
            EventKind::Migrate { task, .. } => tasks.insert(task.pid),
            EventKind::Switch {
                prev,
                state: PrevState { class: StateClass::Runnable | StateClass::Preempted, .. },
                ..
            } => tasks.insert(prev.pid),
            EventKind::Fork { parent, .. } => tasks.insert(parent),
            _ => false,
        };
    }
    let past = past.into_iter().flat_map(|past| &past.tasks);
    tasks.extend(past.filter(|task| matches!(task.state, sched::TaskState::Waiting(_))).map(|task| task.pid));
    tasks.remove(&Pid::IDLE);
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_cpu_idles_by_the_kernels_account() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |text: &str| std::fs::write(folder.path().join("stat"), text).expect("written");
        let begin = "10 0 5 0 3 0 0 100 0 0";
        write(&format!("cpu 9 9 9 9\ncpu0 {begin}\ncpu1 {begin}\ncpu2 {begin}\nintr 7\n"));
        let mut facts = LiveFacts::new(folder.path(), (0..3).map(Cpu));
        assert_eq!(facts.online(), 3);
        // CPU 0 has events; CPU 2 has worked for 60 of 160 ticks.
        let idles = "10 0 5 100 3 0 0 100 0 0";
        write(&format!("cpu0 {idles}\ncpu1 {idles}\ncpu2 70 0 5 100 3 0 0 100 0 0\n"));
        assert_eq!(facts.idle(|cpu| cpu.0 > 0), [Cpu(1)]);
        // No tick has passed.
        assert!(facts.idle(|_| true).is_empty());
    }

    #[test]
    fn a_task_that_ended_has_the_cpus_that_it_had() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("7")).expect("made");
        std::fs::write(folder.path().join("7/status"), "Name:\tx\nCpus_allowed_list:\t1\n").expect("written");
        let mut facts = LiveFacts::new(folder.path(), (0..4).map(Cpu));
        let task = sched::TaskRef { pid: Pid(7), prio: 120, comm: sched::Comm::EMPTY };
        let woken = EventKind::Waking { task, target: Cpu(1) };
        let event = SchedEvent { ts: sched::Ts(1), cpu: Cpu(0), pid: Pid(0), flags: 0, kind: woken };
        assert!(facts.affinity(&[event], None).restricts());
        std::fs::remove_file(folder.path().join("7/status")).expect("removed");
        assert!(facts.affinity(&[event], None).restricts());
        assert!(!facts.affinity(&[], None).restricts());
        assert!(!facts.affinity(&[event], None).restricts());
    }
}
