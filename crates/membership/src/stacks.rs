//! The stacks with which tasks leave their CPUs, as the groups of their time off-CPU.

use sched::seeded::SeededMap;
use sched::{Pid, Ts};

/// The number of a stack in a [`StackHistory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackIndex(pub u32);

/// The sign between two functions of a stack: the left one was called by the right one.
pub(crate) const BETWEEN_FUNCTIONS: &str = " ← ";

/// A stack by its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupStack {
    /// The kind of the stack in words; empty if it has none.
    pub kind: String,
    /// The functions, the innermost first; an address where there is no name for it.
    pub functions: Vec<String>,
    /// The number of functions of the scheduler at the inner end, which names leave out.
    pub of_scheduler: usize,
}

impl GroupStack {
    /// The name of the stack: its kind, and its functions behind those of the scheduler.
    pub(crate) fn name(&self) -> String {
        let inner = self.functions.get(self.of_scheduler..).filter(|inner| !inner.is_empty());
        let functions = inner.unwrap_or(&self.functions).join(BETWEEN_FUNCTIONS);
        if self.kind.is_empty() { functions } else { format!("{}: {functions}", self.kind) }
    }
}

/// The stack of the latest switch-out of each task at any instant.
#[derive(Clone, Debug, Default)]
pub struct StackHistory {
    /// The stacks of the switch-outs of each PID, in the order of time; nothing of one without a stack.
    of: SeededMap<Pid, Vec<(Ts, Option<StackIndex>)>>,
    stacks: Vec<GroupStack>,
    /// The end of the history; behind it no stack is known.
    end: Option<Ts>,
}

impl StackHistory {
    /// Returns the history of these stacks, by the numbers that are their places. The switch-outs of each PID must be in the order of
    /// time; behind `end`, where there is one, no stack is known.
    pub fn new(
        stacks: Vec<GroupStack>,
        of: SeededMap<Pid, Vec<(Ts, Option<StackIndex>)>>,
        end: Option<Ts>,
    ) -> StackHistory {
        StackHistory { of, stacks, end }
    }

    /// Whether no stack is known.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Returns the stack of the latest switch-out of a task up to an instant, that at the instant included; nothing where none was recorded.
    pub fn of(&self, pid: Pid, ts: Ts) -> Option<StackIndex> {
        if self.end.is_some_and(|end| ts > end) {
            return None;
        }
        let switches = self.of.get(&pid)?;
        let passed = switches.partition_point(|(at, _)| *at <= ts);
        switches.get(passed.checked_sub(1)?)?.1
    }

    /// The first switch-out of a task after an instant.
    pub(crate) fn next_change(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        let switches = self.of.get(&pid)?;
        switches.get(switches.partition_point(|(at, _)| *at <= ts)).map(|(at, _)| *at)
    }

    /// Returns the stack of a number; nothing if there is none.
    pub fn stack(&self, stack: StackIndex) -> Option<&GroupStack> {
        self.stacks.get(stack.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupedTask, TaskGroup, TaskGroups};
    use sched::Comm;

    fn stack(kind: &str, functions: &[&str]) -> GroupStack {
        let functions = functions.iter().map(|name| (*name).to_owned()).collect();
        GroupStack { kind: kind.to_owned(), functions, of_scheduler: 1 }
    }

    #[test]
    fn a_task_is_at_the_stack_of_its_latest_switch_out() {
        let mut of = SeededMap::default();
        of.insert(Pid(7), vec![(Ts(10), Some(StackIndex(0))), (Ts(20), None), (Ts(30), Some(StackIndex(1)))]);
        let stacks = vec![
            stack("pipe", &["schedule", "pipe_read", "vfs_read", "ksys_read", "a", "b"]),
            stack("", &["schedule"]),
        ];
        let groups = TaskGroups::of_stacks(StackHistory::new(stacks, of, Some(Ts(40))));
        let task = GroupedTask { pid: Pid(7), comm: Comm::EMPTY, prio: None, is_kernel: false };
        let at = |ts| groups.group(task, Ts(ts));
        let [first, second] = [0, 1].map(|nth| TaskGroup::Stack(StackIndex(nth)));
        assert_eq!(
            [9, 10, 19, 20, 30, 40, 41].map(at),
            [TaskGroup::Unknown, first, first, TaskGroup::Unknown, second, second, TaskGroup::Unknown]
        );
        let mut parts = Vec::new();
        groups.divide(&task, Ts(15), Ts(35), |group, from, to| parts.push((group, from.0, to.0)));
        assert_eq!(parts, [(first, 15, 20), (TaskGroup::Unknown, 20, 30), (second, 30, 35)]);
        let shown = |group| groups.label(group).map(|label| label.shown()).unwrap_or_default();
        assert_eq!(shown(first), "pipe: pipe_read ← vfs_read ← ksys_read ← a ← …");
        assert_eq!([shown(second), shown(TaskGroup::Unknown)], ["schedule", "no stack"]);
    }
}
