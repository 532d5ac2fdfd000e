//! A snapshot: the text of /proc/schedstat.

use sched::Cpu;
use sched::event::CleanText;
use std::collections::BTreeSet;

/// Maximum number of words of a line that are read: a domain has 47 at most.
const WORDS: usize = 1_000;

/// Maximum number of domains of all CPUs together.
const DOMAINS: usize = 1 << 18;

/// The layout of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatLayout {
    /// The version number in the first line.
    pub version: u32,
    /// Whether a CPU has the seven additional fields of the task-stealing series.
    pub stealing: bool,
    /// The number of counters of a domain for each kind of idleness: 8, or 11 if the imbalance has four counters.
    pub balance: usize,
    /// Whether the busy counters precede the idle ones, as they do since version 16.
    pub busy_first: bool,
}

/// The counters of a CPU, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuStat {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// The counters: 9, or 16 with the task-stealing series.
    pub fields: Vec<u64>,
    /// The domains of the CPU, from the smallest to the largest.
    pub domains: Vec<DomainStat>,
}

/// The counters of a scheduling domain of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainStat {
    /// The name of the domain (`SMT`, `MC`, `NUMA`), if the file has it.
    pub name: Option<CleanText>,
    /// The CPUs in the domain, as a hexadecimal mask.
    pub mask: CleanText,
    /// The counters of three kinds of idleness, and twelve more counters.
    pub fields: Vec<u64>,
}

/// /proc/schedstat at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The layout of the file.
    pub layout: StatLayout,
    /// The time of the snapshot in jiffies, if the file has it.
    pub jiffies: Option<u64>,
    /// The CPUs that were online, in the order of the file.
    pub cpus: Vec<CpuStat>,
    /// The lines of other kinds, which were skipped.
    pub passed_over: Option<PassedOver>,
}

/// The lines that describe neither a CPU nor a domain; vendors' kernels have such lines (`eas`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The number of such lines.
    pub lines: usize,
    /// The line number of the first one, counted from 1.
    pub first: usize,
    /// The first word of the first one.
    pub word: CleanText,
}

impl PassedOver {
    fn note(passed_over: &mut Option<PassedOver>, line: usize, word: &str) {
        let passed_over = passed_over.get_or_insert_with(|| PassedOver { lines: 0, first: line, word: word.into() });
        passed_over.lines += 1;
    }
}

/// The reason why a text is not a readable snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedstatError {
    /// The text does not begin with a version.
    #[error("line 1: expected \"version N\"; is this a copy of /proc/schedstat?")]
    NoVersion,
    /// The version is older or newer than the supported ones.
    #[error("line 1: schedstat version {0} is not supported; versions 15, 16 and 17 are")]
    Version(u32),
    /// A word that should be a number is none.
    #[error("line {line}: {word:?} is not a counter")]
    Number {
        /// The line number, counted from 1.
        line: usize,
        /// The word in place of the counter.
        word: CleanText,
    },
    /// A line describes a CPU without a valid number, or a domain before any CPU.
    #[error("line {line}: expected cpuN or domainN, found {word:?}")]
    Line {
        /// The line number, counted from 1.
        line: usize,
        /// The first word of the line.
        word: CleanText,
    },
    /// The number of fields fits no known kernel.
    #[error(
        "line {line}: unknown layout: version {version} with {fields} fields in a {what} line; known are \
         9 fields of a CPU (16 with the task-stealing series) and 36 or 45 of a domain"
    )]
    Layout {
        /// The line number, counted from 1.
        line: usize,
        /// The version of the file.
        version: u32,
        /// The kind of the line: `cpu` or `domain`.
        what: &'static str,
        /// The number of fields in the line.
        fields: usize,
    },
    /// A CPU has two lines, whose counters would be summed.
    #[error("line {line}: CPU {cpu} has a second line; is this one copy of /proc/schedstat?")]
    Repeated {
        /// The line number, counted from 1.
        line: usize,
        /// The number of the CPU.
        cpu: Cpu,
    },
    /// The CPUs have more domains than those of any machine.
    #[error("line {line}: the CPUs have more than {DOMAINS} domains")]
    Domains {
        /// The line number, counted from 1.
        line: usize,
    },
    /// The text has no CPU.
    #[error("there is no CPU in it; is this a complete copy of /proc/schedstat?")]
    NoCpu,
}

fn numbers(words: &[&str], line: usize) -> Result<Vec<u64>, SchedstatError> {
    let number = |word: &&str| word.parse().map_err(|_| SchedstatError::Number { line, word: (*word).into() });
    words.iter().map(number).collect()
}

impl Snapshot {
    /// Reads a copy of /proc/schedstat.
    pub fn parse(text: &str) -> Result<Snapshot, SchedstatError> {
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let version = lines.next().and_then(|(_, line)| line.strip_prefix("version ")?.trim().parse::<u32>().ok());
        let version = version.ok_or(SchedstatError::NoVersion)?;
        if !(15..=17).contains(&version) {
            return Err(SchedstatError::Version(version));
        }
        let mut layout = StatLayout { version, stealing: false, balance: 8, busy_first: version > 15 };
        let (mut jiffies, mut passed_over) = (None, None);
        let mut cpus: Vec<CpuStat> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut domains = 0;
        for (line, text) in lines {
            let words: Vec<&str> = text.split_whitespace().take(WORDS).collect();
            let Some((first, rest)) = words.split_first() else { continue };
            if *first == "timestamp" {
                jiffies = numbers(rest, line)?.first().copied();
            } else if let Some(number) = first.strip_prefix("cpu") {
                let cpu = number.parse().ok().filter(|n| *n < Cpu::LIMIT).map(Cpu);
                let cpu = cpu.ok_or_else(|| SchedstatError::Line { line, word: (*first).into() })?;
                if !seen.insert(cpu) {
                    return Err(SchedstatError::Repeated { line, cpu });
                }
                let fields = numbers(rest, line)?;
                // All CPUs of a kernel have the same number of fields.
                let others = cpus.first().is_none_or(|first| first.fields.len() == fields.len());
                layout.stealing = match fields.len() {
                    9 if others => false,
                    16 if others => true,
                    fields => return Err(SchedstatError::Layout { line, version, what: "cpu", fields }),
                };
                cpus.push(CpuStat { cpu, fields, domains: Vec::new() });
            } else if first.starts_with("domain") {
                let cpu = cpus.last_mut().ok_or_else(|| SchedstatError::Line { line, word: (*first).into() })?;
                domains += 1;
                if domains > DOMAINS {
                    return Err(SchedstatError::Domains { line });
                }
                cpu.domains.push(domain(rest, &mut layout, domains == 1, line)?);
            } else {
                PassedOver::note(&mut passed_over, line, first);
            }
        }
        // The series' own version 16 has the order of blocks of the kernel's version 15.
        if version == 16 && layout.stealing && layout.balance == 8 {
            layout.busy_first = false;
        }
        if cpus.is_empty() {
            return Err(SchedstatError::NoCpu);
        }
        Ok(Snapshot { layout, jiffies, cpus, passed_over })
    }
}

fn domain(words: &[&str], layout: &mut StatLayout, is_first: bool, line: usize) -> Result<DomainStat, SchedstatError> {
    let fields = |n: usize| SchedstatError::Layout { line, version: layout.version, what: "domain", fields: n };
    // `domain0 MC ff 1 2 …` since version 17, `domain0 ff 1 2 …` before. The number of words decides.
    let (name, mask, rest, balance) = match (words.len(), words) {
        (47, [name, mask, rest @ ..]) => (Some((*name).into()), mask, rest, 11),
        (46, [mask, rest @ ..]) => (None, mask, rest, 11),
        (38, [name, mask, rest @ ..]) => (Some((*name).into()), mask, rest, 8),
        (37, [mask, rest @ ..]) => (None, mask, rest, 8),
        (n, _) => return Err(fields(n.saturating_sub(1))),
    };
    if !is_first && layout.balance != balance {
        return Err(fields(rest.len()));
    }
    layout.balance = balance;
    Ok(DomainStat { name, mask: (*mask).into(), fields: numbers(rest, line)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_layout_is_refused() {
        let refused = |text: &str| Snapshot::parse(text).unwrap_err().to_string();
        assert!(refused("cpu0 1 2").contains("version"));
        assert!(refused("version 14\n").contains("14"));
        assert!(refused("version 15\ntimestamp 5\n").contains("no CPU"));
        assert!(refused("version 16\ncpu0 1 2 3 4 5 6 7 8 9 10 11 12 13\n").contains("13 fields"));
        assert!(refused("version 15\ncpu0 1 2 3 4 x 6 7 8 9\n").contains("line 2: \"x\""));
        assert!(refused("version 15\ncpu0 1 2 3 4 5 6 7 8 9\ndomain0 ff 1 2\n").contains("domain"));
        assert!(refused("version 15\ndomain0 ff 1\n").contains("line 2"));
        let twice = "version 15\ncpu3 1 2 3 4 5 6 7 8 9\ncpu3 1 2 3 4 5 6 7 8 9\n";
        assert_eq!(refused(twice), "line 3: CPU 3 has a second line; is this one copy of /proc/schedstat?");
        assert!(refused("version 15\ncpu99999999 1 2 3 4 5 6 7 8 9\n").contains("cpu99999999"));
    }

    #[test]
    fn domains_and_words_have_a_limit() {
        let domain = format!("domain0 MC\x1b[31m ff{}\n", " 1".repeat(36));
        let text = |domains: usize| format!("version 17\ncpu0 1 2 3 4 5 6 7 8 9\n{}", domain.repeat(domains));
        let snapshot = Snapshot::parse(&text(3)).expect("a snapshot");
        // A terminal must not take it.
        assert_eq!(snapshot.cpus[0].domains[2].name.as_deref(), Some("MC\\x1b[31m"));
        let refused = Snapshot::parse(&text(DOMAINS + 1)).unwrap_err();
        assert_eq!(refused, SchedstatError::Domains { line: DOMAINS + 3 });
        let refused = Snapshot::parse(&format!("version 17\ncpu0{}", " 1".repeat(1 << 20))).unwrap_err();
        assert_eq!(refused, SchedstatError::Layout { line: 2, version: 17, what: "cpu", fields: WORDS - 1 });
    }

    #[test]
    fn lines_of_other_kinds_are_passed_over() {
        let text = "version 15\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 9\neas 1 x\x1b\nrt\ncpu1 1 2 3 4 5 6 7 8 9\neas 2\n";
        let snapshot = Snapshot::parse(text).expect("a snapshot");
        assert_eq!(snapshot.cpus.len(), 2);
        assert_eq!(snapshot.passed_over, Some(PassedOver { lines: 3, first: 4, word: "eas".into() }));
        let plain = Snapshot::parse("version 15\ncpu0 1 2 3 4 5 6 7 8 9\n").expect("a snapshot");
        assert_eq!(plain.passed_over, None);
    }

    #[test]
    fn the_order_of_the_blocks_follows_the_layout_not_the_number() {
        let of = |version: u32, cpu: usize, domain: usize, named: bool| {
            let join = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join(" ");
            let name = if named { "MC " } else { "" };
            let text =
                format!("version {version}\ntimestamp 9\ncpu0 {}\ndomain0 {name}f {}\n", join(cpu), join(domain));
            let snapshot = Snapshot::parse(&text).expect("a snapshot");
            assert_eq!(snapshot.cpus[0].domains[0].fields.len(), domain);
            (snapshot.layout.busy_first, snapshot.layout.stealing, snapshot.layout.balance)
        };
        assert_eq!(of(15, 9, 36, false), (false, false, 8));
        assert_eq!(of(16, 9, 36, false), (true, false, 8));
        assert_eq!(of(16, 16, 36, false), (false, true, 8), "the series on a kernel of version 15");
        assert_eq!(of(16, 9, 45, false), (true, false, 11), "between the change of the fields and of the number");
        assert_eq!(of(17, 16, 45, true), (true, true, 11), "the series of 2026");
    }
}
