//! The facts about the rows of the tasks, by which the page chooses and sorts them.

use crate::columns::row::{RowState, STATES};
use crate::index::viewed::{NotReady, Viewed};
use serde_json::{Value, json};

/// The time of each task in each state, and its first run, in the order of the tasks of the trace.
pub(crate) fn answer(trace: &Viewed<'_>) -> Result<Value, NotReady> {
    let store = trace.store()?;
    let rows = store.rows().map_err(NotReady)?;
    let times: Vec<Vec<u64>> = (0..STATES).map(|state| rows.sums.iter().map(|row| row.ns[state]).collect()).collect();
    let first: Vec<Option<u64>> = rows.sums.iter().map(|row| row.first_run).collect();
    Ok(json!({ "states": RowState::NAMES, "times": times, "first": first }))
}
