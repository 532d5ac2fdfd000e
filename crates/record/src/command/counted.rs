//! A recording by perf, which reads counters at each switch. The kernel's tracer cannot, up to 7.2.

use super::{RecordArgs, RecordedRun, Recorder, check, find_program, folder_of, message, named, save};
use crate::traced::Traced;
use anyhow::{Context, Result, bail};
use parse::{FileIssue, Trace};
use sched::nouns::noun;
use session::atomic_file::{private_folder, rename};
use session::warnings::grouped;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// The counters, by perf's names.
const COUNTERS: [&str; 2] = ["cycles", "cache-misses"];
/// The event at which they are read.
const SWITCH: &str = "sched/sched_switch";
/// The least and the greatest buffer of a CPU without --buffer, in KiB.
const BUFFER_KB: (u64, u64) = (1 << 10, 16 << 10);

/// The group of a switch and the counters that are read with it.
fn group() -> String {
    format!("{{{},{}}}:S", name_of(SWITCH), COUNTERS.join(","))
}

/// The name by which perf has an event of the plan: `sched:sched_switch`, or `irq:*` for a system.
fn name_of(path: &str) -> String {
    match path.split_once('/') {
        Some((system, event)) => format!("{system}:{event}"),
        None => format!("{path}:*"),
    }
}

/// The options of perf for these events with buffers of this size.
fn options(events: &[String], buffer_kb: u64, output: &Path) -> Vec<OsString> {
    // The least power of two of pages that is not smaller.
    let words = ["record", "-q", "-a", "-m", &format!("{}K", buffer_kb.next_power_of_two()), "-e", &group()];
    let mut options: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    for event in events.iter().filter(|event| *event != SWITCH) {
        options.extend(["-e".into(), name_of(event).into()]);
    }
    options.extend(["-o".into(), output.into()]);
    options
}

/// Checks, before anything is recorded, that perf and the command are there, and that this kernel has the counters.
pub(super) fn check_perf(args: &RecordArgs) -> Result<()> {
    if let Some(command) = args.command.first().map(Path::new)
        && find_program(command).is_none()
    {
        bail!("cannot run {}: there is no such program", command.display());
    }
    if find_program(&args.perf).is_none() {
        bail!(
            "{} is not installed: it records counters at switches (Debian: apt install linux-perf)",
            args.perf.display()
        );
    }
    let file = tempfile::NamedTempFile::new().context("a temporary file")?;
    let mut command = Command::new(&args.perf);
    command.args(options(&[], BUFFER_KB.0, file.path())).args(["--", "true"]).stdin(Stdio::null());
    let output = command.output().with_context(|| args.perf.display().to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let reason = text.lines().map(str::trim).find(|line| !line.is_empty() && *line != "Error:");
        bail!(
            "this kernel cannot count {} at switches: {} (a virtual machine often has no counters). Record without --counters",
            COUNTERS.join(" and "),
            reason.unwrap_or("perf gives no reason")
        );
    }
    Ok(())
}

/// Records the command by perf. The output of both goes to `capture` if there is one.
pub(super) fn record(recorder: &Recorder<'_>, output: &Path, capture: Option<&Path>) -> Result<RecordedRun> {
    let args = recorder.args;
    let buffer_kb = args.buffer.unwrap_or(recorder.settings.buffer_kb.clamp(BUFFER_KB.0, BUFFER_KB.1));
    // A file that is not complete never has the name of a recording, and perf follows no link of a stranger to it.
    let folder = named(private_folder(output), folder_of(output))?;
    let part = folder.path().join("perf.data");
    let mut command = vec![args.perf.clone().into_os_string()];
    command.extend(options(&recorder.settings.events, buffer_kb, &part));
    command.push("--".into());
    command.extend(args.command.iter().cloned());
    let traced = Traced::spawn(&command, recorder.signals, capture)?;
    let mut machine = recorder.machine();
    recorder.go_on()?;
    let before = recorder.probes.missed();
    let ended = traced.run()?;
    machine.add_running(&ended.running);
    recorder.finish(&mut machine, &before);
    if std::fs::metadata(&part).map_or(0, |file| file.len()) == 0 {
        bail!("{} recorded nothing ({})", args.perf.display(), ended.status);
    }
    rename(&part, output)?;
    let saved = save::opened(output)?;
    let events: u64 = saved.trace.counts().buffers.iter().map(parse::BufferCounts::total).sum();
    let recorded = format!("{} {} with {}", grouped(events), noun(events, "event"), COUNTERS.join(" and "));
    recorder.keep(&machine, &recorded, output, &saved, &ended)?;
    super::probes::check(args, &saved.trace, &machine)?;
    let lost = lost(&saved.trace);
    if lost > 0 {
        let larger = buffer_kb.next_power_of_two().saturating_mul(4) >> 10;
        let text = format!("{} {}; record with --buffer {larger}M", grouped(lost), noun(lost, "event"));
        check::problem("LOST", text, args.is_coloured());
        message(check::INCOMPLETE);
    }
    Ok(RecordedRun { ended, complete: lost == 0 })
}

/// Events that the kernel counted as lost, with and without a place.
fn lost(trace: &Trace) -> u64 {
    let marked: u64 = trace.info().stats.iter().map(|cpu| cpu.overrun).sum();
    marked + trace.diagnostics().count(FileIssue::EventsDroppedUnmarked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_leads_the_group_of_counters() {
        let events = [SWITCH, "sched/sched_waking", "irq", "lb"].map(str::to_owned);
        let words = options(&events, 3000, Path::new("new.dat.part"));
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        let expected = "record -q -a -m 4096K -e {sched:sched_switch,cycles,cache-misses}:S -e sched:sched_waking -e irq:* -e lb:* -o new.dat.part";
        assert_eq!(words.join(" "), expected);
    }
}
