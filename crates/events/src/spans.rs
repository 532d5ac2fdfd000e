//! Spans of time that two events delimit: sections that an application marks in its texts, and functions that
//! function_graph records at their entry and exit.
//!
//! | begins | ends | belong together |
//! |---|---|---|
//! | `B\|pid\|name` (the form of atrace) | `E\|pid` or `E` | the innermost section of the thread that wrote them |
//! | `begin:name` | `end:name` | the latest open section of the thread with the same text, else with the same name |
//! | `funcgraph_entry` | `funcgraph_exit` | the latest open call of the function by the task, at the same depth |
//!
//! A span belongs to a thread. While it is open it is drawn on the CPU where the thread was seen last, above or below
//! the other spans of that CPU. An event without its counterpart in the window has no length and is counted apart.
//! Where events were lost the open spans of the threads there are given up, since their ends may be among them.

use crate::kinds::shortened;
use crate::{COLUMNS, KINDS};
use sched::seeded::SeededMap;
use sched::{Cpu, Dur, Lengths, Pid, Ts};
use serde::Serialize;

/// Open spans of one thread; with more of them the oldest is given up.
const DEEPEST: usize = 256;

/// Rows of spans on a CPU; deeper ones share the last.
pub(crate) const ROWS: usize = 8;

/// The number of columns of the page in which short spans are distinct, in multiples of those of bars.
const FINER: usize = 4;

/// Short spans of one row that are drawn in one column.
const TOGETHER: u8 = 2;

/// The beginning or the end of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edge {
    /// A section of an application begins, with this name (`B|pid|name`).
    Section(String),
    /// The innermost section ends (`E|pid`).
    SectionEnd,
    /// The section with this text begins (`begin:text`).
    Begin(String),
    /// The section with this text ends (`end:text`).
    End(String),
    /// A function is entered: its name, and its depth.
    Entry(String, i64),
    /// A function is left after this time: its name, and its depth.
    Exit(String, i64, Option<Dur>),
}

impl Edge {
    /// The edge that a printed text is, if it is one.
    ///
    /// ```
    /// use events::Edge;
    /// assert_eq!(Edge::of_text("B|896|compute 0\n"), Some(Edge::Section("compute 0".into())));
    /// assert_eq!(Edge::of_text("E|896\n"), Some(Edge::SectionEnd));
    /// assert_eq!(Edge::of_text("begin:barrier iter=0"), Some(Edge::Begin("barrier iter=0".into())));
    /// assert_eq!(Edge::of_text("beginning"), None);
    /// ```
    pub fn of_text(text: &str) -> Option<Edge> {
        let text = text.trim_end();
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let named = |name: &str| Some(name.trim_start().to_owned()).filter(|name| !name.is_empty());
        if let Some(rest) = text.strip_prefix("B|") {
            let (pid, name) = rest.split_once('|')?;
            return is_number(pid).then(|| Edge::Section(name.to_owned()));
        }
        if text == "E" || text.strip_prefix("E|").is_some_and(|pid| is_number(pid.trim_end_matches('|'))) {
            return Some(Edge::SectionEnd);
        }
        let begin = text.strip_prefix("begin:").and_then(named).map(Edge::Begin);
        begin.or_else(|| text.strip_prefix("end:").and_then(named).map(Edge::End))
    }

    fn begins(&self) -> bool {
        matches!(self, Edge::Section(_) | Edge::Begin(_) | Edge::Entry(..))
    }

    /// The name of the kind of span, up to its first value; nothing where an end names none.
    fn name(&self) -> String {
        match self {
            Edge::Section(text) | Edge::Begin(text) | Edge::End(text) => shortened(text),
            Edge::SectionEnd => "(no section open)".to_owned(),
            Edge::Entry(name, _) | Edge::Exit(name, ..) => name.clone(),
        }
    }

    /// Whether this end belongs to that beginning, by their texts exactly or by their names.
    fn ends(&self, begin: &Edge, exactly: bool) -> bool {
        match (self, begin) {
            (Edge::SectionEnd, Edge::Section(_)) => true,
            (Edge::End(end), Edge::Begin(begin)) if exactly => end == begin,
            (Edge::End(_), Edge::Begin(_)) => self.name() == begin.name(),
            (Edge::Exit(end, end_depth, _), Edge::Entry(begin, depth)) => (end, end_depth) == (begin, depth),
            _ => false,
        }
    }
}

/// The spans of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpanReport {
    /// The name of the kind: a text up to its first value, or a function.
    pub name: String,
    /// The number of spans of which both ends lie in the window.
    pub count: u64,
    /// The total duration of these spans, in nanoseconds.
    pub total_ns: Dur,
    /// The median duration of these spans, at most 0.8 % above the true one; nothing without any.
    pub median_ns: Option<Dur>,
    /// The longest; nothing without any.
    pub max_ns: Option<Dur>,
    /// The number of beginnings without an end in the window.
    pub unended: u64,
    /// The number of ends without a beginning in the window.
    pub unbegun: u64,
}

/// A part of a span on one CPU, to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: usize,
    pub(crate) cpu: Cpu,
    pub(crate) row: usize,
    pub(crate) start: Ts,
    pub(crate) end: Ts,
}

/// Finds spans. It is shown the edges, and which task is current where, in the order of time.
#[derive(Debug, Default)]
pub struct Spans {
    from: Ts,
    to: Ts,
    kinds: Vec<SpanKind>,
    places: SeededMap<String, usize>,
    threads: SeededMap<Thread, Vec<Open>>,
    rows: SeededMap<Cpu, Vec<SpanRow>>,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, Default)]
struct SpanKind {
    name: String,
    lengths: Lengths,
    unended: u64,
    unbegun: u64,
}

/// A thread; the idle tasks, which have one number, by their CPUs.
type Thread = (Pid, Option<Cpu>);

#[derive(Clone, Debug)]
struct Open {
    edge: Edge,
    kind: usize,
    /// The instant at which the span began.
    since: Ts,
    /// Whether the span counts: it began on a CPU that is shown.
    counts: bool,
    /// The CPU on which the span is drawn now; its instant and its row follow.
    cpu: Cpu,
    here_since: Ts,
    row: usize,
}

/// A row of a CPU.
#[derive(Clone, Debug, Default)]
struct SpanRow {
    taken: u32,
    /// The column of the latest short piece, and how many it has.
    column: u64,
    drawn: u8,
}

fn thread(pid: Pid, cpu: Cpu) -> Thread {
    (pid, pid.is_idle().then_some(cpu))
}

impl Spans {
    /// Returns a search for the spans of a window.
    pub fn new(from: Ts, to: Ts) -> Spans {
        Spans { from, to, ..Spans::default() }
    }

    /// Whether a span is open, so that a caller has to pass the current tasks of the CPUs.
    pub fn is_open(&self) -> bool {
        !self.threads.is_empty()
    }

    /// A task is current on this CPU now: its open spans go on there.
    pub fn current(&mut self, ts: Ts, cpu: Cpu, pid: Pid) {
        let Some(open) = self.threads.get_mut(&thread(pid, cpu)) else { return };
        if open.iter().all(|open| open.cpu == cpu) {
            return;
        }
        let mut open = std::mem::take(open);
        for span in open.iter_mut().filter(|span| span.cpu != cpu) {
            self.leave(span, ts);
            self.enter(span, cpu, ts);
        }
        self.threads.insert(thread(pid, cpu), open);
    }

    /// A span of this task begins or ends. `shown`: on a CPU that is shown.
    pub fn edge(&mut self, ts: Ts, cpu: Cpu, pid: Pid, edge: Edge, shown: bool) {
        self.current(ts, cpu, pid);
        if edge.begins() {
            let kind = self.kind(&edge);
            let mut span = Open { edge, kind, since: ts, counts: shown, cpu, here_since: ts, row: 0 };
            self.enter(&mut span, cpu, ts);
            let open = self.threads.entry(thread(pid, cpu)).or_default();
            open.push(span);
            let oldest = (open.len() > DEEPEST).then(|| open.remove(0));
            oldest.iter().for_each(|span| self.give_up(span, ts));
            return;
        }
        let length = if let Edge::Exit(.., length) = edge { length } else { None };
        let found = self.threads.get_mut(&thread(pid, cpu)).and_then(|open| {
            let at = |exactly| open.iter().rposition(|span| edge.ends(&span.edge, exactly));
            let span = open.remove(at(true).or_else(|| at(false))?);
            Some((span, open.is_empty()))
        });
        match found {
            Some((span, was_last)) => {
                self.leave(&span, ts);
                if span.counts {
                    self.kinds[span.kind].lengths.add(length.unwrap_or(ts.since(span.since)));
                }
                if was_last {
                    self.threads.remove(&thread(pid, cpu));
                }
            }
            None if shown => {
                let kind = self.kind(&edge);
                self.kinds[kind].unbegun += 1;
            }
            None => {}
        }
    }

    /// Events were lost on this CPU before `ts`: spans of the threads that were there may have ended.
    pub fn lost(&mut self, cpu: Cpu, ts: Ts) {
        let there = |open: &[Open]| open.iter().any(|span| span.cpu == cpu);
        let mut threads: Vec<Thread> = self.threads.iter().filter(|(_, o)| there(o)).map(|(t, _)| *t).collect();
        threads.sort_unstable();
        for thread in threads {
            let open = self.threads.remove(&thread).unwrap_or_default();
            open.iter().for_each(|span| self.give_up(span, ts));
        }
    }

    /// The kinds with any span, the longest in all first, and the drawn parts of each.
    pub(crate) fn finish(mut self) -> (Vec<SpanReport>, Vec<Piece>) {
        let mut threads: Vec<(Thread, Vec<Open>)> = std::mem::take(&mut self.threads).into_iter().collect();
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        for span in threads.into_iter().flat_map(|(_, open)| open) {
            self.give_up(&span, self.to);
        }
        // The spans of some kinds all began on CPUs that are not shown.
        let counts = |kind: &SpanKind| kind.lengths.count() + kind.unended + kind.unbegun > 0;
        let mut order: Vec<usize> = (0..self.kinds.len()).filter(|kind| counts(&self.kinds[*kind])).collect();
        let total = |kind: &SpanKind| kind.lengths.total();
        order.sort_by(|a, b| {
            let (a, b) = (&self.kinds[*a], &self.kinds[*b]);
            total(b).cmp(&total(a)).then_with(|| a.name.cmp(&b.name))
        });
        let mut place = vec![None; self.kinds.len()];
        order.iter().enumerate().for_each(|(new, old)| place[*old] = Some(new));
        self.pieces.retain_mut(|piece| match place[piece.kind] {
            Some(kind) => {
                piece.kind = kind;
                true
            }
            None => false,
        });
        self.pieces.sort_by_key(|piece| (piece.cpu, piece.row, piece.start, piece.end, piece.kind));
        let report = |kind: usize| {
            let SpanKind { name, lengths, unended, unbegun } = &self.kinds[kind];
            SpanReport {
                name: name.clone(),
                count: lengths.count(),
                total_ns: lengths.total(),
                median_ns: lengths.rank(1, 2),
                max_ns: lengths.max(),
                unended: *unended,
                unbegun: *unbegun,
            }
        };
        (order.into_iter().map(report).collect(), self.pieces)
    }

    fn kind(&mut self, edge: &Edge) -> usize {
        let name = edge.name();
        if let Some(place) = self.places.get(&name) {
            return *place;
        }
        let name = if self.kinds.len() < KINDS { name } else { "(other)".to_owned() };
        let new = self.kinds.len();
        let place = *self.places.entry(name.clone()).or_insert(new);
        if place == new {
            self.kinds.push(SpanKind { name, ..SpanKind::default() });
        }
        place
    }

    /// A span goes on, or begins, on a CPU.
    fn enter(&mut self, span: &mut Open, cpu: Cpu, ts: Ts) {
        let rows = self.rows.entry(cpu).or_default();
        let free = rows.iter().position(|row| row.taken == 0).unwrap_or(rows.len()).min(ROWS - 1);
        if free == rows.len() {
            rows.push(SpanRow { column: u64::MAX, ..SpanRow::default() });
        }
        rows[free].taken += 1;
        (span.cpu, span.here_since, span.row) = (cpu, ts, free);
    }

    /// A span ends on a CPU, or goes on elsewhere.
    fn leave(&mut self, span: &Open, ts: Ts) {
        let Open { kind, cpu, here_since, row: at, .. } = *span;
        let (from, to) = (self.from, self.to);
        let Some(row) = self.rows.get_mut(&cpu).and_then(|rows| rows.get_mut(at)) else { return };
        row.taken = row.taken.saturating_sub(1);
        // A span shorter than a column hides the others there: a few of them are enough.
        let width = to.since(from).0 / (COLUMNS * FINER) as u64;
        if ts.since(here_since).0 <= width {
            let column = here_since.since(from).0 / width.max(1);
            (row.column, row.drawn) = if row.column == column { (column, row.drawn + 1) } else { (column, 1) };
            if row.drawn > TOGETHER {
                row.drawn = TOGETHER;
                return;
            }
        }
        self.pieces.push(Piece { kind, cpu, row: at, start: here_since, end: ts });
    }

    fn give_up(&mut self, span: &Open, ts: Ts) {
        self.leave(span, ts);
        if span.counts {
            self.kinds[span.kind].unended += 1;
        }
    }
}

/// The table for people.
pub(crate) fn text(spans: &[SpanReport]) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    if spans.is_empty() {
        return out;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n{:>10}  {:>12}  {:>12}  {:>12}  span", "count", "total", "median", "longest");
    for span in spans {
        let length = |length: Option<Dur>| length.map_or("none".to_owned(), Dur::human);
        let (total, median, max) = (span.total_ns.human(), length(span.median_ns), length(span.max_ns));
        let _ = write!(out, "{:>10}  {total:>12}  {median:>12}  {max:>12}  {}", span.count, span.name);
        let parts = [(span.unended, "without an end"), (span.unbegun, "without a beginning")];
        let parts: Vec<String> = parts.iter().filter(|p| p.0 > 0).map(|(n, what)| format!("{n} {what}")).collect();
        let _ = if parts.is_empty() { writeln!(out) } else { writeln!(out, " ({})", parts.join(", ")) };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(text: &str) -> Edge {
        Edge::of_text(text).expect("an edge")
    }

    #[test]
    fn sections_nest_and_overlap_by_thread() {
        let mut spans = Spans::new(Ts(0), Ts(1000));
        let mut at = |ts, cpu, pid, text: &str| spans.edge(Ts(ts), Cpu(cpu), Pid(pid), begin(text), true);
        at(10, 0, 7, "B|5|outer");
        at(20, 0, 7, "B|5|inner 1");
        at(25, 1, 8, "B|5|inner 2");
        at(50, 0, 7, "E|5");
        at(65, 1, 8, "E");
        // If two overlap, each end finds its own beginning by the text; else by the name.
        at(100, 0, 7, "begin:wait id=1");
        at(110, 0, 7, "begin:wait id=2");
        at(130, 0, 7, "end:wait id=1");
        at(170, 0, 7, "end:wait id=3");
        at(210, 0, 7, "E|5");
        at(220, 0, 7, "E|5");
        at(300, 0, 7, "begin:late");
        let (reports, pieces) = spans.finish();
        let of = |name: &str| reports.iter().find(|r| r.name == name).expect("a kind").clone();
        let (outer, inner, wait) = (of("outer"), of("inner \u{2026}"), of("wait id=\u{2026}"));
        assert_eq!((outer.count, outer.total_ns), (1, Dur(200)));
        assert_eq!((inner.count, inner.total_ns, inner.max_ns), (2, Dur(30 + 40), Some(Dur(40))));
        assert_eq!((wait.count, wait.total_ns, wait.unbegun), (2, Dur(30 + 60), 0));
        assert_eq!((of("(no section open)").unbegun, of("late").unended, of("late").median_ns), (1, 1, None));
        let row = |start| pieces.iter().find(|p| p.start == Ts(start)).map(|p| (p.cpu.0, p.row, p.end.0));
        assert_eq!((row(10), row(20), row(25)), (Some((0, 0, 210)), Some((0, 1, 50)), Some((1, 0, 65))));
        assert_eq!((row(100), row(110), row(300)), (Some((0, 1, 130)), Some((0, 2, 170)), Some((0, 0, 1000))));
    }

    #[test]
    fn a_span_goes_where_its_thread_goes_and_is_given_up_in_a_loss() {
        let mut spans = Spans::new(Ts(0), Ts(1000));
        spans.edge(Ts(100), Cpu(0), Pid(7), begin("B|7|work"), true);
        spans.current(Ts(300), Cpu(2), Pid(7));
        spans.current(Ts(350), Cpu(2), Pid(7));
        spans.edge(Ts(400), Cpu(0), Pid(7), Edge::SectionEnd, true);
        spans.edge(Ts(500), Cpu(1), Pid(8), begin("B|7|work"), true);
        spans.edge(Ts(500), Cpu(3), Pid(9), begin("B|7|work"), false);
        spans.lost(Cpu(1), Ts(600));
        assert!(spans.is_open());
        spans.edge(Ts(700), Cpu(1), Pid(8), Edge::SectionEnd, true);
        spans.edge(Ts(800), Cpu(3), Pid(9), Edge::SectionEnd, false);
        assert!(!spans.is_open());
        let (reports, pieces) = spans.finish();
        let work = reports.iter().find(|r| r.name == "work").expect("a kind");
        assert_eq!((work.count, work.total_ns, work.unended), (1, Dur(300), 1), "not that of a CPU that is not shown");
        let places: Vec<_> =
            pieces.iter().filter(|p| p.cpu.0 < 3 && p.start < p.end).map(|p| (p.cpu.0, p.start.0, p.end.0)).collect();
        assert_eq!(places, [(0, 100, 300), (1, 500, 600), (2, 300, 400)]);
    }

    #[test]
    fn functions_pair_by_name_and_depth_and_take_what_the_kernel_measured() {
        let mut spans = Spans::new(Ts(0), Ts(1000));
        let mut at = |ts, edge| spans.edge(Ts(ts), Cpu(0), Pid::IDLE, edge, true);
        at(10, Edge::Entry("f".into(), 0));
        at(20, Edge::Entry("f".into(), 1));
        at(40, Edge::Exit("f".into(), 1, Some(Dur(15))));
        at(90, Edge::Exit("f".into(), 0, None));
        at(95, Edge::Exit("g".into(), 0, Some(Dur(3))));
        let (reports, _) = spans.finish();
        let counted: Vec<_> = reports.iter().map(|r| (r.name.as_str(), r.count, r.total_ns.0, r.unbegun)).collect();
        assert_eq!(counted, [("f", 2, 95, 0), ("g", 0, 0, 1)]);
    }

    #[test]
    fn any_number_of_spans_takes_bounded_room() {
        let mut spans = Spans::new(Ts(0), Ts(10_000_000));
        for n in 0..500_000 {
            spans.edge(Ts(n * 20), Cpu(0), Pid(7), Edge::Section(format!("kind{}", n % 300)), true);
            spans.edge(Ts(n * 20 + 5), Cpu(0), Pid(7), Edge::SectionEnd, true);
        }
        (0..1000).for_each(|_| spans.edge(Ts(9_999_999), Cpu(0), Pid(7), Edge::Section("deep".into()), true));
        let (reports, pieces) = spans.finish();
        assert!(reports.len() <= KINDS + 1 && pieces.len() < 6000, "{} {}", reports.len(), pieces.len());
        assert_eq!(reports.iter().map(|r| r.count).sum::<u64>(), 500_000);
        assert_eq!(reports.iter().map(|r| r.unended).sum::<u64>(), 1000);
    }
}
