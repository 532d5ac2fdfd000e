//! Lanes of groups of CPUs: where there are more CPUs than lanes can be distinguished, a core, a last-level cache or a node
//! has one lane. Its height is the time of all its CPUs (`docs/questions/dat2graph.md#group-lanes`).

use crate::Options;
use crate::lane::Lane;
use sched::topology::CpuOrder;
use sched::{Cpu, Topology, Ts};
use std::collections::{BTreeMap, BTreeSet};
use timeline::strips::SILENT;
use timeline::{Division, Piece, PieceClass};

/// The maximum number of lanes that can be distinguished in a figure.
pub const MANY_LANES: usize = 64;

/// The CPUs that share a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LanesOf {
    /// Each CPU alone
    Cpu,
    /// The CPUs of a core
    Core,
    /// The CPUs under a last-level cache
    Llc,
    /// The CPUs of a NUMA node
    Node,
}

impl LanesOf {
    /// The kinds of groups that join CPUs, from the finest on.
    const JOINING: [LanesOf; 3] = [LanesOf::Core, LanesOf::Llc, LanesOf::Node];

    /// Returns the name of one of them.
    pub fn name(self) -> &'static str {
        match self {
            LanesOf::Cpu => "CPU",
            LanesOf::Core => "core",
            LanesOf::Llc => "LLC",
            LanesOf::Node => "node",
        }
    }

    /// Returns the number of the group of a CPU, in front of it the number of the socket that numbers its cores; `None` where
    /// the topology lacks it.
    fn of(self, cpu: Cpu, topology: &Topology) -> Option<(Option<u32>, u32)> {
        let place = topology.place(cpu)?;
        match self {
            LanesOf::Cpu => Some((None, cpu.0)),
            LanesOf::Core => place.core.map(|core| (place.socket, core)),
            LanesOf::Llc => place.llc.map(|llc| (None, llc)),
            LanesOf::Node => topology.group(cpu, CpuOrder::Node).map(|node| (None, node)),
        }
    }

    /// Whether the topology has such a group of any CPU.
    pub fn is_known(self, topology: &Topology) -> bool {
        topology.cpus().any(|cpu| self.of(cpu, topology).is_some())
    }

    /// Returns the finest of core, last-level cache and node that makes few enough lanes of these CPUs, or else the one that
    /// makes the fewest; of CPUs where the topology has no group of them.
    pub fn fitting(cpus: &[(Cpu, Option<u32>)], topology: &Topology) -> LanesOf {
        let count = |of: LanesOf| {
            let groups: BTreeSet<_> = cpus.iter().map(|(cpu, _)| of.of(*cpu, topology)).collect();
            groups.len()
        };
        let known = |of: &LanesOf| cpus.iter().any(|(cpu, _)| of.of(*cpu, topology).is_some());
        let joining = || LanesOf::JOINING.into_iter().filter(known);
        let fewest = || joining().min_by_key(|of| count(*of));
        joining().find(|of| count(*of) <= MANY_LANES).or_else(fewest).unwrap_or(LanesOf::Cpu)
    }
}

/// A group of CPUs that has a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LaneGroup {
    /// The number of the group; `None` for the CPUs whose group is unknown.
    number: Option<u32>,
    /// The number of its CPUs, those without any event included.
    cpus: u64,
    /// The group of lanes that it is shown in.
    within: Option<u32>,
}

/// The groups of the CPUs of a figure, in display order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneGroups {
    of: LanesOf,
    groups: Vec<LaneGroup>,
    rows: BTreeMap<Cpu, usize>,
}

impl LaneGroups {
    /// Groups these CPUs, which are in display order, each with the group of lanes that it is shown in. `None` where each CPU
    /// has a lane of its own.
    pub fn new(of: LanesOf, cpus: &[(Cpu, Option<u32>)], topology: &Topology) -> Option<LaneGroups> {
        if of == LanesOf::Cpu {
            return None;
        }
        let mut found: BTreeMap<Option<(Option<u32>, u32)>, usize> = BTreeMap::new();
        let mut made = LaneGroups { of, groups: Vec::new(), rows: BTreeMap::new() };
        let mut torn = false;
        for (cpu, within) in cpus {
            let key = of.of(*cpu, topology);
            let row = *found.entry(key).or_insert_with(|| {
                made.groups.push(LaneGroup { number: key.map(|key| key.1), cpus: 0, within: *within });
                made.groups.len() - 1
            });
            let group = made.groups.get_mut(row)?;
            group.cpus += 1;
            torn |= group.within != *within;
            made.rows.insert(*cpu, row);
        }
        // A lane within one group alone is shown within it; one group around all lanes, or around each, would separate nothing.
        let pairs = || made.groups.windows(2).map(|pair| pair[0].within == pair[1].within);
        if torn || pairs().all(|same| same) || pairs().all(|same| !same) {
            made.groups.iter_mut().for_each(|group| group.within = None);
        }
        Some(made)
    }

    /// Returns the number of lanes.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the lane of a CPU.
    pub(crate) fn row_of(&self, cpu: Cpu) -> Option<usize> {
        self.rows.get(&cpu).copied()
    }

    /// Whether lanes are shown in groups.
    pub(crate) fn are_within(&self) -> bool {
        self.groups.iter().any(|group| group.within.is_some())
    }

    /// Returns the name of a lane's kind.
    pub(crate) fn kind(&self) -> &'static str {
        self.of.name()
    }

    /// Returns the name of each lane with the number of its CPUs, and the group that it is shown in.
    pub(crate) fn names(&self) -> impl Iterator<Item = (String, Option<u32>)> {
        self.groups.iter().map(|group| {
            let name = match group.number {
                Some(number) => format!("{} {number} ({})", self.kind(), group.cpus),
                None => format!("no {} ({})", self.kind(), group.cpus),
            };
            (name, group.within)
        })
    }

    /// Returns the meaning of a lane in words: `node of 16 CPUs`.
    pub(crate) fn meaning(&self) -> String {
        let counts = || self.groups.iter().map(|group| group.cpus);
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let count = if least == most { least.to_string() } else { format!("{least} to {most}") };
        format!("{} of {count} {}", self.kind(), sched::nouns::noun(most as usize, "CPU"))
    }

    /// Returns the pieces of each lane: for each column the time of its CPUs by class. CPUs that have no lane of their own in
    /// `lanes` had no event.
    pub(crate) fn pieces(&self, lanes: &[Lane], options: &Options) -> Vec<Vec<Piece>> {
        let mut division = Division::into_parts(options.from, options.to, options.columns() as usize);
        // A window of fewer nanoseconds than columns leaves some without any time.
        let mut columns = vec![(options.from, options.from); division.count()];
        division.split(options.from, options.to, |column, start, end| columns[column] = (start, end));
        let sum = |group: &LaneGroup| LaneSum { silent: group.cpus, columns: vec![Vec::new(); division.count()] };
        let mut sums: Vec<LaneSum> = self.groups.iter().map(sum).collect();
        for lane in lanes {
            if let Some(sum) = self.row_of(lane.report.cpu).and_then(|row| sums.get_mut(row)) {
                sum.silent = sum.silent.saturating_sub(1);
                lane.pieces.iter().for_each(|piece| sum.add(piece, &mut division));
            }
        }
        sums.into_iter().map(|sum| sum.pieces(&columns)).collect()
    }
}

/// The time of the CPUs of a lane.
struct LaneSum {
    /// The number of CPUs without any event.
    silent: u64,
    /// The time by class in each column.
    columns: Vec<Vec<(PieceClass, u64)>>,
}

impl LaneSum {
    /// Adds a piece of the lane of one CPU, in columns of this division.
    fn add(&mut self, piece: &Piece, division: &mut Division) {
        match piece {
            Piece::Exact { class, start, end } => {
                division.split(*start, *end, |column, start, end| self.add_to(column, *class, end.since(start).0));
            }
            // Shares are those of a part of one column.
            Piece::Shares { start, shares, .. } => {
                let column = division.part_of(*start);
                shares.iter().for_each(|(class, ns)| self.add_to(column, *class, *ns));
            }
        }
    }

    fn add_to(&mut self, column: usize, class: PieceClass, ns: u64) {
        let Some(shares) = self.columns.get_mut(column) else { return };
        match shares.iter_mut().find(|(known, _)| *known == class) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => shares.push((class, ns)),
        }
    }

    /// Returns a piece for each column, which are from and to these times.
    fn pieces(self, columns: &[(Ts, Ts)]) -> Vec<Piece> {
        let piece = |(mut shares, (start, end)): (Vec<(PieceClass, u64)>, &(Ts, Ts))| {
            if self.silent > 0 {
                shares.push((SILENT, self.silent.saturating_mul(end.since(*start).0)));
            }
            shares.sort_unstable();
            Piece::Shares { start: *start, end: *end, shares }
        };
        self.columns.into_iter().zip(columns).filter(|(_, (start, end))| start < end).map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::{Coloring, IDLE};
    use crate::{Timeline, figure};
    use draw::Item;
    use sched::topology::CpuLocation;
    use sched::{Comm, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef};

    /// A machine of nodes with this many caches of as many cores of two CPUs, and their CPUs in display order.
    fn machine(nodes: u32, caches: u32, cores: u32) -> (Topology, Vec<(Cpu, Option<u32>)>) {
        let mut topology = Topology::default();
        let count = nodes * caches * cores * 2;
        for cpu in 0..count {
            let (core, llc) = (cpu / 2, cpu / 2 / cores);
            let place = CpuLocation {
                core: Some(core),
                cluster: None,
                llc: Some(llc),
                node: Some(llc / caches),
                socket: Some(0),
            };
            topology.set(Cpu(cpu), place);
        }
        (topology, (0..count).map(|cpu| (Cpu(cpu), Some(0))).collect())
    }

    #[test]
    fn the_finest_groups_that_make_few_enough_lanes() {
        let finest = |nodes, caches, cores| {
            let (topology, cpus) = machine(nodes, caches, cores);
            LanesOf::fitting(&cpus, &topology)
        };
        assert_eq!(finest(4, 2, 8), LanesOf::Core, "64 cores");
        assert_eq!(finest(16, 2, 4), LanesOf::Llc, "128 cores, 32 caches");
        assert_eq!(finest(16, 8, 1), LanesOf::Node, "128 cores and caches, 16 nodes");
        assert_eq!(finest(100, 2, 1), LanesOf::Node, "too many of all, and fewest nodes");
        let (_, cpus) = machine(16, 2, 4);
        assert_eq!(LanesOf::fitting(&cpus, &Topology::default()), LanesOf::Cpu);
    }

    #[test]
    fn a_lane_has_a_name_its_cpus_and_the_group_that_holds_it() {
        let (topology, mut cpus) = machine(2, 2, 1);
        let names = |of, cpus: &[(Cpu, Option<u32>)]| {
            let groups = LaneGroups::new(of, cpus, &topology).expect("groups");
            (groups.names().map(|(name, within)| format!("{name} {within:?}")).collect::<Vec<_>>(), groups.meaning())
        };
        cpus.iter_mut().for_each(|(cpu, within)| *within = Some(cpu.0 / 4));
        let expected = ["LLC 0 (2) Some(0)", "LLC 1 (2) Some(0)", "LLC 2 (2) Some(1)", "LLC 3 (2) Some(1)"];
        assert_eq!(names(LanesOf::Llc, &cpus), (expected.map(String::from).to_vec(), "LLC of 2 CPUs".to_owned()));
        // A node fills its socket here, and CPU 99 is not in the topology.
        cpus.push((Cpu(99), None));
        let expected = ["node 0 (4) None", "node 1 (4) None", "no node (1) None"];
        assert_eq!(
            names(LanesOf::Node, &cpus),
            (expected.map(String::from).to_vec(), "node of 1 to 4 CPUs".to_owned())
        );
        // Lanes that are finer than a group of lanes cannot be in it.
        cpus.iter_mut().for_each(|(cpu, within)| *within = Some(cpu.0));
        assert!(names(LanesOf::Llc, &cpus).0.iter().all(|name| name.ends_with("None")));
        assert_eq!(LaneGroups::new(LanesOf::Cpu, &cpus, &topology), None);
    }

    #[test]
    fn a_column_has_the_time_of_all_cpus_of_a_group() {
        // Tasks 7 and 8 on the CPUs of node 0, task 9 on CPU 2 of node 1, whose CPU 3 has no event.
        let task = |pid: i32| TaskRef {
            pid: Pid(pid),
            prio: 120,
            comm: Comm::new(if pid == 0 { b"swapper" } else { b"make" }),
        };
        let switch = |ns, cpu, prev: i32, next: i32| {
            let state = if prev == 0 { PrevState::RUNNABLE } else { PrevState::asleep(1) };
            let kind = EventKind::Switch { prev: task(prev), state, next: task(next) };
            SchedEvent { ts: Ts(ns), cpu: Cpu(cpu), pid: Pid(prev), flags: 0, kind }
        };
        let events = [
            switch(0, 0, 0, 7),
            switch(0, 1, 0, 8),
            switch(0, 2, 0, 9),
            switch(12, 1, 8, 0),
            switch(14, 1, 0, 8),
            switch(16, 1, 8, 0),
            switch(25, 0, 7, 0),
            switch(16_000, 2, 9, 0),
        ];
        let (topology, all) = machine(2, 1, 1);
        let options = Options {
            from: Ts(0),
            to: Ts(16_000),
            zero: Ts(0),
            cpus: all[..3].to_vec(),
            groups: LaneGroups::new(LanesOf::Node, &all, &topology),
            all_cpus: all,
            group_name: "socket".to_owned(),
            marks: Vec::new(),
            frequency: false,
            coloring: Coloring::default(),
            pictures: 1,
            siblings: Vec::new(),
        };
        assert_eq!((options.columns(), options.lane_count()), (1_600, 2), "columns of 10 ns");
        let outcome = Pass::over(&events[..]).run(|| Timeline::new(&options)).unwrap_or_else(|never| match never {});
        let lanes = outcome.output;
        let [a, b, c] = [7, 8, 9].map(|pid| {
            lanes.iter().flat_map(|lane| &lane.tasks).find(|task| task.pid == Pid(pid)).expect("a task").class
        });
        let pieces = options.groups.as_ref().expect("groups").pieces(&lanes, &options);
        let piece = |column: i64, mut shares: Vec<(PieceClass, u64)>| {
            shares.sort_unstable();
            Piece::Shares { start: Ts(10 * column), end: Ts(10 * column + 10), shares }
        };
        let expected = [
            piece(0, vec![(a, 10), (b, 10)]),
            piece(1, vec![(a, 10), (b, 4), (IDLE, 6)]),
            piece(2, vec![(a, 5), (IDLE, 15)]),
            piece(3, vec![(IDLE, 20)]),
        ];
        assert_eq!(pieces[0][..4], expected);
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [1_600, 1_600]);
        assert!((0..).zip(&pieces[1]).all(|(column, found)| *found == piece(column, vec![(c, 10), (SILENT, 10)])));
        // The lanes of the CPUs are those that they have by themselves.
        let (apart, of_cpus) = options.apart(lanes.clone());
        let by_cpu = Pass::over(&events[..]).run(|| Timeline::new(&of_cpus)).unwrap_or_else(|never| match never {});
        let drawn = |lanes: &[Lane]| lanes.iter().map(|lane| lane.pieces.clone()).collect::<Vec<_>>();
        assert_eq!(drawn(&apart), drawn(&by_cpu.output));
        let report = crate::report(&lanes, &options);
        let figure = figure(&lanes, &report, &options, &timeline::page::Heading::default());
        let texts: Vec<&str> = figure
            .items
            .iter()
            .filter_map(|item| if let Item::Text { text, .. } = item { Some(text.as_str()) } else { None })
            .collect();
        for text in
            ["node 0 (2)", "node 1 (2)", "a lane: node of 2 CPUs", "CPU without any event", "node (number of CPUs)"]
        {
            assert!(texts.contains(&text), "{text:?} is not in {texts:?}");
        }
    }
}
