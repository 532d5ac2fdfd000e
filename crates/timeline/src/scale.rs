//! From instants to places on the page, and the ticks between.

use draw::{PT, Unit};
use sched::Ts;

/// The size of the letters at axes, in legends and in notes.
pub const LETTER: Unit = 7 * PT;

/// The scale of time along the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeScale {
    /// The instant at the left edge.
    pub from: Ts,
    /// The instant at the right edge.
    pub to: Ts,
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The left edge on the page.
    pub x: Unit,
    /// The width on the page.
    pub width: Unit,
}

/// A tick on an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The place of the tick along its axis.
    pub at: Unit,
    /// The label of the tick.
    pub label: String,
}

impl TimeScale {
    /// The length of time shown, at least a nanosecond.
    pub fn span(&self) -> u64 {
        self.to.since(self.from).0.max(1)
    }

    /// The place of an instant; those outside are at the edges.
    pub fn at(&self, ts: Ts) -> Unit {
        let passed = u128::from(ts.since(self.from).0.min(self.span()));
        self.x + (passed * self.width as u128 / u128::from(self.span())) as Unit
    }

    /// The unit in which times are best read here: its name, and nanoseconds.
    fn unit(&self) -> (&'static str, f64) {
        let largest = self.to.0.saturating_sub(self.zero.0).unsigned_abs();
        match largest {
            0..10_000 => ("ns", 1.0),
            10_000..10_000_000 => ("µs", 1e3),
            10_000_000..1_000_000_000 => ("ms", 1e6),
            _ => ("seconds", 1e9),
        }
    }

    /// The title of the axis.
    pub fn title(&self) -> String {
        format!("{} from the start of the trace", self.unit().0)
    }

    /// Returns ticks at round times, about ten, or fewer if their labels would touch.
    pub fn fitting_ticks(&self) -> Vec<Tick> {
        let touch = |ticks: &[Tick]| {
            let half = |tick: &Tick| draw::text::width(&tick.label, LETTER) / 2;
            ticks.windows(2).any(|w| w[1].at - w[0].at < half(&w[0]) + half(&w[1]) + 4 * PT)
        };
        let few = (1..=10).rev().map(|about| self.ticks(about));
        let mut ticks = few.into_iter().find(|ticks| !touch(ticks)).unwrap_or_default();
        if ticks.is_empty() {
            ticks = self.ticks(1);
            ticks.truncate(1);
        }
        ticks
    }

    /// Ticks at round times, about this number.
    pub fn ticks(&self, about: u32) -> Vec<Tick> {
        let step = round_step(self.span() / u64::from(about.max(1)));
        let (_, unit) = self.unit();
        let digits = (unit.log10() - (step as f64).log10().floor()).max(0.0) as usize;
        let from = i128::from(self.from.0) - i128::from(self.zero.0);
        let first = from.div_euclid(i128::from(step)) + i128::from(from.rem_euclid(i128::from(step)) > 0);
        let tick = |k: i128| {
            let ns = (first + k) * i128::from(step);
            let ts = Ts((ns + i128::from(self.zero.0)) as i64);
            (ts <= self.to).then(|| Tick { at: self.at(ts), label: format!("{:.digits$}", ns as f64 / unit) })
        };
        (0..1000).map_while(tick).collect()
    }
}

/// The least of 1, 2 or 5 times a power of ten that is at least `n`.
pub fn round_step(n: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= n || step == u64::MAX {
                return step.max(1);
            }
        }
        power = power.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: i64, to: i64) -> Vec<String> {
        let scale = TimeScale { from: Ts(from), to: Ts(to), zero: Ts(0), x: 0, width: 1000 };
        scale.ticks(4).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_round_at_any_length() {
        assert_eq!(labels(0, 4_000_000_000), ["0", "1", "2", "3", "4"]);
        assert_eq!(labels(0, 400_000), ["0", "100", "200", "300", "400"]);
        assert_eq!(labels(0, 86_400_000_000_000), ["0", "50000"]);
        assert_eq!(labels(3_200_000_000, 3_200_040_000), ["3.20000", "3.20001", "3.20002", "3.20003", "3.20004"]);
        assert_eq!(labels(7, 7), ["7"]);
        assert_eq!(labels(-5, 5), ["-4", "-2", "0", "2", "4"]);
        assert_eq!([round_step(0), round_step(3), round_step(10), round_step(u64::MAX)], [1, 5, 10, u64::MAX]);
    }

    #[test]
    fn places_are_inside_and_monotone() {
        let scale = TimeScale { from: Ts(100), to: Ts(i64::MAX / 2), zero: Ts(0), x: 50, width: 70_000 };
        assert_eq!((scale.at(Ts(0)), scale.at(Ts(i64::MAX / 2)), scale.at(Ts::MAX)), (50, 70_050, 70_050));
    }
}
