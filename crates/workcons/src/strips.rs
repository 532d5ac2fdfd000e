//! Violation over time: a strip for each node, or one for the machine.

use crate::sets::Sets;
use sched::Ts;
use timeline::strips::{BLANK, UNKNOWN};
use timeline::{Class, Columns, Piece};

/// CPUs idle here while tasks wait in other nodes.
pub(crate) const IDLE_HERE: Class = UNKNOWN + 1;
/// Tasks wait here while CPUs idle in other nodes.
pub(crate) const WAITING_HERE: Class = UNKNOWN + 2;
/// Both are here.
pub(crate) const BOTH_HERE: Class = UNKNOWN + 3;

/// So many columns a strip has.
const COLUMNS: u32 = 1000;

/// The strip of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// `node 0`, or `machine`.
    pub name: String,
    /// What is drawn; nothing where nothing was violated.
    pub pieces: Vec<Piece>,
}

/// Gathers the strips as time passes.
#[derive(Clone, Debug)]
pub(crate) struct Gatherer {
    names: Vec<String>,
    strips: Vec<Lane>,
    to: Ts,
}

/// A strip so far: what is gathered, and since when it shows what it shows.
#[derive(Clone, Debug)]
struct Lane {
    columns: Columns,
    class: Class,
    since: Ts,
}

impl Lane {
    fn turn(&mut self, class: Class, ts: Ts) {
        if self.class != class {
            self.columns.push(self.class, self.since, ts);
            (self.class, self.since) = (class, ts);
        }
    }
}

impl Gatherer {
    /// For the nodes of `sets`, over a window.
    pub(crate) fn new(sets: &Sets, from: Ts, to: Ts) -> Gatherer {
        let names = sets.node_names();
        let lane = |_| Lane { columns: Columns::new(from, to, COLUMNS), class: BLANK, since: from };
        Gatherer { strips: names.iter().map(lane).collect(), names, to }
    }

    /// From `from` on the sets were what they are.
    pub(crate) fn pass(&mut self, from: Ts, sets: &Sets, way: usize) {
        let violated = sets.violation(way).holds();
        for (node, strip) in self.strips.iter_mut().enumerate() {
            let class = match sets.in_node(node, way) {
                _ if !violated && sets.is_possible(way) => UNKNOWN,
                _ if !violated => BLANK,
                (true, true) => BOTH_HERE,
                (true, false) => IDLE_HERE,
                (false, true) => WAITING_HERE,
                (false, false) => BLANK,
            };
            strip.turn(class, from.min(self.to));
        }
    }

    pub(crate) fn finish(self) -> Vec<Strip> {
        let strip = |(name, mut lane): (String, Lane)| {
            lane.columns.push(lane.class, lane.since, self.to);
            Strip { name, pieces: lane.columns.finish() }
        };
        self.names.into_iter().zip(self.strips).map(strip).collect()
    }
}
