//! Texts of several blocks, and texts in pieces.

use crate::lines::{self, BlockCutter};
use crate::{limits, open};
use parse::{FileIssue, Options, Source};
use std::ops::ControlFlow;

/// The time, CPU, loss, event, PID and number of each record of a text, and its findings.
type ReadText = (Vec<(i64, u32, bool, String, i32, Option<i64>)>, Vec<u64>);

fn read(text: &str, threads: usize) -> ReadText {
    let trace = open(&Source::Memory(text.into()), Options { threads, ..Options::default() }).unwrap();
    let mut all = Vec::new();
    trace.records(&mut |record| {
        let name = record.format().map_or(String::new(), |format| format.name.to_string());
        let number = record.number("n").or_else(|| record.number("pid"));
        all.push((record.ts.0, record.cpu.0, record.lost.is_some(), name, record.pid().0, number));
        ControlFlow::Continue(())
    });
    let issues = [FileIssue::RoundedTimes, FileIssue::UnreadLines, FileIssue::CorruptRecord, FileIssue::TimeBackwards];
    (all, issues.map(|issue| trace.diagnostics().count(issue)).to_vec())
}

/// Times within a microsecond, losses and kinds of events depend on all lines before, which other threads may read.
#[test]
fn no_result_depends_on_the_number_of_threads() {
    let line = |nth: u32| {
        let head = format!(" a-{}  [{:03}] d..2. 5.{:06}:", nth % 7, nth % 5, nth / 3);
        match nth {
            n if n % 1000 == 0 => format!("CPU:{} [LOST 3 EVENTS]\n", n % 5),
            n if n % 1111 == 0 => format!("{head} sched_switch: prev_comm=a prev_pid=x\n"),
            n if n % 4444 == 1 => format!("{}\n", "x".repeat(limits::LINE + 1)),
            n if n % 3 == 0 => format!("{head} my_event_{}: n={n} text=b\n", n % 300),
            n => format!("{head} sched_waking: comm=b pid={n} prio=120 target_cpu=000\n"),
        }
    };
    let text: String = (1..20_000).map(line).collect();
    let expected = read(&text, 1);
    assert_eq!(expected.1, [1, 5, 18, 0]);
    assert!(
        expected.0.len() > 19_000 && expected.0.iter().filter(|record| record.2).count() > 19,
        "{}",
        expected.0.len()
    );
    for threads in [2, 3, 9] {
        assert!(read(&text, threads) == expected, "{threads} threads");
    }
}

#[test]
fn blocks_have_all_lines_whatever_the_pieces() {
    let long = "y".repeat(limits::LINE + 7);
    let text = format!("a\n\nb\r\n{}\n{long}\n{long}\nc", "z".repeat(limits::LINE));
    let expected: Vec<&str> = text.split('\n').filter(|line| line.len() <= limits::LINE).collect();
    for (size, every) in [(1, 1000), (7, 11), (1000, 1), (1000, 70), (text.len(), 1)] {
        let (mut cutter, mut found) = (BlockCutter::default(), Vec::new());
        let mut long_within = 0;
        let mut note = |block: &[u8]| {
            for line in lines::lines(block) {
                match line.len() <= limits::LINE {
                    true => found.push(String::from_utf8(line.to_vec()).unwrap()),
                    false => long_within += 1,
                }
            }
        };
        for (nth, piece) in text.as_bytes().chunks(size).enumerate() {
            cutter.add(piece);
            // Blocks of any size, also of parts of a line.
            if nth % every == 0 {
                note(&cutter.take(vec![1, 2, 3]));
            }
        }
        let (rest, left_out) = cutter.end();
        note(&rest);
        assert!(found == expected, "{size} {every}");
        assert_eq!(left_out + long_within, 2, "{size} {every}");
    }
}
