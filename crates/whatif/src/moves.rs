//! The moves of waiting tasks, in the order of the trace, until the model has those of each join together.

use crate::model::{JoinIndex, Model, QueuedMove};

/// The moves so far, with the join that each belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves(Vec<(JoinIndex, QueuedMove)>);

impl Moves {
    /// The task of a join moves.
    pub(crate) fn add(&mut self, join: JoinIndex, to: QueuedMove) {
        self.0.push((join, to));
    }

    /// Gives the model the moves of each join, in their order.
    pub(crate) fn give(mut self, model: &mut Model) {
        self.0.sort_by_key(|(join, _)| *join);
        let mut first = 0;
        for of_join in self.0.chunk_by(|(a, _), (b, _)| a == b) {
            let last = first + of_join.len() as u32;
            if let Some((join, _)) = of_join.first() {
                model.joins[*join as usize].moves = (first, last);
            }
            first = last;
        }
        model.moves = self.0.into_iter().map(|(_, to)| to).collect();
    }
}
