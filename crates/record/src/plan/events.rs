//! The events to record.

use serde::Serialize;

/// The events of the scheduler that the analyses use, each with its cost if this kernel lacks it.
const DEFAULT: [(&str, &str); 12] = [
    ("sched/sched_switch", "running tasks are unknown: no analysis is possible"),
    ("sched/sched_wakeup", "the start of a wait is approximate"),
    ("sched/sched_wakeup_new", "new tasks are first seen when they run"),
    ("sched/sched_waking", "the waker and the wakeup latency are unknown"),
    ("sched/sched_migrate_task", "a waiting task seems to stay where it was queued"),
    ("sched/sched_process_fork", "descendants of the command are unknown (--forked)"),
    ("sched/sched_process_exec", "the traced command is unknown (--forked)"),
    ("sched/sched_process_exit", "a task ends with its last switch"),
    ("sched/sched_move_numa", "moves by NUMA balancing have no cause of their own"),
    ("sched/sched_swap_numa", "swaps by NUMA balancing have no cause of their own"),
    ("sched/sched_stick_numa", "failed moves by NUMA balancing are not seen"),
    ("task/task_rename", "a renamed thread shows its new name when it is next switched out"),
];

/// The events that show cgroups and processes. They are rare, and a kernel without cgroups lacks some: none is missed.
const MEMBERSHIP: [&str; 3] = ["cgroup/cgroup_attach_task", "cgroup/cgroup_mkdir", "task/task_newtask"];

/// The events behind which stacks are recorded: that of the task which leaves its CPU, and that of the waker.
const STACKED: [&str; 2] = ["sched/sched_switch", "sched/sched_waking"];
/// The event that shows the waker's stack where the kernel has no `sched_waking`.
const STACKED_ELSE: &str = "sched/sched_wakeup";

/// The only event without which there is nothing to record for.
const REQUIRED: &str = "sched/sched_switch";

/// Optional groups of events.
const IRQ: [&str; 1] = ["irq"];
const FREQUENCY: [&str; 1] = ["power/cpu_frequency"];
/// The events that end sleeps, and the calls that show for how long a task asked to sleep: `whatif` finds the causes of sleeps in them.
const WHATIF: [&str; 8] = [
    "timer/hrtimer_start",
    "timer/hrtimer_expire_entry",
    "timer/hrtimer_expire_exit",
    "timer/timer_expire_entry",
    "timer/timer_expire_exit",
    "block/block_rq_complete",
    "syscalls/sys_enter_nanosleep",
    "syscalls/sys_enter_clock_nanosleep",
];
/// The events that settle causes which the scheduler's own events leave open, beside the probes.
const WHY: [(&str, &str); 1] =
    [("irq/softirq_raise", "wakeups on loopback are possibly by their senders, or by interrupts")];
const NUMA: [&str; 3] = ["sched/sched_skip_vma_numa", "sched/sched_skip_cpuset_numa", "migrate/mm_migrate_pages"];

/// Groups of events that may be asked for.
#[derive(Clone, Debug, Default)]
pub struct WantedEvents {
    /// Interrupts and softirqs.
    pub irq: bool,
    /// Frequencies of the CPUs.
    pub frequency: bool,
    /// NUMA balancing in more detail.
    pub numa: bool,
    /// The causes of sleeps, with interrupts.
    pub whatif: bool,
    /// The causes that the scheduler's own events leave open.
    pub why: bool,
    /// Stacks of switches and wakeups.
    pub stacks: bool,
    /// Events by name, as trace-cmd takes them: `sched:sched_switch`, `sched_switch`, or a system such as `irq`.
    pub more: Vec<String>,
}

/// The events that a recording enables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventPlan {
    /// Paths below the folder of events: `sched/sched_switch`, or a system such as `irq`.
    pub events: Vec<String>,
    /// The events among them behind which the kernel's stack is recorded.
    pub stacks: Vec<String>,
    /// Events that this kernel does not have, and the cost of each.
    pub missing: Vec<(String, String)>,
}

/// The reason why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventPlanError {
    /// The kernel has no scheduler events.
    #[error(
        "this kernel has no event sched:sched_switch: it was built without tracepoints (CONFIG_FTRACE, CONFIG_SCHED_TRACER)"
    )]
    NoSwitch,
    /// An event that was asked for by name does not exist.
    #[error("-e {0}: this kernel has no such event; trace-cmd list -e lists those that it has")]
    NoEvent(String),
}

/// The events of a kernel, as its tracefs lists them. The answers must not change while a plan is made.
pub trait Available {
    /// Returns whether an event or a system exists; `path` is that below the folder of events, such as `sched/sched_switch` or
    /// `irq`.
    fn has(&self, path: &str) -> bool;
    /// Returns the names of all systems with an event of this name, in any order; empty where there is none.
    fn systems_with(&self, name: &str) -> Vec<String>;
}

impl EventPlan {
    /// Chooses the events among those that a kernel has.
    pub fn new(wanted: &WantedEvents, kernel: &impl Available) -> Result<EventPlan, EventPlanError> {
        let mut plan = EventPlan::default();
        if !kernel.has(REQUIRED) {
            return Err(EventPlanError::NoSwitch);
        }
        for (event, cost) in DEFAULT {
            plan.add(event, cost, kernel);
        }
        plan.events.extend(MEMBERSHIP.iter().filter(|event| kernel.has(event)).map(|event| (*event).to_owned()));
        let groups = [(wanted.irq, IRQ.as_slice()), (wanted.frequency, &FREQUENCY), (wanted.numa, &NUMA)];
        let irq = wanted.irq || wanted.whatif;
        let groups = groups.map(|(is_wanted, events)| (is_wanted || (irq && events == IRQ), events));
        for event in groups.into_iter().filter(|(wanted, _)| *wanted).flat_map(|(_, events)| events) {
            plan.add(event, "asked for, and not recorded", kernel);
        }
        for event in WHATIF.into_iter().filter(|_| wanted.whatif) {
            plan.add(event, "the sleeps that it shows the causes of have none in whatif", kernel);
        }
        for (event, cost) in WHY.into_iter().filter(|_| wanted.why) {
            plan.add(event, cost, kernel);
        }
        for name in &wanted.more {
            let found = resolve(name, kernel);
            if found.is_empty() {
                return Err(EventPlanError::NoEvent(name.clone()));
            }
            plan.events.extend(found);
        }
        let mut seen = std::collections::BTreeSet::new();
        plan.events.retain(|event| seen.insert(event.clone()));
        if wanted.stacks {
            let lacks_wakings = !kernel.has(STACKED[1]);
            let stacked = STACKED.into_iter().chain(lacks_wakings.then_some(STACKED_ELSE));
            plan.stacks = stacked.filter(|event| kernel.has(event)).map(str::to_owned).collect();
        }
        Ok(plan)
    }

    fn add(&mut self, event: &str, cost: &str, kernel: &impl Available) {
        if kernel.has(event) {
            self.events.push(event.to_owned());
        } else {
            self.missing.push((event.replace('/', ":"), cost.to_owned()));
        }
    }
}

/// The paths of an event that is named as trace-cmd takes it.
fn resolve(name: &str, kernel: &impl Available) -> Vec<String> {
    // A path that leaves the folder of events is none.
    let is_plain =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    let parts: Vec<&str> = name.split([':', '/']).collect();
    if !parts.iter().all(|part| is_plain(part)) || parts.contains(&"..") || parts.contains(&".") {
        return Vec::new();
    }
    match parts.as_slice() {
        [system, event] => Some(format!("{system}/{event}")).into_iter().filter(|path| kernel.has(path)).collect(),
        [system] if kernel.has(system) => vec![(*system).to_owned()],
        [event] => kernel.systems_with(event).iter().map(|system| format!("{system}/{event}")).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kernel(Vec<&'static str>);

    impl Available for Kernel {
        fn has(&self, path: &str) -> bool {
            self.0.iter().any(|event| *event == path || event.split('/').next() == Some(path))
        }
        fn systems_with(&self, name: &str) -> Vec<String> {
            let of =
                |event: &&str| event.split_once('/').filter(|(_, n)| *n == name).map(|(system, _)| system.to_owned());
            self.0.iter().filter_map(of).collect()
        }
    }

    #[test]
    fn events_are_chosen_among_those_that_exist() {
        let kernel = Kernel(vec!["sched/sched_switch", "sched/sched_waking", "irq/softirq_entry", "ext/sched_waking"]);
        let more = ["sched:sched_waking", "sched_waking", "irq"].map(str::to_owned).to_vec();
        let plan = EventPlan::new(&WantedEvents { frequency: true, more, ..WantedEvents::default() }, &kernel).unwrap();
        assert_eq!(plan.events, ["sched/sched_switch", "sched/sched_waking", "ext/sched_waking", "irq"]);
        assert!(plan.stacks.is_empty());
        assert_eq!(plan.missing.len(), 11);
        assert_eq!(plan.missing[0], ("sched:sched_wakeup".into(), "the start of a wait is approximate".into()));
        assert_eq!(plan.missing[10].0, "power:cpu_frequency");
    }

    #[test]
    fn causes_of_sleeps_are_timers_devices_and_calls() {
        let kernel = Kernel(vec![
            "sched/sched_switch",
            "irq/irq_handler_entry",
            "timer/hrtimer_start",
            "block/block_rq_complete",
        ]);
        let plan = EventPlan::new(&WantedEvents { whatif: true, ..WantedEvents::default() }, &kernel).unwrap();
        assert_eq!(plan.events, ["sched/sched_switch", "irq", "timer/hrtimer_start", "block/block_rq_complete"]);
        let missing = plan.missing.iter().filter(|(_, cost)| cost.contains("whatif")).count();
        assert_eq!(missing, WHATIF.len() - 2);
    }

    #[test]
    fn origins_of_softirqs_are_recorded_with_the_causes() {
        let plan = |events: &[&'static str]| {
            EventPlan::new(&WantedEvents { why: true, ..WantedEvents::default() }, &Kernel(events.to_vec())).unwrap()
        };
        assert_eq!(
            plan(&["sched/sched_switch", "irq/softirq_raise"]).events,
            ["sched/sched_switch", "irq/softirq_raise"]
        );
        let missing = plan(&["sched/sched_switch"]).missing;
        assert!(missing.iter().any(|(event, _)| event == "irq:softirq_raise"), "{missing:?}");
    }

    #[test]
    fn cgroups_and_processes_are_recorded_where_the_kernel_shows_them() {
        let kernel = Kernel(vec!["sched/sched_switch", "task/task_newtask", "cgroup/cgroup_attach_task"]);
        let plan = EventPlan::new(&WantedEvents::default(), &kernel).unwrap();
        assert_eq!(plan.events, ["sched/sched_switch", "cgroup/cgroup_attach_task", "task/task_newtask"]);
        assert_eq!(plan.missing.len(), 11);
    }

    #[test]
    fn stacks_are_those_of_switches_and_of_wakers() {
        let stacks = |events: &[&'static str]| {
            let wanted = WantedEvents { stacks: true, ..WantedEvents::default() };
            EventPlan::new(&wanted, &Kernel(events.to_vec())).unwrap().stacks
        };
        let (switch, waking, wakeup) = ("sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup");
        assert_eq!(stacks(&[switch, waking, wakeup]), [switch, waking]);
        assert_eq!(stacks(&[switch, wakeup]), [switch, wakeup]);
    }

    #[test]
    fn an_event_that_does_not_exist_is_refused() {
        let kernel = Kernel(vec!["sched/sched_switch"]);
        for name in ["nothing", "sched:nothing", "..", "sched:..", "a:b:c", "", "sched/../x"] {
            let wanted = WantedEvents { more: vec![name.into()], ..WantedEvents::default() };
            assert_eq!(EventPlan::new(&wanted, &kernel), Err(EventPlanError::NoEvent(name.into())));
        }
        assert_eq!(EventPlan::new(&WantedEvents::default(), &Kernel(vec![])), Err(EventPlanError::NoSwitch));
    }
}
