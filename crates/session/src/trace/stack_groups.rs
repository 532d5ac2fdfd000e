//! The stacks with which tasks leave their CPUs, as the groups of `--by stack`.

use crate::Session;
use crate::args::BeginArgs;
use crate::stacks::{AddressNames, StackedEvent, kernel_stack, noted_outs};
use anyhow::Result;
use membership::{GroupStack, StackHistory, StackIndex};
use parse::{EventStacks, StackFrame, StackId, Trace};
use sched::seeded::SeededMap;
use sched::{Analysis, EventKind, Pid, SchedEvent, SchedState, TaskState, Ts};

/// Maximum number of switch-outs whose stacks are kept: 16 bytes each.
const SWITCH_OUTS: usize = 1 << 22;

/// The switch-outs of each PID in the order of time, each with its stack where it has one.
type OutsByPid<S> = SeededMap<Pid, Vec<(Ts, Option<S>)>>;

/// An analysis that collects the stacks with which tasks leave their CPUs, by the rule of `docs/read-the-numbers.md#by`.
struct SwitchOuts<'s> {
    stacks: &'s EventStacks,
    of: OutsByPid<StackId>,
    /// The number of switch-outs that still have room.
    room: usize,
    /// The instant of the first switch-out that is not kept, since there are too many.
    end: Option<Ts>,
}

impl SwitchOuts<'_> {
    /// A task is off its CPU from an instant on.
    fn take(&mut self, pid: Pid, ts: Ts, stack: Option<StackId>) {
        if self.end.is_some() {
            return;
        }
        if self.room == 0 {
            self.end = Some(ts);
            return;
        }
        let outs = self.of.entry(pid).or_default();
        // Nothing after nothing changes nothing.
        if stack.is_some() || outs.last().is_some_and(|(_, before)| before.is_some()) {
            outs.push((ts, stack));
            self.room -= 1;
        }
    }

    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        use TaskState::{Asleep, Dead, Running, Throttled, Waiting};
        for (task, span) in state.turns() {
            match (span.state, span.next, event.kind) {
                (Running(cpu), Asleep(_) | Waiting(_) | Throttled(_) | Dead, EventKind::Switch { prev, .. })
                    if prev.pid == task.pid && cpu == event.cpu =>
                {
                    let stack = self.stacks.of_switch(event.ts, event.cpu, prev.pid);
                    self.take(task.pid, event.ts, stack);
                }
                // The task is still off the CPU.
                (Asleep(_) | Waiting(_) | Throttled(_), Asleep(_) | Waiting(_) | Throttled(_), _) if span.ended => {}
                (_, Asleep(_) | Waiting(_) | Throttled(_), _) => self.take(task.pid, event.ts, None),
                _ => {}
            }
        }
    }
}

impl Analysis for SwitchOuts<'_> {
    type Output = (OutsByPid<StackId>, Option<Ts>);
    const LOOKS_BACK: bool = true;

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow(event, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow(event, state);
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        (self.of, self.end)
    }
}

impl Session {
    /// Learns the stack of the latest switch-out of each task at any instant up to the end of the window, by a pass of its own. The history
    /// of a trace without stacks is empty, without a pass.
    pub fn stack_history(&self) -> Result<StackHistory> {
        if !self.trace.has_stacks() {
            return Ok(StackHistory::default());
        }
        let mut stacks = self.trace.event_stacks(&[StackedEvent::Switch]);
        let noted = self.trace.past().map(|past| noted_outs(past, &mut stacks)).unwrap_or_default();
        let start = || {
            let mut outs = SwitchOuts { stacks: &stacks, of: OutsByPid::default(), room: SWITCH_OUTS, end: None };
            noted.iter().for_each(|(pid, stack)| outs.take(*pid, Ts(i64::MIN), *stack));
            outs
        };
        let (of, end) = self.follow(&BeginArgs::default(), self.window, start)?.output;
        let (groups, numbers) = numbered(&stacks, &self.trace);
        let number = |id: StackId| numbers.get(id.0 as usize).copied().flatten();
        let renumbered = |(ts, id): (Ts, Option<StackId>)| (ts, id.and_then(number));
        let of = of.into_iter().map(|(pid, outs)| (pid, outs.into_iter().map(renumbered).collect()));
        Ok(StackHistory::new(groups, of.collect(), end))
    }
}

/// The stacks by the names of their functions in the kernel, in the order of these, and the place of each stack among them; nothing of one
/// without frames in the kernel. Those whose names agree are one, whatever the addresses within them.
fn numbered(stacks: &EventStacks, trace: &Trace) -> (Vec<GroupStack>, Vec<Option<StackIndex>>) {
    let addresses = AddressNames::default();
    let ids = (0..stacks.count() as u32).map(StackId);
    let named: Vec<GroupStack> = ids.map(|id| group_stack(stacks.frames(id), trace, &addresses)).collect();
    let mut all: Vec<GroupStack> = named.iter().filter(|stack| !stack.functions.is_empty()).cloned().collect();
    all.sort_by(|a, b| a.functions.cmp(&b.functions));
    all.dedup_by(|a, b| a.functions == b.functions);
    let place = |stack: &GroupStack| all.binary_search_by(|other| other.functions.cmp(&stack.functions)).ok();
    let numbers = named.iter().map(|stack| place(stack).map(|place| StackIndex(place as u32))).collect();
    (all, numbers)
}

/// A stack by the names of its functions in the kernel.
fn group_stack(frames: &[StackFrame], trace: &Trace, addresses: &AddressNames) -> GroupStack {
    kernel_stack(frames, |frame| addresses.name(trace, frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switch_outs_have_a_limit() {
        let mut outs = SwitchOuts { stacks: &EventStacks::default(), of: OutsByPid::default(), room: 2, end: None };
        let stack = Some(StackId(0));
        outs.take(Pid(7), Ts(1), None);
        outs.take(Pid(7), Ts(2), stack);
        outs.take(Pid(7), Ts(3), None);
        outs.take(Pid(8), Ts(4), stack);
        outs.take(Pid(8), Ts(5), stack);
        assert_eq!(
            (outs.end, outs.of.len(), outs.of[&Pid(7)].as_slice()),
            (Some(Ts(4)), 1, &[(Ts(2), stack), (Ts(3), None)][..])
        );
    }
}
