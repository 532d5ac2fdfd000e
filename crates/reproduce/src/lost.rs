//! The parts of the work of a trace that a reproduction replaces or leaves out.

use whatif::SleepClass;

/// The numbers of sleeps and tasks that are reproduced otherwise than they were, or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The number of sleeps that a timer ended: they are as they were.
    pub timers: u64,
    /// The number of sleeps that a task ended which is left out: they have the length that they had.
    pub by_others: u64,
    /// The number of sleeps that a device or another interrupt ended: likewise.
    pub by_interrupts: u64,
    /// The number of sleeps whose end nothing shows, and of times in throttling: likewise.
    pub unknown: u64,
    /// The number of uninterruptible sleeps that a task ended, probably of locks: they are ordinary waits for that task.
    pub locks: u64,
    /// The number of tasks whose affinity changed: they keep the first one.
    pub affinity_changes: u64,
    /// The number of kernel threads with work, which are left out.
    pub kernel_threads: u64,
    /// The number of tasks of `SCHED_DEADLINE`, which have no deadlines.
    pub deadlines: u64,
}

impl Lost {
    /// Adds a sleep that a timer ends in the reproduction.
    pub(crate) fn timed(&mut self, class: SleepClass) {
        *match class {
            SleepClass::Task | SleepClass::Lock => &mut self.by_others,
            SleepClass::Timer | SleepClass::AbsoluteTimer | SleepClass::EitherTimer => &mut self.timers,
            SleepClass::Device | SleepClass::Interrupt => &mut self.by_interrupts,
            SleepClass::Throttled | SleepClass::Unknown => &mut self.unknown,
        } += 1;
    }

    /// The number of sleeps that have their length by a timer, and had another cause.
    pub fn replaced(&self) -> u64 {
        self.by_others + self.by_interrupts + self.unknown
    }

    /// The sentences on what is lost; none where nothing is.
    pub fn sentences(&self) -> Vec<String> {
        let causes = [
            (self.by_others, "woken by tasks that are left out"),
            (self.by_interrupts, "woken by interrupts"),
            (self.unknown, "throttled or of unknown end"),
        ];
        let causes: Vec<String> =
            causes.iter().filter(|(count, _)| *count > 0).map(|(count, cause)| format!("{count} {cause}")).collect();
        let mut out = Vec::new();
        if !causes.is_empty() {
            let all = self.replaced();
            out.push(format!("sleeps that keep their length, whatever the others do: {all} ({})", causes.join(", ")));
        }
        let others = [
            (self.locks, "uninterruptible sleeps, perhaps of locks, as waits for the task that ended them"),
            (self.affinity_changes, "tasks with the first of several sets of CPUs"),
            (self.kernel_threads, "kernel threads left out"),
            (self.deadlines, "tasks of SCHED_DEADLINE without deadlines"),
        ];
        out.extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what}: {count}")));
        out
    }
}
