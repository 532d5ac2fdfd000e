//! Every event of every recording, against `trace-cmd report`.
//!
//! Without trace-cmd these tests print a note and pass; with `SCHEDVIZ_REQUIRE_TRACE_CMD` set, as in CI,
//! they fail.

use crate::support;
use crate::trace_cmd::{Line, parse_line, report};
use parse::{Field, Options, Record, Trace};
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;

/// Returns the time in the form of trace-cmd: seconds with nanoseconds, or a number for a clock without a unit.
fn shown_time(record: &Record<'_>, like: &str) -> String {
    let ns = record.ts.0;
    if like.contains('.') { format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000) } else { ns.to_string() }
}

/// Whether `shown` is this number of a field: signed or unsigned decimal, hexadecimal, an address, or a file mode.
fn reads_as(shown: &str, number: i64, field: &Field) -> bool {
    let lowest = |n: i64| if field.size == 4 { i64::from(n as u32) } else { n };
    let is = |n: i64| lowest(n) == lowest(number);
    let hex = shown.strip_prefix("0x").unwrap_or(shown);
    shown == "(nil)" && number == 0
        || shown.parse().is_ok_and(is)
        || shown.parse::<u64>().is_ok_and(|n| is(n as i64))
        || u64::from_str_radix(hex, 16).is_ok_and(|n| is(n as i64))
        || field.name == "mode" && i64::from_str_radix(shown, 8).is_ok_and(is)
}

/// Compares the fields of a line in their order, since a text may contain `=` and blanks.
fn compare_fields(record: &Record<'_>, line: &Line<'_>) -> Result<(), String> {
    let format = record.format().ok_or("no format")?;
    let fields: Vec<_> = format.own_fields().collect();
    let mut rest = line.rest;
    for (i, field) in fields.iter().enumerate() {
        let start = rest.find(&format!("{}=", field.name)).ok_or_else(|| format!("no {} in {rest:?}", field.name))?;
        rest = &rest[start + field.name.len() + 1..];
        let end = fields.get(i + 1).and_then(|next| rest.find(&format!(" {}=", next.name))).unwrap_or(rest.len());
        let shown = rest[..end].trim_end();
        let shown = if field.is_text() { shown } else { shown.trim_start() };
        let ours = match (field.is_text(), record.number(&field.name)) {
            (true, _) => String::from_utf8_lossy(record.bytes(&field.name).unwrap_or(b"?")).trim_end().to_owned(),
            (false, Some(n)) => {
                if reads_as(shown, n, field) || shown.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    continue;
                } else {
                    n.to_string()
                }
            }
            (false, None) => continue,
        };
        if ours != shown {
            return Err(format!("{}: ours {ours:?}, trace-cmd's {shown:?}", field.name));
        }
    }
    Ok(())
}

#[test]
fn every_event_is_the_one_that_trace_cmd_reports() {
    let mut compared = 0u64;
    for path in support::fixtures_and_part(3) {
        let Some(text) = report(&path, &["-t", "-R"]) else { return };
        let trace = Trace::open(&path, Options::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut lines = text.lines().filter(|l| !l.starts_with("cpus=") && !l.is_empty()).peekable();
        trace.records(&mut |record| {
            let fail = |what: &str, line: &str| -> ! {
                panic!("{}: {what}\ntrace-cmd: {line}\nours: {} {}", path.display(), record.id(), record.printed())
            };
            let mut line = lines.next().unwrap_or_else(|| fail("trace-cmd has no more events", ""));
            if let Some(lost) = record.lost {
                let (cpu, k) = (record.cpu, lost.map_or(String::new(), |k| format!("{k} ")));
                let expected = format!("CPU:{cpu} [{k}EVENTS DROPPED]");
                if line != expected {
                    fail(&format!("expected {expected:?}"), line);
                }
                line = lines.next().unwrap_or_else(|| fail("no event after a loss", ""));
            }
            let Some(parsed) = parse_line(line) else { fail("not understood", line) };
            let name = record.format().map_or("?", |f| f.name.as_str());
            let same = (parsed.cpu, parsed.pid, parsed.name) == (record.cpu.0, record.pid().0, name);
            if !same || parsed.ts != shown_time(record, parsed.ts) {
                fail(&format!("another event, {:?}", shown_time(record, parsed.ts)), line);
            }
            if name == "tcp_probe" {
                // trace-cmd prints the bytes of socket addresses unescaped, newlines included.
                while lines.next_if(|line| parse_line(line).is_none()).is_some() {}
            } else if !matches!(name, "print" | "kernel_stack" | "function")
                && let Err(what) = compare_fields(record, &parsed)
            {
                fail(&what, line);
            }
            compared += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(lines.next(), None, "{}: trace-cmd has more events", path.display());
    }
    println!("{compared} events compared");
}

#[test]
fn counts_are_those_of_the_report() {
    for path in support::fixtures_and_part(3) {
        let Some(text) = report(&path, &["-t", "-R"]) else { return };
        let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
        for line in text.lines().filter_map(parse_line) {
            *theirs.entry(line.name.to_owned()).or_default() += 1;
        }
        let trace = Trace::open(&path, Options::default()).expect("a readable recording");
        let ours: BTreeMap<String, u64> = trace.event_counts().into_iter().map(|e| (e.name.into(), e.count)).collect();
        assert_eq!(ours, theirs, "{}", path.display());
        let dropped = text.lines().filter(|l| l.ends_with("EVENTS DROPPED]")).count() as u64;
        let gaps: u64 = trace.counts().buffers.iter().flat_map(|b| &b.cpus).map(|c| c.gaps).sum();
        // Only the statistics of the recorder show the events that it left unread at its end.
        let unread = if gaps == dropped { 0 } else { unread_buffers(&path) };
        assert_eq!(gaps, dropped + unread, "{}", path.display());
    }
}

/// Returns the number of buffers in which trace-cmd left events, by its own statistics.
fn unread_buffers(path: &Path) -> u64 {
    let text = report(path, &["--stat"]).expect("a report");
    let left = text.lines().filter_map(|line| line.strip_prefix("entries: "));
    left.filter(|entries| entries.parse() != Ok(0_u64)).count() as u64
}

#[test]
fn printed_texts_are_the_same() {
    let mut compared = 0;
    for path in support::fixtures_and_part(3) {
        let trace = Trace::open(&path, Options::default()).expect("a readable recording");
        if !trace.event_counts().iter().any(|e| matches!(e.name.as_str(), "print" | "bprint" | "bputs")) {
            continue;
        }
        let Some(text) = report(&path, &["-t"]) else { return };
        let mut theirs = text.lines().filter_map(parse_line).filter(|l| matches!(l.name, "print" | "bprint" | "bputs"));
        trace.records(&mut |record| {
            if let (Some(text), Some(place)) = (record.text(), record.place()) {
                let line = theirs.next().expect("as many texts");
                assert_eq!(line.rest.trim(), format!("{place}: {}", text.trim_end()), "{}", path.display());
                compared += 1;
            }
            ControlFlow::Continue(())
        });
    }
    println!("{compared} texts compared");
}

/// Returns the text of a switch without the state: trace-cmd 3.1.6 has the letters of an old kernel, `W` for `I`.
fn without_state(text: &str) -> String {
    let Some((prev, next)) = text.split_once(" ==> ") else { return text.to_owned() };
    format!("{} ==> {next}", prev.rsplit_once(' ').map_or(prev, |(prev, _)| prev))
}

/// The events that trace-cmd 3.1.6 prints in another form than their print formats: by plugins, or since it does not
/// evaluate them fully (it prints the first name if no bit is set, an address for the name of a kernel function, and 0 for
/// the elements of a probe's array).
const OTHERWISE: [&str; 13] = [
    "hrtimer_expire_entry",
    "hrtimer_start",
    "ma_op",
    "ma_read",
    "ma_write",
    "set_affinity",
    "sys_enter_futex",
    "sys_enter_write",
    "timer_start",
    "tlb_flush",
    "writeback_dirty_inode",
    "writeback_dirty_inode_start",
    "writeback_mark_inode_dirty",
];

#[test]
fn listed_events_are_those_of_the_report() {
    let (mut callers, mut aliases) = (0u64, 0u64);
    let (mut exact, mut others) = (0u64, std::collections::BTreeSet::new());
    for path in support::fixtures_and_part(3) {
        let Some(text) = report(&path, &["-t"]) else { return };
        let trace = Trace::open(&path, Options::default()).expect("a readable recording");
        let mut lines: VecDeque<Line<'_>> =
            text.lines().filter(|l| !l.starts_with("=>")).filter_map(parse_line).collect();
        // The next line; behind a call that trace-cmd completed with the return on another CPU, which then comes out of
        // order, the line of the record's CPU and time among the next ones.
        let mut next = |record: &Record<'_>, is_disordered: bool| {
            let is_its = |l: &Line<'_>| l.cpu == record.cpu.0 && l.ts == shown_time(record, l.ts);
            let at = if is_disordered { lines.iter().take(8).position(is_its).unwrap_or(0) } else { 0 };
            lines.remove(at).expect("as many events")
        };
        let mut stacks = text.lines().filter(|l| l.starts_with("=>"));
        // A call of a function graph waits for the record behind it: with its return it is a leaf, in one line.
        let mut call: Option<parse::Kept> = None;
        let mut split = 0;
        trace.records(&mut |record| {
            if let Some(call) = call.take() {
                let call = call.record(&trace);
                let line = next(&call, split > 0);
                let mut ours = String::new();
                let is_leaf = record.is_return_of(&call);
                if is_leaf {
                    call.print_leaf(record, &mut ours);
                } else {
                    call.print(&mut ours);
                }
                // On two CPUs the idle tasks, which share a number, can return from the same function: trace-cmd 3.1.6
                // makes a leaf of the call of one and the return of the other; 3.3 does not.
                let name = record.format().map_or("", |f| f.name.as_str());
                let mixed = record.cpu != call.cpu && (name, record.pid()) == ("funcgraph_exit", call.pid());
                if mixed && record.number("func") == call.number("func") {
                    split += 1;
                    return ControlFlow::Continue(());
                }
                assert_eq!(ours.trim(), line.rest.trim(), "{}: {}", path.display(), line.name);
                exact += 1;
                if is_leaf {
                    return ControlFlow::Continue(());
                }
            }
            if record.is_in_graph() && record.number("calltime").is_none() {
                call = Some(record.keep());
                return ControlFlow::Continue(());
            }
            let line = next(record, split > 0);
            if !record.is_printed_exactly() || OTHERWISE.contains(&line.name) {
                others.insert(record.format().map_or_else(String::new, |f| f.name.to_string()));
                return ControlFlow::Continue(());
            }
            let ours = record.printed();
            let mut ours = ours.lines();
            let first = ours.next().unwrap_or("");
            let same = |text: &str| if line.name == "sched_switch" { without_state(text) } else { text.to_owned() };
            assert_eq!(same(first.trim()), same(line.rest.trim()), "{}: {}", path.display(), line.name);
            for caller in ours.filter(|_| line.name == "kernel_stack") {
                let theirs = stacks.next().expect("as many callers");
                let (a, b) = (caller.rsplit_once(' '), theirs.rsplit_once(' '));
                assert_eq!(a.map(|a| a.1), b.map(|b| b.1), "{}", path.display());
                // Several symbols can have one address, and each program chooses another of them.
                aliases += u64::from(a.map(|a| a.0.trim()) != b.map(|b| b.0.trim()));
                callers += 1;
            }
            exact += 1;
            ControlFlow::Continue(())
        });
        assert!(split <= 4, "{}: {split} calls of idle tasks", path.display());
    }
    assert!(aliases * 100 <= callers, "{aliases} of {callers} callers have another name");
    println!("{exact} events listed as trace-cmd does; others: {others:?}");
}
