//! CPUs that go offline and come back, with exactly the events that a kernel records for it.

use super::balancer::{IRQS_OFF, stopper};
use super::{Rng, Simulation, Truth, World, task};
use sched::{Cause, Cpu, EventKind, Pid, PrevState, SchedEvent, Ts};

impl Simulation {
    /// Simulates a run; with every fourth seed CPUs go offline and come back, if there are several.
    pub fn any(seed: u64, cpus: u32, steps: usize) -> Simulation {
        if seed % 4 == 3 && cpus > 1 {
            Simulation::hotplug(seed, cpus, steps)
        } else {
            Simulation::run(seed, cpus, steps)
        }
    }

    /// Simulates at least two CPUs, some of which are offline at first, or go offline and come back. `events` has a
    /// [`EventKind::Offline`] where a reader must conclude it.
    pub fn hotplug(seed: u64, cpus: u32, steps: usize) -> Simulation {
        let mut world = World { hotplug: true, ..World::new(Rng::new(seed), cpus) };
        let away: Vec<usize> = (0..cpus as usize - 1).filter(|_| world.rng.below(4) == 0).collect();
        let last = cpus as usize - 1;
        for cpu in &away {
            let current = std::mem::replace(&mut world.state.current[*cpu], Truth::OFFLINE);
            let waiting = std::mem::take(&mut world.state.queues[*cpu]);
            world.state.queues[last].extend(waiting.into_iter().chain((current != 0).then_some(current)));
        }
        // The first event is on the last CPU, so the marks of the others precede it.
        let start = Ts(world.now);
        away.iter().for_each(|cpu| world.mark_offline(*cpu, start));
        let current = world.state.current[last];
        world.push(last, current, EventKind::Other { id: 999 }, start);
        let mut run = Simulation::of(world, cpus, steps);
        // A CPU that never comes online has no events, so its mark is removed.
        for place in (0..away.len()).rev() {
            let cpu = run.events[place].cpu;
            if run.events[away.len()..].iter().all(|event| event.cpu != cpu) {
                run.events.remove(place);
                run.truth.remove(place);
                run.causes.remove(place);
            }
        }
        run
    }
}

impl World {
    /// Adds the mark that a reader must conclude.
    fn mark_offline(&mut self, cpu: usize, ts: Ts) {
        self.push(cpu, 0, EventKind::Offline, ts);
    }

    fn push(&mut self, cpu: usize, pid: i32, kind: EventKind, ts: Ts) {
        self.events.push(SchedEvent { ts, cpu: Cpu(cpu as u32), pid: Pid(pid), flags: 0, kind });
        self.causes.push(None);
        self.truth.push(self.state.clone());
    }

    /// A CPU comes online, or goes offline.
    pub(super) fn plug(&mut self) {
        let cpu = self.rng.below(self.state.current.len());
        match self.state.current[cpu] {
            Truth::OFFLINE => self.come_online(cpu),
            _ if self.online().len() > 1 => self.go_offline(cpu),
            _ => {}
        }
    }

    /// Migrates all tasks away and runs the stopper for the last time, which is the CPU's last event.
    fn go_offline(&mut self, cpu: usize) {
        if self.state.current[cpu] != 0 || !self.state.queues[cpu].is_empty() {
            self.with_stopper(cpu, |world| {
                for pid in world.state.queues[cpu].clone() {
                    let others: Vec<usize> = world.online().into_iter().filter(|other| *other != cpu).collect();
                    let to = others[world.rng.below(others.len())];
                    world.moves(cpu, task(pid), cpu, to, IRQS_OFF, Cause::Stopper);
                }
            });
        }
        self.wake_stopper(cpu);
        for _ in 0..self.rng.below(3) {
            self.emit(cpu, stopper(cpu), EventKind::Other { id: 999 });
        }
        self.state.current[cpu] = Truth::OFFLINE;
        self.mark_offline(cpu, Ts(self.now));
    }

    /// The idle task of the CPU wakes the stopper, which has nothing to do.
    fn come_online(&mut self, cpu: usize) {
        self.state.current[cpu] = 0;
        self.emit(cpu, 0, EventKind::Waking { task: task(stopper(cpu)), target: Cpu(cpu as u32) });
        self.wake_stopper(cpu);
        self.switch(cpu, PrevState::asleep(1), false);
    }

    fn wake_stopper(&mut self, cpu: usize) {
        self.state.queues[cpu].insert(0, stopper(cpu));
        self.emit(cpu, 0, EventKind::Wakeup { task: task(stopper(cpu)), target: Cpu(cpu as u32) });
        self.switch(cpu, PrevState::RUNNABLE, false);
    }
}
