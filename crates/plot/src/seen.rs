//! Events as the items of a specification see them.

use crate::compile::{Action, Plan};
use crate::expr::{EventValue, EventValues};
use crate::pairing::PairKey;
use crate::spec::{Condition, IntervalSource, Placed, Quantity};
use crate::system_calls::SystemCalls;
use sched::{Cpu, Pid, Ts};
use timeline::Rows;

/// One event, as the reader of a trace has it. An implementation supplies the facts of the event without changing; each
/// is asked for only where a specification depends on it, and any number of times.
pub trait Event {
    /// The time of the event, on the clock of the trace. Events must be passed in the order of their times.
    fn ts(&self) -> Ts;
    /// The CPU that recorded the event.
    fn cpu(&self) -> Cpu;
    /// The task that ran on the CPU; 0 for the idle task.
    fn pid(&self) -> Pid;
    /// The number of the event's format in the trace, as the catalog has it.
    fn id(&self) -> u16;
    /// The name of the event without its system.
    fn name(&self) -> &str;
    /// The name of the running task.
    fn command(&self) -> String;
    /// Returns the value of a field, or of `name=value` in the text of the user's events; nothing where the event has
    /// neither.
    fn field(&self, name: &str) -> Option<EventValue>;
    /// Returns the text of the event as `list` prints it. Expensive: called only where a specification uses it.
    fn text(&self) -> String;
    /// Whether events of this CPU were lost since the one before. Open intervals and held values are then in doubt.
    fn is_after_loss(&self) -> bool;
}

/// The values of an event in an item: its own, and those that the item's condition captures.
pub(crate) struct EventInItem<'e, E> {
    event: &'e E,
    any: Option<&'e str>,
    calls: Option<&'static SystemCalls>,
    groups: Vec<(String, EventValue)>,
}

impl<'e, E: Event> EventInItem<'e, E> {
    /// The event, if the condition of the item holds.
    pub(crate) fn of(event: &'e E, action: &'e Action, condition: Option<&Condition>) -> Option<EventInItem<'e, E>> {
        let mut seen = EventInItem { event, any: action.any.as_deref(), calls: action.calls, groups: Vec::new() };
        if let Some(condition) = condition {
            seen.groups = condition.expr.captures(&seen)?;
        }
        Some(seen)
    }

    /// The text of a value.
    pub(crate) fn text(&self, name: Option<&Placed>) -> Option<String> {
        self.value(&name?.text).map(|value| value.to_string())
    }
}

impl<E: Event> EventValues for EventInItem<'_, E> {
    fn value(&self, name: &str) -> Option<EventValue> {
        if let Some((_, value)) = self.groups.iter().find(|(group, _)| group == name) {
            return Some(value.clone());
        }
        match name {
            "$cpu" => Some(EventValue::Number(self.event.cpu().0.into())),
            "$pid" => Some(EventValue::Number(self.event.pid().0.into())),
            "$command" => Some(EventValue::Text(self.event.command())),
            "$event" => Some(EventValue::Text(self.event.name().to_owned())),
            "$syscall" => self.event.field("id").map(|number| SystemCalls::name(self.calls, number)),
            "$any" => Some(EventValue::Text(self.any.unwrap_or_default().to_owned())),
            _ => self.event.field(name).or_else(|| (name == "text").then(|| EventValue::Text(self.event.text()))),
        }
    }
}

/// The events that a plan draws on the CPUs of a window.
#[derive(Clone, Debug)]
pub(crate) struct Picker<'p> {
    pub(crate) plan: &'p Plan,
    shown: Rows,
}

impl<'p> Picker<'p> {
    pub(crate) fn new(plan: &'p Plan, cpus: &[(Cpu, Option<u32>)]) -> Picker<'p> {
        Picker { plan, shown: Rows::new(cpus) }
    }

    pub(crate) fn is_shown(&self, cpu: Cpu) -> bool {
        self.shown.of(cpu).is_some()
    }

    /// Whether the event has a place in the figure.
    pub(crate) fn is_wanted<E: Event>(&self, seen: &EventInItem<'_, E>) -> bool {
        self.is_shown(seen.event.cpu()) && self.plan.spec.lanes.only.as_ref().is_none_or(|only| only.expr.holds(seen))
    }

    /// The key of an interval that begins; nothing if the event begins none that is drawn.
    pub(crate) fn begin<'e, E: Event>(
        &self,
        event: &'e E,
        action: &'e Action,
        place: usize,
    ) -> Option<(PairKey, EventInItem<'e, E>)> {
        let interval = self.plan.spec.intervals.get(place)?;
        let IntervalSource::Pair { end, keys, .. } = &interval.source else { return None };
        let seen = EventInItem::of(event, action, interval.condition.as_ref())?;
        // An event that has a part twice begins the interval that it has just ended.
        let any = action.any.as_ref().filter(|_| end.text.contains('*'));
        let key = key(keys.iter().map(|key| &key.begin), any, &seen)?;
        self.is_wanted(&seen).then_some((key, seen))
    }

    /// The key of an interval that ends; nothing if the event ends none.
    pub(crate) fn end<E: Event>(&self, event: &E, action: &Action, place: usize) -> Option<PairKey> {
        let IntervalSource::Pair { keys, end_condition, .. } = &self.plan.spec.intervals.get(place)?.source else {
            return None;
        };
        let seen = EventInItem::of(event, action, end_condition.as_ref())?;
        key(keys.iter().map(|key| &key.end), action.any.as_ref(), &seen)
    }

    /// The value of an event in a series, and the line that it belongs to.
    pub(crate) fn value<E: Event>(
        &self,
        event: &E,
        action: &Action,
        place: usize,
    ) -> Option<(Option<EventValue>, f64)> {
        let series = self.plan.spec.series.get(place)?;
        let seen = EventInItem::of(event, action, series.condition.as_ref())?;
        if !self.is_shown(event.cpu()) {
            return None;
        }
        let value = match &series.quantity {
            Quantity::Value { value, .. } => match seen.value(&value.text) {
                Some(EventValue::Number(n)) => n as f64,
                // `name=1.5` in a text of the user's.
                Some(EventValue::Text(text)) => match text.parse::<f64>() {
                    Ok(value) if value.is_finite() => value,
                    _ => return None,
                },
                None => return None,
            },
            Quantity::Rate { .. } | Quantity::Open { .. } => 1.0,
        };
        let by =
            series.by.as_ref().map(|by| seen.value(&by.text).unwrap_or_else(|| EventValue::Text("none".to_owned())));
        Some((by, value))
    }
}

/// The key of an interval's beginning or end; nothing if the event lacks one of its values.
fn key<'k>(keys: impl Iterator<Item = &'k Placed>, any: Option<&String>, seen: &impl EventValues) -> Option<PairKey> {
    let mut key: PairKey = keys.map(|key| seen.value(&key.text)).collect::<Option<_>>()?;
    key.extend(any.map(|any| EventValue::Text(any.clone())));
    Some(key)
}
