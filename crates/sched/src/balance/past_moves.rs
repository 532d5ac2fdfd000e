//! Migrations and attempts to balance that go on at the start of a part of a trace, and migrations in the part that what
//! follows it settles: a note among those of the analyses.

use crate::balance::balancer::{PastAttempt, PastNewIdle};
use crate::balance::causes::{Cause, MoveKey, NotedMigration, PastCauses};
use crate::event::Cpu;
use crate::state::past::Past;
use crate::tables::serial::bounded;
use serde::{Deserialize, Serialize};

/// The name of the note.
const NAME: &str = "moves";

/// The note on migrations and attempts to balance, among the notes of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastMoves {
    /// The migrations that are not settled, and the events that decide the causes of the next ones.
    pub causes: PastCauses,
    /// The migration that the stopper of each CPU has made since it was switched in, and its cause once that was
    /// settled.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub stopped: Vec<(Cpu, MoveKey, Option<Cause>)>,
    /// The attempts to balance that go on, by CPU.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub balancing: Vec<(Cpu, PastAttempt)>,
    /// New-idle balancing since the latest switch of each CPU.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub newidles: Vec<(Cpu, PastNewIdle)>,
    /// The migrations in the part that events behind the part settle.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub settled: Vec<NotedMigration>,
}

impl PastMoves {
    /// Reads the note of a part; empty if the part has none.
    pub fn of(past: &Past) -> PastMoves {
        past.notes.get(NAME).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Whether the note of a part can be read, if the part has one.
    pub fn is_readable(past: &Past) -> bool {
        past.notes.get(NAME).is_none_or(|text| serde_json::from_str::<PastMoves>(text).is_ok())
    }

    /// Adds the note to those of a part.
    pub(crate) fn note(&self, past: &mut Past) {
        past.notes.extend(serde_json::to_string(self).ok().map(|text| (NAME.to_owned(), text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_note_is_no_empty_one() {
        let mut past = Past::default();
        assert!(PastMoves::is_readable(&past), "a part without the note");
        let moves = PastMoves { stopped: vec![(Cpu(1), Default::default(), None)], ..PastMoves::default() };
        moves.note(&mut past);
        assert_eq!((PastMoves::is_readable(&past), PastMoves::of(&past)), (true, moves));
        past.notes.insert(NAME.to_owned(), "{".to_owned());
        assert!(!PastMoves::is_readable(&past));
    }
}
