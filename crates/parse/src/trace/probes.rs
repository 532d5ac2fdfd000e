//! The probes on the balancer (group `lb`) that were recorded. A probe can be accepted by the kernel and never fire: where its kprobes
//! are switched off, or where the compiler has copied the function into its callers. Without a record it is then not known to
//! have been recorded, which is not the same as none.

use super::Trace;
use crate::decode::format::EventFormat;

/// The group of the probes.
const GROUP: &str = "lb";

/// The probes that fire whenever a CPU goes idle. One without any record was not recorded, or no CPU went idle.
const ON_IDLE: [&str; 4] = ["idle", "newidle_balance", "newidle_balance_in", "nr_running"];

/// The probes on tracepoints, which fire without kprobes.
const TRACEPOINTS: [&str; 4] = ["nr_running", "resched", "pick", "put"];

/// The probes that have records, as far as that matters.
#[derive(Clone, Debug)]
pub(super) struct Fired {
    /// Names of the probes of [`ON_IDLE`] that have records.
    on_idle: Vec<&'static str>,
    /// Whether there is any record of a kprobe.
    any: bool,
}

impl Trace {
    /// The format of a probe on the balancer, if it was recorded: it has records, or it need not have any and other probes have.
    pub fn probe(&self, name: &str) -> Option<&EventFormat> {
        let format = self.format_named(GROUP, name)?;
        let fired = self.fired.get_or_init(|| self.find_fired());
        let counts = match name {
            _ if ON_IDLE.contains(&name) => fired.on_idle.contains(&name),
            _ if TRACEPOINTS.contains(&name) => self.has_records(format),
            _ => fired.any,
        };
        counts.then_some(format)
    }

    /// The probes on the balancer that the file describes and that were not recorded.
    pub fn silent_probes(&self) -> Vec<&str> {
        let probes = self.formats.iter().filter(|format| format.system == GROUP);
        probes.map(|format| format.name.as_str()).filter(|name| self.probe(name).is_none()).collect()
    }

    /// Whether a sched_ext scheduler recorded events of its own (`sched_ext:*`).
    pub fn has_sched_ext_events(&self) -> bool {
        let of_ext = self.formats.iter().filter(|format| format.system == "sched_ext");
        of_ext.into_iter().any(|format| self.has_records(format))
    }

    /// Whether CPUs that enter and leave idle states were recorded (`power:cpu_idle`).
    pub fn has_idle_states(&self) -> bool {
        self.format_named("power", "cpu_idle").is_some_and(|format| self.has_records(format))
    }

    fn find_fired(&self) -> Fired {
        let fires = |name: &str| self.format_named(GROUP, name).is_some_and(|format| self.has_records(format));
        let on_idle: Vec<&str> = ON_IDLE.into_iter().filter(|name| fires(name)).collect();
        let is_shown = on_idle.iter().any(|name| !TRACEPOINTS.contains(name));
        let others = || {
            let mut others = self
                .formats
                .iter()
                .filter(|format| format.system == GROUP && !TRACEPOINTS.contains(&format.name.as_str()));
            others.any(|format| self.has_records(format))
        };
        Fired { any: is_shown || others(), on_idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Options;
    use sched::{Cpu, EventKind, Pid, SchedEvent, Ts};
    use testkit::TraceBuilder;

    /// A trace with the formats of these probes, and a record of each of those behind.
    fn trace(probes: &[&str], fired: &[&str]) -> Trace {
        let mut builder = TraceBuilder::default();
        let id = |name: &str| 900 + probes.iter().position(|probe| *probe == name).unwrap() as u16;
        let format = |name: &&str| ("lb".to_owned(), builder.layout().format(id(name), name, ""));
        let formats = probes.iter().map(format).collect();
        builder.formats = formats;
        let event = |kind| SchedEvent { ts: Ts(1), cpu: Cpu(0), pid: Pid(1), flags: 0, kind };
        let mut events = vec![event(EventKind::Exit { pid: Pid(1) })];
        events.extend(fired.iter().map(|name| event(EventKind::Other { id: id(name) })));
        Trace::from_bytes(builder.events(&events).build(), Options::default()).unwrap()
    }

    #[test]
    fn a_probe_that_never_fired_was_not_recorded() {
        let all = ["idle", "load_balance", "swap", "nr_running"];
        let recorded = |fired: &[&str]| all.map(|name| trace(&all, fired).probe(name).is_some());
        // No swap is asked for in most traces; each CPU that idles has a record of that.
        assert_eq!(recorded(&["load_balance"]), [false, true, true, false]);
        assert_eq!(trace(&all, &["load_balance"]).silent_probes(), ["idle", "nr_running"]);
        assert_eq!(recorded(&all), [true; 4]);
        assert_eq!(recorded(&["idle"]), [true, true, true, false]);
        // Kprobes are switched off: the tracepoint alone has records.
        assert_eq!(recorded(&["nr_running"]), [false, false, false, true]);
        assert_eq!(recorded(&[]), [false; 4]);
        assert!(trace(&all[..1], &["idle"]).probe("swap").is_none());
    }

    #[test]
    fn the_group_of_a_process_is_that_of_the_probes() {
        let name = |system: &str| EventFormat::parse(system, "name: idle\nID: 9\nformat:\n").unwrap().system;
        let systems = ["schedviz_12_345", "schedviz_12_345_6", "schedviz_live", "schedviz_", "lb", "sched"];
        assert_eq!(systems.map(name), ["lb", "lb", "schedviz_live", "schedviz_", "lb", "sched"]);
    }
}
