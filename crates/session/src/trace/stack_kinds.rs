//! The kinds of stacks, each with the functions of the kernel that show it.

use sched::seeded::SeededMap;
use serde::Serialize;
use std::sync::LazyLock;

/// The reason for which a task left its CPU, by the functions on its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StackKind {
    /// A wait for a futex: a lock or a condition of a program.
    Futex,
    /// A wait for one of several files, by `poll`, `select` or `epoll`.
    Poll,
    /// A wait for the other end of a pipe.
    Pipe,
    /// A wait at a socket.
    Socket,
    /// A wait for a device or a file system.
    Disk,
    /// A page fault.
    PageFault,
    /// A sleep for a given time.
    Timer,
    /// The end of the task.
    Exit,
    /// A wait for the end of a child, or for a change of its state.
    Child,
    /// A wait for a lock of the kernel.
    Lock,
    /// A thread of the kernel without work: it waits for some, or for its next round.
    Work,
    /// No sleep: the task gave way to another one.
    Preempted,
    /// A stack with names, and none of the functions of the other kinds.
    Other,
    /// A stack whose addresses have no names in the trace.
    Unresolved,
    /// No stack was recorded.
    NoStack,
}

impl StackKind {
    /// Every kind, in the order of the tables.
    pub const ALL: [StackKind; 15] = [
        StackKind::Futex,
        StackKind::Poll,
        StackKind::Pipe,
        StackKind::Socket,
        StackKind::Disk,
        StackKind::PageFault,
        StackKind::Timer,
        StackKind::Exit,
        StackKind::Child,
        StackKind::Lock,
        StackKind::Work,
        StackKind::Preempted,
        StackKind::Other,
        StackKind::Unresolved,
        StackKind::NoStack,
    ];

    /// The name of the kind in texts.
    pub fn words(self) -> &'static str {
        match self {
            StackKind::Futex => "futex",
            StackKind::Poll => "poll",
            StackKind::Pipe => "pipe",
            StackKind::Socket => "socket",
            StackKind::Disk => "disk",
            StackKind::PageFault => "page fault",
            StackKind::Timer => "timer",
            StackKind::Exit => "exit",
            StackKind::Child => "wait for a child",
            StackKind::Lock => "lock (kernel)",
            StackKind::Work => "kernel work",
            StackKind::Preempted => "preempted",
            StackKind::Other => "other",
            StackKind::Unresolved => "no names",
            StackKind::NoStack => "no stack",
        }
    }
}

/// The functions that show a kind. The innermost of them on a stack decides: a page fault that waits for a disk is one of the disk.
const SHOWN_BY: [(StackKind, &[&str]); 11] = [
    (
        StackKind::Futex,
        &[
            "futex_do_wait",
            "futex_wait_queue",
            "futex_wait_queue_me",
            "__futex_wait",
            "futex_wait",
            "futex_lock_pi",
            "do_futex",
            "futex_wake",
            "futex_wake_op",
            "futex_requeue",
            "futex_unlock_pi",
        ],
    ),
    (
        StackKind::Poll,
        &[
            "poll_schedule_timeout",
            "do_poll",
            "do_sys_poll",
            "do_select",
            "ep_poll",
            "do_epoll_wait",
            "pollwake",
            "ep_poll_callback",
        ],
    ),
    (
        StackKind::Pipe,
        &[
            "pipe_read",
            "pipe_write",
            "anon_pipe_read",
            "anon_pipe_write",
            "pipe_wait_readable",
            "pipe_wait_writable",
            "wait_for_partner",
            "fifo_open",
        ],
    ),
    (
        StackKind::Socket,
        &[
            "unix_stream_read_generic",
            "unix_stream_data_wait",
            "unix_wait_for_peer",
            "unix_stream_sendmsg",
            "sock_alloc_send_pskb",
            "sk_wait_data",
            "sk_stream_wait_memory",
            "__skb_wait_for_more_packets",
            "inet_csk_accept",
            "inet_csk_wait_for_connect",
            "inet_stream_connect",
            "tcp_recvmsg",
            "tcp_sendmsg",
            "netlink_recvmsg",
            "sock_recvmsg",
            "sock_sendmsg",
            "____sys_recvmsg",
            "____sys_sendmsg",
            "sock_def_readable",
            "sock_def_write_space",
            "sk_stream_write_space",
        ],
    ),
    (
        StackKind::Disk,
        &[
            "io_schedule",
            "io_schedule_timeout",
            "bit_wait_io",
            "folio_wait_bit_common",
            "wait_on_page_bit",
            "__wait_on_buffer",
            "submit_bio_wait",
            "blk_mq_get_tag",
            "rq_qos_wait",
            "jbd2_log_wait_commit",
            "balance_dirty_pages",
            "kjournald2",
            "bit_wait",
            "__wait_on_bit",
            "out_of_line_wait_on_bit",
            "__wait_on_bit_lock",
            "netfs_wait_for_read",
            "netfs_wait_for_write",
            "p9_client_rpc",
            "p9_client_cb",
            "wake_bit_function",
            "p9_client_zc_rpc",
            "rpc_wait_bit_killable",
            "request_wait_answer",
            "wait_for_response",
            "blk_io_schedule",
            "blk_execute_rq",
            "__iomap_dio_rw",
            "blkdev_issue_flush",
            "jbd2_journal_commit_transaction",
            "wait_transaction_locked",
            "xlog_wait_on_iclog",
            "xfs_buf_iowait",
            "io_cqring_wait",
            "read_events",
            "wake_page_function",
            "folio_wake_bit",
            "blk_update_request",
            "bio_endio",
        ],
    ),
    (
        StackKind::PageFault,
        &[
            "handle_mm_fault",
            "do_user_addr_fault",
            "exc_page_fault",
            "asm_exc_page_fault",
            "do_page_fault",
            "__do_page_fault",
        ],
    ),
    (
        StackKind::Timer,
        &[
            "do_nanosleep",
            "hrtimer_nanosleep",
            "clock_nanosleep",
            "msleep",
            "msleep_interruptible",
            "usleep_range_state",
            "do_sigtimedwait",
            "__x64_sys_pause",
            "__do_sys_pause",
            "do_sigsuspend",
            "sigsuspend",
            "timerfd_read",
            "timerfd_read_iter",
            "usleep_range",
            "schedule_timeout_idle",
            "hrtimer_wakeup",
            "call_timer_fn",
            "process_timeout",
        ],
    ),
    (StackKind::Exit, &["do_task_dead", "do_exit", "do_group_exit"]),
    (StackKind::Child, &["do_wait", "kernel_wait4", "kernel_waitid", "child_wait_callback"]),
    (
        StackKind::Lock,
        &[
            "__mutex_lock",
            "__mutex_lock_slowpath",
            "mutex_lock",
            "rwsem_down_read_slowpath",
            "rwsem_down_write_slowpath",
            "rt_mutex_slowlock",
            "__rt_mutex_slowlock_locked",
            "rtlock_slowlock_locked",
            "rt_spin_lock",
            "__down",
            "__down_common",
            "down",
            "down_read",
            "down_write",
            "percpu_rwsem_wait",
            "schedule_rtlock",
            "preempt_schedule_lock",
            "wait_for_completion",
            "complete",
            "complete_all",
            "__mutex_unlock_slowpath",
            "rwsem_wake",
            "rt_mutex_slowunlock",
            "rt_mutex_wake_up_q",
        ],
    ),
    (
        StackKind::Preempted,
        &[
            "preempt_schedule",
            "preempt_schedule_common",
            "preempt_schedule_irq",
            "preempt_schedule_notrace",
            "dynamic_preempt_schedule",
            "__cond_resched",
            "_cond_resched",
            "dynamic_cond_resched",
            "do_sched_yield",
            "yield",
        ],
    ),
];

/// The functions that show a kind only directly outside those of the scheduler: a thread of the kernel that sleeps within its work, and a task that
/// sleeps on its way out of the kernel, wait for something else.
const SHOWN_INNERMOST_BY: [(StackKind, &[&str]); 2] = [
    (
        StackKind::Work,
        &[
            "worker_thread",
            "rescuer_thread",
            "kthread_worker_fn",
            "smpboot_thread_fn",
            "kthreadd",
            "kthread",
            "irq_thread",
            "kswapd",
            "kswapd_try_to_sleep",
            "kcompactd",
            "khugepaged",
            "khugepaged_wait_work",
            "ksm_scan_thread",
            "kdamond_fn",
            "kauditd_thread",
            "devtmpfsd",
            "oom_reaper",
            "hwrng_fillfn",
            "balance_pgdat",
            "rcu_gp_kthread",
            "rcu_gp_fqs_loop",
            "rcu_gp_init",
            "rcu_nocb_cb_kthread",
            "rcu_nocb_gp_kthread",
            "rcu_tasks_kthread",
            "rcu_tasks_one_gp",
            "rcu_boost_kthread",
            "psi_rtpoll_worker",
            "io_wq_worker",
            "watchdog",
            "fsnotify_mark_destroy_workfn",
            "scsi_error_handler",
            "kick_pool",
            "insert_work",
            "__queue_work",
            "rcu_core",
            "rcu_gp_kthread_wake",
            "wakeup_softirqd",
            "handle_softirqs",
            "__do_softirq",
            "cpuhp_thread_fun",
        ],
    ),
    (
        StackKind::Preempted,
        &[
            "exit_to_user_mode_loop",
            "exit_to_user_mode_prepare",
            "exit_to_user_mode",
            "syscall_exit_to_user_mode",
            "irqentry_exit_to_user_mode",
            "irqentry_exit",
            "irqentry_exit_cond_resched",
            "raw_irqentry_exit_cond_resched",
        ],
    ),
];

/// The functions of the scheduler and its tracepoints, at the inner end of nearly all stacks.
const OF_SCHEDULER: [&str; 28] = [
    "__schedule",
    "schedule",
    "schedule_timeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "schedule_preempt_disabled",
    "schedule_idle",
    "__traceiter_sched_switch",
    "trace_event_raw_event_sched_switch",
    "perf_trace_sched_switch",
    "__perf_event_task_sched_out",
    "trace_event_buffer_commit",
    "try_to_wake_up",
    "default_wake_function",
    "autoremove_wake_function",
    "woken_wake_function",
    "wake_up_process",
    "wake_up_state",
    "wake_up_q",
    "__wake_up",
    "__wake_up_common",
    "__wake_up_common_lock",
    "__wake_up_sync_key",
    "__traceiter_sched_waking",
    "trace_event_raw_event_sched_wakeup_template",
    "perf_trace_sched_wakeup_template",
    "swake_up_locked",
    "swake_up_one",
];

/// The kinds of stacks that a function shows.
#[derive(Clone, Copy, Debug, Default)]
struct ShownKinds {
    kind: Option<StackKind>,
    /// The kind that it shows directly outside the functions of the scheduler alone.
    innermost: Option<StackKind>,
    of_scheduler: bool,
}

/// The kinds that each function of the tables shows. A stack has hundreds of frames, each of which is looked up once.
static SHOWN: LazyLock<SeededMap<&str, ShownKinds>> = LazyLock::new(|| {
    let mut shown: SeededMap<&str, ShownKinds> = SeededMap::default();
    let each = |table: &'static [(StackKind, &'static [&'static str])]| {
        table.iter().flat_map(|(kind, functions)| functions.iter().map(|function| (*function, *kind)))
    };
    each(&SHOWN_BY).for_each(|(function, kind)| shown.entry(function).or_default().kind = Some(kind));
    each(&SHOWN_INNERMOST_BY).for_each(|(function, kind)| shown.entry(function).or_default().innermost = Some(kind));
    OF_SCHEDULER.iter().for_each(|function| shown.entry(function).or_default().of_scheduler = true);
    shown
});

/// The name of a function as it is written, without what a compiler has added.
fn written(name: &str) -> &str {
    if !name.contains('.') {
        return name;
    }
    let end = [".isra.", ".constprop.", ".part.", ".cold", ".llvm."].iter().filter_map(|mark| name.find(mark)).min();
    name.get(..end.unwrap_or(name.len())).unwrap_or(name)
}

fn shown_by(name: &str) -> ShownKinds {
    let unknown = || ShownKinds { of_scheduler: is_of_tracing(name), ..ShownKinds::default() };
    SHOWN.get(written(name)).copied().unwrap_or_else(unknown)
}

/// The first letters of functions that record an event: the tracepoint's, and those of the ftrace, perf and BPF programs on it.
const OF_TRACING: [&str; 12] = [
    "__traceiter_",
    "trace_event_raw_event_",
    "trace_event_buffer_",
    "perf_trace_",
    "__bpf_trace_",
    "bpf_trace_run",
    "bpf_trampoline_",
    "bpf_prog_",
    "bpf_get_stack",
    "ftrace_trampoline",
    "event_triggers_",
    "stacktrace_",
];

/// Functions that record an event, by their whole names.
const RECORDING: [&str; 10] = [
    "__ftrace_trace_stack",
    "__trace_stack",
    "ftrace_caller",
    "ftrace_regs_caller",
    "ftrace_call",
    "ftrace_regs_call",
    "ftrace_ops_assist_func",
    "arch_ftrace_ops_list_func",
    "kprobe_ftrace_handler",
    "trace_call_bpf",
];

/// Whether a function at the inner end of a stack is there because an event was recorded.
fn is_of_tracing(name: &str) -> bool {
    OF_TRACING.iter().any(|start| name.starts_with(start)) || RECORDING.contains(&written(name))
}

/// Returns the number of frames at the inner end of a stack that are there because its event was recorded, given the functions from the
/// innermost one on; nothing for a frame without a name, which counts where such a function follows. A stack of them alone keeps them.
pub fn of_tracing<'n>(names: impl Iterator<Item = Option<&'n str>>) -> usize {
    let (mut count, mut nth) = (0, 0);
    for name in names {
        nth += 1;
        match name {
            Some(name) if is_of_tracing(name) => count = nth,
            Some(_) => return count,
            None => {}
        }
    }
    if count == nth { 0 } else { count }
}

/// Whether a function is one of the scheduler at the inner end of a stack.
pub fn is_of_scheduler(name: &str) -> bool {
    shown_by(name).of_scheduler
}

/// Returns the kind that the functions of a stack show, given from the innermost one on, and the place of the one that shows it.
pub fn kind_of<'n>(names: impl Iterator<Item = &'n str>) -> Option<(StackKind, usize)> {
    // Whether the functions so far are of the scheduler alone.
    let mut is_innermost = true;
    names.enumerate().find_map(|(place, name)| {
        let ShownKinds { kind, innermost, of_scheduler } = shown_by(name);
        let kind = kind.or(innermost.filter(|_| is_innermost));
        is_innermost &= of_scheduler;
        kind.map(|kind| (kind, place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_function_of_a_kind_decides() {
        let kind = |names: &[&str]| kind_of(names.iter().copied());
        assert_eq!(kind(&["__schedule", "schedule", "do_nanosleep", "hrtimer_nanosleep"]), Some((StackKind::Timer, 2)));
        assert_eq!(kind(&["schedule", "io_schedule", "handle_mm_fault"]), Some((StackKind::Disk, 1)));
        assert_eq!(kind(&["schedule", "schedule_timeout", "kcompactd", "kthread"]), Some((StackKind::Work, 2)));
        assert_eq!(kind(&["schedule", "drain_local_stock", "process_one_work", "worker_thread"]), None);
        assert_eq!(kind(&["__schedule", "schedule", "irqentry_exit"]), Some((StackKind::Preempted, 2)));
        assert_eq!(kind(&["schedule", "hangup", "task_work_run", "syscall_exit_to_user_mode"]), None);
        assert_eq!(kind(&["0xffffffffb692a47b", "preempt_schedule_common"]), Some((StackKind::Preempted, 1)));
        assert_eq!(kind(&["__mutex_lock.constprop.0"]), Some((StackKind::Lock, 0)));
        assert_eq!(kind(&["schedule", "do_wait", "kernel_wait4", "do_syscall_64"]), Some((StackKind::Child, 1)));
        assert_eq!(kind(&["schedule", "do_task_dead", "do_exit"]), Some((StackKind::Exit, 1)));
    }

    #[test]
    fn the_functions_that_record_an_event_are_no_part_of_its_stack() {
        let of =
            |names: &[&str]| of_tracing(names.iter().map(|name| Some(*name).filter(|name| !name.starts_with("0x"))));
        let inner = ["trace_event_raw_event_sched_switch", "__traceiter_sched_switch", "__schedule", "schedule"];
        assert_eq!((of(&inner), of(&inner[1..]), of(&inner[2..]), of(&inner[..2])), (2, 1, 0, 0));
        let program = ["bpf_prog_6deef7357e7b4530_on_switch", "bpf_trace_run4", "__bpf_trace_sched_switch"];
        assert_eq!(of(&[&program[..], &inner[1..]].concat()), 4);
        // A trampoline has no name. An address that no such function follows may be of the task.
        assert_eq!(
            of(&["0xffffffffc0a0", "ftrace_regs_caller", "0xffffffffc0a1", "__traceiter_sched_waking", "ttwu"]),
            4
        );
        assert_eq!((of(&["0xffffffffc0a0", "__schedule"]), of(&["0xffffffffc0a0"]), of(&[])), (0, 0, 0));
        assert_eq!(of(&["perf_trace_sched_switch", "0xffffffffc0a0", "0xffffffffc0a4"]), 1);
        // Further out such a function is what the task does: a read of a trace that waits.
        assert_eq!(of(&["__schedule", "schedule", "ring_buffer_wait", "trace_event_buffer_lock_reserve"]), 0);
        let kind = kind_of(["perf_trace_sched_stat_runtime", "__schedule", "irqentry_exit"].into_iter());
        assert_eq!(kind, Some((StackKind::Preempted, 2)));
    }

    #[test]
    fn no_function_shows_two_kinds() {
        let tables = SHOWN_BY.iter().chain(&SHOWN_INNERMOST_BY);
        let mut all: Vec<&str> = tables.flat_map(|(_, functions)| functions.iter().copied()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
