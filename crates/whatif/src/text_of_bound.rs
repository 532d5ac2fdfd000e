//! The bound in words and in a table.

use crate::report::{Bound, LeastElapsed, Prediction};
use sched::{Dur, QueuedTimes};
use timeline::table::{TextColumn, TextTable};
use timeline::text::{rounded, short};

/// The bound in a sentence. `of`: what the elapsed time is that of.
pub(crate) fn bound_in_words(prediction: &Prediction, of: &str) -> String {
    let elapsed = prediction.trace.elapsed_ns;
    let Some(bound) = &prediction.bound else {
        return format!(
            "what placement could gain of {} {of} is not known: the trace does not show all of the work",
            elapsed.human()
        );
    };
    let percent = |least: &LeastElapsed| gain_percent(least, elapsed);
    let most = percent(&bound.least);
    let mut said = match most {
        most if most > 0.0 => format!("between 0 and {most:.1} % of the elapsed time can be gained by any placement"),
        _ => "no placement can gain any of the elapsed time".to_owned(),
    };
    if let (Some(share), Some(least)) = (prediction.calibration.seem_bound_percent, &bound.least_if_bound) {
        said = format!(
            "tasks seem bound to CPUs (in {share:.0} % of the violated time none that waited was ever queued on the CPUs that idled): {said}, {:.1} % \
             if they are bound",
            percent(least)
        );
    }
    if let Some(near) = near_percent(bound, most) {
        said += &format!("; {near:.1} % was queued on the critical path beside idle CPUs under the same cache");
    }
    if let Some(kept) = bound.least_if_kept.as_ref().map(percent).filter(|kept| *kept < most) {
        said += &format!("; at most {kept:.1} % if what the trace leaves open keeps its length");
    }
    format!("{said} (of {} {of})", elapsed.human())
}

/// The most that can be gained, in percent of the elapsed time.
pub(crate) fn gain_percent(least: &LeastElapsed, elapsed: Dur) -> f64 {
    let gain = elapsed.0.saturating_sub(least.elapsed_ns.0);
    rounded(100.0 * gain as f64 / (elapsed.0 as f64).max(1.0), 1)
}

/// The time queued on the path beside idle CPUs under the same cache, in percent of the path, where it is some and not more than the bound.
fn near_percent(bound: &Bound, most: f64) -> Option<f64> {
    let path = bound.path?;
    let near = rounded(100.0 * path.near_idle_ns?.0 as f64 / (path.length_ns.0 as f64).max(1.0), 1);
    (near > 0.0 && near <= most).then_some(near)
}

/// The parts of the bound, and what was queued.
pub(crate) fn bound_table(out: &mut String, prediction: &Prediction) {
    let Some(bound) = &prediction.bound else { return };
    let elapsed = prediction.trace.elapsed_ns.0;
    let share = |ns: u64, of: u64| format!("{:.1}%", rounded(100.0 * ns as f64 / (of as f64).max(1.0), 1));
    let mut table = TextTable::new([TextColumn::Words(32), TextColumn::Numbers(8), TextColumn::Numbers(6)]);
    table.row(["no scheduler can be faster than", "time", "share"]);
    let work = format!("  the work on the CPUs, {} in all", bound.cpus);
    for (name, ns) in [("  the longest chain", bound.least.chain_ns), (work.as_str(), bound.least.work_ns)] {
        table.row([name.to_owned(), short(Some(ns)), share(ns.0, elapsed)]);
    }
    out.push('\n');
    table.write(out);
    let columns = [TextColumn::Words(32), TextColumn::Numbers(8), TextColumn::Numbers(6)];
    let mut table = TextTable::new(columns.into_iter().chain([TextColumn::Numbers(9), TextColumn::Numbers(6)]));
    table.row(["queued", "on path", "share", "all tasks", "share"]);
    let of_path = |ns: fn(&QueuedTimes) -> u64| {
        bound.path.map_or(["-".to_owned(), "-".to_owned()], |path| {
            let ns = ns(&path.queued);
            [short(Some(Dur(ns))), share(ns, path.length_ns.0)]
        })
    };
    let of_all = |ns: fn(&QueuedTimes) -> u64| {
        bound
            .queued
            .map_or(["-".to_owned(), "-".to_owned()], |all| [short(Some(Dur(ns(&all)))), share(ns(&all), all.total())])
    };
    let kinds = [
        ("  beside an idle CPU", (|times| times.beside_idle_ns) as fn(&QueuedTimes) -> u64),
        ("  held back on an idle CPU", |times| times.held_back_ns),
        ("  beside a shorter queue", |times| times.beside_shorter_ns),
        ("  unavoidable: all queues alike", |times| times.alike_ns),
    ];
    for (at, (name, ns)) in kinds.into_iter().enumerate() {
        table.row([name.to_owned()].into_iter().chain(of_path(ns)).chain(of_all(ns)));
        if let (0, Some((path, near))) = (at, bound.path.and_then(|path| Some((path, path.near_idle_ns?)))) {
            table.row(["    under the same cache".to_owned(), short(Some(near)), share(near.0, path.length_ns.0)]);
        }
    }
    out.push('\n');
    table.write(out);
}
