//! A trace as texts name it, with the command that draws a part of it.

use sched::Dur;
use std::fmt;

/// A trace by its name. A text about a part of it has the command that draws that part, to be copied and run.
#[derive(Clone, Debug)]
pub struct Drawable {
    name: String,
    command: String,
    length: Dur,
}

impl Drawable {
    /// A trace of this name and length, all of which `command` draws.
    pub fn new(name: impl Into<String>, command: impl Into<String>, length: Dur) -> Drawable {
        Drawable { name: name.into(), command: command.into(), length }
    }

    /// The command that draws what began so many nanoseconds after the start of the trace and lasted so long, with a
    /// quarter more of it on either side, a microsecond at least, where the trace has that.
    pub fn part(&self, start_ns: u64, length: Dur) -> String {
        let margin = (length.0 / 4).max(1_000);
        let end = start_ns.saturating_add(length.0);
        // A microsecond after the end, so that rounding to microseconds leaves the last event in.
        let last = end.max(self.length.0.saturating_add(1_000));
        let (from, to) = (start_ns.saturating_sub(margin), end.saturating_add(margin).min(last));
        format!("{} --min {:.6} --max {:.6}", self.command, from as f64 / 1e9, to as f64 / 1e9)
    }

    /// The command that draws a part of the trace, with words in place of the times.
    pub fn any_part(&self) -> String {
        format!("{} --min START --max END", self.command)
    }
}

impl fmt::Display for Drawable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_something_around_it() {
        let trace = Drawable::new("a.dat", "draw a.dat", Dur(7_000_000_000));
        assert_eq!(trace.part(2_000_000_000, Dur(4_000_000)), "draw a.dat --min 1.999000 --max 2.005000");
        assert_eq!(trace.part(500, Dur(8)), "draw a.dat --min 0.000000 --max 0.000002");
        let to_the_end = "draw a.dat --min 5.125000 --max 7.000001";
        assert_eq!(trace.part(5_500_000_000, Dur(1_499_999_999)), to_the_end);
        assert_eq!(trace.any_part(), "draw a.dat --min START --max END");
        assert_eq!(trace.to_string(), "a.dat");
    }
}
