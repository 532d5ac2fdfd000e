//! The attempts of the load balancer, from the probes that `schedviz record --why` sets: their outcome by kind of balance
//! and domain, the verdict on each task that was examined, and the gating of new-idle balancing.
//!
//! The probes of one attempt follow one another on the CPU that balances: `find_busiest_group` if the CPU is the one of
//! its group that balances, `can_migrate` for each task examined, and `load_balance` on the return. Kernels without
//! arguments on the return (before 6.5) have a probe on the entry as well, with `_in` behind its name.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The kind of a balance, by the state of the CPU for which it pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Balancing {
    /// For a CPU that is about to idle.
    NewIdle,
    /// For an idle CPU.
    Idle,
    /// For a CPU that runs a task.
    Busy,
    /// The probe does not show it.
    Unknown,
}

impl Balancing {
    /// The values of `enum cpu_idle_type` were exchanged in 6.10.
    fn of(idle: Option<i64>, before_6_10: bool) -> Balancing {
        match (idle, before_6_10) {
            (Some(2), _) => Balancing::NewIdle,
            (Some(1), false) | (Some(0), true) => Balancing::Idle,
            (Some(0), false) | (Some(1), true) => Balancing::Busy,
            _ => Balancing::Unknown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Balancing::NewIdle => "new-idle",
            Balancing::Idle => "idle",
            Balancing::Busy => "busy",
            Balancing::Unknown => "unknown",
        }
    }
}

/// The attempts of one kind in one domain, by outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Attempts {
    /// The kind of balance.
    balancing: Balancing,
    /// The name of the scheduling domain, such as `MC` or `NUMA`; empty if the probe does not show it.
    domain: String,
    #[serde(flatten)]
    outcomes: Outcomes,
}

/// The number of attempts with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Outcomes {
    /// Attempts that moved tasks.
    moved: u64,
    /// Attempts that did not search: another CPU of the group balances for it.
    not_chosen: u64,
    /// Attempts that found no busiest group.
    no_busiest_group: u64,
    /// Attempts that found a busiest group and examined no task of it: no busiest queue, or its lock was not taken.
    no_task_examined: u64,
    /// Attempts in which every examined task was refused.
    all_refused: u64,
}

/// The verdicts on the tasks that were examined (`can_migrate_task`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Examined {
    /// Tasks that could be moved.
    movable: u64,
    /// Tasks that were running.
    running: u64,
    /// Tasks that may use one CPU only.
    one_cpu: u64,
    /// Tasks refused for another reason: not allowed on the CPU that balances, cache-hot, throttled, or not eligible.
    other: u64,
}

/// The gating of new-idle balancing, from the state of the run queue when its CPU goes idle (`set_next_task_idle`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GoingIdle {
    /// Times that a CPU went idle while the machine had no overloaded CPU by the kernel's own flag: no balance is attempted.
    not_overloaded: u64,
    /// Times that the CPU idles less on average than the cheapest balance costs: no balance is attempted.
    too_costly: u64,
    /// Times that a balance was worth its cost, and did not find a task.
    affordable: u64,
}

/// The parts of an attempt that were seen on a CPU.
#[derive(Clone, Debug, Default)]
struct Open {
    idle: Option<i64>,
    domain: Option<String>,
    /// Whether a search found a busiest group.
    found: Option<bool>,
    examined: u64,
    /// The task examined now: whether it runs, and the number of CPUs that it may use.
    task: (Option<i64>, Option<i64>),
}

/// Counts the attempts of a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gatherer {
    before_6_10: bool,
    open: BTreeMap<u32, Open>,
    attempts: BTreeMap<(Balancing, String), Outcomes>,
    pub(crate) examined: Examined,
    pub(crate) going_idle: GoingIdle,
}

/// A record of a probe: its fields by name.
pub(crate) trait Fields {
    /// A field that is a number.
    fn number(&self, field: &str) -> Option<i64>;
    /// A field that is a text.
    fn text(&self, field: &str) -> Option<String>;
}

impl Gatherer {
    /// For a kernel of this release.
    pub(crate) fn new(kernel: Option<&str>) -> Gatherer {
        let mut numbers = kernel.unwrap_or_default().split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let release = numbers.next().zip(numbers.next());
        Gatherer { before_6_10: release.is_some_and(|release| release < (6, 10)), ..Gatherer::default() }
    }

    /// Counts a record of a probe on a CPU.
    pub(crate) fn take(&mut self, cpu: u32, probe: &str, fields: &impl Fields) {
        let open = self.open.entry(cpu).or_default();
        let number = |field| fields.number(field);
        match probe {
            "load_balance_in" => {
                // An attempt begins; parts of an earlier one whose end was lost are none of it.
                *open = Open { idle: number("idle"), domain: fields.text("name"), ..Open::default() };
            }
            "find_busiest_group" => open.found = Some(number("group").unwrap_or(0) != 0),
            "can_migrate_in" => open.task = (number("on_cpu"), number("allowed")),
            "can_migrate" => {
                let (on_cpu, allowed) = std::mem::take(&mut open.task);
                open.examined += 1;
                let count = match (number("ok"), number("on_cpu").or(on_cpu), number("allowed").or(allowed)) {
                    (Some(0) | None, Some(1), _) => &mut self.examined.running,
                    (Some(0) | None, _, Some(1)) => &mut self.examined.one_cpu,
                    (Some(0) | None, ..) => &mut self.examined.other,
                    _ => &mut self.examined.movable,
                };
                *count += 1;
            }
            "load_balance" => {
                let open = std::mem::take(open);
                let idle = number("idle").or(open.idle);
                let domain = fields.text("name").or(open.domain).unwrap_or_default();
                let key = (Balancing::of(idle, self.before_6_10), domain);
                let outcomes = self.attempts.entry(key).or_default();
                let outcome = match (number("moved").unwrap_or(0), open.found, open.examined) {
                    (1.., ..) => &mut outcomes.moved,
                    (_, None, _) => &mut outcomes.not_chosen,
                    (_, Some(false), _) => &mut outcomes.no_busiest_group,
                    (_, Some(true), 0) => &mut outcomes.no_task_examined,
                    _ => &mut outcomes.all_refused,
                };
                *outcome += 1;
            }
            "idle" => {
                let count = match (number("overloaded"), number("avg_idle"), number("cost")) {
                    (Some(0), ..) => &mut self.going_idle.not_overloaded,
                    (_, Some(idle), Some(cost)) if idle < cost => &mut self.going_idle.too_costly,
                    _ => &mut self.going_idle.affordable,
                };
                *count += 1;
            }
            _ => {}
        }
    }

    /// The attempts by kind and domain.
    pub(crate) fn attempts(&self) -> Vec<Attempts> {
        let row = |((balancing, domain), outcomes): (&(Balancing, String), &Outcomes)| Attempts {
            balancing: *balancing,
            domain: domain.clone(),
            outcomes: *outcomes,
        };
        self.attempts.iter().map(row).collect()
    }
}

/// The table of the attempts.
pub(crate) fn attempts_text(out: &mut String, attempts: &[Attempts]) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n  {:9} {:8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8}",
        "attempts", "domain", "all", "not its", "no group", "no task", "all", "moved"
    );
    let _ = writeln!(
        out,
        "  {:9} {:8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8}",
        "", "", "", "turn", "busier", "examined", "refused", "tasks"
    );
    for row in attempts {
        let Outcomes { moved, not_chosen, no_busiest_group, no_task_examined, all_refused } = row.outcomes;
        let all = moved + not_chosen + no_busiest_group + no_task_examined + all_refused;
        let _ = writeln!(
            out,
            "  {:9} {:8} {all:>8} {not_chosen:>8} {no_busiest_group:>9} {no_task_examined:>9} {all_refused:>9} {moved:>8}",
            row.balancing.name(),
            row.domain
        );
    }
}

impl Examined {
    /// For people.
    pub(crate) fn text(&self, out: &mut String) {
        let Examined { movable, running, one_cpu, other } = *self;
        let all = movable + running + one_cpu + other;
        let _ = writeln!(out, "  {all:>8} tasks were examined; {movable} of them could be moved");
        let _ = writeln!(out, "  {running:>8} were refused since they were running");
        let _ = writeln!(out, "  {one_cpu:>8} since they may use one CPU only");
        let _ = writeln!(out, "  {other:>8} for another reason (CPU not allowed, cache-hot, throttled, not eligible)");
    }
}

impl GoingIdle {
    /// For people.
    pub(crate) fn text(&self, out: &mut String) {
        let GoingIdle { not_overloaded, too_costly, affordable } = *self;
        let _ = writeln!(out, "  {:>8} times a CPU went idle", not_overloaded + too_costly + affordable);
        let _ = writeln!(out, "  {not_overloaded:>8} times without a balance: no CPU was overloaded");
        let _ = writeln!(out, "  {too_costly:>8} times without a balance: it costs more than the CPU idles on average");
        let _ = writeln!(out, "  {affordable:>8} times after a balance that found nothing to run");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields as `name=value`.
    struct Of(&'static str);

    impl Fields for Of {
        fn number(&self, field: &str) -> Option<i64> {
            self.text(field)?.parse().ok()
        }

        fn text(&self, field: &str) -> Option<String> {
            let mut pairs = self.0.split(' ').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == field).map(|(_, value)| value.to_owned())
        }
    }

    fn outcome(kernel: &str, records: &[(&str, &'static str)]) -> Vec<Attempts> {
        let mut gatherer = Gatherer::new(Some(kernel));
        records.iter().for_each(|(probe, fields)| gatherer.take(3, probe, &Of(fields)));
        gatherer.attempts()
    }

    #[test]
    fn an_attempt_ends_where_its_probes_show() {
        let end = ("load_balance", "idle=1 name=MC moved=0");
        let found = ("find_busiest_group", "group=77");
        let expect = |records: &[(&str, &'static str)], outcomes: Outcomes| {
            let all = outcome("6.12.1", records);
            assert_eq!(all, [Attempts { balancing: Balancing::Idle, domain: "MC".into(), outcomes }]);
        };
        expect(&[end], Outcomes { not_chosen: 1, ..Outcomes::default() });
        expect(&[("find_busiest_group", "group=0"), end], Outcomes { no_busiest_group: 1, ..Outcomes::default() });
        expect(&[found, end], Outcomes { no_task_examined: 1, ..Outcomes::default() });
        let refused = ("can_migrate", "ok=0 on_cpu=1 allowed=8");
        expect(&[found, refused, end, end], Outcomes { all_refused: 1, not_chosen: 1, ..Outcomes::default() });
        expect(
            &[found, refused, ("can_migrate", "ok=1"), ("load_balance", "idle=1 name=MC moved=1")],
            Outcomes { moved: 1, ..Outcomes::default() },
        );
    }

    #[test]
    fn older_kernels_have_the_arguments_on_the_entry_and_other_numbers() {
        let records = [
            ("load_balance_in", "idle=1 name=NUMA"),
            ("find_busiest_group", "group=5"),
            ("can_migrate_in", "on_cpu=0 allowed=1"),
            ("can_migrate", "ok=0"),
            ("load_balance", "moved=0"),
        ];
        let mut gatherer = Gatherer::new(Some("6.1.0-50-amd64"));
        records.iter().for_each(|(probe, fields)| gatherer.take(0, probe, &Of(fields)));
        let outcomes = Outcomes { all_refused: 1, ..Outcomes::default() };
        assert_eq!(gatherer.attempts(), [Attempts { balancing: Balancing::Busy, domain: "NUMA".into(), outcomes }]);
        assert_eq!(gatherer.examined, Examined { one_cpu: 1, ..Examined::default() });
        let idle = |kernel: &str| outcome(kernel, &[("load_balance", "idle=1 moved=0")])[0].balancing;
        assert_eq!(
            [idle("6.9.3"), idle("6.10.0"), idle("7.2.13+deb14-amd64")],
            [Balancing::Busy, Balancing::Idle, Balancing::Idle]
        );
    }

    #[test]
    fn going_idle_is_gated_by_overload_and_cost() {
        let mut gatherer = Gatherer::new(None);
        for fields in
            ["overloaded=0 avg_idle=9 cost=1", "overloaded=1 avg_idle=1 cost=9", "overloaded=1 avg_idle=9 cost=9"]
        {
            gatherer.take(1, "idle", &Of(fields));
        }
        assert_eq!(gatherer.going_idle, GoingIdle { not_overloaded: 1, too_costly: 1, affordable: 1 });
    }
}
