//! The rule by which a task was picked, from the numbers of all tasks that could have been.

use crate::group::GroupKey;
use crate::queue::real_length;
use sched::Pid;
use sched::probe::ChoiceRule;
use serde::Serialize;

/// The reason why the fair class picked a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No other task of the fair class could run on the CPU.
    Only,
    /// The task is eligible, and no eligible one has an earlier deadline.
    EarliestDeadline,
    /// A group of the task went on within its slice, which protects it (`RUN_TO_PARITY`), and the task was picked in that group.
    GroupSlice,
    /// The choice was between groups, whose own numbers are not recorded, or depends on them, or can have been one.
    Group,
    /// The task was woken by the task that left, which the kernel prefers if it is eligible (`NEXT_BUDDY`).
    Buddy,
    /// The task is eligible if tasks that sleep and are still queued are counted, which no event shows.
    Delayed,
    /// The numbers of some task that could have been picked are not recorded.
    NotRecorded,
    /// The task is eligible and has the earliest deadline by the fluid model, or among tasks of which no event shows that they
    /// are on one run queue: a possible reason.
    PossiblyEarliest,
    /// Another task would have been picked by the fluid model, which shows nothing: the model is not the kernel.
    NotShown,
    /// All numbers are recorded, and none of the rules gives this task.
    Unexplained,
}

impl Reason {
    /// Every reason, in the order of the tables.
    pub const ALL: [Reason; 10] = [
        Reason::Only,
        Reason::EarliestDeadline,
        Reason::GroupSlice,
        Reason::Group,
        Reason::Buddy,
        Reason::Delayed,
        Reason::NotRecorded,
        Reason::PossiblyEarliest,
        Reason::NotShown,
        Reason::Unexplained,
    ];

    /// The words for the reason in a text.
    pub fn words(self) -> &'static str {
        match self {
            Reason::Only => "the only task of the fair class",
            Reason::EarliestDeadline => "the earliest eligible deadline",
            Reason::GroupSlice => "its group, within its slice",
            Reason::Group => "a choice between groups",
            Reason::Buddy => "the buddy of the task that left",
            Reason::Delayed => "eligible with delayed tasks",
            Reason::NotRecorded => "numbers of other tasks not recorded",
            Reason::PossiblyEarliest => "possibly the earliest deadline",
            Reason::NotShown => "no rule shown by the model",
            Reason::Unexplained => "unexplained",
        }
    }
}

/// The numbers by which a task is picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) vruntime: i64,
    pub(crate) deadline: i64,
    /// The weight of the task; that of nice 0 is 1024.
    pub(crate) weight: u64,
    /// The request, in nanoseconds.
    pub(crate) slice: Option<u64>,
}

/// A task that could be picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) pid: Pid,
    pub(crate) group: GroupKey,
    /// The run queue of the task's group, where it was recorded.
    pub(crate) queue: Option<u32>,
    /// The numbers of the task; nothing where they were not recorded.
    pub(crate) numbers: Option<Numbers>,
}

/// The difference of virtual run times that tasks of one run queue do not come near to: a second.
const FAR: u64 = 1_000_000_000;

impl Candidate {
    /// Whether another task is certainly on another run queue.
    pub(crate) fn is_apart_from(&self, other: &Candidate) -> bool {
        let distance = |one: Numbers, two: Numbers| one.vruntime.wrapping_sub(two.vruntime).unsigned_abs();
        // Whatever queue it was picked from: a task that changes its cgroup as it runs is on another one afterwards (groups-6.12.dat).
        let is_far = self.numbers.zip(other.numbers).is_some_and(|(one, two)| distance(one, two) > FAR);
        is_far
            || match (self.queue, other.queue) {
                (Some(one), Some(two)) => one != two,
                _ => self.group.differs(other.group),
            }
    }
}

impl Candidate {
    /// Whether another task, which is not certainly elsewhere, is certainly on the same run queue.
    fn is_certainly_with(&self, other: &Candidate) -> bool {
        match (self.queue, other.queue) {
            (Some(one), Some(two)) => one == two,
            _ => self.group == other.group && self.group != GroupKey::Unknown,
        }
    }
}

/// The surroundings of a pick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The number of tasks and groups on the run queue of the picked task's group, where it was recorded.
    pub(crate) length: Option<u16>,
    /// Whether the kernel prefers the task that was woken last, and the picked one is that.
    pub(crate) is_buddy: bool,
    /// Whether tasks that sleep can be queued still.
    pub(crate) delays: bool,
    /// The rule that the kernel's own order shows.
    pub(crate) rule: ChoiceRule,
}

/// A pick with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) reason: Reason,
    /// The lag of the task in nanoseconds of its own run time; nothing where numbers that it depends on are not recorded.
    pub(crate) lag_ns: Option<i64>,
    /// The virtual time of the run queue, where the lag is known.
    pub(crate) time: Option<i64>,
}

/// The mean of the virtual run times by weight.
fn virtual_time(tasks: &[Numbers]) -> i64 {
    let Some(first) = tasks.first() else { return 0 };
    let weight: i128 = tasks.iter().map(|task| i128::from(task.weight)).sum();
    let sum: i128 =
        tasks.iter().map(|task| i128::from(task.vruntime.wrapping_sub(first.vruntime)) * i128::from(task.weight)).sum();
    first.vruntime.wrapping_add((sum / weight.max(1)) as i64)
}

/// Finds the rule by which the kernel picked a task that has numbers, among others that could run on the CPU.
pub(crate) fn explain(picked: &Candidate, numbers: Numbers, rivals: &[Candidate], around: Surroundings) -> Verdict {
    let apart = rivals.iter().filter(|rival| picked.is_apart_from(rival)).count();
    let near = rivals.iter().filter(|rival| !picked.is_apart_from(rival));
    let same: Vec<Numbers> = near.clone().filter_map(|rival| rival.numbers).collect();
    let is_certain = near.clone().all(|rival| picked.is_certainly_with(rival));
    let unknown = near.count() - same.len();
    let all: Vec<Numbers> = std::iter::once(numbers).chain(same.iter().copied()).collect();
    let is_complete = unknown == 0
        && is_certain
        && match around.length {
            Some(length) => usize::from(length) == all.len(),
            None => apart == 0,
        };
    let time = virtual_time(&all);
    // The mean is rounded.
    let is_eligible = |task: &Numbers| time.wrapping_sub(task.vruntime) >= -1;
    let is_earlier = |task: &Numbers| task.deadline.wrapping_sub(numbers.deadline) < 0;
    let is_beaten = same.iter().any(|rival| is_earlier(rival) && is_eligible(rival));
    let reason = if rivals.is_empty() {
        Reason::Only
    } else if let Some(reason) = by_order(around) {
        reason
    } else if same.is_empty() && unknown == 0 {
        Reason::Group
    } else if unknown > 0 {
        Reason::NotRecorded
    } else if !is_beaten && is_eligible(&numbers) {
        if is_certain { Reason::EarliestDeadline } else { Reason::PossiblyEarliest }
    } else if !is_certain {
        Reason::Group
    } else if around.is_buddy && is_eligible(&numbers) {
        Reason::Buddy
    } else if apart > 0 && around.length.is_none_or(|length| usize::from(length) > all.len()) {
        Reason::Group
    } else if around.length.map_or(around.delays, |length| usize::from(length) > all.len()) && !is_beaten {
        Reason::Delayed
    } else {
        Reason::Unexplained
    };
    let lag = time.wrapping_sub(numbers.vruntime);
    Verdict { reason, lag_ns: is_complete.then(|| real_length(lag, numbers.weight)), time: is_complete.then_some(time) }
}

/// The reason that the kernel's own order of the run queues shows.
fn by_order(around: Surroundings) -> Option<Reason> {
    Some(match around.rule {
        ChoiceRule::Unrecorded => return None,
        ChoiceRule::Only => Reason::Only,
        ChoiceRule::Earliest => Reason::EarliestDeadline,
        ChoiceRule::Protected => Reason::GroupSlice,
        ChoiceRule::PossiblyEarliest => Reason::PossiblyEarliest,
        ChoiceRule::Beaten if around.is_buddy => Reason::Buddy,
        ChoiceRule::Beaten | ChoiceRule::Ineligible => Reason::Unexplained,
    })
}
