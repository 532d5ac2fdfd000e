//! The report: as numbers, and as a text.

use crate::{Case, Earlier, Idleness, Latency, Measure, Measures, Phase, PhaseTrack, Placement, RowSums};
use membership::{GroupLabel, TaskGroup, TaskGroups, TasksBy, join_random};
use sched::kthread::command;
use sched::lengths::{Summary, human};
use sched::topology::CpuOrder;
use sched::{Comm, Cpu, Dur, Lengths, OfSelection, Pid, SchedState, TaskId, TaskState, Tracepoint, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use timeline::table::{TextColumn, TextTable};
use timeline::text::{CASES, Detail, case, case_head, paragraph, queued_kinds, short};
use timeline::{Drawable, Next};

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/latency/1";

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyRow {
    /// The PID of the task, if rows are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The command name, where the rows are tasks or commands; `(others)` of the last row, where a trace has more tasks or commands
    /// than rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Comm>,
    /// The process, the cgroup, the scheduling parameters or the stack of the tasks, where the rows are these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupLabel>,
    /// The number of tasks that the row holds together because they are beyond the 32,768 rows; absent in other rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<u64>,
    /// The measures that occur, with their distributions.
    pub measures: Vec<MeasureSummary>,
    /// The number of wakeups whose latency is 4 ms or longer.
    pub late_wakeups: u64,
}

/// A measure and its distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasureSummary {
    /// The measure of the distribution.
    pub measure: Measure,
    /// The number of intervals of the distribution that began before the window: they count with their full length.
    pub began_before: u64,
    /// The distribution of the lengths.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The wakeup latencies of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Split<K> {
    /// The kind of the wakeups.
    pub kind: K,
    /// The distribution of the latencies.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The measured latencies.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyReport {
    /// The name and version of the schema, `schedviz/latency/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why there are no figures: the selected tasks are unknown, or none is in the window; absent if there
    /// are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The distribution of every measure over all tasks; empty if the selection is unknown.
    pub measures: Vec<MeasureSummary>,
    /// The wakeup latencies by the placement of the task.
    pub by_placement: Vec<Split<Placement>>,
    /// The wakeup latencies by the CPUs that idled at the wakeup.
    pub by_idleness: Vec<Split<Idleness>>,
    /// The kind of the rows.
    pub by: TasksBy,
    /// Whether names that differ in a number or a random part alone share a row, as `--by command` asks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_stem: bool,
    /// The rows, the one with the longest wakeup latency first.
    pub rows: Vec<LatencyRow>,
    /// The longest waits.
    pub worst: Vec<Case>,
    /// Whether `sched_waking` was recorded. If not, wakeup latencies begin when tasks were queued.
    pub from_waking: bool,
    /// Whether tasks count as queued from `sched_waking` on, because `sched_wakeup` was not recorded. The two parts of a
    /// wakeup are then unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued_at_waking: bool,
    /// The number of wakeups whose `sched_waking` was not seen; they count from queued to run alone.
    pub without_waking: Option<u64>,
    /// The number of waits under way at the end of the window, which are not counted in the measures.
    pub still_waiting: Option<u64>,
    /// The longest wait under way at the end of the window; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_still_waiting: Option<Unfinished>,
    /// The time that tasks were throttled by `cpu.max` while they waited to run, of each wait that was: it is not in the
    /// lengths of the waits. Absent if the recording shows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Summary>,
    /// The number of places where events were lost; intervals that these cut are not counted.
    pub gaps: u64,
    /// The queued time of the counted tasks by kind, in nanoseconds; absent where there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<sched::QueuedTimes>,
    /// The distributions, for a figure.
    #[serde(skip)]
    pub lengths: Measures,
    /// Whether other CPUs are distinguished by their distance.
    #[serde(skip)]
    pub with_distances: bool,
}

/// A wait whose end is not in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unfinished {
    /// The time at which the task was queued, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the wait at the end of the window, in nanoseconds.
    pub duration_ns: Dur,
    /// The PID of the waiting task.
    pub pid: Pid,
    /// The command name of the waiting task.
    pub command: Comm,
    /// The CPU on which the task waits.
    pub cpu: Cpu,
}

impl sched::TakesQueued for LatencyReport {
    fn take_queued(&mut self, times: sched::QueuedTimes) {
        self.queued = Some(times);
    }
}

impl OfSelection for LatencyReport {
    fn withhold(&mut self, why: String) {
        let LatencyReport {
            schema,
            from_ns,
            to_ns,
            by,
            by_stem,
            from_waking,
            queued_at_waking,
            gaps,
            with_distances,
            ..
        } = *self;
        *self = LatencyReport {
            schema,
            from_ns,
            to_ns,
            selection_unknown: Some(why),
            measures: Vec::new(),
            by_placement: Vec::new(),
            by_idleness: Vec::new(),
            by,
            by_stem,
            rows: Vec::new(),
            worst: Vec::new(),
            from_waking,
            queued_at_waking,
            without_waking: None,
            still_waiting: None,
            longest_still_waiting: None,
            throttled: None,
            gaps,
            queued: None,
            lengths: Measures::default(),
            with_distances,
        };
    }
}

impl LatencyReport {
    /// The distribution of a measure over all tasks.
    pub fn of(&self, measure: Measure) -> Summary {
        self.measures.get(measure as usize).map_or_else(Summary::default, |named| named.summary)
    }
}

fn named(lengths: &Measures, earlier: &Earlier) -> impl Iterator<Item = MeasureSummary> {
    let all = Measure::ALL.into_iter().zip(lengths.iter().zip(earlier));
    all.map(|(measure, (lengths, before))| MeasureSummary {
        measure,
        began_before: *before,
        summary: lengths.summary(),
    })
}

/// The distribution of each kind, from the parts that it has.
fn splits<'l, K: Copy>(kinds: &[K], parts: impl Fn(K) -> Vec<&'l Lengths>) -> Vec<Split<K>> {
    let split = |kind: &K| {
        let mut all = Lengths::default();
        parts(*kind).into_iter().for_each(|part| all.merge(part));
        Split { kind: *kind, summary: all.summary() }
    };
    kinds.iter().map(split).collect()
}

/// The rows of commands, of which those whose names have letters alone in the place of a random part join the others.
fn of_stems(rows: Vec<RowSums>) -> Vec<RowSums> {
    let rows = rows.into_iter().map(|sums| (sums.key, sums)).collect();
    join_random(rows, |sums, more: RowSums| sums.join(&more))
        .into_iter()
        .map(|(key, sums)| RowSums { key, ..sums })
        .collect()
}

/// A row of the report, with its longest wakeup latency.
fn row(sums: &RowSums, groups: Option<&TaskGroups>) -> (Option<Dur>, LatencyRow) {
    let group = groups.and_then(|groups| groups.label(sums.key)).filter(|_| sums.key != TaskGroup::Rest);
    let (pid, command) = match sums.key {
        _ if group.is_some() => (None, None),
        // A stem with one name is shown as that name.
        TaskGroup::Command(command) if groups.is_none() || sums.has_several_names => (None, Some(command)),
        TaskGroup::Command(_) => (None, Some(command(sums.name))),
        TaskGroup::Task(pid) => (Some(pid), Some(sums.name)),
        _ => (None, Some(Comm::new(b"(others)"))),
    };
    let merged = (sums.key == TaskGroup::Rest).then_some(sums.tasks);
    let measures = named(&sums.measures, &sums.earlier).filter(|m| m.summary.count > 0).collect();
    (
        sums.measures[Measure::Wakeup as usize].max(),
        LatencyRow { pid, command, group, merged, measures, late_wakeups: sums.late },
    )
}

impl LatencyRow {
    /// The distribution of a measure in the row; that of nothing where it does not occur.
    pub fn of(&self, measure: Measure) -> Summary {
        let named = self.measures.iter().find(|named| named.measure == measure);
        named.map_or_else(Summary::default, |named| named.summary)
    }

    /// The name of the row in tables.
    pub fn shown(&self) -> String {
        let command = self.command.unwrap_or_default();
        match (&self.group, self.pid) {
            (Some(group), _) => group.shown(),
            (None, Some(pid)) => pid.named(command),
            (None, None) => command.to_string(),
        }
    }
}

pub(crate) fn build(latency: Latency<'_>, end: Ts, state: &SchedState) -> LatencyReport {
    let unfinished = |(id, track): (TaskId, &PhaseTrack)| {
        let task = state.task(id).filter(|_| matches!(track.phase, Phase::Wait))?;
        let TaskState::Waiting(cpu) = task.state else { return None };
        let throttled = latency.waits.get(id).map_or(Dur(0), |wait| wait.throttled);
        let start_in_trace_ns = track.since.since(latency.options.zero).0;
        let duration_ns = Dur(end.since(track.since).0.saturating_sub(throttled.0));
        let wait = Unfinished { start_in_trace_ns, duration_ns, pid: task.pid, command: task.comm, cpu };
        // Elsewhere it may have run.
        (state.is_observed(cpu) && latency.measures(task, cpu, state)).then_some(wait)
    };
    let unfinished: Vec<Unfinished> = latency.tracks.iter().filter_map(unfinished).collect();
    let longest_still_waiting = unfinished.iter().copied().max_by_key(|wait| (wait.duration_ns, Reverse(wait.pid)));
    let Latency { options, start, rows, woken, worst, without_waking, gaps, throttled, .. } = latency;
    let (mut all, mut earlier) = (Measures::default(), Earlier::default());
    for row in &rows {
        all.iter_mut().zip(&row.measures).for_each(|(sum, lengths)| sum.merge(lengths));
        earlier.iter_mut().zip(&row.earlier).for_each(|(sum, number)| *sum += number);
    }
    let groups = options.groups.as_deref();
    let by_stem = groups.is_some_and(|groups| groups.by() == TasksBy::Command);
    let rows = if by_stem { of_stems(rows) } else { rows };
    let mut rows: Vec<(Option<Dur>, LatencyRow)> = rows.into_iter().map(|sums| row(&sums, groups)).collect();
    // The rest of all rows is the last one.
    rows.sort_by(|(a, r), (b, s)| {
        let key = |row: &LatencyRow| (row.pid, row.command, row.group.clone());
        r.merged.cmp(&s.merged).then(b.cmp(a)).then_with(|| key(r).cmp(&key(s)))
    });
    let mut by_placement = splits(&Placement::ALL, |placement| woken[placement as usize].each_ref().to_vec());
    by_placement.retain(|split| split.kind != Placement::Cluster || options.topology.has_clusters());
    LatencyReport {
        schema: SCHEMA,
        from_ns: start.unwrap_or(end),
        to_ns: end,
        selection_unknown: None,
        measures: named(&all, &earlier).collect(),
        by_placement,
        by_idleness: splits(&Idleness::ALL, |idleness| woken.iter().map(|row| &row[idleness as usize]).collect()),
        by: options.by,
        by_stem,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        worst: worst.into_iter().map(|kept| kept.case).collect(),
        from_waking: state.has_wakings(),
        queued_at_waking: state.places_by_wakings(),
        without_waking: Some(without_waking),
        still_waiting: Some(unfinished.len() as u64),
        longest_still_waiting,
        throttled: (throttled.count() > 0).then(|| throttled.summary()),
        queued: None,
        gaps,
        lengths: all,
        with_distances: options.topology.has_groups(CpuOrder::Node),
    }
}

/// The letters of the column of names.
const NAMES: usize = 19;

/// A table of lengths with its head; a name that is longer than the column of names has a line of its own.
fn table(name: &str) -> TextTable {
    let lengths = [TextColumn::Numbers(6); 6];
    let columns = [TextColumn::Names { least: NAMES, most: NAMES }, TextColumn::Numbers(5)];
    let mut table = TextTable::new(columns.into_iter().chain(lengths));
    table.row([name, "number", "mean", "50 %", "90 %", "99 %", "99.9 %", "max"]);
    table
}

/// Adds a table below an empty line.
fn add(out: &mut String, table: &TextTable) {
    out.push('\n');
    table.write(out);
}

fn line(table: &mut TextTable, name: &str, s: &Summary) {
    let mut cells = vec![name.to_owned(), s.count.to_string()];
    match s.count {
        0 => cells.push(human(None)),
        _ => cells.extend([s.mean_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.p999_ns, s.max_ns].map(short)),
    }
    table.row(cells);
}

/// A line of a table of rows that can be stacks, whose names have lines of their own.
fn row_line(table: &mut TextTable, row: &LatencyRow, s: &Summary) {
    match row.group.as_ref().is_some_and(|group| group.stack.is_some()) {
        true => {
            let mut name = String::new();
            paragraph(&mut name, 2, 4, &row.shown());
            name.lines().for_each(|line| table.across(line));
            line(table, "", s);
        }
        false => line(table, &format!("  {}", row.shown()), s),
    }
}

/// The name of a measure in its column.
fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::New => "wait of new tasks",
        Measure::Preempted => "wait if preempted",
        _ => measure.name(),
    }
}

fn placement_name(placement: Placement, with_distances: bool) -> &'static str {
    match placement {
        Placement::Previous => "on the previous CPU",
        Placement::Core => "on the same core",
        Placement::Cluster => "in the same cluster",
        Placement::Llc => "in the same LLC",
        Placement::Node => "in the same node",
        Placement::Elsewhere if with_distances => "in another node",
        Placement::Elsewhere => "on another CPU",
        Placement::Unknown => "previous unknown",
    }
}

fn idleness_name(idleness: Idleness) -> &'static str {
    match idleness {
        Idleness::Target => "on an idle CPU",
        Idleness::Other => "busy, another idle",
        Idleness::Nobody => "while no CPU idled",
    }
}

/// The report for people: `trace` is the file as the command line has it, `rows` the maximum number of rows of a table.
pub fn text(report: &LatencyReport, trace: &Drawable, rows: usize, detail: Detail) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: how long tasks waited is unknown: {why}"));
        return out;
    }
    headline(&mut out, report, trace);
    let span = span(report);
    let mut all = table(&format!("all tasks; wakeup latency: from {span}"));
    for m in &report.measures {
        line(&mut all, measure_name(m.measure), &m.summary);
    }
    add(&mut out, &all);
    began_before(&mut out, report);
    let mut placements = table(&format!("wakeup latency (from {span}) by placement"));
    for split in report.by_placement.iter().filter(|s| s.summary.count > 0) {
        line(&mut placements, placement_name(split.kind, report.with_distances), &split.summary);
    }
    for split in report.by_idleness.iter().filter(|s| s.summary.count > 0) {
        line(&mut placements, idleness_name(split.kind), &split.summary);
    }
    add(&mut out, &placements);
    tables(&mut out, report, rows);
    match detail {
        Detail::Brief => brief_cases(&mut out, report, trace),
        Detail::Full => worst(&mut out, report, trace),
    }
    still_waiting(&mut out, report, trace, detail);
    let without_waking = report.without_waking.unwrap_or(0);
    if report.from_waking && without_waking > 0 {
        let which = match without_waking {
            1 => "1 wakeup of which no sched_waking was seen counts".to_owned(),
            n => format!("{n} wakeups of which no sched_waking was seen count"),
        };
        out.push('\n');
        paragraph(&mut out, 0, 2, &format!("{which} from queued to run alone"));
    }
    if let Some(throttled) = &report.throttled {
        let which = match throttled.count {
            1 => "1 wait was".to_owned(),
            n => format!("{n} waits were"),
        };
        let (total, most) = (throttled.total_ns.human(), human(throttled.max_ns));
        out.push('\n');
        let text =
            format!("{which} throttled by cpu.max, for {total} in all, at most {most}: not in the lengths above");
        paragraph(&mut out, 0, 2, &text);
    }
    if let Some((start, length)) = longest_wait(report) {
        let commands = [Next::Draw, Next::Queues, Next::Migrations];
        trace.next(&mut out, "the longest wait", start, length, &commands);
    }
    out
}

/// The longest wakeup latency, or another wait where there is none, with its start; the wait that is still open at the end if that is longer.
fn longest_wait(report: &LatencyReport) -> Option<(u64, Dur)> {
    let ended = report.worst.iter().find(|case| case.measure == Measure::Wakeup).or(report.worst.first());
    let ended = ended.map(|case| (case.start_in_trace_ns, case.until_run()));
    let open = report.longest_still_waiting.map(|wait| (wait.start_in_trace_ns, wait.duration_ns));
    // The one that ended where both are as long.
    open.into_iter().chain(ended).max_by_key(|(_, length)| *length)
}

/// The two ends of a wakeup latency, in words.
pub(crate) fn span(report: &LatencyReport) -> &'static str {
    if report.from_waking { "waking to switch" } else { "wakeup to switch" }
}

fn headline(out: &mut String, report: &LatencyReport, trace: &Drawable) {
    let w = report.of(Measure::Wakeup);
    let headline = match w.count {
        0 => format!("{trace}: no woken task ran"),
        count => format!(
            "{trace}: woken tasks ran after {} (median), {} (99 %), {} (max); {}",
            human(w.p50_ns),
            human(w.p99_ns),
            human(w.max_ns),
            sched::nouns::counted(count, "wakeup")
        ),
    };
    let open = report.longest_still_waiting.filter(|wait| w.max_ns.is_none_or(|max| wait.duration_ns > max));
    let open = open.map_or(String::new(), |wait| {
        format!("; {} still waited after {}", wait.pid.named(wait.command), wait.duration_ns.human())
    });
    paragraph(out, 0, 2, &format!("{headline}{open}"));
    let from =
        if report.from_waking { Tracepoint::Waking.name() } else { "sched_wakeup, as sched_waking was not recorded," };
    let counted = "an interval counts in the window in which it ends, with its full length";
    paragraph(out, 2, 3, &format!("(from {from} to the switch; {counted})"));
    queued_kinds(out, report.queued);
    if report.queued_at_waking {
        let unknown = "how long a wakeup took until the task was queued is unknown";
        paragraph(out, 2, 3, &format!("(sched_wakeup was not recorded: {unknown})"));
    }
}

/// Describes the number of intervals that began before the window, of each measure that has any.
fn began_before(out: &mut String, report: &LatencyReport) {
    let of = |m: &MeasureSummary| format!("{} of {}", m.began_before, m.measure.name().trim_start());
    let earlier: Vec<String> = report.measures.iter().filter(|m| m.began_before > 0).map(of).collect();
    if !earlier.is_empty() {
        paragraph(out, 2, 3, &format!("(began before the window: {})", earlier.join(", ")));
    }
}

/// The tables by command or task.
fn tables(out: &mut String, report: &LatencyReport, rows: usize) {
    let of = |measure: Measure| move |row: &LatencyRow| row.measures.iter().find(|m| m.measure == measure).copied();
    let wakeup = format!("wakeup latency (from {}) of", span(report));
    for (measure, title) in [(Measure::Wakeup, wakeup.as_str()), (Measure::Preempted, "waits if preempted")] {
        let with: Vec<(&LatencyRow, MeasureSummary)> =
            report.rows.iter().filter_map(|row| Some((row, of(measure)(row)?))).collect();
        if with.is_empty() {
            continue;
        }
        let mut table = table(title);
        for (row, m) in with.iter().take(rows) {
            row_line(&mut table, row, &m.summary);
        }
        if with.len() > rows {
            table.across(format!("  … and {} more (--rows, --json)", with.len() - rows));
        }
        add(out, &table);
    }
}

/// The task that has waited longest at the end of the window.
fn still_waiting(out: &mut String, report: &LatencyReport, trace: &Drawable, detail: Detail) {
    let Some(wait) = report.longest_still_waiting else { return };
    let who = match report.still_waiting {
        None | Some(1) => "1 task still waited at the end".to_owned(),
        Some(n) => format!("{n} tasks still waited at the end, the longest"),
    };
    let (length, from) = (wait.duration_ns.human(), wait.start_in_trace_ns as f64 / 1e9);
    let task = wait.pid.named(wait.command);
    out.push('\n');
    paragraph(out, 0, 2, &format!("{who} for {length} from {from:.6} s: {task} on CPU {}", wait.cpu));
    if detail == Detail::Full {
        trace.draw(out, CASE, wait.start_in_trace_ns, wait.duration_ns);
    }
}

/// The waits whose longest cases are shown.
const KINDS: [(Measure, &str); 3] = [
    (Measure::Wakeup, "longest wakeup latencies"),
    (Measure::New, "longest waits of new tasks"),
    (Measure::Preempted, "longest waits after preemption"),
];

/// The indentation of what follows the first line of a case.
const CASE: usize = 5;

fn task_name(pid: Pid, name: Comm) -> String {
    match pid {
        Pid::IDLE => "the idle task".to_owned(),
        pid => pid.named(name),
    }
}

/// The title of a list of cases; that of wakeup latencies with their two ends.
fn case_title(out: &mut String, report: &LatencyReport, measure: Measure, title: &str) {
    let ends = if measure == Measure::Wakeup { format!(" (from {})", span(report)) } else { String::new() };
    out.extend(["\n", title, &ends, ":\n"]);
}

/// A line for each of the longest cases.
fn brief_cases(out: &mut String, report: &LatencyReport, trace: &Drawable) {
    for (measure, title) in KINDS {
        let mut cases = report.worst.iter().filter(|c| c.measure == measure).take(CASES).peekable();
        if cases.peek().is_none() {
            continue;
        }
        case_title(out, report, measure, title);
        case_head(out, "idle  task");
        for c in cases {
            let (task, behind) = (task_name(c.pid, c.command), task_name(c.behind, c.behind_command));
            // A migration on the way does not end the wait.
            let ran = if c.ran_on == c.queued_on { String::new() } else { format!(" (ran on {})", c.ran_on) };
            let text = format!("{:>4}  {task} on CPU {}{ran} behind {behind}", c.idle_cpus, c.queued_on);
            case(out, c.start_in_trace_ns, c.duration_ns, &text);
        }
    }
    if !report.worst.is_empty() {
        out.push_str("  (idle: CPUs that idled when it was queued; behind: what ran there then)\n");
        trace.draw_any(out);
    }
}

/// Lists every case that was kept.
fn worst(out: &mut String, report: &LatencyReport, trace: &Drawable) {
    for (measure, title) in KINDS {
        let mut cases = report.worst.iter().filter(|c| c.measure == measure).peekable();
        if cases.peek().is_none() {
            continue;
        }
        case_title(out, report, measure, title);
        for c in cases {
            let start = c.start_in_trace_ns;
            let waker = match c.waker {
                None => String::new(),
                Some(Pid::IDLE) => ", woken from the idle task".to_owned(),
                Some(waker) => format!(", woken by {}", waker.named(c.waker_command)),
            };
            let idle = match c.idle_cpus {
                0 => "no CPU idled".to_owned(),
                1 => "1 CPU idled".to_owned(),
                n => format!("{n} CPUs idled"),
            };
            let (task, behind) = (task_name(c.pid, c.command), task_name(c.behind, c.behind_command));
            let slice = match c.behind_within_slice {
                None => "",
                Some(true) => " within its slice",
                Some(false) => " beyond its slice",
            };
            let by = c.behind_by.map_or(String::new(), |reason| format!(" by {}", reason.words()));
            let line = format!(
                "  {:>9} from {:.6} s: {task}{waker}; queued on CPU {} behind {behind}{slice}{by} ({idle}), ran on CPU {} after {}",
                c.duration_ns.human(),
                start as f64 / 1e9,
                c.queued_on,
                c.ran_on,
                task_name(c.after, c.after_command)
            );
            paragraph(out, 0, CASE, &line);
            trace.draw(out, CASE, start, c.until_run());
        }
    }
}
