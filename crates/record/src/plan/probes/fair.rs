//! Probes on tracepoints: the lengths of run queues, requests to reschedule, and the numbers by which the fair class picks tasks.

use super::{Base, KernelProbe, ProbeWriter};

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

/// The greatest number of groups above a task whose numbers are recorded: some 90 bytes each, for each switch.
pub const MOST_GROUPS: u32 = 4;

/// The arguments of the tracepoint of a switch, by their names.
const NEXT: Base = Base { argument: "next", structure: "task_struct" };
const PREV: Base = Base { argument: "prev", structure: "task_struct" };

impl BareTracepoint {
    pub(super) fn probe(&self) -> KernelProbe {
        let alternatives = vec![vec![self.line.to_owned()]];
        KernelProbe { name: self.name, purpose: self.purpose, cost: self.cost, alternatives }
    }
}

impl ProbeWriter<'_> {
    /// Returns the probe on the numbers of EEVDF at a switch, of the task that is picked and of the one that leaves (6.6 and
    /// later), and those of this number of groups above the picked one (6.8 and later). It is one probe, since 6.12 takes no second one
    /// on the same tracepoint. The kernel resolves the names itself; the type information shows which members it has.
    pub fn picks(&self, groups: u32) -> KernelProbe {
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
        let with_groups = self.orders(groups).map(|fields| format!("{line} {fields}"));
        let alternatives = with_groups.into_iter().chain([line]).map(|line| vec![line]);
        KernelProbe {
            name: "pick",
            purpose: "virtual time, deadline and weight of each picked task and its groups; lag of each that leaves",
            cost: "picks are explained by a model alone (EEVDF came with 6.6)",
            alternatives: if is_whole { alternatives.collect() } else { Vec::new() },
        }
    }

    /// The fields that show the order of the run queue of the picked task, and those of this number of groups above it: the sums of which
    /// the kernel makes the virtual time, and the one with the earliest deadline of those that were not picked. Kernels before 6.8 order
    /// by virtual run time.
    ///
    /// All fields of a level have fixed sizes and one order, by which they are decoded (`parse`, `probe/order.rs`).
    fn orders(&self, groups: u32) -> Option<String> {
        let has = |structure: &str, member: &str| self.offset(structure, member).is_some();
        // With `h_load` all tasks are on the run queue of the CPU itself, by weights that the groups give.
        if !has("sched_entity", "min_vruntime") || has("sched_entity", "h_load") {
            return None;
        }
        let protection = if has("sched_entity", "vprot") { "vprot" } else { "vlag" };
        let mut fields = vec![self.order("se.", 0)?];
        for level in 1..=groups.clamp(1, MOST_GROUPS) {
            let group = above(level);
            let own = |member: &str| self.typed(NEXT, &format!("{group}{member}"), "u64");
            fields.push(format!("group{level}={}", self.typed(NEXT, group.trim_end_matches("->"), "x64")?));
            fields.push(format!("vruntime{level}={}", own("vruntime")?));
            fields.push(format!("deadline{level}={}", own("deadline")?));
            fields.push(format!("weight{level}={}", own("load.weight")?));
            fields.push(format!("{protection}{level}={}", own(protection)?));
            let length = |name: &&str| self.typed(NEXT, &format!("{group}cfs_rq->{name}"), "u32");
            let nr = ["nr_queued", "nr_running"].iter().find_map(length)?;
            fields.push(format!("nr{level}={nr}"));
            fields.push(self.order(&group, level)?);
            fields.push(format!("left{level}={}", self.typed(PREV, group.trim_end_matches("->"), "x64")?));
        }
        let top = groups.clamp(1, MOST_GROUPS) + 1;
        fields.push(format!("group{top}={}", self.typed(NEXT, above(top).trim_end_matches("->"), "x64")?));
        Some(fields.join(" "))
    }

    /// The sums of the run queue of a task or a group, and the virtual run time and the deadline of the one with the earliest deadline.
    fn order(&self, of: &str, level: u32) -> Option<String> {
        let queue = |names: &[&str], form: &str| {
            names.iter().find_map(|name| self.typed(NEXT, &format!("{of}cfs_rq->{name}"), form))
        };
        let sum = queue(&["sum_w_vruntime", "avg_vruntime"], "u64")?;
        let load = queue(&["sum_weight", "avg_load"], "u64")?;
        let zero = queue(&["zero_vruntime", "min_vruntime"], "u64")?;
        let shift = queue(&["sum_shift"], "u32").map_or(String::new(), |shift| format!(" shift{level}={shift}"));
        let first = queue(&["tasks_timeline.rb_leftmost"], "x64")?;
        let (first, node) = (first.strip_suffix(":x64")?, self.offset("sched_entity", "run_node")?);
        let of_first = |member: &str| {
            let offset = i64::from(self.offset("sched_entity", member)?) - i64::from(node);
            Some(format!("{offset:+}({first}):u64"))
        };
        let [vruntime, deadline] = [of_first("vruntime")?, of_first("deadline")?];
        Some(format!(
            "sum{level}={sum} load{level}={load} zero{level}={zero}{shift} first_vruntime{level}={vruntime} \
             first_deadline{level}={deadline}"
        ))
    }

    fn typed(&self, base: Base, path: &str, form: &str) -> Option<String> {
        self.value_at(base, 0, path, Some(form))
    }
}

/// The way to the group at a level above a task, up to its members.
fn above(level: u32) -> String {
    format!("se.{}", "parent->".repeat(level as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::btf::Btf;

    #[test]
    fn a_kernel_without_the_members_has_no_probe_on_picks() {
        let btf = Btf::parse(include_bytes!("../../../../../tests/fixtures/btf-6.1.btf").to_vec()).unwrap();
        let probe = ProbeWriter::new(&btf).picks(2);
        assert_eq!((probe.name, probe.alternatives.len()), ("pick", 0));
    }

    /// The line for the kernel that runs the tests, if it has type information of EEVDF: each name is that of a member.
    #[test]
    fn the_line_has_the_members_of_the_kernel() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(bytes).unwrap();
        for line in ProbeWriter::new(&btf).picks(2).alternatives.iter().flatten() {
            println!("{line}");
            assert!(line.starts_with("t:lb/pick sched_switch pid=next->pid "), "{line}");
            assert!(line.contains("prev->se.deadline") && line.len() < 4_096, "{line}");
            // The kernel takes 128 fields, each of at most 63 characters.
            let fields: Vec<&str> = line.split(' ').skip(2).collect();
            assert!(fields.len() <= 128 && fields.iter().all(|field| field.len() <= 63), "{line}");
        }
    }
}
