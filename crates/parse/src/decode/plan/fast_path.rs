//! Where 64-bit kernels have the fields of the events that nearly all events are.
//!
//! Such a record is read by the same code, in which every place is then a constant, and asks for the length
//! once: a third of the instructions, or fewer.

use super::{At, CommAt, CommonAt, Decode, ForkAt, MigrateAt, SwitchAt, TaskAt, WakeupAt, Want};
use crate::bytes::Endian;
use sched::{Comm, Cpu, Pid, TaskRef};

/// The event kinds that are decoded at fixed offsets, by their layout in most kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FastPath {
    /// The event has another layout and is decoded by its format.
    None,
    Switch,
    Waking,
    Wakeup,
    WakeupNew,
    Migrate,
    /// A migration whose task name is dynamic data, as since Linux 6.16.
    DynamicMigrate,
    DynamicFork,
    Exit,
    Stack,
    /// An event that is not decoded and comes as [`EventKind::Other`](sched::EventKind::Other).
    Other,
}

impl FastPath {
    pub(super) fn of(decode: Option<&Decode>, want: Want) -> FastPath {
        match decode {
            Some(Decode::Switch(at)) if *at == SWITCH => FastPath::Switch,
            Some(Decode::Waking(at)) if *at == WAKEUP => FastPath::Waking,
            Some(Decode::Wakeup(at)) if *at == WAKEUP => FastPath::Wakeup,
            Some(Decode::WakeupNew(at)) if *at == WAKEUP => FastPath::WakeupNew,
            Some(Decode::Migrate(at)) if *at == MIGRATE => FastPath::Migrate,
            Some(Decode::Migrate(at)) if *at == DYNAMIC_MIGRATE => FastPath::DynamicMigrate,
            Some(Decode::Fork(at)) if *at == DYNAMIC_FORK => FastPath::DynamicFork,
            Some(Decode::Exit { pid }) if *pid == EXIT => FastPath::Exit,
            Some(Decode::Stack) => FastPath::Stack,
            // A reader of forks does not receive other events.
            None if want != Want::Lineage => FastPath::Other,
            _ => FastPath::None,
        }
    }
}

const fn number(offset: usize) -> At {
    At { offset, size: 4 }
}

const fn task(offset: usize) -> TaskAt {
    let (pid, prio) = (number(offset.wrapping_add(16)), Some(number(offset.wrapping_add(20))));
    TaskAt { comm: CommAt::Array16(offset), pid, prio }
}

const fn dynamic(offset: usize) -> CommAt {
    CommAt::Dynamic { offset, size: 4, relative: false }
}

pub(super) const COMMON: CommonAt =
    CommonAt { kind: At { offset: 0, size: 2 }, flags: At { offset: 2, size: 1 }, pid: number(4), usual: true };
pub(super) const COMMON_SIZE: usize = 8;

pub(super) const SWITCH: SwitchAt = SwitchAt { prev: task(8), state: At { offset: 32, size: 8 }, next: task(40) };
pub(super) const SWITCH_SIZE: usize = 64;

const WAKEUP: WakeupAt = WakeupAt { task: task(8), target: number(32), success: None };
const WAKEUP_SIZE: usize = 36;

pub(super) const MIGRATE: MigrateAt = MigrateAt { task: task(8), orig: number(32), dest: number(36) };
pub(super) const DYNAMIC_MIGRATE: MigrateAt = MigrateAt {
    task: TaskAt { comm: dynamic(8), pid: number(12), prio: Some(number(16)) },
    orig: number(20),
    dest: number(24),
};

const DYNAMIC_FORK: ForkAt = ForkAt { parent: number(12), child: number(20), child_comm: dynamic(16) };
const DYNAMIC_FORK_SIZE: usize = 24;

const EXIT: At = number(24);
const EXIT_SIZE: usize = 28;

/// The task and the target of a waking or a wakeup.
#[inline(always)]
pub(super) fn wakeup(e: Endian, p: &[u8]) -> Option<(TaskRef, Cpu)> {
    let p = p.first_chunk::<WAKEUP_SIZE>()?;
    Some((WAKEUP.task.task(p, e)?, WAKEUP.target.cpu(p, e)?))
}

/// The task of a migration with one of these layouts, and its CPUs.
#[inline(always)]
pub(super) fn migrate(at: &MigrateAt, e: Endian, p: &[u8]) -> Option<(TaskRef, Cpu, Cpu)> {
    // The last field: those before it are there as well, and are not checked again.
    let dest = at.dest.cpu(p, e)?;
    Some((at.task.task(p, e)?, at.orig.cpu(p, e)?, dest))
}

/// The parent of a fork, the child, and its name.
#[inline(always)]
pub(super) fn dynamic_fork(e: Endian, p: &[u8]) -> Option<(Pid, Pid, Comm)> {
    let fixed = p.first_chunk::<DYNAMIC_FORK_SIZE>()?;
    let at = &DYNAMIC_FORK;
    Some((Pid(at.parent.int(fixed, e)?), Pid(at.child.int(fixed, e)?), at.child_comm.comm(p, e)))
}

/// The task that exits.
#[inline(always)]
pub(super) fn exit(e: Endian, p: &[u8]) -> Option<Pid> {
    Some(Pid(EXIT.int(p.first_chunk::<EXIT_SIZE>()?, e)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::format::EventFormat;
    use crate::decode::plan::{DecodePlan, Oddities};
    use crate::decode::prev_state::States;
    use proptest::prelude::*;

    /// The events with usual places, as 7.2 has them; last a migration of 6.1.
    const EVENTS: [(&str, &str); 8] = [
        (
            "sched_switch",
            "char prev_comm[16] 8 16,pid_t prev_pid 24 4,int prev_prio 28 4,long prev_state 32 8,char next_comm[16] 40 16,\
             pid_t next_pid 56 4,int next_prio 60 4",
        ),
        ("sched_waking", "char comm[16] 8 16,pid_t pid 24 4,int prio 28 4,int target_cpu 32 4"),
        ("sched_wakeup", "char comm[16] 8 16,pid_t pid 24 4,int prio 28 4,int target_cpu 32 4"),
        ("sched_wakeup_new", "char comm[16] 8 16,pid_t pid 24 4,int prio 28 4,int target_cpu 32 4"),
        ("sched_process_exit", "char comm[16] 8 16,pid_t pid 24 4,int prio 28 4,bool group_dead 32 1"),
        (
            "sched_process_fork",
            "__data_loc char[] parent_comm 8 4,pid_t parent_pid 12 4,__data_loc char[] child_comm 16 4,pid_t child_pid 20 4",
        ),
        (
            "sched_migrate_task",
            "__data_loc char[] comm 8 4,pid_t pid 12 4,int prio 16 4,int orig_cpu 20 4,int dest_cpu 24 4",
        ),
        ("sched_migrate_task", "char comm[16] 8 16,pid_t pid 24 4,int prio 28 4,int orig_cpu 32 4,int dest_cpu 36 4"),
    ];

    const COMMON_FIELDS: &str = "unsigned short common_type 0 2,unsigned char common_flags 2 1,\
        unsigned char common_preempt_count 3 1,int common_pid 4 4";

    /// The format of one of the events, by its place in the list.
    fn format(number: usize) -> EventFormat {
        let (name, fields) = EVENTS[number];
        let mut text = format!("name: {name}\nID: {number}\nformat:\n");
        for field in COMMON_FIELDS.split(',').chain(fields.split(',')) {
            let [size, offset, declaration]: [&str; 3] =
                field.trim().rsplitn(3, ' ').collect::<Vec<_>>().try_into().expect("three words");
            let signed = u8::from(declaration.starts_with("int") || declaration.starts_with("pid_t"));
            text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        }
        EventFormat::parse("sched", &text).expect("a format")
    }

    fn plan() -> DecodePlan {
        let formats: Vec<EventFormat> = (0..EVENTS.len()).map(format).collect();
        DecodePlan::new(&formats, Endian::Little, States::modern(), Want::Everything)
    }

    #[test]
    fn the_events_of_7_2_are_usual() {
        use FastPath::{DynamicFork, DynamicMigrate, Exit, Migrate, Switch, Wakeup, WakeupNew, Waking};
        let found = [Switch, Waking, Wakeup, WakeupNew, Exit, DynamicFork, DynamicMigrate, Migrate];
        assert_eq!(plan().usual, found);
    }

    /// A record: its number, small numbers in its words so that CPUs and places are believed, and then whatever.
    fn record() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![0..80u32, (0..80u32, 0..24u32).prop_map(|(at, size)| size << 16 | at), any::<u32>()];
        let words = prop::collection::vec(word, 0..20);
        let tail = prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..30);
        (0..EVENTS.len() as u8, words, tail).prop_map(|(number, words, tail)| {
            let words = words.into_iter().flat_map(u32::to_le_bytes);
            [number, 0].into_iter().chain(words.skip(2)).chain(tail).collect()
        })
    }

    proptest! {
        #[test]
        fn they_are_decoded_as_any_other(payload in record()) {
            let plan = plan();
            let (mut odd, mut same) = (Oddities::default(), Oddities::default());
            let mut fast = None;
            plan.decode(Endian::Little, &payload, &mut odd, |pid, flags, kind| fast = Some((pid, flags, kind)));
            prop_assert_eq!(fast, plan.decode_any(Endian::Little, &payload, &mut same));
            prop_assert_eq!(odd, same);
        }
    }
}
