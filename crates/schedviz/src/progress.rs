//! How far the reading is, where somebody watches and it takes over a second.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use tracedat::Trace;

/// Runs `work` on the trace, and shows its progress meanwhile.
pub(crate) fn watched<T>(trace: &Trace, quiet: bool, work: impl FnOnce() -> T) -> T {
    if quiet || !std::io::stderr().is_terminal() {
        return work();
    }
    // What was read before is no part of it.
    let before = trace.data_read();
    std::thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        scope.spawn(move || {
            if wait.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new(trace.data_size());
            let style = ProgressStyle::with_template("{bar:40} {percent} %  {bytes_per_sec}  {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            while wait.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                bar.set_position(trace.data_read().saturating_sub(before).min(trace.data_size()));
            }
            bar.finish_and_clear();
        });
        let result = work();
        drop(done);
        result
    })
}
