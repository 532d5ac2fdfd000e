//! The report: as numbers, and as a text.

use crate::evenness::{coefficient, gini, jain};
use crate::shares::ApplicationShares;
use crate::{FairRunsReport, Fairness, IdleCpu, InInterval, MemberKey, MemberSums, QueueTime, Starved};
use entitlement::SharesReport;
use membership::{DeadlineParams, GroupLabel, TaskGroup, TaskGroups, TasksBy, join_random};
use sched::kthread::command;
use sched::lengths::{Summary, human};
use sched::nice::SchedClass;
use sched::nouns::counted;
use sched::{Dur, Lengths, OfSelection, Pid, Ts};
use serde::Serialize;
use std::fmt::Write;
use timeline::table::{TextColumn, TextTable};
use timeline::text::{CASES, Detail, case, case_head, paragraph, queued_kinds, short};
use timeline::{Drawable, Next};

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/fairness/2";

/// A member, and what it got.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Member {
    /// The name of the member.
    pub name: String,
    /// The process, the cgroup or the scheduling parameters of the tasks, where the members are these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Box<GroupLabel>>,
    /// The smallest PID of its tasks; absent where no PID was seen.
    #[serde(skip)]
    pub pid: Option<Pid>,
    /// The time that the tasks of the member ran, in nanoseconds.
    pub run_ns: Dur,
    /// The time that the tasks of the member waited, in nanoseconds.
    pub wait_ns: Dur,
    /// The run time in percent of that of all members.
    pub share_percent: f64,
    /// Whether one of its tasks is of the application; null if the application is unknown.
    pub is_of_application: Option<bool>,
    /// The expected share in percent: by weight, or equal for all members.
    pub expected_percent: f64,
    /// The weight of the nice value; of a group, the greatest of its tasks.
    pub weight: u64,
    /// The class of the task with the highest priority, if that is the real-time or the deadline class; absent where it is another one or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<SchedClass>,
    /// The parameters of a deadline task at the end of the window; absent where no record shows them, or where the member can have several tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_params: Option<DeadlineParams>,
    /// The run time in percent of the runnable time.
    pub got_percent: f64,
    /// The run lengths: those of the completed runs.
    pub runs: Summary,
    /// The completed waits.
    pub waits: Summary,
    /// The longest wait that still went on at the end of the window, in nanoseconds; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_wait_ns: Option<Dur>,
}

impl Member {
    /// The longest wait, whether it ended in the window or not.
    pub fn longest_wait(&self) -> Option<Dur> {
        self.waits.max_ns.max(self.open_wait_ns)
    }
}

/// The members that neither ran nor waited for any time in the window, together: runs and waits of theirs end in it without a part in it, as at
/// its start or in the instant at which a task comes to another group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithoutTime {
    /// The number of members.
    pub members: usize,
    /// The run lengths: those of the completed runs.
    pub runs: Summary,
    /// The completed waits.
    pub waits: Summary,
}

impl WithoutTime {
    /// The members among these that have no time but runs or waits; nothing if there is none.
    fn of(all: &[(String, MemberSums)]) -> Option<WithoutTime> {
        let (mut members, mut runs, mut waits) = (0, Lengths::default(), Lengths::default());
        for (_, sums) in all.iter().filter(|(_, sums)| !sums.has_time()) {
            let is_counted = sums.runs.summary().count > 0 || sums.waits.summary().count > 0;
            members += usize::from(is_counted);
            runs.merge(&sums.runs);
            waits.merge(&sums.waits);
        }
        (members > 0).then(|| WithoutTime { members, runs: runs.summary(), waits: waits.summary() })
    }

    /// The name of the row.
    pub(crate) fn name(&self) -> String {
        format!("{} without time", counted(self.members, "member"))
    }
}

/// The shares of an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalReport {
    /// The start of the interval after the start of the trace, in nanoseconds.
    pub start_in_trace_ns: u64,
    /// Members that were runnable in it.
    pub members: usize,
    /// Gini coefficient of their run times; nothing where none ran.
    pub gini: Option<f64>,
    /// Jain's index of their run times; nothing where none ran.
    pub jain: Option<f64>,
    /// The member that got the least of the time it was runnable, among equals the one with the smallest PID; nothing where
    /// there is no member.
    pub starved: Option<String>,
    /// The part of its runnable time that it got, in percent.
    pub starved_got_percent: Option<f64>,
}

/// The measured quantities.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FairnessReport {
    /// The name and version of the schema, `schedviz/fairness/2`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why there are no figures: the selected tasks are unknown, or none is in the window; absent if there
    /// are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The Gini coefficient of the run times, from 0 to 1; null if no member ran.
    pub gini: Option<f64>,
    /// Jain's index of the run times, from 0 to 1; null if no member ran.
    pub jain: Option<f64>,
    /// Jain's index of the run times divided by the weights; null if no member ran.
    pub weighted_jain: Option<f64>,
    /// Whether shares are expected by weight.
    pub weights: bool,
    /// The evenness among the members of the application alone; absent where the application is unknown, or nobody is outside of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationShares>,
    /// The members, the one that ran most first.
    pub members: Vec<Member>,
    /// The members without time in the window, whose runs and waits are in no other row; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_time: Option<WithoutTime>,
    /// The shares by interval.
    pub intervals: Vec<IntervalReport>,
    /// The queued time of the counted tasks by kind, in nanoseconds; absent where there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<sched::QueuedTimes>,
    /// The longest waits.
    pub starved: Vec<Starved>,
    /// The shares of the cgroups of all tasks by weight, and those that they got; null unless the members are cgroups.
    pub shares: Option<SharesReport>,
    /// The runs of fair tasks in the place of real-time tasks that waited on the same CPU, of all fair tasks; absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_before_real_time: Option<FairRunsReport>,
    /// The run lengths of all members, for a figure.
    #[serde(skip)]
    pub runs: Lengths,
    /// The lengths of all waits, for a figure.
    #[serde(skip)]
    pub waits: Lengths,
}

fn name(key: &MemberKey, sums: &MemberSums) -> String {
    let comm = sums.name;
    match key {
        MemberKey::Task(pid) => pid.named(comm),
        // The name of the task that ran at first, until it executed a program.
        MemberKey::Command(comm) if comm.is_empty() => "?".into(),
        MemberKey::Command(comm) => comm.to_string(),
        MemberKey::Parent(None) => "parent unknown".into(),
        MemberKey::Parent(Some(pid)) => format!("children of {pid}"),
        MemberKey::Matched(text) => text.clone(),
        MemberKey::Group(TaskGroup::Command(stem)) if sums.has_several_names => stem.to_string(),
        MemberKey::Group(TaskGroup::Command(_)) if comm.is_empty() => "?".into(),
        MemberKey::Group(TaskGroup::Command(_)) => command(comm).to_string(),
        MemberKey::Group(_) => sums.label.as_ref().map_or_else(|| "unknown".to_owned(), |label| label.shown()),
        MemberKey::Rest => format!("{} others, beyond the rows", sums.tasks),
    }
}

/// The members, of which the commands whose names have letters alone in the place of a random part join the others.
fn of_stems(members: Vec<(MemberKey, MemberSums)>, groups: Option<&TaskGroups>) -> Vec<(MemberKey, MemberSums)> {
    if groups.is_none_or(|groups| groups.by() != TasksBy::Command) {
        return members;
    }
    let (of_groups, mut others): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(key, _)| matches!(key, MemberKey::Group(_)));
    let rows = of_groups.into_iter().filter_map(|(key, sums)| match key {
        MemberKey::Group(group) => Some((group, sums)),
        _ => None,
    });
    let joined = join_random(rows.collect(), MemberSums::join);
    let mut all: Vec<_> = joined.into_iter().map(|(group, sums)| (MemberKey::Group(group), sums)).collect();
    all.append(&mut others);
    all
}

pub(crate) fn build(mut f: Fairness<'_>, end: Ts, application_is_known: bool) -> FairnessReport {
    let options = f.options;
    // The tables that found the members take as much room as their rows will.
    (f.keys, f.homes) = Default::default();
    let groups = options.groups.as_deref();
    let named = |(key, mut sums): (MemberKey, MemberSums)| {
        if let (MemberKey::Task(pid), Some(deadlines)) = (&key, &options.deadlines) {
            sums.deadline_params = deadlines.deadline_params(*pid, options.to);
        }
        if let (MemberKey::Group(group), Some(groups)) = (&key, groups) {
            sums.label = groups.label(*group).map(Box::new);
        }
        (name(&key, &sums), sums)
    };
    let mut all: Vec<(String, MemberSums)> = of_stems(f.members, groups).into_iter().map(named).collect();
    let (mut run_lengths, mut waits) = (Lengths::default(), Lengths::default());
    for (_, s) in &all {
        run_lengths.merge(&s.runs);
        waits.merge(&s.waits);
    }
    let without_time = WithoutTime::of(&all);
    // A task that was there, and neither ran nor waited, wanted no CPU time.
    all.retain(|(_, sums)| sums.has_time());
    // Among equals the one with the smallest PID: names are replaced in an anonymous part, which must not change the order.
    all.sort_by(|(a, x), (b, y)| y.run_ns.cmp(&x.run_ns).then(x.first.cmp(&y.first)).then_with(|| a.cmp(b)));
    let total: u64 = all.iter().map(|(_, s)| s.run_ns).fold(0, u64::saturating_add);
    let weights: u64 = all.iter().map(|(_, s)| s.weight).sum();
    let ran = |(_, s): &(String, MemberSums)| s.run_ns as f64;
    let ran_by_weight = |(_, s): &(String, MemberSums)| s.run_ns as f64 / s.weight.max(1) as f64;
    let runs: Vec<f64> = all.iter().map(ran).collect();
    let by_weight: Vec<f64> = all.iter().map(ran_by_weight).collect();
    let is_of_application = |(_, s): &&(String, MemberSums)| application_is_known && s.is_of_application;
    let of_application =
        |of: fn(&(String, MemberSums)) -> f64| -> Vec<f64> { all.iter().filter(is_of_application).map(of).collect() };
    let application_runs = of_application(ran);
    let application = (!application_runs.is_empty() && application_runs.len() < all.len()).then(|| ApplicationShares {
        members: application_runs.len(),
        gini: gini(&application_runs),
        jain: jain(&application_runs),
        weighted_jain: jain(&of_application(ran_by_weight)),
    });
    let percent = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    let count = all.len();
    let member = |(name, s): &(String, MemberSums)| {
        let expected =
            if options.weights { percent(s.weight as f64, weights as f64) } else { percent(1.0, count as f64) };
        Member {
            name: name.clone(),
            group: s.label.clone(),
            pid: s.first,
            run_ns: Dur(s.run_ns),
            wait_ns: Dur(s.wait_ns),
            is_of_application: application_is_known.then_some(s.is_of_application),
            share_percent: percent(s.run_ns as f64, total as f64),
            expected_percent: expected,
            weight: s.weight,
            deadline_params: s.deadline_params,
            class: s.prio.map(SchedClass::of).filter(|class| *class != SchedClass::Fair),
            got_percent: percent(s.run_ns as f64, s.run_ns.saturating_add(s.wait_ns) as f64),
            runs: s.runs.summary(),
            waits: s.waits.summary(),
            open_wait_ns: s.open_wait,
        }
    };
    let members = all.iter().map(member).collect();
    FairnessReport {
        schema: SCHEMA,
        from_ns: options.from,
        to_ns: options.to,
        selection_unknown: None,
        gini: gini(&runs),
        jain: jain(&runs),
        weighted_jain: jain(&by_weight),
        weights: options.weights,
        application,
        members,
        without_time,
        intervals: intervals(all, options.from, options.zero, options.to, options.interval),
        queued: None,
        starved: f.waits.longest,
        shares: options.shares.clone(),
        fair_before_real_time: f.fair_runs.report(end, options.fair_before),
        runs: run_lengths,
        waits,
    }
}

fn intervals(all: Vec<(String, MemberSums)>, from: Ts, zero: Ts, to: Ts, interval: Dur) -> Vec<IntervalReport> {
    let count = to.since(from).0.div_ceil(interval.0.max(1));
    // By interval: the runnable members, how long each ran, and which part of its runnable time that is.
    let mut found: Vec<Vec<(usize, f64, f64)>> = vec![Vec::new(); count as usize];
    let mut names = Vec::with_capacity(all.len());
    for (member, (name, sums)) in all.into_iter().enumerate() {
        names.push((sums.first, name));
        for InInterval { interval, run_ns, wait_ns } in sums.intervals.finish() {
            if let Some(here) = found.get_mut(interval).filter(|_| run_ns > 0 || wait_ns > 0) {
                here.push((member, run_ns as f64, 100.0 * run_ns as f64 / (run_ns as f64 + wait_ns as f64)));
            }
        }
    }
    let report = |(i, here): (u64, Vec<(usize, f64, f64)>)| {
        let runs: Vec<f64> = here.iter().map(|(_, run, _)| *run).collect();
        // The one with the smallest PID among equals.
        let least = here.iter().min_by(|a, b| a.2.total_cmp(&b.2).then_with(|| names[a.0].cmp(&names[b.0])));
        IntervalReport {
            start_in_trace_ns: from.since(zero).0.saturating_add(i.saturating_mul(interval.0)),
            members: here.len(),
            gini: gini(&runs),
            jain: jain(&runs),
            starved: least.map(|(member, ..)| names[*member].1.clone()),
            starved_got_percent: least.map(|(_, _, got)| *got),
        }
    };
    (0..).zip(found).map(report).collect()
}

impl sched::TakesQueued for FairnessReport {
    fn take_queued(&mut self, times: sched::QueuedTimes) {
        self.queued = Some(times);
    }
}

impl OfSelection for FairnessReport {
    fn withhold(&mut self, why: String) {
        (self.gini, self.jain, self.weighted_jain) = (None, None, None);
        (self.members, self.intervals, self.starved) = (Vec::new(), Vec::new(), Vec::new());
        (self.runs, self.waits, self.without_time) = (Lengths::default(), Lengths::default(), None);
        (self.selection_unknown, self.shares, self.fair_before_real_time) = (Some(why), None, None);
        (self.application, self.queued) = (None, None);
    }
}

/// The idle CPUs that could have run a task that waited.
fn idled(s: &Starved) -> String {
    let Some(could_have_run) = s.could_have_run_ns else {
        return "bound to its CPU: no other could have run it".into();
    };
    if s.idle_cpus.is_empty() {
        let idled = if s.held_back_ns > Dur(0) { "no other CPU idled" } else { "no CPU idled" };
        return s.may_use.as_ref().map_or(idled.into(), |cpus| format!("{idled} that it may use ({cpus})"));
    }
    let name = |idle: &IdleCpu| format!("CPU {} for {}", idle.cpu, idle.idle_ns.human());
    let named: Vec<String> = s.idle_cpus.iter().take(4).map(name).collect();
    let more = s.idle_cpu_count - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("for {} some CPU idled: {}{more}", could_have_run.human(), named.join(", "))
}

/// The CPUs that a task waited for, the one on which it waited longest first.
fn cpus(s: &Starved) -> String {
    match s.queues.as_slice() {
        [] => format!("CPU {}", s.cpu),
        [only] => format!("CPU {}", only.cpu),
        several => {
            let named: Vec<String> = several.iter().take(3).map(|queue| queue.cpu.to_string()).collect();
            let more = several.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("CPU {}{more}", named.join("/"))
        }
    }
}

/// Lists the run queues of a wait with the time on each.
fn queues(s: &Starved) -> String {
    match s.queues.as_slice() {
        [] => format!("CPU {}", s.cpu),
        [only] => format!("CPU {}", only.cpu),
        several => {
            let name = |queue: &QueueTime| format!("CPU {} (waited for {})", queue.cpu, queue.wait_ns.human());
            let named: Vec<String> = several.iter().take(3).map(name).collect();
            let more = several.len() - named.len();
            named.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
        }
    }
}

/// The report for people; `rows` is the maximum number of members that are shown.
pub fn text(report: &FairnessReport, trace: &Drawable, rows: usize, detail: Detail) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: how CPU time was shared is unknown: {why}"));
        return out;
    }
    let (gini, jain) = (coefficient(report.gini), coefficient(report.jain));
    let (members, weighted) = (counted(report.members.len(), "member"), coefficient(report.weighted_jain));
    let all = format!("{members}; Gini coefficient {gini}, Jain's index {jain} (by weight {weighted})");
    let headline = match &report.application {
        None => format!("{trace}: {all}"),
        Some(of) => {
            let [gini, jain, weighted] = [of.gini, of.jain, of.weighted_jain].map(coefficient);
            let members = counted(of.members, "member");
            let shares = format!("Gini coefficient {gini}, Jain's index {jain} (by weight {weighted})");
            format!("{trace}: the application has {members}; {shares}; of all {all}")
        }
    };
    paragraph(&mut out, 0, 2, &headline);
    let meaning = "of the run times: Gini 0 and Jain 1 where all ran equally long; waited: runqueue wait; \
                   expect: the share by weight; got: the share of its runnable time that it ran";
    let meaning =
        if report.weights { meaning.to_owned() } else { meaning.replace("expect: the share by weight; ", "") };
    paragraph(&mut out, 2, 3, &format!("({meaning})"));
    queued_kinds(&mut out, report.queued);
    member_rows(&mut out, report, rows);
    if detail == Detail::Full {
        length_rows(&mut out, report, rows);
    }
    interval_rows(&mut out, report);
    match detail {
        Detail::Brief => brief_waits(&mut out, report, trace),
        Detail::Full => longest_waits(&mut out, report, trace),
    }
    if let Some(s) = report.starved.first() {
        let commands = [Next::Draw, Next::Queues, Next::Migrations];
        trace.next(&mut out, "the longest wait", s.start_in_trace_ns, s.duration_ns, &commands);
    }
    out
}

/// The letters of the column of names.
const NAMES: usize = 22;

/// The members in the order of the tables: those of the application first, then the one that ran most.
fn in_order(report: &FairnessReport) -> Vec<&Member> {
    let mut members: Vec<&Member> = report.members.iter().collect();
    members.sort_by_key(|member| member.is_of_application != Some(true));
    members
}

fn member_rows(out: &mut String, report: &FairnessReport, rows: usize) {
    let numbers = [9, 10, 6, 6, 3, 6].map(TextColumn::Numbers);
    let names = TextColumn::Names { least: 20, most: NAMES };
    let mut table = TextTable::new([names].into_iter().chain(numbers));
    table.row(["", "ran, ms", "waited, ms", "share", "expect", "got", "max"]);
    for m in in_order(report).into_iter().take(rows) {
        let times = [m.run_ns, m.wait_ns].map(|time| format!("{:.3}", time.0 as f64 / 1e6));
        let shares = [m.share_percent, m.expected_percent].map(|share| format!("{share:.2}%"));
        let rest = [format!("{:.0}%", m.got_percent), short(m.longest_wait())];
        table.row([m.name.clone()].into_iter().chain(times).chain(shares).chain(rest));
    }
    out.push('\n');
    table.write(out);
    let more = report.members.len().saturating_sub(rows);
    if more > 0 {
        let _ = writeln!(out, "… and {more} more (--rows, --json)");
    }
    out.push_str("  (max: the longest wait, whether it ended or not)\n");
    classes(out, report);
}

/// The members of higher classes, and the runs of fair tasks in the place of real-time tasks.
fn classes(out: &mut String, report: &FairnessReport) {
    for class in [SchedClass::Deadline, SchedClass::RealTime] {
        let of_class =
            // The stopper of each CPU is in no class that tasks can join.
            report.members.iter().filter(|m| m.class == Some(class) && !m.name.starts_with("migration/"));
        let of_class: Vec<&Member> = of_class.collect();
        let Some(first) = of_class.first() else { continue };
        let with_params: Vec<String> = (of_class.iter())
            .filter_map(|m| Some(format!("{} ({})", m.name, m.deadline_params?)))
            .take(DEADLINE_TASKS)
            .collect();
        let (names, shown) = match with_params.len() {
            0 => (first.name.clone(), 1),
            number => (with_params.join(", "), number),
        };
        let more = match of_class.len() - shown {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        // A group can have tasks of several classes.
        let text = match first.group {
            Some(_) => {
                format!("(with tasks in the {} class, which runs before the fair class: {names}{more})", class.words())
            }
            None => {
                format!("(in the {} class, which runs before tasks of the fair class: {names}{more})", class.words())
            }
        };
        paragraph(out, 2, 3, &text);
    }
    if let Some(FairRunsReport { reason, runs, time_ns, .. }) = &report.fair_before_real_time {
        let (runs, time) = (counted(*runs, "time"), time_ns.human());
        let text =
            format!("(fair tasks ran {runs} in the place of waiting real-time tasks, for {time}: {})", reason.words());
        paragraph(out, 2, 3, &text);
    }
}

/// Maximum number of deadline tasks whose parameters are shown.
const DEADLINE_TASKS: usize = 4;

/// The run lengths and runqueue waits of each member.
fn length_rows(out: &mut String, report: &FairnessReport, rows: usize) {
    let names = TextColumn::Names { least: 20, most: NAMES };
    let numbers = [6, 9, 9, 9, 9].map(TextColumn::Numbers);
    let mut table = TextTable::new([names].into_iter().chain(numbers));
    table.row(["", "runs", "length", "wait 50 %", "99 %", "max"]);
    let mut row = |name: &str, runs: &Summary, waits: &Summary| {
        let lengths = [runs.p50_ns, waits.p50_ns, waits.p99_ns, waits.max_ns].map(human);
        table.row([name.to_owned(), runs.count.to_string()].into_iter().chain(lengths));
    };
    in_order(report).into_iter().take(rows).for_each(|m| row(&m.name, &m.runs, &m.waits));
    report.without_time.iter().for_each(|rest| row(&rest.name(), &rest.runs, &rest.waits));
    out.push('\n');
    table.write(out);
}

fn interval_rows(out: &mut String, report: &FairnessReport) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:>11}  {:>8}  {:>7}  {:>7}  got the least of its runnable time",
        "from, s", "members", "Gini", "Jain"
    );
    for row in &report.intervals {
        let least = match (&row.starved, row.starved_got_percent) {
            (Some(name), Some(got)) => format!("{name} ({got:.0} %)"),
            _ => "none".to_owned(),
        };
        let _ = writeln!(
            out,
            "{:>11.6}  {:>8}  {:>7}  {:>7}  {least}",
            row.start_in_trace_ns as f64 / 1e9,
            row.members,
            coefficient(row.gini),
            coefficient(row.jain)
        );
    }
}

/// A line for each of the longest waits.
fn brief_waits(out: &mut String, report: &FairnessReport, trace: &Drawable) {
    if report.starved.is_empty() {
        return;
    }
    out.push_str("\nlongest waits:\n");
    case_head(out, "     idle  task");
    for s in report.starved.iter().take(CASES) {
        let idle = s.could_have_run_ns.map_or("bound".into(), Dur::human);
        let text = format!("{idle:>9}  {} on {}{}", s.pid.named(s.command), cpus(s), s.briefly());
        case(out, s.start_in_trace_ns, s.duration_ns, &text);
    }
    out.push_str("  (idle: while a CPU idled that could run it; last: what took the wait)\n");
    trace.draw_any(out);
}

/// The indentation of what follows the first line of a case.
const CASE: usize = 5;

fn longest_waits(out: &mut String, report: &FairnessReport, trace: &Drawable) {
    if !report.starved.is_empty() {
        out.push_str("\nlongest waits:\n");
    }
    for s in &report.starved {
        let who: Vec<String> =
            s.antagonists.iter().map(|(comm, time)| format!("{comm} for {}", time.human())).collect();
        let ran = if who.is_empty() { "no task".to_owned() } else { who.join(", ") };
        let own = match s.held_back_ns {
            Dur(0) => String::new(),
            ns => format!(", and it idled for {}", ns.human()),
        };
        let start = s.start_in_trace_ns;
        let still = match (s.waited_before, s.still_waits) {
            (true, true) => ", which waited all the time",
            (true, false) => ", which waited already at the start",
            (false, true) => ", which still waited at the end",
            (false, false) => "",
        };
        let line = format!(
            "  {:>9} from {:.6} s: {}{still}; meanwhile {} ran {ran}{own}",
            s.duration_ns.human(),
            start as f64 / 1e9,
            s.pid.named(s.command),
            queues(s)
        );
        paragraph(out, 0, CASE, &line);
        paragraph(out, CASE, CASE + 2, &idled(s));
        trace.draw(out, CASE, start, s.duration_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_by_hand() {
        assert_eq!((gini(&[3.0; 5]), jain(&[3.0; 5])), (Some(0.0), Some(1.0)));
        assert_eq!((gini(&[0.0, 0.0, 0.0, 8.0]), jain(&[0.0, 0.0, 0.0, 8.0])), (Some(0.75), Some(0.25)));
        // 1, 2, 3: Gini 2·14/(3·6) − 4/3 = 2/9; Jain 36/42.
        let is = |found: Option<f64>, value: f64| found.is_some_and(|found| (found - value).abs() < 1e-12);
        assert!(is(gini(&[2.0, 1.0, 3.0]), 2.0 / 9.0) && is(jain(&[2.0, 1.0, 3.0]), 36.0 / 42.0));
        // There is none of no members, and of members that did not run.
        assert_eq!((gini(&[]), jain(&[]), gini(&[0.0; 3]), jain(&[0.0; 3])), (None, None, None, None));
        assert_eq!([crate::weight_of(120), crate::weight_of(100), crate::weight_of(139)], [1024, 88761, 15]);
    }
}
