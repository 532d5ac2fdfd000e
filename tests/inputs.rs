//! No command writes to a file that it reads.
#![cfg(unix)]

use crate::support::{Ran, fixture, schedviz_in, scratch};
use std::fs;
use std::path::Path;

/// The bytes of every file in a folder, by name.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().filter(|entry| entry.path().is_file());
    let read = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("a readable file"))
    };
    let mut contents: Vec<_> = entries.map(read).collect();
    contents.sort();
    contents
}

fn refused(ran: &Ran, arguments: &[&str]) {
    assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.stderr);
    let names_remedy = ran.stderr.contains("input of this command") && ran.stderr.contains("choose another name");
    assert!(names_remedy && ran.stdout.is_empty(), "{arguments:?}: {}", ran.stderr);
}

#[test]
fn no_input_is_overwritten() {
    let folder = scratch("inputs");
    fs::copy(fixture("affine.dat"), folder.join("a.dat")).expect("copied");
    fs::copy(fixture("hackbench.dat"), folder.join("b.dat")).expect("copied");
    fs::copy(fixture("hackbench.cpus.txt"), folder.join("cpus.txt")).expect("copied");
    fs::write(folder.join("before"), "version 15\ntimestamp 1\n").expect("written");
    fs::write(folder.join("after"), "version 15\ntimestamp 2\n").expect("written");
    std::os::unix::fs::symlink("a.dat", folder.join("soft.svg")).expect("linked");
    fs::hard_link(folder.join("a.dat"), folder.join("hard.svg")).expect("linked");
    fs::hard_link(folder.join("cpus.txt"), folder.join("cpus.svg")).expect("linked");
    let before = contents(&folder);
    for command in
        ["dat2graph", "running-waiting", "workcons", "stepper", "events", "latency", "utilization", "fairness"]
    {
        for output in [&["-o", "a.dat", "--format", "svg"][..], &["-o", "soft.svg"], &["-o", "./hard.svg"]] {
            let arguments = [&[command, "a.dat"], output].concat();
            refused(&schedviz_in(&folder, &arguments), &arguments);
        }
    }
    let commands: [&[&str]; 15] = [
        &["events", "a.dat", "--list", "-o", "a.dat", "--format", "txt"],
        &["migrations", "a.dat", "-o", "hard.svg"],
        &["dat2graph", "b.dat", "--topology", "cpus.txt", "-o", "cpus.svg"],
        &["dat2graph", "b.dat", "--topology=cpus.txt", "--format", "svg", "--output=cpus.txt"],
        &["workcons", "a.dat", "b.dat", "-o", "b.dat", "--format", "json"],
        &["workcons", "--group", "x=b.dat,a.dat", "-o", "soft.svg"],
        &["compare", "--base", "a.dat", "--new", "b.dat", "-o", "hard.svg"],
        &["compare", "--base", "b.*", "--new", "a.d*t", "-o", "soft.svg"],
        &["compare", "--group", "x=a.dat", "--group", "y=b.dat", "-o", "b.dat", "--format", "svg"],
        &["schedstat", "before", "after", "-o", "before", "--format", "txt"],
        &["schedstat", "before", "after", "--time", "1", "--trace", "a.dat", "-o", "a.dat", "--format", "txt"],
        &["schedstat", "a.dat", "b.dat", "--base", "before", "after", "-o", "after", "--format", "txt"],
        &["report", "a.dat", "-o", "."],
        &["report", "a.dat", "-o", "../inputs-link"],
        &["report", "./a.dat", "-o", "../"],
    ];
    std::os::unix::fs::symlink(&folder, folder.with_file_name("inputs-link")).expect("linked");
    for arguments in commands {
        refused(&schedviz_in(&folder, arguments), arguments);
    }
    fs::remove_file(folder.with_file_name("inputs-link")).expect("removed");
    // A name that is not on the command line: seen when the file is written.
    fs::hard_link(folder.join("a.dat"), folder.join("a.dat2graph.pdf")).expect("linked");
    refused(&schedviz_in(&folder, &["dat2graph", "a.dat", "-q"]), &["dat2graph"]);
    fs::remove_file(folder.join("a.dat2graph.pdf")).expect("removed");
    assert!(contents(&folder) == before, "all files are as they were, and there are no others");
    // Other files are replaced as before.
    fs::write(folder.join("x.svg"), "old").expect("written");
    schedviz_in(&folder, &["dat2graph", "a.dat", "-q", "-o", "x.svg"]).success();
    assert!(fs::read_to_string(folder.join("x.svg")).expect("a figure").starts_with("<svg"));
}

/// The output of a benchmark that `compare` finds beside a recording is no word of the command line.
#[test]
fn a_file_that_is_found_and_read_is_an_input() {
    let folder = scratch("inputs-found");
    for name in ["a.dat", "b.dat"] {
        fs::copy(fixture(if name == "a.dat" { "affine.dat" } else { "hackbench.dat" }), folder.join(name))
            .expect("copied");
    }
    fs::write(folder.join("a.out"), "Running in process mode with 1 groups\nTime: 1.0\n").expect("written");
    fs::hard_link(folder.join("a.out"), folder.join("other.md")).expect("linked");
    let before = contents(&folder);
    let compare = ["compare", "--base", "a.dat", "--new", "b.dat", "-q"];
    for output in [
        &["-o", "a.out", "--format", "json"][..],
        &["-o", "a.out", "--format", "pdf"],
        &["-o", "other.md", "--format", "txt"],
        &["--markdown", "--summary", "other.md"],
    ] {
        let arguments = [&compare[..], output].concat();
        let ran = schedviz_in(&folder, &arguments);
        assert!(
            ran.code == Some(1) && ran.stderr.contains("is an input of this command (a.out)"),
            "{output:?}: {}",
            ran.stderr
        );
    }
    assert!(contents(&folder) == before, "all files are as they were, and there are no others");
}

/// A report replaces a report, as a whole, and no other folder.
#[test]
fn a_report_appears_whole_or_not_at_all() {
    let folder = scratch("whole-report");
    let trace = fixture("affine.dat");
    let report = |window: &[&str]| {
        let named = [&["report", trace.to_str().expect("a path"), "-o", "made/r"], window].concat();
        schedviz_in(&folder, &named)
    };
    let names = || contents(&folder.join("made/r")).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let first = report(&[]).success();
    assert!(first.stderr.contains("wrote made/r/index.html"), "{}", first.stderr);
    let all = names();
    assert!(all.contains(&"fairness.json".into()) && all.contains(&"index.html".into()), "{all:?}");
    // With --cpus there is no fairness: its files of the report before must not stay.
    let second = report(&["--cpus", "0-1"]).success();
    assert!(second.stderr.contains("replaced made/r/index.html"), "{}", second.stderr);
    assert!(!names().iter().any(|name| name.starts_with("fairness")), "{:?}", names());
    let before = contents(&folder.join("made/r"));
    // An error on the way changes nothing.
    assert_eq!(report(&["--min", "999"]).code, Some(1));
    fs::write(folder.join("made/r/notes.txt"), "mine").expect("written");
    let kept = report(&[]);
    assert_eq!(kept.code, Some(1));
    assert!(kept.stderr.contains("notes.txt in it is no file of a report; choose another folder"), "{}", kept.stderr);
    fs::remove_file(folder.join("made/r/notes.txt")).expect("removed");
    assert!(contents(&folder.join("made/r")) == before);
    let entries = fs::read_dir(folder.join("made")).expect("a folder").count();
    assert_eq!(entries, 1, "nothing is left beside it");
}

/// The names alone make no report: the page lists the files that belong to it.
#[test]
fn only_a_report_is_replaced_by_a_report() {
    let folder = scratch("own-report");
    let trace = fixture("affine.dat");
    let report = || schedviz_in(&folder, &["report", trace.to_str().expect("a path"), "-q", "-o", "r"]);
    fs::create_dir(folder.join("r")).expect("created");
    for name in ["workcons.json", "plot.svg", "index.html"] {
        fs::write(folder.join("r").join(name), "mine").expect("written");
        let ran = report();
        assert!(ran.code == Some(1) && ran.stderr.contains("is no file of a report"), "{name}: {}", ran.stderr);
        assert_eq!(fs::read(folder.join("r").join(name)).expect("kept"), b"mine");
        fs::remove_file(folder.join("r").join(name)).expect("removed");
    }
    // An empty folder is replaced, a report as well, but not with another figure in it.
    report().success();
    report().success();
    fs::write(folder.join("r/plot.svg"), "mine").expect("written");
    let ran = report();
    assert!(ran.code == Some(1) && ran.stderr.contains("plot.svg in it is no file of a report"), "{}", ran.stderr);
    assert!(folder.join("r/index.html").is_file() && folder.join("r/plot.svg").is_file());
}

#[test]
fn a_part_replaces_no_machine_file_of_another_recording() {
    let folder = scratch("cut-other-machine");
    fs::copy(fixture("throttled-6.12.dat"), folder.join("a.dat")).expect("copied");
    fs::copy(fixture("throttled-6.12.machine.json"), folder.join("a.machine.json")).expect("copied");
    fs::copy(fixture("affine.dat"), folder.join("b.dat")).expect("copied");
    let cut = |arguments: &[&str]| schedviz_in(&folder, &[&["cut", "-o", "part.dat"], arguments].concat());
    let beside = folder.join("part.machine.json");
    for text in ["mine", &fs::read_to_string(fixture("rebound-6.12.machine.json")).expect("a machine")] {
        fs::write(&beside, text).expect("written");
        let ran = cut(&["a.dat"]);
        let words = "part.machine.json exists and is not of part.dat; remove it, or choose another name for the output";
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{}", ran.stderr);
        // The part of a trace without a machine file would be read with it.
        let ran = cut(&["b.dat"]);
        let words = "part.machine.json would be read as the machine of part.dat; remove it";
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{}", ran.stderr);
        assert!(!folder.join("part.dat").exists() && fs::read_to_string(&beside).expect("kept") == text);
    }
    fs::remove_file(&beside).expect("removed");
    let first = cut(&["a.dat"]).success();
    assert!(
        first.stderr.contains("wrote part.dat (") && first.stderr.ends_with(", part.machine.json\n"),
        "{}",
        first.stderr
    );
    // A second part replaces both.
    let second = cut(&["a.dat", "--anonymize"]).success();
    assert!(second.stderr.contains("replaced part.dat (") && second.stderr.ends_with(", part.machine.json\n"));
    assert!(fs::read(&beside).expect("there") != fs::read(folder.join("a.machine.json")).expect("there"));
}
