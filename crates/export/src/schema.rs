//! The tables, their columns and the version of both. The last section of `docs/files.md` is made from this file.

use std::borrow::Cow;
use std::fmt::Write;

/// The name and version of the tables. A new column or table keeps the version; a column that is removed, renamed or
/// changes its meaning raises it.
pub const SCHEMA: &str = "schedviz/export/2";

/// The type of a column. Every column may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A signed number of 32 bits.
    Int32,
    /// A signed number of 64 bits; all times and lengths are nanoseconds.
    Int64,
    /// A double-precision number.
    Double,
    /// A text in UTF-8.
    Text,
    /// `true` or `false`.
    Bool,
}

impl Type {
    /// The name of the type in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Type::Int32 => "INTEGER",
            Type::Int64 => "BIGINT",
            Type::Double => "DOUBLE",
            Type::Text => "VARCHAR",
            Type::Bool => "BOOLEAN",
        }
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the column.
    pub name: Cow<'static, str>,
    /// The type of the values.
    pub kind: Type,
    /// The meaning of the column, in a sentence.
    pub doc: Cow<'static, str>,
}

impl Column {
    /// A column of a fixed table.
    pub const fn new(name: &'static str, kind: Type, doc: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), kind, doc: Cow::Borrowed(doc) }
    }
}

/// The tables of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactTable {
    /// One row for each trace.
    Run,
    /// One row for each stretch in which a task ran.
    OnCpu,
    /// One row for each stretch in which a task waited on one run queue.
    Wait,
    /// One row for each stretch in which a CPU idled.
    Idle,
    /// One row for each stretch in which work conservation was violated.
    Episode,
    /// One row for each migration of a task between CPUs.
    Migration,
    /// One row for each wait from a wakeup, a fork or a preemption to the run.
    Wakeup,
    /// One row for each recorded event.
    Event,
}

impl FactTable {
    /// All tables, in the order of their indices.
    pub const ALL: [FactTable; 8] = [
        FactTable::Run,
        FactTable::OnCpu,
        FactTable::Wait,
        FactTable::Idle,
        FactTable::Episode,
        FactTable::Migration,
        FactTable::Wakeup,
        FactTable::Event,
    ];

    /// The name of the table, which its files have.
    pub fn name(self) -> &'static str {
        match self {
            FactTable::Run => "run",
            FactTable::OnCpu => "on_cpu",
            FactTable::Wait => "wait",
            FactTable::Idle => "idle",
            FactTable::Episode => "episode",
            FactTable::Migration => "migration",
            FactTable::Wakeup => "wakeup",
            FactTable::Event => "event",
        }
    }

    /// The content of a row, in a sentence.
    pub fn doc(self) -> &'static str {
        match self {
            FactTable::Run => {
                "One row for each trace: the machine, the sums of the other tables, and the metrics of `schedviz compare`."
            }
            FactTable::OnCpu => {
                "One row for each stretch in which a task ran on a CPU. Their sum is the busy time of `schedviz utilization`."
            }
            FactTable::Wait => {
                "One row for each part of a wait: a stretch in which a task waited on one run queue. A migration of the waiting \
                 task ends a part; the table `wakeup` has such a wait as one. A wait on a CPU without events has none. The sum of `violated_ns` is the waiting in \
                 violation of `schedviz why`."
            }
            FactTable::Idle => {
                "One row for each stretch in which a CPU idled. The sum of `violated_ns` is the idling in violation of \
                 `schedviz why`."
            }
            FactTable::Episode => {
                "One row for each episode of violated work conservation. The sum of `dur_ns` is the violation of \
                 `schedviz workcons`."
            }
            FactTable::Migration => "One row for each migration, as `schedviz migrations` counts them.",
            FactTable::Wakeup => {
                "One row for each wait that `schedviz latency` measures: from a wakeup, a fork or a preemption to the run. \
                 A migration on the way does not end it."
            }
            FactTable::Event => {
                "One row for each recorded event, as `schedviz list` prints them; only where `--tables` names it, or `--events` \
                 chooses some. The fields of chosen events are further columns, `field_NAME`: a number BIGINT, null where it is beyond \
                 2⁶³ or the event lacks it, all else VARCHAR."
            }
        }
    }

    /// The columns of the table; in the table of runs those of the metrics follow.
    pub fn columns(self) -> &'static [Column] {
        match self {
            FactTable::Run => RUN,
            FactTable::OnCpu => ON_CPU,
            FactTable::Wait => WAIT,
            FactTable::Idle => IDLE,
            FactTable::Episode => EPISODE,
            FactTable::Migration => MIGRATION,
            FactTable::Wakeup => WAKEUP,
            FactTable::Event => EVENT,
        }
    }
}

use Type::{Bool, Double, Int32, Int64, Text};

const TS: Column = Column::new("ts_ns", Int64, "Its start, on the trace's clock.");
const DUR: Column = Column::new("dur_ns", Int64, "Its length.");
const PID: Column = Column::new("pid", Int32, "The task's thread number.");
const COMMAND: Column = Column::new("command", Text, "The task's command name at the end of the row's time.");
const VIOLATED: Column = Column::new("violated_ns", Int64, "The part of it in which work conservation was violated.");

const RUN: &[Column] = &[
    Column::new("schema", Text, "The name and version of the tables."),
    Column::new("start_ns", Int64, "The start of the window on the trace's clock."),
    Column::new("end_ns", Int64, "The end of the window on the trace's clock."),
    Column::new("kernel", Text, "The release of the kernel."),
    Column::new("machine", Text, "The machine in words: CPUs, nodes, preemption model, base slice."),
    Column::new("cpus", Int32, "The number of CPUs of the machine."),
    Column::new("observed_cpus", Int32, "The number of CPUs with events in the trace, among the chosen ones."),
    Column::new("clock", Text, "The clock of the trace."),
    Column::new("traced_command", Text, "The command name of the traced command."),
    Column::new("waiters", Text, "The waiting tasks that count in a violation: all, movable or application."),
    Column::new("unknown_percent", Double, "The share of the CPU time for which the running task is unknown."),
    Column::new("untrusted", Text, "The reason why the violation is unknown; null where it is known."),
    Column::new("busy_ns", Int64, "The time in which CPUs ran tasks, summed over the CPUs."),
    Column::new("violation_ns", Int64, "The time in which work conservation was violated."),
    Column::new("violation_cpu_time_lost_ns", Int64, "The CPU time that could have been put to work during that time."),
    Column::new("violation_thread_ns", Int64, "The waiting that idle CPUs could have ended during that time."),
    Column::new("waiting_in_violation_ns", Int64, "The waiting in violation, summed over the counted waits."),
    Column::new("idling_in_violation_ns", Int64, "The idling in violation, summed over the CPUs."),
];

const ON_CPU: &[Column] = &[
    TS,
    DUR,
    Column::new("cpu", Int32, "The CPU that ran the task."),
    PID,
    COMMAND,
    Column::new("prio", Int32, "The kernel's priority of the task: 0 to 99 real time, 100 to 139 fair, -1 deadline."),
    Column::new("begun", Bool, "Whether an event began it; otherwise it had begun before the window or in a loss."),
    Column::new("ended", Bool, "Whether an event ended it; otherwise the window or a loss cut it."),
    Column::new("left_cpu", Text, "How the task left the CPU: slept, preempted or exited."),
    Column::new("prev_state", Int32, "The number in prev_state of the switch that ended it."),
];

const WAIT: &[Column] = &[
    TS,
    DUR,
    Column::new("cpu", Int32, "The CPU of the run queue."),
    PID,
    COMMAND,
    Column::new("counted", Bool, "Whether the task counts as a waiter; one that does not has no time in violation."),
    VIOLATED,
    Column::new("origin", Text, "How it began, in the words of `schedviz why --json`."),
    Column::new("origin_cause", Text, "The cause of the migration that began it."),
    Column::new("nearest_idle", Text, "The nearest idle CPU when a wakeup placed the task."),
    Column::new("ended_by", Text, "How it ended, in the words of `schedviz why --json`."),
    Column::new("ended_by_cause", Text, "The cause of the migration that ended it."),
];

const IDLE: &[Column] = &[
    TS,
    DUR,
    Column::new("cpu", Int32, "The CPU that idled."),
    VIOLATED,
    Column::new("origin", Text, "How it began, in the words of `schedviz why --json`."),
    Column::new("origin_cause", Text, "The cause of the migration that began it."),
    Column::new("ended_by", Text, "How it ended, in the words of `schedviz why --json`."),
    Column::new("ended_by_cause", Text, "The cause of the migration that ended it."),
    Column::new(
        "missed_steal",
        Text,
        "The distance of the nearest counted waiter when the CPU went idle: core, llc, node, beyond, or somewhere \
         without a topology; null where no counted task waited.",
    ),
];

const EPISODE: &[Column] = &[
    TS,
    DUR,
    Column::new("cpu_time_lost_ns", Int64, "The CPU time that could have been put to work."),
    Column::new("thread_ns", Int64, "The waiting that idle CPUs could have ended."),
    Column::new("distance", Text, "The nearest pair of an idle and an overloaded CPU: smt, llc, node or machine."),
];

const MIGRATION: &[Column] = &[
    Column::new("ts_ns", Int64, "The time of the migration on the trace's clock."),
    Column::new("cpu", Int32, "The CPU that migrated the task."),
    PID,
    Column::new("command", Text, "The task's command name in the event."),
    Column::new("from_cpu", Int32, "The CPU that the task left."),
    Column::new("to_cpu", Int32, "The CPU that the task went to."),
    Column::new("cause", Text, "The cause, in the words of `schedviz migrations --json`."),
    Column::new(
        "queued",
        Bool,
        "Whether the task waited on a run queue; otherwise it slept, was being woken or was throttled.",
    ),
    Column::new("distance", Text, "The distance of the two CPUs: smt, llc, node or machine."),
    Column::new("until_run_ns", Int64, "The time until the task ran; null if it was moved again before."),
];

const WAKEUP: &[Column] = &[
    Column::new("kind", Text, "The kind of the wait: wakeup, new (after a fork) or preempted."),
    Column::new("ts_ns", Int64, "The time of the waking, the fork or the preemption; null where it is unknown."),
    Column::new("queued_ns", Int64, "The time of sched_wakeup; null where wakeups were not recorded."),
    Column::new("run_ns", Int64, "The time at which the task ran."),
    Column::new(
        "latency_ns",
        Int64,
        "The time from `ts_ns` to `run_ns`, without the time that the task was throttled by `cpu.max`.",
    ),
    Column::new("until_queued_ns", Int64, "The part of it until the task was queued."),
    Column::new(
        "until_run_ns",
        Int64,
        "The part of it from there on, without the time that the task was throttled by `cpu.max`.",
    ),
    PID,
    COMMAND,
    Column::new("waker_pid", Int32, "The thread number of the waker."),
    Column::new("waker_command", Text, "The command name of the waker."),
    Column::new("slept_on_cpu", Int32, "The CPU on which a woken task had slept."),
    Column::new("queued_on_cpu", Int32, "The CPU on whose run queue the task was placed."),
    Column::new("ran_on_cpu", Int32, "The CPU that ran the task in the end."),
    Column::new("placement", Text, "The place of a woken task, seen from where it slept."),
    Column::new("idle_cpus", Int32, "The number of idle CPUs when the task was queued."),
    Column::new("behind_pid", Int32, "The task that ran on the CPU when the task was queued; 0 for the idle task."),
    Column::new("behind_command", Text, "The command name of that task."),
];

const EVENT: &[Column] = &[
    Column::new("ts_ns", Int64, "The time of the event on the trace's clock."),
    Column::new("cpu", Int32, "The CPU that recorded it."),
    Column::new("buffer", Text, "The buffer that it was recorded in; null for the main one."),
    Column::new("pid", Int32, "The task that was current on the CPU."),
    Column::new("command", Text, "The command name that the recorder saved for that task."),
    Column::new("system", Text, "The system of the event, such as sched."),
    Column::new("event", Text, "The name of the event, such as sched_switch."),
    Column::new("details", Text, "The fields of the event, as `trace-cmd report` prints them."),
];

/// The meaning of the columns of metrics, which have the names and the units of `compare`.
const METRICS: &str =
    "The metrics of `schedviz compare` but for those of the path, with `_` in the place of `-`, in its units.";

/// The last section of `docs/files.md`: each table with its columns, those that an earlier table has too by name. `metrics`
/// are the further columns of the table of runs.
pub fn markdown(metrics: &[Column]) -> String {
    let mut out = String::new();
    let mut told: Vec<(Column, FactTable)> = Vec::new();
    for table in FactTable::ALL {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n### `{}`\n\n{}\n\n", table.name(), table.doc());
        let (mut known, mut own): (Vec<(FactTable, Vec<&str>)>, Vec<&Column>) = (Vec::new(), Vec::new());
        for column in table.columns() {
            match told.iter().find(|(other, _)| other == column).map(|(_, table)| *table) {
                None => own.push(column),
                Some(other) => match known.iter_mut().find(|(table, _)| *table == other) {
                    Some((_, names)) => names.push(&column.name),
                    None => known.push((other, vec![&column.name])),
                },
            }
        }
        for (other, names) in known {
            let _ = writeln!(out, "* `{}`: as in `{}`", names.join("`, `"), other.name());
        }
        for column in own {
            let _ = writeln!(out, "* `{}`: {}", column.name, column.doc);
            told.push((column.clone(), table));
        }
        if table == FactTable::Run {
            let names: Vec<String> = metrics.iter().map(|column| format!("`{}`", column.name)).collect();
            let _ = writeln!(out, "* {}: {METRICS}", names.join(", "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/files.md` says how the type of a column follows from its name and its meaning.
    #[test]
    fn types_follow_the_rule_of_the_document() {
        for column in FactTable::ALL.into_iter().flat_map(FactTable::columns) {
            let is_time = column.name.ends_with("_ns");
            let is_share = column.name.ends_with("_percent");
            let is_whether = column.doc.starts_with("Whether");
            assert_eq!(is_time, column.kind == Type::Int64, "{}", column.name);
            assert_eq!(is_share, column.kind == Type::Double, "{}", column.name);
            assert_eq!(is_whether, column.kind == Type::Bool, "{}", column.name);
        }
    }
}
