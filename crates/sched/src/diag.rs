//! Everything that can be wrong with a trace, named, ranked and explained.

use serde::Serialize;
use std::collections::BTreeMap;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing; nothing is missing.
    Note,
    /// A contradiction was resolved by a stated rule.
    Repaired,
    /// Something that happened is not in the figures.
    DataLoss,
}

/// What was found. Each has a count, a severity and one line of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // `template` is the documentation, and what the user reads
pub enum Diagnostic {
    EventsLost,
    EventsDroppedUnmarked,
    CorruptPage,
    CorruptRecord,
    CorruptChunk,
    TruncatedData,
    OverlappingData,
    LostTable,
    MisnumberedCpu,
    TruncatedHeader,
    BeyondLimit,
    MissingSection,
    MissingDecoder,
    BadOption,
    UnknownOption,
    BadFormat,
    DuplicateFormat,
    UnknownEvent,
    SmallerStride,
    LargerStride,
    DuplicateEvents,
    OtherClock,
    ClocksApart,
    TimeBackwards,
    TimeOutOfRange,
    BadCpu,
    UnknownState,
    LockSleep,
    MissingEvents,
    SwitchPrevMismatch,
    UnseenMigration,
    UnseenWakeup,
    RunningElsewhere,
    MigrateRunning,
    MigrateOrigMismatch,
    WakeupTargetCorrected,
    UnseenExit,
    UnseenQueue,
    UnseenDeparture,
    EarlyWakeup,
    CpuOffline,
    LateStart,
    FastWindow,
}

impl Diagnostic {
    /// How bad this is.
    pub fn severity(self) -> Severity {
        use Diagnostic::*;
        match self {
            EventsLost
            | EventsDroppedUnmarked
            | CorruptPage
            | CorruptRecord
            | CorruptChunk
            | TruncatedData
            | OverlappingData
            | LostTable
            | TruncatedHeader
            | BeyondLimit
            | MissingSection
            | MissingDecoder
            | OtherClock
            | ClocksApart
            | MissingEvents
            | FastWindow
            | UnseenQueue
            | SwitchPrevMismatch
            | BadCpu => Severity::DataLoss,
            MisnumberedCpu
            | SmallerStride
            | LargerStride
            | TimeBackwards
            | TimeOutOfRange
            | UnseenMigration
            | UnseenWakeup
            | RunningElsewhere
            | MigrateRunning
            | MigrateOrigMismatch
            | WakeupTargetCorrected
            | UnseenExit
            | UnseenDeparture
            | BadOption
            | BadFormat
            | UnknownState
            | LockSleep => Severity::Repaired,
            UnknownOption | DuplicateFormat | UnknownEvent | DuplicateEvents | EarlyWakeup | CpuOffline | LateStart => {
                Severity::Note
            }
        }
    }

    /// What it is, so many times, and what one can do about it: one line, to follow the number.
    pub fn message(self, count: u64) -> String {
        inflected(self.template(), count)
    }

    /// The message, with `{one|many}` where it depends on the number.
    fn template(self) -> &'static str {
        use Diagnostic::*;
        match self {
            EventsLost => {
                "{place|places} where events are missing, overwritten by the kernel before they were read or damaged in the file; what ran there is unknown. Record with larger buffers (trace-cmd record -b)"
            }
            EventsDroppedUnmarked => {
                "{event|events} that the recorder counted, but that {is|are} missing without a mark of where: dropped by the kernel, or never written (trace-cmd record -m); who runs or waits may be wrong behind such a place"
            }
            CorruptPage => {
                "{page that is no valid ring-buffer page|pages that are not valid ring-buffer pages}; skipped, and the time around {it|them} is unknown"
            }
            CorruptRecord => {
                "{record that runs past its|records that run past their} page; the rest of {the|each} page was dropped"
            }
            CorruptChunk => "compressed {chunk|chunks} that could not be decompressed; skipped",
            TruncatedData => {
                "{CPU|CPUs} whose data end after the end of the file; the file was cut, what precedes the cut was read"
            }
            OverlappingData => {
                "{CPU|CPUs} whose data stand where another CPU's do: a damaged table of CPUs; they end where the other's begin, or were left out"
            }
            LostTable => {
                "{buffer|buffers} whose table of CPUs is missing, as it stands behind the data and the file was cut; the data were found without it, and their CPUs by the names of the idle tasks (swapper/3)"
            }
            MisnumberedCpu => {
                "{CPU|CPUs} whose data stood under another's number, as trace-cmd restore numbers trace.dat.cpu*, of which cpu10 comes before cpu2; {it has that of its idle task|they have those of their idle tasks} (swapper/3)"
            }
            TruncatedHeader => "{part|parts} of the header beyond the end of the file, or of impossible size; left out",
            BeyondLimit => {
                "{part|parts} of the file beyond a limit that no recorder reaches (docs/limits.md): damaged or hostile; left out"
            }
            MissingSection => "{part|parts} of the header that the file does not have; names or formats may be missing",
            MissingDecoder => "{part|parts} of the file compressed in a way that this build cannot read",
            BadOption => "{option|options} too short or of impossible content; ignored",
            UnknownOption => "{option|options} of a later trace-cmd; skipped",
            BadFormat => {
                "event {format|formats} that could not be understood in full; such events are counted, not interpreted"
            }
            DuplicateFormat => "event {format|formats} given twice; the first one counts",
            UnknownEvent => "{event|events} without a format in the file; counted, not interpreted",
            SmallerStride => {
                "{buffer whose label gives larger pages than its|buffers whose label gives larger pages than their} data have (trace-cmd 3.1 on kernels with large sub-buffers); read by the data"
            }
            LargerStride => {
                "{buffer whose label gives smaller pages than its|buffers whose label gives smaller pages than their} data have; read by the data"
            }
            DuplicateEvents => {
                "{event|events} that another buffer of this trace records as well; {that one was|those were} used. Choose with --buffer"
            }
            OtherClock => "{buffer|buffers} with another clock than the first; left out. Choose with --buffer",
            ClocksApart => {
                "{CPU whose events lie|CPUs whose events lie} more than a minute from all events of the others: {its clock is|their clocks are} not in step, and the order of events between CPUs is unknown. Record with -C mono"
            }
            TimeBackwards => {
                "{event stamped earlier than its|events stamped earlier than their} predecessor on the same CPU; moved to its time. The clock stepped back: record with -C mono"
            }
            TimeOutOfRange => "time {stamp|stamps} beyond 146 years; cut there",
            BadCpu => "{event that names|events that name} a CPU number no machine has; left out",
            UnknownState => {
                "{value|values} of prev_state that the event's own format does not explain; taken as blocked"
            }
            LockSleep => {
                "{switch|switches} away from a task that slept on a lock, named as preempted (R+), as a kernel 5.10 with PREEMPT_RT does; taken as {a sleep|sleeps} since a wakeup followed"
            }
            MissingEvents => {
                "{kind|kinds} of scheduler events that {was|were} not recorded; what depends on {it|them} is approximate. Record with trace-cmd record -e sched"
            }
            SwitchPrevMismatch => {
                "{switch|switches} away from another task than the one known to run: earlier ones were not recorded, by a filter (trace-cmd record -f, -F, -P) or an unmarked loss; who ran before {it|each} is wrong"
            }
            UnseenMigration => {
                "{task that ran on another CPU than the one it|tasks that ran on another CPU than the one they} waited on, without a migration event"
            }
            UnseenWakeup => {
                "{task|tasks} that ran after a sleep that no wakeup ended, or came when none had waited; how long {it|they} waited is unknown"
            }
            RunningElsewhere => {
                "{task|tasks} switched in while another CPU was thought to run {it|them}; that CPU is unknown until its next event"
            }
            MigrateRunning => "{migration|migrations} of a task that runs; ignored",
            MigrateOrigMismatch => {
                "{migration|migrations} from another CPU than the one the task was thought to be on; the event was believed"
            }
            WakeupTargetCorrected => "{wakeup|wakeups} of a waiting task on another CPU than its queue; moved there",
            UnseenExit => "process {number|numbers} used again without an exit having been seen",
            UnseenQueue => {
                "{time|times} a task was on the queue of a CPU without any event, one left out (trace-cmd record -M) or whose data are missing; how long it waited, whether it ran there, and who waited at the start is unknown"
            }
            UnseenDeparture => {
                "{task|tasks} that waited on a CPU that became idle all the same, where events are missing: {it had left unseen, and is unknown until its|they had left unseen, and are unknown until their} next event"
            }
            EarlyWakeup => "{wakeup|wakeups} of a task that still ran; normal, nothing was counted",
            CpuOffline => {
                "{time|times} a CPU was offline: from the last event of its stopper, or the start of the trace, until its next event it counts as neither idle nor busy (no event tells of it; it is concluded from what the kernel does not record)"
            }
            FastWindow => {
                "window whose past is known from its own events alone (--fast-window): tasks that waited all the while without an event are missing, and who descends from the traced command is not known"
            }
            LateStart => {
                "{task|tasks} found late to have waited since the start; the pass was run again with what it learned"
            }
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// A text in which `{one|many}` stands for what depends on the number.
fn inflected(template: &str, count: u64) -> String {
    let mut parts = template.split(['{', '|', '}']);
    let mut text = parts.next().unwrap_or("").to_owned();
    while let (Some(one), Some(many), Some(rest)) = (parts.next(), parts.next(), parts.next()) {
        text += if count == 1 { one } else { many };
        text += rest;
    }
    text
}

/// Diagnostics with their counts, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    counts: BTreeMap<Diagnostic, u64>,
    details: BTreeMap<Diagnostic, String>,
}

impl Diagnostics {
    /// Counts one more.
    pub fn add(&mut self, what: Diagnostic) {
        self.add_many(what, 1);
    }

    /// Counts `n` more; none leaves no trace.
    pub fn add_many(&mut self, what: Diagnostic, n: u64) {
        if n > 0 {
            let count = self.counts.entry(what).or_default();
            *count = count.saturating_add(n);
        }
    }

    /// Counts one more and, the first time, notes the place or the name.
    pub fn add_at(&mut self, what: Diagnostic, place: impl FnOnce() -> String) {
        self.add_many_at(what, 1, place);
    }

    /// Counts `n` more and, the first time, notes the place or the names; none leaves no trace.
    pub fn add_many_at(&mut self, what: Diagnostic, n: u64, place: impl FnOnce() -> String) {
        if n > 0 {
            self.add_many(what, n);
            self.details.entry(what).or_insert_with(place);
        }
    }

    /// The first place, or the names, if they were noted.
    pub fn detail(&self, what: Diagnostic) -> Option<&str> {
        self.details.get(&what).map(String::as_str)
    }

    /// How many were counted.
    pub fn count(&self, what: Diagnostic) -> u64 {
        self.counts.get(&what).copied().unwrap_or(0)
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// All of them: what, how often, and the first place if one was noted.
    pub fn iter(&self) -> impl Iterator<Item = (Diagnostic, u64, Option<&str>)> {
        self.counts.iter().map(|(d, n)| (*d, *n, self.detail(*d)))
    }

    /// Adds the counts of `other` to these.
    pub fn merge(&mut self, other: &Diagnostics) {
        for (what, n, place) in other.iter() {
            self.add_many(what, n);
            if let Some(place) = place {
                self.details.entry(what).or_insert_with(|| place.to_owned());
            }
        }
    }
}

impl Serialize for Diagnostics {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            kind: Diagnostic,
            severity: Severity,
            count: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            first: Option<&'a str>,
            message: String,
        }
        s.collect_seq(self.iter().map(|(kind, count, first)| Row {
            kind,
            severity: kind.severity(),
            count,
            first,
            message: kind.message(count),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_agree_with_their_number() {
        let (one, many) = (Diagnostic::CorruptPage.message(1), Diagnostic::CorruptPage.message(2));
        assert_eq!(one, "page that is no valid ring-buffer page; skipped, and the time around it is unknown");
        assert_eq!(many, "pages that are not valid ring-buffer pages; skipped, and the time around them is unknown");
        assert_eq!(inflected("plain", 1), "plain");
        assert_eq!(inflected("{a|b}{|s} c", 1), "a c");
        assert_eq!(inflected("{a|b}{|s} c", 0), "bs c");
    }
}
