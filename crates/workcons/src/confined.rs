//! Signs of affinity in a trace that does not show it: violation in which no waiter was queued on a CPU that idled, before
//! that instant, after it, or ever.
//!
//! The violated time is sampled at the multiples of a step. A sample keeps the idle CPUs and the waiters, each with the CPUs
//! that it has used so far; the end of the pass shows those that it used later. A full table of samples drops every second
//! one and doubles the step, so that the memory is bounded and the samples are spread evenly, whatever the window's length.

use sched::seeded::SeededMap;
use sched::{Cpu, Dur, TaskId, Ts};

/// The number of samples at which every second one is dropped.
const MAX_SAMPLES: usize = 256;

/// A sample with more waiters is not looked at: some of them will have moved.
pub(crate) const MAX_WAITERS: usize = 64;

/// The binary logarithm of the first step in nanoseconds: 2.1 ms.
const FIRST_STEP: u32 = 21;

/// Fewer sampled instants show nothing.
const MIN_INSTANTS: u64 = 16;

/// CPUs, a bit for each modulo 64. On larger machines two CPUs share a bit: a task may seem to have used a CPU that it
/// did not, never the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used(u64);

impl Used {
    fn of(cpu: Cpu) -> Used {
        Used(1 << (cpu.0 % 64))
    }

    fn meets(self, other: Used) -> bool {
        self.0 & other.0 != 0
    }
}

/// The number of times that a task must have been queued for the CPUs that it used to show anything.
const EVIDENCE: u32 = 3;

/// The number of buckets of a task at which those of dropped samples are merged.
const MAX_BUCKETS: usize = 2 * MAX_SAMPLES;

/// The CPUs that a task was queued on, and how often it was.
#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    on: Used,
    times: u32,
}

impl Queued {
    fn add(&mut self, other: Queued) {
        self.on.0 |= other.on.0;
        self.times = self.times.saturating_add(other.times);
    }

    /// Whether the task was queued often, and never on one of these CPUs.
    fn avoids(self, idle: Used) -> bool {
        self.times >= EVIDENCE && !self.on.meets(idle)
    }
}

/// A waiter of a sample, with the CPUs that it had used since it executed its program.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: TaskId,
    before: Queued,
}

/// The instants between two changes, by number of steps from the start, and the machine then.
#[derive(Clone, Debug)]
struct Sample {
    /// The number of the sample, ascending.
    number: u64,
    first: u64,
    last: u64,
    idle: Used,
    /// The waiters; none if they are too many, or some are known not to be bound.
    waiters: Vec<Waiter>,
}

impl Sample {
    fn instants(&self) -> u64 {
        self.last + 1 - self.first
    }
}

/// The CPUs of the task that has a slot now.
#[derive(Clone, Debug)]
struct Seen {
    task: TaskId,
    /// The CPUs since the task executed its program.
    all: Queued,
    /// The CPUs from each sample of the task to the next, with the number of the earlier sample.
    since: Vec<(u64, Queued)>,
}

/// Gathers the samples, and the CPUs that tasks use.
#[derive(Clone, Debug)]
pub(crate) struct Confined {
    start: Ts,
    /// The binary logarithm of the step in nanoseconds.
    step: u32,
    /// The number of the next sample.
    next: u64,
    samples: Vec<Sample>,
    /// The CPUs of the task in each slot.
    seen: Vec<Option<Seen>>,
    /// Sampled tasks whose slot another task has now.
    past: SeededMap<TaskId, Vec<(u64, Queued)>>,
    /// The steps that are left to the analysis of the pieces before, in a later piece of a pass.
    log: Option<Vec<Seeing>>,
}

/// A step, as it is noted.
#[derive(Clone, Debug)]
enum Seeing {
    Use(TaskId, Cpu),
    Execute(TaskId),
    Stretch(Box<SampledStretch>),
}

/// A stretch without a change that is sampled, with the CPUs that idled and the tasks that waited.
#[derive(Clone, Debug)]
struct SampledStretch {
    from: Ts,
    to: Ts,
    idle: Vec<Cpu>,
    waiters: Vec<TaskId>,
}

impl Confined {
    pub(crate) fn new() -> Confined {
        Confined {
            start: Ts(0),
            step: FIRST_STEP,
            next: 0,
            samples: Vec::new(),
            seen: Vec::new(),
            past: SeededMap::default(),
            log: None,
        }
    }

    pub(crate) fn begin(&mut self, start: Ts) {
        self.start = start;
    }

    /// Notes the steps, where a piece of a pass begins; the pass has begun at `start`. The step is then the first one,
    /// whose multiples are those of every later one as well.
    pub(crate) fn resume(&mut self, start: Ts) {
        *self = Confined { start, log: Some(Vec::new()), ..Confined::new() };
    }

    /// Takes the steps of a later piece.
    pub(crate) fn join(&mut self, later: Confined) {
        for seeing in later.log.unwrap_or_default() {
            match seeing {
                Seeing::Use(task, cpu) => self.use_of(task, cpu),
                Seeing::Execute(task) => self.execute(task),
                Seeing::Stretch(stretch) => {
                    self.sample(stretch.from, stretch.to, &stretch.idle, stretch.waiters);
                }
            }
        }
    }

    /// A task is queued or runs on a CPU.
    #[inline]
    pub(crate) fn use_of(&mut self, task: TaskId, cpu: Cpu) {
        if let Some(log) = &mut self.log {
            return log.push(Seeing::Use(task, cpu));
        }
        match self.seen.get_mut(task.index()) {
            Some(Some(seen)) if seen.task == task => {
                let once = Queued { on: Used::of(cpu), times: 1 };
                seen.all.add(once);
                if let Some((_, since)) = seen.since.last_mut() {
                    since.add(once);
                }
            }
            _ => self.first_use(task, cpu),
        }
    }

    #[cold]
    #[inline(never)]
    fn first_use(&mut self, task: TaskId, cpu: Cpu) {
        if task.index() >= self.seen.len() {
            self.seen.resize(task.index() + 1, None);
        }
        let seen = Seen { task, all: Queued { on: Used::of(cpu), times: 1 }, since: Vec::new() };
        if let Some(before) = self.seen[task.index()].replace(seen).filter(|before| !before.since.is_empty()) {
            self.past.insert(before.task, before.since);
        }
    }

    /// A task executes a program: `taskset` binds its own task to CPUs before it does, so that what counts is where the
    /// program runs.
    pub(crate) fn execute(&mut self, task: TaskId) {
        if let Some(log) = &mut self.log {
            return log.push(Seeing::Execute(task));
        }
        if let Some(Some(seen)) = self.seen.get_mut(task.index())
            && seen.task == task
        {
            seen.all = Queued::default();
        }
    }

    /// The number of steps from the start to `ts`.
    fn steps(&self, ts: Ts) -> u64 {
        ts.since(self.start).0 >> self.step
    }

    /// The first instant behind `ts` that is to be sampled.
    #[inline]
    pub(crate) fn due(&self, ts: Ts) -> Ts {
        self.start.after(Dur((self.steps(ts) + 1) << self.step))
    }

    /// Samples a stretch without a change from `from` to `to`, in which these CPUs idled and these tasks waited; no tasks where some of them
    /// are known not to be bound.
    pub(crate) fn sample(&mut self, from: Ts, to: Ts, idle: &[Cpu], waiters: Vec<TaskId>) {
        let (first, last) = (self.steps(from) + 1, self.steps(to));
        if first > last {
            return;
        }
        if let Some(log) = &mut self.log {
            let idle = idle.to_vec();
            return log.push(Seeing::Stretch(Box::new(SampledStretch { from, to, idle, waiters })));
        }
        let number = self.next;
        self.next += 1;
        let few = if waiters.len() > MAX_WAITERS { &[] } else { waiters.as_slice() };
        let waiters = few.iter().map(|task| self.waiter(*task, number)).collect();
        let idle = Used(idle.iter().fold(0, |used, cpu| used | Used::of(*cpu).0));
        self.samples.push(Sample { number, first, last, idle, waiters });
        while self.samples.len() > MAX_SAMPLES {
            self.widen();
        }
    }

    /// A waiter of a sample; the CPUs that it uses from now on are kept apart.
    fn waiter(&mut self, task: TaskId, number: u64) -> Waiter {
        let Some(Some(seen)) = self.seen.get_mut(task.index()) else {
            return Waiter { task, before: Queued::default() };
        };
        if seen.task != task {
            return Waiter { task, before: Queued::default() };
        }
        if seen.since.len() >= MAX_BUCKETS {
            let kept = |number: u64| self.samples.binary_search_by_key(&number, |sample| sample.number).is_ok();
            let mut merged: Vec<(u64, Queued)> = Vec::new();
            for (number, queued) in seen.since.drain(..) {
                match merged.last_mut().filter(|_| !kept(number)) {
                    Some((_, before)) => before.add(queued),
                    None => merged.push((number, queued)),
                }
            }
            seen.since = merged;
        }
        seen.since.push((number, Queued::default()));
        Waiter { task, before: seen.all }
    }

    /// Doubles the step.
    fn widen(&mut self) {
        self.step += 1;
        self.samples.retain_mut(|sample| {
            (sample.first, sample.last) = (sample.first.div_ceil(2), sample.last / 2);
            sample.first <= sample.last
        });
    }

    /// The CPUs that a waiter used after a sample.
    fn after(&self, task: TaskId, number: u64) -> Queued {
        let now = self.seen.get(task.index()).and_then(Option::as_ref).filter(|seen| seen.task == task);
        let since = now.map(|seen| &seen.since).or_else(|| self.past.get(&task));
        let later = since.into_iter().flatten().filter(|(begun, _)| *begun >= number);
        later.fold(Queued::default(), |mut sum, (_, queued)| {
            sum.add(*queued);
            sum
        })
    }

    /// The CPUs that a waiter used, by those of its parts of the trace in which it avoided the CPUs that idled; nothing if it did in none.
    fn avoiding(&self, waiter: &Waiter, sample: &Sample) -> Option<Used> {
        let (before, after) = (waiter.before, self.after(waiter.task, sample.number));
        let mut whole = before;
        whole.add(after);
        let avoiding = [whole, before, after].into_iter().filter(|queued| queued.avoids(sample.idle));
        // A task is bound after its fork: of several parts of the trace the one with the fewest CPUs shows more.
        avoiding.map(|queued| queued.on).min_by_key(|on| on.0.count_ones())
    }

    /// The share of the violated time in which no waiter used a CPU that idled, in percent; nothing if there is too little
    /// of it. With it the CPUs that these waiters used, as bits: bit 0 is CPU 0, or another one that is equal to it modulo 64.
    pub(crate) fn share(&self) -> Option<(f64, u64)> {
        let (mut all, mut part, mut on) = (0, 0, 0);
        for sample in &self.samples {
            all += sample.instants();
            let used: Option<Vec<Used>> = sample.waiters.iter().map(|waiter| self.avoiding(waiter, sample)).collect();
            if let Some(used) = used.filter(|used| !used.is_empty()) {
                part += sample.instants();
                on = used.iter().fold(on, |on, used| on | used.0);
            }
        }
        (all >= MIN_INSTANTS).then(|| (100.0 * part as f64 / all as f64, on))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stay_spread_as_they_become_fewer() {
        let mut confined = Confined::new();
        confined.begin(Ts(1000));
        let ms = |n: i64| Ts(1000 + n * 1_000_000);
        // Every second millisecond of two seconds, and then three seconds at once.
        for n in (0..2000).step_by(2) {
            confined.sample(ms(n), ms(n + 1), &[Cpu(1)], Vec::new());
        }
        confined.sample(ms(2000), ms(5000), &[Cpu(1)], Vec::new());
        assert!(confined.samples.len() <= MAX_SAMPLES);
        let instants = |from: u64, to: u64| -> u64 {
            let within = confined.samples.iter().filter(|s| (from..to).contains(&(s.first << confined.step)));
            within.map(Sample::instants).sum()
        };
        let (first, last) = (instants(0, 2_000_000_000), instants(2_000_000_000, u64::MAX));
        let share = first as f64 / (first + last) as f64;
        assert!((share - 0.25).abs() < 0.02, "{first} {last}");
    }
}
