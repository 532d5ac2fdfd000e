//! Violation over time: a strip for each node, or one for the machine.

use crate::violation::Sets;
use sched::Ts;
use timeline::strips::{BLANK, FIRST, UNKNOWN};
use timeline::{Piece, PieceClass, Turns};

/// The class of a node in which CPUs idle while tasks wait in other nodes.
pub(crate) const IDLE_HERE: PieceClass = FIRST;
/// The class of a node in which tasks wait while CPUs idle in other nodes.
pub(crate) const WAITING_HERE: PieceClass = FIRST + 1;
/// Both are here.
pub(crate) const BOTH_HERE: PieceClass = FIRST + 2;

/// Number of columns of a strip.
const COLUMNS: u32 = 1000;

/// The strip of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// `node 0`, or `machine`.
    pub name: String,
    /// The drawing; nothing where nothing was violated.
    pub pieces: Vec<Piece>,
}

/// Gathers the strips as time passes.
#[derive(Clone, Debug)]
pub(crate) struct Gatherer {
    names: Vec<String>,
    strips: Vec<Turns>,
    /// The turns of each strip that are left to the analysis of the pieces before, in a later piece of a pass.
    log: Option<Vec<Vec<(PieceClass, Ts)>>>,
    to: Ts,
}

impl Gatherer {
    /// Returns empty strips over a window, one for each node of `sets`.
    pub(crate) fn new(sets: &Sets, from: Ts, to: Ts) -> Gatherer {
        let names = sets.node_names();
        Gatherer { strips: names.iter().map(|_| Turns::new(from, to, COLUMNS)).collect(), log: None, names, to }
    }

    /// Applies the sets from `from` on.
    #[inline(never)]
    pub(crate) fn pass(&mut self, from: Ts, sets: &Sets, way: usize) {
        let violated = sets.violation(way).holds();
        for (node, sets_in_node) in sets.in_nodes(way).enumerate() {
            let class = match sets_in_node {
                _ if !violated && sets.is_possible(way) => UNKNOWN,
                _ if !violated => BLANK,
                (true, true) => BOTH_HERE,
                (true, false) => IDLE_HERE,
                (false, true) => WAITING_HERE,
                (false, false) => BLANK,
            };
            self.turn(node, class, from.min(self.to));
        }
    }

    /// Lets the strip of a node show this class from `ts` on.
    fn turn(&mut self, node: usize, class: PieceClass, ts: Ts) {
        match &mut self.log {
            None => self.strips[node].turn(class, ts),
            Some(log) if log[node].last().is_some_and(|(last, _)| *last == class) => {}
            Some(log) => log[node].push((class, ts)),
        }
    }

    /// Notes the turns, where a piece of a pass begins.
    pub(crate) fn resume(&mut self) {
        self.log = Some(vec![Vec::new(); self.names.len()]);
    }

    /// Takes the turns of a later piece.
    pub(crate) fn join(&mut self, later: Gatherer) {
        for (node, turns) in later.log.into_iter().flatten().enumerate() {
            turns.into_iter().for_each(|(class, ts)| self.turn(node, class, ts));
        }
    }

    pub(crate) fn finish(self) -> Vec<Strip> {
        let strips = self.names.into_iter().zip(self.strips);
        strips.map(|(name, turns)| Strip { name, pieces: turns.finish(self.to) }).collect()
    }
}
