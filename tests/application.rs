//! The application: a command that hardly ran is none, chosen tasks take its place, and servers work for their clients
//! (`docs/read-the-numbers.md#application`).

use crate::support::{Ran, fixture, schedviz, scratch, unwrapped};
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use serde_json::Value;
use std::path::{Path, PathBuf};
use testkit::TraceBuilder;

const ASLEEP: PrevState = PrevState::asleep(1);

fn task(pid: i32, name: &str) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

fn idle(cpu: u32) -> TaskRef {
    TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(format!("swapper/{cpu}").as_bytes()) }
}

/// The events of a recording, made in the order of time.
#[derive(Default)]
struct Events(Vec<SchedEvent>);

impl Events {
    /// An event at an instant in microseconds, on a CPU, while a task runs there.
    fn at(&mut self, us: i64, cpu: u32, pid: i32, kind: EventKind) {
        self.0.push(SchedEvent { ts: Ts(us * 1000), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind });
    }

    fn switch(&mut self, us: i64, cpu: u32, prev: TaskRef, state: PrevState, next: TaskRef) {
        self.at(us, cpu, prev.pid.0, EventKind::Switch { prev, state, next });
    }

    fn exec(&mut self, us: i64, cpu: u32, pid: i32, program: &str) {
        let program = Comm::new(program.as_bytes());
        self.at(us, cpu, pid, EventKind::Exec { pid: Pid(pid), old_pid: Pid(pid), program });
    }

    fn fork(&mut self, us: i64, cpu: u32, parent: i32, child: TaskRef) {
        let kind = EventKind::Fork { parent: Pid(parent), child: child.pid, child_comm: child.comm };
        self.at(us, cpu, parent, kind);
        self.at(us, cpu, parent, EventKind::WakeupNew { task: child, target: Cpu(cpu) });
    }

    /// A task that runs on `cpu` wakes another one on `target`, in the context of a softirq with `flags` 0x10.
    fn wake(&mut self, us: i64, (cpu, pid): (u32, i32), task: TaskRef, target: u32, flags: u8) {
        for kind in [EventKind::Waking { task, target: Cpu(target) }, EventKind::Wakeup { task, target: Cpu(target) }] {
            self.0.push(SchedEvent { ts: Ts(us * 1000), cpu: Cpu(cpu), pid: Pid(pid), flags, kind });
        }
    }

    fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let mut events = self.0.clone();
        events.sort_by_key(|event| event.ts);
        let path = folder.join(name);
        std::fs::write(&path, TraceBuilder::default().events(&events).build()).expect("written");
        path
    }
}

fn ran(command: &str, path: &Path, more: &[&str]) -> Ran {
    schedviz(&[&[command, path.to_str().expect("a path")], more].concat())
}

fn json(command: &str, path: &Path, more: &[&str]) -> Value {
    let ran = ran(command, path, &[more, &["--json", "-q"]].concat()).success();
    serde_json::from_str(&ran.text()).expect("JSON")
}

/// The CPU time of the application in microseconds; nothing where it is unknown.
fn app_us(path: &Path, more: &[&str]) -> Option<i64> {
    json("utilization", path, more)["all"]["app_ns"].as_i64().map(|ns| ns / 1000)
}

/// Ten seconds: `sleep` executes on CPU 0 after 1 ms, and runs for 1 ms, then as often as `wakeups` says for 20 µs. On CPU 1 a hog
/// of another program runs all the time, but for a microsecond each 100 ms.
fn sleeping(wakeups: i64) -> Events {
    let (sleep, hog) = (task(70, "sleep"), task(50, "hog"));
    let mut events = Events::default();
    events.switch(0, 0, idle(0), PrevState::RUNNABLE, task(70, "schedviz"));
    events.switch(0, 1, idle(1), PrevState::RUNNABLE, hog);
    events.exec(1_000, 0, 70, "sleep");
    events.switch(2_000, 0, sleep, ASLEEP, idle(0));
    for n in 0..wakeups {
        let us = 10_000 + n * (9_900_000 / wakeups);
        events.wake(us, (0, 0), sleep, 0, 0x08);
        events.switch(us + 10, 0, idle(0), PrevState::RUNNABLE, sleep);
        events.switch(us + 30, 0, sleep, ASLEEP, idle(0));
    }
    for n in 1..100 {
        events.switch(n * 100_000, 1, hog, ASLEEP, idle(1));
        events.wake(n * 100_000, (1, 0), hog, 1, 0x08);
        events.switch(n * 100_000 + 1, 1, idle(1), PrevState::RUNNABLE, hog);
    }
    events.switch(10_000_000, 1, hog, ASLEEP, idle(1));
    events
}

#[test]
fn a_command_that_hardly_ran_is_no_application() {
    let folder = scratch("application-sleep");
    let path = sleeping(5).write(&folder, "sleep.dat");
    let findings = ran("findings", &path, &[]).success();
    let words = "sleep.dat: the traced command hardly ran (2.1 ms of CPU time in 10.0 s): there is no application, and costs are \
                 those of the machine; choose one with --application";
    assert!(findings.stderr.contains(words), "{}", findings.stderr);
    let text = findings.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("(application: none, since the traced command hardly ran (2.1 ms of CPU time"), "{text}");
    assert!(!text.contains("outside of the application"), "{text}");
    assert!(json("findings", &path, &[])["path"].is_null());
    assert_eq!(app_us(&path, &[]), None);
    let refused = ran("path", &path, &[]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("there is no path of the application: the traced command hardly ran"),
        "{}",
        refused.stderr
    );
    let conserved = ran("workcons", &path, &["--waiters", "application"]).success().text();
    assert!(conserved.contains("there is no application: the traced command hardly ran"), "{conserved}");
    // The command all the same: 2 ms before its first sleep and 5 × 20 µs.
    assert_eq!(app_us(&path, &["--application", "command"]), Some(2_100));
    assert_eq!(json("path", &path, &["--application", "command"])["task"]["pid"], 70);
    // A part has the judgement of the whole.
    let part = folder.join("part.dat");
    ran("cut", &path, &["-o", part.to_str().expect("a path"), "--min", "1", "--max", "9"]).success();
    assert_eq!(app_us(&part, &[]), None);
    assert_eq!(app_us(&path, &["--min", "1", "--max", "9"]), None);
    // A periodic command needs as little, and is an application.
    let path = sleeping(200).write(&folder, "periodic.dat");
    assert_eq!(app_us(&path, &[]), Some(2_000 + 200 * 20));
}

/// A second: process 50 runs on CPU 0 for 500 ms and forks 51, which runs on CPU 1 for 300 ms. Another task with the number
/// 51, forked by 9, runs there for 100 ms after it; 9 has 10 ms.
fn reused() -> Events {
    let (server, worker, other, shell) = (task(50, "server"), task(51, "server"), task(51, "cron"), task(9, "crond"));
    let mut events = Events::default();
    events.switch(0, 0, idle(0), PrevState::RUNNABLE, server);
    events.switch(0, 1, idle(1), PrevState::RUNNABLE, shell);
    events.fork(1_000, 0, 50, TaskRef { pid: Pid(51), ..worker });
    events.switch(5_000, 1, shell, ASLEEP, idle(1));
    events.at(99_000, 0, 50, EventKind::Migrate { task: worker, orig: Cpu(0), dest: Cpu(1) });
    events.switch(100_000, 1, idle(1), PrevState::RUNNABLE, worker);
    events.switch(400_000, 1, worker, PrevState::DEAD, idle(1));
    events.switch(500_000, 0, server, ASLEEP, idle(0));
    events.wake(600_000, (1, 0), shell, 1, 0x08);
    events.switch(600_000, 1, idle(1), PrevState::RUNNABLE, shell);
    events.fork(604_000, 1, 9, other);
    events.switch(605_000, 1, shell, ASLEEP, other);
    events.switch(705_000, 1, other, PrevState::DEAD, idle(1));
    events.switch(1_000_000, 0, idle(0), PrevState::RUNNABLE, task(3, "late"));
    events
}

#[test]
fn chosen_tasks_and_their_children_are_the_application() {
    let folder = scratch("application-chosen");
    let path = reused().write(&folder, "reused.dat");
    let app = |choice: &str| app_us(&path, &["--application", choice]);
    assert_eq!(app_us(&path, &[]), None, "there is no traced command");
    assert_eq!(app("pid:50"), Some(800_000), "with its child, and not with the later task of the child's number");
    assert_eq!(app("comm:server"), Some(800_000));
    assert_eq!(app("tasks:^cron"), Some(110_000), "9 and its child, which is the second 51");
    assert_eq!(app("comm:cron"), Some(100_000), "the second 51 alone");
    assert_eq!(app("none"), None);
    assert_eq!(json("path", &path, &["--application", "comm:server"])["task"]["pid"], 50);
    let findings = ran("findings", &path, &["--comm", "server"]).success().text();
    assert!(
        findings.contains("the critical path of server 50") && findings.contains("--application comm:server"),
        "{findings}"
    );
    assert!(json("findings", &path, &["--no-application"])["path"].is_null());
    let missing = ran("findings", &path, &["--pid", "77"]);
    assert!(
        missing.code == Some(1) && missing.stderr.contains("--application pid:77: there is no such task"),
        "{}",
        missing.stderr
    );
    let both = ran("findings", &path, &["--pid", "50", "--application", "none"]);
    assert_eq!(both.code, Some(1), "{}", both.stderr);
    // A part that begins between the two lives of 51.
    let part = folder.join("part.dat");
    ran("cut", &path, &["-o", part.to_str().expect("a path"), "--min", "0.45", "--application", "comm:cron"]).success();
    assert_eq!(app_us(&part, &[]), Some(100_000));
    assert_eq!(app_us(&part, &["--application", "pid:50"]), Some(50_000));
}

/// A second: `client` executes on CPU 0 and asks the `server` on CPU 1 five times, which needs 50 ms for each answer; the first
/// time wakes it in a softirq. Once it wakes `logger`, which wakes it. `other` runs on CPU 2.
fn client_and_server(answers: i64) -> Events {
    let (client, server, logger, other) =
        (task(70, "client"), task(50, "server"), task(60, "logger"), task(80, "other"));
    let mut events = Events::default();
    events.switch(0, 0, idle(0), PrevState::RUNNABLE, task(70, "schedviz"));
    events.switch(0, 1, idle(1), PrevState::RUNNABLE, other);
    events.switch(0, 2, idle(2), PrevState::RUNNABLE, other_named("hog"));
    events.switch(500, 1, other, ASLEEP, idle(1));
    events.exec(1_000, 0, 70, "client");
    for n in 0..answers {
        let us = 10_000 + n * 150_000;
        let flags = if n % 2 == 0 { 0x10 } else { 0 };
        events.wake(us, (0, 70), server, 1, flags);
        events.switch(us, 1, idle(1), PrevState::RUNNABLE, server);
        events.switch(us + 1_000, 0, client, ASLEEP, idle(0));
        events.wake(us + 49_000, (1, 50), client, 0, flags);
        events.switch(us + 49_000, 0, idle(0), PrevState::RUNNABLE, client);
        events.switch(us + 50_000, 1, server, ASLEEP, idle(1));
    }
    events.wake(900_000, (0, 70), logger, 1, 0);
    events.switch(900_000, 1, idle(1), PrevState::RUNNABLE, logger);
    events.wake(901_000, (1, 60), client, 0, 0);
    events.switch(910_000, 1, logger, ASLEEP, idle(1));
    events.switch(1_000_000, 2, other_named("hog"), ASLEEP, idle(2));
    events.switch(1_000_000, 0, client, ASLEEP, idle(0));
    events
}

fn other_named(name: &str) -> TaskRef {
    task(81, name)
}

#[test]
fn a_server_that_answers_works_for_its_client() {
    let folder = scratch("application-helpers");
    let path = client_and_server(5).write(&folder, "server.dat");
    let strict = app_us(&path, &["--strict"]).expect("known");
    let server = 5 * 50_000;
    assert_eq!(app_us(&path, &[]), Some(strict + server), "the server is part of it, the logger and the hog are not");
    let told = ran("utilization", &path, &[]).success().stderr;
    let words = "server.dat: the application: 1 task outside of its tree works for it, hand in hand with it: server (1); --strict";
    assert!(told.contains(words), "{told}");
    // Fairness sets the same tasks apart, on the whole as on a part, which has the judgement of the whole.
    let apart = |path: &Path| {
        let shares = json("fairness", path, &["--min", "0.2", "--max", "0.8"]);
        let members: Vec<(String, bool)> = shares["members"]
            .as_array()
            .expect("members")
            .iter()
            .map(|of| (of["name"].as_str().expect("a name").to_owned(), of["is_of_application"] == true))
            .collect();
        members
    };
    let part = folder.join("part.dat");
    let words = ["--min", "0.2", "--max", "0.8", "-o", part.to_str().expect("a path")];
    ran("cut", &path, &words).success();
    let whole = apart(&path);
    assert!(
        whole.contains(&("server 50".to_owned(), true)) && whole.contains(&("hog 81".to_owned(), false)),
        "{whole:?}"
    );
    assert_eq!(apart(&part), whole);
    // Those that descend are a matter of the tree.
    let forked = json("fairness", &path, &["--forked"]);
    let names: Vec<&str> =
        forked["members"].as_array().expect("members").iter().filter_map(|of| of["name"].as_str()).collect();
    assert_eq!(names, ["client 70"]);
    // Hand in hand, not once.
    let path = client_and_server(1).write(&folder, "once.dat");
    assert_eq!(app_us(&path, &[]), app_us(&path, &["--strict"]));
}

#[test]
fn the_machine_file_names_the_application_that_was_recorded() {
    let folder = scratch("application-recorded");
    let path = reused().write(&folder, "reused.dat");
    let machine = |application: &str| {
        let text = format!(
            r#"{{"schema":"schedviz/machine/1","kernel":{{}},"cpus":{{"online":"0-1"}},"scheduler":{{}},"application":{application},
            "processes":{{"50":[50,51]}},"cgroups":[{{"path":"/a/b","id":5,"threads":[9]}},{{"path":"/ab","id":6,"threads":[50]}}]}}"#
        );
        std::fs::write(folder.join("reused.machine.json"), text).expect("written");
    };
    machine(r#"{"processes":[50]}"#);
    assert_eq!(app_us(&path, &[]), Some(800_000));
    assert_eq!(app_us(&path, &["--application", "none"]), None);
    machine(r#"{"cgroup":"/a"}"#);
    assert_eq!(app_us(&path, &[]), Some(110_000), "the tasks of /a/b, not those of /ab");
    machine(r#""machine""#);
    assert_eq!(app_us(&path, &[]), None);
    let conserved = ran("workcons", &path, &["--waiters", "application"]).success().text();
    assert!(conserved.contains("the machine was recorded, not a command"), "{conserved}");
}

#[test]
fn the_tasks_that_work_for_the_application_are_named_where_their_time_is_its() {
    let trace = fixture("workload-outside-6.12.dat");
    let trace = trace.to_str().expect("UTF-8");
    let helpers = |options: &[&str]| {
        let text = unwrapped(&schedviz(&[options, &[trace, "-q"]].concat()).success().text());
        let words = text.split_once("(application: the traced command; ").map(|(_, words)| words.to_owned());
        words.and_then(|words| Some(words.split_once(')')?.0.to_owned()))
    };
    let of_findings = helpers(&["findings"]);
    let words = of_findings.as_deref().expect("tasks that work for the command");
    assert!(words.contains("outside of its tree work for it, hand in hand with it: "), "{words}");
    for options in [&["utilization"][..], &["why"], &["path"], &["neighbours", "--by", "application"]] {
        assert_eq!(helpers(options), of_findings, "{options:?}");
        assert_eq!(helpers(&[options, &["--strict"]].concat()), None, "{options:?}");
    }
}
