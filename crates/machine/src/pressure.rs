//! Pressure stall information: the time for which tasks waited for CPUs, as the kernel counts it.

use crate::Root;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The totals of a file of pressure, since the machine was booted or the cgroup was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// The time for which some task waited for a CPU, in microseconds.
    pub some_us: u64,
    /// The time for which tasks waited for a CPU and no other task of the group ran, in microseconds; absent where the kernel does not
    /// count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_us: Option<u64>,
}

impl Pressure {
    /// Reads a file of pressure; nothing if there is none.
    pub(crate) fn read(root: &Root, file: impl AsRef<Path>) -> Option<Pressure> {
        Pressure::parse(&root.text(file)?)
    }

    /// Parses the lines `some … total=N` and `full … total=N`.
    fn parse(text: &str) -> Option<Pressure> {
        let total = |kind: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
            line.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
        };
        Some(Pressure { some_us: total("some")?, full_us: total("full") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        let text =
            "some avg10=0.18 avg60=0.03 avg300=0.00 total=63253\nfull avg10=0.18 avg60=0.03 avg300=0.00 total=63181";
        assert_eq!(Pressure::parse(text), Some(Pressure { some_us: 63_253, full_us: Some(63_181) }));
        let old = text.lines().next().unwrap();
        assert_eq!(Pressure::parse(old), Some(Pressure { some_us: 63_253, full_us: None }));
        assert_eq!((Pressure::parse(""), Pressure::parse("some total=x")), (None, None));
    }
}
