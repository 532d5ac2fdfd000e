//! The report of trace-cmd, and the parts of its lines.

use std::path::Path;
use std::process::Command;

/// The report by trace-cmd; nothing if it is not installed.
pub(crate) fn report(path: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("trace-cmd").arg("report").args(arguments).arg("-i").arg(path).output();
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(e) => {
            assert!(std::env::var_os("SCHEDVIZ_REQUIRE_TRACE_CMD").is_none(), "trace-cmd is demanded: {e}");
            eprintln!("trace-cmd is not installed: not compared");
            None
        }
    }
}

/// The parts of a line of `trace-cmd report -t -R`.
#[derive(Debug)]
pub(crate) struct Line<'l> {
    pub(crate) cpu: u32,
    pub(crate) pid: i32,
    pub(crate) ts: &'l str,
    pub(crate) name: &'l str,
    pub(crate) rest: &'l str,
}

/// Parses `  comm-pid   [cpu] seconds.nanoseconds: name:   fields`; the comm may contain any character.
pub(crate) fn parse_line(line: &str) -> Option<Line<'_>> {
    let (head, tail) = line.match_indices(" [").find_map(|(at, _)| {
        let (head, tail) = (&line[..at], &line[at + 2..]);
        let (cpu, rest) = tail.split_once(']')?;
        let number = cpu.len() == 3 && cpu.bytes().all(|b| b.is_ascii_digit());
        (number && head.trim_end().rsplit_once('-')?.1.parse::<i32>().is_ok() && rest.contains(": "))
            .then_some((head, tail))
    })?;
    let (cpu, rest) = tail.split_once(']')?;
    let (ts, rest) = rest.split_once(':')?;
    let (name, rest) = rest.split_once(':')?;
    let pid = head.trim_end().rsplit_once('-')?.1.parse().ok()?;
    Some(Line { cpu: cpu.parse().ok()?, pid, ts: ts.trim(), name: name.trim(), rest })
}
