//! The machine and the recorder, as the header describes them. The host's name is not kept.

use crate::bytes::Bytes;
use crate::limits;
use parse::Endian;
use sched::event::CleanText;
use sched::topology::CpuLocation;
use sched::{Cpu, Topology};

/// The numbers of the header's parts that are read.
pub(crate) mod feature {
    pub(crate) const TRACING_DATA: u64 = 1;
    pub(crate) const OSRELEASE: u64 = 4;
    pub(crate) const VERSION: u64 = 5;
    pub(crate) const ARCH: u64 = 6;
    pub(crate) const NRCPUS: u64 = 7;
    pub(crate) const CMDLINE: u64 = 11;
    pub(crate) const EVENT_DESC: u64 = 12;
    pub(crate) const CPU_TOPOLOGY: u64 = 13;
    pub(crate) const NUMA_TOPOLOGY: u64 = 14;
    pub(crate) const CACHE: u64 = 20;
}

/// The machine and the recorder, as far as the header describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderMachine {
    pub(crate) release: Option<CleanText>,
    pub(crate) perf: Option<CleanText>,
    pub(crate) arch: Option<CleanText>,
    /// CPUs that the machine can have.
    pub(crate) cpus: u32,
    pub(crate) command: Vec<CleanText>,
    pub(crate) topology: Topology,
    /// Number of times that a list of CPUs has changed the place of a CPU.
    changes: usize,
}

/// Options of `perf record` that take a value in the next word, if it does not follow in their own: by letter, and by name.
const WITH_VALUE: (&[u8], [&str; 16]) = (
    b"cCDeFGjkmoprtu",
    [
        "event",
        "filter",
        "pid",
        "tid",
        "uid",
        "cpu",
        "count",
        "freq",
        "output",
        "mmap-pages",
        "call-graph",
        "clockid",
        "cgroup",
        "delay",
        "realtime",
        "max-size",
    ],
);

impl HeaderMachine {
    /// Whether the recorder was asked for some tasks (`perf record -p`, `-t`, `-u`): perf then ignores `-a` and `-C`.
    pub(crate) fn selects_tasks(&self) -> bool {
        let mut words = self.command.iter().skip_while(|word| *word != "record").skip(1);
        while let Some(word) = words.next() {
            let (is_selection, has_value_behind) = match (word.strip_prefix("--"), word.strip_prefix('-')) {
                // The traced command follows.
                (Some(""), _) | (None, None | Some("")) => return false,
                (Some(long), _) => {
                    let name = long.split('=').next().unwrap_or_default();
                    (["pid", "tid", "uid"].contains(&name), !long.contains('=') && WITH_VALUE.1.contains(&name))
                }
                // Letters without a value can stand before one with a value.
                (None, Some(short)) => {
                    let letters = short.as_bytes();
                    let taking = letters.iter().position(|letter| WITH_VALUE.0.contains(letter));
                    let letter = taking.and_then(|at| letters.get(at));
                    let is_last = taking.is_some_and(|at| at.saturating_add(1) == letters.len());
                    (matches!(letter, Some(b'p' | b't' | b'u')), is_last)
                }
            };
            if is_selection {
                return true;
            }
            if has_value_behind {
                words.next();
            }
        }
        false
    }

    /// Takes a part of the header in; `None` if it is shorter than its own counts say. All that precedes that is kept.
    pub(crate) fn add(&mut self, number: u64, bytes: &[u8], endian: Endian) -> Option<()> {
        let mut bytes = Bytes::new(bytes, endian);
        match number {
            feature::OSRELEASE => self.release = Some(bytes.text()?),
            feature::VERSION => self.perf = Some(bytes.text()?),
            feature::ARCH => self.arch = Some(bytes.text()?),
            feature::NRCPUS => self.cpus = bytes.u32()?.min(Cpu::LIMIT),
            feature::CMDLINE => self.command = bytes.texts(limits::ARGUMENTS)?,
            feature::CPU_TOPOLOGY => self.add_cores(bytes)?,
            feature::NUMA_TOPOLOGY => self.add_nodes(bytes)?,
            feature::CACHE => self.add_caches(bytes)?,
            _ => {}
        }
        Some(())
    }

    /// The lists of CPUs that share a package, and of those that share a core; then the package's number of each CPU.
    fn add_cores(&mut self, mut bytes: Bytes<'_>) -> Option<()> {
        let packages = bytes.texts(limits::CPUS)?;
        for (number, list) in packages.iter().enumerate() {
            self.each(list, |place| place.socket = Some(number as u32));
        }
        let cores = bytes.texts(limits::CPUS)?;
        for (number, list) in cores.iter().enumerate() {
            self.each(list, |place| place.core = Some(number as u32));
        }
        for cpu in 0..self.cpus {
            // Perf before 4.2 wrote no numbers. One of a CPU that is offline is -1.
            let (Some(_core), Some(socket)) = (bytes.u32(), bytes.u32()) else { break };
            if let Some(place) = self.topology.place(Cpu(cpu)).filter(|_| socket != u32::MAX) {
                let place = CpuLocation { socket: Some(socket), ..*place };
                self.topology.set(Cpu(cpu), place);
            }
        }
        Some(())
    }

    fn add_nodes(&mut self, mut bytes: Bytes<'_>) -> Option<()> {
        for _ in 0..bytes.u32()? {
            let node = bytes.u32()?;
            let (_total, _free) = (bytes.u64()?, bytes.u64()?);
            let list = bytes.text()?;
            self.each(&list, |place| place.node = Some(node));
        }
        Some(())
    }

    /// The caches of all levels, each with the CPUs that share it: those of the highest level and of the second level count.
    fn add_caches(&mut self, mut bytes: Bytes<'_>) -> Option<()> {
        if bytes.u32()? != 1 {
            return None;
        }
        let mut caches = Vec::new();
        for _ in 0..bytes.u32()? {
            let level = bytes.u32()?;
            for _ in ["line size", "sets", "ways"] {
                bytes.u32()?;
            }
            let (_kind, _size, list) = (bytes.text()?, bytes.text()?, bytes.text()?);
            caches.push((level, list));
        }
        let highest = caches.iter().map(|(level, _)| *level).max();
        for (number, (_, list)) in caches.iter().filter(|(level, _)| Some(*level) == highest).enumerate() {
            self.each(list, |place| place.llc = Some(number as u32));
        }
        let second = caches.iter().filter(|(level, _)| *level == 2 && highest > Some(2));
        for (number, (_, list)) in second.enumerate() {
            self.each(list, |place| place.cluster = Some(number as u32));
        }
        Some(())
    }

    /// Changes the place of every CPU of a list such as `0-3,8`. CPUs beyond those of the machine are left out.
    fn each(&mut self, list: &str, change: impl Fn(&mut CpuLocation)) {
        for range in list.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else { continue };
            for cpu in first..last.saturating_add(1).min(self.cpus) {
                if self.changes >= limits::PLACES {
                    return;
                }
                self.changes = self.changes.saturating_add(1);
                let mut place = self.topology.place(Cpu(cpu)).copied().unwrap_or_default();
                change(&mut place);
                self.topology.set(Cpu(cpu), place);
            }
        }
    }

    /// The places of the CPUs, with those clusters alone that are a level of their own.
    pub(crate) fn settled_topology(&self) -> Topology {
        let mut topology = self.topology.clone();
        topology.settle_clusters();
        topology
    }

    /// Release and architecture in the form of `uname`, without the host's name.
    pub(crate) fn uname(&self) -> Option<CleanText> {
        let release = self.release.as_deref()?;
        Some(format!("Linux {release} {}", self.arch.as_deref().unwrap_or("unknown")).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
    }

    fn numbers(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn tasks_that_the_recorder_was_asked_for() {
        let of = |line: &str| {
            let command = line.split(' ').map(CleanText::from).collect();
            HeaderMachine { command, ..HeaderMachine::default() }.selects_tasks()
        };
        for line in [
            "perf record -e sched:* -p 123",
            "/usr/bin/perf record -p123 sleep 5",
            "perf record -a -t 7",
            "perf record -gp 123",
            "perf record -e sched:sched_switch --pid=1,2 -o x",
            "perf record --output x --tid 5",
            "perf record -u 1000",
        ] {
            assert!(of(line), "{line}");
        }
        for line in [
            "perf record -a -e sched:* tar -t x.tar",
            "perf sched record sleep 1",
            "perf record -a -o -p sleep 1",
            "perf record -e sched:* -- ps -p 1",
            "perf record -agF 99 -C 0-3 -o t sleep 1",
            "perf record --event sched:* --output u make -u",
            "perf sched record -- make -t",
            "perf report -p 5",
            "",
        ] {
            assert!(!of(line), "{line}");
        }
    }

    #[test]
    fn a_machine_of_two_sockets_and_threads() {
        let mut machine = HeaderMachine::default();
        let mut add = |number: u64, bytes: &[u8]| machine.add(number, bytes, Endian::Little);
        add(feature::NRCPUS, &numbers(&[4, 4])).unwrap();
        let lists = |lists: &[&str]| {
            let texts = lists.iter().flat_map(|list| text(list));
            numbers(&[lists.len() as u32]).into_iter().chain(texts).collect::<Vec<u8>>()
        };
        let siblings = [lists(&["0-1", "2-3"]), lists(&["0-1", "2-3"])].concat();
        let ids = numbers(&[0, 7, 0, 7, 0, 9, u32::MAX, u32::MAX]);
        add(feature::CPU_TOPOLOGY, &[siblings, ids].concat()).unwrap();
        let node = |number: u32, list: &str| [numbers(&[number, 1, 0, 1, 0]), text(list)].concat();
        add(feature::NUMA_TOPOLOGY, &[numbers(&[2]), node(0, "0-1"), node(1, "2-3,900")].concat()).unwrap();
        let cache =
            |level: u32, list: &str| [numbers(&[level, 64, 64, 8]), text("Unified"), text("32K"), text(list)].concat();
        let caches = [cache(1, "0"), cache(3, "0-1"), cache(2, "0"), cache(3, "2-3")].concat();
        add(feature::CACHE, &[numbers(&[1, 4]), caches].concat()).unwrap();
        let place = |cpu: u32| *machine.topology.place(Cpu(cpu)).unwrap();
        let all = |p: CpuLocation| [p.core, p.llc, p.node, p.socket];
        assert_eq!(all(place(1)), [Some(0), Some(0), Some(0), Some(7)]);
        assert_eq!(all(place(2)), [Some(1), Some(1), Some(1), Some(9)]);
        assert_eq!(all(place(3)), [Some(1), Some(1), Some(1), Some(1)]);
        assert_eq!(machine.topology.place(Cpu(900)), None);
        // The L2 is that of a core here.
        assert!(!machine.settled_topology().has_clusters());
        let caches = [cache(2, "0-1"), cache(2, "2-3"), cache(3, "0-3")].concat();
        let mut machine = HeaderMachine { cpus: 4, ..HeaderMachine::default() };
        machine.add(feature::CACHE, &[numbers(&[1, 3]), caches].concat(), Endian::Little).unwrap();
        let cluster = |cpu| machine.settled_topology().place(Cpu(cpu)).and_then(|place| place.cluster);
        assert_eq!([0, 1, 2, 3].map(cluster), [Some(0), Some(0), Some(1), Some(1)]);
    }

    #[test]
    fn lists_of_cpus_have_a_limit() {
        let mut machine = HeaderMachine { cpus: 60_000, ..HeaderMachine::default() };
        let list = text(&"0-59999,".repeat(1000));
        let mut nodes = numbers(&[50]);
        for node in 0..50 {
            nodes.extend([numbers(&[node, 1, 0, 1, 0]), list.clone()].concat());
        }
        machine.add(feature::NUMA_TOPOLOGY, &nodes, Endian::Little).unwrap();
        assert_eq!(machine.changes, limits::PLACES);
        assert_eq!(machine.topology.cpus().count(), 60_000);
    }

    #[test]
    fn parts_that_end_too_early() {
        let mut machine = HeaderMachine { cpus: 4, ..HeaderMachine::default() };
        assert_eq!(machine.add(feature::CMDLINE, &numbers(&[3, 1]), Endian::Little), None);
        assert_eq!(machine.add(feature::NUMA_TOPOLOGY, &numbers(&[u32::MAX, 1]), Endian::Little), None);
        assert_eq!(machine.add(feature::CACHE, &numbers(&[2]), Endian::Little), None);
        assert_eq!(machine.uname(), None);
        machine.add(feature::OSRELEASE, &text("6.12.1\0\0"), Endian::Little).unwrap();
        assert_eq!(machine.uname().as_deref(), Some("Linux 6.12.1 unknown"));
    }
}
