//! The records of probes on the scheduler (group `lb`, as `schedviz record --why` sets them).
//!
//! A probe records what the kernel decides; it changes no task's state. The fields of a probe differ between kernels, so
//! those that can be absent are optional here.

use super::two_words::TwoWords;
use super::{Comm, Cpu, CpuMask, Dur, Pid};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A kind of load balancing, by the state of the CPU for which it pulls tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Balancing {
    /// New-idle balancing, for a CPU that is about to idle.
    NewIdle,
    /// Balancing for an idle CPU, at its tick or on its behalf.
    Idle,
    /// Balancing for a CPU that runs a task.
    Busy,
    /// A kind that the probe does not show.
    #[default]
    Unknown,
}

impl Balancing {
    /// Returns the kind for a number of `enum cpu_idle_type`, two of which were exchanged in 6.10.
    pub fn of(idle: Option<i64>, before_6_10: bool) -> Balancing {
        match (idle, before_6_10) {
            (Some(2), _) => Balancing::NewIdle,
            (Some(1), false) | (Some(0), true) => Balancing::Idle,
            (Some(0), false) | (Some(1), true) => Balancing::Busy,
            _ => Balancing::Unknown,
        }
    }

    /// Whether the kernel of this release (major, minor) has the numbers from before 6.10. A kernel without a release
    /// counts as newer.
    pub fn has_old_numbers(release: Option<(u32, u32)>) -> bool {
        release.is_some_and(|release| release < (6, 10))
    }

    /// The name of the kind, for people.
    pub fn name(self) -> &'static str {
        match self {
            Balancing::NewIdle => "new-idle",
            Balancing::Idle => "idle",
            Balancing::Busy => "busy",
            Balancing::Unknown => "unknown",
        }
    }
}

/// The state of a run queue that is about to be empty, by which new-idle balancing is gated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunQueue {
    /// Whether the machine has an overloaded CPU, by the kernel's own flag.
    pub overloaded: Option<bool>,
    /// Whether the wakeup of a task on this CPU is under way.
    pub pending: Option<bool>,
    /// The average time for which the CPU idles, in nanoseconds, at most four seconds.
    pub avg_idle: Option<AtMost4s>,
    /// The cost of the cheapest balance, in nanoseconds, at most four seconds.
    pub cost: Option<AtMost4s>,
}

/// A length of time in nanoseconds, at most 2³² − 1 (about four seconds), in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AtMost4s(u32);

impl AtMost4s {
    /// Makes a length of `ns` nanoseconds; longer ones count as the longest.
    pub fn of(ns: u64) -> AtMost4s {
        AtMost4s(u32::try_from(ns).unwrap_or(u32::MAX))
    }

    /// The length of time.
    pub fn dur(self) -> Dur {
        Dur(self.0.into())
    }
}

/// A cgroup by its ID, the inode number that the kernel has for its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupId(TwoWords);

impl CgroupId {
    /// Makes the cgroup with this ID.
    pub fn new(number: u64) -> CgroupId {
        CgroupId(TwoWords::of(number))
    }

    /// The ID of the cgroup.
    pub fn number(self) -> u64 {
        self.0.number()
    }
}

/// An instant of the virtual time of a run queue of the fair class, or a length of it, in nanoseconds of a task of nice 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualTime(TwoWords);

impl VirtualTime {
    /// Makes an instant of virtual time, or a length of it, of `ns` nanoseconds.
    pub fn of(ns: i64) -> VirtualTime {
        VirtualTime(TwoWords::of(ns.cast_unsigned()))
    }

    /// The number of nanoseconds. Instants wrap as the kernel's do: only their differences have a meaning.
    pub fn ns(self) -> i64 {
        self.0.number().cast_signed()
    }

    /// Returns the virtual time from `earlier` to this instant; negative if this one is the earlier.
    pub fn since(self, earlier: VirtualTime) -> i64 {
        self.ns().wrapping_sub(earlier.ns())
    }
}

/// The numbers by which EEVDF picks a task, as the kernel has them for the task on its run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// The virtual run time of the task.
    pub vruntime: VirtualTime,
    /// The virtual deadline of the task's request.
    pub deadline: VirtualTime,
    /// The request of the task: the length of its time slice, in nanoseconds. None where it was not recorded, or is beyond four
    /// seconds.
    pub slice: Option<NonZeroU32>,
    /// The weight of the task, 1,048,576 for nice 0 on machines of 64 bits. None where it was not recorded.
    pub weight: Option<NonZeroU32>,
}

/// The numbers of the task that was switched out, in the record of the pick of the next task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The virtual run time alone, of recordings by hand.
    At(VirtualTime),
    /// The task can run on: its virtual run time, and the virtual deadline of its request.
    Waits(VirtualTime, VirtualTime),
    /// The task sleeps or ends: its virtual run time, and its lag in virtual time as it leaves its run queue.
    Sleeps(VirtualTime, VirtualTime),
}

impl Left {
    /// The virtual run time of the task.
    pub fn vruntime(self) -> VirtualTime {
        let (Left::At(time) | Left::Waits(time, _) | Left::Sleeps(time, _)) = self;
        time
    }
}

/// The form of [`Left`] in a record: without the room of an enum's tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftTimes {
    /// The virtual run time, and the deadline or the lag.
    times: [VirtualTime; 2],
}

/// The numbers that [`LeftTimes`] has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeftKind {
    /// The record has no number of the task that was switched out.
    #[default]
    Unrecorded,
    /// The record has those of [`Left::At`].
    At,
    /// The record has those of [`Left::Waits`].
    Waits,
    /// The record has those of [`Left::Sleeps`].
    Sleeps,
}

impl LeftTimes {
    /// Returns the form of these numbers.
    pub fn of(left: Option<Left>) -> (LeftKind, LeftTimes) {
        let none = VirtualTime::default();
        let (kind, times) = match left {
            None => (LeftKind::Unrecorded, [none; 2]),
            Some(Left::At(time)) => (LeftKind::At, [time, none]),
            Some(Left::Waits(time, deadline)) => (LeftKind::Waits, [time, deadline]),
            Some(Left::Sleeps(time, lag)) => (LeftKind::Sleeps, [time, lag]),
        };
        (kind, LeftTimes { times })
    }

    /// Returns the numbers of this form.
    pub fn numbers(self, kind: LeftKind) -> Option<Left> {
        let [time, other] = self.times;
        match kind {
            LeftKind::Unrecorded => None,
            LeftKind::At => Some(Left::At(time)),
            LeftKind::Waits => Some(Left::Waits(time, other)),
            LeftKind::Sleeps => Some(Left::Sleeps(time, other)),
        }
    }
}

/// The rule by which the kernel's own numbers give a picked task: on its run queue, and on those of all groups above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChoiceRule {
    /// The record lacks these numbers, or those of a group.
    #[default]
    Unrecorded,
    /// No other task or group was on any of these run queues.
    Only,
    /// On each of these run queues the task or its group was eligible, and no eligible one had an earlier deadline.
    Earliest,
    /// So too, or a group above the task was that of the task that left, within its slice, which protects it.
    Protected,
    /// So too, but on some run queue the rival with the earliest deadline was not eligible, and further ones are not recorded.
    PossiblyEarliest,
    /// On some run queue an eligible task or group had an earlier deadline.
    Beaten,
    /// On some run queue the task or its group was not eligible.
    Ineligible,
}

impl ChoiceRule {
    const ALL: [ChoiceRule; 7] = [
        ChoiceRule::Unrecorded,
        ChoiceRule::Only,
        ChoiceRule::Earliest,
        ChoiceRule::Protected,
        ChoiceRule::PossiblyEarliest,
        ChoiceRule::Beaten,
        ChoiceRule::Ineligible,
    ];
}

/// The length of the run queue of a picked task, and the rule of the pick, in two bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedChoice(u16);

impl RecordedChoice {
    /// The greatest length that is kept: longer run queues have this one.
    pub const MOST: u16 = (1 << 13) - 1;

    /// Makes a choice on a run queue of this length.
    pub fn of(length: u64, rule: ChoiceRule) -> RecordedChoice {
        let length = u16::try_from(length).unwrap_or(u16::MAX).min(RecordedChoice::MOST);
        RecordedChoice((rule as u16) << 13 | length)
    }

    /// The number of tasks and groups on the run queue of the task's group, with the running one and those that sleep but were not
    /// taken from it; at most [`RecordedChoice::MOST`], and zero where it was not recorded.
    pub fn length(self) -> u16 {
        self.0 & RecordedChoice::MOST
    }

    /// The rule of the pick.
    pub fn rule(self) -> ChoiceRule {
        ChoiceRule::ALL.get(usize::from(self.0 >> 13)).copied().unwrap_or_default()
    }
}

/// The beginning or the end of throttling, for the tasks of one cgroup on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// The throttled CPU. Absent where the record does not show it; it is then the CPU of the event.
    pub cpu: Option<Cpu>,
    /// The cgroup that is throttled by its own limit or by that of an ancestor. Absent in recordings by probes on
    /// `throttle_cfs_rq`, which may be of a run queue that is not throttled after all.
    pub cgroup: Option<CgroupId>,
    /// Whether queued tasks are throttled at once. Otherwise (6.18 and later) they are taken from the queue one by one,
    /// as they return to user mode, each with a record of its own.
    pub takes_queue: bool,
}

/// A record of a probe on the balancer, on bandwidth control or on the fair class, by the probe's name; and of a few other events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// `newidle_balance_in`: a CPU is about to idle, and new-idle balancing begins.
    NewIdleBegins(RunQueue),
    /// `newidle_balance`: new-idle balancing ends with this number of tasks pulled, or −1 if a task of another class is
    /// there.
    NewIdleEnds(i32),
    /// `idle`: a CPU goes idle (`set_next_task_idle`).
    GoesIdle(RunQueue),
    /// `load_balance_in`: an attempt to balance one domain begins; the kind of balance and the name of the domain.
    AttemptBegins(Balancing, Comm),
    /// `load_balance`: an attempt to balance one domain ends.
    AttemptEnds {
        /// The kind of balance; unknown if only the record of the beginning has it.
        balancing: Balancing,
        /// The name of the domain; empty if only the record of the beginning has it.
        domain: Comm,
        /// The number of tasks that the attempt moved.
        moved: u32,
    },
    /// `find_busiest_group`: the search for a busiest group ends.
    Searched {
        /// Whether the search found a busiest group.
        found: bool,
        /// The imbalance, in the unit that `how` names.
        imbalance: Option<u32>,
        /// The unit of the imbalance, by the kernel's `enum migration_type`: load, utilization, tasks, misfit, tasks of
        /// an LLC.
        how: Option<u8>,
    },
    /// `can_migrate_in`: the balancer begins to examine a task.
    Examines(Examined),
    /// `can_migrate`: the balancer has examined a task, and may move it or not.
    Examined(Examined, bool),
    /// `need_active`: whether the balancer asks the stopper to move a running task.
    NeedsActive(bool),
    /// `detach_task`: the balancer takes a task from its queue to move it.
    Detaches {
        /// The PID of the task.
        pid: Pid,
        /// The CPU that the task leaves.
        src: Cpu,
        /// The CPU that the task comes to.
        dst: Cpu,
        /// The kind of the balance that moves it.
        balancing: Balancing,
    },
    /// `active_balance`: the stopper of the first CPU begins active balance for the second one.
    ActiveBalances(Cpu, Cpu),
    /// `move_queued`: a queued task is moved to this CPU, since it may not use its own, or wants another.
    MovesQueued(Pid, Cpu),
    /// `swap`: two tasks are to change places.
    Swaps {
        /// One of the tasks, and the CPU that it is on.
        one: (Pid, Cpu),
        /// The other task, and the CPU that it is on.
        other: (Pid, Cpu),
    },
    /// `kicked`: an idle CPU is asked to balance for itself and for others.
    Kicked,
    /// `domains`: periodic balance begins for a CPU in this state.
    Periodic(Balancing),
    /// `numa_find`: NUMA balancing looked for a CPU for a task; the best one so far, if there is one.
    NumaLooked(Pid, Option<Cpu>),
    /// `fallback`: none of the CPUs that a task may use is online.
    FallsBack(Pid),
    /// `throttle`: tasks of a cgroup are throttled on a CPU.
    Throttles(Throttle),
    /// `unthrottle`: tasks of a cgroup are no longer throttled on a CPU, unless another limit throttles the cgroup
    /// there.
    Unthrottles(Throttle),
    /// `throttle_task`: the running task is about to be taken from the queue, since this cgroup of it is throttled
    /// there.
    ThrottlesTask(Pid, CgroupId),
    /// `group` (a task was moved to a cgroup) or `group_fork` (a task begins in it).
    Joins {
        /// The PID of the task.
        pid: Pid,
        /// The cgroup that the task is in from now on.
        cgroup: CgroupId,
        /// Whether the task begins in the cgroup, by a fork.
        forked: bool,
    },
    /// `set_affinity` or `allowed`: a task may use these CPUs from now on. `None` if the record does not show the whole
    /// set.
    Allows(Pid, Option<CpuMask>),
    /// `set_affinity` of a task that disables or enables its migration. The CPUs that it may use otherwise do not
    /// change.
    HoldsMigration(Pid),
    /// `set_params`, `sys_enter_sched_setscheduler` or `sys_enter_sched_setattr`: a task is given a policy.
    SetsPolicy {
        /// The PID of the task, zero for the calling task.
        pid: Pid,
        /// Whether the record shows that the policy is `SCHED_IDLE`.
        is_sched_idle: bool,
        /// Whether the call has been entered alone, so that another record shows its result.
        is_entered: bool,
    },
    /// `set_params`, `sys_exit_sched_setscheduler` or `sys_exit_sched_setattr`: a call that sets the policy of a task returns.
    PolicyCallReturns {
        /// Whether the call has changed nothing.
        failed: bool,
    },
    /// `nr_running`: the length of a CPU's run queue has changed.
    Length {
        /// The CPU of the run queue.
        cpu: Cpu,
        /// The number of queued tasks after the change, with the running one.
        nr: u32,
        /// The difference to the number before.
        change: i32,
    },
    /// `resched` (`sched_set_need_resched_tp`): the running task of a CPU is marked to be rescheduled.
    Reschedules {
        /// The PID of the running task, zero for the idle task.
        pid: Pid,
        /// The CPU on which that task runs.
        cpu: Cpu,
        /// The number of the flag that is set, of which each kernel has one for immediate and one for lazy requests.
        flag: u8,
    },
    /// `pick`: a CPU switches to this task, which the fair class has picked if it is one of its tasks.
    Picks {
        /// The PID of the task, zero for the idle task.
        pid: Pid,
        /// The numbers of the task at the pick.
        entity: Entity,
        /// The numbers in `left`.
        left_kind: LeftKind,
        /// The numbers of the task that was switched out, where the same record has them.
        left: LeftTimes,
        /// The run queue of the task's group, where it was recorded: a number that no other run queue of a CPU has, from its address.
        queue: Option<NonZeroU32>,
        /// The length of that run queue, and the rule by which the kernel's own order gives the task.
        choice: RecordedChoice,
    },
    /// `put`: a CPU switches from this task, in recordings whose `pick` lacks that half.
    Puts {
        /// The PID of the task, zero for the idle task.
        pid: Pid,
        /// The numbers of the task as it is switched out.
        entity: Entity,
        /// The lag of the task in virtual time, which the kernel sets as a task leaves its run queue.
        vlag: VirtualTime,
        /// Whether the task sleeps and stays on the run queue until its lag is no longer negative (delayed dequeue).
        delayed: bool,
        /// The number of the run queue of the task's group, where it was recorded.
        queue: Option<NonZeroU32>,
    },
    /// `wake`: the wakeup of this task begins; its numbers are those with which it left its run queue.
    Wakes {
        /// The PID of the task.
        pid: Pid,
        /// The lag of the task in virtual time, with which it left its run queue.
        vlag: VirtualTime,
    },
    /// `lock:contention_begin` or `lock:contention_end`: the running task begins to wait for a lock of the kernel, or has it.
    Contends {
        /// The address of the lock.
        lock: [u32; 2],
        /// Whether the task begins to wait.
        begins: bool,
    },
    /// `power:cpu_idle`: a CPU enters an idle state, or leaves the one that it is in.
    IdleState {
        /// The CPU that idles.
        cpu: Cpu,
        /// The number of the state that the CPU enters, at most 255; nothing where it leaves one.
        state: Option<u8>,
    },
    /// `irq:softirq_raise`: a softirq with this number is to run on the CPU.
    Raises {
        /// The number of the softirq: 2 and 3 send and receive packets.
        softirq: u8,
    },
}

/// A task that the balancer examines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examined {
    /// Whether the task is running.
    pub on_cpu: Option<bool>,
    /// Whether the task may use one CPU only.
    pub bound: Option<bool>,
}

impl Examined {
    /// Returns these facts, completed by those that another record of the same task shows.
    #[must_use]
    pub fn or(self, other: Examined) -> Examined {
        Examined { on_cpu: self.on_cpu.or(other.on_cpu), bound: self.bound.or(other.bound) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_6_10_are_others() {
        let idle = |release| Balancing::of(Some(1), Balancing::has_old_numbers(release));
        assert_eq!(
            [idle(Some((6, 1))), idle(Some((6, 9))), idle(Some((6, 10))), idle(None)],
            [Balancing::Busy, Balancing::Busy, Balancing::Idle, Balancing::Idle]
        );
        assert_eq!(Balancing::of(Some(2), true), Balancing::NewIdle);
        assert_eq!(Balancing::of(None, true), Balancing::Unknown);
    }

    #[test]
    fn no_record_makes_an_event_larger_than_a_switch() {
        // A switch has 56 bytes, and an event 80 with a word for the kind.
        assert_eq!([size_of::<Probe>(), size_of::<crate::EventKind>(), size_of::<crate::SchedEvent>()], [52, 60, 80]);
    }

    #[test]
    fn a_choice_keeps_length_and_rule() {
        for rule in ChoiceRule::ALL {
            for (length, kept) in [(0, 0), (1, 1), (8_191, 8_191), (8_192, 8_191), (u64::MAX, 8_191)] {
                let choice = RecordedChoice::of(length, rule);
                assert_eq!((choice.length(), choice.rule()), (kept, rule));
            }
        }
    }

    #[test]
    fn virtual_time_wraps_as_in_the_kernel() {
        assert_eq!([0, 1 << 40, -7, i64::MIN].map(|ns| VirtualTime::of(ns).ns()), [0, 1 << 40, -7, i64::MIN]);
        assert_eq!(VirtualTime::of(i64::MIN).since(VirtualTime::of(i64::MAX)), 1);
    }

    #[test]
    fn lengths_beyond_four_bytes_are_the_longest() {
        assert_eq!([5, 1 << 40].map(|ns| AtMost4s::of(ns).dur()), [Dur(5), Dur(u32::MAX.into())]);
    }
}
