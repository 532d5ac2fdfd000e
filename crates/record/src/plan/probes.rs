//! Probes on the load balancer, made from the kernel's type information.
//!
//! A probe is a line for `dynamic_events`. Functions and members have other names and places in each kernel, and the
//! kernel compiles some functions into others. Each probe therefore has alternatives, tried in turn: first a probe on the
//! return that also reads the arguments (kernels from 6.9 on), then a pair of probes on entry and return. The analyses lose
//! something without a probe; [`KernelProbe::cost`] states it.

mod fair;

use crate::plan::btf::{Btf, ValueForm};
pub use fair::MOST_GROUPS;
use fair::{LENGTHS, REQUESTS};
use sched::event::CleanText;
use serde::Serialize;

/// A probe, or a pair of them, that serves one purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelProbe {
    /// Name of the probe in its group, such as `detach_task`.
    pub name: &'static str,
    /// Purpose of the probe, for the user.
    pub purpose: &'static str,
    /// The loss without it.
    pub cost: &'static str,
    /// Ways to define it, the best first; each is one line, or two. None if this kernel has no such function.
    pub alternatives: Vec<Vec<String>>,
}

/// The argument of a function that is a pointer to a structure.
#[derive(Clone, Copy)]
struct Base {
    argument: &'static str,
    structure: &'static str,
}

const RQ: Base = Base { argument: "$arg1", structure: "rq" };
const TASK: Base = Base { argument: "$arg1", structure: "task_struct" };
const DOMAIN: Base = Base { argument: "$arg3", structure: "sched_domain" };
const ENV: Base = Base { argument: "$arg1", structure: "lb_env" };
const GROUP: Base = Base { argument: "$arg1", structure: "task_group" };

/// A field of a probe: its name, the ways to reach it (the first that exists counts), and its type if that does not
/// follow from the kernel's.
type ProbeField = (&'static str, &'static [&'static str], Option<&'static str>);

/// The fields of the environment of a balancing attempt.
const ENV_FIELDS: [ProbeField; 7] = [
    ("dst", &["dst_cpu"], None),
    ("src", &["src_cpu"], None),
    ("idle", &["idle"], None),
    ("level", &["sd->level"], None),
    ("imbalance", &["imbalance"], None),
    ("type", &["migration_type"], None),
    ("flags", &["flags"], Some("x32")),
];
const RQ_FIELDS: [ProbeField; 6] = [
    ("cpu", &["cpu"], None),
    ("nr", &["nr_running"], None),
    ("avg_idle", &["avg_idle"], None),
    ("overloaded", &["rd->overloaded", "rd->overload"], None),
    ("cost", &["sd->max_newidle_lb_cost"], None),
    ("pending", &["ttwu_pending"], None),
];
const DOMAIN_FIELDS: [ProbeField; 4] = [
    ("level", &["level"], None),
    ("name", &["name"], Some("string*")),
    ("failed", &["nr_balance_failed"], None),
    ("interval", &["balance_interval"], None),
];
const TASK_FIELDS: [ProbeField; 2] = [("comm", &["comm"], None), ("pid", &["pid"], None)];
const PID: ProbeField = ("pid", &["pid"], None);
const CPU: ProbeField = ("cpu", &["cpu"], None);
const NR: ProbeField = ("nr", &["nr_running"], None);

/// The names of the probes on tracepoints.
pub const TRACEPOINTS: [&str; 3] = ["nr_running", "resched", "pick"];

/// The probe on calls that set scheduling parameters, which are rare: a recording without any has no record of it.
pub const PARAMETERS: &str = "set_params";

/// The generator for one kernel.
#[derive(Clone, Copy, Debug)]
pub struct ProbeWriter<'b> {
    btf: &'b Btf,
    /// Largest number that a CPU can have, plus one; 0 if it is unknown.
    cpus: u32,
}

impl<'b> ProbeWriter<'b> {
    /// The kernel with this type information.
    pub fn new(btf: &'b Btf) -> ProbeWriter<'b> {
        ProbeWriter { btf, cpus: 0 }
    }

    /// Sets the number of possible CPUs of the machine, without which sets of CPUs are not recorded.
    #[must_use]
    pub fn with_cpus(self, cpus: u32) -> ProbeWriter<'b> {
        ProbeWriter { cpus, ..self }
    }

    /// The probes, in the order in which they are added.
    pub fn probes(&self) -> Vec<KernelProbe> {
        let mut probes = self.balance();
        probes.extend(self.tasks());
        probes.extend(self.idle());
        probes.push(self.affinity());
        probes.push(self.parameters());
        probes.extend(self.bandwidth());
        probes.push(LENGTHS.probe());
        probes.push(REQUESTS.probe());
        probes
    }

    /// The kinds of imbalance (`enum migration_type`) in the order of their numbers, as the kernel calls them: `migrate_load`.
    /// A number without a name has an empty one.
    pub fn imbalances(&self) -> Vec<CleanText> {
        // The kernel has five. The numbers come from type information, so the loop needs an end.
        const MOST: u32 = 64;
        let member = self.btf.structure(ENV.structure).and_then(|env| self.btf.member(env, "migration_type"));
        let mut names = Vec::new();
        for (name, number) in member.map(|member| self.btf.enumerators(member)).unwrap_or_default() {
            if number < MOST {
                names.resize(names.len().max(number as usize + 1), CleanText::default());
                names[number as usize] = name.into();
            }
        }
        names
    }

    /// The attempts of the balancer and their outcome.
    fn balance(&self) -> Vec<KernelProbe> {
        let function = self.function(&["sched_balance_rq", "load_balance"]);
        let arguments = format!("cpu=$arg1:s32 idle=$arg4:s32 {}", self.fields(DOMAIN, &DOMAIN_FIELDS));
        let whole = format!("{arguments} continue=+0($arg5):s32");
        let attempts = KernelProbe {
            name: "load_balance",
            purpose: "attempts of the balancer and the tasks moved",
            cost: "the number of attempts and their outcome are unknown",
            alternatives: both("load_balance", function, &whole, &arguments, "moved=$retval:s32"),
        };
        let function = self.function(&["sched_balance_find_src_group", "find_busiest_group"]);
        let mask =
            self.offset("sched_group", "cpumask").map_or(String::new(), |at| format!(" cpus=+{at}($retval):x64"));
        let found = format!("group=$retval:x64{mask}");
        let env = self.fields(ENV, &ENV_FIELDS);
        let whole = join(&[&env, &self.fields(ENV, &[("loop_max", &["loop_max"], None)])]);
        let brief = self.fields(ENV, &[ENV_FIELDS[0], ENV_FIELDS[2], ENV_FIELDS[3]]);
        let group = KernelProbe {
            name: "find_busiest_group",
            purpose: "imbalance and busiest group found",
            cost: "an attempt without a busiest group looks like one without a movable task",
            alternatives: both("find_busiest_group", function, &whole, &brief, &found),
        };
        let allowed: [ProbeField; 2] = [("on_cpu", &["on_cpu"], None), ("allowed", &["nr_cpus_allowed"], None)];
        let second = Base { argument: "$arg2", ..ENV };
        let asked =
            join(&[&self.fields(TASK, &TASK_FIELDS), &self.fields(second, &ENV_FIELDS), &self.fields(TASK, &allowed)]);
        let function = self.function(&["can_migrate_task"]);
        let refusal = KernelProbe {
            name: "can_migrate",
            purpose: "each refusal to move a task, with its reason",
            cost: "the reasons why tasks are not moved are unknown",
            alternatives: both("can_migrate", function, &asked, &asked, "ok=$retval:s32"),
        };
        let function = self.function(&["need_active_balance"]);
        let active = KernelProbe {
            name: "need_active",
            purpose: "decisions for active balance",
            cost: "attempts that end in active balance look like others",
            alternatives: both("need_active", function, &env, &env, "active=$retval:s32"),
        };
        vec![attempts, group, refusal, active]
    }

    /// The tasks that are chosen and moved.
    fn tasks(&self) -> Vec<KernelProbe> {
        let numa = Base { argument: "$arg1", structure: "task_numa_env" };
        let source: [ProbeField; 2] = [("pid", &["p->pid"], None), ("src", &["src_cpu"], None)];
        let best: [ProbeField; 3] =
            [("dst", &["dst_cpu"], None), ("best", &["best_cpu"], None), ("imp", &["best_imp"], None)];
        let function = self.function(&["task_numa_find_cpu"]);
        let whole = join(&[&self.fields(numa, &source), &self.fields(numa, &best)]);
        let candidates = KernelProbe {
            name: "numa_find",
            purpose: "candidates of NUMA balancing",
            cost: "rejected candidates of NUMA balancing are unknown",
            alternatives: both("numa_find", function, &whole, &self.fields(numa, &source), ""),
        };
        let detached =
            join(&[&self.fields(TASK, &TASK_FIELDS), &self.fields(Base { argument: "$arg2", ..ENV }, &ENV_FIELDS)]);
        let detach = self.entry(
            "detach_task",
            &["detach_task"],
            &detached,
            "the balancer's own word on each task it moves",
            "causes of migrations follow from the order of events alone",
        );
        vec![candidates, detach]
    }

    /// The calls that set the policy of a task, its utilization clamps, or the parameters of a deadline task, however it is asked for. The places in
    /// `struct sched_attr` are those of the kernel's interface, which do not change.
    fn parameters(&self) -> KernelProbe {
        let function = self.function(&["__sched_setscheduler"]);
        let attributes = "policy=+4($arg2):s32 flags=+8($arg2):x64 nice=+16($arg2):s32 priority=+20($arg2):u32 runtime=+24($arg2):u64 \
                          deadline=+32($arg2):u64 period=+40($arg2):u64 util_min=+48($arg2):u32 util_max=+52($arg2):u32";
        let whole = join(&[&self.fields(TASK, &[PID]), attributes]);
        KernelProbe {
            name: "set_params",
            purpose: "changes of policies, utilization clamps and deadline parameters",
            cost: "policies are those of the machine file at the start",
            alternatives: both("set_params", function, &whole, &whole, "ret=$retval:s32"),
        }
    }

    /// New-idle gating, active balance, kicks, and moves outside of the balancer.
    fn idle(&self) -> Vec<KernelProbe> {
        let state = self.fields(RQ, &RQ_FIELDS);
        let function = self.function(&["sched_balance_newidle", "newidle_balance"]);
        let newidle = KernelProbe {
            name: "newidle_balance",
            purpose: "new-idle balance: gating and tasks pulled",
            cost: "the probe on going idle stands in: avg_idle and cost, without the number of tasks pulled",
            alternatives: function
                .map(|f| {
                    vec![
                        entry_line("newidle_balance_in", f, &state),
                        return_line("newidle_balance", f, "pulled=$retval:s32"),
                    ]
                })
                .into_iter()
                .collect(),
        };
        let active = [("src", &["cpu"] as &[&str], None), ("dst", &["push_cpu"], None), NR];
        let kick = [CPU, ("kick", &["nohz_flags.counter"] as &[&str], Some("x32")), NR];
        let moved = join(&[&self.fields(Base { argument: "$arg3", ..TASK }, &[PID]), "to=$arg4:s32"]);
        let other: ProbeField = ("other", &["pid"], None);
        let swapped = join(&[
            &self.fields(TASK, &[PID]),
            &self.fields(Base { argument: "$arg2", ..TASK }, &[other]),
            "target=$arg3:s32 cur=$arg4:s32",
        ]);
        let fallback = join(&["cpu=$arg1:s32", &self.fields(Base { argument: "$arg2", ..TASK }, &[PID])]);
        let domains = join(&[&self.fields(RQ, &[CPU]), "idle=$arg2:s32"]);
        vec![
            newidle,
            self.entry(
                "idle",
                &["set_next_task_idle"],
                &state,
                "the state of the run queue on going idle",
                "whether new-idle balance was skipped for cost is unknown",
            ),
            self.entry(
                "active_balance",
                &["active_load_balance_cpu_stop"],
                &self.fields(RQ, &active),
                "active balance",
                "active balance is recognised by the stopper alone",
            ),
            self.entry(
                "kicked",
                &["nohz_csd_func"],
                &self.fields(RQ, &kick),
                "nohz kicks",
                "idle CPUs that balance for others are not seen",
            ),
            self.entry(
                "domains",
                &["sched_balance_domains", "rebalance_domains"],
                &domains,
                "periodic balance",
                "periodic balance without an attempt is not seen",
            ),
            self.entry(
                "swap",
                &["migrate_swap"],
                &swapped,
                "swaps by NUMA balancing",
                "swaps follow from sched_swap_numa alone",
            ),
            self.entry(
                "fallback",
                &["select_fallback_rq"],
                &fallback,
                "moves since no allowed CPU is online",
                "such moves have no cause of their own",
            ),
            self.entry(
                "move_queued",
                &["move_queued_task"],
                &moved,
                "moves by affinity",
                "moves by affinity follow from the stopper alone",
            ),
        ]
    }

    /// Changes of the CPUs that a task may use. All of them, by a system call, a cpuset or the kernel itself, come to this
    /// function once they are checked and decided.
    fn affinity(&self) -> KernelProbe {
        const FUNCTION: &str = "set_cpus_allowed_common";
        const FLAGS: ProbeField = ("flags", &["flags"], Some("x32"));
        // Until 6.1 the arguments are the set and the flags, from 6.2 on a structure of both.
        let context = Base { argument: "$arg2", structure: "affinity_context" };
        let (flags, set) = match self.offset(context.structure, "new_mask") {
            Some(offset) => (self.fields(context, &[FLAGS]), format!("+{offset}($arg2)")),
            None => ("flags=$arg3:x32".to_owned(), "$arg2".to_owned()),
        };
        let line = |words: String| {
            let fields = join(&[&self.fields(TASK, &[PID]), &flags, &format!("mask=+0({set}):{words}")]);
            entry_line("set_affinity", self.function(&[FUNCTION])?, &fields).into()
        };
        KernelProbe {
            name: "set_affinity",
            purpose: "the CPUs that tasks may use, when they change",
            cost: "the CPUs that tasks may use are known from the start and the end of the recording alone",
            alternatives: self.words().and_then(line).map(|line: String| vec![line]).into_iter().collect(),
        }
    }

    /// The type of the words that have a bit for each CPU, as an array. The kernel refuses one of more than 64 words: a part of
    /// a set would be another set.
    fn words(&self) -> Option<String> {
        let bits = self.btf.member(self.btf.structure("cpumask")?, "bits")?;
        let ValueForm::Unsigned(size) = self.btf.element(bits) else { return None };
        let words = self.cpus.div_ceil(size.checked_mul(8)?);
        (words > 0).then(|| format!("x{}[{words}]", size * 8))
    }

    /// CPU bandwidth control.
    ///
    /// `throttle_cfs_rq` can find that throttling is not needed after all, and `unthrottle_cfs_rq` (6.18 and later) that it
    /// must go on. Both call a function for the cgroup and each one below it if they do what they are called for. Where the
    /// kernel has no such functions, the probes show CPUs alone.
    fn bandwidth(&self) -> Vec<KernelProbe> {
        let cgroup = self.fields(GROUP, &[("cgroup", &["css.cgroup->kn->id"], None)]);
        let cpu = self.fields(Base { argument: "$arg2", ..RQ }, &[CPU]);
        let of_group = join(&[&cgroup, &cpu]);
        let whole = self.function(&["tg_throttle_down"]).zip(self.function(&["tg_unthrottle_up"]));
        let mut by_group = whole
            .filter(|_| of_group.contains("cgroup=") && of_group.contains("cpu="))
            .map(|(down, up)| vec![entry_line("throttle", down, &of_group), entry_line("unthrottle", up, &of_group)]);
        if let (Some(lines), Some(work)) = (&mut by_group, self.function(&["throttle_cfs_rq_work"])) {
            // Tasks are throttled one by one: without their records those of the cgroup would be misunderstood.
            match self.throttled_task(work) {
                Some(line) => lines.push(line),
                None => by_group = None,
            }
        }
        let queue = Base { argument: "$arg1", structure: "cfs_rq" };
        let queue = self.fields(queue, &[("cpu", &["rq->cpu"], None)]);
        let whole = self.function(&["throttle_cfs_rq"]).zip(self.function(&["unthrottle_cfs_rq"]));
        let by_cpu =
            whole.map(|(down, up)| vec![entry_line("throttle", down, &queue), entry_line("unthrottle", up, &queue)]);
        let throttle = KernelProbe {
            name: "throttle",
            purpose: "throttling by cpu.max, by cgroup and CPU",
            cost: "throttled tasks count as waiting",
            alternatives: by_group.into_iter().chain(by_cpu).collect(),
        };
        let member = self.fields(TASK, &[PID, ("cgroup", &["sched_task_group->css.cgroup->kn->id"], None)]);
        let cost = "throttled tasks count as waiting if they come to their cgroup within the recording";
        vec![
            throttle,
            self.entry("group", &["task_change_group_fair"], &member, "moves of tasks to other cgroups", cost),
            self.entry("group_fork", &["task_fork_fair"], &member, "the cgroups of new tasks", cost),
        ]
    }

    /// The probe on a task that returns to user mode and is throttled there (6.18 and later). Its argument is the member
    /// of the task's structure that queued the work.
    fn throttled_task(&self, function: &str) -> Option<String> {
        let work = self.offset("task_struct", "sched_throttle_work")?;
        let of_task = |path: &str| self.value_at(TASK, -i64::from(work), path, None);
        let (pid, cgroup) = (of_task("pid")?, of_task("sched_task_group->css.cgroup->kn->id")?);
        Some(entry_line("throttle_task", function, &format!("pid={pid} cgroup={cgroup}")))
    }

    /// A probe on the entry of a function.
    fn entry(
        &self,
        name: &'static str,
        functions: &[&'static str],
        fields: &str,
        purpose: &'static str,
        cost: &'static str,
    ) -> KernelProbe {
        let lines = self.function(functions).map(|function| vec![entry_line(name, function, fields)]);
        KernelProbe { name, purpose, cost, alternatives: lines.into_iter().collect() }
    }

    /// The first of the functions that this kernel has.
    fn function(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.btf.has_function(name))
    }

    fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        Some(self.btf.member(self.btf.structure(structure)?, member)?.offset)
    }

    /// The fields that exist, as probes take them: `pid=+2432($arg1):s32`.
    fn fields(&self, base: Base, fields: &[ProbeField]) -> String {
        let field = |(name, paths, form): &ProbeField| {
            let value = paths.iter().find_map(|path| self.value(base, path, *form))?;
            Some(format!("{name}={value}"))
        };
        fields.iter().filter_map(field).collect::<Vec<_>>().join(" ")
    }

    /// The way to a value: `sd->level` of `lb_env` is `+64(+0($arg1)):s32`.
    fn value(&self, base: Base, path: &str, form: Option<&str>) -> Option<String> {
        self.value_at(base, 0, path, form)
    }

    /// Returns the way to a value in a structure that begins `start` bytes from the argument's target.
    fn value_at(&self, base: Base, start: i64, path: &str, form: Option<&str>) -> Option<String> {
        let mut structure = self.btf.structure(base.structure)?;
        let (mut pointer, mut offset) = (base.argument.to_owned(), start);
        let mut rest = path;
        loop {
            let end = rest.find(['-', '.']).unwrap_or(rest.len());
            let member = self.btf.member(structure, rest.get(..end)?)?;
            offset = offset.checked_add(member.offset.into())?;
            rest = rest.get(end..)?;
            if let Some(next) = rest.strip_prefix("->") {
                pointer = format!("{offset:+}({pointer})");
                (offset, structure, rest) = (0, self.btf.pointed(member)?, next);
            } else if let Some(next) = rest.strip_prefix('.') {
                (structure, rest) = (self.btf.inner(member)?, next);
            } else {
                return match form {
                    Some("string*") => Some(format!("+0({offset:+}({pointer})):string")),
                    Some(form) => Some(format!("{offset:+}({pointer}):{form}")),
                    None => Some(format!("{offset:+}({pointer}):{}", of_form(self.btf.form(member))?)),
                };
            }
        }
    }
}

/// The type of a probe's field.
fn of_form(form: ValueForm) -> Option<String> {
    match form {
        ValueForm::Signed(size) => Some(format!("s{}", u64::from(size) * 8)),
        ValueForm::Unsigned(size) => Some(format!("u{}", u64::from(size) * 8)),
        ValueForm::Pointer => Some("x64".to_owned()),
        ValueForm::Array => Some("string".to_owned()),
        ValueForm::Other => None,
    }
}

/// A probe on the return with the arguments, or a pair of probes on entry and return.
fn both(name: &str, function: Option<&str>, whole: &str, entry: &str, result: &str) -> Vec<Vec<String>> {
    let Some(function) = function else { return Vec::new() };
    let one = vec![return_line(name, function, &join(&[whole, result]))];
    let pair = vec![entry_line(&format!("{name}_in"), function, entry), return_line(name, function, result)];
    vec![one, pair]
}

fn entry_line(name: &str, function: &str, fields: &str) -> String {
    join(&[&format!("p:lb/{name} {function}"), fields])
}

fn return_line(name: &str, function: &str, fields: &str) -> String {
    join(&[&format!("r:lb/{name} {function}"), fields])
}

/// Joins words that are not empty with blanks.
fn join(words: &[&str]) -> String {
    words.iter().copied().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BTF: [&[u8]; 3] = [
        include_bytes!("../../../../tests/fixtures/btf-6.1.btf"),
        include_bytes!("../../../../tests/fixtures/btf-6.12.btf"),
        include_bytes!("../../../../tests/fixtures/btf-7.2.btf"),
    ];

    /// Lines that these kernels accepted, with offsets that another program computed.
    const ACCEPTED: [&str; 3] = [
        include_str!("../../../../tests/fixtures/probes-6.1.txt"),
        include_str!("../../../../tests/fixtures/probes-6.12.txt"),
        include_str!("../../../../tests/fixtures/probes-7.2.txt"),
    ];

    /// Probes of those files that no analysis reads.
    const UNUSED: [&str; 10] = [
        "trigger",
        "wakelist",
        "blocked",
        "select",
        "select_in",
        "pull_rt",
        "push_rt",
        "nohz_idle",
        "nr_running",
        "resched",
    ];

    fn name(line: &str) -> &str {
        line.split_whitespace().next().and_then(|word| word.split_once('/')).map_or("", |(_, name)| name)
    }

    fn probes(kernel: usize) -> Vec<KernelProbe> {
        ProbeWriter::new(&Btf::parse(BTF[kernel].to_vec()).unwrap()).with_cpus(8).probes()
    }

    #[test]
    fn the_lines_are_those_that_three_kernels_accepted() {
        // 6.1 has no arguments on the return: there it is the second alternative.
        for (kernel, choice) in [(0, 1), (1, 0), (2, 0)] {
            let mut lines: Vec<String> = Vec::new();
            for probe in probes(kernel) {
                let reads_arguments_late = |lines: &Vec<String>| lines[0].starts_with("r:");
                let choice = if probe.alternatives.first().is_some_and(reads_arguments_late) { choice } else { 0 };
                lines.extend(probe.alternatives.get(choice).into_iter().flatten().cloned());
            }
            lines.retain(|line| !UNUSED.contains(&name(line)));
            lines.sort();
            let mut expected: Vec<&str> =
                ACCEPTED[kernel].lines().filter(|line| !UNUSED.contains(&name(line))).collect();
            expected.sort_unstable();
            assert_eq!(expected.len(), [25, 20, 19][kernel]);
            assert_eq!(lines, expected);
        }
    }

    #[test]
    fn throttling_is_recorded_by_cgroup_and_cpu_or_else_by_cpu() {
        let throttle = |kernel: usize| probes(kernel).into_iter().find(|probe| probe.name == "throttle").unwrap();
        let names = |lines: &[String]| lines.iter().map(|line| name(line).to_owned()).collect::<Vec<_>>();
        for (kernel, whole) in [2, 2, 3].into_iter().enumerate() {
            let [by_group, by_cpu] = &throttle(kernel).alternatives[..] else { panic!("two ways of {kernel}") };
            assert_eq!(names(by_group), ["throttle", "unthrottle", "throttle_task"][..whole]);
            assert_eq!(names(by_cpu), ["throttle", "unthrottle"]);
        }
        assert_eq!(throttle(0).alternatives[1][0], "p:lb/throttle throttle_cfs_rq cpu=+2672(+304($arg1)):s32");
    }

    #[test]
    fn sets_of_cpus_are_read_in_words_for_all_cpus() {
        let line = |kernel: usize, cpus: u32| {
            let btf = Btf::parse(BTF[kernel].to_vec()).unwrap();
            let found = ProbeWriter::new(&btf).with_cpus(cpus).probes();
            found.into_iter().find(|probe| probe.name == "set_affinity").unwrap().alternatives.pop()
        };
        let context = "flags=+16($arg2):x32 mask=+0(+0($arg2))";
        let (old, new) = ("flags=$arg3:x32 mask=+0($arg2)", context);
        for (kernel, pid, set) in [(0, 2416, old), (1, 2432, new), (2, 2808, new)] {
            for (cpus, words) in [(4, 1), (64, 1), (65, 2), (4096, 64)] {
                let expected =
                    format!("p:lb/set_affinity set_cpus_allowed_common pid=+{pid}($arg1):s32 {set}:x64[{words}]");
                assert_eq!(line(kernel, cpus), Some(vec![expected]));
            }
            assert_eq!(line(kernel, 0), None);
        }
    }

    /// The line for the kernel that runs the tests, if it has type information: one probe, or one on entry and one on return.
    #[test]
    fn parameters_are_recorded_at_the_return_of_the_call() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(bytes).unwrap();
        let probe = ProbeWriter::new(&btf).parameters();
        if let [whole, pair] = &probe.alternatives[..] {
            assert!(whole[0].starts_with("r:lb/set_params __sched_setscheduler pid=+"), "{whole:?}");
            assert!(whole[0].ends_with(" ret=$retval:s32") && whole[0].len() < 512, "{whole:?}");
            assert_eq!((pair.len(), pair[1].as_str()), (2, "r:lb/set_params __sched_setscheduler ret=$retval:s32"));
        }
    }

    #[test]
    fn an_inlined_function_has_no_probe_and_a_cost() {
        let newidle = probes(2).into_iter().find(|probe| probe.name == "newidle_balance").unwrap();
        assert!(newidle.alternatives.is_empty() && newidle.cost.starts_with("the probe on going idle stands in"));
        // The type information of the tests is a part of the kernel's, without the function that sets parameters.
        let lacks = ["newidle_balance", PARAMETERS];
        assert!(probes(2).iter().all(|probe| lacks.contains(&probe.name) || !probe.alternatives.is_empty()));
        // Without any type information there is nothing to probe.
        let empty = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
        let btf = Btf::parse(empty).unwrap();
        let found = ProbeWriter::new(&btf).probes();
        assert!(
            found.iter().all(|probe| probe.alternatives.is_empty() || ["nr_running", "resched"].contains(&probe.name))
        );
    }
}
