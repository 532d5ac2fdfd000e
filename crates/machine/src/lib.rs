//! The machine that a trace was recorded on, as the file `NAME.machine.json` beside the trace describes it.
//!
//! In go `/sys` and `/proc`, below a root that the caller names ([`Machine::read`]), or the file ([`Machine::parse`]); out comes
//! a [`Machine`]. A fact that the kernel does not give is absent, never zero. The file holds no host name, no user name, no
//! environment and no arguments of commands. Begin reading with [`Machine`] in this file.
//!
//! ```
//! use machine::Machine;
//! use std::path::Path;
//!
//! assert_eq!(Machine::path_beside(Path::new("run/trace.dat")), Path::new("run/trace.machine.json"));
//! assert!(Machine::parse("no JSON").is_err());
//! ```

mod affinity;
mod application;
mod bounded;
mod cgroups;
mod clamps;
mod cpus;
mod facts;
mod kept_output;
mod kernel;
mod newidle;
mod policies;
mod pressure;
mod processes;
mod root;
mod running;
mod scheduler;
mod summary;

pub use affinity::Affinity;
pub use application::RecordedApplication;
pub use bounded::read_bounded;
pub use cgroups::{Cgroup, levels_of_groups};
pub use clamps::Clamps;
pub use cpus::{CpuPlace, MachineCpus, Node};
pub use kept_output::KeptOutput;
pub use kernel::Kernel;
pub use newidle::{NewIdleCost, NewIdleCosts};
pub use policies::Policies;
pub use pressure::Pressure;
pub use root::Root;
pub use running::RunningTasks;
pub use scheduler::{Domain, Scheduler};

use sched::event::CleanText;
use sched::probe::CgroupId;
use sched::topology::parse_cpu_list;
use sched::{Pid, SchedIdleTasks, Topology};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The form of the file, and its version.
pub const SCHEMA: &str = "schedviz/machine/1";

/// The greatest size of a machine file in bytes; 65,536 CPUs and a million tasks stay below it.
pub const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of CPUs in the lists of affinity of a machine file, all together: a list of ten bytes can name 65,535.
const MOST_LISTED: usize = 1 << 22;

/// A machine, at the start of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Name and version of the form, always [`SCHEMA`].
    pub schema: CleanText,
    /// The kernel that was running.
    pub kernel: Kernel,
    /// Whether the machine is virtual; absent if the kernel does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualised: Option<bool>,
    /// The hypervisor or the vendor of the virtual machine, such as `QEMU`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<CleanText>,
    /// The processors and their places.
    pub cpus: MachineCpus,
    /// The scheduler's settings.
    pub scheduler: Scheduler,
    /// The costs of new-idle balancing of each CPU, where the kernel shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newidle_costs: Option<NewIdleCosts>,
    /// The cgroups that have tasks or in which tasks have run, those that limit CPU time or CPUs, and those below a limit of CPU time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<Cgroup>,
    /// The CPUs that tasks may use, at the start of the recording and, if they were read then, while the command ran and at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affinity: Vec<Affinity>,
    /// The processes with several threads at the start of the recording: the numbers of the threads, ascending, by that of the first
    /// one, which is the number of the process.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<i32, Vec<i32>>,
    /// The scheduling policies of the tasks, at the start of the recording and, if they were read then, while the command ran and at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Policies>,
    /// The clamps of tasks' utilization, at the start of the recording and, if they were read then, at its end; none where the kernel has no
    /// clamps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clamps: Vec<Clamps>,
    /// The totals of `/proc/pressure/cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// The totals of `/proc/pressure/cpu` at the end of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_at_end: Option<Pressure>,
    /// The time between the readings of the pressure at the start and at the end of the recording, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_span_us: Option<u64>,
    /// The hits of probes that the kernel did not record, by probe; probes without any are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missed_probes: BTreeMap<CleanText, u64>,
    /// The output of the command that the recording keeps beside itself; absent where it keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_output: Option<KeptOutput>,
    /// The application that the recording was made of; absent where a command was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<RecordedApplication>,
    /// The instant at which the pressure was read, of a machine that was not read from a file.
    #[serde(skip)]
    pressure_read: Option<Instant>,
}

/// The reason why a machine file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not JSON of this form.
    #[error("not a machine file: {0}")]
    Form(#[from] serde_json::Error),
    /// The file has another form or version.
    #[error("the schema is {0:?}, not {SCHEMA:?}; write the file again with this version's schedviz machine")]
    Schema(CleanText),
    /// The file names a CPU beyond all limits.
    #[error("no machine has a CPU {0}")]
    Cpu(u32),
    /// The file cannot be read, or is too large.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Machine {
    /// Whether a cgroup was throttled during the recording, by its counters at both ends.
    pub fn was_throttled(&self) -> bool {
        let throttled = |stat: &BTreeMap<CleanText, u64>| {
            stat.iter().find(|(name, _)| name.as_str() == "nr_throttled").map(|(_, number)| *number)
        };
        let was_throttled = |cgroup: &Cgroup| {
            let before = if cgroup.is_new { Some(0) } else { throttled(&cgroup.stat) };
            before.zip(cgroup.stat_at_end.as_ref().and_then(throttled)).is_some_and(|(before, after)| after > before)
        };
        self.cgroups.iter().any(was_throttled)
    }

    /// Reads the machine below `root`: `/` for the running one, or a folder with copies of its `sys` and `proc`.
    /// `keep_arguments` keeps the values of all parameters on the kernel's command line.
    pub fn read(root: &Root, keep_arguments: bool) -> Machine {
        let cpus = MachineCpus::read(root);
        let (virtualised, hypervisor) = kernel::virtualised(root);
        let (kernel, scheduler) = (Kernel::read(root, keep_arguments), Scheduler::read(root));
        let newidle_costs = NewIdleCosts::read(root);
        let affinity = Affinity::read(root, Affinity::START).into_iter().collect();
        let processes = processes::read(root);
        let policies = Policies::read(root, Affinity::START).into_iter().collect();
        let clamps = Clamps::read(root, Affinity::START).into_iter().collect();
        // Last, so that little happens between these and the beginning of the recording.
        let cgroups = cgroups::read(root);
        let pressure = Pressure::read(root, "proc/pressure/cpu");
        Machine {
            schema: SCHEMA.into(),
            kernel,
            virtualised,
            hypervisor,
            scheduler,
            newidle_costs,
            affinity,
            processes,
            policies,
            clamps,
            cgroups,
            pressure,
            pressure_read: pressure.map(|_| Instant::now()),
            pressure_at_end: None,
            pressure_span_us: None,
            missed_probes: BTreeMap::new(),
            kept_output: None,
            application: None,
            cpus,
        }
    }

    /// Adds the tasks of the recorded command by the lists of CPUs and the policies that they had while it ran.
    pub fn add_running(&mut self, running: &RunningTasks) {
        if !running.lists.is_empty() {
            let tasks = running.lists.iter().map(|(list, pids)| (list.as_str().into(), pids.clone())).collect();
            self.affinity.push(Affinity { at: Affinity::RUNNING.into(), tasks });
        }
        if !running.policies.is_empty() {
            self.policies.push(Policies { at: Affinity::RUNNING.into(), tasks: running.policies.clone() });
        }
    }

    /// Adds the affinity, the policies and the clamps of the tasks, the pressure, the costs of new-idle balancing, and the cgroups with their tasks and
    /// counters as they are at the end of a recording.
    pub fn finish(&mut self, root: &Root) {
        self.pressure_at_end = Pressure::read(root, "proc/pressure/cpu");
        let elapsed = self.pressure_read.filter(|_| self.pressure_at_end.is_some()).map(|read| read.elapsed());
        self.pressure_span_us = elapsed.and_then(|elapsed| u64::try_from(elapsed.as_micros()).ok());
        let mut made = Vec::new();
        for end in cgroups::read(root) {
            let (threads, pressure, stat) = (end.threads.clone(), end.pressure, Some(end.stat.clone()));
            let place = self.cgroups.binary_search_by(|start| start.path.cmp(&end.path)).ok();
            // One of the same name may have been removed and made anew meanwhile.
            let same = place.and_then(|place| self.cgroups.get_mut(place)).filter(|start| start.id == end.id);
            let cgroup = match same {
                Some(cgroup) => cgroup,
                None => {
                    let (tasks, threads, stat) = (Vec::new(), Vec::new(), BTreeMap::new());
                    made.push(Cgroup { tasks, threads, stat, pressure: None, is_new: true, ..end });
                    let Some(cgroup) = made.last_mut() else { continue };
                    cgroup
                }
            };
            cgroup.stat_at_end = stat.filter(|_| cgroup.path != "/");
            (cgroup.threads_at_end, cgroup.pressure_at_end) = (threads, pressure);
        }
        self.cgroups.extend(made);
        self.cgroups.sort_by(|a, b| a.path.cmp(&b.path));
        self.affinity.extend(Affinity::read(root, Affinity::END));
        self.policies.extend(Policies::read(root, Affinity::END));
        self.clamps.extend(Clamps::read(root, Affinity::END));
        if let Some(costs) = &mut self.newidle_costs {
            costs.end = newidle::costs(root);
        }
    }

    /// Reads the text of a machine file. Control characters in its strings are escaped.
    pub fn parse(text: &str) -> Result<Machine, Error> {
        let machine: Machine = sched::event::CleanJson::new(text).read()?;
        if machine.schema != SCHEMA {
            return Err(Error::Schema(machine.schema));
        }
        match machine.cpus.places.iter().find(|place| place.cpu >= sched::Cpu::LIMIT) {
            Some(place) => Err(Error::Cpu(place.cpu)),
            None => Ok(machine),
        }
    }

    /// Reads a machine file.
    pub fn open(path: &Path) -> Result<Machine, Error> {
        let bytes = read_bounded(path, MAX_BYTES)?;
        Machine::parse(&String::from_utf8_lossy(&bytes))
    }

    /// The name of the machine file that belongs to a trace: `NAME.machine.json` beside `NAME.dat`.
    pub fn path_beside(trace: &Path) -> PathBuf {
        trace.with_extension("machine.json")
    }

    /// Returns this machine without names of programs and users: the parameters of the kernel, the names of cgroups and
    /// of an extensible scheduler, and settings that are neither numbers nor words of the kernel.
    #[must_use]
    pub fn anonymous(mut self) -> Machine {
        // Names of probes may be anyone's in a file that another program wrote.
        let missed = self.missed_hits();
        self.missed_probes = (missed > 0).then(|| ("probes".into(), missed)).into_iter().collect();
        self.kernel.command_line = None;
        self.kept_output = None;
        for (cgroup, number) in self.cgroups.iter_mut().zip(1..) {
            if cgroup.path != "/" {
                cgroup.path = format!("/cgroup{number}").into();
            }
            for text in [&mut cgroup.cpu_max, &mut cgroup.cpus, &mut cgroup.cpus_effective, &mut cgroup.partition] {
                text.take_if(|text| !is_setting(text));
            }
        }
        let Scheduler { features, tunables, sysctls, ext, domains, imbalances } = &mut self.scheduler;
        features.retain(|name| name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'));
        imbalances
            .iter_mut()
            .filter(|name| !IMBALANCES.contains(&name.as_str()))
            .for_each(|name| *name = "unknown".into());
        *ext = ext.take().map(|_| "ext".into());
        let settings = domains.iter_mut().map(|domain| &mut domain.settings);
        settings.chain([tunables, sysctls]).for_each(|settings| settings.retain(|_, value| is_setting(value)));
        self
    }

    /// The place of each CPU, as the analyses use it.
    pub fn topology(&self) -> Topology {
        self.cpus.topology()
    }

    /// The tasks whose CPU time a `cpu.max` limits, each with its cgroup, at the start of the recording.
    pub fn groups(&self) -> impl Iterator<Item = (Pid, CgroupId)> {
        let with_id = self.cgroups.iter().filter_map(|cgroup| Some((CgroupId::new(cgroup.id?), &cgroup.tasks)));
        with_id.flat_map(|(id, tasks)| tasks.iter().map(move |pid| (Pid(*pid), id)))
    }

    /// The threads in each cgroup at the start of the recording, each with its cgroup.
    pub fn members(&self) -> impl Iterator<Item = (Pid, CgroupId)> {
        let with_id = self.cgroups.iter().filter_map(|cgroup| Some((CgroupId::new(cgroup.id?), &cgroup.threads)));
        with_id.flat_map(|(id, threads)| threads.iter().map(move |pid| (Pid(*pid), id)))
    }

    /// The threads in each cgroup at the end of the recording, each with its cgroup.
    pub fn members_at_end(&self) -> impl Iterator<Item = (Pid, CgroupId)> {
        let with_id =
            self.cgroups.iter().filter_map(|cgroup| Some((CgroupId::new(cgroup.id?), &cgroup.threads_at_end)));
        with_id.flat_map(|(id, threads)| threads.iter().map(move |pid| (Pid(*pid), id)))
    }

    /// The threads at the start of the recording, each behind the first thread of its process.
    pub fn threads(&self) -> impl Iterator<Item = (Pid, Pid)> {
        let several =
            self.processes.iter().flat_map(|(leader, pids)| pids.iter().map(move |pid| (Pid(*leader), Pid(*pid))));
        // The lists of affinity have every thread; one that is in no process with several is a process of its own.
        let listed: Vec<i32> =
            self.processes.values().flatten().copied().collect::<BTreeSet<i32>>().into_iter().collect();
        let start = self.affinity.iter().filter(|taken| taken.at == Affinity::START);
        let all = start.flat_map(|taken| taken.tasks.values().flatten().copied());
        several.chain(all.filter(move |pid| listed.binary_search(pid).is_err()).map(|pid| (Pid(pid), Pid(pid))))
    }

    /// The scheduling policies of the threads at a moment of the recording ([`Affinity::START`], [`Affinity::RUNNING`],
    /// [`Affinity::END`]), each by its number in the kernel's interface.
    pub fn policies_at(&self, moment: &str) -> impl Iterator<Item = (Pid, i64)> {
        let taken = self.policies.iter().filter(move |taken| taken.at == moment);
        let each = taken.flat_map(|taken| &taken.tasks);
        each.flat_map(|(policy, pids)| pids.iter().map(|pid| (Pid(*pid), i64::from(*policy))))
    }

    /// The policy of each task of the recorded command as all readings of its program found it; nothing where they found several.
    pub fn policies_of_programs(&self) -> BTreeMap<Pid, Option<i64>> {
        let mut found: BTreeMap<Pid, Option<i64>> = BTreeMap::new();
        for (pid, policy) in self.policies_at(Affinity::RUNNING) {
            found
                .entry(pid)
                .and_modify(|known| *known = known.filter(|known| *known == policy))
                .or_insert(Some(policy));
        }
        found
    }

    /// The threads of `SCHED_IDLE`. Unless the trace `records_policies` of tasks as they change, those that the list of the start and that of the
    /// end give differently are left out, and the tasks of the recorded command are those that were found while it ran. That is asked only
    /// where there are such threads.
    pub fn sched_idle(&self, records_policies: impl FnOnce() -> bool) -> SchedIdleTasks {
        const SCHED_IDLE: i64 = 5;
        let at = |moment, is_one: bool| {
            self.policies_at(moment).filter(move |(_, policy)| (*policy == SCHED_IDLE) == is_one).map(|(pid, _)| pid)
        };
        let mut at_start: Vec<Pid> = at(Affinity::START, true).collect();
        let mut of_programs = Vec::new();
        let is_running = at(Affinity::RUNNING, true).next().is_some();
        if (is_running || !at_start.is_empty()) && !records_policies() {
            let changed: BTreeSet<Pid> = at(Affinity::END, false).collect();
            let programs = self.policies_of_programs();
            at_start.retain(|pid| !changed.contains(pid) && !programs.contains_key(pid));
            let is_idle =
                |(pid, policy): (Pid, Option<i64>)| (pid, policy == Some(SCHED_IDLE) && !changed.contains(&pid));
            of_programs = programs.into_iter().map(is_idle).collect();
        }
        SchedIdleTasks { at_start: at_start.into(), of_programs: of_programs.into() }
    }

    /// Whether tasks of a cgroup ran whose weight counts and is not the default, as far as the counters show.
    pub fn has_weighted_cgroups(&self) -> bool {
        let is_weighted = |cgroup: &Cgroup| cgroup.weight().is_some_and(|weight| weight != 100);
        self.cgroups.iter().any(|cgroup| is_weighted(cgroup) && cgroup.counted("usage_usec") != Some(0))
    }

    /// The clamps of utilization of the threads at the start or the end of the recording ([`Affinity::START`], [`Affinity::END`]), each the
    /// least and the greatest utilization; those of the threads that are not listed are 0 and 1,024.
    pub fn clamps_at(&self, moment: &str) -> impl Iterator<Item = (Pid, [u32; 2])> {
        let taken = self.clamps.iter().filter(move |taken| taken.at == moment);
        taken.flat_map(Clamps::each).map(|(pid, clamps)| (Pid(pid), clamps))
    }

    /// Whether the clamps of the threads at the start or the end of the recording are known.
    pub fn has_clamps(&self, moment: &str) -> bool {
        self.clamps.iter().any(|taken| taken.at == moment)
    }

    /// The path of a cgroup, if the file has it.
    pub fn cgroup_path(&self, id: CgroupId) -> Option<&str> {
        let cgroup = self.cgroups.iter().find(|cgroup| cgroup.id == Some(id.number()))?;
        Some(&cgroup.path)
    }

    /// Adds the lists of the CPUs that tasks may use. The tasks of lists beyond `MOST_LISTED` CPUs are not restricted.
    pub fn add_lists(&self, affinity: &mut sched::Affinity) {
        let mut left = MOST_LISTED;
        for taken in &self.affinity {
            for (list, pids) in &taken.tasks {
                let Some(list) = parse_cpu_list(list) else { continue };
                let Some(rest) = left.checked_sub(list.len()) else { return };
                left = rest;
                let list = list.into_iter().collect();
                for pid in pids {
                    match &*taken.at {
                        Affinity::START => affinity.add_first(Pid(*pid), &list),
                        Affinity::RUNNING => affinity.add_of_program(Pid(*pid), &list),
                        _ => affinity.add(Pid(*pid), &list),
                    }
                }
            }
        }
    }
}

/// The kinds of imbalance up to Linux 7.2.
const IMBALANCES: [&str; 5] = ["migrate_load", "migrate_util", "migrate_task", "migrate_misfit", "migrate_llc_task"];

/// Whether a text is the value of a setting of the scheduler: numbers and words of the kernel, which may be in
/// brackets.
fn is_setting(text: &str) -> bool {
    const WORDS: [&str; 18] = [
        "max",
        "none",
        "voluntary",
        "full",
        "lazy",
        "root",
        "isolated",
        "member",
        "invalid",
        "SMT",
        "CLS",
        "CLUSTER",
        "MC",
        "PKG",
        "DIE",
        "NODE",
        "NUMA",
        "CPU",
    ];
    text.split([' ', ',', '-', '(', ')', '[', ']']).all(|word| {
        // The flags of a domain are words in capitals with the same beginning.
        let is_flag = word.starts_with("SD_") && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        is_flag || WORDS.contains(&word) || word.bytes().all(|b| b.is_ascii_digit() || b"./:".contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_numbers_and_words_of_the_kernel() {
        for text in ["100000 100000", "max 100000", "0-3,8", "none voluntary (full) lazy", "root", "SMT", ""] {
            assert!(is_setting(text), "{text}");
        }
        assert!(is_setting("SD_BALANCE_NEWIDLE SD_WAKE_AFFINE") && is_setting("isolated"));
        assert!(!is_setting("secret") && !is_setting("12 SD_secret") && !is_setting("full.service"));
    }

    #[test]
    fn the_file_lies_beside_the_trace() {
        assert_eq!(Machine::path_beside(Path::new("a/old.1.dat")), Path::new("a/old.1.machine.json"));
        assert_eq!(Machine::path_beside(Path::new("trace")), Path::new("trace.machine.json"));
    }

    #[test]
    fn an_empty_root_gives_a_file_without_facts() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::read(&Root::at(folder.path()), false);
        let json = serde_json::to_value(&machine).unwrap();
        let expected = serde_json::json!({
            "schema": SCHEMA, "kernel": {}, "cpus": {}, "scheduler": {},
        });
        assert_eq!(json, expected);
        assert_eq!(Machine::parse(&json.to_string()).unwrap(), machine);
        assert!(machine.topology().is_empty());
    }

    #[test]
    fn the_cpus_in_lists_have_a_limit() {
        // A list for each task, which names all CPUs and differs in the last one that it repeats.
        let tasks = (1..=100).map(|pid| (format!("0-65534,{pid}").into(), vec![pid])).collect();
        let affinity = vec![Affinity { at: Affinity::START.into(), tasks }];
        let machine = Machine { affinity, ..Machine::read(&Root::at("/no/such/folder"), false) };
        let mut found = sched::Affinity::default();
        machine.add_lists(&mut found);
        let listed = (1..=100).filter(|pid| found.has_list(Pid(*pid))).count();
        assert_eq!(listed, MOST_LISTED / 65_535);
    }

    #[test]
    fn other_files_are_refused() {
        let message = |text: &str| Machine::parse(text).unwrap_err().to_string();
        assert!(message("{}").starts_with("not a machine file: missing field"));
        let other = r#"{"schema":"schedviz/machine/9","kernel":{},"cpus":{},"scheduler":{}}"#;
        assert!(message(other).starts_with(r#"the schema is "schedviz/machine/9""#));
        let cpu =
            r#"{"schema":"schedviz/machine/1","kernel":{},"cpus":{"places":[{"cpu":4000000000}]},"scheduler":{}}"#;
        assert_eq!(message(cpu), "no machine has a CPU 4000000000");
    }
}
