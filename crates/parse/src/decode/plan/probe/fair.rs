//! Records of requests to reschedule, of what the fair class picks, of contention for the kernel's locks, of idle states, and of softirqs
//! that are raised.
//!
//! The group is `lb`, as `schedviz record --why` has it, or `sv`, which recordings by hand have: with the names `resched`,
//! `switch` and `wake`.

use super::At;
use super::order::OrderAt;
use crate::bytes::{Endian, sign_extend};
use crate::decode::format::EventFormat;
use sched::Pid;
use sched::probe::{ChoiceRule, Entity, Left, LeftTimes, Probe, RecordedChoice, VirtualTime};
use std::num::NonZeroU32;

/// The places of the numbers by which EEVDF picks a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntityAt {
    vruntime: At,
    deadline: At,
    slice: Option<At>,
    weight: Option<At>,
}

/// The places of the numbers of the task that leaves, in the record of a pick.
#[derive(Clone, Copy, Debug)]
pub(super) enum LeftAt {
    /// The virtual run time alone.
    Time(At),
    /// All numbers, and by which the task can run on: it was preempted, or its state is that.
    Whole { vruntime: At, deadline: At, vlag: At, preempt: At, state: At },
}

impl LeftAt {
    /// The places in the record that `schedviz record --why=picks` makes.
    fn of(format: &EventFormat) -> Option<LeftAt> {
        let at = |name: &str| At::of(format, name);
        let (vruntime, deadline, vlag) = (at("prev_vruntime")?, at("prev_deadline")?, at("prev_vlag")?);
        Some(LeftAt::Whole { vruntime, deadline, vlag, preempt: at("preempt")?, state: at("prev_state")? })
    }
}

/// The fields to read, by the kind of the record.
#[derive(Clone, Copy, Debug)]
pub(super) enum FairAt {
    Reschedules { pid: At, cpu: At, flag: At },
    Picks { pid: At, entity: EntityAt, left: Option<LeftAt>, queue: Option<(At, At)>, order: Option<OrderAt> },
    Puts { pid: At, entity: EntityAt, vlag: At, delayed: Option<At>, queue: Option<At> },
    Wakes { pid: At, vlag: At },
    Contends { lock: At, begins: bool },
    IdleState { cpu: At, state: At },
    Raises { softirq: At },
}

impl FairAt {
    /// The decoding for a format, if it is one of these records and has the fields that it needs.
    pub(super) fn of(format: &EventFormat) -> Option<FairAt> {
        let at = |name: &str| At::of(format, name);
        let entity = || {
            let (slice, weight) = (at("slice"), at("weight"));
            Some(EntityAt { vruntime: at("vruntime")?, deadline: at("deadline")?, slice, weight })
        };
        Some(match (format.system.as_str(), format.name.as_str()) {
            ("lb" | "sv", "resched") => FairAt::Reschedules { pid: at("pid")?, cpu: at("cpu")?, flag: at("tif")? },
            ("lb", "pick") => {
                let queue = at("queue").zip(at("nr"));
                let order = OrderAt::of(format);
                FairAt::Picks { pid: at("pid")?, entity: entity()?, left: LeftAt::of(format), queue, order }
            }
            ("sv", "switch") => {
                let left = at("pvruntime").map(LeftAt::Time);
                FairAt::Picks { pid: at("next")?, entity: entity()?, left, queue: None, order: None }
            }
            ("lb", "put") => {
                let (delayed, queue) = (at("delayed"), at("queue"));
                FairAt::Puts { pid: at("pid")?, entity: entity()?, vlag: at("vlag")?, delayed, queue }
            }
            ("sv", "wake") => FairAt::Wakes { pid: at("pid")?, vlag: at("vlag")? },
            ("lock", "contention_begin") => FairAt::Contends { lock: at("lock_addr")?, begins: true },
            ("lock", "contention_end") => FairAt::Contends { lock: at("lock_addr")?, begins: false },
            ("irq", "softirq_raise") => FairAt::Raises { softirq: at("vec")? },
            ("power", "cpu_idle") => FairAt::IdleState { cpu: at("cpu_id")?, state: at("state")? },
            _ => return None,
        })
    }

    /// The record; nothing if it is too short, or names a CPU that no machine has.
    pub(super) fn probe(&self, p: &[u8], e: Endian) -> Option<Probe> {
        let time = |at: At| at.uint(p, e).map(|raw| VirtualTime::of(sign_extend(raw, at.size)));
        let entity = |at: &EntityAt| {
            let number = |at: At| NonZeroU32::new(u32::try_from(at.uint(p, e)?).ok()?);
            Some(Entity {
                vruntime: time(at.vruntime)?,
                deadline: time(at.deadline)?,
                slice: at.slice.and_then(number),
                weight: at.weight.and_then(number),
            })
        };
        Some(match self {
            FairAt::Reschedules { pid, cpu, flag } => Probe::Reschedules {
                pid: Pid(pid.int(p, e)?),
                cpu: cpu.cpu(p, e)?,
                flag: u8::try_from(flag.int(p, e)?).ok()?,
            },
            FairAt::Picks { pid, entity: at, left, queue, order } => {
                let left = left.and_then(|left| match left {
                    LeftAt::Time(at) => Some(Left::At(time(at)?)),
                    LeftAt::Whole { vruntime, deadline, vlag, preempt, state } => {
                        let can_run = preempt.uint(p, e)? != 0 || state.uint(p, e)? == 0;
                        let vruntime = time(vruntime)?;
                        Some(if can_run {
                            Left::Waits(vruntime, time(deadline)?)
                        } else {
                            Left::Sleeps(vruntime, time(vlag)?)
                        })
                    }
                });
                let (left_kind, left) = LeftTimes::of(left);
                let number = |(address, nr): (At, At)| Some((queue_number(address.uint(p, e)?)?, nr.uint(p, e)?));
                let (queue, length) = queue.and_then(number).unzip();
                let (length, entity) = (length.unwrap_or(0), entity(at)?);
                let weight = at.weight.and_then(|at| at.uint(p, e)).unwrap_or(0);
                let own = (entity.vruntime.ns(), entity.deadline.ns(), weight);
                let rule = order.filter(|_| length > 0).and_then(|order| order.rule(p, e, own, length));
                let choice = RecordedChoice::of(length, rule.unwrap_or(ChoiceRule::Unrecorded));
                Probe::Picks { pid: Pid(pid.int(p, e)?), entity, left_kind, left, queue, choice }
            }
            FairAt::Puts { pid, entity: at, vlag, delayed, queue } => Probe::Puts {
                pid: Pid(pid.int(p, e)?),
                entity: entity(at)?,
                vlag: time(*vlag)?,
                delayed: delayed.and_then(|at| at.uint(p, e)).is_some_and(|raw| raw != 0),
                queue: queue.and_then(|at| queue_number(at.uint(p, e)?)),
            },
            FairAt::Wakes { pid, vlag } => Probe::Wakes { pid: Pid(pid.int(p, e)?), vlag: time(*vlag)? },
            FairAt::Contends { lock, begins } => {
                let address = lock.uint(p, e)?;
                Probe::Contends { lock: [(address >> 32) as u32, address as u32], begins: *begins }
            }
            FairAt::Raises { softirq } => Probe::Raises { softirq: u8::try_from(softirq.uint(p, e)?).ok()? },
            FairAt::IdleState { cpu, state } => {
                // The kernel writes −1 where a CPU leaves its state.
                let state = state.uint(p, e)? as u32;
                let state = (state != u32::MAX).then(|| u8::try_from(state).unwrap_or(u8::MAX));
                Probe::IdleState { cpu: cpu.cpu(p, e)?, state }
            }
        })
    }
}

/// The number of a run queue by its address. A run queue is aligned to a line of the cache, and larger than one.
fn queue_number(address: u64) -> Option<NonZeroU32> {
    NonZeroU32::new((address >> 6) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of a record whose fields have these names and sizes, one behind the other from byte 8 on.
    fn format(system: &str, name: &str, fields: &[(&str, usize)]) -> EventFormat {
        let (mut text, mut offset) = (format!("name: {name}\nID: 9\nformat:\n"), 8);
        for (field, size) in fields {
            text.push_str(&format!("\tfield:u{} {field};\toffset:{offset};\tsize:{size};\tsigned:0;\n", size * 8));
            offset += size;
        }
        EventFormat::parse(system, &text).unwrap()
    }

    fn payload(words: &[&[u8]]) -> Vec<u8> {
        [vec![0; 8], words.concat()].concat()
    }

    #[test]
    fn a_request_names_the_task_its_cpu_and_the_flag() {
        let at = FairAt::of(&format("lb", "resched", &[("pid", 4), ("cpu", 4), ("tif", 4)])).unwrap();
        let bytes = payload(&[&7_u32.to_le_bytes(), &3_u32.to_le_bytes(), &5_u32.to_le_bytes()]);
        let expected = Probe::Reschedules { pid: Pid(7), cpu: sched::Cpu(3), flag: 5 };
        assert_eq!(at.probe(&bytes, Endian::Little), Some(expected));
        assert_eq!(at.probe(&bytes[..18], Endian::Little), None);
    }

    #[test]
    fn the_numbers_of_a_pick_may_lack_slice_and_weight() {
        let fields = [("next", 4), ("vruntime", 8), ("deadline", 8), ("pvruntime", 8)];
        let at = FairAt::of(&format("sv", "switch", &fields)).unwrap();
        let [vruntime, deadline, left] = [100_u64, 250, u64::MAX].map(u64::to_le_bytes);
        let bytes = payload(&[&7_u32.to_le_bytes(), &vruntime, &deadline, &left]);
        let entity =
            Entity { vruntime: VirtualTime::of(100), deadline: VirtualTime::of(250), slice: None, weight: None };
        let (left_kind, left) = LeftTimes::of(Some(Left::At(VirtualTime::of(-1))));
        let expected =
            Probe::Picks { pid: Pid(7), entity, left_kind, left, queue: None, choice: RecordedChoice::default() };
        assert_eq!(at.probe(&bytes, Endian::Little), Some(expected));
        assert!(FairAt::of(&format("lb", "switch", &fields)).is_none());
    }

    #[test]
    fn a_pick_has_the_deadline_or_the_lag_of_the_task_that_leaves() {
        let times = ["vruntime", "deadline", "prev_vruntime", "prev_deadline", "prev_vlag"].map(|name| (name, 8));
        let fields = [&[("pid", 4)][..], &times, &[("preempt", 1), ("prev_state", 4)]].concat();
        let at = FairAt::of(&format("lb", "pick", &fields)).unwrap();
        let left = |preempt: u8, state: u32| {
            let times = [100_u64, 250, 70, 90, u64::MAX].map(u64::to_le_bytes).concat();
            let bytes = payload(&[&7_u32.to_le_bytes(), &times, &[preempt], &state.to_le_bytes()]);
            match at.probe(&bytes, Endian::Little) {
                Some(Probe::Picks { left_kind, left, .. }) => left.numbers(left_kind),
                other => panic!("{other:?}"),
            }
        };
        let [vruntime, deadline, lag] = [70, 90, -1].map(VirtualTime::of);
        assert_eq!(left(0, 0), Some(Left::Waits(vruntime, deadline)));
        assert_eq!(left(1, 2), Some(Left::Waits(vruntime, deadline)));
        assert_eq!(left(0, 1), Some(Left::Sleeps(vruntime, lag)));
    }

    #[test]
    fn a_lock_has_its_address() {
        let at = FairAt::of(&format("lock", "contention_begin", &[("lock_addr", 8), ("flags", 4)])).unwrap();
        let bytes = payload(&[&0xffff_8000_0000_0001_u64.to_le_bytes(), &[1, 0, 0, 0]]);
        let expected = Probe::Contends { lock: [0xffff_8000, 1], begins: true };
        assert_eq!(at.probe(&bytes, Endian::Little), Some(expected));
    }

    #[test]
    fn a_softirq_has_its_number() {
        let at = FairAt::of(&format("irq", "softirq_raise", &[("vec", 4)])).unwrap();
        let probe = |vec: u32| at.probe(&payload(&[&vec.to_le_bytes()]), Endian::Little);
        assert_eq!(probe(3), Some(Probe::Raises { softirq: 3 }));
        assert_eq!(probe(300), None);
    }

    #[test]
    fn a_cpu_enters_and_leaves_an_idle_state() {
        let at = FairAt::of(&format("power", "cpu_idle", &[("state", 4), ("cpu_id", 4)])).unwrap();
        for (word, state) in [(2, Some(2)), (u32::MAX, None), (70_000, Some(255))] {
            let bytes = payload(&[&u32::to_le_bytes(word), &3_u32.to_le_bytes()]);
            let expected = Probe::IdleState { cpu: sched::Cpu(3), state };
            assert_eq!(at.probe(&bytes, Endian::Little), Some(expected));
        }
    }
}
