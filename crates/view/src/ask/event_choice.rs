//! The choice of events by words: names with `*`, and conditions on fields, such as `sched_wakeup pid=345`.

use parse::{EventFormat, Record, Trace};
use sched::{Cpu, Pid};

/// The maximum number of bytes of the words.
const MOST: usize = 400;

/// The events that are wanted. The default wants all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventChoice {
    /// Names of events; one of them suffices, and without any all are wanted.
    names: Vec<String>,
    /// Conditions on fields, all of which must hold.
    conditions: Vec<Condition>,
    /// The CPUs that recorded the events; empty for all.
    pub(crate) cpus: Vec<Cpu>,
}

/// A condition on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    field: String,
    is: Comparison,
    value: String,
}

/// The ways in which a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Contains,
    AtLeast,
    AtMost,
    Above,
    Below,
}

/// The signs, those of two letters before the one that they begin with.
const SIGNS: [(&str, Comparison); 7] = [
    ("!=", Comparison::Unequal),
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("=", Comparison::Equal),
    ("~", Comparison::Contains),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

impl EventChoice {
    /// The rule for the words.
    pub(crate) const RULE: &str = "q has at most 400 bytes: names of events, and conditions such as pid=345";

    /// The choice that words make; nothing if they are too long or a condition has no field.
    pub(crate) fn of(words: &str, cpus: Vec<Cpu>) -> Option<EventChoice> {
        let mut choice = EventChoice { cpus, ..EventChoice::default() };
        for word in words.split_whitespace() {
            match Condition::of(word) {
                None => choice.names.push(word.to_lowercase()),
                Some(condition) => choice.conditions.push(condition),
            }
        }
        let is_complete = choice.conditions.iter().all(|condition| !condition.field.is_empty());
        (words.len() <= MOST && is_complete).then_some(choice)
    }

    /// The events of a trace that are chosen, of those tasks on whose CPU they were recorded; or the reason for which there are none.
    pub(crate) fn chosen<'c>(
        &'c self,
        trace: &Trace,
        tasks: Option<&'c dyn Fn(Pid) -> bool>,
    ) -> Result<ChosenEvents<'c>, String> {
        let formats: Vec<&EventFormat> = trace.formats().iter().collect();
        let named = |name: &String| -> Result<Vec<&EventFormat>, String> {
            let is = |test: &dyn Fn(&EventFormat) -> bool| -> Vec<&EventFormat> {
                formats.iter().copied().filter(|format| test(format)).collect()
            };
            let full = |format: &EventFormat| format!("{}:{}", format.system, format.name).to_lowercase();
            let found = if name.contains(['*', ':']) {
                let pattern = if name.contains(':') { name.clone() } else { format!("*:{name}") };
                is(&|format| matches(&pattern, &full(format)))
            } else {
                let exact = is(&|format| format.name.to_string().to_lowercase() == *name);
                if exact.is_empty() { is(&|format| full(format).contains(name.as_str())) } else { exact }
            };
            if found.is_empty() { Err(format!("no event of this trace is called {name}")) } else { Ok(found) }
        };
        let mut ids = Vec::new();
        let mut known: Vec<&EventFormat> = Vec::new();
        for name in &self.names {
            known.extend(named(name)?);
        }
        known.iter().for_each(|format| ids.push(format.id));
        let known = if self.names.is_empty() { formats.clone() } else { known };
        for Condition { field, .. } in &self.conditions {
            if known.iter().all(|format| format.field(field).is_none()) {
                return Err(format!("none of these events has a field {field}"));
            }
        }
        ids.sort_unstable();
        Ok(ChosenEvents { choice: self, ids: (!self.names.is_empty()).then_some(ids), tasks })
    }
}

impl Condition {
    /// The condition of a word; nothing if the word has no sign.
    fn of(word: &str) -> Option<Condition> {
        let found = SIGNS.iter().filter_map(|(sign, is)| Some((word.find(sign)?, sign, *is)));
        // Of the signs at the first place the longest one counts: it is first in the list.
        let (at, sign, is) = found.min_by_key(|(at, ..)| *at)?;
        let (field, value) = (word[..at].to_owned(), word[at + sign.len()..].to_owned());
        Some(Condition { field, is, value })
    }

    fn holds(&self, record: &Record<'_>) -> bool {
        let Some(text) = record.field_text(&self.field) else { return false };
        let number = || record.number(&self.field).map(i128::from).or_else(|| text.parse().ok());
        let ordered = |is: fn(i128, i128) -> bool| match (number(), self.value.parse()) {
            (Some(number), Ok(value)) => is(number, value),
            _ => false,
        };
        let is_same = || text == self.value || ordered(|number, value| number == value);
        match self.is {
            Comparison::Equal => is_same(),
            Comparison::Unequal => !is_same(),
            Comparison::Contains => text.contains(&self.value),
            Comparison::AtLeast => ordered(|number, value| number >= value),
            Comparison::AtMost => ordered(|number, value| number <= value),
            Comparison::Above => ordered(|number, value| number > value),
            Comparison::Below => ordered(|number, value| number < value),
        }
    }
}

/// Whether a name matches a pattern in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The events of a trace that are chosen.
pub(crate) struct ChosenEvents<'c> {
    choice: &'c EventChoice,
    /// The numbers of the formats, ascending; nothing for all.
    ids: Option<Vec<u16>>,
    tasks: Option<&'c dyn Fn(Pid) -> bool>,
}

impl ChosenEvents<'_> {
    /// Whether an event is chosen.
    pub(crate) fn has(&self, record: &Record<'_>) -> bool {
        let EventChoice { conditions, cpus, .. } = self.choice;
        self.ids.as_ref().is_none_or(|ids| ids.binary_search(&record.id()).is_ok())
            && (cpus.is_empty() || cpus.contains(&record.cpu))
            && self.tasks.is_none_or(|tasks| tasks(record.pid()))
            && conditions.iter().all(|condition| condition.holds(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_names_and_conditions() {
        let of = |words: &str| EventChoice::of(words, Vec::new());
        let choice = of("sched_Wakeup  pid=345 prio!=120 cpu>=3 comm~=x").expect("a choice");
        assert_eq!(choice.names, ["sched_wakeup"]);
        let words = |condition: &Condition| (condition.field.clone(), condition.is, condition.value.clone());
        let expected = [
            ("pid", Comparison::Equal, "345"),
            ("prio", Comparison::Unequal, "120"),
            ("cpu", Comparison::AtLeast, "3"),
            ("comm", Comparison::Contains, "=x"),
        ];
        let expected = expected.map(|(field, is, value)| (field.to_owned(), is, value.to_owned()));
        assert_eq!(choice.conditions.iter().map(words).collect::<Vec<_>>(), expected);
        assert_eq!(of("=3"), None);
        assert_eq!(of(&"x".repeat(MOST + 1)), None);
        assert_eq!(of(""), Some(EventChoice::default()));
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, is) in [
            ("sched:*", "sched:sched_switch", true),
            ("*:sched_w*", "sched:sched_wakeup", true),
            ("*:sched_w*", "sched:sched_switch", false),
            ("sched:sched_wakeup", "sched:sched_wakeup_new", false),
            ("*a*b", "xaxbxb", true),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
