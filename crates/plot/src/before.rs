//! The events before a window that matter in it: those that began intervals which go on, and those whose values hold.

use crate::compile::{EventPart, Plan};
use crate::expr::EventValue;
use crate::pairing::{OpenPair, Pairs};
use crate::seen::{Event, Picker};
use crate::series::MOST_LINES;
use sched::{Cpu, Ts};
use serde::{Deserialize, Serialize};

/// An event before a window that matters in it.
#[derive(Clone, Debug)]
pub struct Carried<E> {
    /// The part of the event in the specification.
    pub part: CarriedPart,
    /// The event, in the form of the caller.
    pub event: E,
}

impl<E> Carried<E> {
    /// The carried event in another form.
    pub fn map<F>(self, form: impl FnOnce(E) -> F) -> Carried<F> {
        Carried { part: self.part, event: form(self.event) }
    }
}

/// The part of a carried event in a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CarriedPart {
    /// The event began the interval in this place of the specification.
    Interval(usize),
    /// The event set a value of a series.
    Value {
        /// The place of the series in the specification.
        series: usize,
        /// Whether the value holds; otherwise events were lost behind it, which may have changed it.
        is_known: bool,
    },
}

/// A value that was set, and whether it still holds.
#[derive(Clone, Debug)]
struct Held<K> {
    by: Option<EventValue>,
    event: K,
    is_known: bool,
}

/// Follows the events before a window. Each that may matter is kept in a form of the caller's.
#[derive(Debug)]
pub struct Before<'p, K> {
    picker: Picker<'p>,
    pairs: Vec<Pairs<K>>,
    /// The lines of each series, in the order of their first values.
    held: Vec<Vec<Held<K>>>,
}

impl<'p, K> Before<'p, K> {
    /// Begins to follow what a plan draws on these CPUs.
    pub fn new(plan: &'p Plan, cpus: &[(Cpu, Option<u32>)]) -> Before<'p, K> {
        let pairs = plan.spec.intervals.iter().map(|interval| Pairs::new(interval.source.is_by_cpu())).collect();
        let held = plan.spec.series.iter().map(|_| Vec::new()).collect();
        Before { picker: Picker::new(plan, cpus), pairs, held }
    }

    /// Whether an event of this number can matter, if no events were lost before it.
    pub fn wants(&self, id: u16) -> bool {
        let plan = self.picker.plan;
        plan.actions(id).iter().any(|action| plan.carries(&action.part))
    }

    /// Takes an event that an earlier look carried, before all others.
    pub fn resume<E: Event>(&mut self, part: CarriedPart, event: &E, kept: K) {
        let plan = self.picker.plan;
        match part {
            CarriedPart::Interval(place) => {
                if let Some(action) = plan.action(event.id(), &EventPart::Begin(place))
                    && let Some((key, _)) = self.picker.begin(event, action, place)
                {
                    let _ = self.pairs[place].begin(key, OpenPair { since: event.ts(), cpu: event.cpu(), of: kept });
                }
            }
            CarriedPart::Value { series, is_known } => {
                if let Some(action) = plan.action(event.id(), &EventPart::Sample(series))
                    && let Some((by, _)) = self.picker.value(event, action, series)
                {
                    self.hold(series, Held { by, event: kept, is_known });
                }
            }
        }
    }

    /// Takes an event, in the order of time.
    pub fn event<E: Event>(&mut self, event: &E, keep: impl Fn() -> K) {
        if event.is_after_loss() {
            self.lost(event.cpu());
        }
        let plan = self.picker.plan;
        for action in plan.actions(event.id()) {
            match action.part {
                EventPart::Begin(place) => self.resume(CarriedPart::Interval(place), event, keep()),
                EventPart::End(place) => {
                    if let Some(key) = self.picker.end(event, action, place) {
                        let _ = self.pairs[place].end(&key);
                    }
                }
                EventPart::Sample(series) if plan.carries(&action.part) => {
                    self.resume(CarriedPart::Value { series, is_known: true }, event, keep());
                }
                EventPart::Sample(_) | EventPart::Lone(_) | EventPart::Point(_) => {}
            }
        }
    }

    /// Sets the value of a line. Further lines than a series has are not followed.
    fn hold(&mut self, series: usize, value: Held<K>) {
        let lines = &mut self.held[series];
        match lines.iter().position(|line| line.by == value.by) {
            Some(place) => lines[place] = value,
            None if lines.len() < MOST_LINES => lines.push(value),
            None => {}
        }
    }

    /// Notes that events were lost on a CPU: intervals may have ended there, and any value may have changed.
    fn lost(&mut self, cpu: Cpu) {
        self.pairs.iter_mut().for_each(|pairs| drop(pairs.lost(cpu)));
        self.held.iter_mut().flatten().for_each(|line| line.is_known = false);
    }

    /// The events that matter behind the last one taken: the beginnings of intervals in the order of time, then values.
    pub fn finish(mut self) -> Vec<Carried<K>> {
        let mut begun: Vec<(Ts, Cpu, Carried<K>)> = Vec::new();
        for (place, pairs) in self.pairs.iter_mut().enumerate() {
            let part = CarriedPart::Interval(place);
            let open = pairs.finish().into_iter();
            begun.extend(open.map(|open| (open.since, open.cpu, Carried { part, event: open.of })));
        }
        begun.sort_by_key(|(since, cpu, _)| (*since, *cpu));
        let values = self.held.into_iter().enumerate().flat_map(|(series, lines)| {
            let part = move |is_known| CarriedPart::Value { series, is_known };
            lines.into_iter().map(move |Held { event, is_known, .. }| Carried { part: part(is_known), event })
        });
        begun.into_iter().map(|(.., carried)| carried).chain(values).collect()
    }
}
