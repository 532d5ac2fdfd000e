//! The rows of the tasks in an exported folder: tiles of all tasks on few levels.

use crate::ask::row_facts;
use crate::export::pack::Packer;
use crate::index::viewed::{NotReady, Viewed};
use serde_json::{Value, json};
use std::io;

/// The rows take at most this part of the bytes of the lanes, one in so many.
pub(crate) const SHARE: usize = 8;
/// The number of tasks of a tile, by their places.
const TASKS: usize = 64;

/// Packs the rows, the coarsest level first, as long as they take at most `room` bytes; returns the finest level that is there, nothing where there
/// is none.
pub(crate) fn pack(trace: &Viewed<'_>, room: usize, packer: &mut Packer<'_>) -> io::Result<Option<u32>> {
    if room == 0 {
        return Ok(None);
    }
    let failed = |NotReady(why)| io::Error::other(why);
    let store = trace.store().map_err(failed)?;
    let (tasks, (_, top)) = (store.index().tasks().list().len(), store.index().levels());
    let base = store.rows().map_err(io::Error::other)?.levels().0;
    let (mut left, mut finest) = (room, None);
    for level in (base..=top).rev() {
        let mut tiles = Vec::new();
        for index in (0..).take_while(|index| store.index().has_tile(level, *index)) {
            let mut here = Vec::new();
            for first in (0..tasks).step_by(TASKS) {
                let places: Vec<usize> = (first..tasks.min(first + TASKS)).collect();
                let Some(tile) = trace.row_tile(level, index, &places).map_err(failed)? else { continue };
                let Some(rest) = left.checked_sub(tile.len()) else { return Ok(finest) };
                left = rest;
                here.push((format!("rows/{level}/{index}/{}.bin", first / TASKS), tile));
            }
            tiles.push((index, here));
        }
        // A level is there as a whole or not at all: nothing stands in for a part of it.
        for (index, here) in &tiles {
            packer.add("rows", (level, *index), here)?;
        }
        finest = Some(level);
    }
    Ok(finest)
}

/// The facts about the rows, with the levels of those that are in the folder; null where there are none.
pub(crate) fn facts(trace: &Viewed<'_>, finest: Option<u32>) -> Result<Value, NotReady> {
    let Some(finest) = finest else { return Ok(Value::Null) };
    let top = trace.store()?.index().levels().1;
    let mut facts = row_facts::answer(trace)?;
    facts["levels"] = json!([finest, top]);
    Ok(facts)
}
