//! The table of a window by tasks, their groups, CPUs or caches: running, queued, wakeup latency, migrations, missed steals.

use crate::ask::filter::PageFilter;
use crate::ask::questions::AskedWindow;
use sched::lengths::Summary;
use sched::limits::ROWS;
use sched::pass::Window;
use sched::{Cpu, Pid, QueuedTimes};
use serde_json::{Value, json};
use std::cmp::Ordering;

/// The rule by which a table has its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableBy {
    /// A row for each task.
    Task,
    /// A row for each command: names that differ in a number or a random part alone share one.
    Command,
    /// A row for each process.
    Process,
    /// A row for each cgroup.
    Cgroup,
    /// A row for each CPU.
    Cpu,
    /// A row for each last-level cache.
    Cache,
}

impl TableBy {
    /// All rules with their names in addresses.
    const NAMES: [(&'static str, TableBy); 6] = [
        ("task", TableBy::Task),
        ("command", TableBy::Command),
        ("process", TableBy::Process),
        ("cgroup", TableBy::Cgroup),
        ("cpu", TableBy::Cpu),
        ("cache", TableBy::Cache),
    ];

    /// The rule of a name.
    pub(crate) fn of(name: &str) -> Option<TableBy> {
        TableBy::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, by)| by)
    }

    /// The name of the rule, as `--by` has those of tasks and their groups.
    pub fn name(self) -> &'static str {
        TableBy::NAMES.into_iter().find(|(_, by)| *by == self).map_or("", |(name, _)| name)
    }

    /// Whether rows are CPUs or groups of them.
    pub fn is_of_cpus(self) -> bool {
        matches!(self, TableBy::Cpu | TableBy::Cache)
    }
}

/// The columns of a table, by which its rows can be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableColumn {
    Name,
    Run,
    Queued,
    HeldBack,
    BesideIdle,
    BesideShorter,
    Alike,
    Wakeups,
    Median,
    P99,
    Longest,
    Migrations,
    Missed,
}

impl TableColumn {
    const NAMES: [(&'static str, TableColumn); 13] = [
        ("name", TableColumn::Name),
        ("run", TableColumn::Run),
        ("queued", TableColumn::Queued),
        ("held_back", TableColumn::HeldBack),
        ("beside_idle", TableColumn::BesideIdle),
        ("beside_shorter", TableColumn::BesideShorter),
        ("alike", TableColumn::Alike),
        ("wakeups", TableColumn::Wakeups),
        ("p50", TableColumn::Median),
        ("p99", TableColumn::P99),
        ("max", TableColumn::Longest),
        ("migrations", TableColumn::Migrations),
        ("missed", TableColumn::Missed),
    ];

    /// The column of a name.
    pub(crate) fn of(name: &str) -> Option<TableColumn> {
        TableColumn::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, column)| column)
    }
}

/// The table that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableQuestion {
    /// The rule of the rows.
    pub(crate) by: TableBy,
    /// The window that the numbers are of.
    pub(crate) window: AskedWindow,
    /// The tasks that count.
    pub(crate) filter: PageFilter,
    /// The order of the rows, and whether the largest come first.
    pub(crate) order: (TableColumn, bool),
    /// The place of the first row that is given, and the maximum number of rows.
    pub(crate) page: (usize, usize),
}

/// The maximum number of rows of an answer: all that a table has.
pub(crate) const MOST_ROWS: usize = ROWS + 1;

/// The part of a trace that an answer is about: a window, and the tasks that count there.
#[derive(Clone, Debug, Default)]
pub struct AskedPart {
    /// The window; its ends are open for the whole trace.
    pub window: Window,
    /// The PIDs of the tasks that count, ascending; nothing where all do.
    pub pids: Option<Vec<Pid>>,
}

impl AskedPart {
    /// Whether a task counts.
    pub fn has(&self, pid: Pid) -> bool {
        self.pids.as_ref().is_none_or(|pids| pids.binary_search(&pid).is_ok())
    }
}

/// The numbers of a row, or of all rows together. Nothing is unknown.
#[derive(Clone, Debug, Default)]
pub struct TableNumbers {
    /// The time that the tasks ran, in nanoseconds.
    pub run_ns: u64,
    /// The queued time, in nanoseconds.
    pub queued_ns: u64,
    /// The queued time by kind.
    pub kinds: Option<QueuedTimes>,
    /// The wakeup latencies.
    pub latency: Option<Summary>,
    /// The number of migrations.
    pub migrations: Option<u64>,
    /// The number of missed steals.
    pub missed: Option<u64>,
}

/// A row of a table.
#[derive(Clone, Debug, Default)]
pub struct TableRow {
    /// The name of the task, the group, the CPU or the cache.
    pub name: String,
    /// The task, where rows are tasks.
    pub pid: Option<Pid>,
    /// The CPU, where rows are CPUs; the first one of a cache.
    pub cpu: Option<Cpu>,
    /// The name of the group as the page's filter takes it.
    pub group: Option<String>,
    /// The numbers of the row.
    pub numbers: TableNumbers,
}

/// A command line that prints numbers of a table.
#[derive(Clone, Debug)]
pub struct TableCommand {
    /// The columns that it prints, in words.
    pub prints: String,
    /// The command line.
    pub line: String,
}

/// A table of a window.
#[derive(Clone, Debug, Default)]
pub struct FoundTable {
    /// The rows, in no particular order.
    pub rows: Vec<TableRow>,
    /// The numbers of all of the tasks that count together.
    pub all: TableNumbers,
    /// The command lines that print the same numbers.
    pub commands: Vec<TableCommand>,
    /// The reason for which the missed steals of the rows are unknown; nothing where they are known, or were not recorded.
    pub missed_unknown: Option<&'static str>,
}

impl TableRow {
    /// The value of a number's column; nothing where it is unknown or the column is that of names.
    fn value(&self, column: TableColumn) -> Option<u64> {
        let TableNumbers { run_ns, queued_ns, kinds, latency, migrations, missed } = &self.numbers;
        let kind = |of: fn(&QueuedTimes) -> u64| kinds.as_ref().map(of);
        match column {
            TableColumn::Name => None,
            TableColumn::Run => Some(*run_ns),
            TableColumn::Queued => Some(*queued_ns),
            TableColumn::HeldBack => kind(|kinds| kinds.held_back_ns),
            TableColumn::BesideIdle => kind(|kinds| kinds.beside_idle_ns),
            TableColumn::BesideShorter => kind(|kinds| kinds.beside_shorter_ns),
            TableColumn::Alike => kind(|kinds| kinds.alike_ns),
            TableColumn::Wakeups => latency.map(|latency| latency.count),
            TableColumn::Median => latency.and_then(|latency| latency.p50_ns).map(|ns| ns.0),
            TableColumn::P99 => latency.and_then(|latency| latency.p99_ns).map(|ns| ns.0),
            TableColumn::Longest => latency.and_then(|latency| latency.max_ns).map(|ns| ns.0),
            TableColumn::Migrations => *migrations,
            TableColumn::Missed => *missed,
        }
    }

    /// The order of two rows by a column: unknown values are last, rows that are alike are in the order of their names.
    fn before(&self, other: &TableRow, (column, down): (TableColumn, bool)) -> Ordering {
        let by_name = || (self.cpu, &self.name, self.pid).cmp(&(other.cpu, &other.name, other.pid));
        let turned = |order: Ordering| if down { order.reverse() } else { order };
        if column == TableColumn::Name {
            return turned(by_name());
        }
        let order = match (self.value(column), other.value(column)) {
            (Some(a), Some(b)) => turned(a.cmp(&b)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        order.then_with(by_name)
    }

    fn answer(&self) -> Value {
        let mut row = self.numbers.answer();
        (row["name"], row["pid"], row["cpu"]) = (json!(self.name), json!(self.pid), json!(self.cpu));
        row["group"] = json!(self.group);
        row
    }
}

impl TableNumbers {
    fn answer(&self) -> Value {
        let TableNumbers { run_ns, queued_ns, kinds, latency, migrations, missed } = self;
        let latency = latency.unwrap_or_default();
        json!({
            "run": run_ns,
            "queued": queued_ns,
            "held_back": kinds.map(|kinds| kinds.held_back_ns),
            "beside_idle": kinds.map(|kinds| kinds.beside_idle_ns),
            "beside_shorter": kinds.map(|kinds| kinds.beside_shorter_ns),
            "alike": kinds.map(|kinds| kinds.alike_ns),
            "wakeups": self.latency.map(|latency| latency.count),
            "p50": latency.p50_ns,
            "p99": latency.p99_ns,
            "max": latency.max_ns,
            "migrations": migrations,
            "missed": missed,
        })
    }
}

impl FoundTable {
    /// A page of the rows in an order, as JSON. `chosen`: the number of the tasks that count, where not all do.
    pub(crate) fn answer(&self, asked: &TableQuestion, chosen: Option<usize>) -> Value {
        let mut rows: Vec<&TableRow> = self.rows.iter().collect();
        rows.sort_by(|a, b| a.before(b, asked.order));
        let (skip, take) = asked.page;
        let commands = self.commands.iter().map(|of| json!({ "prints": of.prints, "line": of.line }));
        json!({
            "by": asked.by.name(),
            "rows": rows.into_iter().skip(skip).take(take).map(TableRow::answer).collect::<Vec<_>>(),
            "number": self.rows.len(),
            "skip": skip,
            "all": self.all.answer(),
            "chosen": chosen,
            "missed_unknown": self.missed_unknown,
            "commands": commands.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, run_ns: u64, migrations: Option<u64>) -> TableRow {
        let numbers = TableNumbers { run_ns, migrations, ..TableNumbers::default() };
        TableRow { name: name.to_owned(), numbers, ..TableRow::default() }
    }

    #[test]
    fn rows_are_ordered_and_given_page_by_page() {
        let rows = vec![row("b", 5, None), row("a", 5, Some(1)), row("c", 9, Some(3)), row("d", 1, Some(2))];
        let table = FoundTable { rows, ..FoundTable::default() };
        let names = |order, page| {
            let (window, filter) = (AskedWindow::default(), PageFilter::default());
            let asked = TableQuestion { by: TableBy::Task, window, filter, order, page };
            let answer = table.answer(&asked, None);
            assert_eq!(answer["number"], 4);
            let rows = answer["rows"].as_array().expect("rows").iter();
            rows.map(|row| row["name"].as_str().expect("a name").to_owned()).collect::<String>()
        };
        assert_eq!(names((TableColumn::Run, true), (0, 9)), "cabd");
        assert_eq!(names((TableColumn::Run, false), (0, 9)), "dabc");
        assert_eq!(names((TableColumn::Run, true), (1, 2)), "ab");
        assert_eq!(names((TableColumn::Run, true), (4, 2)), "");
        // Unknown is neither the largest nor the least.
        assert_eq!(names((TableColumn::Migrations, true), (0, 9)), "cdab");
        assert_eq!(names((TableColumn::Migrations, false), (0, 9)), "adcb");
        assert_eq!(names((TableColumn::Name, true), (0, 9)), "dcba");
        assert_eq!(names((TableColumn::Missed, true), (0, 9)), "abcd");
    }

    #[test]
    fn only_the_tasks_that_are_asked_for_count() {
        let ask = AskedPart { pids: Some(vec![Pid(3), Pid(8)]), ..AskedPart::default() };
        assert!(ask.has(Pid(8)) && !ask.has(Pid(4)) && AskedPart::default().has(Pid(4)));
    }
}
