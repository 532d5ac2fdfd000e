//! A table of a window, by the analyses of `latency`, `why` and the queued time.

use super::missed;
use super::table_sums::{AllMoves, RowOf, RowRule, RunsAndMoves, TableRowSums, TableSums};
use crate::{AskedPart, FoundTable, TableBy, TableCommand, TableNumbers, TableRow};
use anyhow::{Context, Result, bail};
use latency::{Latency, ListedWait, Measure};
use membership::{TaskGroup, TaskGroups, TasksBy};
use sched::topology::{CpuOrder, format_cpu_list};
use sched::{Cpu, Pass, Pid, QueuedSums, QueuedTimes, SchedState, Task, Ts};
use session::{Session, asked_pieces};
use std::sync::Arc;
use why::{Cases, ListedCase, Why};

/// Reads the trace, and makes the table of a window.
pub(super) fn of(session: &Session, by: TableBy, ask: &AskedPart) -> Result<FoundTable> {
    let rule = match by {
        TableBy::Cpu => RowRule::Cpus,
        TableBy::Cache if session.topology.is_empty() => {
            bail!(
                "the caches are unknown: there is no topology; give one with --topology, or record with schedviz record"
            )
        }
        TableBy::Cache => RowRule::Caches(session.topology.clone()),
        by => RowRule::Groups(session.task_groups(tasks_by(by))?),
    };
    let groups = if let RowRule::Groups(groups) = &rule { Some(Arc::clone(groups)) } else { None };
    let sums = TableSums::new(rule);
    let is_chosen = |pid: Pid| ask.has(pid);
    let chosen = |task: &Task, _: &SchedState| ask.has(task.pid);
    let tasks = ask.pids.as_ref().map(|_| &chosen as &sched::Chosen<'_>);
    let measured = latency::Options { tasks, together: true, ..latency::Options::plain(session) };
    let violation = missed::options(session, tasks);
    let part = |task: &Task, cpu: Cpu, at: Ts, times: &QueuedTimes| sums.queued(task.into(), cpu, at, times);
    let wait = |listed: &ListedWait| {
        if listed.case.measure == Measure::Wakeup && listed.start_is_known {
            sums.woken(listed.task, listed.case.ran_on, listed.ran, listed.case.duration_ns);
        }
    };
    let stretch = |case: &ListedCase<_, _>| {
        if case.missed.is_some() {
            sums.missed_by(case.cpu);
        }
    };
    let cases = Cases { wait: &|_| {}, stretch: &stretch };
    // Made anew for each repetition of the pass, before its pieces.
    let whole = || {
        let moves = RunsAndMoves::new(&sums, &is_chosen, session.affinity.as_deref(), tasks.is_some());
        vec![(moves, QueuedSums::new(session.queued(tasks)).each(&part))]
    };
    let in_pieces = || (Latency::new(&measured).listing(&wait), Why::new(&violation).listing(&cases));
    let outcome = session.watched(|| {
        let pass = Pass::over(session.trace.events()?).window(ask.window).pieces(asked_pieces());
        pass.run_in_pieces_beside(in_pieces, whole)
    })?;
    let ((latencies, why), mut whole) = outcome.output;
    let (moves, kinds) = whole.pop().context("a pass lost the analyses beside its pieces")?;
    let AllMoves { migrations, has_too_many } = moves;
    let known = KnownColumns {
        kinds: kinds.is_some(),
        latency: !latencies.unmeasured.contains(&Measure::Wakeup),
        migrations: session.knows_migrations(&outcome.diagnostics),
        missed: why.missed.is_some() && (by.is_of_cpus() || !has_too_many),
    };
    let all = sums.into_rows();
    let total = |of: fn(&TableRowSums) -> u64| all.iter().map(|(_, row)| of(row)).fold(0, u64::saturating_add);
    let numbers = TableNumbers {
        run_ns: total(|row| row.run_ns),
        queued_ns: total(|row| row.queued.total()),
        kinds,
        latency: known.latency.then(|| latencies.of(Measure::Wakeup)),
        migrations: known.migrations.then_some(migrations),
        missed: why.missed.as_ref().map(|missed| missed.number),
    };
    let to = ask.window.to.map_or(session.to, |to| to.min(session.to));
    let row = |(key, sums): (RowOf, TableRowSums)| TableRow {
        numbers: known.numbers(&sums),
        ..of_row(key, &sums, groups.as_deref().map(|groups| (groups, to)), session)
    };
    let rows: Vec<TableRow> = all.into_iter().map(row).collect();
    let too_many = "so many tasks waited while CPUs went idle that they were not all looked at";
    Ok(FoundTable {
        commands: commands(session, by, ask, rows.len(), known.migrations),
        rows,
        all: numbers,
        missed_unknown: (!by.is_of_cpus() && has_too_many).then_some(too_many),
    })
}

fn tasks_by(by: TableBy) -> TasksBy {
    match by {
        TableBy::Command => TasksBy::Command,
        TableBy::Process => TasksBy::Process,
        TableBy::Cgroup => TasksBy::Cgroup,
        TableBy::Task | TableBy::Cpu | TableBy::Cache => TasksBy::Task,
    }
}

/// The columns whose numbers the trace shows.
struct KnownColumns {
    kinds: bool,
    latency: bool,
    migrations: bool,
    missed: bool,
}

impl KnownColumns {
    /// The numbers of a row.
    fn numbers(&self, row: &TableRowSums) -> TableNumbers {
        TableNumbers {
            run_ns: row.run_ns,
            queued_ns: row.queued.total(),
            kinds: self.kinds.then_some(row.queued),
            latency: self.latency.then(|| row.latency.summary()),
            migrations: self.migrations.then_some(row.migrations),
            missed: self.missed.then_some(row.missed),
        }
    }
}

/// A row without its numbers. A process has the name that it has at the end of the window, as the commands print it.
fn of_row(key: RowOf, sums: &TableRowSums, groups: Option<(&TaskGroups, Ts)>, session: &Session) -> TableRow {
    match key {
        RowOf::Group(group) => {
            let named = groups.map(|(groups, to)| groups.row_at(group, sums.names, to));
            let pid = if let TaskGroup::Task(pid) = group { Some(pid) } else { None };
            let name = named.as_ref().map_or_else(String::new, membership::TaskRow::shown);
            let of_page = match group {
                TaskGroup::Command(_) | TaskGroup::Cgroup(_) | TaskGroup::Kernel => Some(name.clone()),
                TaskGroup::Process(leader) => {
                    // The filter has the name at the end of the trace.
                    let label = groups.and_then(|(groups, _)| groups.label(group)).and_then(|label| label.name);
                    label.map(|comm| leader.named(sched::Comm::new(comm.as_bytes())))
                }
                _ => None,
            };
            TableRow { name, pid, group: of_page, ..TableRow::default() }
        }
        RowOf::Cpu(cpu) => TableRow { name: format!("CPU {cpu}"), cpu: Some(cpu), ..TableRow::default() },
        RowOf::Cache(cache) => {
            let cpus = session.shown.cpus.iter().map(|(cpu, _)| *cpu);
            let cpus: Vec<Cpu> = cpus.filter(|cpu| session.topology.group(*cpu, CpuOrder::Llc) == cache).collect();
            let list = format_cpu_list(&cpus);
            let name =
                cache.map_or_else(|| format!("no known cache ({list})"), |cache| format!("LLC {cache} ({list})"));
            TableRow { name, cpu: cpus.first().copied(), ..TableRow::default() }
        }
    }
}

/// The maximum number of tasks that a command line names.
const MOST_PIDS: usize = 4_000;

/// The command lines that print the numbers of a table with so many rows.
fn commands(session: &Session, by: TableBy, ask: &AskedPart, rows: usize, knows_migrations: bool) -> Vec<TableCommand> {
    let end = |name: &str, at: Option<Ts>| at.map(|at| format!("--{name} {}ns", at.since(session.start).0));
    let mut part: Vec<String> =
        [end("min", ask.window.from), end("max", ask.window.to)].into_iter().flatten().collect();
    match &ask.pids {
        Some(pids) if pids.is_empty() || pids.len() > MOST_PIDS => return Vec::new(),
        Some(pids) => {
            let pids: Vec<String> = pids.iter().map(|pid| pid.0.to_string()).collect();
            part.push(format!("--pid {}", pids.join(",")));
        }
        None => {}
    }
    let line = |prints: &str, command: &str, more: &[String]| {
        let options = [&part[..], more].concat();
        TableCommand { prints: prints.to_owned(), line: session.drawable.one_line(command, &options) }
    };
    let lists: Vec<String> = [format!("--by {}", by.name()), format!("--rows {}", rows.max(1))].into();
    let mut lines = match by {
        TableBy::Cpu => vec![
            line("running", "utilization", &["--per-cpu".to_owned()]),
            line("queued time by kind and wakeup latency, in all", "latency", &[]),
        ],
        TableBy::Cache => vec![
            line("running and queued time", "residency", &[]),
            line("queued time by kind and wakeup latency, in all", "latency", &[]),
        ],
        _ => vec![
            line("running and queued time", "fairness", &lists),
            line("wakeup latency; queued time by kind, in all", "latency", &lists),
        ],
    };
    if knows_migrations {
        lines.push(line("migrations, in all", "migrations", &[]));
    }
    lines.push(line("missed steals, in all", "why", &[]));
    lines
}
