//! The files of `examples/` that other harnesses take, each run against a stand-in of its harness.
#![cfg(target_os = "linux")]

use crate::support::{fixture, root, schedviz, scratch, stand_in};
use std::path::Path;
use std::process::{Command, Output};

/// The folder of a harness, with a stand-in of the program in `bin`: it records by running the command and copying a recording; all
/// else is done by the program itself.
fn harness(name: &str, recording: &str) -> crate::support::Scratch {
    let folder = scratch(name);
    std::fs::create_dir_all(folder.join("bin")).expect("a folder");
    let script = format!(
        r#"if [ "$1" != record ]; then exec '{}' "$@"; fi
while [ "$1" != -- ]; do [ "$1" = -o ] && file=$2; shift; done
shift
"$@" && cp '{}' "$file""#,
        env!("CARGO_BIN_EXE_schedviz"),
        fixture(recording).display(),
    );
    stand_in(&folder.join("bin/schedviz"), &script);
    folder
}

/// Runs a script of a harness, with the stand-ins of the folder in front.
fn run(folder: &Path, script: &str) -> Output {
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", script]).current_dir(folder).env("PATH", path).env("TMP", folder);
    bash.env("EXAMPLES", root().join("examples")).output().expect("bash")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A driver of mmtests, as far as hooks see it: the hooks are exported, and called before and behind a subtest.
const MMTESTS: &str = r#"
    . "$EXAMPLES/mmtests/configs/fragment-profile-hook-schedviz"
    hooks() { for hook in $MONITOR_HOOKS; do [ "$(type -t "${hook}_monitor-$1")" = function ] && "${hook}_monitor-$@" || exit 9; done; }
    hooks init && mkdir logs && hooks pre "$PWD/logs" sub-1 && sleep 0.1 && hooks post "$PWD/logs" sub-1
"#;

#[test]
fn a_profile_hook_of_mmtests_records_each_subtest() {
    let folder = harness("mmtests", "hackbench.dat");
    let ran = run(&folder, MMTESTS);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let findings = std::fs::read_to_string(folder.join("logs/schedviz-sub-1.txt")).expect("the findings");
    assert!(findings.contains("Tasks waited while CPUs idled 27.3 % of the time"), "{findings}");
    assert!(folder.join("logs/schedviz-sub-1.dat").is_file() && !folder.join("logs/schedviz-sub-1.pipe").exists());
    // A recorder that fails holds nothing up, and its message is shown.
    std::fs::remove_dir_all(folder.join("logs")).expect("removed");
    stand_in(&folder.join("bin/schedviz"), "echo 'tracefs is not there' >&2; exit 1");
    let ran = run(&folder, MMTESTS);
    assert!(text(&ran.stderr).contains("tracefs is not there"), "{}", text(&ran.stderr));
    assert!(!folder.join("logs/schedviz-sub-1.txt").exists());
}

/// A log folder on a share takes no pipe.
#[test]
fn a_profile_hook_of_mmtests_says_where_it_cannot_have_its_pipe() {
    let folder = harness("mmtests-pipe", "hackbench.dat");
    stand_in(&folder.join("bin/mkfifo"), r#"PATH=${PATH#*:}; case "$1" in */logs/*) exit 1;; esac; mkfifo "$@""#);
    let ran = run(&folder, MMTESTS);
    assert!(
        ran.status.success() && text(&ran.stderr).contains("logs cannot hold a pipe (mkfifo)"),
        "{}",
        text(&ran.stderr)
    );
    let findings = std::fs::read_to_string(folder.join("logs/schedviz-sub-1.txt")).expect("the findings");
    assert!(findings.contains("Tasks waited while CPUs idled 27.3 % of the time"), "{findings}");
    assert!(!folder.join("logs/schedviz-sub-1.pipe-elsewhere").exists());
    std::fs::remove_dir_all(folder.join("logs")).expect("removed");
    stand_in(&folder.join("bin/mkfifo"), "exit 1");
    let ran = run(&folder, MMTESTS);
    assert!(
        !ran.status.success() && text(&ran.stderr).contains("sub-1 is not recorded; set TMPDIR"),
        "{}",
        text(&ran.stderr)
    );
}

#[test]
fn a_monitor_of_mmtests_logs_intervals_and_its_reader_finds_their_numbers() {
    let folder = harness("mmtests-monitor", "hackbench.dat");
    let line = r#"{"schema":"schedviz/top/2","from_ns":1000000000,"to_ns":4000000000,"violation_percent":12.5,"waiting":1e-3}"#;
    let next = line.replace("12.5", "3").replace(":1000000000", ":4000000000");
    stand_in(&folder.join("bin/schedviz"), &format!("echo \"$@\" > arguments\necho '{line}'\necho '{next}'"));
    let monitor = r#"MONITOR_UPDATE_FREQUENCY=3 "$EXAMPLES/mmtests/monitors/watch-schedviz.sh" > schedviz-hackbench"#;
    assert!(run(&folder, monitor).status.success());
    let arguments = std::fs::read_to_string(folder.join("arguments")).expect("the arguments");
    assert_eq!(arguments.trim(), "top --json --interval 3s");
    if Command::new("perl").arg("-v").output().is_err() {
        eprintln!("skipped: no perl");
        return;
    }
    // The base class of mmtests, as far as a monitor sees it.
    let base = "package MMTests::SummariseMonitor;\nuse strict;\n\
        sub open_log { my ($self, $file) = @_; open(my $in, '<', $file) or die; return $in; }\n\
        sub addData { my ($self, $name, $at, $value) = @_; print \"$name $at $value\\n\"; }\n1;\n";
    std::fs::create_dir_all(folder.join("MMTests")).expect("a folder");
    std::fs::write(folder.join("MMTests/SummariseMonitor.pm"), base).expect("written");
    let read = |heading: &str| {
        let script = format!(
            "perl -I. -I\"$EXAMPLES/mmtests/bin/lib\" -MMMTests::MonitorSchedviz -e \
             'MMTests::MonitorSchedviz->new()->extractReport(\".\", \"hackbench\", \"{heading}\", 0)'"
        );
        let ran = run(&folder, &script);
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        text(&ran.stdout)
    };
    assert_eq!(read(""), "violation_percent 0 12.5\nviolation_percent 3 3\n");
    assert_eq!(read("waiting"), "waiting 0 1e-3\nwaiting 3 1e-3\n");
    // A monitor that cannot begin fails, and its log has no numbers.
    stand_in(&folder.join("bin/schedviz"), "echo 'tracefs is not there' >&2; exit 1");
    let ran = run(&folder, monitor);
    assert!(ran.status.code() == Some(1) && text(&ran.stderr).contains("tracefs is not there"), "{ran:?}");
    assert_eq!(read(""), "");
}

#[test]
fn a_program_of_lkp_records_until_the_test_ends_and_prints_keys() {
    let folder = harness("lkp", "hackbench.dat");
    // The harness, as far as a monitor sees it: the command that waits for the end of the test.
    std::fs::create_dir_all(folder.join("lib")).expect("a folder");
    stand_in(&folder.join("bin/wait"), "echo \"$@\" >> waits");
    let wait = "WAIT_POST_TEST_CMD=\"$LKP_SRC/bin/wait post-test\"\nsetup_wait() { :; }\n";
    std::fs::write(folder.join("lib/wait.sh"), wait).expect("written");
    let script = r#"
        export LKP_SRC=$PWD TMP_RESULT_ROOT=$PWD/result delay=1 keep_trace=1
        mkdir result && "$EXAMPLES/lkp-tests/programs/schedviz/monitor" > result/schedviz || exit
        sh result/post-run.schedviz && "$EXAMPLES/lkp-tests/programs/schedviz/parse" < result/schedviz
    "#;
    let ran = run(&folder, script);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let waits = std::fs::read_to_string(folder.join("waits")).expect("the waits");
    assert_eq!(waits, "post-test --timeout 1\npost-test --timeout 10\n");
    // Keys as the harness reads them: lower case, with dots, the unit last; each with one number.
    let mut keys: Vec<(String, f64)> = Vec::new();
    for line in text(&ran.stdout).lines() {
        let (key, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        let is_named = key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '_');
        assert!(is_named && [".s", ".ms", ".percent", ".count"].iter().any(|unit| key.ends_with(unit)), "{line}");
        keys.push((key.to_owned(), value.parse().expect("a number")));
    }
    let of = |name: &str| keys.iter().find(|(key, _)| key == name).unwrap_or_else(|| panic!("{name}: {keys:?}")).1;
    let trace = fixture("hackbench.dat");
    let json = schedviz(&["workcons", "-q", "--json", trace.to_str().expect("a name")]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let percent = json["runs"][0]["violation"]["percent"].as_f64().expect("a percentage");
    assert!((of("violation.percent") - percent).abs() < 1e-9, "{percent}");
    assert_eq!(of("migrations.count"), 279.0);
    let findings = std::fs::read_to_string(folder.join("result/schedviz.findings")).expect("the findings");
    assert!(findings.contains("the costliest first"), "{findings}");
    assert!(folder.join("result/schedviz.dat").is_file() && !folder.join("schedviz.dat").exists());
    // Without a recording there is no key, and the harness goes on.
    std::fs::remove_dir_all(folder.join("result")).expect("removed");
    stand_in(&folder.join("bin/schedviz"), "echo 'tracefs is not there' >&2; exit 1");
    let ran = run(&folder, script);
    assert!(ran.status.success() && ran.stdout.is_empty(), "{ran:?}");
    assert!(text(&ran.stderr).contains("tracefs is not there") && !folder.join("result/schedviz.findings").exists());
}

#[test]
fn the_workflow_in_a_virtual_machine_keeps_the_failing_run() {
    if Command::new("jq").arg("--version").output().is_err() {
        eprintln!("skipped: no jq");
        return;
    }
    let folder = harness("workflow-vm", "online.dat");
    // The virtual machine: its options, two dashes, the command. The second run is another recording.
    let vng = format!(
        r#"while [ "$1" != -- ]; do shift; done
shift
file=$4
set -- "$1" "$2" "$3" "$4" -- true
"$@"
case $file in *run.2.dat) cp '{}' "$file" ;; esac"#,
        fixture("hackbench.dat").display()
    );
    stand_in(&folder.join("bin/vng"), &vng);
    let page = std::fs::read_to_string(root().join("examples/workcons-vm.yml")).expect("the workflow");
    let step = |name: &str| {
        let (_, rest) = page.split_once(&format!("- name: {name}\n")).unwrap_or_else(|| panic!("{name}"));
        let (_, script) = rest.split_once("run: ").expect("a script");
        let Some(script) = script.strip_prefix("|\n") else { return script.lines().next().expect("a line").to_owned() };
        let lines = script.lines().take_while(|line| line.starts_with("          "));
        lines.map(|line| format!("{}\n", line.trim_start_matches("          "))).collect()
    };
    let run = |name: &str| {
        let script = format!("set -eo pipefail; export GITHUB_STEP_SUMMARY=$PWD/summary.md\n{}", step(name));
        run(&folder, &script)
    };
    let recorded = run("record three runs in the virtual machine");
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let judged = run("judge");
    assert_eq!(judged.status.code(), Some(2), "{}", text(&judged.stderr));
    let kept = run("the failing run");
    assert!(kept.status.success(), "{}", text(&kept.stderr));
    let failing = folder.join("failing");
    let same = |a: &Path, b: &Path| std::fs::read(a).expect("a file") == std::fs::read(b).expect("a file");
    assert!(same(&failing.join("run.2.dat"), &fixture("hackbench.dat")) && !failing.join("run.1.dat").exists());
    let figure = std::fs::read_to_string(failing.join("worst-episode.svg")).expect("the figure");
    assert!(figure.contains("<svg"));
    let summary = std::fs::read_to_string(folder.join("summary.md")).expect("the summary");
    assert!(summary.contains("**FAIL**") && summary.contains("Findings of `run.2.dat`"), "{summary}");
    assert!(summary.contains("Tasks waited while CPUs idled"), "{summary}");
}
