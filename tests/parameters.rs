//! Records of the calls that set scheduling parameters (`set_params`): deadline tasks and their misses, clamps of the utilization, and the runs of
//! fair tasks in the place of a real-time one.

use crate::cut::{cut, difference, outcome};
use crate::fake_tracefs::Fake;
use crate::support::{schedviz, scratch, unwrapped};
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use testkit::{Age, Buffer, TraceBuilder};

/// The number of the event of the probe.
const SET_PARAMS: u16 = 700;

/// The fields of the probe, each with its size and whether it is signed.
const FIELDS: [(&str, usize, bool); 11] = [
    ("pid", 4, true),
    ("policy", 4, true),
    ("flags", 8, false),
    ("nice", 4, true),
    ("priority", 4, false),
    ("runtime", 8, false),
    ("deadline", 8, false),
    ("period", 8, false),
    ("util_min", 4, false),
    ("util_max", 4, false),
    ("ret", 4, true),
];

const SOAK: i32 = 9;
const DEADLINE: i32 = 40;
const FIFO: i32 = 50;

fn task(pid: i32) -> TaskRef {
    let (name, prio): (&[u8], i32) = match pid {
        SOAK => (b"soak", 120),
        DEADLINE => (b"dl", -1),
        FIFO => (b"fifo", 49),
        _ => (b"swapper/0", 120),
    };
    TaskRef { pid: Pid(pid), prio, comm: Comm::new(name) }
}

/// The record of a call: its instant in microseconds, the task, the policy, the flags, runtime, deadline and period in microseconds, and the result. The
/// clamps are 128 and 512.
type Call = (i64, i32, i64, i64, [i64; 3], i64);

/// A trace of one CPU. The deadline task is released every millisecond and runs for 0.1 ms, 10 µs late, but for its third job, which takes 0.61 ms. Its
/// deadline is 0.5 ms until 6.5 ms, and 0.1 ms from then on. At 13.1 ms the FIFO task is held back for 50 µs.
fn trace() -> TraceBuilder {
    let mut builder = TraceBuilder { age: Age::Dynamic, ..TraceBuilder::default() };
    let layout = builder.layout();
    let mut fields = String::new();
    let mut at = 8;
    for (name, size, is_signed) in FIELDS {
        let (of, signed) = (if is_signed { 's' } else { 'u' }, u8::from(is_signed));
        fields += &format!("\tfield:{of}{} {name};\toffset:{at};\tsize:{size};\tsigned:{signed};\n", size * 8);
        at += size;
    }
    builder.formats.push(("lb".into(), layout.format(SET_PARAMS, "set_params", &fields)));
    let calls: [Call; 4] = [
        (5, DEADLINE, 6, 0, [200, 500, 1000], 0),
        (20, SOAK, 0, 0x60, [0; 3], 0),
        (30, FIFO, 6, 0, [200, 500, 1000], -16),
        // A call that keeps the policy.
        (6_500, DEADLINE, -1, 0, [50, 100, 1000], 0),
    ];
    let record = |(_, pid, policy, flags, [runtime, deadline, period], ret): Call| {
        let [runtime, deadline, period] = [runtime, deadline, period].map(|us| us * 1000);
        let values = [pid.into(), policy, flags, 0, 0, runtime, deadline, period, 128, 512, ret];
        let mut payload = layout.bare(SET_PARAMS, SOAK);
        for ((_, size, _), value) in FIELDS.into_iter().zip(values) {
            payload.extend(&value.to_le_bytes()[..size]);
        }
        payload
    };
    let mut records: Vec<(i64, Vec<u8>)> = calls.map(|call| (call.0, record(call))).into();
    let mut add = |us: i64, pid: i32, kind: EventKind| {
        let event = SchedEvent { ts: Ts(us * 1000), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
        records.push((us, layout.payload(&event).expect("an event with a layout")));
    };
    let switch = |prev, is_asleep, next| {
        let state = if is_asleep { PrevState::asleep(1) } else { PrevState::RUNNABLE };
        EventKind::Switch { prev: task(prev), state, next: task(next) }
    };
    let wakes = |pid| {
        let (task, target) = (task(pid), Cpu(0));
        [EventKind::Waking { task, target }, EventKind::Wakeup { task, target }]
    };
    add(0, 0, switch(0, false, SOAK));
    for job in 1..=12 {
        let (release, length) = (job * 1000, if job == 3 { 600 } else { 100 });
        wakes(DEADLINE).into_iter().for_each(|kind| add(release, SOAK, kind));
        add(release + 10, SOAK, switch(SOAK, false, DEADLINE));
        add(release + 10 + length, DEADLINE, switch(DEADLINE, true, SOAK));
    }
    wakes(FIFO).into_iter().for_each(|kind| add(13_000, SOAK, kind));
    add(13_010, SOAK, switch(SOAK, false, FIFO));
    add(13_100, FIFO, switch(FIFO, false, SOAK));
    add(13_150, SOAK, switch(SOAK, false, FIFO));
    add(13_300, FIFO, switch(FIFO, true, SOAK));
    add(14_000, SOAK, switch(SOAK, true, 0));
    records.sort_by_key(|(us, _)| *us);
    let mut ring = builder.ring();
    records.iter().for_each(|(us, payload)| ring.event(*us as u64 * 1000, payload));
    let cpus = vec![(0, ring.finish())];
    builder.buffers = vec![Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus }];
    builder
}

fn written(folder: &Path) -> PathBuf {
    let path = folder.join("params.dat");
    std::fs::write(&path, trace().build()).expect("written");
    path
}

fn report(folder: &Path, trace: &Path, command: &[&str]) -> Value {
    outcome(folder, trace, command, &[]).expect("a report")
}

#[test]
fn deadline_tasks_are_judged_by_their_parameters() {
    let folder = scratch("deadline-parameters");
    let path = written(&folder);
    let jobs = report(&folder, &path, &["jobs"]);
    let of = |pid: i32| {
        let rows = jobs["tasks"].as_array().expect("tasks");
        rows.iter().find(|row| row["pid"] == pid).expect("the task").clone()
    };
    let row = of(DEADLINE);
    assert_eq!(
        (&row["deadline_by"], &row["deadline_ns"], &row["jobs"]),
        (&json!("parameters"), &json!(100_000), &json!(12))
    );
    let latest = json!({ "runtime_ns": 50_000, "deadline_ns": 100_000, "period_ns": 1_000_000 });
    assert_eq!(row["parameters"], latest);
    // The third job, and all six behind the change of the deadline; a call that failed made no deadline task.
    assert_eq!((&row["missed"], &jobs["missed"]), (&json!(7), &json!(7)));
    assert_eq!((&of(FIFO)["deadline_ns"], of(FIFO).get("parameters")), (&Value::Null, None));
    let worst = &jobs["worst"][0];
    assert_eq!((&worst["response_ns"], &worst["deadline_ns"]), (&json!(610_000), &json!(500_000)));
    let given = report(&folder, &path, &["jobs", "--deadline", "700us"]);
    assert_eq!((&given["missed"], &given["tasks"][0]["deadline_by"]), (&json!(0), &json!("given")));
    let file = path.to_str().expect("a path");
    let text = unwrapped(&schedviz(&["jobs", file]).success().text());
    assert!(text.contains(": 7 of 12 jobs missed the deadline of their scheduling parameters"), "{text}");
    assert!(text.contains("is a deadline task: runtime 50.0 µs, deadline 100.0 µs, period 1.00 ms"), "{text}");
}

#[test]
fn classes_are_named_with_their_parameters_and_the_fair_server() {
    let folder = scratch("classes");
    let path = written(&folder);
    let fairness = report(&folder, &path, &["fairness"]);
    let members = fairness["members"].as_array().expect("members");
    let of =
        |name: &str| members.iter().find(|member| member["name"].as_str().is_some_and(|found| found.starts_with(name)));
    let deadline = of("dl").expect("the deadline task");
    assert_eq!(
        (&deadline["class"], &deadline["deadline_params"]["deadline_ns"]),
        (&json!("deadline"), &json!(100_000))
    );
    assert_eq!(of("fifo").expect("the FIFO task")["class"], "real-time");
    let runs = json!({
        "reason": "fair-server", "runs": 1, "time_ns": 50_000, "cpus": [{ "cpu": 0, "runs": 1, "time_ns": 50_000 }],
    });
    assert_eq!(fairness["fair_before_real_time"], runs);
    let file = path.to_str().expect("a path");
    let text = unwrapped(&schedviz(&["fairness", file]).success().text());
    assert!(text.contains("(runtime 50.0 µs, deadline 100.0 µs, period 1.00 ms)"), "{text}");
    assert!(
        text.contains("ran 1 time in the place of waiting real-time tasks, for 50.0 µs: the fair server"),
        "{text}"
    );
    let text = unwrapped(&schedviz(&["latency", file, "--tasks", "fifo", "--verbose"]).success().text());
    assert!(text.contains("behind soak 9 by the fair server"), "{text}");
}

#[test]
fn clamps_are_in_rows_of_parameters_and_parts_keep_all() {
    let folder = scratch("clamps");
    let path = written(&folder);
    let rows = report(&folder, &path, &["fairness", "--by", "params"]);
    let rows = rows["members"].as_array().expect("members");
    let clamped = rows.iter().find(|row| row["group"]["params"]["uclamp"] == json!({ "min": 128, "max": 512 }));
    let names: Vec<&Value> = rows.iter().map(|row| &row["name"]).collect();
    assert_eq!(clamped.expect("clamps")["name"], "SCHED_OTHER nice 0, uclamp 128 to 512", "{names:?}");
    assert_eq!(names.len(), 4, "the time before the call, and the two other tasks: {names:?}");
    // The machine file has the clamps of the start, and of tasks without a record.
    let machine = json!({
        "policies": [{ "at": "start", "tasks": { "0": [SOAK], "1": [FIFO] } }, { "at": "end", "tasks": { "0": [SOAK], "1": [FIFO] } }],
        "clamps": [{ "at": "start", "tasks": { "256-1024": [SOAK], "0-1024": [FIFO] } },
                   { "at": "end", "tasks": { "128-512": [SOAK], "0-1024": [FIFO] } }],
    });
    let mut whole =
        serde_json::to_value(machine::Machine::read(&machine::Root::at("/nonexistent"), false)).expect("JSON");
    for (key, value) in machine.as_object().expect("lists") {
        whole[key] = value.clone();
    }
    std::fs::write(folder.join("params.machine.json"), whole.to_string()).expect("written");
    let rows = report(&folder, &path, &["fairness", "--by", "params"]);
    let names: Vec<&str> =
        rows["members"].as_array().expect("members").iter().filter_map(|row| row["name"].as_str()).collect();
    for name in
        ["SCHED_OTHER nice 0, uclamp from 256", "SCHED_OTHER nice 0, uclamp 128 to 512", "SCHED_FIFO 50, uclamp from 0"]
    {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for window in [["--min", "0.0070", "--max", "0.01312"], ["--min", "0.00001", "--max", "0.0065"]] {
        let window = window.map(str::to_owned);
        let part = cut(&folder, &path, "part.dat", &window);
        for command in [&["jobs"][..], &["fairness"], &["fairness", "--by", "params"], &["latency", "--worst", "20"]] {
            let [of_whole, of_part] = [(&path, &window[..]), (&part, &[])]
                .map(|(trace, window)| outcome(&folder, trace, command, window).expect("a report"));
            assert_eq!(difference("", &of_whole, &of_part), None, "{command:?} {window:?}");
        }
    }
}

/// The policy of the running command is the one that `chrt` has given itself before it executes it; at the start it was that of the recorder's child.
#[test]
fn the_policy_of_the_command_is_read_while_it_runs() {
    let fake = Fake::new("record-policy");
    let ran = fake.record(&[], "echo $$ > number; command -v chrt >/dev/null || exit 9; exec chrt --idle 0 sleep 1");
    if ran.stderr.contains("exit status: 9") {
        return eprintln!("skipped: no chrt");
    }
    let machine = machine::Machine::open(&fake.path("new.machine.json")).expect("a machine file");
    let number = std::fs::read_to_string(fake.path("number")).expect("a PID");
    let pid = Pid(number.trim().parse().expect("a PID"));
    assert_eq!(machine.policies_of_programs().get(&pid), Some(&Some(5)), "{}", ran.stderr);
    assert!(machine.policies_at("start").any(|(of, _)| of == pid));
    let is_idle = |records_policies| machine.sched_idle(|| records_policies).of_programs.contains(&(pid, true));
    assert!(is_idle(false) && !is_idle(true));
}
