//! The threads of the kernel, by their names: nothing else in a trace distinguishes them from other tasks.

use crate::event::{Comm, Cpu};

/// Returns the part of a stopper's name behind `migration/`: the number of its CPU.
fn stopper_number(comm: &Comm) -> Option<&[u8]> {
    comm.as_bytes().strip_prefix(b"migration/")
}

/// Whether this is the name of a stopper, the thread of each CPU that runs before all other tasks.
pub fn is_any_stopper(comm: Comm) -> bool {
    stopper_number(&comm).is_some()
}

/// Whether this is the name of the stopper of `cpu`.
pub fn is_stopper(comm: Comm, cpu: Cpu) -> bool {
    stopper_number(&comm).and_then(|n| std::str::from_utf8(n).ok()?.parse().ok()) == Some(cpu.0)
}

/// Whether this is the name of the thread that keeps `cpu` idle at the request of a driver (`idle_inject`).
pub fn is_idle_injector(comm: Comm, cpu: Cpu) -> bool {
    let number = comm.as_bytes().strip_prefix(b"idle_inject/");
    number.and_then(|n| std::str::from_utf8(n).ok()?.parse().ok()) == Some(cpu.0)
}

/// Whether this is the name of a thread that keeps some CPU idle at the request of a driver.
pub fn is_any_idle_injector(comm: Comm) -> bool {
    comm.as_bytes().starts_with(b"idle_inject/")
}

/// Whether this is the name of a thread that runs the softirqs of a CPU.
pub fn is_ksoftirqd(comm: Comm) -> bool {
    comm.as_bytes().starts_with(b"ksoftirqd/")
}

/// Whether this is the name of a thread that does the work of an interrupt, a timer or a softirq handler: `irq/*`, `ktimers/*`,
/// `ksoftirqd/*`, and the threads of RCU.
pub fn is_threaded_interrupt(comm: Comm) -> bool {
    let begins = |beginning: &str| comm.as_bytes().starts_with(beginning.as_bytes());
    ["irq/", "ktimers/", "ktimersoftd/", "ksoftirqd/", "rcu"].into_iter().any(begins) && is_kernel_thread(comm)
}

/// A family of kernel threads, by the beginning of their names.
enum NamePattern {
    /// A thread for each CPU, bound to it: the number of the CPU follows a `/`. Threads of
    /// `smpboot_register_percpu_thread`, and others that the kernel creates in this way.
    OfEachCpu(&'static str),
    /// Any other kernel thread. A number in its name is not that of a CPU (`jbd2/sda1-8`), or is that of the CPU whose
    /// work the thread does, wherever it runs (`rcuop/3`).
    Other(&'static str),
}

use NamePattern::{OfEachCpu, Other};

/// Returns the families whose names begin with this letter, since a name is looked up for every task that is switched
/// in.
fn kinds(letter: u8) -> &'static [NamePattern] {
    match letter {
        b'b' => &[OfEachCpu("backlog_napi"), OfEachCpu("bnx2fc_thread"), OfEachCpu("bnx2i_thread"), Other("btrfs-")],
        b'c' => &[OfEachCpu("cpuhp")],
        b'e' => &[Other("edac-poller")],
        b'f' => &[OfEachCpu("fcoethread")],
        b'h' => &[Other("hwrng")],
        b'i' => &[OfEachCpu("idle_inject"), Other("irq/"), OfEachCpu("irq_work")],
        b'j' => &[Other("jbd2/")],
        b'k' => &[
            Other("kauditd"),
            Other("kblockd"),
            Other("kcompactd"),
            Other("kdamond."),
            Other("kdevtmpfs"),
            Other("khugepaged"),
            Other("khungtaskd"),
            Other("ksmd"),
            OfEachCpu("ksoftirqd"),
            Other("kswapd"),
            Other("kthreadd"),
            Other("kthrotld"),
            OfEachCpu("ktimers"),
            OfEachCpu("ktimersoftd"),
            Other("kvm-"),
            OfEachCpu("kworker"),
        ],
        b'l' => &[Other("lockd")],
        b'm' => &[OfEachCpu("migration")],
        b'n' => &[Other("napi/"), Other("nfsd")],
        b'o' => &[Other("oom_reaper")],
        b'p' => &[OfEachCpu("posixcputmr"), Other("pr/"), Other("psimon")],
        b'r' => &[Other("rcu_"), Other("rcub"), OfEachCpu("rcuc"), Other("rcun"), Other("rcuo")],
        b's' => &[Other("scsi_eh_"), OfEachCpu("stopper"), Other("sugov:")],
        b'v' => &[Other("vhost-")],
        b'w' => &[OfEachCpu("watchdog"), Other("watchdogd")],
        b'x' => &[Other("xfsaild/")],
        _ => &[],
    }
}

/// Returns the rest of `name` behind the family's name and a `/`; `None` if the name is not of this family.
fn behind<'n>(name: &'n [u8], kind: &str) -> Option<&'n [u8]> {
    name.strip_prefix(kind.as_bytes())?.strip_prefix(b"/")
}

/// Whether this is the name of a kernel thread. Neither the sched events nor the header mark these threads; the names
/// are the kernel's own, and few.
pub fn is_kernel_thread(comm: Comm) -> bool {
    let name = comm.as_bytes();
    let [letter, second, ..] = name else { return false };
    kinds(*letter).iter().any(|kind| {
        let (OfEachCpu(beginning) | Other(beginning)) = kind;
        // Nearly all other names differ here already; a call to compare them takes longer than all the rest.
        beginning.as_bytes().get(1) == Some(second)
            && match kind {
                OfEachCpu(kind) => behind(name, kind).is_some(),
                Other(beginning) => name.starts_with(beginning.as_bytes()),
            }
    })
}

/// Returns the command that a task of this name runs. For most tasks that is the name itself. Where the kernel has such
/// a thread for each CPU, or several, or one for each NUMA node, every number in it becomes `N`: `ksoftirqd/12` is
/// `ksoftirqd/N`, `kworker/3:1H` is `kworker/N:NH`, `kworker/u33:2` is `kworker/uN:N` and `kswapd1` is `kswapdN`.
/// Otherwise a machine of 256 CPUs would have a thousand commands.
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
    // Other names keep their numbers, such as `irq/25-virtio0`, `jbd2/sda1-8` and `kworker/R-ext4`, which name a purpose.
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

/// Returns the command of a thread of which each NUMA node has one, with `N` for the number of the node.
fn of_each_node(comm: &Comm) -> Option<Comm> {
    let is = |kind: &str| {
        let number = comm.as_bytes().strip_prefix(kind.as_bytes());
        number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
    };
    let kind = ["kcompactd", "kswapd"].into_iter().find(|kind| is(kind))?;
    Some(Comm::new(format!("{kind}N").as_bytes()))
}

/// Whether a thread of this name is bound to `cpu`: a thread of which each CPU has one, with this CPU's number behind a
/// `/`, up to a `:` for `kworker/N:…`. `kworker/u…` is not bound.
pub fn is_bound(comm: Comm, cpu: Cpu) -> bool {
    if !comm.contains(b'/') {
        return false;
    }
    let name = comm.as_bytes();
    let Some(letter) = name.first() else { return false };
    let number = kinds(*letter).iter().find_map(|kind| match kind {
        OfEachCpu(kind) => Some((*kind, behind(name, kind)?)),
        Other(_) => None,
    });
    let Some((kind, number)) = number else { return false };
    let digits = match kind {
        "kworker" => number.split(|b| *b == b':').next().unwrap_or(&[]),
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
        assert!(all(&["ktimersoftd/1", "stopper/0", "fcoethread/2", "bnx2i_thread/3", "backlog_napi/1"], true));
        assert!(all(&["stopper", "stoppered/1", "cpuhp", "ktimers_/1", "watchdogs/1", "rcuc", "migrations/0"], false));
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
        let (mut of_each_cpu, mut others) = (Vec::new(), 0);
        for letter in 0..=u8::MAX {
            for kind in kinds(letter) {
                let (OfEachCpu(name) | Other(name)) = kind;
                assert_eq!(name.as_bytes()[0], letter, "{name}");
                let thread = format!("{name}/3");
                let is_of_each = matches!(kind, OfEachCpu(_));
                assert_eq!((bound(&thread, 3), bound(&thread, 4)), (is_of_each, false), "{thread}");
                assert!(is_kernel_thread(Comm::new(thread.as_bytes())), "{thread}");
                if is_of_each { of_each_cpu.push(*name) } else { others += 1 }
            }
        }
        for kind in ["bnx2fc_thread", "bnx2i_thread", "fcoethread", "ktimersoftd", "stopper"] {
            assert!(of_each_cpu.contains(&kind), "{kind}");
        }
        assert!(others > of_each_cpu.len());
        // These have some CPU's number in the name, and run anywhere.
        for name in
            ["mmcqd/0", "rcuop/0", "rcuog/0", "rcuos/0", "rcub/0", "kswapd0", "pool/0", "jbd2/0", "kworker/+0:1"]
        {
            assert!(!bound(name, 0), "{name}");
        }
    }
}
