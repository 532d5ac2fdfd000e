//! hackbench of rt-tests: a line on its mode, and one with the time.

use crate::{NumbersFound, labelled};
use question::Better;

pub(crate) fn read(lines: &[&str], found: &mut NumbersFound) {
    let is_head = |line: &&&str| line.starts_with("Running in ") && line.contains(" mode with ");
    if !lines.iter().any(|line| is_head(&line)) {
        return;
    }
    let mut times = lines.iter().rev().filter(|line| line.starts_with("Time:"));
    if let Some(seconds) = times.find_map(|line| labelled(line, "Time:")) {
        found.row("hackbench-time", "hackbench time, s", Better::Less, seconds);
    }
}
