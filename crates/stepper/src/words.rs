//! The effect of an event, in words.

use sched::{Comm, Cpu, EventKind, Pid, SchedEvent, SchedState, StateClass, TaskState, Tracepoint, context_flags};
use serde::Serialize;

/// The names of events without an effect on the state.
pub trait Names {
    /// Returns the name of an event by its number in the file, without its system: `sched_stat_runtime`. Called for
    /// each such event that is shown; for a number that the file does not describe any text will do.
    fn event(&self, id: u16) -> String;

    /// Returns the inner functions of the stack of an event in words; nothing where none was recorded. Called for each event that is
    /// shown.
    fn stack(&self, event: &SchedEvent) -> Option<String> {
        let _ = event;
        None
    }
}

/// Numbers in the place of names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Names for Plain {
    fn event(&self, id: u16) -> String {
        format!("event {id}")
    }
}

/// An event that is about to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coming {
    /// The name of the event, as the kernel has it.
    pub name: String,
    /// The CPU that emits the event.
    pub cpu: Cpu,
    /// The effect of the event, in words.
    pub text: String,
    /// The task that it is about.
    pub task: Option<Pid>,
    /// The CPU that the task leaves, or is to leave.
    pub from: Option<Cpu>,
    /// The CPU that the task goes to, or is to go to.
    pub to: Option<Cpu>,
    /// Whether the move is only wanted so far; a migration may follow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wanted: bool,
}

/// The effect of this state on a task that is switched out.
fn leaves(class: StateClass) -> &'static str {
    match class {
        StateClass::Runnable => "goes on waiting",
        StateClass::Preempted => "is preempted and goes on waiting",
        StateClass::Asleep => "goes to sleep",
        StateClass::Dead => "ends",
    }
}

/// A CPU with its node, where the event has that.
fn place(cpu: Cpu, nodes: Option<[u16; 2]>, index: usize) -> String {
    nodes.map_or_else(|| format!("CPU {cpu}"), |nodes| format!("CPU {cpu} (node {})", nodes[index]))
}

/// The effect of an event, in the state before it.
fn deed(event: &SchedEvent, state: &SchedState, names: &dyn Names) -> String {
    let cpu = event.cpu;
    let whom = |pid: Pid| pid.named(state.task_of(pid).map_or(Comm::EMPTY, |t| t.comm));
    let current = || whom(event.pid);
    match event.kind {
        EventKind::Switch { prev, state: left, next } => {
            let (from, to, leaves) = (prev.pid.named(prev.comm), next.pid.named(next.comm), leaves(left.class));
            match (prev.pid.is_idle(), next.pid.is_idle()) {
                (true, _) => format!("CPU {cpu} leaves idle for {to}"),
                (_, true) => format!("CPU {cpu} goes idle: {from} {leaves}"),
                _ => format!("CPU {cpu} switches to {to}: {from} {leaves}"),
            }
        }
        EventKind::Waking { task, target } => {
            let waking = format!("{} on CPU {cpu} begins to wake {}", current(), task.pid.named(task.comm));
            let is_running = matches!(state.task_of(task.pid).map(|t| t.state), Some(TaskState::Running(_)));
            match state.places_by_wakings() && !is_running {
                true => format!("{waking}, which counts as waiting on CPU {target} (no sched_wakeup was recorded)"),
                false => waking,
            }
        }
        EventKind::Wakeup { task, target } => {
            format!("{} is awake and waits on CPU {target}", task.pid.named(task.comm))
        }
        EventKind::WakeupNew { task, target } => {
            format!("{} is new and waits on CPU {target}", task.pid.named(task.comm))
        }
        EventKind::Migrate { task, orig, dest } => {
            let how = match state.task_of(task.pid).map(|t| t.state) {
                Some(TaskState::Waiting(_) | TaskState::Throttled(_)) => "moves",
                Some(TaskState::Asleep(_)) => "sleeps and moves",
                _ => "moves (unknown whether it waits)",
            };
            format!("{} {how} from CPU {orig} to CPU {dest}; CPU {cpu} does it", task.pid.named(task.comm))
        }
        EventKind::Fork { child, child_comm, .. } => format!("{} forks {}", current(), child.named(child_comm)),
        EventKind::Exec { program, .. } if !program.is_empty() => format!("{} executes {program}", current()),
        EventKind::Exec { .. } => format!("{} executes a program", current()),
        EventKind::Rename { pid, after, .. } => format!("{} is called {after} from now on", whom(pid)),
        EventKind::Exit { .. } => format!("{} exits", current()),
        EventKind::Lost { count } => {
            let n = count.map_or(String::new(), |n| format!("{} ", n.number()));
            format!("{n}events of CPU {cpu} were lost here: what runs and waits there becomes unknown")
        }
        EventKind::Offline => format!("CPU {cpu} goes offline, or is so already: it runs nothing until its next event"),
        EventKind::Frequency { khz, target } => format!("CPU {target} goes to {:.2} GHz", f64::from(khz) / 1e6),
        EventKind::Interrupt { entry: true, .. } => format!("CPU {cpu} enters an interrupt handler"),
        EventKind::Interrupt { entry: false, .. } => format!("CPU {cpu} leaves an interrupt handler"),
        EventKind::Numa { pid, stuck: true, .. } => format!("NUMA balancing cannot move {}", whom(pid)),
        EventKind::Numa { pid, with: None, src, dst, nodes, .. } => {
            let (from, to) = (place(src, nodes, 0), place(dst, nodes, 1));
            format!("NUMA balancing wants to move {} from {from} to {to}", whom(pid))
        }
        EventKind::Numa { pid, with: Some(with), src, dst, nodes, .. } => {
            let (one, other) = (place(src, nodes, 0), place(dst, nodes, 1));
            format!("NUMA balancing wants to exchange {} on {one} and {} on {other}", whom(pid), whom(with))
        }
        EventKind::Stack { id } | EventKind::Probe { id, .. } | EventKind::Other { id } => {
            format!("{} on CPU {cpu}, in {}", names.event(id), current())
        }
    }
}

/// Returns the flags of an event's context in the kernel's letters; nothing for a conclusion of the reader, which has no context. `has_lazy` is
/// whether the kernel marks lazy requests to reschedule.
pub fn flags(event: &SchedEvent, has_lazy: bool) -> Option<String> {
    let is_recorded = !matches!(event.kind, EventKind::Lost { .. } | EventKind::Offline);
    is_recorded.then(|| {
        let mut letters = String::new();
        context_flags::put_letters(event.flags, has_lazy, &mut letters);
        letters
    })
}

impl Coming {
    /// The words for an event, in the state before it.
    pub fn of(event: &SchedEvent, state: &SchedState, names: &dyn Names) -> Coming {
        let (task, from, to) = match event.kind {
            EventKind::Switch { prev, next, .. } => {
                (Some(if next.pid.is_idle() { prev.pid } else { next.pid }), None, Some(event.cpu))
            }
            EventKind::Waking { task, target } => (Some(task.pid), None, state.places_by_wakings().then_some(target)),
            EventKind::Wakeup { task, target } | EventKind::WakeupNew { task, target } => {
                (Some(task.pid), None, Some(target))
            }
            EventKind::Migrate { task, orig, dest } => (Some(task.pid), Some(orig), Some(dest)),
            EventKind::Fork { parent: pid, .. } | EventKind::Exec { pid, .. } | EventKind::Exit { pid } => {
                (Some(pid), None, None)
            }
            EventKind::Rename { pid, .. } | EventKind::Numa { pid, stuck: true, .. } => (Some(pid), None, None),
            EventKind::Numa { pid, src, dst, .. } => (Some(pid), Some(src), Some(dst)),
            EventKind::Stack { .. } | EventKind::Probe { .. } | EventKind::Other { .. } => {
                (Some(event.pid), None, None)
            }
            EventKind::Lost { .. } | EventKind::Offline | EventKind::Frequency { .. } | EventKind::Interrupt { .. } => {
                (None, None, None)
            }
        };
        let mut text = deed(event, state, names);
        if let Some(stack) = names.stack(event) {
            text = format!("{text}, in {stack}");
        }
        let wanted = matches!(event.kind, EventKind::Numa { .. }) && to.is_some();
        Coming { name: EventLabel::of(&event.kind).name(names), cpu: event.cpu, text, task, from, to, wanted }
    }

    /// Whether it concerns this CPU.
    pub fn concerns(&self, cpu: Cpu) -> bool {
        self.cpu == cpu || self.from == Some(cpu) || self.to == Some(cpu)
    }
}

/// The tasks that an event names, besides the one that was current.
fn named(kind: &EventKind) -> Vec<(Pid, Comm)> {
    match *kind {
        EventKind::Switch { prev, next, .. } => vec![(prev.pid, prev.comm), (next.pid, next.comm)],
        EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
            vec![(task.pid, task.comm)]
        }
        EventKind::Migrate { task, .. } => vec![(task.pid, task.comm)],
        EventKind::Fork { parent, child, child_comm } => vec![(parent, Comm::EMPTY), (child, child_comm)],
        EventKind::Exec { pid, old_pid, .. } if pid != old_pid => vec![(pid, Comm::EMPTY), (old_pid, Comm::EMPTY)],
        EventKind::Rename { pid, before, after } => vec![(pid, before), (pid, after)],
        EventKind::Exec { pid, .. } | EventKind::Exit { pid } => vec![(pid, Comm::EMPTY)],
        EventKind::Numa { pid, with, .. } => {
            [Some(pid), with].into_iter().flatten().map(|p| (p, Comm::EMPTY)).collect()
        }
        EventKind::Lost { .. } | EventKind::Offline | EventKind::Frequency { .. } => Vec::new(),
        EventKind::Interrupt { .. } | EventKind::Stack { .. } | EventKind::Probe { .. } | EventKind::Other { .. } => {
            Vec::new()
        }
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLabel {
    /// A tracepoint that is interpreted.
    Interpreted(Tracepoint),
    /// Another event, by its number in the file.
    Numbered(u16),
    /// A conclusion of the reader, which is no event of the trace, by its word.
    Concluded(&'static str),
}

impl EventLabel {
    /// The kind of an event.
    pub fn of(kind: &EventKind) -> EventLabel {
        match (kind.tracepoint(), kind) {
            (Some(tracepoint), _) => EventLabel::Interpreted(tracepoint),
            (
                None,
                EventKind::Interrupt { id, .. }
                | EventKind::Stack { id }
                | EventKind::Probe { id, .. }
                | EventKind::Other { id },
            ) => EventLabel::Numbered(*id),
            (None, EventKind::Lost { .. }) => EventLabel::Concluded("lost"),
            (None, _) => EventLabel::Concluded("offline"),
        }
    }

    /// The name of the event, without the system.
    fn name(self, names: &dyn Names) -> String {
        match self {
            EventLabel::Interpreted(tracepoint) => tracepoint.name().to_owned(),
            EventLabel::Concluded(name) => name.to_owned(),
            EventLabel::Numbered(id) => names.event(id),
        }
    }
}

/// Whether an event is about a task whose number or name this is, or has a name that contains it.
pub(crate) fn matches(event: &SchedEvent, names: &dyn Names, sought: &str) -> bool {
    let tasks = named(&event.kind);
    if let Ok(pid) = sought.parse().map(Pid) {
        return event.pid == pid || tasks.iter().any(|(p, _)| *p == pid);
    }
    tasks.iter().any(|(_, comm)| comm.to_string().contains(sought))
        || EventLabel::of(&event.kind).name(names).contains(sought)
}

/// The tasks that an event is about, each with its name: those that it names, or else the one that was current.
/// Idling is no task.
pub fn tasks_of(event: &SchedEvent, state: &SchedState) -> impl Iterator<Item = (Pid, Comm)> {
    let named_tasks = named(&event.kind);
    let emitter = named_tasks.is_empty().then_some((event.pid, Comm::EMPTY));
    let tasks = named_tasks.into_iter().chain(emitter).filter(|(pid, _)| !pid.is_idle());
    tasks.map(|(pid, comm)| match comm.is_empty() {
        true => (pid, state.task_of(pid).map_or(Comm::EMPTY, |task| task.comm)),
        false => (pid, comm),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{PrevState, TaskRef, Ts};

    #[test]
    fn events_in_words() {
        let task = |pid: i32, name: &str| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) };
        let (idle, make, cc) = (task(0, "swapper/0"), task(7, "make"), task(9, "cc"));
        let mut state = SchedState::default();
        let mut say = |kind| {
            let event = SchedEvent { ts: Ts(1), cpu: Cpu(0), pid: Pid(0), flags: 0, kind };
            let coming = Coming::of(&event, &state, &Plain);
            state.apply(&event);
            (coming.text, coming.from, coming.to)
        };
        let runnable = PrevState::RUNNABLE;
        assert_eq!(
            say(EventKind::Switch { prev: idle, state: runnable, next: make }).0,
            "CPU 0 leaves idle for make 7"
        );
        assert_eq!(say(EventKind::Wakeup { task: cc, target: Cpu(0) }).0, "cc 9 is awake and waits on CPU 0");
        let moved = say(EventKind::Migrate { task: cc, orig: Cpu(0), dest: Cpu(3) });
        assert_eq!(moved, ("cc 9 moves from CPU 0 to CPU 3; CPU 0 does it".to_owned(), Some(Cpu(0)), Some(Cpu(3))));
        let slept = EventKind::Switch { prev: make, state: PrevState::asleep(1), next: idle };
        assert_eq!(say(slept).0, "CPU 0 goes idle: make 7 goes to sleep");
        assert_eq!(say(EventKind::Other { id: 5 }).0, "event 5 on CPU 0, in idle");
        let numa = |with, nodes, stuck| EventKind::Numa { pid: Pid(9), with, src: Cpu(3), dst: Cpu(5), nodes, stuck };
        let wanted = say(numa(None, Some([0, 1]), false));
        let words = "NUMA balancing wants to move cc 9 from CPU 3 (node 0) to CPU 5 (node 1)".to_owned();
        assert_eq!(wanted, (words, Some(Cpu(3)), Some(Cpu(5))));
        let words = "NUMA balancing wants to exchange cc 9 on CPU 3 and make 7 on CPU 5";
        assert_eq!(say(numa(Some(Pid(7)), None, false)).0, words);
        assert_eq!(say(numa(None, None, true)), ("NUMA balancing cannot move cc 9".to_owned(), None, None));
    }

    #[test]
    fn the_tasks_of_an_event() {
        let task = |pid: i32, name: &str| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) };
        let mut state = SchedState::default();
        let mut of = |pid: i32, kind| {
            let event = SchedEvent { ts: Ts(1), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
            let tasks: Vec<String> = tasks_of(&event, &state).map(|(pid, comm)| pid.named(comm)).collect();
            state.apply(&event);
            tasks
        };
        let (idle, make, cc) = (task(0, "swapper/0"), task(7, "make"), task(9, "cc"));
        let (slept, runnable) = (PrevState::asleep(1), PrevState::RUNNABLE);
        assert_eq!(of(0, EventKind::Switch { prev: idle, state: runnable, next: make }), ["make 7"]);
        assert_eq!(of(7, EventKind::Wakeup { task: cc, target: Cpu(0) }), ["cc 9"], "not who woke it");
        assert_eq!(of(7, EventKind::Other { id: 5 }), ["make 7"], "it ran");
        assert_eq!(of(7, EventKind::Switch { prev: make, state: slept, next: cc }), ["make 7", "cc 9"], "both");
        assert_eq!(of(9, EventKind::Exit { pid: Pid(9) }), ["cc 9"], "by the name it has");
        assert!(of(0, EventKind::Other { id: 5 }).is_empty());
    }
}
