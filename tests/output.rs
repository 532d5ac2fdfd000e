//! Names and formats of output files: a command obeys, or refuses with the remedy.

use crate::support::{Ran, asked, fixture, schedviz, schedviz_in, scratch};
use question::Entry;
use rayon::prelude::*;
use session::formats::Formats;
use std::path::Path;

fn path(name: &str) -> String {
    fixture(name).to_str().expect("a path").to_owned()
}

/// The names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn refused(ran: &Ran, words: &[&str]) {
    assert!(ran.code == Some(1) && ran.stdout.is_empty(), "{:?} {}", ran.code, ran.stderr);
    words.iter().for_each(|word| assert!(ran.stderr.contains(word), "no {word:?} in {}", ran.stderr));
}

/// The endings that some command can write.
const ENDINGS: [&str; 6] = ["pdf", "svg", "png", "json", "csv", "txt"];

/// Takes seconds: every command writes, or refuses, each format that some command has.
#[test]
fn help_lists_the_formats_that_a_command_writes_and_no_others() {
    let trace = path("affine.dat");
    let questions: Vec<(&Entry, Formats)> =
        schedviz::COMMANDS.iter().filter_map(|entry| Some((entry, entry.formats()?))).collect();
    assert!(questions.len() > 20);
    let info = schedviz::COMMANDS.iter().find(|entry| entry.name == "info").map(|entry| (entry, Formats::TEXT));
    questions.into_par_iter().chain(info).for_each(|(entry, formats)| {
        let (command, formats): (&str, Vec<&str>) = (entry.name, formats.files().collect());
        let help = schedviz(&[command, "--help"]).success().text();
        let words: String = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, output) = words.split_once("File to write: ").expect(command);
        let (listed, _) = output.split_once(" by its ending").expect(command);
        let listed: Vec<&str> = listed.split([',', ' ']).filter_map(|word| word.strip_prefix('.')).collect();
        assert_eq!(listed, formats, "{command}");
        assert_eq!(help.contains("--dpi"), formats.contains(&"png"), "{command}");
        for ending in ENDINGS {
            assert_eq!(words.contains(&format!("- {ending}: ")), formats.contains(&ending), "{command}: {ending}");
        }
        let Some(asked) = asked(entry, &trace) else { return };
        let folder = scratch(&format!("formats-{command}"));
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        for ending in ENDINGS {
            // Coarse pixels take less time.
            let dots: &[&str] = if ending == "png" && formats.contains(&ending) { &["--dpi", "30"] } else { &[] };
            let run = |output: &[&str]| schedviz_in(&folder, &[&asked, output, dots].concat());
            let by_name = run(&["-o", &format!("x.{ending}")]);
            if !formats.contains(&ending) {
                refused(&by_name, &[&format!("this command cannot write .{ending}; use .{}", formats[0])]);
                let by_format = run(&["-o", "y.out", "--format", ending]);
                refused(&by_format, &[&format!("invalid value '{ending}'"), "possible values"]);
                continue;
            }
            assert_eq!(by_name.code, Some(0), "{command}: {}", by_name.stderr);
            // Several figures are numbered.
            let read = |stem: &str, ending: &str| {
                let one = std::fs::read(folder.join(format!("{stem}.{ending}")));
                one.or_else(|_| std::fs::read(folder.join(format!("{stem}-1.{ending}")))).expect(command)
            };
            let x = read("x", ending);
            if ["svg", "json"].contains(&ending) {
                // The command line stands in a figure, but for the name of the output.
                assert_eq!(run(&["-o", "y.out", "--format", ending]).code, Some(0), "{command}: {ending}");
                assert!(x == read("y", "out"), "{command}: {ending}");
            }
        }
    });
}

#[test]
fn contradictions_are_refused_with_the_remedy() {
    let folder = scratch("contradictions");
    let trace = path("affine.dat");
    let run = |arguments: &[&str]| schedviz_in(&folder, arguments);
    let contradiction = run(&["dat2graph", &trace, "-o", "x.pdf", "--format", "svg"]);
    refused(&contradiction, &["--format svg contradicts the name x.pdf", "name the file .svg"]);
    refused(&run(&["dat2graph", &trace, "-o", "-"]), &["-o - needs --format"]);
    let both = run(&["dat2graph", &trace, "-o", "-", "--format", "svg", "--json"]);
    refused(&both, &["both write to standard output"]);
    refused(&run(&["report", &trace, "-o", "x.svg"]), &["--output names a folder, such as x", "workcons -o x.svg"]);
    refused(&run(&["report", &trace, "--json"]), &["report writes a folder", "schedviz workcons --json"]);
    refused(&run(&["report", &trace, "--format", "svg"]), &["report writes a folder"]);
    for command in ["info", "dat2graph", "workcons", "report", "events"] {
        refused(&run(&[command, "-"]), &["standard input", "save it to a file", "./-"]);
    }
    assert_eq!(names(&folder), [""; 0], "nothing is written");
    // No contradictions: the same format twice, in capitals, and a folder whose name has a point.
    run(&["dat2graph", &trace, "-q", "-o", "x.SVG", "--format", "svg"]).success();
    std::fs::create_dir(folder.join("y.svg")).expect("a folder");
    run(&["report", &trace, "-q", "-o", "y.svg"]).success();
    assert!(folder.join("y.svg/index.html").is_file());
}

/// Each command names its own output: those that draw, and those that print unless a format is asked for.
#[test]
fn default_names_hold_the_window() {
    let folder = scratch("window-names");
    let trace = path("affine.dat");
    for (arguments, name) in [
        (&["dat2graph", &trace, "--min", "0.3", "--max", "0.5"][..], "affine.dat2graph.0.3s-0.5s.pdf"),
        (&["dat2graph", &trace, "--min", "300ms", "--format", "svg"], "affine.dat2graph.0.3s-end.svg"),
        (&["events", &trace, "--max", "0.5"], "affine.events.0s-0.5s.pdf"),
        (&["running-waiting", &trace], "affine.running-waiting.pdf"),
        (&["workcons", &trace, "--format", "png", "--max", "1"], "affine.workcons.0s-1s.png"),
        (&["workcons", &trace, "--format", "svg"], "affine.workcons.svg"),
        (&["report", &trace, "--min", "0.25", "--max", "0.5"], "affine.report.0.25s-0.5s"),
    ] {
        let ran = schedviz_in(&folder, arguments).success();
        assert!(ran.stderr.contains(&format!("wrote {name}")), "{}", ran.stderr);
        assert!(folder.join(name).exists(), "{name}: {:?}", names(&folder));
        let again = schedviz_in(&folder, arguments).success();
        assert!(again.stderr.contains(&format!("replaced {name}")), "{}", again.stderr);
    }
    assert_eq!(names(&folder).len(), 7);
}

#[test]
fn traces_of_one_name_in_neighbouring_folders_do_not_share_an_output() {
    let folder = scratch("collisions");
    for run in ["before", "after"] {
        std::fs::create_dir(folder.join(run)).expect("a folder");
        std::fs::copy(fixture("affine.dat"), folder.join(run).join("trace.dat")).expect("a copy");
    }
    std::fs::copy(fixture("affine.dat"), folder.join("after/other.dat")).expect("a copy");
    for (trace, name) in [
        ("before/trace.dat", "before.trace.dat2graph.pdf"),
        ("after/trace.dat", "after.trace.dat2graph.pdf"),
        ("after/other.dat", "other.dat2graph.pdf"),
    ] {
        schedviz_in(&folder, &["dat2graph", trace]).success();
        assert!(folder.join(name).is_file(), "{name}: {:?}", names(&folder));
    }
    // In the trace's own folder nothing can collide.
    schedviz_in(&folder.join("after"), &["dat2graph", "./trace.dat"]).success();
    assert!(folder.join("after/trace.dat2graph.pdf").is_file());
}

#[test]
fn a_replaced_file_is_said_to_be() {
    let folder = scratch("replaced");
    let trace = path("affine.dat");
    for arguments in [
        &["stepper", &trace, "--steps", "2", "-o", "steps.svg"][..],
        &["events", &trace, "--events", "sched:*", "-o", "events.csv"],
        &["events", &trace, "--list", "-o", "list.txt"],
        &["info", &trace, "-o", "info.json"],
    ] {
        let name = arguments.last().and_then(|name| name.split('.').next()).expect("a name");
        for verb in ["wrote", "replaced"] {
            let ran = schedviz_in(&folder, arguments).success();
            assert!(ran.stderr.contains(&format!("schedviz: {verb} {name}")), "{verb} {name}: {}", ran.stderr);
        }
        let quiet = schedviz_in(&folder, &[arguments, &["-q"]].concat()).success();
        assert!(quiet.stderr.is_empty(), "{}", quiet.stderr);
    }
}
