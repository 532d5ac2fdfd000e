//! The threads of the kernel, by their names: nothing else in a trace distinguishes them from other tasks.

use crate::event::{Comm, Cpu};

/// The rest of the name of a stopper: the number of its CPU.
fn stopper_number(comm: &Comm) -> Option<&[u8]> {
    comm.as_bytes().strip_prefix(b"migration/")
}

/// Whether this is the name of some CPU's stopper, the thread that runs before all others.
pub fn is_any_stopper(comm: Comm) -> bool {
    stopper_number(&comm).is_some()
}

/// Whether this is the name of the stopper of `cpu`.
pub fn is_stopper(comm: Comm, cpu: Cpu) -> bool {
    stopper_number(&comm).and_then(|n| std::str::from_utf8(n).ok()?.parse().ok()) == Some(cpu.0)
}

/// Whether this is the name of a thread that runs a CPU's softirqs.
pub fn is_ksoftirqd(comm: Comm) -> bool {
    comm.as_bytes().starts_with(b"ksoftirqd/")
}

/// Whether this is the name of a thread that belongs to the kernel. Neither the sched events nor
/// the header say so; the names are the kernel's own, and few. (By their first letters: this is asked of every task
/// that is switched in.)
pub fn is_kernel_thread(comm: Comm) -> bool {
    let names: &[&str] = match comm.as_bytes().first() {
        Some(b'b') => &["backlog_napi/", "btrfs-"],
        Some(b'c') => &["cpuhp/"],
        Some(b'e') => &["edac-poller"],
        Some(b'h') => &["hwrng"],
        Some(b'i') => &["idle_inject/", "irq/", "irq_work/"],
        Some(b'j') => &["jbd2/"],
        Some(b'k') => &[
            "kauditd",
            "kblockd",
            "kcompactd",
            "kdamond.",
            "kdevtmpfs",
            "khugepaged",
            "khungtaskd",
            "ksmd",
            "ksoftirqd/",
            "kswapd",
            "kthreadd",
            "kthrotld",
            "ktimers/",
            "kvm-",
            "kworker/",
        ],
        Some(b'l') => &["lockd"],
        Some(b'm') => &["migration/"],
        Some(b'n') => &["napi/", "nfsd"],
        Some(b'o') => &["oom_reaper"],
        Some(b'p') => &["posixcputmr/", "pr/", "psimon"],
        Some(b'r') => &["rcu_", "rcub", "rcuc/", "rcun", "rcuo"],
        Some(b's') => &["scsi_eh_", "sugov:"],
        Some(b'v') => &["vhost-"],
        Some(b'w') => &["watchdog/", "watchdogd"],
        Some(b'x') => &["xfsaild/"],
        _ => &[],
    };
    names.iter().any(|name| comm.as_bytes().starts_with(name.as_bytes()))
}

/// The command that a task of this name runs: the name, but where the kernel has such a thread for each CPU, or
/// several, or for each NUMA node, every number in it is `N`. For example, `ksoftirqd/12` is `ksoftirqd/N`, `kworker/3:1H` is
/// `kworker/N:NH`, `kworker/u33:2` is `kworker/uN:N` and `kswapd1` is `kswapdN`; otherwise a machine of 256 CPUs would
/// have a thousand commands.
pub fn command(comm: Comm) -> Comm {
    if !comm.contains(b'/') {
        return of_each_node(&comm).unwrap_or(comm);
    }
    if !is_kernel_thread(comm) {
        return comm;
    }
    let name = comm.as_bytes();
    let Some(slash) = name.iter().position(|b| *b == b'/') else { return comm };
    let (kind, numbers) = name.split_at(slash + 1);
    // Not `irq/25-virtio0`, `jbd2/sda1-8` or `kworker/R-ext4`, which say what they are for.
    let of_a_pool = numbers.strip_prefix(b"u").unwrap_or(numbers);
    if !of_a_pool.first().is_some_and(u8::is_ascii_digit) || !of_a_pool.iter().all(|b| b"0123456789:H".contains(b)) {
        return comm;
    }
    let mut command = kind.to_vec();
    for run in numbers.chunk_by(|a, b| a.is_ascii_digit() && b.is_ascii_digit()) {
        command.push(if run[0].is_ascii_digit() { b'N' } else { run[0] });
    }
    Comm::new(&command)
}

fn of_each_node(comm: &Comm) -> Option<Comm> {
    let is = |kind: &str| {
        let number = comm.as_bytes().strip_prefix(kind.as_bytes());
        number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
    };
    let kind = ["kcompactd", "kswapd"].into_iter().find(|kind| is(kind))?;
    Some(Comm::new(format!("{kind}N").as_bytes()))
}

/// The kernel's threads of which there is one for each CPU, bound to it: those of `smpboot_register_percpu_thread` and
/// others that the kernel creates in this way. A number after another name is not that of a CPU (`mmcqd/0`), or is that of the CPU whose
/// work the thread does, wherever it runs (`rcuop/3`).
const OF_EACH_CPU: [&str; 16] = [
    "backlog_napi",
    "bnx2fc_thread",
    "bnx2i_thread",
    "cpuhp",
    "fcoethread",
    "idle_inject",
    "irq_work",
    "ksoftirqd",
    "ktimers",
    "ktimersoftd",
    "kworker",
    "migration",
    "posixcputmr",
    "rcuc",
    "stopper",
    "watchdog",
];

/// Whether a thread of this name is bound to `cpu`: one of those of which each CPU has one, and its number follows a `/`,
/// before a `:` for `kworker/N:…`. `kworker/u…` is not bound.
pub fn is_bound(comm: Comm, cpu: Cpu) -> bool {
    if !comm.contains(b'/') {
        return false;
    }
    let name = comm.as_bytes();
    let Some(slash) = name.iter().position(|b| *b == b'/') else { return false };
    let (kind, number) = (&name[..slash], &name[slash + 1..]);
    if !OF_EACH_CPU.iter().any(|known| known.as_bytes() == kind) {
        return false;
    }
    let digits = match kind {
        b"kworker" => number.split(|b| *b == b':').next().unwrap_or(&[]),
        _ => number,
    };
    // `kworker/3H` works for CPU 3 with high priority.
    let digits = digits.strip_suffix(b"H").unwrap_or(digits);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number && std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok()) == Some(cpu.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_are_known_by_name() {
        let all = |names: &[&str], is| names.iter().all(|name| is_kernel_thread(Comm::new(name.as_bytes())) == is);
        assert!(all(&["ktimers/7", "rcuc/3", "irq_work/1", "irq/25-virtio0-", "kdamond.0", "kworker/R-rcu_g"], true));
        assert!(all(&["rcu_preempt", "posixcputmr/0", "kthrotld", "kworker/u16:2", "migration/4"], true));
        assert!(all(&["hackbench", "kubelet", "java", "priority", "napier", "btrfs", "irqbalance"], false));
    }

    #[test]
    fn each_cpu_has_its_stopper() {
        assert!(is_stopper(Comm::new(b"migration/12"), Cpu(12)) && !is_stopper(Comm::new(b"migration/12"), Cpu(1)));
    }

    #[test]
    fn threads_of_each_cpu_run_one_command() {
        let commands = [
            ("ksoftirqd/12", "ksoftirqd/N"),
            ("migration/0", "migration/N"),
            ("kworker/3:1H", "kworker/N:NH"),
            ("kworker/255:17", "kworker/N:N"),
            ("kworker/u33:2", "kworker/uN:N"),
            ("rcuop/7", "rcuop/N"),
            ("kcompactd12", "kcompactdN"),
            ("kswapd0", "kswapdN"),
        ];
        for (name, expected) in commands {
            assert_eq!(command(Comm::new(name.as_bytes())).to_string(), expected);
        }
        let others = [
            "hackbench",
            "pool/3",
            "irq/25-virtio0-",
            "jbd2/sda1-8",
            "kworker/R-ext4-",
            "kworker/",
            "kswapd",
            "kswapd_x",
        ];
        for name in others {
            assert_eq!(command(Comm::new(name.as_bytes())).to_string(), name);
        }
    }

    #[test]
    fn bound_threads_by_their_names() {
        let bound = |name: &str, cpu| is_bound(Comm::new(name.as_bytes()), Cpu(cpu));
        assert!(bound("kworker/1:0", 1) && bound("migration/12", 12) && bound("kworker/1:0H", 1));
        assert!(!bound("kworker/1:0", 2) && !bound("kworker/u8:1", 8) && !bound("make", 0) && !bound("a/b", 0));
        for kind in OF_EACH_CPU {
            assert!(bound(&format!("{kind}/3"), 3) && !bound(&format!("{kind}/3"), 4), "{kind}");
        }
        // These have some CPU's number in the name, and run anywhere.
        for name in
            ["mmcqd/0", "rcuop/0", "rcuog/0", "rcuos/0", "rcub/0", "kswapd0", "pool/0", "jbd2/0", "kworker/+0:1"]
        {
            assert!(!bound(name, 0), "{name}");
        }
    }
}
