//! Causes of migrations: the simulator's, and on recordings what probes on the balancer confirm.

use crate::support::{fixture, recordings};
use parse::Trace;
use sched::{
    Analysis, Cause, Causes, Comm, Cpu, Dur, EventKind, Migration, Pass, Pid, PrevState, SchedEvent, SchedState,
    TaskRef, Ts,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use testkit::Simulation;

/// All migrations with their causes, by time.
#[derive(Default)]
struct Collect {
    causes: Causes,
    found: Vec<Migration>,
    /// Whether the records of probes count as events of no meaning: the causes then follow from the order of events alone.
    infers: bool,
}

impl Collect {
    fn inferring() -> Collect {
        Collect { infers: true, ..Collect::default() }
    }
}

impl Analysis for Collect {
    type Output = Vec<Migration>;

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        let kind = match event.kind {
            EventKind::Probe { id, .. } if self.infers => EventKind::Other { id },
            kind => kind,
        };
        self.causes.event(&SchedEvent { kind, ..*event }, state, |m| self.found.push(m));
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> Vec<Migration> {
        self.causes.finish(|m| self.found.push(m));
        self.found.sort_by_key(|m| (m.ts, m.on, m.pid));
        self.found
    }
}

#[test]
fn causes_are_the_true_ones() {
    let mut seen: BTreeMap<Cause, u32> = BTreeMap::new();
    for seed in crate::support::seeds(150) {
        let run = Simulation::balanced(seed, 2 + (seed % 9) as u32, 500);
        let found = Pass::over(run.events.as_slice()).run(Collect::default).unwrap_or_else(|never| match never {});
        let moved = |event: &SchedEvent| match event.kind {
            EventKind::Migrate { task, .. } => Some(task.pid),
            _ => None,
        };
        let mut theirs: Vec<(&SchedEvent, Cause)> =
            run.events.iter().zip(&run.causes).filter_map(|(e, c)| Some((e, (*c)?))).collect();
        // Several of a CPU can have the same stamp.
        theirs.sort_by_key(|(e, _)| (e.ts, e.cpu, moved(e)));
        assert_eq!(found.output.len(), theirs.len(), "seed {seed}");
        for (ours, (event, cause)) in found.output.iter().zip(theirs) {
            assert_eq!((ours.ts, ours.on, ours.cause), (event.ts, event.cpu, cause), "seed {seed}: {ours:?}");
            *seen.entry(cause).or_default() += 1;
        }
    }
    assert_eq!(seen.len(), Cause::ALL.len(), "each of them occurred: {seen:?}");
}

#[test]
fn nothing_is_concluded_across_a_loss() {
    let task = TaskRef { pid: Pid(7), prio: 120, comm: Comm::new(b"task") };
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper") };
    let at = |ts, cpu, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid::IDLE, flags: 0, kind };
    let found = |lost_on| {
        let events = [
            at(0, 0, EventKind::Other { id: 1 }),
            at(1, 1, EventKind::Waking { task, target: Cpu(0) }),
            at(2, lost_on, EventKind::Lost { count: None }),
            at(5, 1, EventKind::Migrate { task, orig: Cpu(0), dest: Cpu(2) }),
            at(6, lost_on + 1, EventKind::Lost { count: None }),
            at(9, 2, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: task }),
        ];
        let found = Pass::over(&events[..]).run(Collect::default).unwrap_or_else(|never| match never {});
        found.output.iter().map(|m| (m.cause, m.first_run)).collect::<Vec<_>>()
    };
    assert_eq!(found(3), [(Cause::Wakeup, Some(Dur(4)))]);
    // The CPU that woke it may have done anything, and where it went it may have run before.
    assert_eq!(found(1), [(Cause::Unknown, None)]);
}

#[test]
fn every_migration_of_a_recording_has_a_cause() {
    for path in recordings() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        let Ok(events) = trace.events() else { continue };
        let found = Pass::over(events).run(Collect::default).expect("a pass");
        let migrations = trace.event_counts().into_iter().filter(|e| e.name == "sched_migrate_task");
        let count: u64 = migrations.map(|e| e.count).sum();
        if trace.selected_buffers().len() == 1 {
            assert_eq!(found.output.len() as u64, count, "{}", path.display());
        }
        if std::env::var_os("SCHEDVIZ_LOOK").is_some() {
            let mut by: BTreeMap<Cause, u32> = BTreeMap::new();
            found.output.iter().for_each(|m| *by.entry(m.cause).or_default() += 1);
            println!("{} {by:?}", path.display());
        }
    }
}

/// The evidence of probes on the balancer for a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Probed {
    /// The balancer detached it within a `newidle_balance` that reports a pull.
    NewIdle,
    /// It detached it otherwise.
    Balance,
    /// It did not detach it.
    Not,
}

/// The migrations of a trace by what its probes say, in time order.
fn probed(trace: &Trace) -> Vec<(Ts, Cpu, Probed)> {
    let mut found: Vec<(Ts, Cpu, Probed)> = Vec::new();
    let mut detached: BTreeMap<Cpu, bool> = BTreeMap::new();
    // The migrations of each CPU since its last switch or newidle_balance.
    let mut recent: BTreeMap<Cpu, Vec<usize>> = BTreeMap::new();
    trace.records(&mut |record| {
        let (cpu, name) = (record.cpu, record.format().map_or("", |f| f.name.as_str()));
        match name {
            "detach_task" => drop(detached.insert(cpu, true)),
            "sched_migrate_task" => {
                let by = if detached.insert(cpu, false) == Some(true) { Probed::Balance } else { Probed::Not };
                recent.entry(cpu).or_default().push(found.len());
                found.push((record.ts, cpu, by));
            }
            "newidle_balance" => {
                let pulled = record.number("pulled").unwrap_or(0);
                for index in recent.remove(&cpu).unwrap_or_default() {
                    if pulled > 0 && found[index].2 == Probed::Balance {
                        found[index].2 = Probed::NewIdle;
                    }
                }
            }
            "sched_switch" => drop(recent.remove(&cpu)),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}

#[test]
fn probes_on_the_balancer_confirm_the_causes() {
    let mut table: BTreeMap<(Cause, bool, Probed), u32> = BTreeMap::new();
    for path in recordings() {
        let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        if !name.starts_with("balance") {
            continue;
        }
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        let ours = Pass::over(trace.events().expect("events")).run(Collect::inferring).expect("a pass").output;
        let theirs = probed(&trace);
        // In the builds of 7.2 that function is inlined: new-idle balancing looks like the rest.
        let has_probe = trace.event_counts().iter().any(|e| e.name == "newidle_balance");
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (ours, (ts, cpu, by)) in ours.iter().zip(theirs) {
            assert_eq!((ours.ts, ours.on), (ts, cpu), "{name}");
            *table.entry((ours.cause, has_probe, by)).or_default() += 1;
            if std::env::var_os("SCHEDVIZ_LOOK").is_some()
                && (ours.cause == Cause::Unknown || ours.cause == Cause::NohzIdle && by == Probed::Not)
            {
                println!("{} {ours:?} {by:?}", path.display());
            }
        }
    }
    println!("{table:#?}");
    for ((cause, has_probe, by), n) in &table {
        let fits = match cause {
            Cause::NewIdle | Cause::NewIdleSleeper if *has_probe => *by == Probed::NewIdle,
            Cause::NewIdle | Cause::NewIdleSleeper | Cause::Active => *by == Probed::Balance,
            Cause::Idle | Cause::Periodic | Cause::NohzIdle => *by == Probed::Balance,
            Cause::IdleSleeper | Cause::PeriodicSleeper | Cause::NohzIdleSleeper => *by == Probed::Balance,
            // Active balance detaches as well; a change of affinity does not.
            Cause::Stopper => *by != Probed::NewIdle,
            Cause::Unknown => true,
            _ => *by == Probed::Not,
        };
        assert!(fits, "{n} migrations are {cause:?} and, by the probes, {by:?}");
    }
}

/// The cause of each migration by the fields of the probes' records, in time order; nothing where no probe decides.
fn decided(trace: &Trace) -> Vec<(Ts, Cpu, Option<&'static str>)> {
    let old = trace.info().kernel.is_some_and(|kernel| kernel.starts_with("6.1."));
    let mut found = Vec::new();
    let mut latest: BTreeMap<Cpu, (i64, i64, Option<&'static str>)> = BTreeMap::new();
    let mut stoppers: BTreeMap<Cpu, bool> = BTreeMap::new();
    trace.records(&mut |record| {
        let (cpu, name) = (record.cpu, record.format().map_or("", |f| f.name.as_str()));
        let number = |field: &str| record.number(field).expect("a field");
        let by_stopper = stoppers.get(&cpu) == Some(&true);
        match name {
            "detach_task" => {
                let dst = number("dst");
                let word = match number("idle") {
                    // A stopper that sleeps can pull like any task.
                    _ if by_stopper && number("src") == i64::from(cpu.0) => "active",
                    2 => "new-idle",
                    _ if dst != i64::from(cpu.0) => "nohz-idle",
                    n if n == i64::from(!old) => "idle",
                    _ => "periodic",
                };
                latest.insert(cpu, (number("pid"), dst, Some(word)));
            }
            "move_queued" => drop(latest.insert(cpu, (number("pid"), number("to"), Some("requeued")))),
            "sched_migrate_task" => {
                let moved = (number("pid"), number("dest_cpu"));
                let by = latest.remove(&cpu).filter(|(pid, to, _)| (*pid, *to) == moved).and_then(|(.., by)| by);
                found.push((record.ts, cpu, by));
            }
            "sched_switch" => {
                latest.remove(&cpu);
                stoppers.insert(cpu, record.field_text("next_comm").is_some_and(|name| name.starts_with("migration/")));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}

#[test]
fn probes_on_the_balancer_decide_the_causes() {
    let mut table: BTreeMap<(Option<&str>, Cause, bool), u32> = BTreeMap::new();
    // The recorded and the inferred cause, where they differ.
    let mut differ: BTreeMap<(Cause, Cause), u32> = BTreeMap::new();
    for path in recordings() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        // Some recordings have probes without the kind of balance.
        if trace.format_named("lb", "detach_task").is_none_or(|format| format.field("idle").is_none()) {
            continue;
        }
        let ours = Pass::over(trace.events().expect("events")).run(Collect::default).expect("a pass").output;
        let inferred = Pass::over(trace.events().expect("events")).run(Collect::inferring).expect("a pass").output;
        for (ours, inferred) in ours.iter().zip(&inferred).filter(|(ours, inferred)| ours.cause != inferred.cause) {
            *differ.entry((ours.cause, inferred.cause)).or_default() += 1;
        }
        let theirs = decided(&trace);
        assert_eq!(ours.len(), theirs.len(), "{}", path.display());
        for (ours, (ts, cpu, by)) in ours.iter().zip(theirs) {
            assert_eq!((ours.ts, ours.on), (ts, cpu), "{}", path.display());
            *table.entry((by, ours.cause, ours.recorded)).or_default() += 1;
        }
    }
    println!("{table:#?}");
    let mut decided = 0;
    for ((by, cause, recorded), n) in &table {
        let fits = match by {
            Some("new-idle") => matches!(cause, Cause::NewIdle | Cause::NewIdleSleeper),
            Some("idle") => matches!(cause, Cause::Idle | Cause::IdleSleeper),
            Some("periodic") => matches!(cause, Cause::Periodic | Cause::PeriodicSleeper),
            Some("nohz-idle") => matches!(cause, Cause::NohzIdle | Cause::NohzIdleSleeper),
            Some("active") => *cause == Cause::Active,
            Some(_) => matches!(cause, Cause::Affinity | Cause::Exec | Cause::NumaMove),
            None => true,
        };
        assert!(fits, "{n} migrations are {cause:?} and, by the probes, {by:?}");
        // A swap has an event of its own, sched_swap_numa: no probe is needed.
        assert_eq!(by.is_some() || *cause == Cause::NumaSwap, *recorded, "{n} migrations: {by:?}, {cause:?}");
        decided += if *recorded { *n } else { 0 };
    }
    assert!(decided > 5, "{decided}");
    let known = [
        // The CPU that balanced in its softirq was idle, and a task had just been queued on it.
        (Cause::Periodic, Cause::Idle),
        // The last task of a CPU was throttled: it is switched out as one that goes on.
        (Cause::NewIdle, Cause::Unknown),
        // taskset moved a queued task to its own CPU, for which it needs no stopper.
        (Cause::Affinity, Cause::Unknown),
    ];
    let number: u32 = known.iter().filter_map(|pair| differ.remove(pair)).sum();
    assert!(number * 20 < decided, "{number} of {decided} differ in ways that are known");
    assert!(differ.is_empty(), "{differ:?}");
}

/// With PREEMPT_RT a thread runs the softirqs, and balances. In rt-balance-6.1.dat a probe on `load_balance` shows for
/// whom: `idle` is 0 for a CPU that idles, 1 for a busy one, 2 for one that is about to idle (`enum cpu_idle_type`).
#[test]
fn a_thread_that_balances_for_an_idle_cpu() {
    let trace = Trace::open(&fixture("rt-balance-6.1.dat"), parse::Options::default()).expect("a fixture");
    let ours = Pass::over(trace.events().expect("events")).run(Collect::default).expect("a pass").output;
    let (mut at_work, mut theirs) = (BTreeMap::new(), Vec::new());
    trace.records(&mut |record| {
        match record.format().map_or("", |f| f.name.as_str()) {
            "load_balance" => drop(at_work.insert(record.cpu, record.number("idle"))),
            "load_balance_ret" => drop(at_work.remove(&record.cpu)),
            "sched_migrate_task" => theirs.push((record.ts, record.cpu, at_work.get(&record.cpu).copied().flatten())),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    assert_eq!(ours.len(), theirs.len());
    let mut table: BTreeMap<(Option<i64>, Cause), u32> = BTreeMap::new();
    for (ours, (ts, cpu, idle)) in ours.iter().zip(theirs) {
        assert_eq!((ours.ts, ours.on), (ts, cpu));
        *table.entry((idle, ours.cause)).or_default() += 1;
    }
    let expected = [
        ((None, Cause::Wakeup), 661),
        ((None, Cause::RealTime), 3),
        ((Some(0), Cause::Idle), 27),
        // The CPU idled when its tick woke the thread, and had been given other tasks when that ran.
        ((Some(0), Cause::Periodic), 2),
        ((Some(0), Cause::NohzIdle), 7),
        ((Some(1), Cause::Periodic), 6),
        ((Some(2), Cause::NewIdle), 27),
        // Others were queued meanwhile.
        ((Some(2), Cause::Unknown), 2),
    ];
    assert_eq!(table, BTreeMap::from(expected));
}
