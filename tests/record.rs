//! `schedviz record` against a folder that stands in for the kernel's tracing file system.

#![cfg(target_os = "linux")]

use crate::support::{Ran, fixture, schedviz_in, scratch, stand_in};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tracedat::{Options, Trace};

/// The events of a fake kernel.
const EVENTS: [&str; 5] =
    ["sched/sched_switch", "sched/sched_waking", "sched/sched_migrate_task", "task/task_rename", "irq/softirq_entry"];

/// A folder with a fake tracefs, a fake trace-cmd that "extracts" `hackbench.dat`, and the counters of its events.
struct Fake {
    folder: PathBuf,
}

impl Fake {
    fn new(name: &str) -> Fake {
        let folder = scratch(name);
        std::fs::create_dir_all(folder.join("tracefs/instances")).expect("made");
        for event in EVENTS {
            std::fs::create_dir_all(folder.join("tracefs/events").join(event)).expect("made");
        }
        let fake = Fake { folder };
        fake.trace_cmd(&format!(
            r#"[ "$1 $2 $3 $4" = "extract -B schedviz -o" ] || exit 9; cp {} "$5""#,
            fixture("hackbench.dat").display()
        ));
        fake.count(0, 0);
        fake
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the program that stands in for trace-cmd.
    fn trace_cmd(&self, script: &str) {
        stand_in(&self.path("trace-cmd"), script);
    }

    /// Writes the kernel's counters: the events of each CPU in `hackbench.dat`, on CPU 1 this many more, and as many lost.
    fn count(&self, more: u64, lost: u64) {
        let trace = Trace::open(&fixture("hackbench.dat"), Options::default()).expect("a trace");
        for cpu in trace.counts().buffers.iter().flat_map(|buffer| &buffer.cpus) {
            let on_it = |n: u64| if cpu.cpu.0 == 1 { n } else { 0 };
            let (entries, overrun) = (cpu.events + on_it(more), on_it(lost));
            let folder = self.path(&format!("stats/cpu{}", cpu.cpu.0));
            std::fs::create_dir_all(&folder).expect("made");
            let text = format!(
                "entries: {entries}\noverrun: {overrun}\ncommit overrun: 0\nbytes: {}\ndropped events: 0\nread events: 0\n",
                40 * entries
            );
            std::fs::write(folder.join("stats"), text).expect("written");
        }
    }

    /// The arguments that record a shell script, behind which the kernel has counted.
    fn arguments(&self, more: &[&str], script: &str) -> Vec<String> {
        let script = format!(
            "if [ -d tracefs/instances/schedviz ]; then rm -rf seen; cp -r tracefs/instances/schedviz seen; cp -r stats tracefs/instances/schedviz/per_cpu; fi; {script}"
        );
        let fixed = ["record", "--tracefs", "tracefs", "--trace-cmd", "./trace-cmd", "-o", "new.dat"];
        let words = fixed.iter().chain(more).chain(&["--", "sh", "-c"]).map(|word| (*word).to_owned());
        words.chain([script]).collect()
    }

    fn record(&self, more: &[&str], script: &str) -> Ran {
        let arguments = self.arguments(more, script);
        schedviz_in(&self.folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts a recording and waits until its command runs.
    fn start(&self, script: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
        command.args(self.arguments(&[], &format!("touch running && {script}"))).current_dir(&self.folder);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program runs");
        for _ in 0..1000 {
            if self.path("running").exists() {
                return child;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = child.kill();
        panic!("the command does not run: {:?}", child.wait());
    }

    fn seen(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.path("seen").join(file)).ok()
    }

    /// Whether nothing of ours is in the kernel.
    fn is_clean(&self) -> bool {
        std::fs::read_dir(self.path("tracefs/instances")).expect("a folder").count() == 0
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

#[test]
fn a_recording_leaves_a_trace_a_machine_and_nothing_else() {
    let fake = Fake::new("record");
    let ran = fake.record(&["--irq", "--frequency", "--buffer", "2M", "-C", "mono"], "exit 7");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // While the command ran:
    assert_eq!(fake.seen("tracing_on").as_deref(), Some("1\n"));
    assert_eq!(fake.seen("buffer_size_kb").as_deref(), Some("2048\n"));
    assert_eq!(fake.seen("trace_clock").as_deref(), Some("mono\n"));
    for event in ["sched/sched_switch", "sched/sched_waking", "sched/sched_migrate_task", "task/task_rename", "irq"] {
        assert_eq!(fake.seen(&format!("events/{event}/enable")).as_deref(), Some("1\n"), "{event}");
    }
    assert_eq!(fake.seen("events/sched/sched_wakeup/enable"), None);
    // Afterwards:
    assert!(fake.is_clean());
    assert_eq!(
        std::fs::read(fake.path("new.dat")).expect("a trace"),
        std::fs::read(fixture("hackbench.dat")).expect("one")
    );
    assert!(!fake.path("new.dat.part").exists());
    let machine = std::fs::read_to_string(fake.path("new.machine.json")).expect("a machine file");
    let machine: serde_json::Value = serde_json::from_str(&machine).expect("JSON");
    let moments: Vec<&str> =
        machine["affinity"].as_array().expect("a list").iter().filter_map(|a| a["at"].as_str()).collect();
    assert_eq!(moments, ["start", "end"]);
    let total: u64 =
        Trace::open(&fixture("hackbench.dat"), Options::default()).expect("a trace").counts().buffers[0].total();
    assert_eq!(total, 7_292);
    for line in [
        "schedviz: sched:sched_wakeup does not exist on this kernel: the start of a wait is approximate\n",
        "schedviz: power:cpu_frequency does not exist on this kernel: asked for, and not recorded\n",
        "schedviz: recorded 7,292 events on 8 CPUs in ",
        "schedviz: the command failed: exit status: 7\n",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
}

/// The probes of the kernel whose type information this is are there while the command runs, and only then.
#[test]
fn probes_on_the_balancer_come_and_go() {
    let fake = Fake::new("record-why");
    std::fs::write(fake.path("tracefs/dynamic_events"), "p:other/a schedule\n").expect("written");
    let btf = fixture("btf-6.12.btf").display().to_string();
    let ran = fake.record(&["--why", "--btf", &btf], "cp tracefs/dynamic_events probes");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let probes = std::fs::read_to_string(fake.path("probes")).expect("probes");
    let accepted = std::fs::read_to_string(fixture("probes-6.12.txt")).expect("probes");
    for name in ["load_balance", "can_migrate", "detach_task", "newidle_balance_in", "newidle_balance", "idle", "swap"]
    {
        let line = accepted.lines().find(|line| line.contains(&format!(":lb/{name} "))).expect("a line");
        assert!(probes.contains(line), "{line}: {probes}");
    }
    assert_eq!(fake.seen("events/lb/enable").as_deref(), Some("1\n"));
    assert!(
        ran.stderr.contains("schedviz: probe load_balance       attempts of the balancer and the tasks moved\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_to_string(fake.path("tracefs/dynamic_events")).expect("probes"), "p:other/a schedule\n");
    assert!(fake.is_clean());
    // The compiler has inlined the function in 7.2.
    let btf = fixture("btf-7.2.btf").display().to_string();
    let ran = fake.record(&["--why", "--btf", &btf], "true");
    let missing =
        "schedviz: probe newidle_balance    missing (this kernel has no such function): the probe on going idle";
    assert!(ran.stderr.contains(missing), "{}", ran.stderr);
    std::fs::write(fake.path("cut.btf"), [0x9f, 0xeb, 1]).expect("written");
    let ran = fake.record(&["--why", "--btf", "cut.btf"], "true");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "schedviz: cut.btf: the BTF is cut off\n"));
}

#[test]
fn a_loss_is_never_silent() {
    let fake = Fake::new("record-loss");
    fake.count(0, 5000);
    let ran = fake.record(&["--quiet", "--buffer", "64", "--color", "always"], "true");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("\x1b[31mLOST\x1b[0m: 5,000 of 12,292 events (CPU 1: 5,000): buffers of 64 KiB"),
        "{}",
        ran.stderr
    );
    fake.count(12, 0);
    let ran = fake.record(&["--quiet"], "true");
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("MISSING: the counts of events differ: CPU 1: "), "{}", ran.stderr);
    std::fs::remove_dir_all(fake.path("stats")).expect("removed");
    std::fs::create_dir_all(fake.path("stats")).expect("made");
    let ran = fake.record(&["--quiet"], "true");
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("UNKNOWN: the kernel's counters could not be read"), "{}", ran.stderr);
    assert!(fake.is_clean());
}

#[test]
fn a_refusal_comes_before_any_change() {
    let fake = Fake::new("record-refused");
    let refused = |more: &[&str], why: &str| {
        let ran = fake.record(more, "touch ran");
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
        assert!(fake.is_clean() && !fake.path("ran").exists() && !fake.path("new.dat").exists());
    };
    refused(&["-e", "sched:nothing"], "-e sched:nothing: this kernel has no such event");
    refused(&["--buffer", "64X"], "a size is a number of KiB");
    let top = fake.path("tracefs/per_cpu/cpu3");
    std::fs::create_dir_all(&top).expect("made");
    std::fs::write(top.join("stats"), "entries: 371\n").expect("written");
    refused(&[], "tracefs's own buffer is in use, with 371 recorded events; trace-cmd extract would take its events");
    std::fs::remove_file(top.join("stats")).expect("removed");
    let enabled = fake.path("tracefs/set_event");
    std::fs::write(&enabled, "irq:irq_handler_entry\nirq:irq_handler_exit\n").expect("written");
    refused(&[], "tracefs's own buffer is in use, with 2 enabled events;");
    std::fs::write(&enabled, "").expect("written");
    std::fs::write(fake.path("tracefs/current_tracer"), "function\n").expect("written");
    refused(&[], "tracefs's own buffer is in use, with the tracer function;");
    std::fs::write(fake.path("tracefs/current_tracer"), "nop\n").expect("written");
    std::fs::remove_file(fake.path("trace-cmd")).expect("removed");
    refused(&[], "./trace-cmd is not installed");
    fake.trace_cmd("exit 1");
    std::fs::create_dir(fake.path("tracefs/instances/schedviz")).expect("made");
    let ran = fake.record(&[], "touch ran");
    assert!(
        ran.stderr.contains("tracefs has the instance schedviz. schedviz record --clean removes this"),
        "{}",
        ran.stderr
    );
    let clean = schedviz_in(&fake.folder, &["record", "--clean", "--tracefs", "tracefs"]).success();
    assert_eq!(clean.stderr, "schedviz: removed the instance schedviz\n");
    let nowhere = schedviz_in(&fake.folder, &["record", "--tracefs", "stats", "--", "true"]);
    assert_eq!(nowhere.stderr, "schedviz: stats is not a tracefs: it has no instances\n");
}

#[test]
fn a_trace_cmd_that_fails_leaves_nothing() {
    let fake = Fake::new("record-fails");
    fake.trace_cmd("echo no space >&2; touch \"$5\"; exit 4");
    let ran = fake.record(&[], "true");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("./trace-cmd extract failed (exit status: 4): no space"), "{}", ran.stderr);
    assert!(fake.is_clean() && !fake.path("new.dat").exists() && !fake.path("new.dat.part").exists());
}

#[test]
fn a_signal_ends_the_command_and_saves_the_recording() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let fake = Fake::new(&format!("record-{name}"));
        let child = fake.start("exec sleep 60");
        signal(&child, name);
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fake.is_clean() && fake.path("new.dat").exists() && fake.path("new.machine.json").exists());
    }
}

#[test]
fn clean_removes_the_rest_of_a_killed_recording() {
    let fake = Fake::new("record-killed");
    let mut child = fake.start("exec sleep 1");
    signal(&child, "KILL");
    child.wait().expect("ended");
    assert!(!fake.is_clean());
    schedviz_in(&fake.folder, &["record", "--clean", "--tracefs", "tracefs"]).success();
    assert!(fake.is_clean());
    let again = schedviz_in(&fake.folder, &["record", "--clean", "--tracefs", "tracefs"]).success();
    assert_eq!(again.stderr, "schedviz: there was nothing to remove\n");
}

#[test]
fn a_dry_run_reports_rates_and_records_nothing() {
    let fake = Fake::new("record-dry");
    // 7,292 events of 40 bytes in a second that is not quite one.
    let ran = fake.record(&["--dry-run", "--time", "60"], "exec sleep 60").success();
    let text = ran.text();
    let all = text.lines().find_map(|line| line.strip_prefix("   all ")).expect("a sum");
    let rate: f64 = all.split_whitespace().next().expect("a number").replace(',', "").parse().expect("a number");
    assert!((3_000.0..=7_292.0).contains(&rate), "{text}");
    assert!(text.contains("\nfor 60 s: buffers of ") && text.contains("\nrecord with --buffer "), "{text}");
    assert!(fake.is_clean() && !fake.path("new.dat").exists() && !Path::new("new.machine.json").exists());
}

/// Two variants of two recordings each and a run without tracing, with the numbers that the command prints.
#[test]
fn runs_of_variants_are_read_as_groups() {
    let fake = Fake::new("record-runs");
    // Different recordings for different variants, since the same one twice is left out.
    let (one, two) = (fixture("hackbench.dat"), fixture("spmd-plus1.dat"));
    let copy = format!(r#"[ "$(cat knob)" = on ] && cp {} "$5" || cp {} "$5""#, one.display(), two.display());
    fake.trace_cmd(&copy);
    let variants = ["--variant", "on=echo on > knob", "--variant", "off=echo off > knob"];
    let more = ["--runs", "2", "--untraced", "1", "--seed", "3", "--metric", r"Time: ([0-9.]+)", "--quiet"];
    let arguments = [variants.as_slice(), &more].concat();
    let script = "echo $(cat knob) >> order; echo Time: 1.5; echo Time: $(wc -l < order).25 >&2";
    let mut words = fake.arguments(&arguments, script);
    let at = words.iter().position(|word| word == "new.dat").expect("an output");
    words[at] = "series".into();
    let ran = schedviz_in(&fake.folder, &words.iter().map(String::as_str).collect::<Vec<_>>());
    // The counters are those of hackbench.dat: the recordings of the other variant differ from them.
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("MISSING: the counts of events differ"), "{}", ran.stderr);
    let list = std::fs::read_to_string(fake.path("series/runs.json")).expect("a list");
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let runs = list["runs"].as_array().expect("runs");
    let order: Vec<String> =
        std::fs::read_to_string(fake.path("order")).expect("an order").lines().map(str::to_owned).collect();
    let listed: Vec<&str> = runs.iter().filter_map(|run| run["variant"].as_str()).collect();
    assert_eq!(listed, order);
    assert_eq!((runs.len(), order.iter().filter(|name| *name == "on").count()), (6, 3));
    // The last match is the number, from standard error as well.
    let metrics: Vec<f64> = runs.iter().filter_map(|run| run["metric"].as_f64()).collect();
    assert_eq!(metrics, [1.25, 2.25, 3.25, 4.25, 5.25, 6.25]);
    assert!(
        runs.iter().filter(|run| run["variant"] == "on" && run["trace"].is_string()).all(|run| run["complete"] == true)
    );
    for file in ["on.1.dat", "on.1.machine.json", "on.2.out", "on.untraced.1.out", "off.2.dat"] {
        assert!(fake.path("series").join(file).is_file(), "{file}");
    }
    assert!(fake.is_clean());
    let table = schedviz_in(&fake.folder, &["compare", "series"]).success().text();
    assert!(table.contains("off (1 run) against on (1 run)") && table.contains("metric of the command"), "{table}");
    let groups = schedviz_in(&fake.folder, &["workcons", "series"]).success().text();
    assert!(groups.contains("on.1.dat") && groups.contains("off.1.dat"), "{groups}");
    let why = schedviz_in(&fake.folder, &["why", "series"]).success().text();
    assert!(why.contains("on: on.1.dat") && why.contains("off: median of 1"), "{why}");
    let page = schedviz_in(&fake.folder, &["report", "series"]).success();
    assert!(page.stderr.contains("series.report/index.html"), "{}", page.stderr);
    for (section, command) in [("compare", "compare"), ("workcons", "workcons"), ("why", "why")] {
        let kept = std::fs::read(fake.path("series.report").join(format!("{section}.json"))).expect("the numbers");
        assert_eq!(kept, schedviz_in(&fake.folder, &[command, "series", "--json", "-q"]).success().stdout, "{section}");
    }
    let page = std::fs::read_to_string(fake.path("series.report/index.html")).expect("a page");
    assert!(page.contains("recordings of on: 2, off: 2") && page.contains("off (1 run) against on (1 run)"), "{page}");
    assert!(page.matches("<svg").count() >= 3 && fake.path("series.report/workcons.svg").is_file());
    let again = schedviz_in(&fake.folder, &words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(again.stderr.contains("series exists and is not empty"), "{}", again.stderr);
    let over = schedviz_in(&fake.folder, &["compare", "series", "-o", "series/runs.json"]);
    assert!(over.stderr.contains("is an input of this command"), "{}", over.stderr);
    let none = schedviz_in(&fake.folder, &["compare", "stats"]);
    assert!(none.stderr.contains("stats is not a folder of schedviz record --runs"), "{}", none.stderr);
}

/// The exec that follows the helper's stop is that of the traced command.
#[test]
fn the_command_is_executed_by_a_task_named_after_this_program() {
    let fake = Fake::new("record-exec");
    let ran = fake.record(&["--quiet"], "cat /proc/$$/comm > comm; echo $PPID > parent");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(fake.path("comm")).expect("a name"), "sh\n");
    // A recording named after its command is replaced by the next, with its machine file.
    std::fs::copy(fake.path("trace-cmd"), fake.path("new")).expect("a program");
    let twice = ["record", "--tracefs", "tracefs", "--trace-cmd", "./trace-cmd", "-o", "new.dat", "--", "./new"];
    for _ in 0..2 {
        let ran = schedviz_in(&fake.folder, &twice);
        assert!(ran.stderr.contains("recorded 7,292 events") && !ran.stderr.contains("is an input"), "{}", ran.stderr);
    }
    let missing = schedviz_in(
        &fake.folder,
        &["record", "--tracefs", "tracefs", "--trace-cmd", "./trace-cmd", "-o", "x.dat", "--", "./nothing"],
    );
    assert!(missing.stderr.contains("schedviz: cannot run ./nothing: No such file or directory"), "{}", missing.stderr);
    assert!(fake.is_clean());
}
