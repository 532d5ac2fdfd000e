//! Loads of runs whose programs are known.

use crate::command::{MOST_ACTIONS, MOST_TASKS, too_large};
use crate::load::{LoadAction, LoadStart, LoadTask, Reproduction};
use sched::{Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};
use testkit::{Operation, Worker, Workload};
use whatif::{BuildOptions, ModelBuilder, ModelTask};

fn load_of(events: &[SchedEvent], keeps: &dyn Fn(&ModelTask) -> bool) -> Reproduction {
    let build = BuildOptions::default();
    let outcome = Pass::over(events).run(|| ModelBuilder::new(&build));
    Reproduction::of(&outcome.unwrap_or_else(|never| match never {}).output, keeps)
}

fn load(work: &Workload) -> Reproduction {
    load_of(&work.run(), &|_| true)
}

/// The work of a task in numbers: CPU time, and the tasks that it wakes, waits and naps, in the order of its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Work {
    compute: u64,
    bursts: u64,
    others: Vec<(char, u64)>,
}

/// The work of each task by its PID, as the load has it.
fn of_load(load: &Reproduction) -> Vec<(i32, Work)> {
    let pid = |index: u32| load.tasks[index as usize].pid.0 as u64;
    let of_task = |task: &LoadTask| {
        let mut work = Work::default();
        for action in &task.actions {
            match *action {
                LoadAction::Compute(ns) => {
                    work.compute += ns;
                    work.bursts += 1;
                }
                LoadAction::Wake(other) => work.others.push(('k', pid(other))),
                LoadAction::Wait => work.others.push(('w', 0)),
                LoadAction::SleepFor(ns) | LoadAction::SleepUntil(ns) => work.others.push(('s', ns)),
                LoadAction::Start(other) => work.others.push(('f', pid(other))),
                LoadAction::Priority(prio) => work.others.push(('p', prio as u64)),
            }
        }
        (task.pid.0, work)
    };
    let mut all: Vec<(i32, Work)> = load.tasks.iter().map(of_task).collect();
    all.sort_by_key(|(pid, _)| *pid);
    all
}

/// The work of each task by its PID, as the program has it.
fn of_program(work: &Workload) -> Vec<(i32, Work)> {
    let of_worker = |(index, worker): (usize, &Worker)| {
        let mut found = Work::default();
        let mut runs = false;
        for operation in &worker.program {
            match *operation {
                Operation::Run(ns) => {
                    found.compute += ns as u64;
                    found.bursts += u64::from(!runs);
                }
                Operation::Wake(other) => found.others.push(('k', 100 + other as u64)),
                Operation::Wait => found.others.push(('w', 0)),
                Operation::Nap(ns) => found.others.push(('s', ns as u64)),
                Operation::NapUntil(_) => unreachable!("not in these programs"),
            }
            runs = matches!(operation, Operation::Run(_));
        }
        (100 + index as i32, found)
    };
    work.workers.iter().enumerate().map(of_worker).collect()
}

/// A machine that does what the program of a load does: its rules are those of `program.c`, with wakeups that are counted.
fn reproduction(load: &Reproduction, cpus: usize, cpu_of: impl Fn(&LoadTask) -> usize) -> Workload {
    let operation = |action: &LoadAction| match *action {
        LoadAction::Compute(ns) => Some(Operation::Run(ns as i64)),
        LoadAction::Wake(other) => Some(Operation::Wake(other as usize)),
        LoadAction::Wait => Some(Operation::Wait),
        LoadAction::SleepFor(ns) => Some(Operation::Nap(ns as i64)),
        LoadAction::SleepUntil(ns) => Some(Operation::NapUntil(ns as i64)),
        LoadAction::Start(_) | LoadAction::Priority(_) => None,
    };
    let worker = |task: &LoadTask| {
        let program = task.actions.iter().filter_map(operation).collect();
        Worker { prio: task.prio, ..Worker::on(cpu_of(task), program) }
    };
    Workload { cpus, workers: load.tasks.iter().map(worker).collect(), steal: None }
}

/// The CPU time of each task in a run of a reproduction, in the order of its tasks.
fn computed(work: &Workload) -> Vec<u64> {
    let mut times = vec![0; work.workers.len()];
    for (pid, work) in of_load(&load(work)) {
        times[pid as usize - 100] = work.compute;
    }
    times
}

/// Stages that wake one another in turn: each waits for the one before it, runs, and wakes the next.
fn pipeline(stages: usize, rounds: usize) -> Workload {
    use Operation::{Nap, Run, Wait, Wake};
    let stage = |index: usize| {
        let next = (index + 1) % stages;
        let begin = if index == 0 { vec![] } else { vec![Wait] };
        let round = [begin, vec![Run(20_000), Wake(next), Run(1_000)]].concat();
        let mut program = round.repeat(rounds);
        if index == 0 {
            // The first one waits for the last one's wakeup, and now and then for the world.
            let one = [Run(20_000), Wake(next), Run(1_000), Wait, Run(5_000), Nap(100_000), Run(700)];
            program = one.repeat(rounds);
        }
        Worker::on(index % 2, program)
    };
    Workload { cpus: 2, workers: (0..stages).map(stage).collect(), steal: None }
}

/// The closed loop: known programs, their trace, its load, the trace of that, and the load of that one.
#[test]
fn a_reproduction_does_the_work_of_the_program() {
    let random = (0..40).map(|seed| Workload::random(seed, false));
    for (nth, work) in random.chain([pipeline(2, 30), pipeline(5, 30)]).enumerate() {
        let (found, truth) = (load(&work), of_program(&work));
        assert_eq!(of_load(&found), truth, "{nth}: CPU time, bursts, wakeups by task, waits and sleeps");
        let cpu = |task: &LoadTask| work.workers[task.pid.0 as usize - 100].cpu;
        let again = load(&reproduction(&found, work.cpus, cpu));
        assert_eq!(again.counts().compute_ns, found.counts().compute_ns, "{nth}: the time of the reproduction's trace");
        assert_eq!(again.counts().bursts, found.counts().bursts, "{nth}");
        assert_eq!(again.counts().wakeups, found.counts().wakeups, "{nth}");
    }
}

/// No number of CPUs lets a reproduction hang: all of its work is done on one CPU, and on a CPU for each task.
#[test]
fn a_reproduction_ends_on_any_machine() {
    for seed in 0..40 {
        let work = if seed % 4 == 0 { pipeline(2 + seed as usize / 8, 10) } else { Workload::random(seed, true) };
        let found = load(&work);
        let all: Vec<u64> = of_load_in_order(&found);
        let alone = reproduction(&found, 1, |_| 0);
        assert_eq!(computed(&alone), all, "{seed}: on one CPU");
        let apart = reproduction(&found, found.tasks.len(), |task| task.pid.0 as usize % found.tasks.len());
        assert_eq!(computed(&apart), all, "{seed}: on many CPUs");
    }
}

fn of_load_in_order(load: &Reproduction) -> Vec<u64> {
    let compute = |action: &LoadAction| if let LoadAction::Compute(ns) = action { *ns } else { 0 };
    load.tasks.iter().map(|task| task.actions.iter().map(compute).sum()).collect()
}

/// A task that waits for one which is left out sleeps as long as it did, and wakes it no more.
#[test]
fn a_task_that_is_left_out_leaves_sleeps_behind() {
    use Operation::{Run, Wait, Wake};
    let waker = Worker::on(0, vec![Run(7_000), Wake(1), Run(1_000), Wait, Run(500)]);
    let woken = Worker::on(1, vec![Run(1_000), Wait, Run(2_000), Wake(0), Run(400)]);
    let events = Workload { cpus: 2, workers: vec![waker, woken], steal: None }.run();
    let whole = load_of(&events, &|_| true);
    assert_eq!((whole.counts().wakeups, whole.counts().waits, whole.lost.replaced()), (2, 2, 0));
    let part = load_of(&events, &|task| task.pid == Pid(101));
    let actions: Vec<LoadAction> = part.tasks.iter().flat_map(|task| task.actions.clone()).collect();
    // From 1 µs, when it fell asleep, to 7 µs; its last two runs are one.
    assert_eq!(actions, [LoadAction::Compute(1_000), LoadAction::SleepFor(6_000), LoadAction::Compute(2_400)]);
    assert_eq!((part.lost.by_others, part.lost.replaced()), (1, 1));
}

/// A fork starts a task where its parent is reproduced; else the child begins at its instant.
#[test]
fn a_child_begins_with_its_parent() {
    let name = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: sched::Comm::new(b"sh") };
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: sched::Comm::new(b"swapper/0") };
    let (parent, child) = (name(10), name(11));
    let event = |ts: i64, cpu: u32, pid: i32, kind: EventKind| SchedEvent {
        ts: Ts(ts),
        cpu: Cpu(cpu),
        pid: Pid(pid),
        flags: 0,
        kind,
    };
    let switch = |prev: TaskRef, state: PrevState, next: TaskRef| EventKind::Switch { prev, state, next };
    let events = [
        event(1_000, 0, 0, switch(idle, PrevState::RUNNABLE, parent)),
        event(1_000, 1, 0, EventKind::Other { id: 0 }),
        event(1_300, 0, 10, EventKind::Fork { parent: Pid(10), child: Pid(11), child_comm: parent.comm }),
        event(1_300, 0, 10, EventKind::WakeupNew { task: child, target: Cpu(1) }),
        event(1_350, 1, 0, switch(idle, PrevState::RUNNABLE, child)),
        event(1_800, 0, 10, switch(parent, PrevState::asleep(1), idle)),
        event(1_950, 1, 11, switch(child, PrevState::DEAD, idle)),
    ];
    let both = load_of(&events, &|_| true);
    let starts: Vec<LoadStart> = both.tasks.iter().map(|task| task.start).collect();
    assert_eq!(starts, [LoadStart::Beginning, LoadStart::Parent]);
    let expected = [LoadAction::Compute(300), LoadAction::Start(1), LoadAction::Compute(500)];
    assert_eq!(
        (both.tasks[0].actions.as_slice(), both.tasks[1].actions.as_slice()),
        (&expected[..], &[LoadAction::Compute(600)][..])
    );
    let orphan = load_of(&events, &|task| task.pid == Pid(11));
    assert_eq!(orphan.tasks[0].start, LoadStart::At(300), "{:?}", orphan.tasks);
}

#[test]
fn programs_have_a_limit() {
    assert_eq!(too_large(MOST_TASKS, MOST_ACTIONS), None);
    assert_eq!(too_large(4097, 0).as_deref(), Some("4,097 tasks are more than the 4,096 threads of a program"));
    let many = too_large(1, MOST_ACTIONS + 1);
    assert_eq!(many.as_deref(), Some("1,048,577 actions are more than the 1,048,576 of a program"));
}
