//! cyclictest: a line for each thread, the summary of a histogram, or JSON. The average is that of all cycles of all threads.

use crate::{NumbersFound, labelled};
use question::{Better, Metric};
use serde_json::Value;
use std::collections::BTreeMap;

/// The latencies of a thread.
#[derive(Clone, Copy, Debug)]
struct ThreadLatency {
    cycles: f64,
    avg: f64,
    max: f64,
}

pub(crate) fn read(lines: &[&str], found: &mut NumbersFound) {
    let threads = [json(lines), text(lines), histogram(lines)].into_iter().find(|threads| !threads.is_empty());
    let Some(threads) = threads else { return };
    let cycles: f64 = threads.iter().map(|thread| thread.cycles).sum();
    if cycles <= 0.0 {
        return;
    }
    let sum: f64 = threads.iter().map(|thread| thread.avg * thread.cycles).sum();
    let max = threads.iter().fold(0.0, |max: f64, thread| max.max(thread.max));
    found.row("cyclictest-avg", "cyclictest avg, \u{b5}s", Better::Less, sum / cycles);
    found.add(Metric::part("cyclictest-max", "cyclictest", "max, \u{b5}s", Better::Less), max);
}

/// Lines such as `T: 0 ( 1234) P:80 I:1000 C: 10000 Min: 1 Act: 2 Avg: 3 Max: 30`; the last of each thread counts.
fn text(lines: &[&str]) -> Vec<ThreadLatency> {
    let mut threads: BTreeMap<u64, ThreadLatency> = BTreeMap::new();
    for line in lines {
        // A terminal moves the cursor between the lines.
        let Some((_, rest)) = line
            .split_once("T:")
            .filter(|(before, _)| !before.contains(char::is_alphanumeric) || before.ends_with('A'))
        else {
            continue;
        };
        let of_line = || {
            let number = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
            let latency = ThreadLatency {
                cycles: labelled(rest, " C:")?,
                avg: labelled(rest, "Avg:")?,
                max: labelled(rest, "Max:")?,
            };
            Some((number, latency))
        };
        let Some((number, latency)) = of_line() else { continue };
        if threads.contains_key(&number) || threads.len() < MOST_THREADS {
            threads.insert(number, latency);
        }
    }
    threads.into_values().collect()
}

/// The maximum number of threads.
const MOST_THREADS: usize = 4096;

/// The summary behind a histogram, which has a column for each thread. The cycles are those in the histogram and beyond it.
fn histogram(lines: &[&str]) -> Vec<ThreadLatency> {
    let columns = |label: &str| -> Vec<f64> {
        let line = lines.iter().rev().find_map(|line| line.strip_prefix(label));
        line.map_or_else(Vec::new, |line| line.split_whitespace().map_while(|word| word.parse().ok()).collect())
    };
    let (avg, max) = (columns("# Avg Latencies:"), columns("# Max Latencies:"));
    let (inside, beyond) = (columns("# Total:"), columns("# Histogram Overflows:"));
    let cycles = |at: usize| inside.get(at).unwrap_or(&0.0) + beyond.get(at).unwrap_or(&0.0);
    let thread = |(at, (avg, max)): (usize, (&f64, &f64))| ThreadLatency { cycles: cycles(at), avg: *avg, max: *max };
    avg.iter().zip(&max).take(MOST_THREADS).enumerate().map(thread).collect()
}

/// The document of `--json`, where it is written to standard output.
fn json(lines: &[&str]) -> Vec<ThreadLatency> {
    let Some(first) = lines.iter().position(|line| line.trim_end() == "{") else { return Vec::new() };
    let Some(last) = lines.iter().rposition(|line| line.trim_end() == "}").filter(|last| *last > first) else {
        return Vec::new();
    };
    let Ok(document) = serde_json::from_str::<Value>(&lines[first..=last].join("\n")) else { return Vec::new() };
    // The keys of the head have a colon too many.
    let is_ours = document.as_object().is_some_and(|keys| keys.keys().any(|key| key.starts_with("rt_test_version")));
    let Some(threads) = document.get("thread").and_then(Value::as_object).filter(|_| is_ours) else {
        return Vec::new();
    };
    let in_us = if document.get("resolution_in_ns").and_then(Value::as_u64) == Some(1) { 1e-3 } else { 1.0 };
    let thread = |thread: &Value| {
        let number = |key: &str| thread.get(key).and_then(Value::as_f64);
        Some(ThreadLatency { cycles: number("cycles")?, avg: number("avg")? * in_us, max: number("max")? * in_us })
    };
    threads.values().take(MOST_THREADS).filter_map(thread).collect()
}
