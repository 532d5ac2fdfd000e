//! When events happen, and how they relate to scheduling.
//!
//! In go the records of a window, out come counts by kind and by place ([`Gather`]), values, rates and spans; for migrations also
//! the cause of each ([`Balance`]). Kinds that fit the page have a marker for each event, more frequent ones bars; the counts are
//! exact either way. Begin reading in `gathering.rs`, then `balance.rs`.
//!
//! ```
//! use events::{Gather, Spans};
//! use sched::{Cpu, Ts};
//!
//! let (from, to) = (Ts(0), Ts(1_000));
//! let mut gather = Gather::new(from, to, false);
//! gather.add(Ts(100), Cpu(0), "sched:sched_move_numa", None);
//! gather.add(Ts(700), Cpu(1), "sched:sched_move_numa", None);
//! let report = gather.finish(Spans::new(from, to));
//! assert_eq!((report.total, report.kinds[0].name.as_str(), report.kinds[0].count), (2, "sched:sched_move_numa", 2));
//! ```

mod args;
mod balance;
mod balance_text;
mod choice;
mod cost;
mod details;
mod figure;
mod funnel;
mod gathering;
mod joined;
mod kinds;
mod list;
mod listing;
mod log;
mod migrations;
mod question;
mod rate;
mod run_sums;
mod runs;
mod spans;
mod undone;
mod value_bars;
mod values;
mod wakeups;

pub use args::EventsArgs;
pub use balance::{Balance, BalanceReport, Cell, ListedMigration, TakesMigration, balance_figure};
pub use balance_text::balance_text;
pub use choice::options;
pub use cost::{BurstNotes, Cost, CostRow, cost_text};
pub use figure::{Options, figure};
pub use funnel::{Attempts, Funnel, Funnels, Further, GoingIdle, Imbalance, Outcomes};
pub use kinds::shortened;
pub use list::{ListArgs, ListCommand};
pub use listing::write_text;
pub use migrations::{MigrationsArgs, MigrationsQuestion, MigrationsReport};
pub use question::EventsQuestion;
pub use rate::{rate_figure, value_figure};
pub use spans::{Edge, SpanReport, Spans};
pub use values::Summary;
pub use wakeups::{Wakeup, WakeupReport, Wakeups, draw_wakeups, wakeups_caption, wakeups_legend};

use sched::seeded::SeededMap;
use sched::{Cpu, Ts};
use serde::Serialize;
use std::cmp::Ordering;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/events/1";

/// The number of columns of a density.
pub(crate) const COLUMNS: usize = 400;

/// Maximum number of markers on a page. Rare kinds get theirs first.
const MARKERS: u64 = 4000;

/// More kinds than this are no kinds: the rest is gathered in one.
const KINDS: usize = 200;

/// Occurrences on one CPU: how many in each column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Density(pub(crate) Vec<u32>);

impl Default for Density {
    fn default() -> Density {
        Density(vec![0; COLUMNS])
    }
}

impl Density {
    /// Counts an occurrence at `ts` of a window.
    fn add(&mut self, ts: Ts, from: Ts, to: Ts) {
        self.0[column_of(ts, from, to)] += 1;
    }
}

/// The column of an instant of a window.
fn column_of(ts: Ts, from: Ts, to: Ts) -> usize {
    let span = u128::from(to.since(from).0.max(1));
    let column = u128::from(ts.since(from).0) * COLUMNS as u128 / span;
    (column as usize).min(COLUMNS - 1)
}

/// The occurrences of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindReport {
    /// The name of the kind.
    pub name: String,
    /// The number of events of the kind in the window, on the CPUs shown.
    pub count: u64,
    /// The share of the kind in all events that are shown, in percent.
    pub percent: f64,
    /// The values of a field of the events, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Summary>,
    /// The mean of the values in each of 400 columns of the window; empty without values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Option<f64>>,
    /// The instant and the CPU of each event, unless they are too many for markers.
    #[serde(skip)]
    pub(crate) marks: Vec<(Ts, Cpu)>,
    /// The number of events in each of 400 columns of the window, if rates were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<u32>>,
    /// The form in which the events of this kind are drawn.
    #[serde(skip)]
    pub(crate) shown: Shown,
}

/// The form in which the events of a kind are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A marker each.
    Markers,
    /// A bar for the number of events in each column.
    Bars,
    /// The ends of spans.
    Spans,
}

/// The counts of a window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The name and version of the schema, `schedviz/events/1`.
    pub schema: &'static str,
    /// The window's start, on the trace's clock.
    pub from_ns: Ts,
    /// The window's end, on the trace's clock.
    pub to_ns: Ts,
    /// The number of events that are shown.
    pub total: u64,
    /// The events by kind, the most frequent first.
    pub kinds: Vec<KindReport>,
    /// The spans of time between two events, by kind, the longest in all first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<SpanReport>,
    /// The parts of them that are drawn.
    #[serde(skip)]
    pub(crate) pieces: Vec<spans::Piece>,
    /// The events in bars by CPU.
    #[serde(skip)]
    pub(crate) densities: Vec<(Cpu, Density)>,
}

/// Counts the occurrences of events by kind.
#[derive(Debug)]
pub struct Gather {
    from: Ts,
    to: Ts,
    rates: bool,
    total: u64,
    places: SeededMap<String, usize>,
    kinds: Vec<KindCounts>,
    densities: SeededMap<Cpu, Density>,
}

#[derive(Debug, Default)]
struct KindCounts {
    name: String,
    count: u64,
    values: values::Values,
    /// The number of values and their sum in each column of the window.
    course: Vec<(u32, f64)>,
    marks: Vec<(Ts, Cpu)>,
    rate: Option<Density>,
    /// Whether the events are the ends of spans.
    spanned: bool,
}

impl Gather {
    /// Returns the counters for a window; `rates`: over time as well, by kind.
    pub fn new(from: Ts, to: Ts, rates: bool) -> Gather {
        let (places, densities) = (SeededMap::default(), SeededMap::default());
        Gather { from, to, rates, total: 0, places, kinds: Vec::new(), densities }
    }

    /// An event of this kind occurred inside the window, perhaps with a value.
    pub fn add(&mut self, ts: Ts, cpu: Cpu, kind: &str, value: Option<f64>) {
        let place = self.place(kind);
        self.count(ts, place, value, Some(cpu));
    }

    /// The place of a kind among those that are counted.
    pub(crate) fn place(&mut self, kind: &str) -> usize {
        if let Some(place) = self.places.get(kind) {
            return *place;
        }
        let name = if self.kinds.len() < KINDS { kind } else { "(other)" };
        let new = self.kinds.len();
        let place = *self.places.entry(name.to_owned()).or_insert(new);
        if place == new {
            let rate = self.rates.then(Density::default);
            self.kinds.push(KindCounts { name: name.to_owned(), rate, ..KindCounts::default() });
        }
        place
    }

    /// Counts an event of the kind in a place, which is drawn by itself on `cpu`, or not.
    pub(crate) fn count(&mut self, ts: Ts, place: usize, value: Option<f64>, cpu: Option<Cpu>) {
        self.total += 1;
        let kind = &mut self.kinds[place];
        kind.count += 1;
        if let Some(value) = value.filter(|value| value.is_finite()) {
            kind.values.add(value);
            kind.course.resize(COLUMNS, (0, 0.0));
            let (n, sum) = &mut kind.course[column_of(ts, self.from, self.to)];
            (*n, *sum) = (*n + 1, *sum + value);
        }
        if let Some(rate) = &mut kind.rate {
            rate.add(ts, self.from, self.to);
        }
        let Some(cpu) = cpu else {
            kind.spanned = true;
            return;
        };
        // A kind with more of them gets no markers.
        match kind.count.cmp(&(MARKERS + 1)) {
            Ordering::Less => kind.marks.push((ts, cpu)),
            Ordering::Equal => kind.marks = Vec::new(),
            Ordering::Greater => {}
        }
        self.densities.entry(cpu).or_default().add(ts, self.from, self.to);
    }

    /// A kind that was asked for and did not occur has a count of zero.
    pub fn add_absent(&mut self, name: &str) {
        if self.places.contains_key(name) {
            return;
        }
        self.places.insert(name.to_owned(), self.kinds.len());
        let rate = self.rates.then(Density::default);
        self.kinds.push(KindCounts { name: name.to_owned(), rate, ..KindCounts::default() });
    }

    /// Ends the window, and returns the counts with the spans that were found.
    pub fn finish(self, spans: Spans) -> Report {
        let total = self.total;
        let report = |kind: KindCounts| KindReport {
            name: kind.name,
            count: kind.count,
            percent: 100.0 * kind.count as f64 / (total as f64).max(1.0),
            values: kind.values.finish(),
            course: kind.course.iter().map(|(n, sum)| (*n > 0).then(|| sum / f64::from(*n))).collect(),
            marks: kind.marks,
            columns: kind.rate.map(|rate| rate.0),
            shown: if kind.spanned { Shown::Spans } else { Shown::Bars },
        };
        let mut kinds: Vec<KindReport> = self.kinds.into_iter().map(report).collect();
        kinds.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        let mut sum = 0;
        let mut all = self.densities;
        for kind in kinds.iter_mut().rev().filter(|kind| kind.shown == Shown::Bars) {
            sum += kind.count;
            if sum > MARKERS {
                break;
            }
            kind.shown = Shown::Markers;
            for (ts, cpu) in &kind.marks {
                if let Some(density) = all.get_mut(cpu) {
                    density.0[column_of(*ts, self.from, self.to)] -= 1;
                }
            }
        }
        let (spans, pieces) = spans.finish();
        let mut densities: Vec<(Cpu, Density)> = all.into_iter().collect();
        densities.sort_by_key(|(cpu, _)| *cpu);
        let (schema, from_ns, to_ns) = (SCHEMA, self.from, self.to);
        Report { schema, from_ns, to_ns, total, kinds, spans, pieces, densities }
    }
}

/// The counts for people.
pub fn text(report: &Report) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:>10}  {:>7}  event", "count", "share");
    for kind in &report.kinds {
        let _ = writeln!(out, "{:>10}  {:>6.2}%  {}", kind.count, kind.percent, kind.name);
        if let Some(values) = &kind.values {
            out.push_str(&values.text(20));
        }
    }
    let _ = writeln!(out, "{:>10}          in all", report.total);
    out.push_str(&spans::text(&report.spans));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_and_marks_bounded() {
        let mut gather = Gather::new(Ts(0), Ts(1000), true);
        for n in 0..10_000_i64 {
            gather.add(Ts(n / 10), Cpu((n % 3) as u32), if n % 4 == 0 { "a" } else { "b" }, Some(n as f64));
        }
        let report = gather.finish(Spans::default());
        let counts: Vec<_> = report.kinds.iter().map(|k| (k.name.as_str(), k.count, k.percent)).collect();
        assert_eq!(counts, [("b", 7500, 75.0), ("a", 2500, 25.0)]);
        // The rarer kind has its markers, and only the other stands in the bars.
        let shown: Vec<_> = report.kinds.iter().map(|kind| (kind.shown, kind.marks.len())).collect();
        assert_eq!(shown, [(Shown::Bars, 0), (Shown::Markers, 2500)]);
        let columns: u64 = report.densities.iter().flat_map(|(_, d)| &d.0).map(|n| u64::from(*n)).sum();
        assert_eq!(columns, 7500);
        let options = Options { zero: Ts(0), cpus: (0..3).map(|cpu| (Cpu(cpu), None)).collect(), all_cpus: Vec::new() };
        let figure = figure(&report, &options, &timeline::page::Heading::default(), None);
        let marked = |item: &draw::Item| if let draw::Item::Markers { at, .. } = item { at.len() } else { 0 };
        assert_eq!(figure.items.iter().map(marked).sum::<usize>(), 2501, "one of them in the legend");
        let text =
            |item: &draw::Item| if let draw::Item::Text { text, .. } = item { text.clone() } else { String::new() };
        let texts: Vec<String> = figure.items.iter().map(text).collect();
        let scale = "a marker each, but for b as bars: a bar as high as its lane is 8 events in 2 ns";
        assert!(texts.iter().any(|text| text.contains(scale)), "{texts:?}");
        let rates: u32 = report.kinds.iter().filter_map(|k| k.columns.as_ref()).flatten().sum();
        assert_eq!(rates, 10_000);
        let mut gather = Gather::new(Ts(0), Ts(1), false);
        (0..500).for_each(|n| gather.add(Ts(0), Cpu(0), &format!("kind {n}"), None));
        let report = gather.finish(Spans::default());
        assert_eq!((report.kinds.len(), report.kinds[0].name.as_str(), report.kinds[0].count), (201, "(other)", 300));
    }
}
