//! The stacks in the kernel with which a task left its CPUs in a window, and those of its wakers.

use crate::ask::questions::{AskedWindow, Fault};
use crate::index::viewed::Viewed;
use membership::{GroupStack, StackHistory, StackIndex};
use parse::StackId;
use sched::seeded::SeededMap;
use sched::{Analysis, Cpu, EventKind, Pid, SchedEvent, SchedState, Span, TaskState, Ts};
use serde::Serialize;
use serde_json::Value;
use session::stacks::{NamedStacks, StackedEvent};

/// The maximum number of stacks of an answer, of rows, of times off the CPU, and of functions of a stack.
const LIMITS: StackLimits = StackLimits { stacks: 256, rows: 100, off: 2_000, functions: 128 };

/// Bounds on an answer.
#[derive(Clone, Copy, Debug)]
struct StackLimits {
    stacks: usize,
    rows: usize,
    off: usize,
    functions: usize,
}

/// The stacks of a task in a window. Times are nanoseconds from the start of the trace, lengths nanoseconds within the window.
#[derive(Clone, Debug, Default, Serialize)]
struct StacksDetail {
    stacks: Vec<ShownStack>,
    /// The time off the CPU by stack, the longest first.
    rows: Vec<StackRow>,
    /// The sums of the stacks beyond the rows; absent where all have one.
    rest: Option<StackRow>,
    /// The times off the CPU, in their order.
    off: Vec<OffTime>,
    /// Whether more times off the CPU were found than are listed.
    truncated: bool,
}

/// A stack by its functions in the kernel.
#[derive(Clone, Debug, Serialize)]
struct ShownStack {
    kind: String,
    /// The innermost functions, the innermost first.
    functions: Vec<String>,
    /// The number of functions of the scheduler at the inner end.
    scheduler: usize,
    /// The number of outer functions that are left out.
    more: usize,
}

/// The time off the CPU at one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct StackRow {
    /// The place of the stack among those of the answer; absent where none was recorded.
    stack: Option<usize>,
    asleep: u64,
    runnable: u64,
    /// The number of times that the task left its CPU within the window.
    times: u64,
}

/// A time off the CPU, between two runs or the ends of the window.
#[derive(Clone, Debug, Serialize)]
struct OffTime {
    from: u64,
    to: u64,
    /// The CPU of its first state.
    cpu: Cpu,
    asleep: u64,
    runnable: u64,
    /// The place of the stack of the switch-out; absent where none was recorded.
    stack: Option<usize>,
    /// The origin of the wakeup that ended the sleep; absent where there was none within the window, or none is known.
    waker: Option<ShownWaker>,
}

/// The origin of a wakeup.
#[derive(Clone, Debug, Serialize)]
struct ShownWaker {
    /// The PID of the task that woke the sleeping one; absent where an interrupt did.
    pid: Option<Pid>,
    /// The CPU of the waker.
    cpu: Cpu,
    /// The place of its stack; absent where none was recorded.
    stack: Option<usize>,
}

/// A stack before it has a place in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum StackAt {
    /// The stack of a switch-out, by its number in the history.
    Out(StackIndex),
    /// The stack of a waker, by its number among those of the events.
    Waker(StackId),
}

/// The wakeup that ended a sleep.
#[derive(Clone, Copy, Debug)]
struct SeenWaker {
    at: Ts,
    by: Pid,
    on: Cpu,
    /// Whether the task that ran there woke the other one, not an interrupt.
    is_task: bool,
    stack: Option<StackId>,
}

/// A time off the CPU that lasts, or is over.
#[derive(Clone, Copy, Debug)]
struct OffSpan {
    from: Ts,
    to: Ts,
    cpu: Cpu,
    asleep: u64,
    runnable: u64,
    out: Option<StackIndex>,
    /// Whether a switch within the window began it.
    has_left: bool,
    waker: Option<SeenWaker>,
}

/// The analysis that gathers the stacks of a task in a window.
struct TaskStacks<'s> {
    pid: Pid,
    zero: Ts,
    history: &'s StackHistory,
    events: &'s NamedStacks,
    limits: StackLimits,
    /// The start of the window, if no event before it has shown the task: whether the task slept then is not known.
    unseen: Option<Ts>,
    /// The latest `sched_waking` of the task, or its `sched_wakeup` where wakings were not recorded.
    waking: Option<SeenWaker>,
    /// Whether the run that ended last ended within the window.
    has_run: bool,
    off: Option<OffSpan>,
    ended: Vec<OffSpan>,
    sums: SeededMap<Option<StackIndex>, StackRow>,
    truncated: bool,
}

/// The answer to the question about the stacks of a task.
pub(crate) fn answer(
    trace: &Viewed<'_>,
    history: &StackHistory,
    pid: Pid,
    window: AskedWindow,
) -> Result<Value, Fault> {
    let (from, to) = window.within(trace)?;
    let store = trace.store()?;
    let analysis = TaskStacks::new(pid, trace.extent().0, history, trace.stacks(), LIMITS);
    let detail = store.window(from, to, analysis)?;
    Ok(serde_json::to_value(&detail).unwrap_or_default())
}

impl<'s> TaskStacks<'s> {
    fn new(
        pid: Pid,
        zero: Ts,
        history: &'s StackHistory,
        events: &'s NamedStacks,
        limits: StackLimits,
    ) -> TaskStacks<'s> {
        TaskStacks {
            pid,
            zero,
            history,
            events,
            limits,
            unseen: None,
            waking: None,
            has_run: false,
            off: None,
            ended: Vec::new(),
            sums: SeededMap::default(),
            truncated: false,
        }
    }

    /// The origin of the wakeup that ends the sleep of the task, by the rule of `offcpu --by waker`.
    fn woken_by(&self, task: &sched::Task, state: &SchedState) -> Option<SeenWaker> {
        let Some(waking) = task.waking else { return self.waking.filter(|_| !state.has_wakings()) };
        let is_it = |seen: &SeenWaker| (seen.at, seen.by, seen.on) == (waking.at, waking.by, waking.on);
        self.waking.filter(is_it).or_else(|| {
            // The waking precedes the window.
            let stack = self.events.find((StackedEvent::Waking, waking.at, waking.on, self.pid));
            Some(SeenWaker { at: waking.at, by: waking.by, on: waking.on, is_task: !waking.by.is_idle(), stack })
        })
    }

    /// Ends the time off the CPU that lasts.
    fn end(&mut self) {
        let Some(off) = self.off.take() else { return };
        let sums = self.sums.entry(off.out).or_default();
        sums.asleep += off.asleep;
        sums.runnable += off.runnable;
        sums.times += u64::from(off.has_left);
        if self.ended.len() < self.limits.off { self.ended.push(off) } else { self.truncated = true }
    }

    /// The rows of the longest stacks, and the sums of those beyond their number.
    fn rows(&mut self, shown: &mut ShownStacks<'_>) -> (Vec<StackRow>, Option<StackRow>) {
        let mut sums: Vec<_> = std::mem::take(&mut self.sums).into_iter().collect();
        sums.sort_unstable_by_key(|(stack, sums)| (std::cmp::Reverse(sums.asleep + sums.runnable), *stack));
        let (mut rows, mut rest) = (Vec::new(), None);
        for (stack, sums) in sums {
            let has_room = rows.len() < self.limits.rows;
            let place = match stack {
                None => Some(None),
                Some(stack) if has_room => shown.place(StackAt::Out(stack)).map(Some),
                Some(_) => None,
            };
            match place.filter(|_| has_room) {
                Some(stack) => rows.push(StackRow { stack, ..sums }),
                None => {
                    let rest: &mut StackRow = rest.get_or_insert_default();
                    rest.asleep += sums.asleep;
                    rest.runnable += sums.runnable;
                    rest.times += sums.times;
                }
            }
        }
        (rows, rest)
    }
}

impl Analysis for TaskStacks<'_> {
    type Output = StacksDetail;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.unseen = state.task_of(self.pid).is_none().then_some(start);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        let kind = match event.kind {
            EventKind::Waking { task, .. } if task.pid == self.pid => StackedEvent::Waking,
            EventKind::Wakeup { task, .. } if task.pid == self.pid && !state.has_wakings() => StackedEvent::Wakeup,
            _ => return,
        };
        let stack = self.events.find((kind, event.ts, event.cpu, self.pid));
        let SchedEvent { ts: at, pid: by, cpu: on, .. } = *event;
        self.waking = Some(SeenWaker { at, by, on, is_task: event.in_task(), stack });
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        use TaskState::{Asleep, Running, Throttled, Waiting};
        if span.pid != self.pid {
            return;
        }
        let (Asleep(cpu) | Waiting(cpu) | Throttled(cpu)) = span.state else {
            self.end();
            self.has_run = span.ended && matches!(span.state, Running(_));
            return;
        };
        // Whether it slept before its first event is not known before that event.
        let is_unseen = self.unseen == Some(span.start) && !span.begun;
        if is_unseen && matches!(span.state, Asleep(_)) {
            return;
        }
        let (from, out, has_left) = (span.start, self.history.of(self.pid, span.start), self.has_run);
        let open = OffSpan { from, to: from, cpu, asleep: 0, runnable: 0, out, has_left, waker: None };
        let woken = span.ended && matches!((span.state, span.next), (Asleep(_), Waiting(_) | Throttled(_)));
        let waker = state.task(span.task).filter(|_| woken).and_then(|task| self.woken_by(task, state));
        let off = self.off.get_or_insert(open);
        (off.to, off.waker) = (span.end, off.waker.or(waker));
        match span.state {
            Asleep(_) => off.asleep += span.duration().0,
            Waiting(_) => off.runnable += span.duration().0,
            _ => {}
        }
        self.has_run = false;
        if span.ended && !matches!(span.next, Asleep(_) | Waiting(_) | Throttled(_)) {
            self.end();
        }
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> StacksDetail {
        self.end();
        let mut shown = ShownStacks::new(self.history, self.events, self.limits);
        let (rows, rest) = self.rows(&mut shown);
        let mut detail = StacksDetail { rows, rest, truncated: self.truncated, ..StacksDetail::default() };
        for off in &self.ended {
            match shown.off_time(off, self.zero) {
                Some(off) => detail.off.push(off),
                None => detail.truncated = true,
            }
        }
        detail.stacks = shown.stacks;
        detail
    }
}

/// The stacks of an answer, each with its place.
struct ShownStacks<'s> {
    history: &'s StackHistory,
    events: &'s NamedStacks,
    limits: StackLimits,
    places: SeededMap<StackAt, usize>,
    stacks: Vec<ShownStack>,
}

impl<'s> ShownStacks<'s> {
    fn new(history: &'s StackHistory, events: &'s NamedStacks, limits: StackLimits) -> ShownStacks<'s> {
        ShownStacks { history, events, limits, places: SeededMap::default(), stacks: Vec::new() }
    }

    /// The place of a stack; nothing where there is no room for it.
    fn place(&mut self, stack: StackAt) -> Option<usize> {
        if let Some(place) = self.places.get(&stack) {
            return Some(*place);
        }
        if self.stacks.len() == self.limits.stacks {
            return None;
        }
        let GroupStack { kind, mut functions, of_scheduler } = match stack {
            StackAt::Out(index) => self.history.stack(index).cloned().unwrap_or_default(),
            StackAt::Waker(id) => self.events.in_kernel(id),
        };
        let more = functions.len().saturating_sub(self.limits.functions);
        functions.truncate(self.limits.functions);
        let scheduler = of_scheduler.min(functions.len());
        self.stacks.push(ShownStack { kind, functions, scheduler, more });
        self.places.insert(stack, self.stacks.len() - 1);
        Some(self.stacks.len() - 1)
    }

    /// A time off the CPU as the page has it; nothing where its stacks find no room.
    fn off_time(&mut self, off: &OffSpan, zero: Ts) -> Option<OffTime> {
        let stack = match off.out {
            Some(out) => Some(self.place(StackAt::Out(out))?),
            None => None,
        };
        let waker = match off.waker {
            Some(seen) => {
                let stack = match seen.stack {
                    Some(id) => Some(self.place(StackAt::Waker(id))?),
                    None => None,
                };
                Some(ShownWaker { pid: seen.is_task.then_some(seen.by), cpu: seen.on, stack })
            }
            None => None,
        };
        let OffSpan { from, to, cpu, asleep, runnable, .. } = *off;
        Some(OffTime { from: from.since(zero).0, to: to.since(zero).0, cpu, asleep, runnable, stack, waker })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Comm, Pass, PrevState, TaskRef};

    fn task(pid: i32) -> TaskRef {
        TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") }
    }

    fn at(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
        SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
    }

    fn switch(ts: i64, prev: i32, state: PrevState, next: i32) -> SchedEvent {
        at(ts, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
    }

    fn wakeup(ts: i64, by: i32) -> SchedEvent {
        at(ts, by, EventKind::Wakeup { task: task(7), target: Cpu(0) })
    }

    /// A task sleeps, is woken by the idle task, gives way to task 8, sleeps again, and is woken by task 8.
    fn events() -> Vec<SchedEvent> {
        let asleep = PrevState::asleep(1);
        vec![
            switch(0, 0, PrevState::RUNNABLE, 7),
            switch(100, 7, asleep, 0),
            wakeup(300, 0),
            switch(350, 0, PrevState::RUNNABLE, 7),
            switch(400, 7, PrevState::RUNNABLE, 8),
            switch(500, 8, PrevState::RUNNABLE, 7),
            switch(600, 7, asleep, 8),
            wakeup(700, 8),
            switch(720, 8, PrevState::RUNNABLE, 7),
            switch(800, 7, asleep, 8),
        ]
    }

    fn detail(limits: StackLimits, window: (i64, i64)) -> StacksDetail {
        let stack = |functions: &[&str]| GroupStack {
            kind: "pipe".to_owned(),
            functions: functions.iter().map(|name| (*name).to_owned()).collect(),
            of_scheduler: 1,
        };
        let stacks = vec![stack(&["schedule", "pipe_read", "read"]), stack(&["schedule", "pipe_write"])];
        let outs = [(100, Some(0)), (400, None), (600, Some(1)), (800, Some(0))];
        let outs = outs.map(|(ts, stack)| (Ts(ts), stack.map(StackIndex))).to_vec();
        let history = StackHistory::new(stacks, [(Pid(7), outs)].into_iter().collect(), None);
        let wakers = NamedStacks::default();
        let events = events();
        let window = sched::Window { from: Some(Ts(window.0)), to: Some(Ts(window.1)) };
        let analysis = || TaskStacks::new(Pid(7), Ts(0), &history, &wakers, limits);
        Pass::over(events.as_slice()).window(window).run(analysis).unwrap_or_else(|never| match never {}).output
    }

    #[test]
    fn time_off_the_cpu_is_at_the_stack_of_the_latest_switch_out() {
        let detail = detail(LIMITS, (0, 800));
        let times: Vec<_> =
            detail.off.iter().map(|off| (off.from, off.to, off.asleep, off.runnable, off.stack)).collect();
        assert_eq!(times[..3], [(100, 350, 200, 50, Some(0)), (400, 500, 0, 100, None), (600, 720, 100, 20, Some(1))]);
        let wakers: Vec<_> = detail.off.iter().map(|off| off.waker.as_ref().map(|waker| waker.pid)).collect();
        assert_eq!(wakers[..3], [Some(Some(Pid(0))), None, Some(Some(Pid(8)))]);
        let row = |stack, asleep, runnable, times| StackRow { stack, asleep, runnable, times };
        assert_eq!(detail.rows, [row(Some(0), 200, 50, 2), row(Some(1), 100, 20, 1), row(None, 0, 100, 1)]);
        let stack = &detail.stacks[0];
        assert_eq!((stack.functions.len(), stack.scheduler, stack.more), (3, 1, 0));
        assert!(!detail.truncated && detail.rest.is_none());
        // The stack of a switch-out before the window, which counts in it no more.
        let detail = super::tests::detail(LIMITS, (200, 340));
        assert_eq!(detail.rows, [row(Some(0), 100, 40, 0)]);
    }

    #[test]
    fn answers_have_limits_and_their_sums_are_whole() {
        let detail = detail(StackLimits { stacks: 1, rows: 1, off: 3, functions: 2 }, (0, 800));
        let row = |stack, asleep, runnable, times| StackRow { stack, asleep, runnable, times };
        assert_eq!((&detail.rows[..], detail.rest), (&[row(Some(0), 200, 50, 2)][..], Some(row(None, 100, 120, 2))));
        let stack = &detail.stacks[0];
        assert_eq!(
            (detail.stacks.len(), &stack.functions[..], stack.more),
            (1, &["schedule", "pipe_read"].map(str::to_owned)[..], 1)
        );
        // The third has a stack without room.
        assert_eq!((detail.off.len(), detail.truncated), (2, true));
    }
}
