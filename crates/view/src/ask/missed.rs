//! The missed steals of a trace: their number by distance, and the longest of them; the longest episodes of violation of chosen waiters.

use crate::columns::longest::Longest;
use sched::{Cpu, Ts};
use serde_json::{Value, json};

/// A switch to idle beside a waiting task, with the idle stretch that it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissedSteal {
    /// The start of the idle stretch, on the clock of the trace.
    pub from: Ts,
    /// The end of the idle stretch, on the clock of the trace.
    pub to: Ts,
    /// The CPU that idled during the stretch.
    pub cpu: Cpu,
    /// The part of the stretch in violation, in nanoseconds.
    pub violated_ns: u64,
    /// The distance to the nearest CPU with a counted waiter, in a word.
    pub nearest: &'static str,
}

/// The missed steals from one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedAt {
    /// The distance to the nearest CPU with a counted waiter, in a word.
    pub nearest: &'static str,
    /// The number of missed steals from this distance.
    pub number: u64,
    /// The CPU time in violation of the idle stretches that began so, in nanoseconds.
    pub violated_ns: u64,
}

/// The missed steals of a trace.
#[derive(Clone, Debug, Default)]
pub struct MissedSteals {
    /// The number of switches to idle that left an empty run queue.
    pub idle_entries: u64,
    /// The number of missed steals from all distances.
    pub number: u64,
    /// The missed steals of each distance, the nearest first.
    pub by_distance: Vec<MissedAt>,
    /// The sentence that replaces all numbers where they are unknown.
    unknown: Option<&'static str>,
    longest: Longest<MissedSteal>,
}

/// The longest episodes of violation.
#[derive(Clone, Debug, Default)]
pub struct ViolationList {
    longest: Longest<(Ts, Ts)>,
}

impl ViolationList {
    /// Lists an episode from one instant to another, unless many others are longer.
    pub fn list(&mut self, from: Ts, to: Ts) {
        self.longest.put(to.since(from).0, (from, to));
    }

    /// The answer to the page, with times from `zero`.
    pub(crate) fn answer(&self, zero: Ts) -> Value {
        let (longest, dropped) = self.longest.list();
        let row = |(from, to): &(Ts, Ts)| {
            let text = format!("{} in violation", to.since(*from).human());
            json!({ "from": from.since(zero).0, "to": to.since(zero).0, "cpu": null, "pid": null, "text": text })
        };
        json!({ "rows": longest.iter().map(row).collect::<Vec<_>>(), "truncated": dropped > 0, "waiters": "application" })
    }
}

impl MissedSteals {
    /// Unknown missed steals; the sentence says why.
    pub fn unknown(why: &'static str) -> MissedSteals {
        MissedSteals { unknown: Some(why), ..MissedSteals::default() }
    }

    /// Lists a missed steal, unless many others are longer.
    pub fn list(&mut self, missed: MissedSteal) {
        self.longest.put(missed.to.since(missed.from).0, missed);
    }

    /// The answer to the page, with times from `zero`.
    pub(crate) fn answer(&self, zero: Ts) -> Value {
        let (longest, dropped) = self.longest.list();
        let row = |missed: &MissedSteal| {
            let MissedSteal { from, to, cpu, violated_ns, nearest } = *missed;
            let violated = sched::Dur(violated_ns).human();
            let text = format!("CPU {cpu} idled {}, {violated} of it in violation", to.since(from).human());
            let (from, to) = (from.since(zero).0, to.since(zero).0);
            json!({
                "from": from, "to": to, "cpu": cpu, "pid": null, "text": text,
                "nearest": nearest, "violated": violated_ns,
            })
        };
        let distance =
            |at: &MissedAt| json!({ "nearest": at.nearest, "number": at.number, "violated": at.violated_ns });
        json!({
            "rows": longest.iter().map(row).collect::<Vec<_>>(),
            "truncated": dropped > 0,
            "unknown": self.unknown,
            "number": self.unknown.is_none().then_some(self.number),
            "idle_entries": self.unknown.is_none().then_some(self.idle_entries),
            "by_distance": self.by_distance.iter().map(distance).collect::<Vec<_>>(),
        })
    }
}
