//! Records of probes on the balancer: the group `lb`, with the names and the fields that `schedviz record --why` gives them.

mod fair;
mod order;
mod policy;

use super::{At, CommAt, FieldShape};
use crate::bytes::{Endian, sign_extend};
use crate::decode::format::EventFormat;
use fair::FairAt;
use policy::PolicyAt;
use sched::probe::{AtMost4s, Balancing, CgroupId, Examined, Probe, RunQueue, Throttle};
use sched::{Comm, Cpu, CpuMask, Pid};

/// The places of what a run queue shows when it is about to be empty.
#[derive(Clone, Copy, Debug)]
struct RunQueueAt {
    overloaded: Option<At>,
    pending: Option<At>,
    avg_idle: Option<At>,
    cost: Option<At>,
}

/// The places of what an examined task shows.
#[derive(Clone, Copy, Debug)]
struct ExaminedAt {
    on_cpu: Option<At>,
    allowed: Option<At>,
}

/// The places of the kind of a balance, and of the name of its domain.
#[derive(Clone, Copy, Debug)]
struct AttemptAt {
    idle: Option<At>,
    domain: CommAt,
}

/// The places of what throttling shows, and whether it takes the tasks that are queued.
#[derive(Clone, Copy, Debug)]
struct ThrottleAt {
    cpu: Option<At>,
    cgroup: Option<At>,
    takes_queue: bool,
}

/// The facts about a trace on which the meaning of its probes depends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Era {
    /// The kernel has the kinds of balance with the numbers from before 6.10.
    before_6_10: bool,
    /// Tasks are throttled one by one (6.18 and later), each with a record.
    throttles_tasks: bool,
}

impl Era {
    /// Returns the era of a trace with these formats, recorded on a kernel of this release.
    pub(super) fn of(formats: &[EventFormat], release: Option<(u32, u32)>) -> Era {
        let throttles_tasks = formats.iter().any(|format| format.system == "lb" && format.name == "throttle_task");
        Era { before_6_10: Balancing::has_old_numbers(release), throttles_tasks }
    }
}

/// `SCA_MIGRATE_DISABLE` and `SCA_MIGRATE_ENABLE`: the kernel sets the one CPU that a task may not leave for the moment, and
/// takes that back.
const HOLDS_MIGRATION: i64 = 0x02 | 0x04;

/// The place of a set of CPUs: a bit for each, in words.
#[derive(Clone, Copy, Debug)]
struct MaskAt {
    offset: usize,
    words: usize,
    /// The size of a word.
    word: usize,
}

impl MaskAt {
    fn of(format: &EventFormat) -> Option<MaskAt> {
        let field = format.field("mask")?;
        let word = match field.shape {
            FieldShape::Scalar | FieldShape::Pointer => field.size,
            FieldShape::Array { element } => element,
            _ => return None,
        };
        let words = field.size.checked_div(word)?;
        matches!(word, 4 | 8).then_some(MaskAt { offset: field.offset, words, word })
    }

    /// The set, if the record has it and it fits into an event. `count` is the number of its CPUs, where the record has that:
    /// with another number the mask is a part of the set.
    fn mask(self, payload: &[u8], endian: Endian, count: Option<i64>) -> Option<CpuMask> {
        let bits = self.word.checked_mul(8)?;
        let mut cpus = Vec::new();
        for nth in 0..self.words {
            let word = endian.uint(payload, self.offset.checked_add(nth.checked_mul(self.word)?)?, self.word)?;
            let first = nth.checked_mul(bits)?;
            let set = (0..bits).filter(|bit| word >> bit & 1 == 1).map(|bit| first.saturating_add(bit));
            for cpu in set {
                cpus.push(Cpu(u32::try_from(cpu).ok().filter(|cpu| *cpu < Cpu::LIMIT)?));
            }
        }
        let is_whole = count.is_none_or(|count| usize::try_from(count) == Ok(cpus.len()));
        CpuMask::of(cpus).filter(|_| is_whole)
    }
}

/// The fields to read of a probe's record, by the kind of the probe.
#[derive(Clone, Copy, Debug)]
enum ProbeFields {
    NewIdleBegins(RunQueueAt),
    NewIdleEnds { pulled: At },
    GoesIdle(RunQueueAt),
    AttemptBegins(AttemptAt),
    AttemptEnds { attempt: AttemptAt, moved: At },
    Searched { group: At, imbalance: Option<At>, how: Option<At> },
    Examines(ExaminedAt),
    Examined { task: ExaminedAt, ok: At },
    NeedsActive { active: At },
    Detaches { pid: At, src: At, dst: At, idle: Option<At> },
    ActiveBalances { src: At, dst: At },
    MovesQueued { pid: At, to: At },
    Swaps { one: [At; 2], other: [At; 2] },
    Kicked,
    Periodic { idle: Option<At> },
    NumaLooked { pid: Option<At>, best: Option<At> },
    FallsBack { pid: At },
    Length { cpu: At, nr: At, change: At },
    Throttles(ThrottleAt),
    Unthrottles(ThrottleAt),
    ThrottlesTask { pid: At, cgroup: At },
    Joins { pid: At, cgroup: At, forked: bool },
    Allows { pid: At, flags: Option<At>, count: Option<At>, mask: MaskAt },
    SetsPolicy(PolicyAt),
    Fair(FairAt),
}

/// The way to decode the records of one probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeAt {
    fields: ProbeFields,
    before_6_10: bool,
}

impl ProbeAt {
    /// The decoding for a format, if it is one of the probes and has the fields that it needs.
    pub(super) fn of(format: &EventFormat, era: Era) -> Option<ProbeAt> {
        let before_6_10 = era.before_6_10;
        if let Some(fair) = FairAt::of(format) {
            return Some(ProbeAt { fields: ProbeFields::Fair(fair), before_6_10 });
        }
        if let Some(policy) = PolicyAt::of(format) {
            return Some(ProbeAt { fields: ProbeFields::SetsPolicy(policy), before_6_10 });
        }
        if format.system != "lb" {
            return None;
        }
        let at = |name: &str| At::of(format, name);
        let queue = || RunQueueAt {
            overloaded: at("overloaded"),
            pending: at("pending"),
            avg_idle: at("avg_idle"),
            cost: at("cost"),
        };
        let task = || ExaminedAt { on_cpu: at("on_cpu"), allowed: at("allowed") };
        let throttle = || ThrottleAt { cpu: at("cpu"), cgroup: at("cgroup"), takes_queue: !era.throttles_tasks };
        let joins = |forked| Some(ProbeFields::Joins { pid: at("pid")?, cgroup: at("cgroup")?, forked });
        let attempt = || AttemptAt { idle: at("idle"), domain: CommAt::of(format, "name") };
        let fields = match format.name.as_str() {
            "newidle_balance_in" => ProbeFields::NewIdleBegins(queue()),
            "newidle_balance" => ProbeFields::NewIdleEnds { pulled: at("pulled")? },
            "idle" => ProbeFields::GoesIdle(queue()),
            "load_balance_in" => ProbeFields::AttemptBegins(attempt()),
            "load_balance" => ProbeFields::AttemptEnds { attempt: attempt(), moved: at("moved")? },
            "find_busiest_group" => {
                ProbeFields::Searched { group: at("group")?, imbalance: at("imbalance"), how: at("type") }
            }
            "can_migrate_in" => ProbeFields::Examines(task()),
            "can_migrate" => ProbeFields::Examined { task: task(), ok: at("ok")? },
            "need_active" => ProbeFields::NeedsActive { active: at("active")? },
            "detach_task" => {
                ProbeFields::Detaches { pid: at("pid")?, src: at("src")?, dst: at("dst")?, idle: at("idle") }
            }
            "active_balance" => ProbeFields::ActiveBalances { src: at("src")?, dst: at("dst")? },
            "move_queued" => ProbeFields::MovesQueued { pid: at("pid")?, to: at("to")? },
            "swap" => ProbeFields::Swaps { one: [at("pid")?, at("cur")?], other: [at("other")?, at("target")?] },
            "kicked" => ProbeFields::Kicked,
            "domains" => ProbeFields::Periodic { idle: at("idle") },
            "numa_find" => ProbeFields::NumaLooked { pid: at("pid"), best: at("best") },
            "fallback" => ProbeFields::FallsBack { pid: at("pid")? },
            "set_affinity" => {
                ProbeFields::Allows { pid: at("pid")?, flags: at("flags"), count: None, mask: MaskAt::of(format)? }
            }
            // The first word of the CPUs of a task that is woken, with the number of all of them.
            "allowed" => {
                let count = Some(at("allowed")?);
                ProbeFields::Allows { pid: at("pid")?, flags: None, count, mask: MaskAt::of(format)? }
            }
            "nr_running" => ProbeFields::Length { cpu: at("cpu")?, nr: at("nr")?, change: at("change")? },
            "throttle" => ProbeFields::Throttles(throttle()),
            "unthrottle" => ProbeFields::Unthrottles(throttle()),
            "throttle_task" => ProbeFields::ThrottlesTask { pid: at("pid")?, cgroup: at("cgroup")? },
            "group" => joins(false)?,
            "group_fork" => joins(true)?,
            _ => return None,
        };
        Some(ProbeAt { fields, before_6_10 })
    }

    /// The record; nothing if it is too short, or names a CPU that no machine has.
    pub(super) fn probe(&self, p: &[u8], e: Endian) -> Option<Probe> {
        let read = Read { p, e, before_6_10: self.before_6_10 };
        Some(match &self.fields {
            ProbeFields::NewIdleBegins(at) => Probe::NewIdleBegins(read.queue(at)),
            ProbeFields::NewIdleEnds { pulled } => Probe::NewIdleEnds(pulled.int(p, e)?),
            ProbeFields::GoesIdle(at) => Probe::GoesIdle(read.queue(at)),
            ProbeFields::AttemptBegins(at) => Probe::AttemptBegins(read.balancing(at.idle), read.domain(at)),
            ProbeFields::AttemptEnds { attempt, moved } => Probe::AttemptEnds {
                balancing: read.balancing(attempt.idle),
                domain: read.domain(attempt),
                moved: u32::try_from(moved.int(p, e)?).unwrap_or(0),
            },
            ProbeFields::Searched { group, imbalance, how } => Probe::Searched {
                found: group.uint(p, e)? != 0,
                imbalance: imbalance.and_then(|at| u32::try_from(read.int(at)?).ok()),
                how: how.and_then(|at| u8::try_from(read.int(at)?).ok()),
            },
            ProbeFields::Examines(at) => Probe::Examines(read.task(at)),
            ProbeFields::Examined { task, ok } => Probe::Examined(read.task(task), ok.uint(p, e)? != 0),
            ProbeFields::NeedsActive { active } => Probe::NeedsActive(active.uint(p, e)? != 0),
            ProbeFields::Detaches { pid, src, dst, idle } => Probe::Detaches {
                pid: Pid(pid.int(p, e)?),
                src: src.cpu(p, e)?,
                dst: dst.cpu(p, e)?,
                balancing: read.balancing(*idle),
            },
            ProbeFields::ActiveBalances { src, dst } => Probe::ActiveBalances(src.cpu(p, e)?, dst.cpu(p, e)?),
            ProbeFields::MovesQueued { pid, to } => Probe::MovesQueued(Pid(pid.int(p, e)?), to.cpu(p, e)?),
            ProbeFields::Swaps { one, other } => {
                let place = |[pid, cpu]: [At; 2]| Some((Pid(pid.int(p, e)?), cpu.cpu(p, e)?));
                Probe::Swaps { one: place(*one)?, other: place(*other)? }
            }
            ProbeFields::Kicked => Probe::Kicked,
            ProbeFields::Periodic { idle } => Probe::Periodic(read.balancing(*idle)),
            ProbeFields::NumaLooked { pid, best } => Probe::NumaLooked(
                pid.and_then(|at| at.int(p, e)).map_or(Pid(-1), Pid),
                best.and_then(|at| at.cpu(p, e)),
            ),
            ProbeFields::FallsBack { pid } => Probe::FallsBack(Pid(pid.int(p, e)?)),
            ProbeFields::Allows { pid, flags, count, mask } => {
                let pid = Pid(pid.int(p, e)?);
                match flags.and_then(|at| read.int(at)) {
                    Some(flags) if flags & HOLDS_MIGRATION != 0 => Probe::HoldsMigration(pid),
                    _ => Probe::Allows(pid, mask.mask(p, e, count.and_then(|at| read.int(at)))),
                }
            }
            ProbeFields::Length { cpu, nr, change } => {
                Probe::Length { cpu: cpu.cpu(p, e)?, nr: u32::try_from(nr.int(p, e)?).ok()?, change: change.int(p, e)? }
            }
            ProbeFields::Throttles(at) => Probe::Throttles(read.throttle(at)?),
            ProbeFields::Unthrottles(at) => Probe::Unthrottles(read.throttle(at)?),
            ProbeFields::ThrottlesTask { pid, cgroup } => {
                Probe::ThrottlesTask(Pid(pid.int(p, e)?), read.cgroup(*cgroup)?)
            }
            ProbeFields::SetsPolicy(at) => at.probe(p, e)?,
            ProbeFields::Fair(at) => at.probe(p, e)?,
            ProbeFields::Joins { pid, cgroup, forked } => {
                Probe::Joins { pid: Pid(pid.int(p, e)?), cgroup: read.cgroup(*cgroup)?, forked: *forked }
            }
        })
    }
}

/// A record that is read.
struct Read<'p> {
    p: &'p [u8],
    e: Endian,
    before_6_10: bool,
}

impl Read<'_> {
    fn int(&self, at: At) -> Option<i64> {
        at.uint(self.p, self.e).map(|raw| sign_extend(raw, at.size))
    }

    fn flag(&self, at: Option<At>) -> Option<bool> {
        Some(at?.uint(self.p, self.e)? != 0)
    }

    fn ns(&self, at: Option<At>) -> Option<AtMost4s> {
        Some(AtMost4s::of(at?.uint(self.p, self.e)?))
    }

    fn balancing(&self, idle: Option<At>) -> Balancing {
        Balancing::of(idle.and_then(|at| self.int(at)), self.before_6_10)
    }

    fn domain(&self, at: &AttemptAt) -> Comm {
        at.domain.comm(self.p, self.e)
    }

    fn queue(&self, at: &RunQueueAt) -> RunQueue {
        RunQueue {
            overloaded: self.flag(at.overloaded),
            pending: self.flag(at.pending),
            avg_idle: self.ns(at.avg_idle),
            cost: self.ns(at.cost),
        }
    }

    fn cgroup(&self, at: At) -> Option<CgroupId> {
        at.uint(self.p, self.e).map(CgroupId::new)
    }

    /// Reads a throttling; `None` if one of the fields that the probe has cannot be read.
    fn throttle(&self, at: &ThrottleAt) -> Option<Throttle> {
        let (cpu, cgroup) = (at.cpu.map(|at| at.cpu(self.p, self.e)), at.cgroup.map(|at| self.cgroup(at)));
        let is_whole = cpu != Some(None) && cgroup != Some(None);
        is_whole.then_some(Throttle { cpu: cpu.flatten(), cgroup: cgroup.flatten(), takes_queue: at.takes_queue })
    }

    fn task(&self, at: &ExaminedAt) -> Examined {
        Examined { on_cpu: self.flag(at.on_cpu), bound: at.allowed.and_then(|at| Some(self.int(at)? == 1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of a probe with these fields, each with its place, its size and the bytes.
    fn record(name: &str, fields: &[(&str, usize, &[u8])]) -> (ProbeAt, Vec<u8>) {
        let (mut text, mut payload) = (format!("name: {name}\nID: 9\nformat:\n"), vec![0; 8]);
        for (field, size, bytes) in fields {
            let offset = payload.len();
            text.push_str(&format!("\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:0;\n"));
            payload.extend(*bytes);
        }
        let format = EventFormat::parse("lb", &text).unwrap();
        (ProbeAt::of(&format, Era::default()).unwrap(), payload)
    }

    fn set_affinity(flags: u8, mask: &str, words: &[u8]) -> Option<Probe> {
        let fields = [("s32 pid", 4, [7, 0, 0, 0].as_slice()), ("u32 flags", 4, &[flags, 0, 0, 0])];
        let (at, payload) = record("set_affinity", &[fields[0], fields[1], (mask, words.len(), words)]);
        at.probe(&payload, Endian::Little)
    }

    fn allows(cpus: &[u32]) -> Option<Probe> {
        Some(Probe::Allows(Pid(7), CpuMask::of(cpus.iter().map(|cpu| Cpu(*cpu)))))
    }

    #[test]
    fn sets_of_cpus_are_words_of_bits() {
        let word = |low: u8| [low, 0, 0, 0, 0, 0, 0, 0x80];
        assert_eq!(set_affinity(9, "u64 mask[1]", &word(5)), allows(&[0, 2, 63]));
        assert_eq!(set_affinity(0, "u64 mask[2]", &[word(1), word(2)].concat()), allows(&[0, 63, 65, 127]));
        assert_eq!(set_affinity(0, "u32 mask[2]", &[1, 0, 0, 0, 2, 0, 0, 0]), allows(&[0, 33]));
        // Disabled and enabled migration.
        assert_eq!(
            [2, 4].map(|flags| set_affinity(flags, "u64 mask[1]", &word(1))),
            [Some(Probe::HoldsMigration(Pid(7))); 2]
        );
        // CPUs that no machine has; a record that is cut.
        let many = [0xff; 8 * 1025];
        assert_eq!(set_affinity(0, "u64 mask[1025]", &many), Some(Probe::Allows(Pid(7), None)));
        let (at, payload) = record("set_affinity", &[("s32 pid", 4, &[7, 0, 0, 0]), ("u64 mask[2]", 16, &word(1))]);
        assert_eq!(at.probe(&payload, Endian::Little), Some(Probe::Allows(Pid(7), None)));
        let bytes = EventFormat::parse(
            "lb",
            "name: set_affinity\nID: 9\nformat:\n\tfield:s32 pid;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:char mask[8];\toffset:12;\tsize:8;\tsigned:0;\n",
        );
        assert!(ProbeAt::of(&bytes.unwrap(), Era::default()).is_none());
    }

    #[test]
    fn a_mask_with_another_number_of_cpus_than_the_task_has_is_a_part() {
        let allowed = |count: u8| {
            let fields = [("s32 pid", 4, [7, 0, 0, 0].as_slice()), ("s32 allowed", 4, &[count, 0, 0, 0])];
            let (at, payload) =
                record("allowed", &[fields[0], fields[1], ("u64 mask", 8, &[0x0f, 0, 0, 0, 0, 0, 0, 0])]);
            at.probe(&payload, Endian::Little)
        };
        assert_eq!(allowed(4), allows(&[0, 1, 2, 3]));
        assert_eq!(allowed(68), Some(Probe::Allows(Pid(7), None)));
    }
}
