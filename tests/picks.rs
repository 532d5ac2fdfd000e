//! `schedviz picks` on recordings of the kernel's numbers: against a picker of its own, and the fluid model against recorded lags.

use crate::support::{events, fixture, schedviz};
use parse::Trace;
use picks::{Options, Picks, PicksReport, Reason};
use sched::kthread::is_kernel_thread;
use sched::nice::weight_of;
use sched::probe::{Left, Probe};
use sched::seeded::SeededMap;
use sched::{Cpu, EventKind, Pass, Pid, SchedEvent, Ts, Window};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The recordings of the kernel's numbers, with the groups of the tasks that wrote theirs down, where the folder of recordings is there.
fn recorded() -> Vec<(PathBuf, BTreeMap<Pid, u64>)> {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return Vec::new() };
    let of = |name: &str| {
        let file = |ending: &str| PathBuf::from(&traces).join(format!("extra/newer/{name}.{ending}"));
        let (mut groups, mut pid) = (BTreeMap::new(), None);
        for line in std::fs::read_to_string(file("proc-pid-sched.txt")).expect("a text").lines() {
            if let Some(rest) = line.strip_prefix("== pid ") {
                pid = rest.split(':').next().and_then(|pid| pid.parse().ok()).map(Pid);
            }
            if let (Some(group), Some(pid)) = (line.strip_prefix("0::/g"), pid) {
                groups.insert(pid, group.parse().expect("a number"));
            }
        }
        (file("dat"), groups)
    };
    ["6.12-eevdf", "7.2-eevdf"].map(of).into()
}

fn report(events: &[SchedEvent], groups: &BTreeMap<Pid, u64>, by_probe: bool) -> PicksReport {
    let groups: SeededMap<Pid, u64> = groups.iter().map(|(pid, group)| (*pid, *group)).collect();
    let options = Options { by_probe, groups, worst: 10_000, ..Options::default() };
    Pass::over(events).run(|| Picks::new(&options)).unwrap_or_else(|never| match never {}).output
}

/// A wait of a task: the virtual run time and the deadline with which it waits.
#[derive(Clone, Copy, Default)]
struct Waiting {
    vruntime: Option<i64>,
    deadline: Option<i64>,
    /// Whether the task slept after all: its next event is a waking.
    asleep: bool,
}

/// A pick: the task with its numbers, and the waits of the others with their tasks.
struct Pick {
    pid: Pid,
    numbers: (i64, i64),
    rivals: Vec<(Pid, usize)>,
}

/// A switch whose record has not come yet: the task that leaves, its next wait, the wait that ends, and the waits of rivals.
type OpenPick = (Pid, Option<usize>, Option<usize>, Vec<(Pid, usize)>);

/// The reference: each pick by the records alone, from queues that it follows itself. Returns the picks by reason.
fn reference(events: &[SchedEvent], groups: &BTreeMap<Pid, u64>) -> BTreeMap<Reason, u64> {
    let (mut waits, mut queues): (Vec<Waiting>, BTreeMap<Cpu, BTreeMap<Pid, usize>>) = Default::default();
    let (mut prios, mut deadlines): (BTreeMap<Pid, i32>, BTreeMap<Pid, i64>) = Default::default();
    let mut threads: BTreeSet<Pid> = BTreeSet::new();
    let mut open: BTreeMap<Cpu, OpenPick> = BTreeMap::new();
    let mut picks: Vec<Pick> = Vec::new();
    let mut found: BTreeMap<Reason, u64> = BTreeMap::new();
    for event in events {
        match event.kind {
            EventKind::Switch { prev, state, next } => {
                prios.extend([(prev.pid, prev.prio), (next.pid, next.prio)]);
                threads.extend([prev, next].iter().filter(|task| is_kernel_thread(task.comm)).map(|task| task.pid));
                let own = queues.values_mut().find_map(|queue| queue.remove(&next.pid));
                let queue = queues.entry(event.cpu).or_default();
                let stays = (state.is_runnable() && !prev.pid.is_idle()).then(|| {
                    waits.push(Waiting::default());
                    waits.len() - 1
                });
                queue.extend(stays.map(|wait| (prev.pid, wait)));
                let rivals = queue.iter().filter(|(pid, _)| prios[pid] >= 100).map(|(pid, wait)| (*pid, *wait));
                open.insert(event.cpu, (prev.pid, stays, own, rivals.collect()));
            }
            EventKind::Wakeup { task, target } | EventKind::WakeupNew { task, target } => {
                prios.insert(task.pid, task.prio);
                threads.extend(is_kernel_thread(task.comm).then_some(task.pid));
                if !queues.values().any(|queue| queue.contains_key(&task.pid)) {
                    waits.push(Waiting::default());
                    queues.entry(target).or_default().insert(task.pid, waits.len() - 1);
                }
            }
            EventKind::Waking { task, .. } => {
                if let Some(wait) = queues.values_mut().find_map(|queue| queue.remove(&task.pid)) {
                    waits[wait].asleep = true;
                }
            }
            EventKind::Migrate { task, orig, dest } => {
                let was_queued = queues.entry(orig).or_default().remove(&task.pid).is_some();
                if was_queued {
                    waits.push(Waiting::default());
                    queues.entry(dest).or_default().insert(task.pid, waits.len() - 1);
                }
            }
            EventKind::Probe { probe: Probe::Picks { pid, entity, left_kind, left, .. }, .. } => {
                let Some((prev, stays, own, rivals)) = open.remove(&event.cpu) else { continue };
                let numbers = (entity.vruntime.ns(), entity.deadline.ns());
                if let Some(wait) = own {
                    let before = waits[wait].vruntime;
                    waits[wait] =
                        Waiting { vruntime: before.or(Some(numbers.0)), deadline: Some(numbers.1), asleep: false };
                }
                if let (Some(wait), Some(left)) = (stays, left.numbers(left_kind).map(Left::vruntime)) {
                    let kept = deadlines.get(&prev).copied().filter(|deadline| *deadline > left.ns());
                    waits[wait] = Waiting { vruntime: Some(left.ns()), deadline: kept, asleep: false };
                }
                deadlines.insert(pid, numbers.1);
                if !pid.is_idle() && prios[&pid] >= 100 {
                    picks.push(Pick { pid, numbers, rivals });
                }
            }
            _ => {}
        }
    }
    for Pick { pid, numbers: (vruntime, deadline), mut rivals } in picks {
        rivals.retain(|(_, wait)| !waits[*wait].asleep);
        // Kernel threads are in the root group; nothing is known of the groups of others that did not write theirs down.
        let group = |pid: &Pid| if threads.contains(pid) { Some(0) } else { groups.get(pid).copied() };
        let apart = |rival: &Pid| group(rival).zip(group(&pid)).is_some_and(|(one, other)| one != other);
        let is_far = |wait: &Waiting| wait.vruntime.is_some_and(|other| (other - vruntime).abs() > 1_000_000_000);
        let near: Vec<(Pid, Waiting)> = rivals
            .iter()
            .map(|(rival, wait)| (*rival, waits[*wait]))
            .filter(|(rival, wait)| !(apart(rival) || is_far(wait) && wait.deadline.is_some()))
            .collect();
        let is_certain = near.iter().all(|(rival, _)| group(rival).is_some() && group(&pid).is_some());
        let whole: Option<Vec<(i64, i64, i128)>> =
            near.iter().map(|(pid, w)| Some((w.vruntime?, w.deadline?, weight_of(prios[pid]).into()))).collect();
        let reason = match whole {
            _ if rivals.is_empty() => Reason::Only,
            Some(near) if near.is_empty() => Reason::Group,
            None => Reason::NotRecorded,
            Some(mut all) => {
                let apart = rivals.len() > all.len();
                all.push((vruntime, deadline, weight_of(prios[&pid]).into()));
                let weight: i128 = all.iter().map(|(.., weight)| weight).sum();
                let time = all.iter().map(|(v, _, weight)| i128::from(*v) * weight).sum::<i128>() / weight;
                let eligible = all.iter().filter(|(v, ..)| i128::from(*v) <= time + 1);
                let is_first = eligible.map(|(_, deadline, _)| *deadline).min() == Some(deadline);
                match is_first && i128::from(vruntime) <= time + 1 {
                    true if is_certain => Reason::EarliestDeadline,
                    true => Reason::PossiblyEarliest,
                    false if apart || !is_certain => Reason::Group,
                    false => Reason::Unexplained,
                }
            }
        };
        *found.entry(reason).or_default() += 1;
    }
    found
}

#[test]
fn recorded_picks_are_explained_as_a_reference_does() {
    let (mut all, mut unexplained) = (0, 0);
    for (path, groups) in recorded() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        let events = events(&trace);
        let report = report(&events, &groups, true);
        let ours: BTreeMap<Reason, u64> = report.reasons.iter().map(|row| (row.reason, row.picks)).collect();
        println!("{}: {ours:?}", path.display());
        let mut theirs = reference(&events, &groups);
        let of = |found: &BTreeMap<Reason, u64>, reason| found.get(&reason).copied().unwrap_or(0);
        // The reference follows a wait across what the state takes for another one: there ours are not recorded, and no more than that.
        let unseen = of(&ours, Reason::NotRecorded).checked_sub(of(&theirs, Reason::NotRecorded)).expect("no less");
        assert!(unseen * 100 <= report.picks.unwrap_or(0), "{}: {theirs:?}", path.display());
        *theirs.entry(Reason::NotRecorded).or_default() += unseen;
        let more: u64 = theirs.iter().map(|(reason, picks)| picks - of(&ours, *reason).min(*picks)).sum();
        assert!(more == unseen && ours.iter().all(|(reason, picks)| *picks <= of(&theirs, *reason)), "{theirs:?}");
        all += report.picks.unwrap_or(0);
        unexplained += report.unexplained.len() as u64;
    }
    assert!(unexplained * 100 <= all, "{unexplained} of {all}");
}

#[test]
fn the_fluid_model_is_scored_by_lags_of_tasks_with_rivals() {
    for (path, groups) in recorded() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        let events = events(&trace);
        let check = report(&events, &groups, false).model.expect("recorded lags");
        println!("{}: {check:?}", path.display());
        // A task without a rival has the lag zero, whatever the model is: most of those that were recorded.
        assert!(check.alone > check.own_group.compared, "{}: {check:?}", path.display());
        let model = check.own_group;
        assert!(model.compared > 0 && model.sign_right < model.compared, "{}: {check:?}", path.display());
    }
}

/// Choices between groups are judged by the order of all run queues above a task. Another program computed the rule of each pick from the fields
/// that trace-cmd prints of these records: 69 times the earliest eligible deadline on each level, of which two are of tasks beside a sleeping one.
#[test]
fn choices_between_groups_are_explained_by_their_order() {
    let path = fixture("groups-6.12.dat");
    let text = schedviz(&["picks", "-q", "--json", path.to_str().expect("a path")]).success().text();
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let contested = &report["contested"];
    let of = |name: &str| contested[name].as_u64().expect("a number");
    let names = ["picks", "explained", "possibly_explained", "unexplained", "between_groups", "not_recorded"];
    assert_eq!(names.map(of), [67, 67, 0, 0, 0, 0], "{report}");
    // The rivals of some of these picks are in other cgroups: the choice was one between groups.
    let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
    let rules = |event: &SchedEvent| match event.kind {
        EventKind::Probe { probe: Probe::Picks { choice, .. }, .. } => Some(choice.rule()),
        _ => None,
    };
    let shown: Vec<_> = events(&trace).iter().filter_map(rules).collect();
    assert!(shown.iter().filter(|rule| **rule == sched::probe::ChoiceRule::Earliest).count() >= 69, "{shown:?}");
}

#[test]
fn picks_of_a_sched_ext_scheduler_are_in_no_figure_of_the_fair_class() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let trace = PathBuf::from(traces).join("extra/newer/7.2-scx.dat");
    let text = schedviz(&["picks", trace.to_str().expect("UTF-8"), "-q", "--json"]).success().text();
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&report["picks"], &report["lag"]), (&Value::Null, &Value::Null), "{report}");
    assert!(report["selection_unknown"].as_str().is_some_and(|why| why.contains("sched_ext scheduler (minimal)")));
}

#[test]
fn old_kernels_have_no_deadlines_and_the_report_states_it() {
    for name in ["hotplug-5.10.dat", "rt-balance-6.1.dat"] {
        let path = fixture(name);
        let text = schedviz(&["picks", "-q", path.to_str().expect("a path")]).success().text();
        let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("not known to pick by EEVDF"), "{text}");
        assert!(!words.contains("possibly the earliest deadline"), "{text}");
    }
}

#[test]
fn probes_that_are_only_described_were_not_recorded() {
    // The machine had the probe on the numbers of a switch, and the one on requests was recorded alone.
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let trace = PathBuf::from(traces).join("extra/newer/7.2-resched.dat");
    let report = |command: &str| {
        let text = schedviz(&[command, trace.to_str().expect("UTF-8"), "-q", "--json"]).success().text();
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let picks = report("picks");
    assert_eq!(picks["recorded"], "switches");
    let only = &picks["reasons"].as_array().expect("reasons")[0];
    assert_eq!((&only["reason"], only["picks"].as_u64() > Some(100)), (&"only".into(), true), "{only}");
    assert_eq!(report("preemptions")["source"], "probe");
}

#[test]
fn each_switch_is_counted_once_in_adjacent_windows_too() {
    for name in ["hackbench-7.2.dat", "hotplug.dat", "rt-5.10.dat"] {
        let events = events(&Trace::open(&fixture(name), parse::Options::default()).expect("a recording"));
        let switches = |from: Option<Ts>, to: Option<Ts>| {
            let is_inside = |ts: Ts| from.is_none_or(|from| ts >= from) && to.is_none_or(|to| ts < to);
            let all = events.iter().filter(|event| is_inside(event.ts));
            all.filter(|event| matches!(event.kind, EventKind::Switch { .. })).count() as u64
        };
        let [a, b] = [3, 7].map(|tenths| Some(events[events.len() * tenths / 10].ts));
        // With and without records, none of which is in these recordings: the last pick of each CPU waits for its own.
        for (by_probe, (from, to)) in
            [(true, (None, None)), (true, (None, a)), (true, (a, b)), (true, (b, None)), (false, (a, b))]
        {
            let options = Options { by_probe, ..Options::default() };
            let pass = Pass::over(&events[..]).window(Window { from, to }).run(|| Picks::new(&options));
            let report = pass.unwrap_or_else(|never| match never {}).output;
            let counted = [report.picks, report.to_other_classes, report.to_idle].map(|n| n.expect("a number"));
            assert_eq!(counted.iter().sum::<u64>(), switches(from, to), "{name}, {by_probe}, {from:?} to {to:?}");
        }
    }
}
