//! A load with what the writers of all forms need of its tasks: names, policies, cgroups, and what is said of it.

use crate::load::{LoadCounts, Reproduction};
use crate::scheduling::Scheduling;
use membership::SchedPolicy;
use sched::nouns::counted;
use sched::{Comm, Dur};

/// The properties of a task that the model does not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The policy at the beginning, where it is known.
    pub(crate) policy: Option<SchedPolicy>,
    /// The path of the cgroup, where it is known.
    pub(crate) cgroup: Option<String>,
}

/// A load that is written.
pub(crate) struct WrittenLoad<'l> {
    pub(crate) load: &'l Reproduction,
    /// By task; empty where nothing is known.
    facts: Vec<Facts>,
    /// Whether the names of commands and cgroups are written.
    names: bool,
    /// The paths of the cgroups, in the order in which the tasks show them.
    cgroups: Vec<String>,
    pub(crate) told: Told,
}

/// The facts that messages and the heads of programs have about a load.
pub(crate) struct Told {
    pub(crate) counts: LoadCounts,
    pub(crate) tasks: usize,
    length: Dur,
    sentences: Vec<String>,
}

impl Told {
    /// The facts about the load, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let LoadCounts { bursts, compute_ns, wakeups, waits, sleeps, starts, .. } = self.counts;
        let (length, compute) = (self.length.human(), Dur(compute_ns).human());
        let first = format!(
            "{length}: {}, {} ({compute} of CPU time), {}, {}, {}, {}",
            counted(self.tasks as u64, "task"),
            counted(bursts, "burst"),
            counted(wakeups, "wakeup"),
            counted(waits, "wait"),
            counted(sleeps, "sleep"),
            counted(starts, "start"),
        );
        std::iter::once(first).chain(self.sentences.iter().cloned()).collect()
    }
}

impl<'l> WrittenLoad<'l> {
    pub(crate) fn new(load: &'l Reproduction, counts: LoadCounts, facts: Vec<Facts>, names: bool) -> WrittenLoad<'l> {
        let mut cgroups: Vec<String> = Vec::new();
        for path in facts.iter().filter_map(|facts| facts.cgroup.as_ref()) {
            if !cgroups.contains(path) {
                cgroups.push(path.clone());
            }
        }
        let told =
            Told { counts, tasks: load.tasks.len(), length: Dur(load.length_ns), sentences: load.lost.sentences() };
        WrittenLoad { load, facts, names, cgroups, told }
    }

    /// The name of a task: `t1`, or that of its command.
    pub(crate) fn name(&self, task: usize) -> String {
        match self.load.tasks.get(task) {
            Some(of) if self.names && !of.comm.is_empty() => plain(of.comm),
            _ => format!("t{}", task + 1),
        }
    }

    /// The cgroup of a task: `/g1`, or its path.
    pub(crate) fn cgroup(&self, task: usize) -> Option<String> {
        let path = self.facts.get(task)?.cgroup.as_ref()?;
        if self.names {
            return Some(plain_text(path));
        }
        self.cgroups.iter().position(|known| known == path).map(|at| format!("/g{}", at + 1))
    }

    /// The number of different cgroups.
    pub(crate) fn cgroups(&self) -> usize {
        self.cgroups.len()
    }

    /// The policy and priority of a task with this kernel priority.
    pub(crate) fn scheduling(&self, task: usize, prio: i32) -> Scheduling {
        Scheduling::of(self.facts.get(task).and_then(|facts| facts.policy), prio)
    }
}

/// A name without letters that mean something in C, JSON or a comment.
fn plain(comm: Comm) -> String {
    plain_text(&comm.to_string())
}

fn plain_text(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    let mut out: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if text.starts_with('/') {
        out.replace_range(..1, "/");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_nothing_in_c_and_json() {
        assert_eq!(plain_text("kworker/0:1"), "kworker_0:1");
        assert_eq!(plain_text("a\"*/b\\c"), "a___b_c");
        assert_eq!(plain_text("/user.slice/x y"), "/user.slice_x_y");
    }
}
