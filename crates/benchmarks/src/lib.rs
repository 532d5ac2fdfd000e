//! The numbers that benchmarks print, each with its unit and the direction in which it improves.
//!
//! In goes the output of a run as text, out come its numbers ([`numbers`]). A program is recognised by the lines that only it
//! prints, so that no option is needed; of a number that is printed several times the last one counts. Begin reading in
//! `hackbench.rs`, the smallest parser.
//!
//! ```
//! use benchmarks::numbers;
//! use question::Better;
//!
//! let output = "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\nTime: 0.512\n";
//! let found = numbers(output);
//! assert_eq!((&*found[0].metric.key, found[0].value, found[0].metric.better), ("hackbench-time", 0.512, Better::Less));
//! ```

mod cyclictest;
mod hackbench;
mod perf_bench;
mod rtla;
mod schbench;
mod stress_ng;
mod sysbench;

use question::{Better, Metric};
use sched::event::escaped;
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The maximum number of bytes of an output that are read, from its end: results stand last.
pub const MOST_BYTES: u64 = 4 << 20;

/// The maximum number of bytes of a line that is read. A longer one is left out: a part of the columns of all CPUs would give another number.
const LONGEST_LINE: usize = 256 << 10;

/// The maximum number of numbers of an output.
pub const MOST_NUMBERS: usize = 256;

/// The names of the programs whose output is read, as commands have them.
pub const PROGRAMS: [&str; 7] = ["hackbench", "schbench", "perf", "cyclictest", "rtla", "stress-ng", "sysbench"];

/// The beginnings of the keys of all metrics.
pub const PREFIXES: [&str; 8] =
    ["hackbench-", "schbench-", "perf-", "cyclictest-", "timerlat-", "osnoise-", "stress-ng-", "sysbench-"];

/// A number that a benchmark printed.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkNumber {
    /// The metric, with its unit and direction.
    pub metric: Metric,
    /// The value in the unit of the metric; finite.
    pub value: f64,
}

/// Returns the numbers in an output, the main one of each program first. No metric occurs twice.
pub fn numbers(output: &str) -> Vec<BenchmarkNumber> {
    let lines: Vec<&str> = output.lines().filter(|line| line.len() <= LONGEST_LINE).collect();
    let mut found = NumbersFound::default();
    hackbench::read(&lines, &mut found);
    perf_bench::read(&lines, &mut found);
    schbench::read(&lines, &mut found);
    cyclictest::read(&lines, &mut found);
    rtla::read(&lines, &mut found);
    stress_ng::read(&lines, &mut found);
    sysbench::read(&lines, &mut found);
    // Names in the output become those of metrics.
    for BenchmarkNumber { metric, .. } in &mut found.numbers {
        metric.key = escaped(metric.key.to_string()).into();
        for text in [&mut metric.name, &mut metric.row] {
            *text = escaped(std::mem::take(text));
        }
    }
    found.numbers
}

/// Reads the numbers in the output that was saved beside a recording; none if there is no such file.
pub fn beside(recording: &Path) -> io::Result<Vec<BenchmarkNumber>> {
    read(&path_beside(recording))
}

/// Reads the numbers in a file with an output; none if there is no such file. Only a regular file is read: a FIFO would wait for a writer.
pub fn read(output: &Path) -> io::Result<Vec<BenchmarkNumber>> {
    match std::fs::metadata(output) {
        Ok(found) if !found.is_file() => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Ok(found) => {
            let (mut file, length) = (opened::file(output)?, found.len());
            file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(MOST_BYTES).read_to_end(&mut bytes)?;
            // The first line may lack its beginning.
            let begun = if length > MOST_BYTES { bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0) } else { 0 };
            Ok(numbers(&String::from_utf8_lossy(&bytes[begun..])))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The path of the output that is saved beside a recording: `trace.dat.out` for `trace.dat` if there is such a file, which a recording
/// writes where `trace.out` is another program's, and else `trace.out`.
pub fn path_beside(recording: &Path) -> PathBuf {
    let [usual, other] = paths_beside(recording);
    if other.is_file() { other } else { usual }
}

/// The paths at which the output of a recording can be, the usual one first: `trace.out` and `trace.dat.out` for `trace.dat`.
pub fn paths_beside(recording: &Path) -> [PathBuf; 2] {
    let mut other = recording.as_os_str().to_owned();
    other.push(".out");
    [recording.with_extension("out"), PathBuf::from(other)]
}

/// Whether a command line runs a program whose output is read, by the file name of any of its words: `taskset -c 0-3 hackbench`; of perf
/// it is `perf bench` alone.
pub fn is_benchmark(command: &[OsString]) -> bool {
    let names: Vec<&str> = command.iter().filter_map(|word| Path::new(word).file_name()?.to_str()).collect();
    let is_known = |(at, name): (usize, &&str)| {
        PROGRAMS.contains(name) && (*name != "perf" || names.get(at + 1..).is_some_and(|rest| rest.contains(&"bench")))
    };
    names.iter().enumerate().any(is_known)
}

/// The numbers that were found so far.
#[derive(Default)]
struct NumbersFound {
    numbers: Vec<BenchmarkNumber>,
}

impl NumbersFound {
    /// Adds a number, in the place of an earlier one of the same metric. A number that is not finite is left out, and one beyond
    /// [`MOST_NUMBERS`].
    fn add(&mut self, metric: Metric, value: f64) {
        if !value.is_finite() {
            return;
        }
        let known = self.numbers.iter().position(|number| number.metric.key == metric.key);
        match known {
            Some(at) => self.numbers[at].value = value,
            None if self.numbers.len() < MOST_NUMBERS => self.numbers.push(BenchmarkNumber { metric, value }),
            None => {}
        }
    }

    /// Adds a number with a row of its own.
    fn row(&mut self, key: &'static str, name: &str, better: Better, value: f64) {
        self.add(Metric::of(key, name, better), value);
    }
}

/// The beginning of a text with at most this number of bytes.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// The number at the beginning of a text, after spaces; nothing for one with an exponent, which no benchmark prints.
fn leading(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let exponent = rest.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    let has_exponent = exponent.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    number.parse().ok().filter(|_| !has_exponent)
}

/// The number behind a label, such as `Max: 12`; of several the first.
fn labelled(line: &str, label: &str) -> Option<f64> {
    leading(line.split_once(label)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_shows_its_benchmark() {
        let of = |line: &str| is_benchmark(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(of("hackbench -g 10") && of("taskset -c 0-3 /opt/rt/cyclictest -q") && of("perf bench sched pipe"));
        assert!(!of("perf record sleep 1") && !of("make -j8") && !of("cat hackbench.log"));
    }

    #[test]
    fn hostile_output_is_bounded() {
        let long = format!("stress-ng: metrc: [1] stressor bogo ops\n{}", "9".repeat(1 << 20));
        assert_eq!(numbers(&long), []);
        let many: String = (0..1000).map(|n| format!("stress-ng: metrc: [1] s{n} 1 1.0 1.0 1.0 5.0 6.0\n")).collect();
        assert_eq!(numbers(&format!("stress-ng: metrc: [1] stressor       bogo ops\n{many}")).len(), MOST_NUMBERS);
        let endless = "Running in process mode with 1 groups\nTime: 1e999\nTime: inf\nTime: NaN\nTime: \u{e9}\n";
        assert_eq!(numbers(endless), []);
        // The columns of thousands of threads are read in full, or not at all.
        let columns = |threads: usize| {
            let row = |name: &str, value: &str| format!("# {name}:{}\n", format!(" {value}").repeat(threads));
            [row("Total", "1"), row("Avg Latencies", "00002"), row("Max Latencies", "00003")].concat()
        };
        let found = |threads: usize| numbers(&columns(threads)).iter().map(|number| number.value).collect::<Vec<_>>();
        assert_eq!((found(4000), found(50_000)), (vec![2.0, 3.0], vec![]));
        // Escape sequences do not come to a terminal by the names of units, nor hundreds of digits by those of percentiles.
        let unit = "stress-ng: metrc: [1] stressor bogo ops\nstress-ng: metrc: [1] miscellaneous metrics:\n\
                    stress-ng: metrc: [1] cpu 5.00 \x1b[31mper sec\n";
        assert_eq!(numbers(unit), []);
        assert_eq!(numbers("Wakeup Latencies percentiles (usec)\n  1e-300th: 5\n"), []);
        for text in [
            "",
            "\0\0",
            "T: 0 Max:",
            "{",
            "# Max Latencies: x",
            "CPU-000",
            "  max:",
            "|||",
            "Index   IRQ-000\n  max: 1 2",
        ] {
            let _ = numbers(text);
        }
        // JSON that nests deeper than the stack.
        let deep = format!("{{\n\"rt_test_version\": 1, \"thread\": {}", "[".repeat(1 << 20));
        assert_eq!(numbers(&deep), []);
        let folder = std::env::temp_dir();
        assert_eq!(beside(&folder.join("no-such-recording.dat")).unwrap(), []);
        assert_eq!(read(&folder).unwrap_err().to_string(), "not a regular file");
    }
}
