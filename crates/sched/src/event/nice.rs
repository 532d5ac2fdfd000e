//! The weights of nice values, the classes of kernel priorities, and the reason for which a lower class runs before a higher one.

use crate::event::Comm;
use crate::event::kthread::is_kernel_thread;
use serde::Serialize;

/// The class of the scheduler that a task belongs to, by its kernel priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SchedClass {
    /// The deadline class (a priority of -1).
    Deadline,
    /// The real-time class (priorities from 0 to 99), or the stopper's, whose threads have priority 0.
    RealTime,
    /// The fair class, or that of a sched_ext scheduler (priorities of 100 and more).
    Fair,
}

impl SchedClass {
    /// Returns the class of a kernel priority.
    pub fn of(prio: i32) -> SchedClass {
        match prio {
            ..0 => SchedClass::Deadline,
            0..100 => SchedClass::RealTime,
            _ => SchedClass::Fair,
        }
    }

    /// The words for the class in a text.
    pub fn words(self) -> &'static str {
        match self {
            SchedClass::Deadline => "deadline",
            SchedClass::RealTime => "real-time",
            SchedClass::Fair => "fair",
        }
    }
}

/// The kernels that have the fair server.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

/// The reason for which a CPU runs a task of the fair class while a real-time task waits there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FairBefore {
    /// The fair server, which gives the fair class a part of each second (6.12 and later).
    FairServer,
    /// Real-time tasks have used up their part of the period, `sched_rt_runtime_us` (before 6.12).
    RealTimeThrottling,
    /// One of the two: the release of the kernel is unknown.
    #[default]
    Unknown,
}

impl FairBefore {
    /// Returns the reason on a kernel, by the first two numbers of its release.
    pub fn of(release: Option<(u32, u32)>) -> FairBefore {
        match release {
            Some(release) if release >= FAIR_SERVER_SINCE => FairBefore::FairServer,
            Some(_) => FairBefore::RealTimeThrottling,
            None => FairBefore::Unknown,
        }
    }

    /// The words for the reason in a text.
    pub fn words(self) -> &'static str {
        match self {
            FairBefore::FairServer => "the fair server",
            FairBefore::RealTimeThrottling => "real-time throttling",
            FairBefore::Unknown => "the fair server or real-time throttling",
        }
    }
}

/// Returns the weight of a task of this kernel priority: each step of the nice value is a factor of about 1.25, nice 0 is 1024.
/// (The table `sched_prio_to_weight` of the kernel's kernel/sched/core.c.) A real-time task, which has no weight, and a task whose
/// priority is unknown count as nice 0.
pub fn weight_of(prio: i32) -> u64 {
    const WEIGHTS: [u64; 40] = [
        88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
        1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
    ];
    let place = if prio < 100 { 20 } else { (prio - 100).min(39) };
    WEIGHTS[place.unsigned_abs() as usize]
}

/// The weight of a task of nice value 0, and of any that counts as one.
pub const NICE_0_WEIGHT: u32 = 1024;

/// The weight of a task of the policy `SCHED_IDLE`, whatever its nice value is (the kernel's `WEIGHT_IDLEPRIO`).
pub const IDLE_WEIGHT: u32 = 3;

/// The difference between the weight by which a task counts where run queues are compared (`docs/read-the-numbers.md#weights`) and that of a task of
/// nice value 0. A kernel thread of a negative nice value counts as nice 0: that value lets it run at once, for microseconds.
#[inline]
pub fn excess_weight(prio: i32, comm: Comm) -> i32 {
    match prio {
        ..=99 | 120 => 0,
        ..120 if is_kernel_thread(comm) => 0,
        _ => weight_of(prio) as i32 - NICE_0_WEIGHT as i32,
    }
}
