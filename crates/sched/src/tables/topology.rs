//! Where each CPU sits: core, cluster, last-level cache, NUMA node, socket; and the order to show them in.

use crate::event::{CleanJson, Cpu};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The location of a CPU within the machine. A level that the source lacks is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuLocation {
    /// The number of the core, unique within the machine; CPUs that share it are SMT siblings.
    pub core: Option<u32>,
    /// The number of the cluster: CPUs of several cores that share a cache below the last level, mostly the L2. Absent where there is none
    /// between the core and the last-level cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<u32>,
    /// The number of the last-level cache.
    pub llc: Option<u32>,
    /// The number of the NUMA node.
    pub node: Option<u32>,
    /// The number of the socket (physical package).
    pub socket: Option<u32>,
}

impl CpuLocation {
    /// The numbers of the core, the cluster, the cache and the node, or of the socket if the node is unknown: what CPUs at each
    /// [`Distance`] share, the nearest first.
    pub fn levels(&self) -> [Option<u32>; Distance::ALL.len() - 1] {
        [self.core, self.cluster, self.llc, self.node.or(self.socket)]
    }

    /// The distance between CPUs at these two places.
    pub fn distance(&self, other: &CpuLocation) -> Distance {
        let levels = self.levels().into_iter().zip(other.levels());
        let shared = |(_, (own, other)): &(Distance, (Option<u32>, Option<u32>))| own.is_some() && own == other;
        Distance::ALL.into_iter().zip(levels).find(shared).map_or(Distance::Machine, |(distance, _)| distance)
    }
}

/// An order in which figures show CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CpuOrder {
    /// Ascending CPU numbers.
    Number,
    /// Socket by socket, in each core by core.
    Socket,
    /// NUMA node by NUMA node, in each core by core.
    Node,
    /// Last-level cache by last-level cache, in each core by core.
    Llc,
}

/// The distance between two CPUs, by the closest level that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// SMT siblings: the CPUs share a core.
    Smt,
    /// The CPUs share a cluster: a cache of several cores below the last level.
    Cluster,
    /// The CPUs share a last-level cache, and no cluster.
    Llc,
    /// The CPUs share a NUMA node.
    Node,
    /// The CPUs are in different NUMA nodes.
    Machine,
}

impl Distance {
    /// Every distance, the nearest first, in the order of their indices.
    pub const ALL: [Distance; 5] = [Distance::Smt, Distance::Cluster, Distance::Llc, Distance::Node, Distance::Machine];
}

/// The CPUs of a machine and their locations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Topology {
    places: BTreeMap<u32, CpuLocation>,
}

/// The reason why a topology could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TopologyError {
    /// The text is in none of the known forms.
    #[error(
        "not a topology: expected the output of `lscpu -e -J`, of `lscpu -p=cpu,core,socket,node,cache` or of `schedviz machine`, or lines such as `cpu0 socket=0 core=0 llc=0-7`"
    )]
    UnknownForm,
    /// A line of a known form has something else than a number where one belongs.
    #[error("line {line} of the topology: {what}")]
    BadLine {
        /// The number of the line, counted from 1.
        line: usize,
        /// The fault in the line.
        what: String,
    },
    /// The lists of the nodes name more CPUs than the nodes of any machine have.
    #[error("the lists of the NUMA nodes name more than {MOST_IN_NODES} CPUs together")]
    TooManyCpus,
}

/// Maximum number of CPUs in the lists of all nodes together, since each CPU is in one list.
const MOST_IN_NODES: usize = 1 << 20;

impl Topology {
    /// Reads the text of `lscpu -e -J`, `lscpu -J`, `lscpu -p=…`, a machine file, or `cpuN key=value…` lines (the shell
    /// loop over `/sys/devices/system/cpu` that the README gives).
    pub fn parse(text: &str) -> Result<Topology, TopologyError> {
        let first = text.trim_start();
        let mut topology = if first.starts_with('{') {
            from_json(first)
        } else if first.starts_with("cpu") {
            from_pairs(text)
        } else if first.starts_with('#') || first.starts_with(|c: char| c.is_ascii_digit()) {
            from_columns(text)
        } else {
            Err(TopologyError::UnknownForm)
        }?;
        topology.settle_clusters();
        Ok(topology)
    }

    /// The location of `cpu`, if the source names it.
    pub fn place(&self, cpu: Cpu) -> Option<&CpuLocation> {
        self.places.get(&cpu.0)
    }

    /// Iterates over the CPUs that the source names, in ascending order.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> {
        self.places.keys().map(|cpu| Cpu(*cpu))
    }

    /// Sets the location of `cpu`.
    pub fn set(&mut self, cpu: Cpu, place: CpuLocation) {
        self.places.insert(cpu.0, place);
    }

    /// Whether the location of no CPU is known.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The group of `cpu` in `order`: the number of its socket, node (the socket if the node is unknown) or cache.
    /// `None` for the order by number, or if unknown.
    pub fn group(&self, cpu: Cpu, order: CpuOrder) -> Option<u32> {
        let place = self.place(cpu)?;
        match order {
            CpuOrder::Number => None,
            CpuOrder::Socket => place.socket,
            CpuOrder::Node => place.node.or(place.socket),
            CpuOrder::Llc => place.llc,
        }
    }

    /// Whether any CPU has a group in this order. The order by number always counts as one that has.
    pub fn has_groups(&self, order: CpuOrder) -> bool {
        order == CpuOrder::Number || self.cpus().any(|cpu| self.group(cpu, order).is_some())
    }

    /// Whether CPUs can be at each [`Distance`], by its index. [`Distance::Machine`] is always possible.
    pub fn distances(&self) -> [bool; Distance::ALL.len()] {
        let cores = self.places.values().any(|place| place.core.is_some());
        [cores, self.has_clusters(), self.has_groups(CpuOrder::Llc), self.has_groups(CpuOrder::Node), true]
    }

    /// Whether any CPU is in a cluster.
    pub fn has_clusters(&self) -> bool {
        self.places.values().any(|place| place.cluster.is_some())
    }

    /// Forgets the clusters that are no level of their own: those of one core, those of all CPUs under their last-level cache, and those
    /// that extend beyond it. A source of clusters calls this once all places are set.
    pub fn settle_clusters(&mut self) {
        let mut clusters: BTreeMap<u32, Vec<CpuLocation>> = BTreeMap::new();
        let mut caches: BTreeMap<u32, usize> = BTreeMap::new();
        for place in self.places.values() {
            place.llc.into_iter().for_each(|llc| *caches.entry(llc).or_default() += 1);
            place.cluster.into_iter().for_each(|cluster| clusters.entry(cluster).or_default().push(*place));
        }
        let is_level = |members: &[CpuLocation]| {
            let first = members[0];
            let is_core = first.core.is_some() && members.iter().all(|place| place.core == first.core);
            let in_cache = members.iter().all(|place| place.llc == first.llc);
            let is_cache = first.llc.is_some_and(|llc| caches.get(&llc) == Some(&members.len()));
            members.len() > 1 && !is_core && in_cache && !is_cache
        };
        clusters.retain(|_, members| is_level(members));
        for place in self.places.values_mut() {
            place.cluster = place.cluster.filter(|cluster| clusters.contains_key(cluster));
        }
    }

    /// The number of NUMA nodes whose CPUs are known.
    pub fn nodes(&self) -> usize {
        let mut nodes: Vec<u32> = self.cpus().filter_map(|cpu| self.place(cpu)?.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }

    /// The distance between two CPUs; `None` if the location of one of them is not known.
    pub fn distance(&self, a: Cpu, b: Cpu) -> Option<Distance> {
        Some(self.place(a)?.distance(self.place(b)?))
    }

    /// The CPUs that have SMT siblings, in ascending order, each with the first CPU of its core.
    pub fn siblings(&self) -> Vec<(Cpu, Cpu)> {
        let mut cores: BTreeMap<u32, (Cpu, u32)> = BTreeMap::new();
        let of_core = |place: &CpuLocation| place.core;
        for (cpu, core) in self.cpus().filter_map(|cpu| Some((cpu, self.place(cpu).and_then(of_core)?))) {
            cores.entry(core).or_insert((cpu, 0)).1 += 1;
        }
        let first = |cpu: Cpu| {
            cores.get(&self.place(cpu)?.core?).filter(|(_, number)| *number > 1).map(|(first, _)| (cpu, *first))
        };
        self.cpus().filter_map(first).collect()
    }

    /// Sorts `cpus` in display order: by group, in each by core, then by number. A core has the place of its first CPU. CPUs without a group come
    /// last. The order by number has neither groups nor cores.
    pub fn arrange(&self, cpus: &mut [Cpu], order: CpuOrder) {
        let siblings = if order == CpuOrder::Number { Vec::new() } else { self.siblings() };
        cpus.sort_by_key(|cpu| {
            let group = self.group(*cpu, order);
            let first = siblings.binary_search_by_key(cpu, |(cpu, _)| *cpu).map_or(*cpu, |place| siblings[place].1);
            (group.is_none(), group, first.0, cpu.0)
        });
    }
}

/// Parses a number of a level; `None` if the source leaves it out.
fn number(line: usize, name: &str, text: &str) -> Result<Option<u32>, TopologyError> {
    let text = text.trim();
    if text.is_empty() || text == "-" {
        return Ok(None);
    }
    match text.parse() {
        Ok(n) => Ok(Some(n)),
        Err(_) => Err(TopologyError::BadLine { line, what: format!("{name} is not a number: {:?}", clip(text)) }),
    }
}

/// Returns the beginning of a faulty text, for a message.
fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Parses the number of a CPU, which must be below [`Cpu::LIMIT`].
fn cpu_number(line: usize, text: &str) -> Result<u32, TopologyError> {
    match number(line, "CPU", text)? {
        Some(n) if n < Cpu::LIMIT => Ok(n),
        _ => Err(TopologyError::BadLine { line, what: format!("no such CPU: {:?}", clip(text)) }),
    }
}

/// Returns the number of the last-level cache: the last of `0:0:0:0` (L1d, L1i, L2, L3).
fn last_cache(line: usize, text: &str) -> Result<Option<u32>, TopologyError> {
    number(line, "cache", text.rsplit([':', ',']).next().unwrap_or(""))
}

/// Returns the number of the second-level cache of `0:0:0:0` (L1d, L1i, L2, L3), by the names of the levels if there are any. The last
/// level is no cluster.
fn second_cache(line: usize, names: Option<&str>, text: &str) -> Result<Option<u32>, TopologyError> {
    let caches: Vec<&str> = text.split([':', ',']).collect();
    let place = names.map_or(Some(2), |names| names.split(':').position(|name| name.eq_ignore_ascii_case("l2")));
    match place.filter(|place| place + 1 < caches.len()) {
        Some(place) => number(line, "cache", caches[place]),
        None => Ok(None),
    }
}

/// Reads `lscpu -e -J`, `lscpu -J` or a machine file.
fn from_json(text: &str) -> Result<Topology, TopologyError> {
    let value: serde_json::Value = CleanJson::new(text)
        .read()
        .map_err(|e: serde_json::Error| TopologyError::BadLine { line: e.line(), what: e.to_string() })?;
    let field = |row: &serde_json::Value, name: &str| match row.get(name) {
        Some(serde_json::Value::String(s)) => s.clone(),
        Some(v) if v.is_number() => v.to_string(),
        _ => String::new(),
    };
    let mut topology = Topology::default();
    // The rows of `lscpu -e -J`, or those of a machine file.
    let rows = value.get("cpus").map(|cpus| cpus.get("places").unwrap_or(cpus));
    if let Some(rows) = rows.and_then(|v| v.as_array()) {
        for (i, row) in rows.iter().enumerate() {
            let cache = row.as_object().and_then(|o| o.iter().find(|(k, _)| k.contains(':')));
            let names = cache.map(|(names, _)| names.as_str());
            let cache = match cache {
                Some((_, v)) => v.as_str().unwrap_or("").to_owned(),
                None => [field(row, "cache"), field(row, "llc")].concat(),
            };
            let cluster = match field(row, "cluster") {
                named if !named.is_empty() => number(i + 1, "cluster", &named)?,
                _ => second_cache(i + 1, names, &cache)?,
            };
            let place = CpuLocation {
                core: number(i + 1, "core", &field(row, "core"))?,
                cluster,
                socket: number(i + 1, "socket", &field(row, "socket"))?,
                node: number(i + 1, "node", &field(row, "node"))?,
                llc: last_cache(i + 1, &cache)?,
            };
            topology.places.insert(cpu_number(i + 1, &field(row, "cpu"))?, place);
        }
    }
    if let Some(rows) = value.get("lscpu").and_then(|v| v.as_array()) {
        summary_nodes(rows, &mut topology, &mut 0)?;
    }
    if topology.is_empty() { Err(TopologyError::UnknownForm) } else { Ok(topology) }
}

/// Reads the rows of plain `lscpu -J`, which have the CPUs of each NUMA node, and no socket of a CPU. Newer versions
/// nest the rows in `children`.
fn summary_nodes(rows: &[serde_json::Value], topology: &mut Topology, named: &mut usize) -> Result<(), TopologyError> {
    for row in rows {
        let text = |name| row.get(name).and_then(|v| v.as_str()).unwrap_or("");
        let node = text("field").strip_prefix("NUMA node").and_then(|s| s.split_whitespace().next());
        if let (Some(Ok(node)), Some(cpus)) = (node.map(str::parse), parse_cpu_list(text("data"))) {
            *named += cpus.len();
            if *named > MOST_IN_NODES {
                return Err(TopologyError::TooManyCpus);
            }
            for cpu in cpus {
                topology.places.entry(cpu.0).or_default().node = Some(node);
            }
        }
        if let Some(children) = row.get("children").and_then(|v| v.as_array()) {
            summary_nodes(children, topology, named)?;
        }
    }
    Ok(())
}

/// Reads the lines of `lscpu -p=…`.
fn from_columns(text: &str) -> Result<Topology, TopologyError> {
    let mut names: Vec<String> = ["cpu", "core", "socket", "node"].map(String::from).to_vec();
    let mut topology = Topology::default();
    for (i, line) in text.lines().enumerate() {
        if let Some(comment) = line.trim().strip_prefix('#') {
            let row: Vec<String> = comment.split(',').map(|s| s.trim().to_ascii_lowercase()).collect();
            // The header line of `lscpu -p` is the comment with the column names.
            if row.first().is_some_and(|name| name == "cpu") {
                names = row;
            }
            continue;
        }
        let cells: Vec<&str> = line.split(',').collect();
        if line.trim().is_empty() {
            continue;
        }
        let mut place = CpuLocation::default();
        let mut cpu = None;
        for (k, cell) in cells.iter().enumerate() {
            // Caches come last, several to a line: L1d,L1i,L2,L3 after an empty cell.
            match names.get(k).map(String::as_str) {
                Some("cpu") => cpu = Some(cpu_number(i + 1, cell)?),
                Some("core") => place.core = number(i + 1, "core", cell)?,
                Some("socket") => place.socket = number(i + 1, "socket", cell)?,
                Some("node") => place.node = number(i + 1, "node", cell)?,
                Some("") => {}
                Some("cluster" | "l2") => place.cluster = number(i + 1, "cluster", cell)?,
                _ => {
                    place.cluster = second_cache(i + 1, None, cell)?.or(place.cluster);
                    place.llc = last_cache(i + 1, cell)?.or(place.llc);
                }
            }
        }
        let cpu = cpu.ok_or_else(|| TopologyError::BadLine { line: i + 1, what: "no CPU column".into() })?;
        topology.places.insert(cpu, place);
    }
    if topology.is_empty() { Err(TopologyError::UnknownForm) } else { Ok(topology) }
}

/// Reads lines of `cpuN key=value…`.
fn from_pairs(text: &str) -> Result<Topology, TopologyError> {
    let mut topology = Topology::default();
    for (i, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(cpu) = words.next() else { continue };
        let cpu = cpu_number(i + 1, cpu.strip_prefix("cpu").unwrap_or(cpu))?;
        let mut place = CpuLocation::default();
        let mut core_in_socket = None;
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                return Err(TopologyError::BadLine { line: i + 1, what: format!("not key=value: {:?}", clip(word)) });
            };
            // Sharing is given as a list of CPUs: its first member names the group.
            let first = value.split([',', '-']).next().unwrap_or("");
            match key {
                "socket" => place.socket = number(i + 1, key, value)?,
                "node" => place.node = number(i + 1, key, value)?,
                "core" => core_in_socket = number(i + 1, key, value)?,
                "smt" => place.core = number(i + 1, key, first)?,
                "cluster" => place.cluster = number(i + 1, key, first)?,
                "llc" => place.llc = number(i + 1, key, first)?,
                _ => {}
            }
        }
        place.core = place.core.or(core_in_socket);
        topology.places.insert(cpu, place);
    }
    Ok(topology)
}

/// Parses a list of CPUs as the kernel writes it, `0-3,8,10-11`, into ascending CPUs. Returns `None` if the text is no
/// such list.
pub fn parse_cpu_list(text: &str) -> Option<Vec<Cpu>> {
    let mut ranges = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= Cpu::LIMIT {
            return None;
        }
        ranges.push((first, last));
    }
    // Ranges can overlap: a list of them names no CPU twice, and has no more than there are.
    ranges.sort_unstable();
    let (mut cpus, mut behind) = (Vec::new(), 0);
    for (first, last) in ranges {
        cpus.extend((first.max(behind)..=last).map(Cpu));
        behind = behind.max(last + 1);
    }
    Some(cpus)
}

/// Formats CPUs, which must be in ascending order, as the kernel writes them: `0-3,8`.
pub fn format_cpu_list(cpus: &[Cpu]) -> String {
    ranges(cpus).join(",")
}

/// Formats CPUs like [`format_cpu_list`], but at most `most` numbers and ranges, for a line of text. If there are more,
/// an ellipsis and the number of CPUs follow: `1,6,9,… (97 CPUs)`.
pub fn shorten_cpu_list(cpus: &[Cpu], most: usize) -> String {
    let all = ranges(cpus);
    match all.get(..most) {
        Some(first) if all.len() > most => format!("{},… ({} CPUs)", first.join(","), cpus.len()),
        _ => all.join(","),
    }
}

/// Formats ascending CPUs as numbers and ranges.
fn ranges(cpus: &[Cpu]) -> Vec<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for Cpu(cpu) in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let shown = |(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    ranges.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(core: u32, llc: u32, node: Option<u32>, socket: u32) -> CpuLocation {
        CpuLocation { core: Some(core), cluster: None, llc: Some(llc), node, socket: Some(socket) }
    }

    #[test]
    fn reads_lscpu_columns() {
        let text = "# comment\n# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,1,1,1,,1,1,1,4\n";
        let t = Topology::parse(text).unwrap();
        assert_eq!(t.place(Cpu(1)), Some(&place(1, 4, Some(1), 1)));
        let t = Topology::parse("# CPU,Core,Socket,Node,Cache\n0,0,0,0,0:0:0:2\n").unwrap();
        assert_eq!(t.place(Cpu(0)), Some(&place(0, 2, Some(0), 0)));
    }

    #[test]
    fn reads_lscpu_json() {
        let text = r#"{"cpus":[{"cpu":0,"node":0,"socket":0,"core":0,"l1d:l1i:l2:l3":"0:0:0:0"},
                                {"cpu":"5","node":"1","socket":"1","core":"5","l1d:l1i:l2:l3":"5:5:5:1"}]}"#;
        assert_eq!(Topology::parse(text).unwrap().place(Cpu(5)), Some(&place(5, 1, Some(1), 1)));
        let text =
            r#"{"lscpu":[{"field":"NUMA:","data":null,"children":[{"field":"NUMA node1 CPU(s):","data":"2-3"}]}]}"#;
        assert_eq!(Topology::parse(text).unwrap().place(Cpu(3)).unwrap().node, Some(1));
    }

    #[test]
    fn reads_lines_of_pairs_and_arranges() {
        let t = Topology::parse("cpu0 socket=0 core=0 smt=0 llc=0,2\ncpu1 socket=1 core=0 smt=1 llc=1,3\ncpu2 socket=0 core=1 smt=2 llc=0,2\ncpu3 socket=1 core=1 smt=3 llc=1,3\n").unwrap();
        let mut cpus = [0, 1, 2, 3, 9].map(Cpu);
        t.arrange(&mut cpus, CpuOrder::Socket);
        assert_eq!(cpus, [0, 2, 1, 3, 9].map(Cpu));
        assert_eq!(t.group(Cpu(3), CpuOrder::Llc), Some(1));
        assert!(t.has_groups(CpuOrder::Llc) && t.distances() == [true, false, true, true, true]);
        // Two cores of two threads, numbered as servers do: the siblings of CPU 0 and 1 are 2 and 3.
        let smt =
            Topology::parse("cpu0 socket=0 core=0\ncpu1 socket=0 core=1\ncpu2 socket=0 core=0\ncpu3 socket=0 core=1\n")
                .unwrap();
        let mut cpus = [3, 2, 1, 0].map(Cpu);
        smt.arrange(&mut cpus, CpuOrder::Socket);
        assert_eq!(cpus, [0, 2, 1, 3].map(Cpu));
        smt.arrange(&mut cpus, CpuOrder::Number);
        assert_eq!(cpus, [0, 1, 2, 3].map(Cpu));
        assert_eq!(smt.siblings(), [(0, 0), (1, 1), (2, 0), (3, 1)].map(|(cpu, first)| (Cpu(cpu), Cpu(first))));
        let sockets = Topology::parse("cpu0 socket=0\ncpu1 socket=1\n").unwrap();
        assert!(
            sockets.has_groups(CpuOrder::Socket)
                && sockets.has_groups(CpuOrder::Node)
                && sockets.has_groups(CpuOrder::Number)
        );
        assert!(!sockets.has_groups(CpuOrder::Llc) && sockets.distances() == [false, false, false, true, true]);
    }

    #[test]
    fn clusters_lie_between_cores_and_caches() {
        // Two cores with threads of their own L2, and four single ones that share an L2: a hybrid machine.
        let row = |cpu: u32, core: u32, l2: u32| {
            format!(r#"{{"cpu":{cpu},"node":0,"socket":0,"core":{core},"l1d:l1i:l2:l3":"{core}:{core}:{l2}:0"}}"#)
        };
        let small = (4..8).map(|cpu| row(cpu, cpu, 2));
        let rows: Vec<String> = (0..4).map(|cpu| row(cpu, cpu / 2, cpu / 2)).chain(small).collect();
        let json = Topology::parse(&format!(r#"{{"cpus":[{}]}}"#, rows.join(","))).unwrap();
        let columns = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,0,0,0,,0,0,0,0\n2,1,0,0,,1,1,1,0\n3,1,0,0,,1,1,1,0\n\
                       4,4,0,0,,4,4,2,0\n5,5,0,0,,5,5,2,0\n6,6,0,0,,6,6,2,0\n7,7,0,0,,7,7,2,0\n";
        // The places of a machine file, and lines of pairs, name a cluster by its lowest CPU.
        let of_pair = |cpu: u32| if cpu < 4 { cpu / 2 * 2 } else { cpu };
        let l2 = |cpu: u32| if cpu < 4 { of_pair(cpu) } else { 4 };
        let place = |cpu: u32| {
            let (core, cluster) = (of_pair(cpu), l2(cpu));
            format!(r#"{{"cpu":{cpu},"core":{core},"cluster":{cluster},"llc":0,"node":0,"socket":0}}"#)
        };
        let places: Vec<String> = (0..8).map(place).collect();
        let machine = format!(r#"{{"schema":"schedviz/machine/1","cpus":{{"places":[{}]}}}}"#, places.join(","));
        let line = |cpu: u32| format!("cpu{cpu} smt={} cluster={} llc=0-7 node=0 socket=0\n", of_pair(cpu), l2(cpu));
        let pairs: String = (0..8).map(line).collect();
        for named in [&machine, &pairs] {
            let named = Topology::parse(named).unwrap();
            let clusters = (0..8).map(|cpu| named.place(Cpu(cpu)).unwrap().cluster);
            assert_eq!(clusters.collect::<Vec<_>>(), [None, None, None, None, Some(4), Some(4), Some(4), Some(4)]);
            assert!(named.distances() == [true; 5]);
        }
        for hybrid in [&json, &Topology::parse(columns).unwrap()] {
            let clusters: Vec<Option<u32>> = (0..8).map(|cpu| hybrid.place(Cpu(cpu)).unwrap().cluster).collect();
            assert_eq!(clusters, [None, None, None, None, Some(2), Some(2), Some(2), Some(2)]);
            let distance = |a: u32, b: u32| hybrid.distance(Cpu(a), Cpu(b)).unwrap();
            assert_eq!(
                [distance(0, 1), distance(4, 7), distance(3, 4)],
                [Distance::Smt, Distance::Cluster, Distance::Llc]
            );
            assert!(hybrid.has_clusters() && hybrid.distances() == [true; 5]);
        }
        // An L2 that is the last level, one of each core, and one that extends beyond its last-level cache are no clusters.
        for text in [
            "cpu0 smt=0 cluster=0-1 llc=0-1\ncpu1 smt=1 cluster=0-1 llc=0-1\n",
            "cpu0 smt=0 cluster=0-1 llc=0-2\ncpu1 smt=0 cluster=0-1 llc=0-2\ncpu2 smt=2 cluster=2 llc=0-2\n",
            "cpu0 smt=0 cluster=0-1 llc=0\ncpu1 smt=1 cluster=0-1 llc=1\ncpu2 smt=2 llc=1\n",
        ] {
            assert!(!Topology::parse(text).unwrap().has_clusters(), "{text}");
        }
    }

    #[test]
    fn nodes_that_share_all_cpus_are_refused() {
        let node = |n: u32| format!(r#"{{"field":"NUMA node{n} CPU(s):","data":"0-65534"}}"#);
        let lscpu = |nodes: u32| format!(r#"{{"lscpu":[{}]}}"#, (0..nodes).map(node).collect::<Vec<_>>().join(","));
        assert_eq!(Topology::parse(&lscpu(16)).map(|topology| topology.cpus().count()), Ok(65_535));
        assert_eq!(Topology::parse(&lscpu(15_000)), Err(TopologyError::TooManyCpus));
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(Topology::parse("hello"), Err(TopologyError::UnknownForm));
        let e = Topology::parse("0,0,zero,0\n").unwrap_err();
        assert_eq!(e.to_string(), "line 1 of the topology: socket is not a number: \"zero\"");
        assert!(Topology::parse("cpu99999999 socket=0").is_err());
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_cpu_list("0-2,8"), Some([0, 1, 2, 8].map(Cpu).to_vec()));
        assert_eq!(format_cpu_list(&[0, 1, 2, 8, 10, 11].map(Cpu)), "0-2,8,10-11");
        assert_eq!(shorten_cpu_list(&[0, 1, 2, 8, 10, 11].map(Cpu), 3), "0-2,8,10-11");
        assert_eq!(shorten_cpu_list(&[0, 1, 2, 8, 10, 11].map(Cpu), 2), "0-2,8,… (6 CPUs)");
        assert_eq!(parse_cpu_list("4-6,1-5,5,2"), Some([1, 2, 3, 4, 5, 6].map(Cpu).to_vec()));
        let all = vec!["0-65534"; 10_000].join(",");
        assert_eq!(parse_cpu_list(&all).map(|cpus| cpus.len()), Some(65_535));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-4000000000"), None);
        assert_eq!(parse_cpu_list(""), None);
    }
}
