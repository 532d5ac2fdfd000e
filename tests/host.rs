//! A guest's recording with that of its host: which belong together, when vCPUs ran, and what that explains. The pair is built here, with a truth
//! that is known; one is recorded (`tests/vm/hostguest`): Linux 6.12.117 under nested KVM, trace-cmd 3.3.1 on the host and 3.1.6 in the guest.

use crate::support::{Scratch, root, schedviz, scratch};
use crate::view::View;
use crate::view_browser::{Server, assert_clean, open};
use crate::webdriver::Browser;
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use serde_json::Value;
use std::path::Path;
use testkit::TraceBuilder;

/// The host's clock at the start, in nanoseconds; the guest's is five seconds behind it on CPU 0, and six on CPU 1.
const START: i64 = 10_000_000_000;
const BEHIND: [i64; 2] = [5_000_000_000, 6_000_000_000];

/// The trace ids of the host's recording and of the guest's.
const IDS: (u64, u64) = (0xaaaa, 0xbbbb);

const ASLEEP: PrevState = PrevState::asleep(1);
const RUNS: PrevState = PrevState::RUNNABLE;

fn task(pid: i32) -> TaskRef {
    let comm: &[u8] = match pid {
        0 => b"swapper",
        100 => b"CPU 0/KVM",
        101 => b"CPU 1/KVM",
        200 => b"hog",
        _ => b"worker",
    };
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(comm) }
}

/// An event this many microseconds behind the start.
fn at(us: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(START + us * 1_000), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn switch(us: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    at(us, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn wakeup(us: i64, cpu: u32, by: i32, pid: i32) -> [SchedEvent; 2] {
    let waking = EventKind::Waking { task: task(pid), target: Cpu(cpu) };
    [at(us, cpu, by, waking), at(us, cpu, by, EventKind::Wakeup { task: task(pid), target: Cpu(cpu) })]
}

/// The host. Thread 100 is vCPU 0, and shares CPU 0 with a hog: by hand, it is kept from 1 to 3 ms, sleeps from 5 to 6 ms, is kept to 6.1 ms and
/// from 8 to 10 ms, 4.1 ms in all. Thread 101 is vCPU 1, has CPU 1 to itself, and sleeps from 4 to 9 ms.
fn host_events() -> Vec<SchedEvent> {
    let mut events = vec![switch(0, 0, 0, RUNS, 100), switch(0, 1, 0, RUNS, 101)];
    events.extend(wakeup(500, 0, 100, 200));
    events.extend([switch(1_000, 0, 100, RUNS, 200), switch(3_000, 0, 200, ASLEEP, 100)]);
    events.extend([switch(4_000, 1, 101, ASLEEP, 0), switch(5_000, 0, 100, ASLEEP, 0)]);
    events.extend(wakeup(6_000, 0, 0, 100));
    events.push(switch(6_100, 0, 0, RUNS, 100));
    events.extend(wakeup(7_000, 0, 100, 200));
    events.push(switch(8_000, 0, 100, RUNS, 200));
    events.extend(wakeup(9_000, 1, 0, 101));
    events.push(switch(9_000, 1, 0, RUNS, 101));
    events.extend([switch(10_000, 0, 200, ASLEEP, 100), switch(10_000, 1, 101, ASLEEP, 0)]);
    events
}

/// The guest, on the host's clock. On CPU 0 task 11 runs, and 12 waits from 0.5 to 4 ms, runs and exits at 4.5 ms; CPU 1 idles from 0.6 ms on.
fn guest_events() -> Vec<SchedEvent> {
    let mut events = vec![switch(0, 0, 0, RUNS, 11), switch(0, 1, 0, RUNS, 13)];
    events.extend(wakeup(500, 0, 11, 12));
    events.extend([switch(600, 1, 13, ASLEEP, 0), switch(4_000, 0, 11, RUNS, 12)]);
    events.push(at(4_400, 0, 12, EventKind::Exit { pid: Pid(12) }));
    events.extend([switch(4_500, 0, 12, PrevState::DEAD, 11), switch(10_000, 0, 11, ASLEEP, 0)]);
    events
}

/// The file of the host, of this trace id, with its guest of these vCPUs.
fn host(id: u64, vcpus: &[(u32, u32)], events: &[SchedEvent]) -> TraceBuilder {
    let mut guest = [b"fedora\0".as_slice(), &IDS.1.to_le_bytes(), &(vcpus.len() as u32).to_le_bytes()].concat();
    for (vcpu, pid) in vcpus {
        guest.extend([vcpu.to_le_bytes(), pid.to_le_bytes()].concat());
    }
    let options = vec![(11, id.to_le_bytes().to_vec()), (13, guest)];
    TraceBuilder { options, ..TraceBuilder::default() }.events(events)
}

/// The file of the guest, on its own clock, whose samples are this many microseconds off.
fn guest_off(us: i64) -> TraceBuilder {
    let mut shift = [IDS.0.to_le_bytes().as_slice(), &0_u32.to_le_bytes(), &2_u32.to_le_bytes()].concat();
    for offset in BEHIND {
        shift.extend(1_u32.to_le_bytes());
        [0, offset + us * 1_000, 1].iter().for_each(|number: &i64| shift.extend(number.to_le_bytes()));
    }
    let own = |event: &SchedEvent| SchedEvent { ts: Ts(event.ts.0 - BEHIND[event.cpu.index()]), ..*event };
    let events: Vec<SchedEvent> = guest_events().iter().map(own).collect();
    let options = vec![(11, IDS.1.to_le_bytes().to_vec()), (12, shift)];
    TraceBuilder { options, ..TraceBuilder::default() }.events(&events)
}

/// The file of the guest, with exact samples.
fn guest() -> TraceBuilder {
    guest_off(0)
}

const VCPUS: [(u32, u32); 2] = [(0, 100), (1, 101)];

/// A folder with the guest's file, and the host's as these bytes.
fn pair(name: &str, host: &[u8]) -> Scratch {
    let folder = scratch(name);
    std::fs::write(folder.join("guest.dat"), guest().build()).expect("written");
    std::fs::write(folder.join("host.dat"), host).expect("written");
    folder
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("a path").to_owned()
}

/// The output of a command on the guest, with the host named.
fn with_host(folder: &Path, command: &str, more: &[&str]) -> String {
    let (guest, host) = (file(folder, "guest.dat"), file(folder, "host.dat"));
    schedviz(&[&[command, &guest, "--host", &host], more].concat()).success().text()
}

fn json(folder: &Path, command: &str, more: &[&str]) -> Value {
    serde_json::from_str(&with_host(folder, command, &[&["--json"], more].concat())).expect("JSON")
}

/// The times of a vCPU, or of all: ran, halted, kept and unknown, in microseconds.
fn times(of: &Value) -> [u64; 4] {
    ["ran_ns", "halted_ns", "kept_ns", "unknown_ns"].map(|name| of[name].as_u64().expect(name) / 1_000)
}

#[test]
fn info_shows_host_and_guest() {
    let folder = pair("host-info", &host(IDS.0, &VCPUS, &host_events()).build());
    let info = json(&folder, "info", &[]);
    let found = &info["host"];
    assert_eq!((found["guest"].as_str(), found["missing"].as_array().map(Vec::len)), (Some("fedora"), Some(0)));
    assert_eq!(times(&found["vcpus"][0]), [4_900, 1_000, 4_100, 0]);
    assert_eq!(times(&found["vcpus"][1]), [5_000, 5_000, 0, 0]);
    assert_eq!(found["vcpus"][0]["command"], "CPU 0/KVM");
    assert_eq!(times(found), [9_900, 6_000, 4_100, 0]);
    assert_eq!(info["start_ns"], START, "on the host's clock");
    let text = with_host(&folder, "info", &[]);
    assert!(text.contains("with the host's of trace id 0xaaaa"), "{text}");
    let row = text.lines().find(|line| line.contains("CPU 0/KVM")).expect("the thread");
    assert!(row.contains("0.004900 s") && row.contains("0.004100 s"), "{row}");
    // The guest alone, and the host alone.
    let alone = schedviz(&["info", &file(&folder, "guest.dat")]).success().text();
    assert!(alone.contains("the guest's own (the host's with --host-time)") && !alone.contains("KVM"), "{alone}");
    let alone = schedviz(&["info", &file(&folder, "host.dat")]).success().text();
    assert!(alone.contains("fedora: 2 vCPUs by their threads, trace id 0xbbbb"), "{alone}");
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let folder = pair("host-other", &host(0xcccc, &VCPUS, &host_events()).build());
    let refused = |words: &[&str]| {
        let run = schedviz(words);
        assert_eq!(run.code, Some(1), "{words:?}");
        run.stderr
    };
    let (guest, other) = (file(&folder, "guest.dat"), file(&folder, "host.dat"));
    for command in ["info", "dat2graph", "why", "path"] {
        let why = refused(&[command, &guest, "--host", &other]);
        assert!(why.contains("trace id 0xaaaa, and this one has 0xcccc"), "{why}");
    }
    let why = refused(&["info", &other, "--host", &other]);
    assert!(why.contains("was not recorded in a guest"), "{why}");
    let folder = pair("host-swapped", &host(IDS.0, &VCPUS, &host_events()).build());
    let why = refused(&["dat2graph", &file(&folder, "host.dat"), "--host", &file(&folder, "guest.dat")]);
    assert!(why.contains("exchange the two"), "{why}");
    let without = TraceBuilder { options: vec![(11, IDS.0.to_le_bytes().to_vec())], ..TraceBuilder::default() };
    let folder = pair("host-no-guest", &without.events(&host_events()).build());
    let why = refused(&["why", &file(&folder, "guest.dat"), "--host", &file(&folder, "host.dat")]);
    assert!(why.contains("names no guest with the trace id of guest.dat (0xbbbb); its guests: none"), "{why}");
    let clock = TraceBuilder { clock: "mono".into(), ..host(IDS.0, &VCPUS, &[]) };
    let folder = pair("host-clock", &TraceBuilder { buffers: Vec::new(), ..clock }.events(&host_events()).build());
    let why = refused(&["info", &file(&folder, "guest.dat"), "--host", &file(&folder, "host.dat")]);
    assert!(why.contains("their times cannot be compared"), "{why}");
}

#[test]
fn unknown_times_of_vcpus_are_not_zero() {
    let half: Vec<SchedEvent> = host_events().into_iter().filter(|event| event.ts.0 <= START + 5_000_000).collect();
    let folder = pair("host-half", &host(IDS.0, &VCPUS, &half).build());
    let found = json(&folder, "info", &[])["host"].clone();
    assert_eq!(times(&found["vcpus"][0]), [3_000, 0, 2_000, 5_000]);
    assert_eq!(times(&found["vcpus"][1]), [4_000, 1_000, 0, 5_000]);
    assert!(found["missing"].to_string().contains("does not cover the guest's whole time"), "{found}");
    // Without its thread a vCPU is in no row, and its path is unknown.
    let folder = pair("host-one", &host(IDS.0, &VCPUS[..1], &host_events()).build());
    let alone = schedviz(&["info", &file(&folder, "host.dat")]).success().text();
    assert!(alone.contains("fedora: 1 vCPU by its thread, trace id 0xbbbb"), "{alone}");
    let found = json(&folder, "info", &[])["host"].clone();
    assert!(found["missing"].to_string().contains("no thread for vCPU 1"), "{found}");
    assert_eq!(json(&folder, "why", &[])["runs"][0]["vcpu_not_running"]["idling_unknown_ns"], 3_900_000);
    // A switch to thread 100 that is missing, at 3 ms: it may have run while it seems to be kept, up to 5 ms.
    let without = |event: &SchedEvent| event.ts.0 != START + 3_000_000;
    let fewer: Vec<SchedEvent> = host_events().into_iter().filter(without).collect();
    let folder = pair("host-unseen", &host(IDS.0, &VCPUS, &fewer).build());
    let found = json(&folder, "info", &[])["host"].clone();
    let said = "lacks 1 switch or more: a vCPU may have run where it counts as kept";
    assert!(found["missing"].to_string().contains(said), "{found}");
    // A host of another boot: nothing in common.
    let later: Vec<SchedEvent> =
        host_events().into_iter().map(|event| SchedEvent { ts: Ts(event.ts.0 + 1_000_000_000), ..event }).collect();
    let folder = pair("host-later", &host(IDS.0, &VCPUS, &later).build());
    let found = json(&folder, "info", &[])["host"].clone();
    assert_eq!(times(&found["vcpus"][0]), [0, 0, 0, 10_000]);
    // The file of the host, cut anywhere, gives an answer or a message.
    let whole = host(IDS.0, &VCPUS, &host_events()).build();
    for tenth in 1..10 {
        let folder = pair("host-cut", &whole[..whole.len() * tenth / 10]);
        let run = schedviz(&["info", &file(&folder, "guest.dat"), "--host", &file(&folder, "host.dat"), "--json"]);
        assert!(run.code == Some(0) || run.code == Some(1), "{tenth}: {}", run.stderr);
    }
}

/// What trace-cmd writes where it finds no thread: over TCP it never does.
const NO_THREADS: [(u32, u32); 2] = [(0, u32::MAX), (1, u32::MAX)];

#[test]
fn threads_without_a_place_in_the_file_are_found_by_their_names() {
    let folder = pair("host-names", &host(IDS.0, &NO_THREADS, &host_events()).build());
    let alone = schedviz(&["info", &file(&folder, "host.dat")]).success().text();
    assert!(alone.contains("fedora: the file names no thread of a vCPU, trace id 0xbbbb"), "{alone}");
    let found = json(&folder, "info", &[])["host"].clone();
    assert_eq!(
        (times(&found["vcpus"][0]), times(&found["vcpus"][1])),
        ([4_900, 1_000, 4_100, 0], [5_000, 5_000, 0, 0])
    );
    assert!(
        found["missing"].to_string().contains("no thread for vCPU 0-1: taken are those named CPU N/KVM"),
        "{found}"
    );
    // In a window without an event of a thread it is the same one.
    let folder_of_window = |min: &str| json(&folder, "dat2graph", &["--min", min, "--max", "9.5ms"])["host"].clone();
    assert_eq!(folder_of_window("9.2ms")["vcpus"][0]["pid"], 100);
    // Another guest's thread has such a name as well, or one of a vCPU that this guest does not have.
    for (pid, name) in [(300, b"CPU 0/TCG".as_slice()), (301, b"CPU 99/KVM")] {
        let other = TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name) };
        let mut events = host_events();
        let [from, to] =
            [(task(0), other), (other, task(0))].map(|(prev, next)| EventKind::Switch { prev, state: ASLEEP, next });
        events.extend([at(10_000, 1, 0, from), at(10_000, 1, pid, to)]);
        let folder = pair("host-several", &host(IDS.0, &NO_THREADS, &events).build());
        let found = json(&folder, "info", &[])["host"].clone();
        assert_eq!((times(&found), found["vcpus"].as_array().map(Vec::len)), ([0; 4], Some(0)));
        let said = format!("threads of several guests have names such as {}", String::from_utf8_lossy(name));
        assert!(found["missing"].to_string().contains(&said), "{found}");
    }
}

#[test]
fn events_of_a_kept_vcpu_show_that_the_clocks_differ() {
    let folder = pair("host-clocks", &host(IDS.0, &VCPUS, &host_events()).build());
    assert_eq!(json(&folder, "info", &[])["host"]["clock"]["within_kept"], 0);
    // The wakeup at 0.5 ms, two events, comes to lie at 2 ms; the vCPU is kept from 1 to 3 ms, and followed from the guest's first event, at 1.5 ms.
    std::fs::write(folder.join("guest.dat"), guest_off(1_500).build()).expect("written");
    let found = json(&folder, "info", &[])["host"].clone();
    assert_eq!((&found["clock"]["within_kept"], &found["clock"]["furthest_ns"]), (&2.into(), &500_000.into()));
    let missing = found["missing"].to_string();
    assert!(missing.contains("2 of ") && missing.contains("by up to 500.0 µs"), "{missing}");
}

#[test]
fn a_recorded_guest_has_as_much_time_stolen_as_its_host_kept() {
    let file = |name: &str| root().join("tests/host").join(name).to_str().expect("a path").to_owned();
    let read = |command: &str, more: &[&str]| -> Value {
        let (guest, host) = (file("guest.dat"), file("host.dat"));
        let words = [&[command, &guest, "--host", &host, "--json", "-q"], more].concat();
        serde_json::from_str(&schedviz(&words).success().text()).expect("JSON")
    };
    let info = read("info", &[]);
    let found = &info["host"];
    let vcpu = &found["vcpus"][0];
    assert_eq!((&vcpu["vcpu"], &vcpu["pid"], &vcpu["command"]), (&0.into(), &170.into(), &"CPU 0/KVM".into()));
    // The same as the guest's first event has in trace-cmd report; all others lie where the vCPU was not kept.
    assert_eq!(info["start_ns"], 20_399_813_684_u64);
    assert_eq!((&found["clock"]["events"], &found["clock"]["within_kept"]), (&3_270.into(), &0.into()));
    // Between two readings of its /proc/stat the guest counted 199 ticks of 10 ms as stolen.
    let kept = read("dat2graph", &["--min", "@21.6615", "--max", "@29.7093"])["host"]["kept_ns"].clone();
    assert!((1_960_000_000..2_020_000_000).contains(&kept.as_u64().expect("a number")), "{kept}");
}

#[test]
fn kept_vcpus_explain_the_guest() {
    let folder = pair("host-guest", &host(IDS.0, &VCPUS, &host_events()).build());
    // The violation lasts from 0.6 to 4.5 ms; one task waits all the while, vCPU 0 is kept for 2 ms of it, vCPU 1 never.
    let why = json(&folder, "why", &[])["runs"][0].clone();
    assert_eq!(why["waiting"]["total_ns"], 3_900_000);
    let found = &why["vcpu_not_running"];
    assert_eq!((&found["waiting_ns"], &found["idling_ns"]), (&2_000_000.into(), &0.into()));
    assert_eq!((&found["waiting_unknown_ns"], &found["idling_unknown_ns"]), (&0.into(), &0.into()));
    // Task 12 is queued from 0.5 to 4 ms, behind a task that did not run for 2 ms of it.
    let path = json(&folder, "path", &["--pid", "12"])["vcpu_not_running"].clone();
    assert_eq!(
        (&path["queued_ns"], &path["running_ns"], &path["unknown_ns"]),
        (&2_000_000.into(), &0.into(), &0.into())
    );
    let path = json(&folder, "path", &["--pid", "11"])["vcpu_not_running"].clone();
    assert_eq!((&path["running_ns"], &path["queued_ns"]), (&4_100_000.into(), &0.into()));
    let text = with_host(&folder, "path", &["--pid", "12"]);
    assert!(text.contains("vCPU not running") && text.contains("queued in the guest"), "{text}");
    let first = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(first.contains("; for 0.0020 s of the path the host kept the vCPU"), "{first}");
    let (table, longest) = (text.find("vCPU not running"), text.find("longest queued segments"));
    assert!(table < longest && text.find("\nNext, on ") > longest, "the next step comes last: {text}");
    // A host that keeps both all the while explains all of both sums.
    let mut events = vec![switch(-10, 0, 0, RUNS, 100), switch(-10, 1, 0, RUNS, 101)];
    events.extend([switch(-5, 0, 100, RUNS, 200), switch(-5, 1, 101, RUNS, 201)]);
    events.extend([switch(10_000, 0, 200, ASLEEP, 100), switch(10_000, 1, 201, ASLEEP, 101)]);
    let folder = pair("host-all", &host(IDS.0, &VCPUS, &events).build());
    let why = json(&folder, "why", &[])["runs"][0].clone();
    let found = &why["vcpu_not_running"];
    assert_eq!((&found["waiting_ns"], &found["idling_ns"]), (&why["waiting"]["total_ns"], &why["idling"]["total_ns"]));
}

#[test]
fn adjacent_windows_of_kept_vcpus_add_up() {
    let folder = pair("host-windows", &host(IDS.0, &VCPUS, &host_events()).build());
    let lanes = |more: &[&str]| json(&folder, "dat2graph", more)["host"].clone();
    let whole = lanes(&[]);
    assert_eq!(times(&whole), [9_900, 6_000, 4_100, 0]);
    for border in ["2ms", "3ms", "6.05ms", "9ms"] {
        let (before, after) = (lanes(&["--max", border]), lanes(&["--min", border]));
        for vcpu in 0..2 {
            let [whole, before, after] = [&whole, &before, &after].map(|part| times(&part["vcpus"][vcpu]));
            let sums: Vec<u64> = before.iter().zip(after).map(|(a, b)| a + b).collect();
            assert_eq!(sums, whole, "{border}");
        }
        let part = |more: &[&str]| {
            let found = json(&folder, "why", more)["runs"][0]["vcpu_not_running"].clone();
            found["waiting_ns"].as_u64().expect("a number")
        };
        assert_eq!(part(&["--max", border]) + part(&["--min", border]), 2_000_000, "{border}");
    }
}

#[test]
fn lanes_have_the_time_that_the_host_kept() {
    let folder = pair("host-lanes", &host(IDS.0, &VCPUS, &host_events()).build());
    let drawing = folder.join("lanes.svg");
    with_host(&folder, "dat2graph", &["-o", drawing.to_str().expect("a path")]);
    let drawn = std::fs::read_to_string(&drawing).expect("drawn");
    assert!(drawn.contains("The host (host.dat) kept vCPUs from running for 4.10 ms in all"), "{drawn}");
    assert!(drawn.contains("along the upper edge: the host kept the vCPU"));
    let plain = folder.join("plain.svg");
    let guest = file(&folder, "guest.dat");
    schedviz(&["dat2graph", &guest, "--host-time", "-o", plain.to_str().expect("a path")]).success();
    assert!(!std::fs::read_to_string(&plain).expect("drawn").contains("The host"));
    let refused = schedviz(&["dat2graph", &guest, "--host", &file(&folder, "host.dat"), "--lanes", "core"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--host is drawn CPU by CPU"), "{}", refused.stderr);
}

/// The page of the guest, with its host.
fn page(folder: &Path) -> View {
    View::with(&[&folder.join("guest.dat")], &["--host", &file(folder, "host.dat")])
}

/// The names of the intervals of a figure on the page, each with its number and its time in microseconds.
fn stretches(report: &Value) -> Vec<(&str, u64, u64)> {
    let of = |interval: &Value| interval["total_ns"].as_u64().expect("a time") / 1_000;
    let all = report["intervals"].as_array().expect("intervals").iter();
    all.map(|one| (one["name"].as_str().expect("a name"), one["count"].as_u64().expect("a number"), of(one))).collect()
}

/// What no test of the page's data shows: that the strip is drawn where it is said to be, and the tip beside it.
#[test]
fn the_strip_is_along_the_upper_edge_of_its_lane() {
    let Some(browser) = Browser::start("host-strip") else { return };
    let folder = pair("host-strip", &host(IDS.0, &VCPUS, &host_events()).build());
    let [guest, host] = ["guest.dat", "host.dat"].map(|name| folder.join(name));
    let server = Server::start(&[&guest, Path::new("--host"), &host]);
    open(&browser, &server, "d=light");
    browser.wait_for("schedviz.panes[0].trace.plots.drawn.length > 0");
    // In the topmost row of pixels of each lane's bar, and in the lowest: the nanoseconds in the colour of the strip.
    let drawn = browser.run(
        "const pane = schedviz.panes[0], s = pane.scale(), plots = pane.trace.plots; const [, look] = [...plots.looks.get(0)][0];
         const time = y => { const data = pane.context.getImageData(s.left, Math.floor(y), s.right - s.left, 1).data;
             let n = 0; for (let at = 0; at < data.length; at += 4) n += (data[at] << 16 | data[at + 1] << 8 | data[at + 2]) === look.rgb;
             return n * s.perPixel; };
         return [0, 1].flatMap(cpu => { const row = pane.layout.byCpu.get(cpu), y = pane.places().lanes + row.y - pane.trace.scroll;
             return [time(y), time(y + row.bar - 1)]; })",
    );
    let drawn: Vec<f64> = drawn.as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    let column = crate::view_browser::number(&browser, "schedviz.panes[0].scale().perPixel");
    // 4.1 ms of the first vCPU in three stretches, whose edges share their pixels with what is beside them; nothing of the other.
    assert!(drawn.len() == 4 && (drawn[0] - 4_100_000.0).abs() <= 6.0 * column, "{drawn:?}, {column}");
    assert_eq!(drawn[1..], [0.0; 3]);
    browser.run(
        "const pane = schedviz.panes[0], s = pane.scale(), box = pane.canvas.getBoundingClientRect();
         const d = pane.trace.plots.drawn[0];
         pane.canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + s.left + (2e6 - s.from) / s.perPixel, clientY: box.y + d.y + 1, bubbles: true }))",
    );
    browser.wait_for("/the host kept the vCPU/.test(document.getElementById('tip').textContent)");
    assert_clean(&browser, &server);
}

#[test]
fn the_page_has_the_time_that_the_host_kept() {
    let folder = pair("host-view", &host(IDS.0, &VCPUS, &host_events()).build());
    let view = page(&folder);
    assert_eq!(view.json("traces.json")["plots"], serde_json::json!(["vCPU not running"]));
    let head = view.json("t/0/plot/0.json");
    assert_eq!((&head["by"], &head["host"], &head["grey"]), (&"cpu".into(), &true.into(), &false.into()));
    assert!(head["about"].as_str().is_some_and(|about| about.contains("host.dat kept the vCPU")), "{head}");
    let (kept, unknown) = ("the host kept the vCPU", "not in the host's recording");
    assert_eq!(stretches(&head["report"]), [(kept, 3, 4_100), (unknown, 0, 0)]);
    // Of two CPUs for 10 ms; of a window from the middle of a stretch to that of another.
    assert_eq!(head["report"]["intervals"][0]["share_percent"], 20.5);
    let part = view.json("t/0/plot/0/numbers.json?from=2000000&to=6050000");
    assert_eq!(stretches(&part), [(kept, 2, 1_050), (unknown, 0, 0)]);
    let bar = view.json("t/0/plot/0/bar.json?lane=0&depth=0&at=2000000");
    assert_eq!((&bar["from"], &bar["to"], &bar["pid"]), (&1_000_000.into(), &3_000_000.into(), &Value::Null));
    assert_eq!((&bar["name"], &bar["label"]), (&kept.into(), &"thread CPU 0/KVM 100 of the host".into()));
    // The strip of CPU 0 alone, exact where a column is short enough.
    let block = view.json("t/0/plot/0/24/0.json");
    let rows = block["rows"].as_array().expect("rows");
    let class = &head["looks"][0]["class"];
    let strips: Vec<Value> = [(1_000, 3_000), (6_000, 6_100), (8_000, 10_000)]
        .map(|(from, to)| serde_json::json!([from * 1_000, to * 1_000, class]))
        .into();
    assert_eq!(rows.iter().map(|row| &row["lane"]).collect::<Vec<_>>(), [&head["lanes"][0]["place"]]);
    assert_eq!(view.json("t/0/plot/0/22/0.json")["rows"][0]["pieces"][0], strips[0]);
    let drawn: u64 = rows[0]["pieces"].as_array().expect("pieces").iter().map(|piece| kept_of(piece, class)).sum();
    assert_eq!(drawn, 4_100_000, "{rows:?}");
}

/// The time of a class in a piece of a block, in nanoseconds.
fn kept_of(piece: &Value, class: &Value) -> u64 {
    let number = |value: &Value| value.as_u64().expect("a number");
    match piece[2].as_array() {
        Some(shares) => shares.iter().filter(|share| share[0] == *class).map(|share| number(&share[1])).sum(),
        None if piece[2] == *class => number(&piece[1]) - number(&piece[0]),
        None => 0,
    }
}

#[test]
fn an_exported_page_has_the_strips_and_what_is_unknown() {
    let folder = pair("host-export", &host(IDS.0, &VCPUS[..1], &host_events()).build());
    let to = file(&folder, "page");
    with_host(&folder, "view", &["--export", &to]);
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(Path::new(&to).join(name)).expect(name)).expect("JSON")
    };
    let head = read("t/0/plot/0.json");
    let found = stretches(&head["report"]);
    assert_eq!(found, [("the host kept the vCPU", 3, 4_100), ("not in the host's recording", 1, 10_000)]);
    assert!(read("t/0/packs.json")["plot/0"].is_object());
    // A window adds finer tiles; the numbers are those of all of the trace.
    let to = file(&folder, "window");
    with_host(&folder, "view", &["--export", &to, "--min", "2ms", "--max", "3ms"]);
    let head = std::fs::read(Path::new(&to).join("t/0/plot/0.json")).expect("a head");
    let head: Value = serde_json::from_slice(&head).expect("JSON");
    assert_eq!(stretches(&head["report"]), found);
    for (more, words) in [
        (["--whatif", "ideal"].as_slice(), "leave --index and --whatif out"),
        (&["--index", &file(&folder, "index")], "leave --index and --whatif out"),
        (&[&file(&folder, "host.dat")], "--host needs a single trace"),
    ] {
        let refused =
            schedviz(&[&["view", &file(&folder, "guest.dat"), "--host", &file(&folder, "host.dat")], more].concat());
        assert!(refused.code == Some(1) && refused.stderr.contains(words), "{}", refused.stderr);
    }
}
