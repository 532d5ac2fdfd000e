//! The boxes of a flame graph: the rows of a report by their outer functions.

use crate::folded::parts;
use crate::{OffCpuReport, StackKind};
use std::borrow::Cow;

/// A box of a flame graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlameBox {
    /// The level, from 0 for the commands.
    pub(crate) level: usize,
    /// The sum of the times to the left of the box.
    pub(crate) start: u64,
    pub(crate) time: u64,
    pub(crate) name: String,
    pub(crate) kind: Option<StackKind>,
}

/// A row on its way into a flame graph: the command and the functions, the outermost first, and the time.
struct FlameRow<'r> {
    parts: Vec<Cow<'r, str>>,
    time: u64,
    kind: StackKind,
}

/// Returns the boxes of the stacks of a report that have at least the time `least`, those of a level from left to right, and the time
/// of all stacks.
pub(crate) fn boxes(report: &OffCpuReport, least: u64) -> (Vec<FlameBox>, u64) {
    let rows = report.stacks.iter().map(|row| (row, row.time(report.time).0)).filter(|(_, time)| *time > 0);
    let of_row = rows.map(|(row, time)| FlameRow { parts: parts(row, report.by), time, kind: row.kind });
    let mut rows: Vec<FlameRow<'_>> = of_row.collect();
    rows.sort_by(|a, b| a.parts.cmp(&b.parts));
    let all = time_of(&rows);
    let mut found = Vec::new();
    // By level, since stacks are as deep as the file has them: the rows through each box, and the start of the box.
    let mut level: Vec<(u64, &[FlameRow<'_>])> = vec![(0, &rows)];
    for nth in 0.. {
        let mut next = Vec::new();
        for (start, through) in level {
            // Rows that end in the box come first, and are at its right end.
            let ended = through.partition_point(|row| row.parts.len() == nth);
            let mut at = start;
            for called in through[ended..].chunk_by(|a, b| a.parts[nth] == b.parts[nth]) {
                let (time, first) = (time_of(called), &called[0]);
                if time >= least {
                    let kind = Some(first.kind).filter(|kind| called.iter().all(|row| row.kind == *kind));
                    found.push(FlameBox { level: nth, start: at, time, name: first.parts[nth].to_string(), kind });
                    next.push((at, called));
                }
                at = at.saturating_add(time);
            }
        }
        level = next;
        if level.is_empty() {
            break;
        }
    }
    (found, all)
}

fn time_of(rows: &[FlameRow<'_>]) -> u64 {
    rows.iter().fold(0, |sum, row| sum.saturating_add(row.time))
}
