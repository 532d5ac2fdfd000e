//! The parts that an index is made of: columns of lanes, of the machine and of migrations, lists, tasks, and their bytes.

pub(crate) mod coding;
pub(crate) mod doubts;
pub(crate) mod lane;
pub(crate) mod longest;
pub(crate) mod machine;
pub(crate) mod moves;
pub(crate) mod row;
pub(crate) mod shape;
pub(crate) mod sums;
pub(crate) mod tasks;
pub(crate) mod tree;
