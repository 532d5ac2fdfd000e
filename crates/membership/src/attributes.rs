//! The parameters of tasks beside policy and priority: those of deadline tasks, and clamps of the utilization.

use parse::Record;
use sched::Dur;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The parameters of a task of `SCHED_DEADLINE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadlineParams {
    /// The time for which the task may run in each period, in nanoseconds.
    pub runtime_ns: Dur,
    /// The deadline of each job after its release, in nanoseconds.
    pub deadline_ns: Dur,
    /// The period in nanoseconds.
    pub period_ns: Dur,
}

impl DeadlineParams {
    /// The runtime, the deadline and the period in nanoseconds.
    pub(crate) fn in_ns(self) -> [u64; 3] {
        [self.runtime_ns.0, self.deadline_ns.0, self.period_ns.0]
    }

    /// The parameters with these times in nanoseconds.
    pub(crate) fn of_ns([runtime, deadline, period]: [u64; 3]) -> DeadlineParams {
        DeadlineParams { runtime_ns: Dur(runtime), deadline_ns: Dur(deadline), period_ns: Dur(period) }
    }
}

impl fmt::Display for DeadlineParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeadlineParams { runtime_ns, deadline_ns, period_ns } = self;
        write!(f, "runtime {}, deadline {}", runtime_ns.human(), deadline_ns.human())?;
        if period_ns == deadline_ns { Ok(()) } else { write!(f, ", period {}", period_ns.human()) }
    }
}

/// The greatest utilization: that of a task which needs all of the largest CPU.
const MOST: u32 = 1024;

/// The clamps of a task's utilization, from 0 to 1,024, where they are not the kernel's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UtilClamp {
    /// The least utilization; absent where it is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u16>,
    /// The greatest utilization; absent where it is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u16>,
}

impl UtilClamp {
    /// The clamps as a list has them: the values of each task, of which those of the kernel's defaults are nothing.
    pub(crate) fn of_list(min: u32, max: u32, is_fair: bool) -> UtilClamp {
        let default_min = if is_fair { 0 } else { MOST };
        UtilClamp { min: value(min).filter(|_| min != default_min), max: value(max).filter(|_| max != MOST) }
    }

    /// Whether both clamps are the defaults.
    pub(crate) fn is_default(self) -> bool {
        self == UtilClamp::default()
    }
}

/// A clamp in the kernel's range; nothing for other numbers, with which a call takes a clamp back.
fn value(number: u32) -> Option<u16> {
    u16::try_from(number).ok().filter(|_| number <= MOST)
}

impl fmt::Display for UtilClamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, "uclamp {min} to {max}"),
            (Some(min), None) => write!(f, "uclamp from {min}"),
            (None, Some(max)) => write!(f, "uclamp to {max}"),
            (None, None) => Ok(()),
        }
    }
}

/// The flags of `struct sched_attr` that the clamps need.
const CLAMP_MIN: i64 = 0x20;
const CLAMP_MAX: i64 = 0x40;
/// The flag of a thread that sets frequencies: its parameters are fake ones.
const SUGOV: i64 = 0x1000_0000;

/// The attributes that a call sets beside the policy, as far as its record has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallAttributes {
    /// The runtime, the deadline and the period in nanoseconds, which count for a deadline task.
    deadline: Option<[u64; 3]>,
    /// The least utilization that the call sets, or the number with which it takes the clamp back.
    min: Option<u32>,
    /// The greatest utilization that the call sets, or the number with which it takes the clamp back.
    max: Option<u32>,
    /// Whether the call keeps the policy of the task.
    pub(crate) keeps_policy: bool,
}

impl CallAttributes {
    /// The attributes in the record of a call.
    pub(crate) fn of(record: &Record<'_>) -> CallAttributes {
        let time = |field| record.number(field).and_then(|time| u64::try_from(time).ok());
        let flags = record.number("flags").unwrap_or(0);
        // Minus one is one of 32 bits, whatever the type of the field.
        let clamp = |field, flag| record.number(field).filter(|_| flags & flag != 0).map(|number| number as u32);
        CallAttributes {
            deadline: (|| Some([time("runtime")?, time("deadline")?, time("period")?]))()
                .filter(|_| flags & SUGOV == 0),
            min: clamp("util_min", CLAMP_MIN),
            max: clamp("util_max", CLAMP_MAX),
            keeps_policy: false,
        }
    }

    /// The parameters that the call sets, if it is one on a deadline task.
    pub(crate) fn deadline_params(&self) -> Option<DeadlineParams> {
        let [runtime, deadline, period] = self.deadline.filter(|[_, deadline, _]| *deadline > 0)?;
        Some(DeadlineParams::of_ns([runtime, deadline, if period > 0 { period } else { deadline }]))
    }

    /// The clamps behind the call.
    pub(crate) fn clamp(&self, before: UtilClamp) -> UtilClamp {
        UtilClamp { min: self.min.map_or(before.min, value), max: self.max.map_or(before.max, value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_are_set_and_taken_back_one_by_one() {
        let call = |min, max| CallAttributes { min, max, ..CallAttributes::default() };
        let both = call(Some(128), Some(512)).clamp(UtilClamp::default());
        assert_eq!((both.to_string().as_str(), both.is_default()), ("uclamp 128 to 512", false));
        let max = call(Some(u32::MAX), None).clamp(both);
        assert_eq!((max.to_string().as_str(), max.min, max.max), ("uclamp to 512", None, Some(512)));
        assert!(call(None, Some(u32::MAX)).clamp(max).is_default());
        assert_eq!(UtilClamp::of_list(256, 1024, true).to_string(), "uclamp from 256");
        assert!(UtilClamp::of_list(0, 1024, true).is_default() && UtilClamp::of_list(1024, 1024, false).is_default());
        assert_eq!(UtilClamp::of_list(0, 1024, false).min, Some(0), "a real-time task with less than the default");
    }

    #[test]
    fn a_period_of_zero_is_the_deadline() {
        let params = |times| CallAttributes { deadline: Some(times), ..CallAttributes::default() }.deadline_params();
        let text = |times| params(times).map(|params| params.to_string());
        assert_eq!(text([2_000_000, 10_000_000, 0]).as_deref(), Some("runtime 2.00 ms, deadline 10.00 ms"));
        let periodic = "runtime 2.00 ms, deadline 5.00 ms, period 10.00 ms";
        assert_eq!(text([2_000_000, 5_000_000, 10_000_000]).as_deref(), Some(periodic));
        assert_eq!(params([0, 0, 0]), None, "a call on another task");
    }
}
