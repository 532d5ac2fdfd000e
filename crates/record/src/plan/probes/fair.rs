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
    /// Returns the probes on the numbers of EEVDF at a switch, of the task that is picked and of the one that leaves (6.6 and
    /// later). The kernel resolves the names itself; the type information shows which members it has.
    pub fn picks(&self) -> Vec<KernelProbe> {
        let has = |structure: &str, member: &str| self.offset(structure, member).is_some();
        let of_queue = ["nr_queued", "nr_running"].into_iter().find(|name| has("cfs_rq", name));
        let is_whole = ["vruntime", "deadline", "vlag", "slice"].iter().all(|member| has("sched_entity", member));
        let line = |name: &str, task: &str, more: &[String]| {
            let of_task = format!(
                "t:lb/{name} sched_switch pid={task}->pid vruntime={task}->se.vruntime deadline={task}->se.deadline \
                 slice={task}->se.slice weight={task}->se.load.weight"
            );
            vec![std::iter::once(of_task).chain(more.iter().cloned()).collect::<Vec<_>>().join(" ")]
        };
        let mut picked = Vec::new();
        let mut left = vec!["vlag=prev->se.vlag:s64".to_owned()];
        if has("sched_entity", "sched_delayed") {
            left.push("delayed=prev->se.sched_delayed".to_owned());
        }
        if let Some(nr) = of_queue.filter(|_| has("sched_entity", "cfs_rq")) {
            picked.push(format!("queue=next->se.cfs_rq:x64 nr=next->se.cfs_rq->{nr}"));
            left.push("queue=prev->se.cfs_rq:x64".to_owned());
        }
        let probe = |name: &'static str, purpose, cost, lines: Vec<String>| KernelProbe {
            name,
            purpose,
            cost,
            alternatives: if is_whole { vec![lines] } else { Vec::new() },
        };
        vec![
            probe(
                "pick",
                "virtual time, deadline and weight of each picked task",
                "picks are explained by a model alone (EEVDF came with 6.6)",
                line("pick", "next", &picked),
            ),
            probe(
                "put",
                "virtual time, deadline and lag of each task that leaves a CPU",
                "lag and deadline of preempted tasks are those of their next pick",
                line("put", "prev", &left),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::btf::Btf;

    #[test]
    fn a_kernel_without_the_members_has_no_probes_on_picks() {
        let btf = Btf::parse(include_bytes!("../../../../../tests/fixtures/btf-6.1.btf").to_vec()).unwrap();
        let probes = ProbeWriter::new(&btf).picks();
        assert_eq!(probes.iter().map(|probe| probe.name).collect::<Vec<_>>(), ["pick", "put"]);
        assert!(probes.iter().all(|probe| probe.alternatives.is_empty()));
    }

    /// The lines for the kernel that runs the tests, if it has type information of EEVDF: each name is that of a member.
    #[test]
    fn the_lines_have_the_members_of_the_kernel() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(bytes).unwrap();
        for probe in ProbeWriter::new(&btf).picks() {
            for line in probe.alternatives.iter().flatten() {
                println!("{line}");
                assert!(line.starts_with(&format!("t:lb/{} sched_switch pid=", probe.name)), "{line}");
                assert!(line.contains("->se.deadline") && line.len() < 512, "{line}");
            }
        }
    }
}
