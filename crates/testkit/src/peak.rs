//! The time and memory that a program takes.

use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The outcome of a run of a program.
#[derive(Debug)]
pub struct Measured {
    /// The exit status.
    pub status: ExitStatus,
    /// The text on standard error.
    pub stderr: String,
    /// The elapsed time.
    pub time: Duration,
    /// The peak resident memory in bytes; 0 on a system without /proc.
    pub peak: u64,
}

/// Runs a program and discards its output. Returns its elapsed time and its peak resident memory in bytes, 0 on a
/// system without /proc.
///
/// # Panics
///
/// Panics if the program cannot be run, or fails.
pub fn timed(command: &mut Command) -> (Duration, u64) {
    let Measured { status, stderr, time, peak } = measured(command);
    assert!(status.success(), "{command:?}: {status}: {stderr}");
    (time, peak)
}

/// The same for a program that may fail. Its standard error must fit into a pipe: a few lines.
///
/// # Panics
///
/// Panics if the program cannot be run.
pub fn measured(command: &mut Command) -> Measured {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a program");
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
        // `spawn` returns a little before the exec: until then the new process has the memory and the name of this one.
        is_itself = is_itself || of("Name:").is_some_and(|name| name == program);
        if let Some(status) = child.try_wait().expect("a child") {
            let time = begin.elapsed();
            let mut bytes = Vec::new();
            child.stderr.take().map(|mut stderr| stderr.read_to_end(&mut bytes).expect("read"));
            let stderr = String::from_utf8_lossy(&bytes).into_owned();
            return Measured { status, stderr, time, peak };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
