//! A specification against the events of one trace.

use crate::catalog::{Catalog, EventInfo};
use crate::expr::{Expr, Type};
use crate::spec::{
    ColorSpec, Condition, IntervalSource, LaneKind, MatchKey, Placed, Quantity, Spec, SpecError, inside, nearest,
};
use crate::system_calls::SystemCalls;

/// The part that an event has in an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventPart {
    /// The event begins the interval in this place.
    Begin(usize),
    /// The event ends the interval in this place.
    End(usize),
    /// The event is the whole interval in this place.
    Lone(usize),
    /// The event is the point in this place.
    Point(usize),
    /// The event is a sample of the series in this place.
    Sample(usize),
}

/// A part, with the text that the `*` of the pattern stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) part: EventPart,
    pub(crate) any: Option<String>,
    /// The names of the machine's system calls.
    pub(crate) calls: Option<&'static SystemCalls>,
}

/// A specification that fits a trace.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) spec: Spec,
    /// The parts of each event in the items, by the number of the event.
    actions: Vec<Vec<Action>>,
    /// Whether each interval is drawn from this trace, by its place in the specification.
    pub(crate) has_interval: Vec<bool>,
    /// Whether each point is drawn from this trace, by its place.
    pub(crate) has_point: Vec<bool>,
    /// Whether each series is drawn from this trace, by its place.
    pub(crate) has_series: Vec<bool>,
    /// The optional items that are left out, each with the reason.
    pub notes: Vec<String>,
}

impl Plan {
    /// Compares a specification with the events of a trace.
    ///
    /// # Errors
    ///
    /// The first name or type that does not fit, with its line and column and the nearest names.
    pub fn new(spec: &Spec, catalog: &Catalog) -> Result<Plan, SpecError> {
        let mut plan = Plan {
            actions: Vec::new(),
            has_interval: vec![false; spec.intervals.len()],
            has_point: vec![false; spec.points.len()],
            has_series: vec![false; spec.series.len()],
            notes: Vec::new(),
            spec: spec.clone(),
        };
        let checker = Checker { spec, catalog };
        for (place, interval) in spec.intervals.iter().enumerate() {
            let found = checker.interval(place);
            plan.has_interval[place] = plan.take(found, interval.optional)?;
        }
        for (place, point) in spec.points.iter().enumerate() {
            let found = checker.point(place);
            plan.has_point[place] = plan.take(found, point.optional)?;
        }
        for (place, series) in spec.series.iter().enumerate() {
            let found = match &series.quantity {
                Quantity::Open { interval } => {
                    let of = spec.intervals.iter().position(|other| other.name == interval.text);
                    plan.has_series[place] = of.is_some_and(|of| plan.has_interval[of]);
                    continue;
                }
                _ => checker.series(place),
            };
            plan.has_series[place] = plan.take(found, series.optional)?;
        }
        checker.lanes()?;
        let all = [&plan.has_interval, &plan.has_point, &plan.has_series];
        if !all.into_iter().flatten().any(|has| *has) {
            let record = spec.record.as_ref().map_or(String::new(), |record| format!("; record them: {record}"));
            let message = format!("the trace has none of the events of this specification{record}");
            return Err(SpecError::at(&spec.source, 0, message));
        }
        Ok(plan)
    }

    /// The text of the specification.
    pub fn source(&self) -> &str {
        &self.spec.source
    }

    /// Whether events before a window matter in it: they can begin intervals, and set values that hold.
    pub fn looks_back(&self) -> bool {
        self.actions.iter().flatten().any(|action| self.carries(&action.part))
    }

    /// Whether an event of this part, before a window, can matter in it.
    pub(crate) fn carries(&self, part: &EventPart) -> bool {
        match part {
            EventPart::Begin(_) | EventPart::End(_) => true,
            EventPart::Sample(place) => matches!(self.spec.series[*place].quantity, Quantity::Value { hold: true, .. }),
            EventPart::Lone(_) | EventPart::Point(_) => false,
        }
    }

    /// The action of an event of this number in this part.
    pub(crate) fn action(&self, id: u16, part: &EventPart) -> Option<&Action> {
        self.actions(id).iter().find(|action| action.part == *part)
    }

    /// The parts of the event of this number.
    pub(crate) fn actions(&self, id: u16) -> &[Action] {
        self.actions.get(usize::from(id)).map_or(&[], Vec::as_slice)
    }

    /// Takes the actions of an item, or leaves it out with a note if it is optional and its events are absent.
    fn take(&mut self, found: Result<Vec<(u16, Action)>, Misfit>, optional: bool) -> Result<bool, SpecError> {
        match found {
            Ok(actions) => {
                for (id, action) in actions {
                    let id = usize::from(id);
                    self.actions.resize_with(self.actions.len().max(id + 1), Vec::new);
                    self.actions[id].push(action);
                }
                Ok(true)
            }
            Err(Misfit::Absent(error)) if optional => {
                self.notes.push(error.message);
                Ok(false)
            }
            Err(Misfit::Absent(error) | Misfit::Wrong(error)) => Err(error),
        }
    }
}

/// The reason that an item does not fit.
enum Misfit {
    /// The events of the item are not in the trace.
    Absent(SpecError),
    /// The item names something that its events do not have.
    Wrong(SpecError),
}

impl From<SpecError> for Misfit {
    fn from(error: SpecError) -> Misfit {
        Misfit::Wrong(error)
    }
}

type MatchedEvents<'c> = Vec<(&'c EventInfo, Option<String>)>;

struct Checker<'s> {
    spec: &'s Spec,
    catalog: &'s Catalog,
}

impl<'s> Checker<'s> {
    fn wrong(&self, at: &Placed, message: String) -> SpecError {
        SpecError::at(&self.spec.source, at.span.start, message)
    }

    /// The events of a name, of which one occurs at least.
    fn events(&self, name: &Placed) -> Result<MatchedEvents<'s>, Misfit> {
        let found = self.catalog.find(&name.text);
        if found.is_empty() {
            let names: Vec<&str> = self.catalog.events.iter().map(|event| event.name.as_str()).collect();
            let message = format!("the trace has no event {}{}", name.text, nearest(&name.text, &names));
            return Err(Misfit::Absent(self.wrong(name, message)));
        }
        if found.iter().all(|(event, _)| event.count == 0) {
            return Err(Misfit::Absent(self.wrong(name, format!("{} never occurs in this trace", name.text))));
        }
        Ok(found)
    }

    /// The type of a value: all events have it, or with a `*` one at least.
    fn type_of(events: &MatchedEvents<'_>, groups: &[String], name: &str) -> Result<Type, String> {
        if groups.iter().any(|group| group == name) {
            return Ok(Type::Either);
        }
        let mut types = events.iter().map(|(event, _)| event.type_of(name));
        match types.find(Result::is_ok) {
            Some(kind) => kind,
            None => events.first().map_or(Ok(Type::Either), |(event, _)| event.type_of(name)),
        }
    }

    fn condition(&self, events: &MatchedEvents<'_>, condition: Option<&Condition>) -> Result<Vec<String>, SpecError> {
        let Some(Condition { expr, span }) = condition else { return Ok(Vec::new()) };
        expr.check(&|name: &str| Self::type_of(events, &[], name))
            .map_err(|e| inside(&self.spec.source, span, e.at, e.message))?;
        Ok(expr.group_names())
    }

    fn value(&self, events: &MatchedEvents<'_>, groups: &[String], name: &Placed) -> Result<Type, SpecError> {
        Self::type_of(events, groups, &name.text).map_err(|message| self.wrong(name, message))
    }

    /// Checks that colour and label are values of these events.
    fn looks(
        &self,
        events: &MatchedEvents<'_>,
        groups: &[String],
        color: &ColorSpec,
        label: Option<&Placed>,
    ) -> Result<(), SpecError> {
        if let ColorSpec::By(by) = color {
            self.value(events, groups, by)?;
        }
        if let LaneKind::Field(field) = &self.spec.lanes.by {
            self.value(events, groups, field)?;
        }
        label.map_or(Ok(()), |label| self.value(events, groups, label).map(drop))
    }

    fn actions(&self, events: MatchedEvents<'_>, part: &EventPart) -> Vec<(u16, Action)> {
        let calls = self.catalog.machine.as_deref().and_then(SystemCalls::of);
        events.into_iter().map(|(event, any)| (event.id, Action { part: part.clone(), any, calls })).collect()
    }

    fn interval(&self, place: usize) -> Result<Vec<(u16, Action)>, Misfit> {
        let interval = &self.spec.intervals[place];
        match &interval.source {
            IntervalSource::Pair { begin, end, keys, end_condition } => {
                let begins = self.events(begin)?;
                let ends = self.events(end).map_err(|misfit| match misfit {
                    // A beginning without any end is an error of the specification, or of the recording.
                    Misfit::Absent(error) => Misfit::Absent(SpecError {
                        message: format!("{}: no interval from {} ends", error.message, begin.text),
                        ..error
                    }),
                    wrong @ Misfit::Wrong(_) => wrong,
                })?;
                let groups = self.condition(&begins, interval.condition.as_ref())?;
                let end_groups = self.condition(&ends, end_condition.as_ref())?;
                for key in keys {
                    let at_begin = self.value(&begins, &groups, &key.begin).map_err(|e| other_name(e, key))?;
                    let at_end = self.value(&ends, &end_groups, &key.end).map_err(|e| other_name(e, key))?;
                    if at_begin != at_end && at_begin != Type::Either && at_end != Type::Either {
                        let (of_begin, of_end) = (&key.begin.text, &key.end.text);
                        let message = format!(
                            "{of_begin} is {at_begin} in {}, and {of_end} is {at_end} in {}",
                            begin.text, end.text
                        );
                        return Err(self.wrong(&key.begin, message).into());
                    }
                }
                self.looks(&begins, &groups, &interval.color, interval.label.as_ref())?;
                let mut actions = self.actions(ends, &EventPart::End(place));
                actions.extend(self.actions(begins, &EventPart::Begin(place)));
                Ok(actions)
            }
            IntervalSource::Lone { event, duration, .. } => {
                let events = self.events(event)?;
                let groups = self.condition(&events, interval.condition.as_ref())?;
                self.number(&events, &groups, duration)?;
                self.looks(&events, &groups, &interval.color, interval.label.as_ref())?;
                Ok(self.actions(events, &EventPart::Lone(place)))
            }
        }
    }

    fn number(&self, events: &MatchedEvents<'_>, groups: &[String], name: &Placed) -> Result<(), SpecError> {
        match self.value(events, groups, name)? {
            Type::Text => Err(self.wrong(name, format!("{} is a text; a number is needed here", name.text))),
            Type::Number | Type::Either => Ok(()),
        }
    }

    fn point(&self, place: usize) -> Result<Vec<(u16, Action)>, Misfit> {
        let point = &self.spec.points[place];
        let events = self.events(&point.event)?;
        let groups = self.condition(&events, point.condition.as_ref())?;
        self.looks(&events, &groups, &point.color, point.label.as_ref())?;
        Ok(self.actions(events, &EventPart::Point(place)))
    }

    fn series(&self, place: usize) -> Result<Vec<(u16, Action)>, Misfit> {
        let series = &self.spec.series[place];
        let event = match &series.quantity {
            Quantity::Value { event, .. } | Quantity::Rate { event } => event,
            Quantity::Open { .. } => return Ok(Vec::new()),
        };
        let events = self.events(event)?;
        let groups = self.condition(&events, series.condition.as_ref())?;
        if let Quantity::Value { value, .. } = &series.quantity {
            self.number(&events, &groups, value)?;
        }
        if let Some(by) = &series.by {
            self.value(&events, &groups, by)?;
        }
        Ok(self.actions(events, &EventPart::Sample(place)))
    }

    /// Checks that the condition of the lanes is on values that some event of the figure has.
    fn lanes(&self) -> Result<(), SpecError> {
        let Some(Condition { expr, span }) = &self.spec.lanes.only else { return Ok(()) };
        let events: MatchedEvents<'_> = self.drawn().iter().flat_map(|name| self.catalog.find(&name.text)).collect();
        let groups: Vec<String> = self.conditions().flat_map(Expr::group_names).collect();
        expr.check(&|name: &str| Self::type_of(&events, &groups, name))
            .map_err(|e| inside(&self.spec.source, span, e.at, e.message))
    }

    /// The events that place something in a lane.
    fn drawn(&self) -> Vec<&'s Placed> {
        let intervals = self.spec.intervals.iter().map(|interval| match &interval.source {
            IntervalSource::Pair { begin, .. } => begin,
            IntervalSource::Lone { event, .. } => event,
        });
        intervals.chain(self.spec.points.iter().map(|point| &point.event)).collect()
    }

    fn conditions(&self) -> impl Iterator<Item = &'s Expr> {
        let intervals = self.spec.intervals.iter().filter_map(|interval| interval.condition.as_ref());
        let points = self.spec.points.iter().filter_map(|point| point.condition.as_ref());
        intervals.chain(points).map(|condition| &condition.expr)
    }
}

/// Adds to the error of a value that one of two events lacks how to name it in each.
fn other_name(error: SpecError, key: &MatchKey) -> SpecError {
    if key.begin.text != key.end.text {
        return error;
    }
    let how = "; where begin and end call it differently: match = [\"NAME_IN_BEGIN = NAME_IN_END\"]";
    SpecError { message: error.message + how, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let event = |id: u16, name: &str, count: u64, fields: &[(&str, Type)], is_text: bool| EventInfo {
            id,
            name: name.to_owned(),
            count,
            fields: fields.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect(),
            is_text,
        };
        let number = Type::Number;
        Catalog {
            events: vec![
                event(1, "lock:contention_begin", 3, &[("lock_addr", number), ("flags", number)], false),
                event(2, "lock:contention_end", 3, &[("lock_addr", number), ("ret", number)], false),
                event(3, "irq:softirq_entry", 3, &[("vec", number)], false),
                event(4, "irq:softirq_exit", 0, &[("vec", number)], false),
                event(5, "ftrace:print", 3, &[("buf", Type::Text)], true),
                event(6, "irq_vectors:a_entry", 3, &[("vector", number)], false),
                event(7, "irq_vectors:a_exit", 3, &[("vector", number)], false),
            ],
            machine: None,
        }
    }

    fn plan(source: &str) -> Result<Plan, SpecError> {
        Plan::new(&Spec::parse(source).expect("a specification"), &catalog())
    }

    fn fails(source: &str) -> (usize, usize, String) {
        let e = plan(source).expect_err(source);
        (e.line, e.column, e.message)
    }

    #[test]
    fn names_and_types_are_checked_with_their_places() {
        let pair = "[[interval]]\nbegin = 'lock:contention_begin'\nend = 'lock:contention_end'\n";
        assert!(plan(&format!("{pair}match = ['$pid', 'lock_addr']\nwhere = 'flags & 1 != 0'")).is_ok());
        let (line, column, message) = fails(&format!("{pair}match = ['$pid', 'lock_adr']"));
        assert!((line, column) == (4, 18) && message.contains("the nearest: lock_addr"), "{message}");
        let (line, column, message) = fails(&format!("{pair}match = ['ret']"));
        assert!((line, column) == (4, 10) && message.contains("contention_begin has no field ret"), "{message}");
        assert!(message.contains("match = [\"NAME_IN_BEGIN = NAME_IN_END\"]"), "{message}");
        assert!(plan(&format!("{pair}match = ['flags = ret']")).is_ok());
        let (line, column, message) = fails(&format!("{pair}match = ['flags = flags ']"));
        assert!((line, column) == (4, 10) && message.contains("contention_end has no field flags"), "{message}");
        let (_, _, message) =
            fails("[[interval]]\nbegin = 'irq:softirq_entry'\nend = 'ftrace:print'\nmatch = ['vec = buf']");
        assert!(
            message.contains("vec is a number in irq:softirq_entry, and buf is a text in ftrace:print"),
            "{message}"
        );
        let (line, column, message) = fails(&format!("{pair}where = 'flags =~ \"a\"'"));
        assert!((line, column) == (4, 16) && message.contains("number"), "{message}");
        let (line, _, message) = fails("[[point]]\nevent = 'lock:contention_beginn'");
        assert!(line == 2 && message.contains("the nearest: lock:contention_begin"), "{message}");
        let (line, _, message) = fails("[[interval]]\nbegin = 'irq:softirq_entry'\nend = 'irq:softirq_exit'");
        assert!(
            line == 3 && message.contains("never occurs") && message.contains("irq:softirq_entry ends"),
            "{message}"
        );
        let (line, column, message) = fails(&format!("[lanes]\nonly = 'vec == \"x\"'\n{pair}"));
        assert!((line, column) == (2, 9) && message.contains("no field vec"), "{message}");
        let (_, _, message) = fails("[[series]]\nevent = 'irq:softirq_entry'\nvalue = '$command'");
        assert!(message.contains("is a text"), "{message}");
    }

    #[test]
    fn optional_items_may_be_absent_but_not_all() {
        let both = "record = 'trace-cmd record -e block'\n[[point]]\nevent = 'block:x'\noptional = true\n";
        let message = fails(both).2;
        assert!(message.contains("trace-cmd record -e block"), "{message}");
        let plan = plan(&format!("{both}[[point]]\nevent = 'irq:softirq_entry'")).expect("one is there");
        assert_eq!((plan.has_point.as_slice(), plan.notes.len()), ([false, true].as_slice(), 1));
    }

    #[test]
    fn stars_stand_for_the_same_text() {
        let plan = plan("[[interval]]\nbegin = 'irq_vectors:*_entry'\nend = 'irq_vectors:*_exit'").expect("a plan");
        let any = Some("a".to_owned());
        assert_eq!(plan.actions(6), [Action { part: EventPart::Begin(0), any: any.clone(), calls: None }]);
        assert_eq!(plan.actions(7), [Action { part: EventPart::End(0), any, calls: None }]);
        assert_eq!(plan.actions(999), []);
    }
}
