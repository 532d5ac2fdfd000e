//! Findings about a recording: named, ranked and explained.

use super::CleanText;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The severity of a finding, from the least to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A remark: nothing is missing from the figures.
    Note,
    /// A contradiction between events, resolved by a rule of `docs/read-the-numbers.md#contradictions`.
    Repaired,
    /// A gap: something that happened was not recorded, or is not read, so the figures lack it.
    Incomplete,
    /// A loss: something that was recorded, or should have been, is lost or damaged, so the figures lack it.
    DataLoss,
}

/// A kind of finding about a recording. This crate defines the kinds that follow from the events themselves
/// ([`EventIssue`]); a reader defines the kinds that concern its files.
#[derive(Clone, Copy, Debug)]
pub struct Diagnostic {
    /// The position in lists of findings, ascending.
    rank: u8,
    name: &'static str,
    severity: Severity,
    template: &'static str,
}

impl Diagnostic {
    /// Makes a kind of finding from its position in lists, its name in JSON, its severity and its message.
    ///
    /// The message follows a number, unless it begins with `=`: then it is a sentence on the whole recording. It has
    /// `{one|many}` where it depends on the number, and `@` where a program may insert advice
    /// ([`Diagnostic::message_with`]).
    pub const fn new(rank: u8, name: &'static str, severity: Severity, template: &'static str) -> Diagnostic {
        Diagnostic { rank, name, severity, template }
    }

    /// The name of the kind in JSON, such as `events-lost`.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The severity of all findings of this kind.
    pub fn severity(self) -> Severity {
        self.severity
    }

    /// Whether the message follows a count. Otherwise the message is a sentence of its own, and the count means
    /// nothing.
    pub fn is_counted(self) -> bool {
        !self.template.starts_with('=')
    }

    /// Returns the message in one line, inflected for `count`, without the count itself and without advice.
    #[must_use]
    pub fn message(self, count: u64) -> String {
        self.message_with(count, "")
    }

    /// Returns the finding in one line: the count with its message, or the message alone if that follows no count.
    #[must_use]
    pub fn line(self, count: u64) -> String {
        let number = if self.is_counted() { format!("{count} ") } else { String::new() };
        number + &self.message(count)
    }

    /// Returns the message with `advice` inserted where the template allows it.
    #[must_use]
    pub fn message_with(self, count: u64, advice: &str) -> String {
        inflected(self.template.trim_start_matches('='), count).replacen('@', advice, 1)
    }
}

impl PartialEq for Diagnostic {
    fn eq(&self, other: &Diagnostic) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Diagnostic {}

impl PartialOrd for Diagnostic {
    fn partial_cmp(&self, other: &Diagnostic) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Diagnostic {
    fn cmp(&self, other: &Diagnostic) -> Ordering {
        self.rank.cmp(&other.rank).then_with(|| self.name.cmp(other.name))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Diagnostic {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Diagnostic".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "The name of a kind of finding, such as `events-lost`." })
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name)
    }
}

/// Defines an enum of kinds of findings. Each row is a variant, its position in lists, its name, its severity and its
/// message, as [`Diagnostic::new`] takes them.
#[macro_export]
macro_rules! diagnostics {
    (
        $(#[$doc:meta])*
        pub enum $issue:ident;
        $($(#[$row_doc:meta])* $variant:ident = $rank:literal, $name:literal, $severity:ident, $template:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $issue {
            $($(#[$row_doc])* $variant,)*
        }

        impl $issue {
            /// All kinds of the enum, in the order of their definition.
            pub const ALL: &[$issue] = &[$($issue::$variant),*];

            /// Returns the kind of finding for this variant.
            pub const fn diagnostic(self) -> $crate::Diagnostic {
                match self {
                    $($issue::$variant => $crate::Diagnostic::new($rank, $name, $crate::Severity::$severity, $template),)*
                }
            }
        }

        impl From<$issue> for $crate::Diagnostic {
            fn from(issue: $issue) -> $crate::Diagnostic {
                issue.diagnostic()
            }
        }

        impl PartialEq<$issue> for $crate::Diagnostic {
            fn eq(&self, issue: &$issue) -> bool {
                *self == issue.diagnostic()
            }
        }
    };
}

diagnostics! {
    /// The findings that follow from the events themselves: contradictions between events, and missing events.
    pub enum EventIssue;
    /// Places where events are missing.
    EventsLost = 0, "events-lost", DataLoss,
        "{place|places} where events are missing: overwritten by the kernel or left in its buffer, damaged in the file, or not recorded because of a filter; what ran there is unknown@";
    /// Kinds of scheduler events that were not recorded.
    MissingEvents = 28, "missing-events", Incomplete,
        "{kind|kinds} of scheduler events that {was|were} not recorded; what depends on {it|them} is approximate@";
    /// Switches away from another task than the current one.
    SwitchPrevMismatch = 29, "switch-prev-mismatch", Incomplete,
        "{switch|switches} away from another task than the one known to run: earlier ones were not recorded, by a filter@ or an unmarked loss; the running task before {it|each} is wrong";
    /// Events of tasks beyond the number that is followed.
    TasksBeyondLimit = 29, "tasks-beyond-limit", DataLoss,
        "{event|events} of tasks beyond the 114,688 living ones that are followed at once; {such a task is|such tasks are} in no queue and in no table, and only keep a CPU busy";
    /// Tasks that ran on another CPU than the one they waited on, without a migration.
    UnseenMigration = 30, "unseen-migration", Repaired,
        "{task that ran on another CPU than the one it|tasks that ran on another CPU than the one they} waited on, without a migration event";
    /// Tasks that ran after a sleep without a wakeup.
    UnseenWakeup = 31, "unseen-wakeup", Repaired,
        "{task|tasks} that ran after a sleep that no wakeup ended, or came when none had waited; how long {it|they} waited is unknown";
    /// Tasks switched in while another CPU seemed to run them.
    RunningElsewhere = 32, "running-elsewhere", Repaired,
        "{task|tasks} switched in while another CPU was thought to run {it|them}; that CPU is unknown until its next event";
    /// Migrations of running tasks.
    MigrateRunning = 33, "migrate-running", Repaired,
        "{migration|migrations} of a task that runs; ignored";
    /// Migrations from another CPU than the known one.
    MigrateOrigMismatch = 34, "migrate-orig-mismatch", Repaired,
        "{migration|migrations} from another CPU than the one the task was thought to be on; the event was believed";
    /// Wakeups of waiting tasks on another CPU than their queue.
    WakeupTargetCorrected = 35, "wakeup-target-corrected", Repaired,
        "{wakeup|wakeups} of a waiting task on another CPU than its queue; moved there";
    /// PIDs used again without an exit.
    UnseenExit = 36, "unseen-exit", Repaired,
        "process {number|numbers} used again without an exit having been seen";
    /// Times at which a task was on the queue of a CPU without any event.
    UnseenQueue = 37, "unseen-queue", Incomplete,
        "{time|times} a task was on the queue of a CPU without any event, one left out@ or whose data are missing; how long it waited, whether it ran there, and which tasks waited at the start is unknown";
    /// Tasks that left the queue of a CPU without an event.
    UnseenDeparture = 38, "unseen-departure", Repaired,
        "{task|tasks} that waited on a CPU that became idle all the same, where events are missing: {it had left unseen, and is unknown until its|they had left unseen, and are unknown until their} next event";
    /// Throttled tasks that ran without an end of throttling.
    UnseenUnthrottle = 38, "unseen-unthrottle", Repaired,
        "{task|tasks} that ran while bandwidth control was thought to throttle {it|them}; the end of throttling was not seen";
    /// Wakeups of tasks that still ran.
    EarlyWakeup = 39, "early-wakeup", Note,
        "{wakeup|wakeups} of a task that still ran; normal, nothing was counted";
    /// Times at which a CPU was offline.
    CpuOffline = 40, "cpu-offline", Note,
        "{time|times} a CPU was offline: from the last event of its stopper, or the start of the trace, until its next event it counts as neither idle nor busy (no event shows it; it is concluded from what the kernel does not record)";
    /// Tasks found late to have waited since the start.
    LateStart = 41, "late-start", Note,
        "{task|tasks} found late to have waited since the start; the pass was run again with what it learned";
}

/// Returns the template with each `{one|many}` replaced by the form that `count` asks for.
fn inflected(template: &str, count: u64) -> String {
    let mut parts = template.split(['{', '|', '}']);
    let mut text = parts.next().unwrap_or("").to_owned();
    while let (Some(one), Some(many), Some(rest)) = (parts.next(), parts.next(), parts.next()) {
        text += if count == 1 { one } else { many };
        text += rest;
    }
    text
}

/// Findings with their counts, in the order of their kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    counts: BTreeMap<Diagnostic, u64>,
    details: BTreeMap<Diagnostic, CleanText>,
}

impl Diagnostics {
    /// Counts one more finding of this kind.
    pub fn add(&mut self, what: impl Into<Diagnostic>) {
        self.add_many(what, 1);
    }

    /// Counts `n` more findings of this kind; zero adds no entry.
    pub fn add_many(&mut self, what: impl Into<Diagnostic>, n: u64) {
        if n > 0 {
            let count = self.counts.entry(what.into()).or_default();
            *count = count.saturating_add(n);
        }
    }

    /// Counts one more finding and, for the first one of its kind, notes the place or the name.
    pub fn add_at(&mut self, what: impl Into<Diagnostic>, place: impl FnOnce() -> String) {
        self.add_many_at(what, 1, place);
    }

    /// Counts `n` more findings and, for the first ones of their kind, notes the places or the names; zero adds no
    /// entry.
    pub fn add_many_at(&mut self, what: impl Into<Diagnostic>, n: u64, place: impl FnOnce() -> String) {
        if n > 0 {
            let what = what.into();
            self.add_many(what, n);
            self.details.entry(what).or_insert_with(|| place().into());
        }
    }

    /// The place or the names noted for a kind, if there are any.
    pub fn detail(&self, what: impl Into<Diagnostic>) -> Option<&str> {
        self.details.get(&what.into()).map(CleanText::as_str)
    }

    /// The number of findings of a kind; zero if there is none.
    pub fn count(&self, what: impl Into<Diagnostic>) -> u64 {
        self.counts.get(&what.into()).copied().unwrap_or(0)
    }

    /// Whether there are no findings at all.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Iterates over the findings: the kind, the count, and the noted place or names, if any.
    pub fn iter(&self) -> impl Iterator<Item = (Diagnostic, u64, Option<&str>)> {
        self.counts.iter().map(|(d, n)| (*d, *n, self.detail(*d)))
    }

    /// Adds the counts of `other` to these. A place that is noted already stays.
    pub fn merge(&mut self, other: &Diagnostics) {
        for (what, n, place) in other.iter() {
            self.add_many(what, n);
            if let Some(place) = place {
                self.details.entry(what).or_insert_with(|| place.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_agree_with_their_number() {
        let offline = EventIssue::RunningElsewhere.diagnostic();
        assert!(offline.message(1).starts_with("task switched in while another CPU was thought to run it;"));
        assert!(offline.message(2).starts_with("tasks switched in while another CPU was thought to run them;"));
        assert_eq!(inflected("plain", 1), "plain");
        assert_eq!(inflected("{a|b}{|s} c", 1), "a c");
        assert_eq!(inflected("{a|b}{|s} c", 0), "bs c");
    }

    #[test]
    fn a_sentence_on_the_whole_has_no_number() {
        let whole = Diagnostic::new(0, "whole", Severity::Note, "={a part|parts} of a trace@");
        assert!(!whole.is_counted() && EventIssue::EventsLost.diagnostic().is_counted());
        assert_eq!(whole.message_with(1, ". Try"), "a part of a trace. Try");
        assert_eq!(whole.line(2), "parts of a trace");
        assert!(EventIssue::EventsLost.diagnostic().line(2).starts_with("2 "));
    }

    #[test]
    fn advice_has_its_place() {
        let missing = EventIssue::MissingEvents.diagnostic();
        assert!(missing.message(1).ends_with("what depends on it is approximate"), "{}", missing.message(1));
        assert!(missing.message_with(2, ". Try").ends_with("what depends on them is approximate. Try"));
    }

    #[test]
    fn findings_are_told_apart_and_in_order() {
        let mut diagnostics = Diagnostics::default();
        let other = Diagnostic::new(0, "other", Severity::Note, "{one|many}");
        diagnostics.add(EventIssue::LateStart);
        diagnostics.add_at(other, || "here".to_owned());
        diagnostics.add_many(EventIssue::EventsLost, 2);
        let found: Vec<_> = diagnostics.iter().map(|(what, count, _)| (what.name(), count)).collect();
        assert_eq!(found, [("events-lost", 2), ("other", 1), ("late-start", 1)]);
        assert_eq!((diagnostics.count(other), diagnostics.detail(other)), (1, Some("here")));
    }
}
