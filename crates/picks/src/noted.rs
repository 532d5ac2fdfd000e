//! The run queues, waits and runs at the start of a part of a trace: noted for the part, and taken up again there.

use crate::exact::{RecordedPick, RecordedWait};
use crate::fluid::{Fluid, Member};
use crate::follow::{LatestSwitch, RivalsAtLeave};
use crate::group::GroupKey;
use crate::queue::{Entity, Queue};
use crate::reason::Numbers;
use crate::{Options, Picks};
use sched::{Analysis, Comm, Cpu, Past, Pid, SchedEvent, SchedState, TaskId, TaskRef, Ts};
use serde::{Deserialize, Serialize};

/// The name of the notes in [`Past::notes`].
const NAME: &str = "picks";
/// The greatest weight of a task that notes are believed: more than that of nice -20.
const MOST_WEIGHT: u64 = 1 << 20;
/// The greatest sum of weights of a run queue that notes are believed.
const MOST_LOAD: u64 = 1 << 40;
/// The greatest sum of weighted virtual times, of either sign, that notes are believed.
const MOST_WEIGHTED: i128 = 1 << 110;

/// The state of the analysis at the end of a part.
#[derive(Default, Serialize, Deserialize)]
struct NotedPicks {
    /// The request of a task that has set none, by which the model was followed.
    base_slice: u64,
    queues: Vec<NotedQueue>,
    members: Vec<NotedMember>,
    /// The virtual lag with which each task left its queue.
    lags: Vec<(Pid, i64)>,
    /// The tasks that sleep and stay on their queues, in the order of the model.
    delayed: Vec<Pid>,
    /// The task of the fair class that runs on each CPU.
    running: Vec<(Cpu, Pid)>,
    /// The numbers with which tasks wait: virtual run time, deadline, weight, request, run queue.
    waits: Vec<(Pid, NotedNumbers)>,
    /// The running task of each CPU, with its numbers at its pick.
    picked: Vec<(Cpu, Pid, NotedNumbers)>,
    switches: Vec<NotedSwitch>,
    /// The start of each run.
    runs: Vec<(Pid, Ts)>,
    /// The rivals that each task had as it last left its CPU.
    #[serde(default)]
    rivals: Vec<(Pid, RivalsAtLeave)>,
}

/// Virtual run time, deadline, weight, request, run queue, as far as they were recorded.
type NotedNumbers = (Option<i64>, Option<i64>, Option<u64>, Option<u64>, Option<u32>);

#[derive(Serialize, Deserialize)]
struct NotedQueue {
    cpu: Cpu,
    group: GroupKey,
    weight: u64,
    weighted: i128,
    idle: i64,
}

#[derive(Serialize, Deserialize)]
struct NotedMember {
    pid: Pid,
    cpu: Cpu,
    group: GroupKey,
    weight: u64,
    vruntime: i64,
    deadline: i64,
    runs_since: Option<Ts>,
    delayed: bool,
}

/// The latest switch of a CPU.
#[derive(Serialize, Deserialize)]
struct NotedSwitch {
    cpu: Cpu,
    prev: Pid,
    prio: i32,
    prev_waits: bool,
    woken: Option<Pid>,
    /// The picked task, with its priority and the instant, while the record of the pick has not come.
    unrecorded: Option<(Pid, i32, Ts)>,
}

/// An analysis that follows a trace up to the window's start, and gives the name of its notes with the notes.
pub struct PicksNotes<'o> {
    picks: Picks<'o>,
    notes: Option<String>,
}

impl<'o> PicksNotes<'o> {
    /// Returns the analysis with the options of all tasks of the trace.
    pub fn new(options: &'o Options<'o>) -> PicksNotes<'o> {
        PicksNotes { picks: Picks::new(options), notes: None }
    }
}

impl Analysis for PicksNotes<'_> {
    type Output = Option<(String, String)>;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        self.picks.recall(past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.picks.early(event, state);
    }

    fn begin(&mut self, _: Ts, state: &SchedState) {
        self.notes = serde_json::to_string(&notes(&self.picks, state)).ok();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((NAME.to_owned(), self.notes?))
    }
}

fn notes(picks: &Picks<'_>, state: &SchedState) -> NotedPicks {
    let (fluid, exact) = (&picks.fluid, &picks.exact);
    let pid = |task: TaskId| state.task(task).map(|task| task.pid);
    let member = |(task, member): (TaskId, &Member)| {
        let Member { cpu, group, entity: Entity { weight, vruntime, deadline }, runs_since, delayed } = *member;
        Some(NotedMember { pid: pid(task)?, cpu, group, weight, vruntime, deadline, runs_since, delayed })
    };
    let queue = |((cpu, group), queue): (&(Cpu, GroupKey), &Queue)| {
        let Queue { weight, weighted, idle } = *queue;
        NotedQueue { cpu: *cpu, group: *group, weight, weighted, idle }
    };
    let wait = |(task, wait): (TaskId, &u64)| Some((pid(task)?, noted(*exact.waits.get(wait)?)));
    let switch = |(cpu, latest): (&Cpu, &LatestSwitch)| {
        let unrecorded = exact.pending.get(cpu).map(|pick| (pick.task.pid, pick.task.prio, pick.at));
        let LatestSwitch { prev, prev_waits, woken, .. } = *latest;
        NotedSwitch { cpu: *cpu, prev: prev.pid, prio: prev.prio, prev_waits, woken, unrecorded }
    };
    let picked = |(cpu, (pid, numbers, queue)): (&Cpu, &(Pid, Numbers, Option<u32>))| {
        (*cpu, *pid, noted(RecordedWait::of(*numbers, *queue)))
    };
    let mut notes = NotedPicks {
        base_slice: picks.options.base_slice.0,
        queues: fluid.queues.iter().map(queue).collect(),
        members: fluid.members.iter().filter_map(member).collect(),
        lags: fluid.lags.iter().filter_map(|(task, lag)| Some((pid(task)?, *lag))).collect(),
        delayed: fluid.delayed.iter().filter_map(|task| pid(*task)).collect(),
        running: fluid.running.iter().filter_map(|(cpu, task)| Some((*cpu, pid(*task)?))).collect(),
        waits: exact.open.iter().filter_map(wait).collect(),
        picked: exact.running.iter().map(picked).collect(),
        switches: picks.switches.iter().map(switch).collect(),
        runs: picks.ran_since.iter().filter_map(|(task, since)| Some((pid(task)?, *since))).collect(),
        rivals: picks.at_leave.iter().filter_map(|(task, rivals)| Some((pid(task)?, *rivals))).collect(),
    };
    notes.queues.sort_by_key(|queue| (queue.cpu, queue.group));
    notes.running.sort_unstable();
    notes.picked.sort_unstable();
    notes.switches.sort_by_key(|switch| switch.cpu);
    notes
}

/// Takes up the notes of a part, if it has any that can be understood. Tasks that the state does not have are left out.
pub(crate) fn take_up(picks: &mut Picks<'_>, past: &Past, state: &SchedState) {
    let notes = past.notes.get(NAME).and_then(|text| serde_json::from_str::<NotedPicks>(text).ok());
    let Some(notes) = notes else { return };
    let id = |pid: Pid| state.task_of(pid).map(sched::Task::id);
    // A model by another request has other lags.
    if notes.base_slice == picks.options.base_slice.0 {
        model(&mut picks.fluid, &notes, past.from, id);
    }
    for (pid, numbers) in notes.waits {
        id(pid).into_iter().for_each(|task| picks.exact.waits_with(task, believed(numbers)));
    }
    for (cpu, pid, numbers) in notes.picked {
        if let RecordedWait {
            vruntime: Some(vruntime),
            deadline: Some(deadline),
            weight: Some(weight),
            slice,
            queue,
            ..
        } = believed(numbers)
        {
            picks.exact.running.insert(cpu, (pid, Numbers { vruntime, deadline, weight, slice }, queue));
        }
    }
    for NotedSwitch { cpu, prev, prio, prev_waits, woken, unrecorded } in notes.switches {
        let task = |pid, prio| TaskRef { pid, prio, comm: Comm::EMPTY };
        picks.switches.insert(cpu, LatestSwitch { prev: task(prev, prio), prev_id: id(prev), prev_waits, woken });
        if let Some((pid, prio, at)) = unrecorded
            && let Some(picked) = id(pid)
        {
            let pick = RecordedPick::new((at, cpu, task(pid, prio), picked), GroupKey::Unknown);
            picks.exact.switched_before(pick);
        }
    }
    for (pid, since) in notes.runs {
        id(pid).into_iter().for_each(|task| picks.ran_since.insert(task, since.min(past.from)));
    }
    for (pid, rivals) in notes.rivals {
        id(pid).into_iter().for_each(|task| picks.at_leave.insert(task, rivals));
    }
}

/// The form of numbers in notes.
fn noted(wait: RecordedWait) -> NotedNumbers {
    let RecordedWait { vruntime, deadline, weight, slice, queue, .. } = wait;
    (vruntime, deadline, weight, slice, queue)
}

/// The numbers of notes, with weights that a task can have.
fn believed((vruntime, deadline, weight, slice, queue): NotedNumbers) -> RecordedWait {
    let weight = weight.map(|weight| weight.clamp(2, MOST_WEIGHT));
    RecordedWait { vruntime, deadline, weight, slice, queue, ..RecordedWait::default() }
}

/// Takes up the run queues of the model.
fn model(fluid: &mut Fluid, notes: &NotedPicks, from: Ts, id: impl Fn(Pid) -> Option<TaskId>) {
    for NotedQueue { cpu, group, weight, weighted, idle } in &notes.queues {
        let (weight, weighted) = ((*weight).min(MOST_LOAD), (*weighted).clamp(-MOST_WEIGHTED, MOST_WEIGHTED));
        fluid.queues.insert((*cpu, *group), Queue { weight, weighted, idle: *idle });
    }
    for noted in &notes.members {
        let NotedMember { pid, cpu, group, weight, vruntime, deadline, runs_since, delayed } = *noted;
        let Some(task) = id(pid) else { continue };
        let entity = Entity { weight: weight.clamp(2, MOST_WEIGHT), vruntime, deadline };
        let runs_since = runs_since.map(|since| since.min(from));
        // A PID that is noted twice is one member.
        fluid.sort(task, false);
        fluid.members.insert(task, Member { cpu, group, entity, runs_since, delayed });
        fluid.sort(task, true);
    }
    for (pid, lag) in &notes.lags {
        id(*pid).into_iter().for_each(|task| fluid.lags.insert(task, *lag));
    }
    fluid.delayed.extend(notes.delayed.iter().filter_map(|pid| id(*pid)));
    fluid.has_woken = true;
    fluid.running.extend(notes.running.iter().filter_map(|(cpu, pid)| Some((*cpu, id(*pid)?))));
}
