//! The jobs that go on at the start of a part of a trace: noted for the part, and taken up again there.

use crate::{Jobs, OpenJob, Options, STRETCHES};
use sched::serial::exact;
use sched::{Analysis, Comm, Cpu, Dur, Past, Pid, SchedEvent, SchedState, Ts};
use serde::{Deserialize, Serialize};

/// The name of the notes in [`Past::notes`].
const NAME: &str = "jobs";

/// The jobs that go on, and the latest stretches of the CPUs on which their tasks can wait.
#[derive(Default, Serialize, Deserialize)]
struct JobNotes {
    jobs: Vec<NotedJob>,
    /// The tasks whose waking by an interrupt precedes the part, and has released no job.
    #[serde(default)]
    by_interrupt: Vec<Pid>,
    /// The programmed expiries of the timers behind these wakings, where they are known.
    #[serde(default)]
    programmed: Vec<(Pid, Ts)>,
    stretches: Vec<NotedStretch>,
}

#[derive(Serialize, Deserialize)]
struct NotedJob {
    pid: Pid,
    release: Ts,
    #[serde(default)]
    by_interrupt: bool,
    #[serde(default)]
    after_timer: Option<u64>,
    until_queued: u64,
    run: u64,
    waited: u64,
    throttled: u64,
    preemptions: u64,
    culprits: Vec<NotedCulprit>,
}

#[derive(Serialize, Deserialize)]
struct NotedCulprit {
    pid: Pid,
    #[serde(with = "exact")]
    comm: Comm,
    time: u64,
}

#[derive(Serialize, Deserialize)]
struct NotedStretch {
    cpu: Cpu,
    start: Ts,
    end: Ts,
    pid: Pid,
    #[serde(with = "exact")]
    comm: Comm,
}

/// Follows a trace up to the window's start, and gives the name of the notes with the notes. Of the options the expiries of timers alone matter.
pub struct JobsNotes<'o> {
    jobs: Jobs<'o>,
    notes: Option<String>,
}

impl<'o> JobsNotes<'o> {
    /// Begins to follow, with options of which the expiries of timers alone matter.
    pub fn new(options: &'o Options<'o>) -> JobsNotes<'o> {
        JobsNotes { jobs: Jobs::new(options), notes: None }
    }
}

impl Analysis for JobsNotes<'_> {
    type Output = Option<(String, String)>;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        take_up(&mut self.jobs, past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.jobs.early(event, state);
    }

    fn begin(&mut self, _: Ts, state: &SchedState) {
        self.notes = serde_json::to_string(&notes(&self.jobs, state)).ok();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((NAME.to_owned(), self.notes?))
    }
}

fn notes(jobs: &Jobs<'_>, state: &SchedState) -> JobNotes {
    let job = |(id, job): (_, &OpenJob)| {
        let culprits =
            job.culprits.iter().map(|(pid, comm, time)| NotedCulprit { pid: *pid, comm: *comm, time: time.0 });
        Some(NotedJob {
            pid: state.task(id)?.pid,
            release: job.release,
            by_interrupt: job.by_interrupt,
            after_timer: job.after_timer.map(|time| time.0),
            until_queued: job.until_queued.0,
            run: job.run.0,
            waited: job.waited.0,
            throttled: job.throttled.0,
            preemptions: job.preemptions,
            culprits: culprits.collect(),
        })
    };
    let stretches = (0..).map(Cpu).zip(&jobs.stretches).flat_map(|(cpu, stretches)| {
        stretches.iter().map(move |(start, end, pid, comm)| NotedStretch {
            cpu,
            start: *start,
            end: *end,
            pid: *pid,
            comm: *comm,
        })
    });
    let woken = || jobs.by_interrupt.iter().filter_map(|(id, programmed)| Some((state.task(id)?.pid, *programmed)));
    let by_interrupt = woken().map(|(pid, _)| pid).collect();
    let programmed = woken().filter_map(|(pid, programmed)| Some((pid, programmed?))).collect();
    JobNotes {
        by_interrupt,
        programmed,
        jobs: jobs.open.iter().filter_map(job).collect(),
        stretches: stretches.collect(),
    }
}

/// Takes up the notes of a part, if it has any that can be understood. Tasks that the state does not have are left out.
pub(crate) fn take_up(jobs: &mut Jobs<'_>, past: &Past, state: &SchedState) {
    let notes = past.notes.get(NAME).and_then(|text| serde_json::from_str::<JobNotes>(text).ok());
    let JobNotes { jobs: noted, by_interrupt, programmed, stretches } = notes.unwrap_or_default();
    for job in noted {
        let Some(task) = state.task_of(job.pid) else { continue };
        let culprits = job.culprits.into_iter().take(crate::CULPRITS);
        let open = OpenJob {
            release: job.release.min(past.from),
            by_interrupt: job.by_interrupt,
            after_timer: job.after_timer.map(Dur),
            until_queued: Dur(job.until_queued),
            run: Dur(job.run),
            waited: Dur(job.waited),
            throttled: Dur(job.throttled),
            preemptions: job.preemptions,
            culprits: culprits.map(|NotedCulprit { pid, comm, time }| (pid, comm, Dur(time))).collect(),
        };
        jobs.open.insert(task.id(), open);
    }
    for task in by_interrupt.into_iter().filter_map(|pid| state.task_of(pid)) {
        jobs.by_interrupt.insert(task.id(), None);
    }
    for (pid, programmed) in programmed {
        if let Some(task) = state.task_of(pid) {
            jobs.by_interrupt.insert(task.id(), Some(programmed));
        }
    }
    for NotedStretch { cpu, start, end, pid, comm } in stretches.into_iter().filter(|noted| noted.cpu.0 < Cpu::LIMIT) {
        if cpu.index() >= jobs.stretches.len() {
            jobs.stretches.resize_with(cpu.index() + 1, Default::default);
        }
        let stretches = &mut jobs.stretches[cpu.index()];
        if stretches.len() < STRETCHES && start <= end {
            stretches.push_back((start, end, pid, comm));
        }
    }
}
