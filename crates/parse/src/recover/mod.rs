//! Facts that a damaged or unusual file lacks, found from its data.

pub(crate) mod cpu_numbers;
pub(crate) mod cpu_table;
pub(crate) mod page_size;
