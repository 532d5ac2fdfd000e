//! The tree of stacks, and the boxes of a flame graph.

use crate::folded::parts;
use crate::{OffCpuReport, StackKind};
use std::collections::BTreeMap;

/// A function on the way from the command to the inner end of stacks, with the time of all stacks through it.
#[derive(Clone, Debug, Default)]
struct FlameNode {
    time: u64,
    /// The kind of all stacks through it; absent where they differ.
    kind: Option<StackKind>,
    calls: BTreeMap<String, FlameNode>,
}

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

/// Returns the boxes of the stacks of a report that have at least the time `least`, those of a level from left to right, and the time
/// of all stacks.
pub(crate) fn boxes(report: &OffCpuReport, least: u64) -> (Vec<FlameBox>, u64) {
    let mut root = FlameNode::default();
    for row in &report.stacks {
        let time = row.time(report.time).0;
        if time == 0 {
            continue;
        }
        root.time = root.time.saturating_add(time);
        let mut node = &mut root;
        for name in parts(row, report.by) {
            node = node.calls.entry(name).or_insert_with(|| FlameNode { kind: Some(row.kind), ..FlameNode::default() });
            node.time = node.time.saturating_add(time);
            node.kind = node.kind.filter(|kind| *kind == row.kind);
        }
    }
    let mut found = Vec::new();
    // By level, since stacks are as deep as the file has them.
    let mut level: Vec<(u64, &FlameNode)> = vec![(0, &root)];
    for nth in 0.. {
        let mut next = Vec::new();
        for (start, node) in level {
            let mut at = start;
            for (name, call) in &node.calls {
                if call.time >= least {
                    let (name, kind) = (name.clone(), call.kind);
                    found.push(FlameBox { level: nth, start: at, time: call.time, name, kind });
                    next.push((at, call));
                }
                at = at.saturating_add(call.time);
            }
        }
        level = next;
        if level.is_empty() {
            break;
        }
    }
    (found, root.time)
}
