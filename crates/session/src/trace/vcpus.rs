//! The threads of a guest's vCPUs in the recording of its host (`docs/read-the-numbers.md#host-and-guest`).

use parse::Vcpu;
use sched::seeded::SeededMap;
use sched::{Analysis, Comm, Cpu, Pid, SchedState, Span, TaskState, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The greatest number of stretches that are kept, of all vCPUs together: 24 bytes each.
const MOST_STRETCHES: usize = 1 << 21;

/// The times of a vCPU by what the host did with its thread, in nanoseconds; together they are the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VcpuTimes {
    /// The time for which the thread ran.
    pub ran_ns: u64,
    /// The time for which the thread slept: the vCPU had halted, or waited for the program that emulates the machine.
    pub halted_ns: u64,
    /// vCPU steal time: the time for which the thread was runnable, and the host ran something else.
    pub kept_ns: u64,
    /// The time for which the host's recording does not show the state of the thread.
    pub unknown_ns: u64,
}

impl VcpuTimes {
    /// Adds the times of another vCPU.
    pub fn add(&mut self, more: &VcpuTimes) {
        for (sum, ns) in [
            (&mut self.ran_ns, more.ran_ns),
            (&mut self.halted_ns, more.halted_ns),
            (&mut self.kept_ns, more.kept_ns),
            (&mut self.unknown_ns, more.unknown_ns),
        ] {
            *sum = sum.saturating_add(ns);
        }
    }

    /// The time for which the state is known, in nanoseconds.
    pub fn seen_ns(&self) -> u64 {
        self.ran_ns.saturating_add(self.halted_ns).saturating_add(self.kept_ns)
    }
}

/// A vCPU by its thread on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VcpuThread {
    /// The vCPU: the number of the CPU in the guest.
    pub vcpu: Cpu,
    /// The PID of the thread on the host.
    pub pid: Pid,
    /// The command of the thread; empty if the host's recording does not have it.
    pub command: Comm,
    /// The times of the vCPU.
    #[serde(flatten)]
    pub times: VcpuTimes,
    /// The stretches for which the host kept it, or its state is unknown, in the order of time.
    #[serde(skip)]
    pub stretches: Vec<VcpuStretch>,
}

/// A stretch of a vCPU, on the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuStretch {
    /// The start of the stretch.
    pub from: Ts,
    /// The end of the stretch.
    pub to: Ts,
    /// Whether the state is unknown; otherwise the host kept the vCPU.
    pub is_unknown: bool,
}

impl VcpuThread {
    fn new(vcpu: &Vcpu) -> VcpuThread {
        let (times, stretches) = (VcpuTimes::default(), Vec::new());
        VcpuThread { vcpu: vcpu.vcpu, pid: vcpu.pid, command: Comm::EMPTY, times, stretches }
    }

    /// The time within `from` to `to` for which the host kept the vCPU, and that for which it is unknown, in nanoseconds.
    pub fn within(&self, from: Ts, to: Ts) -> (u64, u64) {
        let first = self.stretches.partition_point(|stretch| stretch.to <= from);
        let (mut kept, mut unknown) = (0, 0);
        for stretch in self.stretches[first..].iter().take_while(|stretch| stretch.from < to) {
            let ns = stretch.to.min(to).since(stretch.from.max(from)).0;
            *(if stretch.is_unknown { &mut unknown } else { &mut kept }) += ns;
        }
        (kept, unknown)
    }
}

/// The state of a vCPU, as far as it explains that the guest's CPU did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VcpuState {
    /// The host did not keep the vCPU: its thread ran or slept.
    Free,
    /// The host kept the vCPU from running.
    Kept,
    /// The host's recording does not show the state.
    Unknown,
}

/// The changes of the states of vCPUs in the order of time, each in logarithmic time by the number of vCPUs. All begin as [`VcpuState::Free`].
#[derive(Debug)]
pub struct VcpuChanges<'v> {
    vcpus: &'v [VcpuThread],
    /// The next change of each vCPU that has another one: its instant, the place of the vCPU, and twice the place of the stretch, with one
    /// added at its end.
    next: BinaryHeap<Reverse<(Ts, usize, usize)>>,
}

impl<'v> VcpuChanges<'v> {
    /// Returns the changes of these vCPUs.
    pub fn new(vcpus: &'v [VcpuThread]) -> VcpuChanges<'v> {
        let first = |(place, vcpu): (usize, &VcpuThread)| Some(Reverse((vcpu.stretches.first()?.from, place, 0)));
        VcpuChanges { vcpus, next: vcpus.iter().enumerate().filter_map(first).collect() }
    }

    /// The instant of the next change.
    pub fn at(&self) -> Option<Ts> {
        self.next.peek().map(|Reverse((at, ..))| *at)
    }
}

impl Iterator for VcpuChanges<'_> {
    type Item = (Ts, Cpu, VcpuState);

    fn next(&mut self) -> Option<(Ts, Cpu, VcpuState)> {
        let Reverse((at, place, nth)) = self.next.pop()?;
        let VcpuThread { vcpu, stretches, .. } = &self.vcpus[place];
        let stretch = &stretches[nth / 2];
        let state = match nth % 2 {
            0 if stretch.is_unknown => VcpuState::Unknown,
            0 => VcpuState::Kept,
            _ => VcpuState::Free,
        };
        let next = if nth % 2 == 0 { Some(stretch.to) } else { stretches.get(nth / 2 + 1).map(|later| later.from) };
        self.next.extend(next.map(|at| Reverse((at, place, nth + 1))));
        Some((at, *vcpu, state))
    }
}

/// The analysis that follows the threads of a guest's vCPUs through the host's recording. The output has the vCPUs in their order, or nothing
/// where they have more stretches than fit in memory.
#[derive(Debug)]
pub struct VcpuThreads {
    of: SeededMap<Pid, Vec<usize>>,
    threads: Vec<FollowedThread>,
    from: Ts,
    to: Ts,
    stretches: usize,
    most: usize,
}

/// A thread, as far as it was followed.
#[derive(Debug)]
struct FollowedThread {
    thread: VcpuThread,
    /// The instant up to which its state has been seen.
    until: Ts,
    /// Whether the thread has ended; another one with its PID is none of the guest's.
    has_ended: bool,
}

impl VcpuThreads {
    /// Returns the analysis of these vCPUs from an instant to another, which the host's recording need not cover.
    pub fn new(vcpus: &[Vcpu], from: Ts, to: Ts) -> VcpuThreads {
        let mut of: SeededMap<Pid, Vec<usize>> = SeededMap::default();
        for (place, vcpu) in vcpus.iter().enumerate() {
            of.entry(vcpu.pid).or_default().push(place);
        }
        let follow = |vcpu: &Vcpu| FollowedThread { thread: VcpuThread::new(vcpu), until: from, has_ended: false };
        let threads = vcpus.iter().map(follow).collect();
        VcpuThreads { of, threads, from, to, stretches: 0, most: MOST_STRETCHES }
    }
}

impl FollowedThread {
    /// Adds the state of the thread up to an instant; returns the number of new stretches.
    fn add(&mut self, state: TaskState, to: Ts) -> usize {
        let from = self.until;
        if to <= from {
            return 0;
        }
        self.until = to;
        let ns = to.since(from).0;
        let times = &mut self.thread.times;
        let is_unknown = match state {
            TaskState::Running(_) => {
                times.ran_ns += ns;
                return 0;
            }
            TaskState::Asleep(_) => {
                times.halted_ns += ns;
                return 0;
            }
            TaskState::Waiting(_) | TaskState::Throttled(_) => {
                times.kept_ns += ns;
                false
            }
            TaskState::Unknown | TaskState::Dead => {
                times.unknown_ns += ns;
                true
            }
        };
        match self.thread.stretches.last_mut() {
            Some(last) if last.to == from && last.is_unknown == is_unknown => {
                last.to = to;
                0
            }
            _ => {
                self.thread.stretches.push(VcpuStretch { from, to, is_unknown });
                1
            }
        }
    }
}

impl Analysis for VcpuThreads {
    type Output = Option<Vec<VcpuThread>>;

    fn span(&mut self, span: &Span, state: &SchedState) {
        let Some(places) = self.of.get(&span.pid) else { return };
        let (start, end) = (span.start.max(self.from), span.end.min(self.to));
        for place in places {
            let followed = &mut self.threads[*place];
            if followed.has_ended || self.stretches >= self.most {
                continue;
            }
            self.stretches += followed.add(TaskState::Unknown, start) + followed.add(span.state, end);
            followed.has_ended = span.state == TaskState::Dead || span.next == TaskState::Dead;
            if let Some(task) = state.task(span.task).filter(|task| task.comm != Comm::EMPTY) {
                followed.thread.command = task.comm;
            }
        }
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> Option<Vec<VcpuThread>> {
        let to = self.to;
        for followed in &mut self.threads {
            followed.add(TaskState::Unknown, to);
        }
        let threads = self.threads.into_iter().map(|followed| followed.thread);
        (self.stretches < self.most).then(|| threads.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{EventKind, Pass, PrevState, SchedEvent, TaskRef, Window};

    fn task(pid: i32) -> TaskRef {
        let comm = if pid == 0 { Comm::new(b"swapper/0") } else { Comm::new(b"CPU 0/KVM") };
        TaskRef { pid: Pid(pid), prio: 120, comm }
    }

    fn event(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
        SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
    }

    fn switch(ts: i64, prev: i32, state: PrevState, next: i32) -> SchedEvent {
        event(ts, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
    }

    fn wakeup(ts: i64, by: i32, pid: i32) -> SchedEvent {
        event(ts, by, EventKind::Wakeup { task: task(pid), target: Cpu(0) })
    }

    const SLEEPS: PrevState = PrevState::asleep(1);

    /// vCPU 0 is thread 7, vCPU 1 thread 8, which has no event. By hand: 7 is woken at 100 behind task 9, runs at 150, is preempted at 300,
    /// runs at 340, halts at 400, is woken at 500 on an idle CPU and runs at 505. The recording lasts from 50 to 505.
    fn events() -> Vec<SchedEvent> {
        vec![
            switch(50, 0, PrevState::RUNNABLE, 9),
            wakeup(100, 9, 7),
            switch(150, 9, SLEEPS, 7),
            wakeup(200, 7, 9),
            switch(300, 7, PrevState::RUNNABLE, 9),
            switch(340, 9, SLEEPS, 7),
            switch(400, 7, SLEEPS, 0),
            wakeup(500, 0, 7),
            switch(505, 0, PrevState::RUNNABLE, 7),
        ]
    }

    fn follow(events: &[SchedEvent], from: i64, to: i64) -> Vec<VcpuThread> {
        let vcpus = [(0, 7), (1, 8)].map(|(vcpu, pid)| Vcpu { vcpu: Cpu(vcpu), pid: Pid(pid) });
        let window = Window { from: Some(Ts(from)), to: Some(Ts(to)) };
        let analysis = || VcpuThreads::new(&vcpus, Ts(from), Ts(to));
        let outcome = Pass::over(events).window(window).run(analysis).unwrap_or_else(|never| match never {});
        outcome.output.expect("few stretches")
    }

    #[test]
    fn the_host_keeps_a_vcpu_while_its_thread_waits() {
        let threads = follow(&events(), 0, 600);
        let kept = |from, to| VcpuStretch { from: Ts(from), to: Ts(to), is_unknown: false };
        let unknown = |from, to| VcpuStretch { from: Ts(from), to: Ts(to), is_unknown: true };
        assert_eq!(
            threads[0].stretches,
            [unknown(0, 50), kept(100, 150), kept(300, 340), kept(500, 505), unknown(505, 600)]
        );
        assert_eq!(threads[0].times, VcpuTimes { ran_ns: 210, halted_ns: 150, kept_ns: 95, unknown_ns: 145 });
        assert_eq!(threads[0].command, Comm::new(b"CPU 0/KVM"));
        assert_eq!((threads[1].times.unknown_ns, threads[1].stretches.as_slice()), (600, &[unknown(0, 600)][..]));
        assert_eq!((threads[0].within(Ts(120), Ts(310)), threads[0].within(Ts(40), Ts(100))), ((40, 0), (0, 10)));
    }

    #[test]
    fn the_states_of_vcpus_change_in_the_order_of_time() {
        let threads = follow(&events(), 0, 600);
        let changes: Vec<(i64, u32, VcpuState)> =
            VcpuChanges::new(&threads).map(|(at, cpu, state)| (at.0, cpu.0, state)).collect();
        use VcpuState::{Free, Kept, Unknown};
        let of_7 = [(100, Kept), (150, Free), (300, Kept), (340, Free), (500, Kept), (505, Free), (505, Unknown)];
        let mut by_hand = vec![(0, 0, Unknown), (0, 1, Unknown), (50, 0, Free)];
        by_hand.extend(of_7.map(|(at, state)| (at, 0, state)));
        by_hand.extend([(600, 0, Free), (600, 1, Free)]);
        assert_eq!(changes, by_hand);
    }

    #[test]
    fn losses_and_ends_are_unknown() {
        let mut events = events();
        events.insert(5, event(320, 9, EventKind::Lost { count: None }));
        let unknown = |from, to| VcpuStretch { from: Ts(from), to: Ts(to), is_unknown: true };
        let found = follow(&events, 200, 600).remove(0);
        // From the last event before the loss until the switch in.
        assert_eq!(found.stretches[1], unknown(320, 340));
        assert_eq!(found.times, VcpuTimes { ran_ns: 160, halted_ns: 100, kept_ns: 25, unknown_ns: 20 + 95 });
        // A thread that exits is followed no further.
        events.truncate(5);
        events.push(event(340, 9, EventKind::Exit { pid: Pid(9) }));
        events.push(switch(350, 9, SLEEPS, 7));
        events.push(event(380, 7, EventKind::Exit { pid: Pid(7) }));
        events.push(switch(400, 7, PrevState::DEAD, 0));
        let found = follow(&events, 200, 600).remove(0);
        assert_eq!(found.times.unknown_ns, 200, "{found:?}");
    }

    #[test]
    fn stretches_of_vcpus_have_a_limit() {
        let vcpus = [Vcpu { vcpu: Cpu(0), pid: Pid(7) }];
        let limited = |most| {
            let analysis = || VcpuThreads { most, ..VcpuThreads::new(&vcpus, Ts(0), Ts(600)) };
            let events = events();
            Pass::over(events.as_slice()).run(analysis).unwrap_or_else(|never| match never {}).output
        };
        assert!(limited(5).is_some() && limited(3).is_none());
    }
}
