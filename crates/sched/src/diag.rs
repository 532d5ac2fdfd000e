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
#[allow(missing_docs)] // `message` is the documentation, and what the user reads
pub enum Diagnostic {
    EventsLost,
    EventsDroppedUnmarked,
    CorruptPage,
    CorruptRecord,
    CorruptChunk,
    TruncatedData,
    OverlappingData,
    LostTable,
    TruncatedHeader,
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
    TimeBackwards,
    TimeOutOfRange,
    BadCpu,
    UnknownState,
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
            | MissingSection
            | MissingDecoder
            | OtherClock
            | MissingEvents
            | FastWindow
            | UnseenQueue
            | SwitchPrevMismatch
            | BadCpu => Severity::DataLoss,
            SmallerStride
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
            | UnknownState => Severity::Repaired,
            UnknownOption | DuplicateFormat | UnknownEvent | DuplicateEvents | EarlyWakeup | CpuOffline | LateStart => {
                Severity::Note
            }
        }
    }

    /// What it is, and what one can do about it: one line.
    pub fn message(self) -> &'static str {
        use Diagnostic::*;
        match self {
            EventsLost => {
                "places where events are missing, overwritten by the kernel before they were read or damaged in the file; what ran there is unknown. Record with larger buffers (trace-cmd record -b)"
            }
            EventsDroppedUnmarked => {
                "events that the recorder counted, but that are missing without a mark of where: dropped by the kernel, or never written (trace-cmd record -m); who runs or waits may be wrong behind such a place"
            }
            CorruptPage => {
                "pages that are not valid ring-buffer pages; they were skipped, and the time around them is unknown"
            }
            CorruptRecord => "records that run past their page; the rest of each page was dropped",
            CorruptChunk => "compressed chunks that could not be decompressed; they were skipped",
            TruncatedData => {
                "CPUs whose data end after the end of the file; the file was cut, what precedes the cut was read"
            }
            OverlappingData => {
                "CPUs whose data stand where another CPU's do: a damaged table of CPUs; they end where the other's begin, or were left out"
            }
            LostTable => {
                "buffers whose table of CPUs is missing, as it stands behind the data and the file was cut; the data were found without it, and their CPUs by the names of the idle tasks (swapper/3)"
            }
            TruncatedHeader => {
                "parts of the header beyond the end of the file, or of impossible size; they were left out"
            }
            MissingSection => "parts of the header that the file does not have; names or formats may be missing",
            MissingDecoder => "parts of the file compressed in a way that this build cannot read",
            BadOption => "options too short or of impossible content; ignored",
            UnknownOption => "options of a later trace-cmd; skipped",
            BadFormat => "event formats that could not be understood in full; such events are counted, not interpreted",
            DuplicateFormat => "event formats given twice; the first one counts",
            UnknownEvent => "events without a format in the file; counted, not interpreted",
            SmallerStride => {
                "buffers whose label gives larger pages than their data have (trace-cmd 3.1 on kernels with large sub-buffers); read by the data"
            }
            LargerStride => "buffers whose label gives smaller pages than their data have; read by the data",
            DuplicateEvents => {
                "events that another buffer of this trace records as well; those were used. Choose with --buffer"
            }
            OtherClock => "buffers with another clock than the first; left out. Choose with --buffer",
            TimeBackwards => {
                "events stamped earlier than their predecessor on the same CPU; moved to its time. The clock stepped back: record with -C mono"
            }
            TimeOutOfRange => "time stamps beyond 146 years; cut there",
            BadCpu => "events that name a CPU number no machine has; left out",
            UnknownState => "values of prev_state that the event's own format does not explain; taken as blocked",
            MissingEvents => {
                "kinds of scheduler events that were not recorded; what depends on them is approximate (schedviz info tells what does). Record with trace-cmd record -e sched"
            }
            SwitchPrevMismatch => {
                "switches away from another task than the one known to run: earlier ones were not recorded, by a filter (trace-cmd record -f, -F, -P) or an unmarked loss; who ran before each is wrong"
            }
            UnseenMigration => "tasks that ran on another CPU than the one they waited on, without a migration event",
            UnseenWakeup => {
                "tasks that ran after a sleep that no wakeup ended, or came when none had waited; how long they waited is unknown"
            }
            RunningElsewhere => {
                "tasks switched in while another CPU was thought to run them; that CPU is unknown until its next event"
            }
            MigrateRunning => "migrations of a task that runs; ignored",
            MigrateOrigMismatch => {
                "migrations from another CPU than the one the task was thought to be on; the event was believed"
            }
            WakeupTargetCorrected => "wakeups of a waiting task on another CPU than its queue; moved there",
            UnseenExit => "process numbers used again without an exit having been seen",
            UnseenQueue => {
                "times a task was on the queue of a CPU without any event, one left out (trace-cmd record -M) or whose data are missing; how long it waited, whether it ran there, and who waited at the start is unknown"
            }
            UnseenDeparture => {
                "tasks that waited on a CPU that became idle all the same, where events are missing: they had left unseen, and are unknown until their next event"
            }
            EarlyWakeup => "wakeups of a task that still ran; normal, nothing was counted",
            CpuOffline => {
                "times a CPU was offline: from the last event of its stopper, or the start of the trace, until its next event it counts as neither idle nor busy (no event tells of it; it is concluded from what the kernel does not record)"
            }
            FastWindow => {
                "window whose past is known from its own events alone (--fast-window): tasks that waited all the while without an event are missing, and who descends from the traced command is not known"
            }
            LateStart => "tasks found late to have waited since the start; the pass was run again with what it learned",
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
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
            message: &'static str,
        }
        s.collect_seq(self.iter().map(|(kind, count, first)| Row {
            kind,
            severity: kind.severity(),
            count,
            first,
            message: kind.message(),
        }))
    }
}
