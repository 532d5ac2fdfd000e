//! The memory and the time that a program takes.

use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// CPU time after which the kernel ends a program, in seconds: a run without an end fails its test and not the whole suite.
/// Elapsed time is never asserted, since it depends on the other load of the machine.
const CPU_SECONDS: u32 = 120;

/// The outcome of a run of a program.
#[derive(Debug)]
pub struct MeasuredRun {
    /// The exit status; a signal if the program took more than two minutes of CPU time.
    pub status: ExitStatus,
    /// The text on standard error.
    pub stderr: String,
    /// The peak resident memory in bytes; 0 on a system without /proc.
    pub peak: u64,
}

/// Runs a program and discards its output. Returns its peak resident memory in bytes, 0 on a system without /proc.
///
/// # Panics
///
/// Panics if the program cannot be run, or fails.
pub fn peak(command: &Command) -> u64 {
    let MeasuredRun { status, stderr, peak } = measured(command);
    assert!(status.success(), "{command:?}: {status}: {stderr}");
    peak
}

/// Runs a program for a benchmark and discards its output. Returns its elapsed time, and its peak resident memory in bytes.
///
/// # Panics
///
/// Panics if the program cannot be run, or fails.
pub fn timed(command: &Command) -> (Duration, u64) {
    let begin = Instant::now();
    let peak = peak(command);
    (begin.elapsed(), peak)
}

/// Runs a program that may fail, with a limit on its CPU time, and returns its status, its standard error and its peak
/// memory. The standard error must fit into a pipe: a few lines.
///
/// # Panics
///
/// Panics if the program cannot be run.
pub fn measured(command: &Command) -> MeasuredRun {
    let mut limited = Command::new("sh");
    // The allocator of packages keeps for a second what was freed (docs/limits.md), which would be measured as well.
    limited.env("MIMALLOC_PURGE_DELAY", "0");
    limited.arg("-c").arg(format!("ulimit -t {CPU_SECONDS}; exec \"$@\"")).arg("sh");
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    let mut child = limited.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a program");
    let status = format!("/proc/{}/status", child.id());
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    // The kernel keeps 15 bytes of a command name.
    let program: String = program.chars().take(15).collect();
    let (mut is_itself, mut peak) = (false, 0);
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let of = |key: &str| text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim()));
        if is_itself {
            let kilobytes = of("VmHWM:").and_then(|size| size.strip_suffix(" kB")?.parse().ok());
            peak = peak.max(kilobytes.unwrap_or(0) << 10);
        }
        // Until the shell executes the program, the process has the memory and the name of the shell or of this one.
        is_itself = is_itself || of("Name:").is_some_and(|name| name == program);
        if let Some(status) = child.try_wait().expect("a child") {
            let mut bytes = Vec::new();
            child.stderr.take().map(|mut stderr| stderr.read_to_end(&mut bytes).expect("read"));
            let stderr = String::from_utf8_lossy(&bytes).into_owned();
            return MeasuredRun { status, stderr, peak };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
