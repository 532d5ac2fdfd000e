//! The rows of `perf sched stats diff`: each counter of two runs with its change, under perf's own names.
//!
//! As in perf a count is the mean over the CPUs, without its fraction.

use crate::delta::wrapped;
use crate::parse::Snapshot;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The columns of a line.
const COLUMNS: usize = 100;

/// The counters of a CPU by perf's names, each with the place of the counter that it is a share of.
const CPU_ROWS: [(&str, Option<usize>); 9] = [
    ("sched_yield() count", None),
    ("Legacy counter can be ignored", None),
    ("schedule() called", None),
    ("schedule() left the processor idle", Some(2)),
    ("try_to_wake_up() was called", None),
    ("try_to_wake_up() was called to wake up the local cpu", Some(4)),
    // These two are in nanoseconds, whatever their names are.
    ("total runtime by tasks on this processor (in jiffies)", None),
    ("total waittime by tasks on this processor (in jiffies)", Some(6)),
    ("total timeslices run on this cpu", None),
];

/// The counters of a domain behind the three kinds of idleness: the heads of perf, each with its rows.
const TAIL: [(&str, [&str; 3]); 4] = [
    (
        " <Category active_load_balance()> ",
        [
            "active_load_balance() count",
            "active_load_balance() move task failed",
            "active_load_balance() successfully moved a task",
        ],
    ),
    (
        " <Category sched_balance_exec()> ",
        ["sbe_count is not used", "sbe_balanced is not used", "sbe_pushed is not used"],
    ),
    (
        " <Category sched_balance_fork()> ",
        ["sbf_count is not used", "sbf_balanced is not used", "sbf_pushed is not used"],
    ),
    (
        " <Wakeup Info> ",
        [
            "try_to_wake_up() awoke a task that last ran on a diff cpu",
            "try_to_wake_up() moved task because cache-cold on own cpu",
            "try_to_wake_up() started passive balancing",
        ],
    ),
];

/// The counters of a run, each as the mean over the CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PerfCounters {
    jiffies: u64,
    cpu: Vec<u64>,
    /// The counters of each domain, by its name or its depth.
    domains: Vec<(String, Vec<u64>)>,
    busy_first: bool,
    balance: usize,
}

impl PerfCounters {
    /// Returns the differences of two snapshots that [`Delta::between`](crate::Delta::between) accepts. CPUs and domains that
    /// are not in both are left out.
    pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> PerfCounters {
        let jiffies = before.jiffies.zip(after.jiffies).map_or(0, |(b, a)| a.saturating_sub(b));
        let later = after.by_cpu();
        let (mut cpus, mut sums) = (0_u64, [0_u64; 9]);
        let mut domains: Vec<(String, u64, Vec<u64>)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for b in &before.cpus {
            let Some(a) = later.get(&b.cpu) else { continue };
            cpus += 1;
            for (at, sum) in sums.iter_mut().enumerate() {
                let (before, after) = (b.fields[at], a.fields[at]);
                // Run time, delay and time slices have 64 bits, the others 32.
                *sum = sum.saturating_add(if at < 6 { wrapped(before, after) } else { after.wrapping_sub(before) });
            }
            for (depth, (b, a)) in b.domains.iter().zip(&a.domains).enumerate() {
                if (&b.name, &b.mask) != (&a.name, &a.mask) {
                    continue;
                }
                let name = b.name.clone().map_or_else(|| depth.to_string(), String::from);
                let at = *places.entry(name).or_insert_with_key(|name| {
                    domains.push((name.clone(), 0, vec![0; b.fields.len()]));
                    domains.len() - 1
                });
                let (_, number, sums) = &mut domains[at];
                *number += 1;
                for (sum, (b, a)) in sums.iter_mut().zip(b.fields.iter().zip(&a.fields)) {
                    *sum = sum.saturating_add(wrapped(*b, *a));
                }
            }
        }
        let mean = |sum: u64, number: u64| sum.checked_div(number).unwrap_or(0);
        PerfCounters {
            jiffies,
            cpu: sums.iter().map(|sum| mean(*sum, cpus)).collect(),
            domains: domains
                .into_iter()
                .map(|(name, number, sums)| (name, sums.into_iter().map(|sum| mean(sum, number)).collect()))
                .collect(),
            busy_first: before.layout.busy_first,
            balance: before.layout.balance,
        }
    }
}

/// Returns the rows of two runs; an error if their kernels count differently.
pub(crate) fn diff(base: &PerfCounters, new: &PerfCounters) -> Result<String, String> {
    if !base.domains.is_empty() && (base.busy_first, base.balance) != (new.busy_first, new.balance) {
        return Err("the two runs are of kernels that count differently, which has no rows in perf".to_owned());
    }
    let rule = "-".repeat(COLUMNS);
    // Writing to a string cannot fail.
    let mut out = format!("{rule}\n");
    let _ = writeln!(out, "{:65}: {:>11},{:>11}", "Time elapsed (in jiffies)", base.jiffies, new.jiffies);
    let _ = writeln!(out, "{rule}\n\n{rule}\nCPU <ALL CPUS SUMMARY>\n{rule}");
    let head = |more: &str| format!("{:72}COUNT1      COUNT2   PCT_CHANGE{more}", "DESC");
    let _ = writeln!(out, "{}\n{rule}", head("    PCT_CHANGE1 PCT_CHANGE2"));
    for (at, (name, whole)) in CPU_ROWS.iter().enumerate() {
        let share = |run: &PerfCounters, whole: usize| match run.cpu[whole] {
            0 => 0.0,
            all => 100.0 * run.cpu[at] as f64 / all as f64,
        };
        let shares = whole
            .map(|whole| format!("  ({:>9.2}%, {:>9.2}% )", share(base, whole), share(new, whole)))
            .unwrap_or_default();
        let _ = writeln!(out, "{}{shares}", row(name, base.cpu[at], new.cpu[at]));
    }
    let of_new: BTreeMap<&str, &Vec<u64>> = new.domains.iter().map(|(name, counters)| (&**name, counters)).collect();
    for (name, old) in &base.domains {
        let Some(new_counters) = of_new.get(&**name) else { continue };
        let _ = writeln!(out, "{rule}\nCPU <ALL CPUS SUMMARY>, DOMAIN {name}\n{rule}");
        let _ = writeln!(out, "{}", head("     AVG_JIFFIES1 AVG_JIFFIES2"));
        domain(&mut out, base, (old, new_counters), new.jiffies);
    }
    let _ = writeln!(out, "{rule}");
    Ok(out)
}

/// The rows of a domain: balancing by idleness, and the rest.
fn domain(out: &mut String, base: &PerfCounters, (old, new): (&[u64], &[u64]), new_jiffies: u64) {
    let kinds = [("busy", "busy"), ("idle", "idle"), ("newidle", "newly idle")];
    let order = if base.busy_first { [0, 1, 2] } else { [1, 0, 2] };
    for (block, kind) in order.into_iter().enumerate() {
        let (category, idleness) = kinds[kind];
        let _ = writeln!(out, "{}", centred(&format!(" <Category {category}> ")));
        let at = |counters: &[u64], nth: usize| counters.get(block * base.balance + nth).copied().unwrap_or(0);
        for (nth, (name, has_rate)) in balance_rows(base.balance).into_iter().enumerate() {
            let (b, n) = (at(old, nth), at(new, nth));
            let rate = |jiffies: u64, count: u64| if count == 0 { 0.0 } else { jiffies as f64 / count as f64 };
            let rates = match has_rate {
                true => format!("  $ {:>11.2}, {:>11.2} $", rate(base.jiffies, b), rate(new_jiffies, n)),
                false => String::new(),
            };
            let _ = writeln!(out, "{}{rates}", row(&format!("{name} on cpu {idleness}"), b, n));
        }
        let successes =
            |counters: &[u64]| at(counters, 0).saturating_sub(at(counters, 1).saturating_add(at(counters, 2)));
        let (b, n) = (successes(old), successes(new));
        let _ = writeln!(out, "{}", row(&format!("*load_balance() success count on cpu {idleness}"), b, n));
        // The counter of pulled tasks stands behind those of the imbalance.
        let gained = base.balance - 4;
        let pulled = |counters: &[u64], successes: u64| match successes {
            0 => 0.0,
            successes => at(counters, gained) as f64 / successes as f64,
        };
        let (b, n) = (pulled(old, b), pulled(new, n));
        let name = format!("*avg task pulled per successful lb attempt (cpu {idleness})");
        let _ = writeln!(out, "{name:65}: {b:>11.2},{n:>11.2}  |{:>9.2}% |", change(b, n));
    }
    let tail = 3 * base.balance;
    for (nth, (head, names)) in TAIL.iter().enumerate() {
        let _ = writeln!(out, "{}", centred(head));
        for (at, name) in (tail + 3 * nth..).zip(names) {
            let of = |counters: &[u64]| counters.get(at).copied().unwrap_or(0);
            let _ = writeln!(out, "{}", row(name, of(old), of(new)));
        }
    }
}

/// The names of the counters of balancing, each with whether perf gives the jiffies between two occurrences.
fn balance_rows(balance: usize) -> Vec<(&'static str, bool)> {
    let imbalance: &[&str] = match balance {
        8 => &["imbalance sum"],
        _ => &[
            "imbalance in load",
            "imbalance in utilization",
            "imbalance in number of tasks",
            "imbalance in misfit tasks",
        ],
    };
    let mut rows = vec![
        ("load_balance() count", true),
        ("load_balance() found balanced", true),
        ("load_balance() move task failed", true),
    ];
    rows.extend(imbalance.iter().map(|name| (*name, false)));
    rows.extend([
        ("pull_task() count", false),
        ("pull_task() when target task was cache-hot", false),
        ("load_balance() failed to find busier queue", true),
        ("load_balance() failed to find busier group", true),
    ]);
    rows
}

/// A row: the name, both counts, and the change.
fn row(name: &str, base: u64, new: u64) -> String {
    format!("{name:65}: {base:>11},{new:>11}  |{:>9.2}% |", change(base as f64, new as f64))
}

/// The change in percent of the first number; zero if that is zero, as in perf.
fn change(base: f64, new: f64) -> f64 {
    if base == 0.0 { 0.0 } else { 100.0 * (new - base) / base }
}

/// A head between dashes.
fn centred(head: &str) -> String {
    format!("{head:-^COLUMNS$}")
}
