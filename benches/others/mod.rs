//! Other programs that read the same events, as far as they are installed.

use crate::{Measured, measured};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Another program on a recording of its own format.
pub(crate) struct Other {
    pub(crate) name: &'static str,
    command: Command,
    /// A run of the program that reads hardly anything, whose time is not that of the events.
    start: Option<Command>,
}

impl Other {
    /// Runs the program once.
    pub(crate) fn run(&self) -> Measured {
        let start = self.start.as_ref().map(measured);
        let whole = measured(&self.command);
        start.map_or(whole, |start| Measured {
            elapsed: whole.elapsed.saturating_sub(start.elapsed),
            cpu: whole.cpu.saturating_sub(start.cpu),
            ..whole
        })
    }
}

/// The other programs that are installed, each with the events of the recording `small.dat` of this folder.
pub(crate) fn installed(folder: &Path) -> Vec<Other> {
    [trace_cmd(folder), lisa(folder), perfetto(folder)].into_iter().flatten().collect()
}

/// Whether a program can be run.
fn runs(program: &str) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn trace_cmd(folder: &Path) -> Option<Other> {
    let mut command = Command::new("trace-cmd");
    command.args(["report", "-i"]).arg(folder.join("small.dat"));
    runs("trace-cmd").then_some(Other { name: "`trace-cmd report`", command, start: None })
}

/// LISA's reader, which writes a table of each event.
fn lisa(folder: &Path) -> Option<Other> {
    if !runs("trace-dump") {
        return None;
    }
    let tables = folder.join("lisa");
    std::fs::create_dir_all(&tables).expect("a folder");
    let mut command = Command::new("trace-dump");
    command
        .args(["parquet", "--trace-format", "tracedat", "--trace"])
        .arg(folder.join("small.dat"))
        .current_dir(tables);
    Some(Other { name: "LISA's `trace-dump parquet`", command, start: None })
}

/// Perfetto's trace processor, loading: `SCHEDVIZ_PERFETTO` names it, as for the tests.
fn perfetto(folder: &Path) -> Option<Other> {
    let viewer = PathBuf::from(std::env::var_os("SCHEDVIZ_PERFETTO")?);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let asked = |trace: &Path, name: &str| {
        let file = folder.join(name);
        let mut convert = Command::new(env!("CARGO_BIN_EXE_schedviz"));
        assert!(convert.arg("convert").arg(trace).arg("-q").arg("-o").arg(&file).status().expect("schedviz").success());
        let mut command = Command::new("node");
        command.arg(root.join("tests/perfetto/query.js")).arg(&viewer).arg(file).arg("select 1");
        command
    };
    let command = asked(&folder.join("small.dat"), "small.pftrace");
    let start = Some(asked(&root.join("tests/fixtures/affine.dat"), "start.pftrace"));
    runs("node").then_some(Other { name: "Perfetto's trace processor (wasm), loading", command, start })
}
