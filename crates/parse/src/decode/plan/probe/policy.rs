//! Records of the calls that set the policy of a task: those of the probe `set_params`, and of the system calls.

use crate::bytes::{Endian, sign_extend};
use crate::decode::format::EventFormat;
use crate::decode::plan::At;
use sched::Pid;
use sched::probe::Probe;

/// The number of `SCHED_IDLE` in the kernel's interface.
const SCHED_IDLE: i64 = 5;

/// The fields to read, by the part of the call that is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) enum PolicyAt {
    /// The call is entered; a record without the policy shows none.
    Entered { pid: At, policy: Option<At> },
    /// The call returns.
    Returns { ret: At },
    /// The call has returned, with what it was entered with.
    Whole { pid: At, policy: At, ret: At },
}

impl PolicyAt {
    /// The decoding for a format, if it is one of these records and has the fields that it needs.
    pub(super) fn of(format: &EventFormat) -> Option<PolicyAt> {
        let at = |name: &str| At::of(format, name);
        Some(match (format.system.as_str(), format.name.as_str()) {
            ("lb", "set_params") => match (at("pid"), at("policy"), at("ret")?) {
                (Some(pid), Some(policy), ret) => PolicyAt::Whole { pid, policy, ret },
                (.., ret) => PolicyAt::Returns { ret },
            },
            ("lb", "set_params_in") | ("syscalls", "sys_enter_sched_setscheduler") => {
                PolicyAt::Entered { pid: at("pid")?, policy: Some(at("policy")?) }
            }
            ("syscalls", "sys_enter_sched_setattr") => PolicyAt::Entered { pid: at("pid")?, policy: None },
            ("syscalls", "sys_exit_sched_setscheduler" | "sys_exit_sched_setattr") => {
                PolicyAt::Returns { ret: at("ret")? }
            }
            _ => return None,
        })
    }

    /// The record; nothing if it is too short.
    pub(super) fn probe(&self, p: &[u8], e: Endian) -> Option<Probe> {
        let int = |at: At| at.uint(p, e).map(|raw| sign_extend(raw, at.size));
        // A negative policy is that which the task has (SETPARAM_POLICY), and 0x40000000 is a flag.
        let sets = |pid: &At, policy: Option<i64>, is_entered: bool| {
            let pid = Pid(pid.int(p, e)?);
            Some(match policy {
                Some(..0) => Probe::PolicyCallReturns { failed: false },
                policy => {
                    let is_sched_idle = policy.is_some_and(|policy| policy & 0xff == SCHED_IDLE);
                    Probe::SetsPolicy { pid, is_sched_idle, is_entered }
                }
            })
        };
        match self {
            PolicyAt::Entered { pid, policy: None } => sets(pid, None, true),
            PolicyAt::Entered { pid, policy: Some(policy) } => sets(pid, Some(int(*policy)?), true),
            PolicyAt::Returns { ret } => Some(Probe::PolicyCallReturns { failed: int(*ret)? != 0 }),
            PolicyAt::Whole { pid, policy, ret } => match int(*ret)? {
                0 => sets(pid, Some(int(*policy)?), false),
                _ => Some(Probe::PolicyCallReturns { failed: true }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of a format of these fields, each with its size and its number, little-endian.
    fn probe(system: &str, name: &str, fields: &[(&str, usize, i64)]) -> Option<Probe> {
        let (mut text, mut payload) = (format!("name: {name}\nID: 9\nformat:\n"), vec![0; 8]);
        for (field, size, number) in fields {
            let offset = payload.len();
            text.push_str(&format!("\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:0;\n"));
            payload.extend(&number.to_le_bytes()[..*size]);
        }
        let format = EventFormat::parse(system, &text).unwrap();
        PolicyAt::of(&format)?.probe(&payload, Endian::Little)
    }

    #[test]
    fn the_calls_that_set_a_policy_are_read() {
        let sets =
            |pid, is_sched_idle, is_entered| Some(Probe::SetsPolicy { pid: Pid(pid), is_sched_idle, is_entered });
        let returns = |failed| Some(Probe::PolicyCallReturns { failed });
        let whole = |policy, ret| {
            probe("lb", "set_params", &[("s32 pid", 4, 7), ("s32 policy", 4, policy), ("s32 ret", 4, ret)])
        };
        assert_eq!(
            [whole(5, 0), whole(0, 0), whole(5 | 1 << 30, 0)],
            [sets(7, true, false), sets(7, false, false), sets(7, true, false)]
        );
        assert_eq!([whole(5, -1), whole(-1, 0)], [returns(true), returns(false)]);
        let halves =
            ["set_params_in", "set_params"].map(|name| probe("lb", name, &[("s32 pid", 4, 7), ("s32 policy", 4, 5)]));
        assert_eq!(halves, [sets(7, true, true), None], "the second half lacks its result");
        let enter = |name, fields: &[_]| probe("syscalls", name, fields);
        let of_call = [("pid_t pid", 8, 0), ("int policy", 8, 5)];
        assert_eq!(enter("sys_enter_sched_setscheduler", &of_call), sets(0, true, true));
        assert_eq!(enter("sys_enter_sched_setattr", &of_call[..1]), sets(0, false, true));
        assert_eq!(enter("sys_exit_sched_setscheduler", &[("long ret", 8, -22)]), returns(true));
        assert_eq!(enter("sys_enter_sched_setaffinity", &of_call), None);
    }
}
