//! The stacks with which tasks leave their CPUs, as the groups of `--by stack`.

use crate::Session;
use crate::args::BeginArgs;
use crate::stacks::{AddressNames, StackedEvent, kernel_stack, noted_outs};
use anyhow::Result;
use membership::{GroupStack, StackHistory, StackIndex};
use parse::{EventStacks, StackFrame, StackId, Trace};
use sched::seeded::{SeededMap, SeededSet};
use sched::{Analysis, EventKind, Pid, SchedEvent, SchedState, TaskState, Ts};
use std::cmp::Reverse;

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
        let mut uses = vec![0; stacks.count()];
        for id in of.values().flatten().filter_map(|(_, id)| *id) {
            if let Some(uses) = uses.get_mut(id.0 as usize) {
                *uses += 1;
            }
        }
        let (groups, numbers) = numbered(&stacks, &uses, &self.trace);
        let number = |id: StackId| numbers.get(id.0 as usize).copied().flatten();
        let renumbered = |(ts, id): (Ts, Option<StackId>)| (ts, id.and_then(number));
        let of = of.into_iter().map(|(pid, outs)| (pid, outs.into_iter().map(renumbered).collect()));
        Ok(StackHistory::new(groups, of.collect(), end))
    }
}

/// Maximum size of the names of the functions in all stacks together, in bytes: a function can be in each of them, and each can have a row.
const MOST_NAMES: usize = 16 << 20;

/// The name of the stack that stands for those whose names have no room.
const OTHERS: &str = "(others)";

/// The stacks by the names of their functions in the kernel, in the order of these, and the place of each stack among them; nothing of one
/// without frames in the kernel. Those whose names agree are one, whatever the addresses within them. The names of the most frequent ones
/// take the room, by the number of switch-outs (`uses`); the others are one.
fn numbered(stacks: &EventStacks, uses: &[u64], trace: &Trace) -> (Vec<GroupStack>, Vec<Option<StackIndex>>) {
    let mut names = StackNames::default();
    let ids = (0..stacks.count() as u32).map(StackId);
    let named: Vec<NumberedStack> = ids.map(|id| names.stack(stacks.frames(id), trace)).collect();
    let mut different: SeededMap<&[u32], u64> = SeededMap::default();
    for (stack, uses) in named.iter().zip(uses) {
        *different.entry(&stack.functions).or_default() += uses;
    }
    different.retain(|functions, _| !functions.is_empty());
    let mut frequent: Vec<(&[u32], u64)> = different.into_iter().collect();
    frequent.sort_unstable_by_key(|(functions, uses)| (Reverse(*uses), *functions));
    let mut left = MOST_NAMES;
    let mut kept: SeededMap<&[u32], StackIndex> = SeededMap::default();
    for (functions, _) in &frequent {
        let Some(rest) = left.checked_sub(names.size(functions)) else { continue };
        left = rest;
        kept.insert(*functions, StackIndex(0));
    }
    let has_others = kept.len() < frequent.len();
    let others = GroupStack { kind: String::new(), functions: vec![OTHERS.to_owned()], of_scheduler: 0 };
    let mut taken: SeededSet<&[u32]> = SeededSet::default();
    let first_of_each =
        named.iter().filter(|stack| kept.contains_key(&*stack.functions) && taken.insert(&stack.functions));
    let mut all: Vec<(Option<&[u32]>, GroupStack)> =
        first_of_each.map(|stack| (Some(&*stack.functions), names.group_stack(stack))).collect();
    all.extend(has_others.then_some((None, others)));
    all.sort_by(|(_, a), (_, b)| a.functions.cmp(&b.functions));
    let mut place_of_others = None;
    for (place, (functions, _)) in (0..).map(StackIndex).zip(&all) {
        match functions {
            Some(functions) => drop(kept.insert(functions, place)),
            None => place_of_others = Some(place),
        }
    }
    let place = |stack: &NumberedStack| match stack.functions.is_empty() {
        true => None,
        false => kept.get(&*stack.functions).copied().or(place_of_others),
    };
    let numbers = named.iter().map(place).collect();
    (all.into_iter().map(|(_, stack)| stack).collect(), numbers)
}

/// A stack by the numbers of the names of its functions in the kernel.
struct NumberedStack {
    kind: String,
    functions: Vec<u32>,
    of_scheduler: usize,
}

/// The names of the functions of stacks, each stored once.
#[derive(Default)]
struct StackNames {
    addresses: AddressNames,
    of_frames: SeededMap<StackFrame, Option<String>>,
    numbers: SeededMap<String, u32>,
    names: Vec<String>,
}

impl StackNames {
    fn stack(&mut self, frames: &[StackFrame], trace: &Trace) -> NumberedStack {
        for frame in frames {
            self.of_frames.entry(*frame).or_insert_with(|| self.addresses.name(trace, *frame));
        }
        let GroupStack { kind, functions, of_scheduler } =
            kernel_stack(frames, |frame| self.of_frames.get(&frame).cloned().flatten());
        let functions = functions.into_iter().map(|name| self.number(name)).collect();
        NumberedStack { kind, functions, of_scheduler }
    }

    fn number(&mut self, name: String) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        // There are at most as many as frames of all stacks.
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// The number of bytes that the names of a stack take.
    fn size(&self, functions: &[u32]) -> usize {
        functions.iter().map(|number| self.name(*number).len() + size_of::<String>()).sum()
    }

    fn group_stack(&self, stack: &NumberedStack) -> GroupStack {
        let functions = stack.functions.iter().map(|number| self.name(*number).to_owned()).collect();
        GroupStack { kind: stack.kind.clone(), functions, of_scheduler: stack.of_scheduler }
    }
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
