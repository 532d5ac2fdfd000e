//! The pager, colours and quiet pipes, on a terminal of `script` (util-linux).

use crate::support::{fixture, program};
use std::process::{Command, Stdio};

/// The text and the exit status of a shell's command line on a terminal, in which `schedviz` stands for the program; nothing without `script`.
fn on_terminal(line: &str, variables: &[(&str, &str)]) -> Option<(String, Option<i32>)> {
    // Its path can have spaces.
    let quoted = format!("'{}'", program().to_str().expect("a path").replace('\'', r"'\''"));
    let line = line.replace("schedviz", &quoted);
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(fixture("")).stdin(Stdio::null());
    command.env("TERM", "xterm").env("COLUMNS", "80").env_remove("PAGER").env_remove("NO_COLOR");
    let ran = command.envs(variables.iter().copied()).output();
    let Ok(ran) = ran else {
        eprintln!("skipped: no script");
        return None;
    };
    Some((String::from_utf8_lossy(&ran.stdout).replace('\r', ""), ran.status.code()))
}

/// A pager that marks each line.
const MARKS: (&str, &str) = ("SCHEDVIZ_PAGER", "sed s/^/paged:/");

#[test]
fn text_on_a_terminal_goes_through_the_pager() {
    for line in [
        "schedviz latency hackbench.dat",
        "schedviz list --runs hackbench.dat",
        "schedviz --help",
        "schedviz affine.dat",
    ] {
        let Some((text, status)) = on_terminal(line, &[MARKS]) else { return };
        assert_eq!(status, Some(0), "{line}: {text}");
        assert!(text.lines().count() > 10 && text.lines().all(|line| line.starts_with("paged:")), "{line}: {text}");
    }
    let without: [(&str, &[(&str, &str)]); 7] = [
        ("schedviz --no-pager latency hackbench.dat", &[MARKS]),
        ("schedviz latency hackbench.dat --no-pager", &[MARKS]),
        ("schedviz latency hackbench.dat | cat", &[MARKS]),
        ("schedviz latency hackbench.dat", &[MARKS, ("TERM", "dumb")]),
        ("schedviz latency hackbench.dat", &[("PAGER", "sed s/^/paged:/"), ("SCHEDVIZ_PAGER", "")]),
        ("schedviz latency hackbench.dat", &[("PAGER", "no-such-program")]),
        ("schedviz --version", &[MARKS]),
    ];
    let plain = on_terminal("schedviz latency hackbench.dat | cat", &[]).expect("script").0;
    for (line, variables) in without {
        let (text, status) = on_terminal(line, variables).expect("script");
        assert_eq!(status, Some(0), "{line}: {text}");
        assert!(
            !text.contains("paged:") && (line.contains("--version") || text == plain),
            "{line} {variables:?}: {text}"
        );
    }
}

/// A reader that closes the pager early changes neither the exit status nor what is judged, and sees no error.
#[test]
fn the_exit_status_is_that_of_the_command() {
    for (line, expected) in [
        ("schedviz workcons -q hackbench.dat --max-violation 5", 2),
        ("schedviz workcons -q hackbench.dat --max-violation 50", 0),
        ("schedviz workcons -q hackbench.dat --max-violation 5 --json", 2),
        ("schedviz list hackbench.dat", 0),
        ("schedviz latency none.dat", 1),
    ] {
        for pager in ["cat >/dev/null", "exec <&-; sleep 0.2", "exit 3"] {
            let Some((text, status)) = on_terminal(line, &[("SCHEDVIZ_PAGER", pager)]) else { return };
            assert_eq!(status, Some(expected), "{line}, {pager}: {text}");
            assert_eq!(text.is_empty(), expected != 1, "{line}, {pager}: {text}");
        }
    }
}

#[test]
fn no_color_is_obeyed() {
    let line = "schedviz latency instance.dat >/dev/null; schedviz --no-pager latency --help";
    let Some((text, _)) = on_terminal(line, &[]) else { return };
    assert!(text.contains("\x1b[31mdata loss\x1b[0m") && text.contains("\x1b[1m"), "{text}");
    let (text, _) = on_terminal(line, &[("NO_COLOR", "1")]).expect("script");
    assert!(text.contains("data loss") && !text.contains('\x1b'), "{text}");
    // An empty value is as none (no-color.org).
    assert!(on_terminal(line, &[("NO_COLOR", "")]).expect("script").0.contains("\x1b[31m"));
}
