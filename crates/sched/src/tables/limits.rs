//! Limits on what a trace can multiply in a pass. `docs/limits.md` has the table of them.
//!
//! Recordings stay below them. They bound the memory where a file of kilobytes names a task in each of millions of events.

use crate::event::Pid;
use crate::tables::seeded::SeededMap;
use std::hash::Hash;

// Each limit is as many as a hash table of a power of two holds, seven of eight places (hashbrown): one more, and every table of them doubles.

/// Maximum number of living tasks that a pass follows at once. Kernels give 1,024 PIDs to each CPU by default
/// (`PIDS_PER_CPU_DEFAULT`): this is the number of a machine with 112 CPUs on which every PID is taken, and each of the
/// tasks was woken or ran while recorded.
pub const TASKS: usize = 7 << 14;

/// Maximum number of PIDs of which something is kept, such as the name or the parent, whether their tasks live or not.
pub const PIDS: usize = 7 << 16;

/// Maximum number of changes of names, of all tasks together, 25 MB. Beyond it each task keeps the name that it had.
pub const NAME_CHANGES: usize = 1 << 20;

/// Maximum number of rows of a table by task, by command or by another name from the file. Further ones are summed in
/// one row. On machines with up to 32 CPUs kernels have no more PIDs by default.
pub const ROWS: usize = 1 << 15;

/// Keeps a value for a PID, unless the PID is new and the map has [`PIDS`] of them already.
pub fn keep_of_pid<V>(map: &mut SeededMap<Pid, V>, pid: Pid, value: V) {
    if map.len() < PIDS || map.contains_key(&pid) {
        map.insert(pid, value);
    }
}

/// The sums of a table's rows by key: at most [`ROWS`] of them, and one for the rest.
#[derive(Clone, Debug)]
pub struct BoundedRows<K, V> {
    rows: Vec<(K, V)>,
    places: SeededMap<K, usize>,
}

impl<K, V> Default for BoundedRows<K, V> {
    fn default() -> Self {
        BoundedRows { rows: Vec::new(), places: SeededMap::default() }
    }
}

impl<K: Copy + Eq + Hash, V: Default> BoundedRows<K, V> {
    /// Returns the place of the row of `key`, which is made if it is new; that of `rest` where no further row may be made. The
    /// caller gives the same `rest` each time.
    pub fn place(&mut self, mut key: K, rest: K) -> usize {
        if self.rows.len() >= ROWS && !self.places.contains_key(&key) {
            key = rest;
        }
        let rows = &mut self.rows;
        *self.places.entry(key).or_insert_with(|| {
            rows.push((key, V::default()));
            rows.len() - 1
        })
    }

    /// The sums of the row at a place.
    pub fn at(&mut self, place: usize) -> &mut V {
        &mut self.rows[place].1
    }

    /// The sums of the row of `key`, or of `rest`; see [`BoundedRows::place`].
    pub fn of(&mut self, key: K, rest: K) -> &mut V {
        let place = self.place(key, rest);
        self.at(place)
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows, in the order in which they came.
    pub fn into_rows(self) -> Vec<(K, V)> {
        self.rows
    }
}
