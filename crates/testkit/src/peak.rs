//! What a program takes.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a program, whose output goes nowhere; how long it took, and the most memory it held, in bytes, where the
/// system has /proc.
///
/// # Panics
///
/// If it cannot be run, or does not succeed.
pub fn timed(command: &mut Command) -> (Duration, u64) {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a program");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kilobytes = text.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0) << 10);
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "{command:?}: {status}");
            return (begin.elapsed(), peak);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
