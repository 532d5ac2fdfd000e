//! Probes on tracepoints: the lengths of run queues, requests to reschedule, and the numbers by which the fair class picks tasks.

use super::{KernelProbe, ProbeWriter};

/// A tracepoint without an event of its own, as kernels from 6.5 on can probe it.
pub(super) struct BareTracepoint {
    name: &'static str,
    line: &'static str,
    purpose: &'static str,
    cost: &'static str,
}

pub(super) const LENGTHS: BareTracepoint = BareTracepoint {
    name: "nr_running",
    line: "t:lb/nr_running sched_update_nr_running_tp cpu=rq->cpu nr=rq->nr_running change",
    purpose: "the kernel's run-queue lengths",
    cost: "run-queue lengths cannot be checked against the kernel's",
};

pub(super) const REQUESTS: BareTracepoint = BareTracepoint {
    name: "resched",
    line: "t:lb/resched sched_set_need_resched_tp pid=tsk->pid cpu=cpu tif=tif",
    purpose: "requests to reschedule, immediate and lazy",
    cost: "the instants of requests have bounds from the flags of events",
};

impl BareTracepoint {
    pub(super) fn probe(&self) -> KernelProbe {
        let alternatives = vec![vec![self.line.to_owned()]];
        KernelProbe { name: self.name, purpose: self.purpose, cost: self.cost, alternatives }
    }
}

impl ProbeWriter<'_> {
    /// Returns the probe on the numbers of EEVDF at a switch, of the task that is picked and of the one that leaves (6.6 and
    /// later). It is one probe, since 6.12 takes no second one on the same tracepoint. The kernel resolves the names itself; the type
    /// information shows which members it has.
    pub fn picks(&self) -> KernelProbe {
        let has = |structure: &str, member: &str| self.offset(structure, member).is_some();
        let of_queue = ["nr_queued", "nr_running"].into_iter().find(|name| has("cfs_rq", name));
        let is_whole = ["vruntime", "deadline", "vlag", "slice"].iter().all(|member| has("sched_entity", member));
        let mut line = "t:lb/pick sched_switch pid=next->pid vruntime=next->se.vruntime deadline=next->se.deadline \
                        slice=next->se.slice weight=next->se.load.weight"
            .to_owned();
        if let Some(nr) = of_queue.filter(|_| has("sched_entity", "cfs_rq")) {
            line += &format!(" queue=next->se.cfs_rq:x64 nr=next->se.cfs_rq->{nr}");
        }
        line += " prev_vruntime=prev->se.vruntime prev_deadline=prev->se.deadline prev_vlag=prev->se.vlag:s64";
        if has("sched_entity", "sched_delayed") {
            line += " prev_delayed=prev->se.sched_delayed";
        }
        line += " preempt=preempt prev_state=prev_state";
        KernelProbe {
            name: "pick",
            purpose: "virtual time, deadline and weight of each picked task; lag of each that leaves",
            cost: "picks are explained by a model alone (EEVDF came with 6.6)",
            alternatives: if is_whole { vec![vec![line]] } else { Vec::new() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::btf::Btf;

    #[test]
    fn a_kernel_without_the_members_has_no_probe_on_picks() {
        let btf = Btf::parse(include_bytes!("../../../../../tests/fixtures/btf-6.1.btf").to_vec()).unwrap();
        let probe = ProbeWriter::new(&btf).picks();
        assert_eq!((probe.name, probe.alternatives.len()), ("pick", 0));
    }

    /// The line for the kernel that runs the tests, if it has type information of EEVDF: each name is that of a member.
    #[test]
    fn the_line_has_the_members_of_the_kernel() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(bytes).unwrap();
        for line in ProbeWriter::new(&btf).picks().alternatives.iter().flatten() {
            println!("{line}");
            assert!(line.starts_with("t:lb/pick sched_switch pid=next->pid "), "{line}");
            assert!(line.contains("prev->se.deadline") && line.len() < 512, "{line}");
        }
    }
}
