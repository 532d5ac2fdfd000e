//! Outputs that cannot be written, and links that lead elsewhere.
#![cfg(target_os = "linux")]

use crate::support::{Ran, fixture, program, schedviz_in, scratch};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// The files below a folder and their bytes, and the links with their targets.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_symlink() {
            found.push((name, fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()));
        } else if path.is_dir() {
            found.push((format!("{name}/"), Vec::new()));
            found.extend(tree(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            found.push((name, fs::read(&path).expect("a file")));
        }
    }
    found.sort();
    found
}

/// A folder with a trace and its machine file.
fn with_trace(name: &str) -> crate::support::Scratch {
    let folder = scratch(name);
    fs::copy(fixture("throttled-6.12.dat"), folder.join("a.dat")).expect("copied");
    fs::copy(fixture("throttled-6.12.machine.json"), folder.join("a.machine.json")).expect("copied");
    folder
}

#[test]
fn messages_that_cannot_be_written_change_nothing() {
    let folder = with_trace("stderr-full");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(program());
        let full = File::options().write(true).open("/dev/full").expect("the device");
        command.args(arguments).current_dir(&folder).stdout(Stdio::null()).stderr(full);
        command.status().expect("the program runs").code()
    };
    for (arguments, code) in [
        (&["dat2graph", "a.dat", "-o", "x.svg"][..], 0),
        (&["workcons", "a.dat", "--topology", "nowhere"], 1),
        (&["workcons", "a.dat", "--max-violation", "0"], 2),
        (&["report", "a.dat", "-o", "r"], 0),
        (&["list", "a.dat", "-o", "x.txt"], 0),
        (&["events", "a.dat", "--list"], 0),
        (&["migrations", "a.dat", "-o", "x.json"], 0),
        (&["export", "a.dat", "--csv", "tables"], 0),
        (&["export", "a.dat", "--perfetto", "x.pftrace"], 0),
        (&["cut", "a.dat", "-o", "part.dat"], 0),
        (&["view", "a.dat", "--export", "page"], 0),
        (&["no-such-command"], 1),
        (&["record", "--clean", "--tracefs", "."], 1),
    ] {
        assert_eq!(run(arguments), Some(code), "{arguments:?}");
    }
    for output in
        ["x.svg", "r/index.html", "x.txt", "x.json", "tables/run.csv", "x.pftrace", "part.dat", "page/traces.json"]
    {
        assert!(folder.join(output).is_file(), "{output}");
    }
}

/// A device or a pipe is written to as it is, as long as that is from the beginning to the end.
#[test]
fn a_trace_for_perfetto_goes_to_a_pipe_and_a_full_device_is_named() {
    let folder = with_trace("perfetto-pipe");
    let run = |to: &str| {
        let mut command = Command::new(program());
        command.args(["export", "a.dat", "-q", "--perfetto", to]).current_dir(&folder);
        command.output().expect("the program runs")
    };
    assert!(run("x.pftrace").status.success());
    let piped = run("/dev/stdout");
    let said = String::from_utf8_lossy(&piped.stderr).into_owned();
    assert!(
        piped.stdout == fs::read(folder.join("x.pftrace")).expect("a file"),
        "{} bytes; {said}",
        piped.stdout.len()
    );
    let full = run("/dev/full");
    let said = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(full.status.code() == Some(1) && said.contains("/dev/full: No space left"), "{said}");
}

#[test]
fn help_that_cannot_be_printed_is_an_error() {
    for arguments in [&["--help"][..], &["cut", "--help"], &["--version"]] {
        let full = File::options().write(true).open("/dev/full").expect("the device");
        let mut command = Command::new(program());
        let status = command.args(arguments).stdout(full).status().expect("the program runs");
        assert_eq!(status.code(), Some(1), "{arguments:?}");
    }
}

/// Files of at most this number of bytes can be written by the program.
fn with_room(folder: &Path, bytes: usize, arguments: &[&str]) -> Ran {
    let blocks = bytes / 512;
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_schedviz")]).args(arguments).current_dir(folder);
    let output = command.output().expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ran { code: output.status.code(), stdout: output.stdout, stderr }
}

/// A file that cannot be written completely, as on a full disk, leaves neither a part of itself nor a folder.
#[test]
fn an_output_without_room_leaves_nothing() {
    let folder = with_trace("no-room");
    fs::create_dir(folder.join("used")).expect("created");
    fs::write(folder.join("used/run.csv"), "mine").expect("written");
    let before = tree(&folder);
    for (room, arguments) in [
        (1024, &["dat2graph", "a.dat", "-o", "x.svg"][..]),
        (1024, &["latency", "a.dat", "-o", "x.png", "--dpi", "50"]),
        (1024, &["workcons", "a.dat", "-o", "x.json"]),
        (1024, &["list", "a.dat", "-o", "x.txt"]),
        (8192, &["report", "a.dat", "-o", "deep/r"]),
        (4096, &["export", "a.dat", "--csv", "deep/tables"]),
        (4096, &["export", "a.dat", "--csv", "used"]),
        #[cfg(feature = "parquet")]
        (4096, &["export", "a.dat", "--parquet", "deep/tables"]),
        #[cfg(feature = "parquet")]
        (4096, &["export", "a.dat", "--parquet", "used"]),
        (4096, &["export", "a.dat", "--perfetto", "x.pftrace"]),
        (4096, &["cut", "a.dat", "-o", "part.dat"]),
        (8192, &["view", "a.dat", "--export", "deep/page"]),
        (1024, &["manual", "deep/man"]),
    ] {
        let ran = with_room(&folder, room, arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("File too large") && !ran.stderr.contains(".part"),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(tree(&folder) == before, "{arguments:?}: {:?}", tree(&folder).iter().map(|f| &f.0).collect::<Vec<_>>());
    }
    // With room for all but the machine file neither it nor the part is there.
    let whole = schedviz_in(&folder, &["cut", "a.dat", "--max", "0.01", "-o", "part.dat"]).success();
    let sizes = ["part.dat", "part.machine.json"].map(|name| folder.join(name).metadata().expect("written").len());
    assert!(whole.stderr.contains("part.machine.json"), "{}", whole.stderr);
    for name in ["part.dat", "part.machine.json"] {
        fs::remove_file(folder.join(name)).expect("removed");
    }
    if sizes[1] > sizes[0] + 512 {
        let ran = with_room(&folder, sizes[0] as usize + 512, &["cut", "a.dat", "--max", "0.01", "-o", "part.dat"]);
        assert!(ran.code == Some(1) && tree(&folder) == before, "{}", ran.stderr);
    }
}

#[test]
fn errors_name_the_file_that_was_asked_for() {
    let folder = with_trace("named-errors");
    fs::write(folder.join("file"), "").expect("written");
    for (arguments, text) in [
        (&["dat2graph", "a.dat", "-o", "nosuch/out.pdf"][..], "nosuch/out.pdf: No such file or directory (os error 2)"),
        (&["cut", "a.dat", "-o", "nosuch/out.dat"], "nosuch/out.dat: No such file or directory (os error 2)"),
        (&["dat2graph", "a.dat", "-o", "file/out.pdf"], "file/out.pdf: Not a directory (os error 20)"),
        (&["report", "a.dat", "-o", "file/r"], "file/r: not a directory"),
        (&["export", "a.dat", "--csv", "file/t"], "file/t: not a directory"),
    ] {
        let ran = schedviz_in(&folder, arguments);
        let last = ran.stderr.lines().last().unwrap_or_default();
        assert_eq!((ran.code, last), (Some(1), format!("schedviz: {text}").as_str()), "{arguments:?}");
    }
}

/// The commands, each with an output that is a link `x`, to `target` beside it.
const LINKED: [(&str, &[&str]); 6] = [
    ("x.svg", &["dat2graph", "a.dat", "-o", "open/x.svg"]),
    ("x.json", &["machine", "-o", "open/x.json"]),
    ("x.dat", &["cut", "a.dat", "-o", "open/x.dat"]),
    ("x.pftrace", &["export", "a.dat", "--perfetto", "open/x.pftrace"]),
    ("x", &["report", "a.dat", "-o", "open/x"]),
    ("x", &["export", "a.dat", "--csv", "open/x/tables"]),
];

/// A folder that all may write to, and a target beside it.
fn open_folder(folder: &Path) {
    let open = folder.join("open");
    fs::create_dir(&open).expect("created");
    fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).expect("its mode");
    fs::write(folder.join("target"), "secret").expect("written");
    fs::create_dir(folder.join("folder")).expect("created");
}

#[test]
fn links_of_strangers_are_not_followed() {
    let folder = with_trace("stranger");
    open_folder(&folder);
    const NOBODY: u32 = 65534;
    for (link, arguments) in LINKED {
        let target = if link == "x" { "../folder" } else { "../target" };
        let link = folder.join("open").join(link);
        symlink(target, &link).expect("linked");
        if lchown(&link, Some(NOBODY), Some(NOBODY)).is_err() {
            // Only root can make a link of another user.
            return;
        }
        let before = tree(&folder);
        let ran = schedviz_in(&folder, arguments);
        let text = "a link and belongs to another user (65534), in a folder that all may write to; choose another name";
        assert!(ran.code == Some(1) && ran.stderr.contains(text), "{arguments:?}: {:?} {}", ran.code, ran.stderr);
        assert!(tree(&folder) == before, "{arguments:?}");
        fs::remove_file(&link).expect("removed");
    }
    // A pipe of a stranger would get the output.
    let pipe = folder.join("open/p.svg");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    lchown(&pipe, Some(NOBODY), None).expect("given away");
    let ran = schedviz_in(&folder, &["dat2graph", "a.dat", "-o", "open/p.svg"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("belongs to another user"), "{}", ran.stderr);
    // A link of the name of a machine file is replaced.
    let sidecar = folder.join("open/part.machine.json");
    symlink("../target", &sidecar).expect("linked");
    lchown(&sidecar, Some(NOBODY), None).expect("given away");
    let ran = schedviz_in(&folder, &["cut", "a.dat", "-o", "open/part.dat"]);
    assert!(fs::read(folder.join("target")).expect("there") == b"secret", "{:?} {}", ran.code, ran.stderr);
}

#[test]
fn links_of_the_user_are_followed_where_the_user_names_them() {
    let folder = with_trace("own-links");
    open_folder(&folder);
    for (link, arguments) in &LINKED[..4] {
        let link = folder.join("open").join(link);
        symlink("../target", &link).expect("linked");
        schedviz_in(&folder, arguments).success();
        assert!(link.is_symlink() && fs::read(folder.join("target")).expect("there") != b"secret", "{arguments:?}");
        fs::remove_file(link).expect("removed");
        fs::write(folder.join("target"), "secret").expect("written");
    }
    // Names that the program chooses are no links: they are replaced.
    let tables = folder.join("tables");
    fs::create_dir(&tables).expect("created");
    symlink("../target", tables.join("run.csv")).expect("linked");
    schedviz_in(&folder, &["export", "a.dat", "--csv", "tables", "--tables", "run"]).success();
    assert!(!tables.join("run.csv").is_symlink());
    assert_eq!(fs::read(folder.join("target")).expect("there"), b"secret");
}
