//! Limits on what a trace can multiply in a pass. `docs/limits.md` has the table of them.
//!
//! Recordings stay below them. They bound the memory where a file of kilobytes names a task in each of millions of events.

use crate::event::Pid;
use crate::tables::seeded::SeededMap;

/// Maximum number of living tasks that a pass follows at once. Kernels give 1,024 PIDs to each CPU by default
/// (`PIDS_PER_CPU_DEFAULT`): this is the number of a machine with 128 CPUs on which every PID is taken, and each of the
/// tasks was woken or ran while recorded.
pub const TASKS: usize = 1 << 17;

/// Maximum number of PIDs of which something is kept, such as the name or the parent, whether their tasks live or not.
pub const PIDS: usize = 1 << 19;

/// Maximum number of rows of a table by task, by command or by another name from the file. Further ones are summed in
/// one row. On machines with up to 32 CPUs kernels have no more PIDs by default.
pub const ROWS: usize = 1 << 15;

/// Keeps a value for a PID, unless the PID is new and the map has [`PIDS`] of them already.
pub fn keep_of_pid<V>(map: &mut SeededMap<Pid, V>, pid: Pid, value: V) {
    if map.len() < PIDS || map.contains_key(&pid) {
        map.insert(pid, value);
    }
}
