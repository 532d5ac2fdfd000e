//! rtla: `timerlat` and `osnoise`, as histograms with a summary of each CPU or as tables with a row for each CPU.

use crate::{NumbersFound, leading};
use question::{Better, Metric};
use std::collections::BTreeMap;

pub(crate) fn read(lines: &[&str], found: &mut NumbersFound) {
    let is_ns = lines.iter().any(|line| line.contains("nanoseconds (ns)") || line.contains("Timer Latency (ns)"));
    let in_us = if is_ns { 1e-3 } else { 1.0 };
    histograms(lines, in_us, found);
    timerlat_top(lines, in_us, found);
    osnoise_top(lines, found);
}

/// The latencies of the contexts of timerlat: the timer's interrupt, the thread that it wakes, and a task in user space.
const CONTEXTS: [(&str, &str, &str); 3] = [
    ("IRQ", "timerlat-irq", "timerlat IRQ"),
    ("Thr", "timerlat-thread", "timerlat Thr"),
    ("Usr", "timerlat-user", "timerlat Usr"),
];

/// Sums of the columns of one context.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f64,
    /// The averages, each by its count.
    sum: f64,
    max: f64,
}

impl Sums {
    fn add(&mut self, count: f64, avg: f64, max: f64) {
        self.count += count;
        self.sum += count * avg;
        self.max = self.max.max(max);
    }

    fn give(self, (key, name): (&'static str, &str), in_us: f64, found: &mut NumbersFound) {
        if self.count > 0.0 {
            let metric = |part: &str, row: String| Metric {
                key: format!("{key}-{part}").into(),
                name: format!("{name} {part}, \u{b5}s"),
                row,
                better: Better::Less,
            };
            found.add(metric("avg", format!("{name} avg")), in_us * self.sum / self.count);
            found.add(metric("max", "  max, \u{b5}s".to_owned()), in_us * self.max);
        }
    }
}

/// The histogram of either tool: a head with a column for each CPU and context, and the rows `count:`, `avg:` and `max:` below.
fn histograms(lines: &[&str], in_us: f64, found: &mut NumbersFound) {
    let Some(head) = lines.iter().rposition(|line| line.trim_start().starts_with("Index ")) else { return };
    let columns: Vec<&str> = lines[head].split_whitespace().skip(1).collect();
    let row = |label: &str| -> Vec<Option<f64>> {
        let line = lines[head..].iter().find_map(|line| line.trim_start().strip_prefix(label));
        line.map_or_else(Vec::new, |line| line.split_whitespace().map(|word| word.parse().ok()).collect())
    };
    let (counts, avg, max) = (row("count:"), row("avg:"), row("max:"));
    let sums = |context: &str| {
        let mut sums = Sums::default();
        for (at, _) in columns.iter().enumerate().filter(|(_, column)| column.starts_with(context)) {
            let of = |row: &[Option<f64>]| row.get(at).copied().flatten();
            // A CPU without samples has dashes.
            if let (Some(count), Some(avg), Some(max)) = (of(&counts), of(&avg), of(&max)) {
                sums.add(count, avg, max);
            }
        }
        sums
    };
    for (context, key, name) in CONTEXTS {
        sums(context).give((key, name), in_us, found);
    }
    let noise = sums("CPU-");
    if noise.count > 0.0 {
        found.row("osnoise-max", "osnoise max, \u{b5}s", Better::Less, in_us * noise.max);
    }
}

/// The table of `rtla timerlat top`: after the CPU and the count, for each context the present value, minimum, average and maximum.
/// The last row of each CPU counts.
fn timerlat_top(lines: &[&str], in_us: f64, found: &mut NumbersFound) {
    if !lines.iter().any(|line| line.contains("IRQ Timer Latency (")) {
        return;
    }
    let mut rows: BTreeMap<u32, &str> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.contains('#') && line.contains('|')) {
        if let Some(cpu) = line.split_whitespace().next().and_then(|cpu| cpu.parse().ok()) {
            rows.insert(cpu, line);
        }
    }
    let mut sums = [Sums::default(); 3];
    for line in rows.values() {
        let mut parts = line.split('|');
        let count = parts.next().and_then(|part| leading(part.split_once('#')?.1)).unwrap_or(0.0);
        for (part, sums) in parts.zip(&mut sums) {
            let numbers: Vec<f64> = part.split_whitespace().map_while(|word| word.parse().ok()).collect();
            if let [_, _, avg, max] = numbers[..] {
                sums.add(count, avg, max);
            }
        }
    }
    for ((_, key, name), sums) in CONTEXTS.into_iter().zip(sums) {
        sums.give((key, name), in_us, found);
    }
}

/// The table of `rtla osnoise top`: the share of the CPUs' time that was available, and the longest single noise.
fn osnoise_top(lines: &[&str], found: &mut NumbersFound) {
    if !lines.iter().any(|line| line.contains("% CPU Aval") && line.contains("Max Single")) {
        return;
    }
    let mut rows: BTreeMap<u32, [f64; 3]> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [cpu, count, runtime, noise, _, _, single, ..] = words[..] else { continue };
        let numbers = (cpu.parse().ok(), runtime.parse().ok(), noise.parse().ok(), single.parse().ok());
        if let (Some(cpu), Some(runtime), Some(noise), Some(single)) = numbers
            && count.starts_with('#')
        {
            rows.insert(cpu, [runtime, noise, single]);
        }
    }
    let sum = |at: usize| rows.values().map(|row| row[at]).sum::<f64>();
    if sum(0) > 0.0 {
        let percent = 100.0 * (1.0 - sum(1) / sum(0));
        found.row("osnoise-available", "osnoise CPU, %", Better::More, percent);
        let single = rows.values().fold(0.0, |max: f64, row| max.max(row[2]));
        found.row("osnoise-single", "osnoise single, \u{b5}s", Better::Less, single);
    }
}
