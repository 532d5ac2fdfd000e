//! The findings about a file.

sched::diagnostics! {
    /// The findings about a file: damage, oddities, and parts that are missing.
    pub enum FileIssue;
    /// Events that the recorder counted and that are missing without a mark.
    EventsDroppedUnmarked = 1, "events-dropped-unmarked", DataLoss,
        "{event|events} that the recorder counted, but that {is|are} missing without a mark of where: dropped by the kernel, or never written@; running and waiting tasks may be wrong behind such a place";
    /// Pages that are not valid ring-buffer pages.
    CorruptPage = 2, "corrupt-page", DataLoss,
        "{page that is no valid ring-buffer page|pages that are not valid ring-buffer pages}; skipped, and the time around {it|them} is unknown";
    /// Records that extend beyond their page.
    CorruptRecord = 3, "corrupt-record", DataLoss,
        "{record that runs past its|records that run past their} page; the rest of {the|each} page was dropped";
    /// Compressed chunks that could not be decompressed.
    CorruptChunk = 4, "corrupt-chunk", DataLoss,
        "compressed {chunk|chunks} that could not be decompressed; skipped";
    /// CPUs whose data end after the end of the file.
    TruncatedData = 5, "truncated-data", DataLoss,
        "{CPU|CPUs} whose data end after the end of the file; the file was cut, what precedes the cut was read";
    /// CPUs whose data stand where those of another CPU do.
    OverlappingData = 6, "overlapping-data", DataLoss,
        "{CPU|CPUs} whose data stand where another CPU's do: a damaged table of CPUs; they end where the other's begin, or were left out";
    /// Buffers without a table of CPUs.
    LostTable = 7, "lost-table", DataLoss,
        "{buffer|buffers} whose table of CPUs is missing, as it stands behind the data and the file was cut; the data were found without it, and their CPUs by the names of the idle tasks (swapper/3)";
    /// CPUs whose data stood under the number of another CPU.
    MisnumberedCpu = 8, "misnumbered-cpu", Repaired,
        "{CPU|CPUs} whose data stood under another's number, as trace-cmd restore numbers trace.dat.cpu*, of which cpu10 comes before cpu2; {it has that of its idle task|they have those of their idle tasks} (swapper/3)";
    /// Parts of the header beyond the end of the file, or of impossible size.
    TruncatedHeader = 9, "truncated-header", DataLoss,
        "{part|parts} of the header beyond the end of the file, or of impossible size; left out";
    /// Parts of the file beyond a limit.
    BeyondLimit = 10, "beyond-limit", DataLoss,
        "{part|parts} of the file beyond a limit that no recorder reaches (docs/limits.md): damaged or hostile; left out";
    /// Parts of the header that are not in the file.
    MissingSection = 11, "missing-section", DataLoss,
        "{part|parts} of the header that the file does not have; names or formats may be missing";
    /// Parts of the file with an unsupported compression.
    MissingDecoder = 12, "missing-decoder", DataLoss,
        "{part|parts} of the file compressed in a way that this build cannot read";
    /// Options that are too short or have impossible content.
    BadOption = 13, "bad-option", Repaired,
        "{option|options} too short or of impossible content; ignored";
    /// Options of a later trace-cmd.
    UnknownOption = 14, "unknown-option", Note,
        "{option|options} of a later trace-cmd; skipped";
    /// Event formats that were not understood in full.
    BadFormat = 15, "bad-format", Repaired,
        "event {format|formats} that could not be understood in full; such events are counted, not interpreted";
    /// Event formats that occur twice.
    DuplicateFormat = 16, "duplicate-format", Note,
        "event {format|formats} given twice; the first one counts";
    /// Events without a format.
    UnknownEvent = 17, "unknown-event", Note,
        "{event|events} without a format in the file; counted, not interpreted";
    /// Buffers whose pages are smaller than their label.
    SmallerStride = 18, "smaller-stride", Repaired,
        "{buffer whose label gives larger pages than its|buffers whose label gives larger pages than their} data have (trace-cmd 3.1 on kernels with large sub-buffers); read by the data";
    /// Buffers whose pages are larger than their label.
    LargerStride = 19, "larger-stride", Repaired,
        "{buffer whose label gives smaller pages than its|buffers whose label gives smaller pages than their} data have; read by the data";
    /// Events that another buffer records as well.
    DuplicateEvents = 20, "duplicate-events", Note,
        "{event|events} that another buffer of this trace records as well; {that one was|those were} used@";
    /// Buffers with another clock than the first buffer.
    OtherClock = 21, "other-clock", Incomplete,
        "{buffer|buffers} with another clock than the first; left out@";
    /// CPUs whose clocks are not in step with the others.
    ClocksApart = 22, "clocks-apart", Incomplete,
        "{CPU whose events lie|CPUs whose events lie} more than a minute from all events of the others: {its clock is|their clocks are} not in step, and the order of events between CPUs is unknown@";
    /// Events stamped earlier than their predecessor on the same CPU.
    TimeBackwards = 23, "time-backwards", Repaired,
        "{event stamped earlier than its|events stamped earlier than their} predecessor on the same CPU; moved to its time. The clock stepped back@";
    /// Stamps beyond 146 years.
    TimeOutOfRange = 24, "time-out-of-range", Repaired,
        "time {stamp|stamps} beyond 146 years; cut there";
    /// Events that name an impossible CPU number.
    BadCpu = 25, "bad-cpu", DataLoss,
        "{event that names|events that name} a CPU number no machine has; left out";
    /// Values of `prev_state` that the event's format does not explain.
    UnknownState = 26, "unknown-state", Repaired,
        "{value|values} of prev_state that the event's own format does not explain; taken as asleep";
    /// Sleeps on a lock that the kernel recorded as preemption.
    LockSleep = 27, "lock-sleep", Repaired,
        "{switch|switches} away from a task that slept on a lock, named as preempted (R+), as a kernel 5.10 with PREEMPT_RT does; taken as {a sleep|sleeps} since a wakeup followed";
    /// Recordings of some tasks, not of the machine.
    SomeTasks = 43, "some-tasks", Incomplete,
        "=a recording of some tasks alone: the other tasks of each CPU, also those that ran in between, are unknown@";
    /// Parts of longer traces without the state before them.
    LostPast = 44, "lost-past", Incomplete,
        "=a part of a longer trace, whose note of what precedes it cannot be used; tasks and CPUs are unknown until their first events@";
    /// Hits of probes without a record.
    MissedProbes = 45, "missed-probes", Incomplete,
        "{hit|hits} of probes without a record: the kernel records none within another one's handler; analyses of probes lack {it|them}, and throttled tasks may be wrong behind one";
    /// Times of a text that lack the nanoseconds.
    RoundedTimes = 46, "rounded-times", Incomplete,
        "=a text whose times have microseconds alone: lines of one microsecond are taken in their order, a nanosecond apart, and each length is wrong by up to two microseconds@";
    /// Lines of a text without an event that is understood.
    UnreadLines = 47, "unread-lines", Note,
        "{line|lines} of the text without an event that is understood; passed over";
    /// Recordings without the context of their events.
    NoContext = 48, "no-context", Incomplete,
        "=a recording without the context of its events (softirqs, interrupts): which balancer moved a task, and what follows from that, is not to be trusted@";
    /// Texts in which losses would not show.
    UntoldLosses = 49, "untold-losses", Note,
        "=a text of perf script, which tells of lost events only where it was asked to@: whether any were lost is unknown";
    /// Windows that were read without the events long before them.
    FastWindow = 42, "fast-window", Incomplete,
        "=a window whose past is known from its own events alone@: tasks that waited all the while without an event are missing, and who descends from the traced command is not known";
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::EventIssue;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_findings_share_a_place_or_a_name() {
        let files = FileIssue::ALL.iter().map(|issue| issue.diagnostic());
        let all: Vec<_> = EventIssue::ALL.iter().map(|issue| issue.diagnostic()).chain(files).collect();
        let names: BTreeSet<&str> = all.iter().map(|what| what.name()).collect();
        let different: BTreeSet<_> = all.iter().copied().collect();
        assert_eq!((names.len(), different.len()), (all.len(), all.len()));
    }

    #[test]
    fn messages_agree_with_their_number() {
        let (one, many) =
            (FileIssue::CorruptPage.diagnostic().message(1), FileIssue::CorruptPage.diagnostic().message(2));
        assert_eq!(one, "page that is no valid ring-buffer page; skipped, and the time around it is unknown");
        assert_eq!(many, "pages that are not valid ring-buffer pages; skipped, and the time around them is unknown");
    }
}
