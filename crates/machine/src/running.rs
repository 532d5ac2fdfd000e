//! The tasks of the recorded command, as they were found while it ran.

use std::collections::BTreeMap;

/// The tasks of the recorded command that were read while it ran: those that several readings have found with one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningTasks {
    /// The tasks by the CPUs that they could use, each list as the kernel prints it, such as `0-7`.
    pub lists: BTreeMap<String, Vec<i32>>,
    /// The tasks by the numbers of their policies.
    pub policies: BTreeMap<u32, Vec<i32>>,
}
