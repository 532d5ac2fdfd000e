use super::*;
use crate::event::PrevState;
use crate::state::Start;
use crate::tables::seeded::SeededMap;

/// A scheduler that records what it does. Nothing in its histories contradicts itself.
struct Machine {
    seed: u64,
    now: i64,
    events: Vec<SchedEvent>,
    /// The running task of each CPU; none where it is idle.
    current: Vec<Option<i32>>,
    /// The waiting tasks, with their CPUs.
    waiting: Vec<(i32, u32)>,
    /// The sleeping tasks, with the CPUs on which they ran.
    asleep: Vec<(i32, u32)>,
    names: SeededMap<i32, &'static [u8]>,
    born: i32,
    /// The interrupt handlers of each CPU that were entered and not left.
    handlers: Vec<i32>,
}

const CPUS: u32 = 3;

impl Machine {
    fn new(seed: u64) -> Machine {
        let asleep = (1..=9).map(|pid| (pid, pid as u32 % CPUS)).collect();
        let names = (1..=9).map(|pid| (pid, b"first".as_slice())).collect();
        let current = vec![None; CPUS as usize];
        Machine {
            seed,
            now: 0,
            events: Vec::new(),
            current,
            waiting: Vec::new(),
            asleep,
            names,
            born: 100,
            handlers: vec![0; CPUS as usize],
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % limit
    }

    fn task(&self, pid: i32) -> TaskRef {
        let name = if pid == 0 { b"swapper".as_slice() } else { self.names[&pid] };
        TaskRef { pid: Pid(pid), prio: 120 - (pid % 4), comm: Comm::new(name) }
    }

    fn record(&mut self, cpu: u32, kind: EventKind) {
        self.now += 10;
        let pid = Pid(self.current[cpu as usize].unwrap_or(0));
        self.events.push(SchedEvent { ts: Ts(self.now), cpu: Cpu(cpu), pid, flags: 0, kind });
    }

    /// Switches `cpu` away from its task, if it runs one, to a task that waits there.
    fn switch(&mut self, cpu: u32, state: PrevState) {
        let old = self.current[cpu as usize];
        let next = self.waiting.iter().position(|(_, on)| *on == cpu).map(|at| self.waiting.remove(at).0);
        if old.is_none() && next.is_none() {
            return;
        }
        let kind = EventKind::Switch { prev: self.task(old.unwrap_or(0)), state, next: self.task(next.unwrap_or(0)) };
        self.record(cpu, kind);
        self.current[cpu as usize] = next;
        match (old, state.class) {
            (Some(pid), StateClass::Asleep) => self.asleep.push((pid, cpu)),
            (Some(pid), StateClass::Dead) => drop(self.names.remove(&pid)),
            (Some(pid), _) => self.waiting.push((pid, cpu)),
            (None, _) => {}
        }
    }

    /// Wakes a sleeping task from `cpu`.
    fn wake(&mut self, cpu: u32) {
        if self.asleep.is_empty() {
            return;
        }
        let at = self.below(self.asleep.len());
        let (pid, on) = self.asleep.remove(at);
        let task = self.task(pid);
        let dest = self.below(CPUS as usize) as u32;
        self.record(cpu, EventKind::Waking { task, target: Cpu(on) });
        if dest != on {
            self.record(cpu, EventKind::Migrate { task, orig: Cpu(on), dest: Cpu(dest) });
        }
        if self.below(4) == 0 {
            // Another CPU does something meanwhile.
            self.switch((cpu + 1) % CPUS, PrevState::RUNNABLE);
        }
        self.record(dest, EventKind::Wakeup { task, target: Cpu(dest) });
        self.waiting.push((pid, dest));
    }

    /// Lets the task of `cpu` fork.
    fn fork(&mut self, cpu: u32) {
        let Some(parent) = self.current[cpu as usize] else { return };
        self.born += 1;
        let child = if self.below(3) == 0 && !self.names.contains_key(&50) { 50 } else { self.born };
        self.names.insert(child, self.names[&parent]);
        let child_comm = self.task(child).comm;
        self.record(cpu, EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm });
        let target = self.below(CPUS as usize) as u32;
        self.record(cpu, EventKind::WakeupNew { task: self.task(child), target: Cpu(target) });
        self.waiting.push((child, target));
    }

    /// Gives the task of `cpu` another name, by an exec or without.
    fn name(&mut self, cpu: u32) {
        let Some(pid) = self.current[cpu as usize] else { return };
        let after = [b"one".as_slice(), b"two", b"three"][self.below(3)];
        let before = std::mem::replace(self.names.get_mut(&pid).expect("a name"), after);
        let (pid, before, after) = (Pid(pid), Comm::new(before), Comm::new(after));
        let kind = match self.below(2) {
            0 => EventKind::Exec { pid, old_pid: pid, program: after },
            _ => EventKind::Rename { pid, before, after },
        };
        self.record(cpu, kind);
    }

    /// Announces a wakeup of a task that runs on another CPU, which comes while it still runs, or after it has slept.
    fn wake_early(&mut self, cpu: u32) {
        let on = (cpu + 1) % CPUS;
        let Some(pid) = self.current[on as usize] else { return };
        let task = self.task(pid);
        self.record(cpu, EventKind::Waking { task, target: Cpu(on) });
        if self.below(2) == 0 {
            self.switch(on, PrevState::asleep(1));
            self.asleep.retain(|(other, _)| *other != pid);
            self.waiting.push((pid, on));
        }
        self.record(on, EventKind::Wakeup { task, target: Cpu(on) });
    }

    fn step(&mut self) {
        let cpu = self.below(CPUS as usize) as u32;
        match self.below(40) {
            0..16 => self.wake(cpu),
            16..24 => self.switch(cpu, PrevState::asleep(1)),
            24..29 => self.switch(cpu, PrevState::PREEMPTED),
            29 => self.switch(cpu, PrevState::DEAD),
            30..32 => self.fork(cpu),
            32 => self.name(cpu),
            33 => self.wake_early(cpu),
            34..37 if !self.waiting.is_empty() => {
                let (at, dest) = (self.below(self.waiting.len()), self.below(CPUS as usize) as u32);
                let (pid, orig) = self.waiting.remove(at);
                self.waiting.push((pid, dest));
                let task = self.task(pid);
                self.record(cpu, EventKind::Migrate { task, orig: Cpu(orig), dest: Cpu(dest) });
            }
            _ => {
                let entry = self.handlers[cpu as usize] == 0 || self.below(3) == 0;
                self.handlers[cpu as usize] += if entry { 1 } else { -1 };
                self.record(cpu, EventKind::Interrupt { id: 1, entry });
            }
        }
    }
}

/// The events of a machine after `steps`, and the state before the first.
fn history(seed: u64, steps: usize) -> (Vec<SchedEvent>, SchedState) {
    let mut machine = Machine::new(seed);
    (0..steps).for_each(|_| machine.step());
    let cpus = (0..CPUS).map(|cpu| (Cpu(cpu), Current::Idle)).collect();
    (machine.events, SchedState::new(&Start { cpus, ..Start::default() }))
}

/// Goes through a history by effects where they can be taken, and by walks elsewhere. Returns the number of each.
fn taken_and_walked(events: &[SchedEvent], mut state: SchedState, length: usize) -> [usize; 2] {
    let mut numbers = [0, 0];
    let mut walked = state.clone();
    for (nth, stretch) in events.chunks(length).enumerate() {
        stretch.iter().for_each(|event| walked.apply(event));
        let scan = Scan::of(stretch, state.unknown());
        let is_taken = scan.is_some_and(|scan| state.take(&scan));
        if !is_taken {
            stretch.iter().for_each(|event| state.apply(event));
        }
        assert_eq!(state.compared(), walked.compared(), "stretch {nth} of {length} events: {stretch:?}");
        numbers[usize::from(!is_taken)] += 1;
    }
    numbers
}

/// What the pieces of recordings catch as well, but for the number: that nearly all stretches are taken.
#[test]
fn effects_of_stretches_are_those_of_their_events() {
    let histories: Vec<_> = (0..10).map(|seed| history(seed, 2_000)).collect();
    for length in [1, 2, 5, 20, 100] {
        let numbers = histories.iter().map(|(events, state)| taken_and_walked(events, state.clone(), length));
        let [taken, walked] = numbers.fold([0, 0], |[taken, walked], [t, w]| [taken + t, walked + w]);
        assert!(taken > 4 * walked && walked > 0, "in stretches of {length} events {taken} are taken, {walked} walked");
    }
}

/// Histories in which events are missing or in disorder: an effect is that of the events, or is not taken.
#[test]
fn contradictions_are_left_to_the_walk() {
    let mut all = [0, 0];
    for seed in 0..10 {
        let (mut events, state) = history(seed, 1_000);
        let mut machine = Machine::new(seed + 1_000);
        for _ in 0..30 {
            let at = machine.below(events.len() - 1);
            if let (EventKind::Migrate { dest, .. }, 0) = (&mut events[at].kind, machine.below(2)) {
                // A CPU that no event has shown.
                *dest = Cpu(CPUS + machine.below(2) as u32);
            }
            match machine.below(4) {
                0 => drop(events.remove(at)),
                1 => events.insert(at, SchedEvent { kind: EventKind::Lost { count: None }, ..events[at] }),
                2 => events[at].pid = Pid(machine.below(12) as i32),
                _ => (events[at].kind, events[at + 1].kind) = (events[at + 1].kind, events[at].kind),
            }
        }
        // Behind a loss nothing is taken.
        let without_losses: Vec<SchedEvent> =
            events.iter().filter(|event| !matches!(event.kind, EventKind::Lost { .. })).copied().collect();
        for length in [1, 7, 40] {
            taken_and_walked(&events, state.clone(), length);
            let [taken, walked] = taken_and_walked(&without_losses, state.clone(), length);
            all = [all[0] + taken, all[1] + walked];
        }
    }
    assert!(all.iter().all(|number| *number > 500), "{all:?}");
}

/// By a fuzzer: the idle tasks of all CPUs have one number, and a name that one takes is not that of a task.
#[test]
fn a_stretch_in_which_an_idle_task_takes_a_name_or_dies_is_not_taken() {
    let (_, state) = history(1, 0);
    let (pid, name) = (Pid::IDLE, Comm::new(b"name"));
    let task = TaskRef { pid, prio: 120, comm: name };
    for kind in [
        EventKind::Rename { pid, before: Comm::EMPTY, after: name },
        EventKind::Exec { pid, old_pid: pid, program: name },
        EventKind::Switch { prev: task, state: PrevState::DEAD, next: task },
    ] {
        let event = SchedEvent { ts: Ts(1), cpu: Cpu(0), pid, flags: 0, kind };
        assert!(Scan::of(&[event], state.unknown()).is_none(), "{kind:?}");
    }
}
