//! Every analysis that can be joined finds the same in pieces of any length, on simulated runs and on every recording.

use crate::support::{self, Effort, effort};
use parse::{Options, Trace};
use sched::analysis::RunTime;
use sched::{
    Affinity, Comm, Cpu, CpuSet, Dur, EventKind, EventSource, Lister, Pid, SchedEvent, Selected, TaskRef, Topology, Ts,
    Window,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex};
use testkit::{PieceTally, Rng, Simulation, any_events, in_pieces, with_throttling};

/// A trace whose analyses are compared.
struct Compared<S> {
    source: S,
    cpus: Vec<Cpu>,
    /// Two of the tasks.
    first: Pid,
    last: Pid,
    from: Ts,
    to: Ts,
    window: Window,
    lengths: Vec<usize>,
    /// The CPUs that tasks may use, where that is part of the comparison.
    affinity: Option<Affinity>,
    /// Whether all tasks count, and whether those with an even PID do, in turn.
    selections: Vec<bool>,
}

impl<S: EventSource<Error: Debug>> Compared<S> {
    /// Compares each analysis; returns for each how many pieces were joined.
    fn all(&mut self) -> Vec<(&'static str, PieceTally)> {
        let shown: Vec<(Cpu, Option<u32>)> = self.cpus.iter().map(|cpu| (*cpu, None)).collect();
        let (from, to, window) = (self.from, self.to, self.window);
        let lengths = self.lengths.clone();
        let source = &mut self.source;
        let mut tallies = Vec::new();

        let tally = in_pieces(
            source,
            window,
            &lengths,
            || (RunTime::default(), Selected::new(None, true)),
            |output| format!("{output:?}"),
        );
        tallies.push(("run time", tally));

        let options = utilization::Options {
            from,
            to,
            zero: from,
            cpus: shown.clone(),
            all_cpus: Vec::new(),
            group_name: String::new(),
            interval: Dur((to.since(from).0 / 7).max(1)),
            tasks: None,
            topology: Topology::default(),
            balance_interval: Dur(1_000),
            ends: Vec::new(),
        };
        let tally = in_pieces(
            source,
            window,
            &lengths,
            || utilization::Utilization::new(&options),
            |output| format!("{} {:?} {:?}", json(output), output.columns, output.heat),
        );
        tallies.push(("utilization", tally));

        // Both tasks come to a chosen cgroup, and leave it, within their runs.
        let part = |nth: i64| Ts(from.0 + (to.since(from).0 as i64 / 40) * nth);
        let moves: Vec<(Ts, Pid, Option<&str>)> = (0..40)
            .flat_map(|nth| [(part(nth), self.first), (part(nth), self.last)])
            .enumerate()
            .map(|(nth, (ts, pid))| (ts, pid, Some(if nth % 4 < 2 { "/a" } else { "/b" })))
            .collect();
        let cgroups = Arc::new(membership::TaskGroups::of_cgroups(membership::Cgroups::of_moves(&moves)));
        let groups = membership::ChosenGroups::default().with_cgroups(cgroups, |path| path == "/a");
        let chosen = membership::ChosenTasks::new(sched::TaskFilter::default(), Some(groups));
        let selecting = utilization::Options { tasks: Some(chosen), ..options.clone() };
        let tally = in_pieces(
            source,
            window,
            &lengths,
            || utilization::Utilization::new(&selecting),
            |output| format!("{} {:?} {:?}", json(output), output.columns, output.heat),
        );
        tallies.push(("utilization of a cgroup", tally));

        let tick = Dur((to.since(from).0 / 50).max(1));
        let underload = || utilization::Underload::new(&options, tick, true);
        let tally = in_pieces(source, window, &lengths, underload, |output| format!("{output:?}"));
        tallies.push(("underload", tally));

        let tail = || utilization::TailSearch::new(&options);
        tallies.push(("serial tail", in_pieces(source, window, &lengths, tail, |output| format!("{output:?}"))));
        let tail = || utilization::TailSearch::new(&selecting);
        let tally = in_pieces(source, window, &lengths, tail, |output| format!("{output:?}"));
        tallies.push(("serial tail of a cgroup", tally));

        let by_name = || {
            let command = Some(Comm::new(b"hackbench"));
            path::CriticalPath::new(path::Options { command, ..Default::default() })
        };
        let listers = [
            Lister::new(RunTime::default, |output| format!("{output:?}")),
            Lister::new(schedstat::FromTrace::default, |output| format!("{output:?}")),
            // A search by name does not fit where several tasks have the name; the others are then joined without it.
            Lister::new(by_name, |output| format!("{output:?}")),
        ];
        let listed = || listers.iter().map(Lister::listed).collect::<Vec<_>>();
        let tally = in_pieces(source, window, &lengths, listed, |output| output.concat());
        tallies.push(("listed", tally));

        let tally = in_pieces(source, window, &lengths, schedstat::FromTrace::default, |output| format!("{output:?}"));
        tallies.push(("schedstat", tally));

        // The task that emits the last event is on its path at the end; the first task's may have ended before.
        let searches = || {
            let search = |pid| path::CriticalPath::new(path::Options { pid, ..Default::default() });
            (search(None), search(Some(self.last)), search(Some(self.first)))
        };
        let tally = in_pieces(source, window, &lengths, searches, |output| format!("{output:?}"));
        tallies.push(("path", tally));

        let (topology, all) = (pairs(&self.cpus), sched::ChosenCpus::default());
        let has = |_: &str, _: &str| true;
        let migrations = || {
            let balance = events::Balance::new(&topology, &all, from, to).listing(true);
            (balance, events::Cost::new(&topology), events::Funnels::new(has))
        };
        let tally = in_pieces(source, window, &lengths, migrations, |(balance, cost, funnel)| {
            format!("{} {} {}", json(balance), json(cost), json(funnel))
        });
        tallies.push(("migrations", tally));

        let scope = view::Scope::of_trace(from, to, &self.cpus, 0);
        let index = || view::Indexer::new(&scope);
        let tally = in_pieces(source, window, &lengths, index, |index| {
            let mut bytes = Vec::new();
            index.write(0, &mut bytes).expect("memory");
            bytes.into_iter().map(char::from).collect()
        });
        tallies.push(("index of view", tally));

        tallies.push(("rows of export", self.rows()));
        tallies.push(("by group", self.by_group()));

        let source = &mut self.source;
        let even = |task: &sched::Task, _: &sched::SchedState| task.pid.0 % 2 == 0;
        for selects in self.selections.clone() {
            let tasks = selects.then_some(&even as &sched::Chosen<'_>);
            let options = running_waiting::Options {
                from,
                to,
                zero: from,
                panels: halves(&self.cpus),
                cpus: shown.clone(),
                all_cpus: Vec::new(),
                group_name: String::new(),
                per_cpu: true,
                tasks,
                which: "some",
                affinity: self.affinity.clone().map(Arc::new),
                queued: None,
            };
            let tally = in_pieces(
                source,
                window,
                &lengths,
                || running_waiting::RunningWaiting::new(&options),
                |output| format!("{} {:?}", json(output), output.rows),
            );
            tallies.push(("running-waiting", tally));

            let (cpus, affinity) = (sched::ChosenCpus::default(), self.affinity.clone().map(Arc::new));
            let ask = sched::QueuedAsk { tasks, cpus, affinity };
            let sums = || sched::QueuedSums::new(ask.clone());
            tallies.push(("queued time", in_pieces(source, window, &lengths, sums, |times| format!("{times:?}"))));

            for waiters in [workcons::Waiters::All, workcons::Waiters::Movable, workcons::Waiters::Application] {
                let topology = if tasks.is_some() { pairs(&self.cpus) } else { Topology::default() };
                let (application, strips) = (tasks, Some((from, to)));
                let (affinity, throttling) = (self.affinity.as_ref(), true);
                let capacities = workcons::Capacities::of(self.cpus.iter().map(|cpu| (*cpu, 512 << (cpu.0 % 2))));
                let options = workcons::Options {
                    zero: from,
                    unbalanced: true,
                    waiters,
                    topology,
                    application,
                    strips,
                    affinity,
                    throttling,
                    capacities,
                    ..Default::default()
                };
                let tally = in_pieces(
                    source,
                    window,
                    &lengths,
                    || workcons::WorkConservation::new(&options),
                    |output| {
                        format!(
                            "{} {:?} {:?} {:?}",
                            json(output),
                            output.strips,
                            output.throttling.as_ref().map(|all| (all.by_cpu(), all.by_task(), all.by_cgroup())),
                            output.violation.as_ref().map(|v| &v.longest)
                        )
                    },
                );
                tallies.push(("workcons", tally));
            }

            for (by, strips) in [(None, Some((from, to))), (Some(why::Grouping::Task), None)] {
                let topology = if tasks.is_some() { pairs(&self.cpus) } else { Topology::default() };
                let waiters = match (by.is_some(), tasks) {
                    (true, _) => workcons::Waiters::Movable,
                    (false, Some(_)) => workcons::Waiters::Application,
                    (false, None) => workcons::Waiters::All,
                };
                let application = tasks;
                let affinity = self.affinity.as_ref();
                let options = workcons::Options {
                    zero: from,
                    waiters,
                    topology,
                    application,
                    strips,
                    affinity,
                    ..Default::default()
                };
                let tally = in_pieces(
                    source,
                    window,
                    &lengths,
                    || (why::Why::new(&options).by(by.clone()), why::Homes::default()),
                    |(output, homes)| {
                        let bound = homes.bound(output.by.clone().unwrap_or_default());
                        format!("{} {:?} {bound:?}", json(output), output.over_time)
                    },
                );
                tallies.push(("why", tally));
            }

            for by in [wakers::PartiesBy::Command, wakers::PartiesBy::Task] {
                let topology = pairs(&self.cpus);
                let options = wakers::Options { tasks, by, topology, ..wakers::Options::default() };
                let tally = in_pieces(source, window, &lengths, || wakers::Wakers::new(&options), json);
                tallies.push(("wakers", tally));
            }

            let options = jobs::Options { tasks, worst: 5, zero: from, draws: true, ..jobs::Options::default() };
            let by = if tasks.is_some() { offcpu::OffCpuBy::Waker } else { offcpu::OffCpuBy::Switch };
            let of_stacks = offcpu::Options { tasks, by, ..offcpu::Options::default() };
            let logged = || (jobs::Jobs::new(&options), offcpu::OffCpu::new(&of_stacks));
            tallies.push(("jobs, offcpu", in_pieces(source, window, &lengths, logged, |output| format!("{output:?}"))));
            let options = neighbours::Options { tasks, ..neighbours::Options::new(neighbours::By::Command) };
            let neighbours = || (neighbours::Matrix::new(&options), neighbours::PressureMeter::new(&options.cgroups));
            let tally = in_pieces(source, window, &lengths, neighbours, |output| format!("{output:?}"));
            tallies.push(("neighbours", tally));

            for by in [fairness::GroupBy::Task, fairness::GroupBy::Parent] {
                let interval = Dur((to.since(from).0 / 5).max(1));
                let options = fairness::Options { tasks, by, interval, ..fairness::Options::new(from, to) };
                let tally = in_pieces(
                    source,
                    window,
                    &lengths,
                    || fairness::Fairness::new(&options),
                    |output| {
                        let lengths = [&output.runs, &output.waits].map(|lengths| lengths.parts(128));
                        format!("{} {lengths:?}", json(output))
                    },
                );
                tallies.push(("fairness", tally));
            }

            for by in [latency::TasksBy::Command, latency::TasksBy::Task] {
                let options = latency::Options { tasks, by, worst: 3, zero: from, ..latency::Options::default() };
                let tally = in_pieces(
                    source,
                    window,
                    &lengths,
                    || latency::Latency::new(&options),
                    |output| {
                        format!("{} {:?}", json(output), output.lengths.each_ref().map(|lengths| lengths.parts(128)))
                    },
                );
                tallies.push(("latency", tally));
            }
        }
        tallies
    }
}

impl<S: EventSource<Error: Debug>> Compared<S> {
    /// Compares the rows of all tables of `export` that come from the state.
    fn rows(&mut self) -> PieceTally {
        use export::FactTable::{Episode, Idle, Migration, OnCpu, Wait, Wakeup};
        let (from, to, all) = (self.from, self.to, sched::ChosenCpus::default());
        let logs = [Episode, Idle, Migration, OnCpu, Wait, Wakeup].map(|table| (table, Rows::default()));
        let add = |output: export::Output, (table, rows): &(export::FactTable, Rows)| {
            output.with(*table, Box::new(Rows(Arc::clone(&rows.0))))
        };
        let output = logs.iter().fold(export::Output::default(), add);
        let tables = export::Tables::new(&output);
        let affinity = self.affinity.as_ref();
        let options = workcons::Options { zero: from, topology: pairs(&self.cpus), affinity, ..Default::default() };
        let waits = latency::Options { zero: from, topology: pairs(&self.cpus), ..latency::Options::default() };
        let episode = |episode: &workcons::ListedEpisode| tables.episode(episode);
        let (wait, idle) = (|case: &why::ListedCase<_, _>| tables.wait(case), |case: &_| tables.idle(case));
        let cases = why::Cases { wait: &wait, stretch: &idle };
        let wakeup = |listed: &latency::ListedWait| tables.wakeup(listed);
        let migration = |listed: &events::ListedMigration| tables.migration(listed);
        let analyses = || {
            let balance = events::Balance::new(&options.topology, &all, from, to).each(&migration);
            let conserved = workcons::WorkConservation::new(&options).listing(&episode);
            let runs = export::TaskRuns::new(&tables, all.clone());
            let listed = (latency::Latency::new(&waits).listing(&wakeup), runs);
            (export::RestartRows::new(&output), (conserved, balance), listed, why::Why::new(&options).listing(&cases))
        };
        in_pieces(&mut self.source, self.window, &self.lengths, analyses, |(_, (episodes, _), (_, runs), reasons)| {
            let rows = logs.each_ref().map(|(_, rows)| std::mem::take(&mut *rows.0.lock().expect("rows")));
            format!("{} {runs} {} {rows:#?}", json(episodes), json(reasons))
        })
    }

    /// Compares the sums by scheduling parameters.
    fn by_group(&mut self) -> PieceTally {
        let policy = |pid: i32| [sched_policy(0), sched_policy(5), None][pid.unsigned_abs() as usize % 3];
        let changes: Vec<_> = (0..12).map(|pid| (Ts(i64::from(pid % 2) * 500), Pid(pid), policy(pid))).collect();
        let groups = || membership::TaskGroups::of_params(membership::ParamsHistory::of_changes(&changes));
        let (groups, shown) = (groups(), self.cpus.iter().map(|cpu| (*cpu, None)).collect::<Vec<_>>());
        let options = workcons::Options::default();
        let analyses = || (utilization::GroupTimes::new(&groups, &shown), workcons::SchedIdle::new(&options, &groups));
        in_pieces(&mut self.source, self.window, &self.lengths, analyses, |output| format!("{output:?}"))
    }
}

fn sched_policy(number: i64) -> Option<membership::SchedPolicy> {
    membership::SchedPolicy::of_number(number)
}

/// The rows of a table.
#[derive(Default)]
struct Rows(Arc<Mutex<Vec<String>>>);

impl export::TableWriter for Rows {
    fn begin(&mut self, _: Option<&str>, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn restart(&mut self) -> io::Result<()> {
        self.0.lock().expect("rows").clear();
        Ok(())
    }

    fn row(&mut self, values: &[export::Value<'_>]) -> io::Result<()> {
        self.0.lock().expect("rows").push(format!("{values:?}"));
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

fn json(report: &impl serde::Serialize) -> String {
    serde_json::to_string(report).expect("a document")
}

/// A machine with two CPUs in each node.
fn pairs(cpus: &[Cpu]) -> Topology {
    let mut topology = Topology::default();
    for cpu in cpus {
        let node = Some(cpu.0 / 2);
        topology.set(*cpu, sched::topology::CpuLocation { node, ..Default::default() });
    }
    topology
}

/// Lists of the CPUs that every third task may use, one or two of each.
fn some_lists(cpus: &[Cpu], pids: &BTreeSet<Pid>, seed: u64) -> Affinity {
    let mut affinity = Affinity::new(cpus.iter().copied());
    for (nth, pid) in (seed..).zip(pids).filter(|(nth, _)| nth % 3 == 0) {
        for by in 0..1 + nth % 2 {
            let takes = |cpu: &Cpu| (u64::from(cpu.0) + nth / 3 + by) % 3 != 0;
            affinity.add(*pid, &cpus.iter().copied().filter(takes).collect::<CpuSet>());
        }
    }
    affinity
}

/// The same events by a clock that stands still for this long: events of several CPUs share an instant, and have the order of a source.
fn by_coarse_clock(events: &[SchedEvent], still: Dur) -> Vec<SchedEvent> {
    let still = still.0.max(1) as i64;
    let at = |event: &SchedEvent| Ts(event.ts.0.div_euclid(still).saturating_mul(still));
    let mut events: Vec<SchedEvent> = events.iter().map(|event| SchedEvent { ts: at(event), ..*event }).collect();
    events.sort_by_key(|event| (event.ts, event.cpu));
    events
}

/// Two panels, or one.
fn halves(cpus: &[Cpu]) -> Vec<running_waiting::Panel> {
    let panels = cpus.chunks(cpus.len().div_ceil(2).max(1));
    panels.map(|cpus| running_waiting::Panel { name: String::new(), cpus: cpus.to_vec() }).collect()
}

/// Adds the tallies of a trace to those of others.
fn add(sums: &mut Vec<(&'static str, PieceTally)>, more: Vec<(&'static str, PieceTally)>) {
    for (name, tally) in more {
        match sums.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += tally,
            None => sums.push((name, tally)),
        }
    }
}

/// Most pieces must have been joined: otherwise nothing is proven, and nothing gained.
fn assert_joined(sums: &[(&'static str, PieceTally)], least_percent: usize) {
    for (name, PieceTally { pieces, joined }) in sums {
        assert!(
            100 * joined >= least_percent * pieces && *pieces > 0,
            "{name}: {joined} of {pieces} pieces were joined"
        );
    }
}

fn compared<'e>(events: &'e [SchedEvent], window: Window, lengths: &[usize]) -> Compared<&'e [SchedEvent]> {
    let (first, last) = events.first().zip(events.last()).map_or((Ts(0), Ts(0)), |(a, b)| (a.ts, b.ts));
    let (from, to) = window.within(first, last);
    let mut cpus: Vec<Cpu> = events.iter().map(|event| event.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let (lengths, selections) = (lengths.to_vec(), vec![false, true]);
    let pids = || events.iter().map(|event| event.pid).filter(|pid| !pid.is_idle());
    let (first, last) = (pids().next().unwrap_or(Pid(1)), pids().next_back().unwrap_or(Pid(1)));
    Compared { source: events, cpus, first, last, from, to, window, lengths, affinity: None, selections }
}

/// Takes seconds: only random histories with throttling, affinity and losses, cut at any event, reach each way in which an analysis is joined.
#[test]
fn simulated_runs_are_the_same_in_pieces() {
    let mut sums = Vec::new();
    // The first is throttled and has affinity, the second has neither.
    let seeds: Vec<u64> = match effort() {
        Effort::Quick => vec![0, 7],
        Effort::Thorough => (0..40).step_by(5).collect(),
        Effort::Everything => (0..40).collect(),
    };
    for seed in seeds {
        let steps = if effort() == Effort::Quick { 150 } else { 300 };
        let sim = Simulation::any(seed, 1 + (seed % 9) as u32, steps);
        let (lossy, _) = sim.lossy(seed);
        let at = |events: &[SchedEvent], tenths: usize| Some(events.get(events.len() * tenths / 10)?.ts);
        // A third of the runs are throttled at random, with losses and without.
        let is_throttled = seed % 3 == 0;
        let [whole, lossy] = [&sim.events, &lossy].map(|events| match is_throttled {
            true => with_throttling(events, seed),
            false => events.clone(),
        });
        let extent = whole.first().zip(whole.last()).map_or(Dur(0), |(first, last)| last.ts.since(first.ts));
        let coarse = by_coarse_clock(&lossy, Dur(extent.0 / 60));
        for events in [&whole, &lossy, &coarse] {
            let inner = Window { from: at(events, 3), to: at(events, 7) };
            let lengths = [1, 2 + seed as usize % 5, 61];
            for window in [Window::default(), inner] {
                let plain = compared(events, window, &lengths);
                let pids = events.iter().map(|event| event.pid).filter(|pid| !pid.is_idle()).collect();
                let affinity = (seed % 2 == 0).then(|| some_lists(&plain.cpus, &pids, seed));
                add(&mut sums, Compared { affinity, ..plain }.all());
            }
        }
    }
    assert_joined(&sums, if effort() == Effort::Quick { 20 } else { 80 });
    eprintln!("{sums:?}");
}

/// Takes seconds: the fuzzer's events contradict the state, which no kernel and no simulated run does, so that pieces are refused and followed again.
#[test]
fn contradictory_events_are_the_same_in_pieces() {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/state");
    let mut files: Vec<_> =
        folder.read_dir().expect("the seeds of the fuzzer").map(|entry| entry.expect("a file").path()).collect();
    // The place of a file in the list gives the lengths of its pieces.
    files.sort();
    seeds.extend(files.iter().map(|file| std::fs::read(file).expect("bytes")));
    let random = match effort() {
        Effort::Quick => 2,
        Effort::Thorough => 12,
        Effort::Everything => 200,
    };
    for seed in 0..random {
        let mut rng = Rng::new(seed);
        seeds.push((0..400 + 100 * seed % 900).map(|_| rng.below(256) as u8).collect());
    }
    let mut sums = Vec::new();
    for (nth, bytes) in seeds.iter().enumerate() {
        let events = any_events(bytes);
        if !events.is_empty() {
            add(&mut sums, compared(&events, Window::default(), &[1 + nth % 9]).all());
            let coarse = by_coarse_clock(&events, Dur(500));
            add(&mut sums, compared(&coarse, Window::default(), &[2 + nth % 13]).all());
        }
    }
    // Much of such events is refused: it contradicts what a piece concludes from the state.
    assert_joined(&sums, 1);
    eprintln!("{sums:?}");
}

/// Takes seconds: recordings have what the simulator has not, such as CPUs that go offline and moves by stoppers, at the border of a piece.
/// Two tasks of one PID name it in turns: found by 200 random histories, most of which no run tests.
#[test]
fn an_exec_by_a_thread_names_its_path_the_same_in_pieces() {
    let task = |pid, name: &[u8]| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name) };
    let at = |ts, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(5), pid: Pid(pid), flags: 0, kind };
    let exec = EventKind::Exec { pid: Pid(4), old_pid: Pid(3), program: Comm::new(b"program") };
    let events = [
        at(10, 8, EventKind::WakeupNew { task: task(4, b"main"), target: Cpu(0) }),
        at(20, 1, EventKind::Lost { count: None }),
        at(30, 3, exec),
        at(40, 6, EventKind::Offline),
    ];
    let search = || path::CriticalPath::new(path::Options::default());
    let tally = in_pieces(&mut &events[..], Window::default(), &[1, 1, 2, 3], search, |path| {
        assert_eq!(path.task.map(|task| task.command), Some(Comm::new(b"program")));
        format!("{path:?}")
    });
    assert!(tally.pieces > 0, "{tally:?}");
}

#[test]
fn recordings_are_the_same_in_pieces() {
    let mut sums = Vec::new();
    const TEST: &str = "pieces::recordings_are_the_same_in_pieces";
    for path in support::recordings_in_part(if effort() == Effort::Quick { 3 } else { 6 }) {
        let number = support::seed(TEST, &path);
        let trace = Trace::open(&path, Options::default()).expect("a readable recording");
        let Some((from, to)) = trace.extent().filter(|_| trace.has_time().is_ok()) else { continue };
        let window = Window::default();
        let source = trace.events().expect("events");
        let is_small = std::fs::metadata(&path).expect("a file").len() < 2_000_000;
        let (mut lengths, mut selections) =
            (if is_small { vec![97, 1_999] } else { vec![14_999, 60_013] }, vec![false, true]);
        // Each recording in pieces of each length and with each selection takes some minutes.
        if effort() < Effort::Everything {
            lengths.remove(number as usize % 2);
            selections.remove(number as usize / 2 % 2);
        }
        let cpus = trace.observed();
        let pids: BTreeSet<Pid> = trace.saved_names().keys().copied().filter(|pid| !pid.is_idle()).collect();
        let (first, last) = pids.first().copied().zip(pids.last().copied()).unwrap_or((Pid(1), Pid(1)));
        let affinity = number.is_multiple_of(3).then(|| some_lists(&cpus, &pids, number % 1000));
        let tallies = Compared { source, cpus, first, last, from, to, window, lengths, affinity, selections }.all();
        eprintln!("{}: {tallies:?}", path.display());
        add(&mut sums, tallies);
    }
    assert_joined(&sums, 50);
}

#[test]
fn commands_print_the_same_in_pieces() {
    let trace = support::fixture("hackbench-7.2.dat");
    let run = |command: &str, pieces: Option<&str>| {
        let mut program = std::process::Command::new(support::program());
        program.arg(command).arg(&trace).args(["-q", "--json"]);
        program.envs(pieces.map(|events| ("SCHEDVIZ_PIECES", events)));
        let output = program.output().expect("the program runs");
        assert!(output.status.success() && !output.stdout.is_empty(), "{command}: {output:?}");
        output.stdout
    };
    let commands =
        "utilization running-waiting workcons why path latency fairness migrations findings jobs neighbours offcpu";
    for command in commands.split(' ') {
        assert!(run(command, Some("500")) == run(command, None), "{command}");
    }
}

#[test]
fn a_report_is_the_same_in_pieces() {
    let folder = support::scratch("report-in-pieces");
    let files = |pieces: Option<&str>| -> BTreeMap<OsString, Vec<u8>> {
        let out = folder.join("report");
        let mut program = std::process::Command::new(support::program());
        program.arg("report").arg(support::fixture("affine.dat")).arg("-o").arg(&out).arg("-q");
        program.envs(pieces.map(|events| ("SCHEDVIZ_PIECES", events)));
        let output = program.output().expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        let entries = out.read_dir().expect("a folder").map(|entry| entry.expect("a file"));
        let files = entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).expect("a file"))).collect();
        std::fs::remove_dir_all(&out).expect("a folder");
        files
    };
    let (divided, whole) = (files(Some("50")), files(None));
    assert!(divided == whole && whole.len() > 10, "{:?} {:?}", divided.keys(), whole.keys());
}
