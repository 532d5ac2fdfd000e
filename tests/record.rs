//! `schedviz record` against a folder that stands in for the kernel's tracing file system.

#![cfg(target_os = "linux")]

use crate::fake_tracefs::{CPUS, Fake, signal};
use crate::support::{events, fixture, schedviz_in, stand_in};
use parse::{Options, Trace};
use sched::Cpu;
use std::path::Path;
use std::process::Command;

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
    let trace = Trace::open(&fake.path("new.dat"), Options::default()).expect("a trace");
    assert_eq!(events(&trace).len() as u64, fake.recorded());
    let info = trace.info();
    assert_eq!((info.clock.as_str(), info.cpus), ("mono", CPUS));
    assert_eq!(trace.recorded(), fake.recorded(), "the kernel's counters are in the file");
    assert_eq!(trace.observed(), (0..CPUS).map(Cpu).collect::<Vec<_>>());
    let machine = std::fs::read_to_string(fake.path("new.machine.json")).expect("a machine file");
    let machine: serde_json::Value = serde_json::from_str(&machine).expect("JSON");
    let moments: Vec<&str> =
        machine["affinity"].as_array().expect("a list").iter().filter_map(|a| a["at"].as_str()).collect();
    // A slow machine reads the tasks of the command in between.
    assert_eq!(moments.into_iter().filter(|at| *at != "running").collect::<Vec<_>>(), ["start", "end"]);
    for line in [
        "schedviz: sched:sched_wakeup does not exist on this kernel: the start of a wait is approximate\n",
        &format!("schedviz: recorded {} events on 8 CPUs in ", grouped(fake.recorded())),
        "schedviz: the command failed: exit status: 7\n",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
}

/// The list of a command that `taskset` binds is that of the program behind it.
#[test]
fn the_cpus_of_a_command_that_binds_itself_are_known() {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list").trim();
    let cpu = list.split([',', '-']).next().expect("a CPU");
    let fake = Fake::new("record-bound");
    let ran = fake.record(&[], &format!("echo $$ > number; exec taskset -c {cpu} sleep 0.4"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let number = std::fs::read_to_string(fake.path("number")).expect("a PID");
    let number: i32 = number.trim().parse().expect("a PID");
    let machine = machine::Machine::open(&fake.path("new.machine.json")).expect("a machine file");
    let running: Vec<_> = machine.affinity.iter().filter(|taken| taken.at == machine::Affinity::RUNNING).collect();
    let lists = running.iter().flat_map(|taken| &taken.tasks).filter(|(_, pids)| pids.contains(&number));
    assert_eq!(lists.map(|(list, _)| &**list).collect::<Vec<_>>(), [cpu]);
    let mut affinity = sched::Affinity::new((0..64).map(Cpu));
    machine.add_lists(&mut affinity);
    assert!(affinity.restricts() && affinity.has_list_of_program(sched::Pid(number), &sched::SchedState::default()));
}

/// A number with a comma behind the thousands.
fn grouped(n: u64) -> String {
    assert!((1_000..1_000_000).contains(&n));
    format!("{},{:03}", n / 1000, n % 1000)
}

/// The probes of the kernel whose type information this is are there while the command runs, and only then.
#[test]
fn probes_on_the_balancer_come_and_go() {
    let fake = Fake::new("record-why");
    // Another program has a group `lb`.
    let others = "p:other/a schedule\np:lb/idle schedule\n";
    fake.write("tracefs/dynamic_events", others);
    let btf = fixture("btf-6.12.btf").display().to_string();
    let ran = fake.record(&["--why", "--btf", &btf], "cp tracefs/dynamic_events probes");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let probes = std::fs::read_to_string(fake.path("probes")).expect("probes");
    let group = probes.lines().find_map(|line| Some(line.split_once(':')?.1.split_once("/load_balance ")?.0));
    let group = group.expect("a group");
    assert!(group.starts_with("schedviz_"), "{group}");
    let accepted = std::fs::read_to_string(fixture("probes-6.12.txt")).expect("probes");
    for name in ["load_balance", "can_migrate", "detach_task", "newidle_balance_in", "newidle_balance", "idle", "swap"]
    {
        let line = accepted.lines().find(|line| line.contains(&format!(":lb/{name} "))).expect("a line");
        let line = line.replace(":lb/", &format!(":{group}/"));
        assert!(probes.contains(&line), "{line}: {probes}");
    }
    assert_eq!(fake.seen(&format!("events/{group}/enable")).as_deref(), Some("1\n"));
    assert_eq!(fake.seen("events/lb/enable"), None);
    assert!(
        ran.stderr.contains("schedviz: probe load_balance       attempts of the balancer and the tasks moved\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_to_string(fake.path("tracefs/dynamic_events")).expect("probes"), others);
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
        ran.stderr.contains(&format!(
            "\x1b[31mLOST\x1b[0m: 5,000 of {} events (CPU 1: 5,000): buffers of 64 KiB",
            grouped(fake.recorded() + 5000)
        )),
        "{}",
        ran.stderr
    );
    fake.count(12, 0);
    let ran = fake.record(&["--quiet"], "true");
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("MISSING: the counts of events differ: CPU 1: "), "{}", ran.stderr);
    for cpu in 0..CPUS {
        std::fs::remove_file(fake.path(&format!("buffers/cpu{cpu}/stats"))).expect("removed");
    }
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
    // A process of this number cannot be.
    std::fs::create_dir(fake.path("tracefs/instances/schedviz_4294967295_1")).expect("made");
    let ran = fake.record(&[], "touch ran");
    assert!(
        ran.stderr.contains(
            "a recording was killed: tracefs has the instance schedviz_4294967295_1. schedviz record --clean removes this"
        ),
        "{}",
        ran.stderr
    );
    let clean = schedviz_in(fake.folder(), &["record", "--clean", "--tracefs", "tracefs"]).success();
    assert_eq!(clean.stderr, "schedviz: removed the instance schedviz_4294967295_1\n");
    // A series makes a folder, and a setup that fails removes it.
    let arguments = ["record", "--tracefs", "tracefs", "--runs", "2", "-o", "a/b", "-e", "sched:nothing", "--", "true"];
    let ran = schedviz_in(fake.folder(), &arguments);
    assert!(ran.code == Some(1) && !fake.path("a").exists(), "{}", ran.stderr);
    let nowhere = schedviz_in(fake.folder(), &["record", "--tracefs", "buffers", "--", "true"]);
    assert_eq!(nowhere.stderr, "schedviz: buffers is not a tracefs: it has no instances\n");
}

/// Nothing is saved in the place of an earlier recording: of a command that cannot run, and of one without events.
#[test]
fn a_recording_that_was_not_made_replaces_none() {
    let fake = Fake::new("record-fails");
    fake.write("new.dat", "an earlier recording");
    fake.write("new.machine.json", "its machine");
    let kept = || {
        let read = |name: &str| std::fs::read_to_string(fake.path(name)).expect("a file");
        assert_eq!(
            (read("new.dat").as_str(), read("new.machine.json").as_str()),
            ("an earlier recording", "its machine")
        );
        assert!(fake.is_clean());
        let parts = std::fs::read_dir(fake.folder()).expect("a folder").flatten();
        let parts: Vec<_> =
            parts.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with('.')).collect();
        assert!(parts.is_empty(), "{parts:?}");
    };
    fake.write("no-program", "text");
    for (more, why) in [
        (["--", "slep"].as_slice(), "cannot run slep: No such file or directory"),
        (&["--", "./no-program"], "cannot run ./no-program: Permission denied"),
        (&["--dry-run", "--", "slep"], "cannot run slep"),
    ] {
        let mut arguments = vec!["record", "--tracefs", "tracefs", "-o", "new.dat"];
        arguments.extend(more);
        let ran = schedviz_in(fake.folder(), &arguments);
        assert_eq!(ran.code, Some(1), "{more:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why) && ran.stderr.matches("cannot run").count() == 1, "{}", ran.stderr);
        kept();
    }
    let arguments = ["record", "--tracefs", "tracefs", "--runs", "2", "-o", "series", "--", "slep"];
    assert_eq!(schedviz_in(fake.folder(), &arguments).code, Some(1));
    assert!(!fake.path("series").exists());
    std::fs::remove_dir_all(fake.path("buffers")).expect("removed");
    fake.write("buffers/cpu0/trace_pipe_raw", "");
    let ran = fake.record(&[], "true");
    assert!(ran.code == Some(1) && ran.stderr.contains("no event was recorded: nothing is saved"), "{}", ran.stderr);
    kept();
}

/// A signal while the recording is set up: here the type information is waited for.
#[test]
fn a_signal_during_the_setup_leaves_nothing() {
    let fake = Fake::new("record-setup");
    fake.write("tracefs/dynamic_events", "");
    assert!(Command::new("mkfifo").arg(fake.path("btf")).status().expect("mkfifo").success());
    // A pipe with a writer, which writes nothing yet.
    let mut pipe = std::fs::OpenOptions::new().read(true).write(true).open(fake.path("btf")).expect("opened");
    let child = fake.spawn(&["--why", "--btf", "btf"], "touch ran");
    let is_caught = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a process");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask").trim().to_owned();
        u64::from_str_radix(&caught, 16).expect("a mask") >> 1 & 1 == 1
    };
    for _ in 0..3000 {
        if is_caught() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    signal(&child, "INT");
    std::thread::sleep(std::time::Duration::from_millis(500));
    std::io::Write::write_all(&mut pipe, &std::fs::read(fixture("btf-6.12.btf")).expect("types")).expect("written");
    drop(pipe);
    let output = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("interrupted before the command began: nothing is saved"), "{text}");
    assert!(fake.is_clean() && !fake.path("ran").exists() && !fake.path("new.dat").exists());
    assert_eq!(std::fs::read_to_string(fake.path("tracefs/dynamic_events")).expect("probes"), "");
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
    let clean = || schedviz_in(fake.folder(), &["record", "--clean", "--tracefs", "tracefs"]).success().stderr;
    assert!(clean().starts_with("schedviz: removed the instance schedviz_"));
    assert!(fake.is_clean());
    assert_eq!(clean(), "schedviz: there was nothing to remove\n");
}

/// Neither `--clean` nor a second recording disturbs a recording that runs.
#[test]
fn a_running_recording_is_left_alone() {
    let fake = Fake::new("record-two");
    let child = fake.start("exec sleep 60");
    let instances = fake.instances();
    let other = format!("the instance {} of process {}", instances[0], child.id());
    let clean = schedviz_in(fake.folder(), &["record", "--clean", "--tracefs", "tracefs"]).success();
    assert_eq!(clean.stderr, format!("schedviz: there was nothing to remove\nschedviz: left alone: {other}\n"));
    let words = format!("schedviz: tracefs has {other} as well: its cost is in this recording\n");
    let mut arguments = fake.arguments(&[], "true");
    arguments[4] = "second.dat".to_owned();
    let second = fake.run(&arguments).success();
    assert!(second.stderr.contains(&words) && fake.path("second.dat").exists(), "{}", second.stderr);
    assert_eq!(fake.instances(), instances);
    signal(&child, "TERM");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(143), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fake.is_clean() && fake.path("new.dat").exists());
}

#[test]
fn a_dry_run_reports_rates_and_records_nothing() {
    let fake = Fake::new("record-dry");
    // Events of 40 bytes in a second that is not quite one.
    let ran = fake.record(&["--dry-run", "--time", "60"], "exec sleep 60").success();
    let text = ran.text();
    let all = text.lines().find_map(|line| line.strip_prefix("   all ")).expect("a sum");
    let rate: f64 = all.split_whitespace().next().expect("a number").replace(',', "").parse().expect("a number");
    assert!((1.0..=fake.recorded() as f64).contains(&rate), "{text}");
    assert!(text.contains("\nfor 60 s: buffers of ") && text.contains("\nrecord with --buffer "), "{text}");
    assert!(fake.is_clean() && !fake.path("new.dat").exists() && !Path::new("new.machine.json").exists());
}

/// Two variants of two recordings each and a run without tracing, with the numbers that the command prints.
#[test]
fn runs_of_variants_are_read_as_groups() {
    let fake = Fake::new("record-runs");
    // Different recordings for different variants, since the same one twice is left out. Their counters are the same.
    let other = testkit::Simulation::run(12, CPUS, 4000).events;
    fake.fill("other", &other);
    for cpu in 0..CPUS {
        std::fs::copy(fake.path(&format!("buffers/cpu{cpu}/stats")), fake.path(&format!("other/cpu{cpu}/stats")))
            .expect("copied");
    }
    let swap = |with: &str, to: &str| format!("{with}=echo {with} > knob; ln -sfn {to} buffers");
    std::fs::rename(fake.path("buffers"), fake.path("one")).expect("renamed");
    let (on, off) = (swap("on", "one"), swap("off", "other"));
    let variants = ["--variant", on.as_str(), "--variant", off.as_str()];
    let more = ["--runs", "2", "--untraced", "1", "--seed", "3", "--metric", r"Time: ([0-9.]+)", "--quiet"];
    let arguments = [variants.as_slice(), &more].concat();
    let script = "echo $(cat knob) >> order; echo Time: 1.5; echo Time: $(wc -l < order).25 >&2";
    let mut words = fake.arguments(&arguments, script);
    let at = words.iter().position(|word| word == "new.dat").expect("an output");
    words[at] = "series".into();
    let ran = fake.run(&words);
    // The counters are those of one: the recordings of the other variant differ from them.
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
    let table = schedviz_in(fake.folder(), &["compare", "series"]).success().text();
    assert!(table.contains("off (1 run) against on (1 run)") && table.contains("metric of the command"), "{table}");
    let groups = schedviz_in(fake.folder(), &["workcons", "series"]).success().text();
    assert!(groups.contains("on.1.dat") && groups.contains("off.1.dat"), "{groups}");
    let why = schedviz_in(fake.folder(), &["why", "series"]).success().text();
    assert!(why.contains("* on: on.1.dat") && why.contains("off: median of 0 of 1"), "{why}");
    let page = schedviz_in(fake.folder(), &["report", "series"]).success();
    assert!(page.stderr.contains("series.report/index.html"), "{}", page.stderr);
    for (section, command) in [("compare", "compare"), ("workcons", "workcons"), ("why", "why")] {
        let kept = std::fs::read(fake.path("series.report").join(format!("{section}.json"))).expect("the numbers");
        assert_eq!(
            kept,
            schedviz_in(fake.folder(), &[command, "series", "--json", "-q"]).success().stdout,
            "{section}"
        );
    }
    let page = std::fs::read_to_string(fake.path("series.report/index.html")).expect("a page");
    assert!(page.contains("recordings of on: 2, off: 2") && page.contains("off (1 run) against on (1 run)"), "{page}");
    assert!(page.matches("<svg").count() >= 3 && fake.path("series.report/workcons.svg").is_file());
    let again = fake.run(&words);
    assert!(again.stderr.contains("series exists and is not empty"), "{}", again.stderr);
    let over = schedviz_in(fake.folder(), &["compare", "series", "-o", "series/runs.json"]);
    assert!(over.stderr.contains("is an input of this command"), "{}", over.stderr);
    let none = schedviz_in(fake.folder(), &["compare", "buffers"]);
    assert!(none.stderr.contains("buffers is not a folder of schedviz record --runs; to compare recordings: schedviz compare --base buffers --new FILE"), "{}", none.stderr);
}

/// The output of a benchmark is kept beside its recording and printed; that of an earlier one is removed.
#[test]
fn the_output_of_a_benchmark_is_kept() {
    let fake = Fake::new("record-output");
    let record = "cp -r buffers $(echo tracefs/instances/schedviz_${PPID}_*)/per_cpu";
    let lines = "Running in process mode with 1 groups\nTime: 0.250\n";
    stand_in(&fake.path("hackbench"), &format!("{record}; printf '{}'", lines.replace('\n', "\\n")));
    stand_in(&fake.path("other"), record);
    let run = |more: &[&str], command: &str| {
        let arguments = [&["record", "--tracefs", "tracefs", "-o", "new.dat", "-q"], more, &["--", command]].concat();
        schedviz_in(fake.folder(), &arguments).success()
    };
    assert_eq!(run(&[], "./hackbench").text(), lines);
    assert_eq!(std::fs::read_to_string(fake.path("new.out")).expect("the output"), lines);
    assert_eq!(run(&[], "./other").text(), "");
    assert!(!fake.path("new.out").exists());
    run(&["--keep-output"], "./other");
    assert_eq!(std::fs::read_to_string(fake.path("new.out")).expect("the output"), "");
    assert!(fake.is_clean());
}

/// Symbols and formats of megabytes are compressed, in the form of trace-cmd 3; the pages are not.
#[test]
fn long_texts_of_the_kernel_are_compressed() {
    let fake = Fake::new("record-compressed");
    let lines: String = (0..20_000).map(|n| format!("0xffffffff82{n:06x} : \"a format {n} of a driver\"\n")).collect();
    fake.write("tracefs/printk_formats", &lines);
    fake.record(&["--quiet"], "true").success();
    let bytes = std::fs::read(fake.path("new.dat")).expect("a recording");
    assert_eq!(bytes[..12], *b"\x17\x08\x44tracing7\0");
    let open = |name: &str| Trace::open(&fake.path(name), Options::default()).expect("a trace");
    let trace = open("new.dat");
    assert_eq!((events(&trace).len() as u64, trace.recorded()), (fake.recorded(), fake.recorded()));
    assert!(trace.diagnostics().is_empty(), "{:?}", trace.diagnostics());
    let texts = trace.texts();
    assert_eq!(texts.printk, lines.as_bytes());
    // Without them it would be as large as its other texts, its pages, and both of these.
    assert!(
        bytes.len() < lines.len() / 2 + texts.kallsyms.len() / 2 + 200 * events(&trace).len(),
        "{} bytes",
        bytes.len()
    );
    schedviz_in(fake.folder(), &["cut", "new.dat", "-o", "part.dat", "--no-symbols", "-q"]).success();
    let part = open("part.dat");
    assert_eq!((events(&part), part.texts().printk), (events(&trace), texts.printk));
    assert!(part.texts().kallsyms.is_empty());
}

/// `whatif` needs to know what ended each sleep.
#[test]
fn causes_of_sleeps_are_recorded_where_that_is_asked_for() {
    let fake = Fake::new("record-whatif");
    let text = "name: hrtimer_start\nID: 902\nformat:\n\nprint fmt: \"\"\n";
    fake.write("tracefs/events/timer/hrtimer_start/format", text);
    let ran = fake.record(&["--whatif"], "true").success();
    for event in ["timer/hrtimer_start", "irq", "sched/sched_switch"] {
        assert_eq!(fake.seen(&format!("events/{event}/enable")).as_deref(), Some("1\n"), "{event}");
    }
    assert!(ran.stderr.contains("timer:hrtimer_expire_entry does not exist on this kernel: "), "{}", ran.stderr);
    fake.record(&["-q"], "true").success();
    assert_eq!(fake.seen("events/timer/hrtimer_start/enable"), None);
}

/// A file of the user's that has the name of a kept output is neither removed nor replaced.
#[test]
fn the_users_own_file_stays() {
    let fake = Fake::new("record-own-output");
    let record = "cp -r buffers $(echo tracefs/instances/schedviz_${PPID}_*)/per_cpu";
    let lines = "Running in process mode with 1 groups\nTime: 0.250\n";
    let print = format!("printf '{}'", lines.replace('\n', "\\n"));
    stand_in(&fake.path("hackbench"), &format!("{record}; {print}"));
    stand_in(&fake.path("script"), &format!("{record}; {print}"));
    let program = std::path::absolute(env!("CARGO_BIN_EXE_schedviz")).expect("a path").display().to_string();
    let shell = |command: &str| {
        let line = format!("'{program}' record --tracefs tracefs -o new.dat {command}");
        let ran = Command::new("sh").args(["-c", &line]).current_dir(fake.folder()).output().expect("sh");
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let read = |name: &str| std::fs::read_to_string(fake.path(name)).ok();
    // The script's own output, redirected to the name of a kept one.
    let printed = shell("-q -- ./script > new.out");
    assert_eq!((read("new.out").as_deref(), printed.as_str()), (Some(lines), ""));
    // It is older than the next recording, but no recording wrote it.
    let printed = shell("-q -- ./script > other");
    assert_eq!(read("new.out").as_deref(), Some(lines));
    assert!(
        printed.contains("new.out was there before and stays: compare reads its numbers as those of new.dat"),
        "{printed}"
    );
    // A benchmark is the command itself: its file has another name, and messages reach the user's.
    shell("-- ./hackbench > new.out 2>&1");
    let own = read("new.out").expect("the user's file");
    assert!(
        own.ends_with(lines)
            && own.contains("recorded")
            && own.matches("the output of the command is new.dat.out").count() == 1,
        "{own}"
    );
    assert_eq!(read("new.dat.out").as_deref(), Some(lines));
    let table =
        schedviz_in(fake.folder(), &["compare", "--base", "new.dat", "--new", "new.dat", "-q"]).success().text();
    assert!(table.contains("hackbench time, s"), "{table}");
    // Without the user's file the usual name is taken again, and what the recording before it wrote is removed.
    std::fs::remove_file(fake.path("new.out")).expect("removed");
    assert_eq!(shell("-q -- ./hackbench > other"), "");
    assert_eq!(
        (read("new.out").as_deref(), read("new.dat.out"), read("other").as_deref()),
        (Some(lines), None, Some(lines))
    );
    // Its own file is replaced, and removed, as long as it is as it was.
    assert_eq!(shell("-q -- ./hackbench > other"), "");
    assert_eq!((read("new.out").as_deref(), read("new.dat.out")), (Some(lines), None));
    std::fs::write(fake.path("new.out"), format!("{lines}# my notes\n")).expect("written");
    shell("-q -- ./hackbench > other");
    assert_eq!(read("new.out"), Some(format!("{lines}# my notes\n")));
    assert_eq!(read("new.dat.out").as_deref(), Some(lines));
    assert!(fake.is_clean());
}

/// A series ends once the test has decided: six rounds in which one variant takes half the time.
#[test]
fn a_series_ends_once_it_is_decided() {
    let fake = Fake::new("record-auto");
    let (one, two) = ("two=echo 2 > knob", "one=echo 1 > knob");
    let variants = ["--variant", one, "--variant", two, "--quiet", "--runs", "auto"];
    let script =
        "echo x >> rounds; echo Running in process mode with 1 groups; echo Time: $(cat knob).0$(wc -l < rounds)";
    let record = |folder: &str, more: &[&str]| {
        let mut words = fake.arguments(&[&variants[..], more].concat(), script);
        let at = words.iter().position(|word| word == "new.dat").expect("an output");
        words[at] = folder.into();
        fake.run(&words)
    };
    record("series", &[]).success();
    let list = std::fs::read_to_string(fake.path("series/runs.json")).expect("a list");
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(12));
    let auto = &list["auto"];
    assert!(auto["is_decided"] == true && auto["measure"] == "hackbench-time" && auto["max_runs"] == 20, "{auto}");
    record("short", &["--max-runs", "2"]).success();
    let list = std::fs::read_to_string(fake.path("short/runs.json")).expect("a list");
    assert!(list.matches("\"number\"").count() == 4 && list.contains("\"is_decided\": false"), "{list}");
    let alone = fake.record(&["--runs", "auto", "--variant", one], "true");
    assert!(alone.code == Some(1) && alone.stderr.contains("--runs auto compares variants"), "{}", alone.stderr);
    assert!(fake.is_clean());
}

/// The status of the command is passed on where that is asked for; a command that cannot be run is an error in any case.
#[test]
fn the_status_of_the_command_is_passed_on() {
    let fake = Fake::new("record-status");
    let code = |more: &[&str], script: &str| fake.record(&[&["--quiet"], more].concat(), script).code;
    assert_eq!((code(&[], "exit 7"), code(&["--forward-status"], "exit 7")), (Some(0), Some(7)));
    assert_eq!((code(&["--forward-status"], "true"), code(&["--forward-status"], "kill -9 $$")), (Some(0), Some(137)));
    fake.count(12, 0);
    assert_eq!((code(&["--forward-status"], "true"), code(&["--forward-status"], "exit 7")), (Some(3), Some(7)));
    for file in ["new.dat", "new.machine.json"] {
        std::fs::remove_file(fake.path(file)).expect("removed");
    }
    for more in [["--forward-status"].as_slice(), &["--stream"], &["--keep-output"], &["--until", "violation>99%/1s"]] {
        let arguments = [&["record", "--tracefs", "tracefs", "-o", "new.dat"], more, &["--", "slep"]].concat();
        let ran = schedviz_in(fake.folder(), &arguments);
        assert_eq!(ran.code, Some(1), "{more:?}: {}", ran.stderr);
        assert!(fake.is_clean(), "{more:?}");
        for file in ["new.dat", "new.machine.json", "new.out"] {
            assert!(!fake.path(file).exists(), "{more:?}: {file}");
        }
    }
}

/// The exec that follows the helper's stop is that of the traced command.
#[test]
fn the_command_is_executed_by_a_task_named_after_this_program() {
    let fake = Fake::new("record-exec");
    let ran = fake.record(&["--quiet"], "cat /proc/$$/comm > comm; echo $PPID > parent");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(fake.path("comm")).expect("a name"), "sh\n");
    // A recording named after its command is replaced by the next, with its machine file.
    stand_in(&fake.path("new"), "cp -r buffers $(echo tracefs/instances/schedviz_${PPID}_*)/per_cpu");
    let twice = ["record", "--tracefs", "tracefs", "-o", "new.dat", "--", "./new"];
    let recorded = format!("recorded {} events", grouped(fake.recorded()));
    for _ in 0..2 {
        let ran = schedviz_in(fake.folder(), &twice);
        assert!(ran.stderr.contains(&recorded) && !ran.stderr.contains("is an input"), "{}", ran.stderr);
    }
    assert!(fake.is_clean());
}

/// A machine that runs already is recorded until the processes end that are the application, or until a signal.
#[test]
fn a_running_machine_is_recorded_without_a_command() {
    // Another process takes the place of the kernel, which fills the buffers once recording has started.
    let fill = "until [ \"$(cat tracefs/instances/schedviz_*/tracing_on 2>/dev/null)\" = 1 ]; do sleep 0.02; done; \
                for i in tracefs/instances/schedviz_*; do cp -rL buffers $i/per_cpu; done; touch filled";
    let filler =
        |fake: &Fake| Command::new("sh").args(["-c", fill]).current_dir(fake.folder()).spawn().expect("a shell");
    let application = |fake: &Fake| {
        let text = std::fs::read_to_string(fake.path("new.machine.json")).expect("a machine file");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["application"].clone()
    };
    let base = ["record", "--tracefs", "tracefs", "-o", "new.dat"];

    let fake = Fake::new("record-pid");
    let mut process = filler(&fake);
    let pid = process.id().to_string();
    let waiting = std::thread::spawn(move || process.wait());
    let ran = schedviz_in(fake.folder(), &[&base[..], &["--pid", &pid]].concat()).success();
    assert!(ran.stderr.contains(&format!("recorded {} events", grouped(fake.recorded()))), "{}", ran.stderr);
    assert_eq!(application(&fake), serde_json::json!({ "processes": [pid.parse::<i32>().expect("a number")] }));
    assert!(waiting.join().expect("joined").expect("ended").success());
    assert!(fake.is_clean());

    let fake = Fake::new("record-time");
    let mut process = filler(&fake);
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
    let mut recording = command.args(base).args(["--time", "600"]).current_dir(fake.folder()).spawn().expect("spawned");
    assert!(process.wait().expect("ended").success());
    signal(&recording, "INT");
    assert_eq!(recording.wait().expect("ended").code(), Some(130));
    assert_eq!((application(&fake), fake.is_clean()), (serde_json::json!("machine"), true));

    let refused = |more: &[&str], words: &str| {
        let ran = schedviz_in(fake.folder(), &[&base[..], more].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{more:?}: {}", ran.stderr);
    };
    refused(&["--time", "5", "--", "true"], "--time records a machine that runs already, without a command");
    refused(&["--time", "0"], "a number of seconds above zero is needed");
    refused(&["--pid", "2147483647"], "--pid 2147483647: there is no such process");
    refused(&["--cgroup", "/no/such/cgroup"], "--cgroup /no/such/cgroup: there is no such cgroup");
    refused(&["--pid", "1", "--", "true"], "cannot be used with");
}
