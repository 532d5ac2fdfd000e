//! The progress of reading, shown on a terminal if it takes over a second.

use indicatif::{ProgressBar, ProgressStyle};
use parse::Trace;
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The time for which a program shows nothing: many reads, of which none takes as long, may come to more.
const SILENCE: Duration = Duration::from_secs(1);
/// The interval between two draws. A read that takes less time is not shown.
const REDRAW: Duration = Duration::from_millis(100);
/// The first work of this program that was watched.
static BEGAN: OnceLock<Instant> = OnceLock::new();
/// The works that are watched, each a part of the one before: the innermost is shown.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

/// Runs `work` on the trace, and shows its progress meanwhile.
pub fn watched<T>(trace: &Trace, quiet: bool, work: impl FnOnce() -> T) -> T {
    // Earlier reads are no part of this one.
    let before = trace.data_read();
    let read = || trace.data_read().saturating_sub(before);
    with_bar("{bar:40} {percent} %  {bytes_per_sec}  {eta} left", trace.data_size(), read, quiet, work)
}

/// Runs `work` on this number of runs, and shows how many are `done` meanwhile.
pub fn watched_runs<T>(done: &AtomicUsize, runs: usize, quiet: bool, work: impl FnOnce() -> T) -> T {
    let at = || done.load(Ordering::Relaxed) as u64;
    with_bar("{bar:40} {pos} of {len} runs", runs as u64, at, quiet, work)
}

/// Runs `work`, whose length is not known beforehand, and shows for how long it has been doing `what`.
pub fn waiting<T>(what: &str, quiet: bool, work: impl FnOnce() -> T) -> T {
    let style = format!("{{spinner}} {} {{elapsed}}", what.replace('{', "{{").replace('}', "}}"));
    with_bar(&style, 0, || 0, quiet, work)
}

/// Runs `work`, and shows a bar of this style, which ends at `length` and is `at` this position.
fn with_bar<T>(style: &str, length: u64, at: impl Fn() -> u64 + Send, quiet: bool, work: impl FnOnce() -> T) -> T {
    if quiet || !std::io::stderr().is_terminal() {
        return work();
    }
    let begin = Instant::now();
    let silence = SILENCE.saturating_sub(BEGAN.get_or_init(|| begin).elapsed()).max(REDRAW);
    let depth = DEPTH.fetch_add(1, Ordering::Relaxed) + 1;
    let result = std::thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        scope.spawn(move || {
            let mut bar: Option<ProgressBar> = None;
            let mut next = silence;
            while wait.recv_timeout(next) == Err(RecvTimeoutError::Timeout) {
                next = REDRAW;
                if DEPTH.load(Ordering::Relaxed) == depth {
                    let bar = bar.get_or_insert_with(|| new_bar(style, length).with_elapsed(begin.elapsed()));
                    bar.set_position(at().min(length));
                    bar.tick();
                } else if let Some(hidden) = bar.take() {
                    hidden.finish_and_clear();
                }
            }
            bar.iter().for_each(ProgressBar::finish_and_clear);
        });
        let result = work();
        drop(done);
        result
    });
    DEPTH.fetch_sub(1, Ordering::Relaxed);
    result
}

fn new_bar(style: &str, length: u64) -> ProgressBar {
    let bar = if length == 0 { ProgressBar::new_spinner() } else { ProgressBar::new(length) };
    bar.with_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()))
}
