//! Cases by hand for each reason, and a simulation whose picks are known.

use crate::group::GroupKey;
use crate::reason::{Candidate, Numbers, Surroundings, Verdict, explain};
use crate::report::LagCheck;
use crate::{ContestedPicks, LagSample, Options, Picks, PicksReport, Reason};
use sched::probe::{Entity, LeftKind, LeftTimes, Probe, RecordedChoice};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, Window};
use testkit::Eevdf;

fn numbers(vruntime: i64, deadline: i64) -> Numbers {
    Numbers { vruntime, deadline, weight: 1024, slice: Some(3_000) }
}

fn task(pid: i32, numbers: Numbers) -> Candidate {
    Candidate { pid: Pid(pid), group: GroupKey::Kernel, queue: None, numbers: Some(numbers) }
}

fn reason(own: Numbers, rivals: &[Candidate], around: Surroundings) -> Verdict {
    explain(&task(7, own), own, rivals, around)
}

#[test]
fn each_reason_by_hand() {
    let (plain, own) = (Surroundings::default(), numbers(100, 400));
    let of = |rivals: &[Candidate], around| reason(own, rivals, around).reason;
    assert_eq!(of(&[], plain), Reason::Only);
    // A later deadline; an earlier one that is not eligible; the same deadline.
    assert_eq!(of(&[task(8, numbers(100, 500))], plain), Reason::EarliestDeadline);
    assert_eq!(of(&[task(8, numbers(300, 350))], plain), Reason::EarliestDeadline);
    assert_eq!(of(&[task(8, numbers(100, 400))], plain), Reason::EarliestDeadline);
    // An earlier deadline that is eligible.
    let beaten = [task(8, numbers(100, 300))];
    assert_eq!(of(&beaten, plain), Reason::Unexplained);
    assert_eq!(of(&beaten, Surroundings { is_buddy: true, ..plain }), Reason::Buddy);
    // Numbers that are missing; another cgroup; another run queue; a virtual time that is far.
    let unknown = Candidate { numbers: None, ..task(8, own) };
    assert_eq!(of(&[unknown], plain), Reason::NotRecorded);
    let elsewhere = Candidate { group: GroupKey::Cgroup(3), ..beaten[0] };
    assert_eq!(of(&[elsewhere], plain), Reason::Group);
    assert_eq!(of(&[task(8, numbers(-5_000_000_000, 300))], plain), Reason::Group);
    // Nothing shows that tasks of unknown cgroups are on one run queue.
    let stranger = |numbers| Candidate { group: GroupKey::Unknown, ..task(8, numbers) };
    assert_eq!(of(&[stranger(numbers(100, 500))], plain), Reason::PossiblyEarliest);
    assert_eq!(of(&[stranger(numbers(100, 300))], plain), Reason::Group);
    let (one, other) = (Candidate { queue: Some(1), ..task(7, own) }, Candidate { queue: Some(2), ..beaten[0] });
    assert_eq!(explain(&one, own, &[other], plain).reason, Reason::Group);
    // One that changed its cgroup as it ran is on another run queue than that of its pick: no lag follows from its numbers.
    let moved = Candidate { queue: Some(1), ..task(8, numbers(-5_000_000_000, 300)) };
    let verdict = explain(&one, own, &[moved], Surroundings { length: Some(1), ..plain });
    assert_eq!((verdict.reason, verdict.lag_ns), (Reason::Group, Some(0)));
    // The choice within a group can depend on groups in the same run queue, unless all that is in it is known.
    assert_eq!(of(&[elsewhere, beaten[0]], plain), Reason::Group);
    assert_eq!(of(&[elsewhere, beaten[0]], Surroundings { length: Some(2), ..plain }), Reason::Unexplained);
    // The task is not eligible, but would be with one that sleeps and is still queued.
    let ineligible = [task(8, numbers(0, 500))];
    assert_eq!(of(&ineligible, plain), Reason::Unexplained);
    assert_eq!(of(&ineligible, Surroundings { delays: true, ..plain }), Reason::Delayed);
    assert_eq!(of(&ineligible, Surroundings { length: Some(3), ..plain }), Reason::Delayed);
    assert_eq!(of(&ineligible, Surroundings { delays: true, length: Some(2), ..plain }), Reason::Unexplained);
}

#[test]
fn a_lag_is_known_where_all_of_the_run_queue_is() {
    let (plain, own) = (Surroundings::default(), numbers(100, 400));
    let lag = |around| reason(own, &[task(8, numbers(300, 900))], around).lag_ns;
    assert_eq!(lag(plain), Some(100));
    assert_eq!(
        [lag(Surroundings { length: Some(2), ..plain }), lag(Surroundings { length: Some(3), ..plain })],
        [Some(100), None]
    );
}

fn report(events: &[SchedEvent], by_probe: bool) -> PicksReport {
    let options = Options { by_probe, delays: false, base_slice: Dur(3_000_000), worst: 10_000, ..Options::default() };
    Pass::over(events).run(|| Picks::new(&options)).unwrap_or_else(|never| match never {}).output
}

fn of(report: &PicksReport, reason: Reason) -> u64 {
    report.reasons.iter().find(|row| row.reason == reason).map_or(0, |row| row.picks)
}

#[test]
fn simulated_picks_are_explained_and_wrong_ones_alone_are_not() {
    let mut wrong = 0;
    for seed in 0..60 {
        let sim = Eevdf::run(seed, 2 + seed as usize % 7, 400, if seed % 3 == 0 { 0 } else { 9 });
        let report = report(&sim.events, true);
        assert_eq!(report.picks, Some(sim.picks.len() as u64));
        let alone = sim.picks.iter().filter(|pick| pick.rivals == 0).count() as u64;
        assert_eq!(of(&report, Reason::Only), alone, "{seed}");
        // Scores are those of the other picks, each of which is in one of their numbers.
        let contested = report.contested.expect("numbers");
        let ContestedPicks { picks, explained, possibly_explained, unexplained, between_groups, not_recorded } =
            contested;
        assert_eq!(picks, sim.picks.len() as u64 - alone, "{seed}");
        assert_eq!(explained + possibly_explained + unexplained + between_groups + not_recorded, picks, "{seed}");
        let lag = report.lag.expect("lags");
        assert!(lag.count <= picks, "{seed}: {lag:?}");
        // A task that is not picked again has no record of the numbers with which it waits.
        let missing = of(&report, Reason::NotRecorded);
        assert!(missing <= 80, "{seed}: {:?}", report.reasons);
        for case in &report.unexplained {
            let pick = sim.picks.iter().find(|pick| pick.ts == case.at_ns).expect("a pick");
            assert!(pick.is_wrong, "{seed}: {case:?}");
        }
        let truly = sim.picks.iter().filter(|pick| pick.is_wrong).count() as u64;
        wrong += truly;
        assert!(of(&report, Reason::Unexplained) + missing >= truly, "{seed}: {truly} {:?}", report.reasons);
        if seed % 3 == 0 {
            assert_eq!(of(&report, Reason::Unexplained), 0, "{seed}");
        }
    }
    assert!(wrong > 1_000, "{wrong}");
}

#[test]
fn the_fluid_model_has_the_lags_of_the_simulation() {
    let (mut picks, mut near, mut agreed) = (0_u64, 0_u64, 0_u64);
    for seed in 0..30 {
        let sim = Eevdf::run(seed, 2 + seed as usize % 5, 400, 0);
        let stock: Vec<SchedEvent> =
            sim.events.iter().filter(|event| !matches!(event.kind, EventKind::Probe { .. })).copied().collect();
        let report = report(&stock, false);
        assert_eq!(of(&report, Reason::Unexplained), 0);
        agreed += of(&report, Reason::PossiblyEarliest);
        // Without a rival there is no lag to be shown.
        let contested = sim.picks.iter().filter(|pick| pick.rivals > 0);
        assert_eq!(report.lag.expect("lags").count, contested.clone().count() as u64, "{seed}");
        for pick in contested {
            let is_it = |sample: &&LagSample| sample.ts == pick.ts && sample.pid == pick.pid && sample.is_picked;
            let sample = report.samples.iter().find(is_it).expect("a lag");
            picks += 1;
            near += u64::from(sample.lag_ns.abs_diff(pick.lag_ns) < 3_000_000);
        }
    }
    // Nothing shows the requests of 1 ms.
    assert!(near * 100 >= picks * 95, "{near} of {picks}");
    assert!(agreed * 100 >= picks * 60, "{agreed} of {picks}");
}

#[test]
fn adjacent_windows_add_up_but_for_reasons_that_depend_on_records_behind_them() {
    for seed in 0..6 {
        let sim = Eevdf::run(seed, 5, 200, 0);
        let report = |from, to| {
            let options = Options { by_probe: true, ..Options::default() };
            let pass = Pass::over(sim.events.as_slice()).window(Window { from, to }).run(|| Picks::new(&options));
            pass.unwrap_or_else(|never| match never {}).output
        };
        let whole = report(None, None);
        let edge = Some(Ts(sim.events[sim.events.len() * (3 + seed as usize) / 10].ts.0));
        let parts = [report(None, edge), report(edge, None)];
        let sum = |number: &dyn Fn(&PicksReport) -> u64| parts.iter().map(number).sum::<u64>();
        assert_eq!(sum(&|part| part.picks.unwrap_or(0)), whole.picks.unwrap_or(0), "{seed}");
        let runs = |report: &PicksReport| report.runs.map_or(0, |runs| runs.count);
        assert_eq!(sum(&runs), runs(&whole), "{seed}");
        for reason in Reason::ALL.into_iter().filter(|reason| *reason != Reason::NotRecorded) {
            let (parts, whole) = (sum(&|part| of(part, reason)), of(&whole, reason));
            assert!((whole.saturating_sub(30)..=whole).contains(&parts), "{seed} {reason:?}: {parts} of {whole}");
        }
    }
}

/// A pick beside a queue of any length: 3,000 rivals of another cgroup, or of its own.
#[test]
fn the_model_explains_picks_beside_long_queues() {
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let event = |ts, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let waiting = 3_000;
    for (own, expected) in [(1, Reason::Group), (2, Reason::PossiblyEarliest)] {
        let wakes =
            (0..waiting).map(|nth| event(nth.into(), 0, EventKind::Wakeup { task: task(9 + nth), target: Cpu(0) }));
        let mut events: Vec<SchedEvent> = wakes.collect();
        let idle = TaskRef { pid: Pid(0), prio: 120, comm: Comm::new(b"swapper/0") };
        let picked = |prev, next| EventKind::Switch { prev, state: PrevState::RUNNABLE, next };
        events.push(event(5_000, 0, picked(idle, task(8))));
        let groups = (8..=9 + waiting).map(|pid| (Pid(pid), if pid == 8 { own } else { 2 })).collect();
        let options = Options { groups, base_slice: Dur(3_000_000), ..Options::default() };
        let report = |events: &[SchedEvent]| {
            Pass::over(events).run(|| Picks::new(&options)).unwrap_or_else(|never| match never {}).output
        };
        let first = report(&events);
        assert_eq!((first.picks, of(&first, expected)), (Some(1), 1), "{own}: {:?}", first.reasons);
        // It runs past its deadline and is picked again: all others of its cgroup come first.
        events.push(event(9_000_000, 8, picked(task(8), idle)));
        events.push(event(9_000_001, 0, picked(idle, task(8))));
        let again = report(&events);
        let not_shown = u64::from(own == 2);
        assert_eq!((again.picks, of(&again, Reason::NotShown)), (Some(2), not_shown), "{own}: {:?}", again.reasons);
    }
}

/// The record of a pick.
fn record_of(pid: i32) -> EventKind {
    let probe = Probe::Picks {
        pid: Pid(pid),
        entity: Entity::default(),
        left_kind: LeftKind::Unrecorded,
        left: LeftTimes::default(),
        queue: None,
        choice: RecordedChoice::default(),
    };
    EventKind::Probe { id: 9, probe }
}

/// With records, a pick is compared with 256 rivals, and its reason is not known beside more.
#[test]
fn recorded_picks_beside_long_queues_are_not_explained() {
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let event = |ts, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let most = crate::exact::MOST_RIVALS as i32;
    for (waiting, reason) in [(most, Reason::Group), (most + 1, Reason::NotRecorded)] {
        let wakes =
            (0..waiting).map(|nth| event(nth.into(), 0, EventKind::Wakeup { task: task(9 + nth), target: Cpu(0) }));
        let mut events: Vec<SchedEvent> = wakes.collect();
        let idle = TaskRef { pid: Pid(0), prio: 120, comm: Comm::new(b"swapper/0") };
        events.push(event(5_000, 0, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: task(8) }));
        events.push(event(5_001, 8, record_of(8)));
        let groups = (8..=9 + waiting).map(|pid| (Pid(pid), if pid == 8 { 1 } else { 2 })).collect();
        let options = Options { groups, by_probe: true, base_slice: Dur(3_000_000), ..Options::default() };
        let report = Pass::over(&events[..]).run(|| Picks::new(&options)).unwrap_or_else(|never| match never {}).output;
        assert_eq!((report.picks, of(&report, reason)), (Some(1), 1), "{waiting}: {:?}", report.reasons);
    }
}

/// The model has the sign of a lag if both are owed, both are in debt, or both are neither.
#[test]
fn a_lag_of_zero_is_not_the_right_sign_of_every_lag() {
    let mut check = LagCheck::default();
    for (model, recorded) in [(0, 5_000_000), (-5_000_000, 0), (400, -900), (7_000, 9_000), (-7_000, 9_000)] {
        check.add(model, recorded, Dur(3_000_000));
    }
    assert_eq!((check.compared, check.sign_right, check.within_slice), (5, 2, 3));
}

#[test]
fn a_sched_ext_scheduler_leaves_no_pick_to_the_fair_class() {
    let sim = Eevdf::run(3, 4, 200, 0);
    let why = "a sched_ext scheduler (minimal) was loaded";
    let options = Options { by_probe: true, without_fair_class: Some(why.to_owned()), ..Options::default() };
    let report = Pass::over(&sim.events[..]).run(|| Picks::new(&options)).unwrap_or_else(|never| match never {}).output;
    assert_eq!((report.picks, report.contested, report.selection_unknown.as_deref()), (None, None, Some(why)));
    assert_eq!((report.lag.is_none(), report.rows.len(), report.reasons.len()), (true, 0, 0));
}

/// A page with few picks would be white without the other tasks of its lanes.
#[test]
fn the_figure_shows_the_other_tasks_of_its_lanes() {
    let sim = Eevdf::run(3, 2, 400, 0);
    let report = report(&sim.events, true);
    let figure = crate::figure(&report, &timeline::page::Heading::default());
    let mut areas: std::collections::BTreeMap<String, i64> = Default::default();
    for item in &figure.items {
        if let draw::Item::Rects { fill: draw::Paint::Solid(fill), rects } = item {
            let area: i64 = rects.iter().map(|rect| i64::from(rect.w) * i64::from(rect.h)).sum();
            *areas.entry(fill.hex()).or_default() += area;
        }
    }
    let of = |color: draw::Color| areas.get(&color.hex()).copied().unwrap_or(0);
    assert!(of(timeline::palette::RULE) > 0, "runs of other tasks: {areas:?}");
    let filled: i64 = timeline::palette::PALETTE.iter().map(|color| of(color.pale())).sum();
    let ran: i64 = timeline::palette::PALETTE.iter().map(|color| of(*color)).sum();
    assert!(filled > 0 && ran > 0, "{areas:?}");
}

#[test]
fn the_figure_draws_no_kernel_thread() {
    let sim = Eevdf::run(3, 4, 200, 0);
    let mut report = report(&sim.events, true);
    let texts = |report: &PicksReport| {
        let figure = crate::figure(report, &timeline::page::Heading::default());
        let text = |item: &draw::Item| if let draw::Item::Text { text, .. } = item { Some(text.clone()) } else { None };
        figure.items.iter().filter_map(text).collect::<Vec<String>>()
    };
    let most = report.samples[0];
    let thread = LagSample { pid: Pid(77), comm: Comm::new(b"kworker/0:1"), lag_ns: 900_000_000, ..most };
    let task = LagSample { pid: Pid(78), comm: Comm::new(b"worker"), lag_ns: 900_000_000, ..most };
    report.samples.extend([thread, task]);
    let texts = texts(&report);
    assert!(texts.iter().any(|text| text == "worker 78"), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("kworker")), "{texts:?}");
    report.samples = vec![thread];
    assert!(!crate::figure::has_lags(&report));
}
