//! Where probes on the balancer were recorded (group `lb`, as the recordings' `balance*.dat` have
//! them): what became of its attempts.

use super::attempts::{Attempts, Examined, Fields, Gatherer, GoingIdle, attempts_text};
use crate::session::Session;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use tracedat::Record;

/// The attempts, from all to those that moved something. Nothing where a probe is missing.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Funnel {
    /// The number of times that a CPU was about to idle (`newidle_balance`).
    newidle: Option<u64>,
    /// The number of these that pulled tasks.
    newidle_pulled: Option<u64>,
    /// Attempts to balance a domain (`load_balance`), by how many tasks they moved.
    attempts_by_moved: Option<BTreeMap<u64, u64>>,
    /// The number of searches for a busiest group (`find_busiest_group`).
    searches: Option<u64>,
    /// The number of these that found none.
    no_busiest_group: Option<u64>,
    /// Times the stopper was sent (`active_balance`).
    active_balance: Option<u64>,
    /// The attempts by kind, domain and outcome (`load_balance` and `find_busiest_group`).
    attempts: Option<Vec<Attempts>>,
    /// The verdicts on the tasks that were examined (`can_migrate`).
    examined: Option<Examined>,
    /// The gating of new-idle balancing (`idle`).
    going_idle: Option<GoingIdle>,
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    gatherer: Gatherer,
}

impl Fields for &Record<'_> {
    fn number(&self, field: &str) -> Option<i64> {
        Record::number(self, field)
    }

    fn text(&self, field: &str) -> Option<String> {
        let bytes = self.bytes(field)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(sched::event::escape(&bytes[..end]).into_owned())
    }
}

impl Funnel {
    /// An empty one, if a trace has such probes.
    pub(crate) fn new(session: &Session) -> Option<Funnel> {
        let zero = |name: &str| session.trace.format_named("lb", name).map(|_| 0u64);
        let funnel = Funnel {
            newidle: zero("newidle_balance"),
            newidle_pulled: zero("newidle_balance"),
            attempts_by_moved: zero("load_balance").map(|_| BTreeMap::new()),
            searches: zero("find_busiest_group"),
            no_busiest_group: zero("find_busiest_group"),
            active_balance: zero("active_balance"),
            attempts: zero("load_balance").and(zero("find_busiest_group")).map(|_| Vec::new()),
            examined: zero("can_migrate").map(|_| Examined::default()),
            going_idle: zero("idle").map(|_| GoingIdle::default()),
            gatherer: Gatherer::new(session.trace.info().kernel.as_deref()),
        };
        let counts = [funnel.newidle, funnel.searches, funnel.active_balance];
        let is_any = counts.iter().any(Option::is_some)
            || funnel.attempts_by_moved.is_some()
            || funnel.examined.is_some()
            || funnel.going_idle.is_some();
        is_any.then_some(funnel)
    }

    /// That of the window of a trace, if it has such probes.
    pub(crate) fn of(session: &Session) -> Option<Funnel> {
        let mut funnel = Funnel::new(session)?;
        session.trace.records_from(session.from, &mut |record| {
            if record.ts > session.to {
                return ControlFlow::Break(());
            }
            funnel.take(record);
            ControlFlow::Continue(())
        });
        funnel.close();
        Some(funnel)
    }

    /// Takes over the counts gathered, as far as the probes for it were recorded.
    fn close(&mut self) {
        let Funnel { attempts, examined, going_idle, gatherer, .. } = self;
        attempts.iter_mut().for_each(|attempts| *attempts = gatherer.attempts());
        examined.iter_mut().for_each(|examined| *examined = gatherer.examined);
        going_idle.iter_mut().for_each(|going_idle| *going_idle = gatherer.going_idle);
    }

    /// Counts a record, if it is of one of the probes.
    pub(crate) fn take(&mut self, record: &Record<'_>) {
        let Some(format) = record.format().filter(|f| f.system == "lb") else { return };
        let add = |sum: &mut Option<u64>, n: bool| *sum = sum.map(|sum| sum + u64::from(n));
        let number = |field| record.number(field).unwrap_or(0);
        self.gatherer.take(record.cpu.0, &format.name, &record);
        match format.name.as_str() {
            "newidle_balance" => {
                add(&mut self.newidle, true);
                add(&mut self.newidle_pulled, number("pulled") > 0);
            }
            "load_balance" => {
                let moved = number("moved").max(0).unsigned_abs();
                *self.attempts_by_moved.get_or_insert_default().entry(moved).or_default() += 1;
            }
            "find_busiest_group" => {
                add(&mut self.searches, true);
                add(&mut self.no_busiest_group, number("group") == 0);
            }
            "active_balance" => add(&mut self.active_balance, true),
            _ => {}
        }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut out = String::from("\nProbes on the balancer (group lb):\n");
        // Writing to a string cannot fail.
        if let (Some(n), Some(pulled)) = (self.newidle, self.newidle_pulled) {
            let _ = writeln!(out, "  {n:>8} times a CPU was about to idle; {pulled} times it pulled a task");
        }
        if let Some(by_moved) = &self.attempts_by_moved {
            let _ = writeln!(out, "  {:>8} attempts to balance a domain", by_moved.values().sum::<u64>());
        }
        if let (Some(n), Some(none)) = (self.searches, self.no_busiest_group) {
            let _ = writeln!(out, "  {none:>8} of {n} searches found no busiest group");
        }
        for (moved, n) in self.attempts_by_moved.iter().flatten() {
            let what = match moved {
                0 => "nothing".to_owned(),
                1 => "1 task".to_owned(),
                n => format!("{n} tasks"),
            };
            let attempts = if *n == 1 { "attempt" } else { "attempts" };
            let _ = writeln!(out, "  {n:>8} {attempts} moved {what}");
        }
        if let Some(n) = self.active_balance {
            let _ = writeln!(out, "  {n:>8} times the stopper was sent (active balance)");
        }
        if let Some(examined) = &self.examined {
            examined.text(&mut out);
        }
        if let Some(going_idle) = &self.going_idle {
            going_idle.text(&mut out);
        }
        if let Some(attempts) = self.attempts.as_ref().filter(|attempts| !attempts.is_empty()) {
            attempts_text(&mut out, attempts);
        }
        out
    }
}
