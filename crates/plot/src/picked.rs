//! Events as far as a specification needs them: read on any thread, and taken by one in their order.

use crate::compile::EventPart;
use crate::expr::{EventValue, EventValues};
use crate::pairing::PairKey;
use crate::seen::{Event, EventInItem, Picker};
use crate::spec::{ColorSpec, IntervalSource, LaneKind, Placed};
use sched::seeded::SeededMap;
use sched::{Cpu, Dur, Pid, Ts};
use std::collections::hash_map::Entry;

/// The values of an event that decide how an item is drawn.
#[derive(Clone, Debug)]
pub(crate) struct PickedFacts {
    /// The value of the field whose values have colours.
    pub(crate) color: Option<EventValue>,
    pub(crate) label: Option<String>,
    /// The value of the field that lanes go by; nothing where they go by CPU or by task.
    pub(crate) lane: Option<EventValue>,
}

/// The part that an event has in a figure, with the values that it needs.
#[derive(Clone, Debug)]
pub(crate) enum PickedPart {
    /// Events of the CPU were lost before the next part.
    Lost,
    /// The event begins the interval in this place.
    Begin(usize, PairKey, PickedFacts),
    /// The event ends the interval in this place.
    End(usize, PairKey),
    /// The event is the whole interval in this place, if it has a length.
    Lone(usize, Option<(Dur, PickedFacts)>),
    /// The event is the point in this place.
    Point(usize, PickedFacts),
    /// The event is a sample of the series in this place, of one of its lines.
    Sample(usize, Option<EventValue>, f64),
}

/// A part of an event in a figure.
#[derive(Clone, Debug)]
pub(crate) struct PickedStep {
    pub(crate) ts: Ts,
    pub(crate) cpu: Cpu,
    pub(crate) pid: Pid,
    pub(crate) part: PickedPart,
}

/// The parts of a run of events, with the names of the tasks that lanes go by.
#[derive(Debug, Default)]
pub(crate) struct PickedSteps {
    pub(crate) steps: Vec<PickedStep>,
    names: SeededMap<Pid, String>,
}

impl PickedSteps {
    /// The name of a task, as its first event in the run with a name has it; empty where none has.
    pub(crate) fn name(&self, pid: Pid) -> &str {
        self.names.get(&pid).map_or("", String::as_str)
    }

    /// Adds the parts of the next event.
    pub(crate) fn add<E: Event>(&mut self, event: &E, picker: &Picker<'_>) {
        if event.is_after_loss() {
            self.push(event, PickedPart::Lost);
        }
        for action in picker.plan.actions(event.id()) {
            let part = match action.part {
                EventPart::Begin(place) => picker
                    .begin(event, action, place)
                    .map(|(key, seen)| PickedPart::Begin(place, key, picker.facts_of_interval(place, &seen))),
                EventPart::End(place) => picker.end(event, action, place).map(|key| PickedPart::End(place, key)),
                EventPart::Lone(place) => {
                    let condition = picker.plan.spec.intervals[place].condition.as_ref();
                    let seen = EventInItem::of(event, action, condition).filter(|seen| picker.is_wanted(seen));
                    seen.map(|seen| PickedPart::Lone(place, picker.lone(place, &seen)))
                }
                EventPart::Point(place) => {
                    let condition = picker.plan.spec.points[place].condition.as_ref();
                    let seen = EventInItem::of(event, action, condition).filter(|seen| picker.is_wanted(seen));
                    seen.map(|seen| PickedPart::Point(place, picker.facts_of_point(place, &seen)))
                }
                EventPart::Sample(place) => {
                    picker.value(event, action, place).map(|(by, value)| PickedPart::Sample(place, by, value))
                }
            };
            if let Some(part) = part {
                if picker.plan.spec.lanes.by == LaneKind::Task {
                    self.call(event);
                }
                self.push(event, part);
            }
        }
    }

    fn push<E: Event>(&mut self, event: &E, part: PickedPart) {
        self.steps.push(PickedStep { ts: event.ts(), cpu: event.cpu(), pid: event.pid(), part });
    }

    /// Notes the name of the task of an event.
    fn call<E: Event>(&mut self, event: &E) {
        if let Entry::Vacant(place) = self.names.entry(event.pid()) {
            let name = event.command();
            if !name.is_empty() {
                place.insert(name);
            }
        }
    }
}

impl Picker<'_> {
    /// The values of an event that begins, or is, an interval.
    pub(crate) fn facts_of_interval<E: Event>(&self, place: usize, seen: &EventInItem<'_, E>) -> PickedFacts {
        let interval = &self.plan.spec.intervals[place];
        self.facts(&interval.color, interval.label.as_ref(), seen)
    }

    fn facts_of_point<E: Event>(&self, place: usize, seen: &EventInItem<'_, E>) -> PickedFacts {
        let point = &self.plan.spec.points[place];
        self.facts(&point.color, point.label.as_ref(), seen)
    }

    fn facts<E: Event>(&self, color: &ColorSpec, label: Option<&Placed>, seen: &EventInItem<'_, E>) -> PickedFacts {
        let color = match color {
            ColorSpec::By(field) => seen.value(&field.text),
            ColorSpec::Next | ColorSpec::Fixed(..) => None,
        };
        let lane = match &self.plan.spec.lanes.by {
            LaneKind::Cpu | LaneKind::Task => None,
            LaneKind::Field(field) => seen.value(&field.text),
        };
        PickedFacts { color, label: seen.text(label), lane }
    }

    /// The length and the values of an event that is a whole interval; nothing if it has no length.
    fn lone<E: Event>(&self, place: usize, seen: &EventInItem<'_, E>) -> Option<(Dur, PickedFacts)> {
        let IntervalSource::Lone { duration, unit, .. } = &self.plan.spec.intervals[place].source else { return None };
        let Some(EventValue::Number(n)) = seen.value(&duration.text) else { return None };
        let length = Dur(u64::try_from(n).unwrap_or(0).saturating_mul(unit.ns()));
        Some((length, self.facts_of_interval(place, seen)))
    }
}
