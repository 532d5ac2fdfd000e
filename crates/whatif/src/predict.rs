//! Predictions: the model under each policy, calibrated by the trace, each number with an interval.

use crate::bound::{BoundFacts, BoundScope, bound};
use crate::engine::{Costs, EngineOptions, Interrupts, Order, Policy, Run, Wakeups};
use crate::measures::{RunFigures, measures};
use crate::model::{Model, ModelSleep, SleepClass};
use crate::policy::PolicyName;
use crate::report::{Calibration, CommandError, Estimate, PolicyRow, Prediction, error_percent};
use crate::simulated::SimulatedRun;
use crate::unfit::Unfit;
use path::{Path, SegmentKind};
use sched::seeded::SeededMap;
use sched::{Dur, Pass, Pid, QueuedTimes, Topology, Ts};
use workcons::Options;

/// The policies to predict, and the rules of the simulation.
pub struct PredictOptions<'o> {
    /// The policies, in the order of the rows.
    pub policies: Vec<PolicyName>,
    /// The order of the run queues; without one it is [`Order::Fair`], and [`Order::Fifo`] counts in the intervals.
    pub order: Option<Order>,
    /// The time that decisions of policies cost.
    pub costs: Costs,
    /// The places of the CPUs; empty if they are unknown.
    pub topology: &'o Topology,
    /// The options of the measurement of the violation, of the trace and of each simulated run.
    pub measured: &'o Options<'o>,
    /// The reason in the trace itself why there is no forecast.
    pub unfit: Option<Unfit>,
    /// The number of CPUs of the machine.
    pub cpus: u32,
    /// The queued time on the path beside idle CPUs under the same last-level cache, in nanoseconds, where the caches are known.
    pub near_idle_ns: Option<u64>,
    /// The queued time of all tasks by kind, where it is known.
    pub queued: Option<QueuedTimes>,
}

/// The greatest calibration error of the elapsed time, in percent, with which there is a prediction.
pub const MOST_ERROR: f64 = 5.0;

/// The greatest width of an interval of the elapsed time, in percent of that, which says something.
pub const MOST_WIDTH: f64 = 50.0;

/// The share of the path, in percent, from which on a record of the causes of sleeps would narrow the intervals.
const WORTH_CAUSES: f64 = 10.0;

/// The assumptions of one simulation that a trace leaves open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assumed {
    order: Order,
    interrupts: Interrupts,
    wakeups: Wakeups,
}

impl Assumed {
    /// The usual assumptions, with the order of queues that was asked for.
    pub(crate) fn usual(order: Option<Order>) -> Assumed {
        let order = order.unwrap_or(Order::Fair);
        Assumed { order, interrupts: Interrupts::default(), wakeups: Wakeups::default() }
    }

    /// The parameters of a simulation under these assumptions.
    pub(crate) fn engine(self, topology: &Topology, costs: Costs) -> EngineOptions<'_> {
        let Assumed { order, interrupts, wakeups } = self;
        EngineOptions { topology, order, costs, interrupts, wakeups }
    }
}

/// A number of a run that has an estimate.
#[derive(Clone, Copy, Debug)]
enum Metric {
    Elapsed,
    Violation,
    CpuTimeLost,
    Busy,
    MissedSteals,
    MeanWait,
    LongWait,
}

impl Metric {
    fn of(self, figures: &RunFigures) -> f64 {
        let ns = |length: Option<Dur>| length.map_or(0.0, |length| length.0 as f64);
        match self {
            Metric::Elapsed => figures.elapsed_ns.0 as f64,
            Metric::Violation => figures.violation_ns.0 as f64,
            Metric::CpuTimeLost => figures.cpu_time_lost_ns.0 as f64,
            Metric::Busy => figures.busy_percent,
            Metric::MissedSteals => figures.missed_steals as f64,
            Metric::MeanWait => ns(figures.waits.mean_ns),
            Metric::LongWait => ns(figures.waits.p99_ns),
        }
    }
}

/// Executes a model under a policy and measures the run. `policy` makes the policy anew for each reading of the run.
pub fn measure_run(
    model: &Model,
    policy: &dyn Fn() -> Box<dyn Policy>,
    engine: EngineOptions<'_>,
    measured: &Options<'_>,
) -> (RunFigures, Run) {
    let mut run = SimulatedRun::new(model, policy, engine);
    let outcome = Pass::over(&mut run).run(|| measures(measured)).unwrap_or_else(|never| match never {});
    (RunFigures::of(&outcome.output), run.run())
}

/// The assumptions of the simulations, the usual ones first; each of the others differs in one thing.
fn assumptions(model: &Model, order: Option<Order>) -> Vec<Assumed> {
    let usual = Assumed::usual(order);
    let mut assumed = vec![usual, Assumed { wakeups: Wakeups::AsRecorded, ..usual }];
    let is_open = |sleep: &ModelSleep| matches!(sleep.class, SleepClass::Interrupt | SleepClass::EitherTimer);
    if model.sleeps.iter().any(is_open) {
        assumed.push(Assumed { interrupts: Interrupts::KeepInstant, ..usual });
    }
    if order.is_none() {
        assumed.push(Assumed { order: Order::Fifo, ..usual });
    }
    assumed
}

/// Predicts what each policy would have done with the work of `model`. `trace` are the figures of the trace itself, `path` is the
/// critical path of its command, where it has one.
pub fn predict(model: &Model, trace: &RunFigures, path: Option<&Path>, options: &PredictOptions<'_>) -> Prediction {
    let assumed = assumptions(model, options.order);
    let usual = assumed[0];
    let measure = |name: PolicyName, assumed: &Assumed| {
        let costs = if name.is_free() { Costs::default() } else { options.costs };
        measure_run(model, &|| name.policy(), assumed.engine(options.topology, costs), options.measured)
    };
    let (observed, observed_run) = measure(PolicyName::Observed, &usual);
    let (rules, _) = measure(PolicyName::Steal(None), &usual);
    let mut calibration = calibrate(model, trace, (&observed, &observed_run), &rules, path);
    if let Some(unfit) = options.unfit {
        (calibration.reasons, calibration.advice) = (vec![unfit.reason()], vec![unfit.advice()]);
    }
    let exec = model.exit.map(|exit| Ts(exit.0.saturating_sub_unsigned(trace.elapsed_ns.0)));
    let exec = exec.filter(|_| trace.elapsed_is_command);
    let facts = BoundFacts {
        scope: BoundScope { exec, cpus: options.cpus },
        path,
        near_idle_ns: options.near_idle_ns,
        queued: options.queued,
    };
    let is_known =
        !matches!(options.unfit, Some(Unfit::Contradictory(_))) && exec.is_some() == trace.elapsed_is_command;
    let bound = if is_known { bound(model, trace, &facts) } else { None };
    let success_unknown = !model.taken.balancing.shows_new_idle();
    let open = Opened {
        least: bound.map_or(0.0, |bound| bound.least.elapsed_ns.0 as f64),
        path_ns: calibration.open_on_path_ns.0 as f64,
        may_be_bound: calibration.seem_bound_percent.is_some(),
        may_change_nothing: false,
    };
    let row = |name: &PolicyName| match name {
        PolicyName::Observed => observed_row(trace, &observed, observed_run),
        _ => {
            let runs: Vec<(RunFigures, Run)> = assumed.iter().map(|assumed| measure(*name, assumed)).collect();
            // Whether searches would find anything is open where hardly any of the trace did, and whether ticks come in time: the kernel of the trace
            // had them as well.
            let may_change_nothing = (success_unknown && name.has_new_idle()) || name.policy().tick_length().is_some();
            predicted_row(*name, trace, (&observed, &rules), &runs, &Opened { may_change_nothing, ..open })
        }
    };
    let mut rows: Vec<PolicyRow> =
        if calibration.reasons.is_empty() { options.policies.iter().map(row).collect() } else { Vec::new() };
    refuse_wide(&mut calibration, &mut rows, trace);
    calibration.is_predictable = calibration.reasons.is_empty();
    Prediction {
        calibration,
        bound,
        rows,
        trace: trace.clone(),
        costs: options.costs.into(),
        tick_ns: options.policies.iter().find_map(|name| name.policy().tick_length()),
        order: usual.order,
        order_is_given: options.order.is_some(),
        taken: model.taken,
        sleeps: model.classes(),
        early_wakeups: model.early_wakeups,
        spinners: model.spinners.clone(),
    }
}

fn row(name: PolicyName, runs: &[Run], estimate: impl Fn(Metric) -> Estimate) -> PolicyRow {
    let run = runs.first().copied().unwrap_or_default();
    let steals = || runs.iter().map(|run| run.steals);
    PolicyRow {
        policy: name.to_string(),
        elapsed_ns: estimate(Metric::Elapsed),
        violation_ns: estimate(Metric::Violation),
        cpu_time_lost_ns: estimate(Metric::CpuTimeLost),
        busy_percent: estimate(Metric::Busy),
        steals: run.steals,
        least_steals: steals().min().unwrap_or(0),
        most_steals: steals().max().unwrap_or(0),
        pulls: name.policy().tick_length().map(|_| run.pulls),
        missed_steals: estimate(Metric::MissedSteals),
        mean_wait_ns: estimate(Metric::MeanWait),
        p99_wait_ns: estimate(Metric::LongWait),
        is_complete: run.finished,
    }
}

/// The row of the trace's own policy: its difference from the trace is the error of the model.
fn observed_row(trace: &RunFigures, observed: &RunFigures, run: Run) -> PolicyRow {
    row(PolicyName::Observed, &[run], |metric| {
        let (value, truth) = (metric.of(observed), metric.of(trace));
        Estimate::new(value, truth, [value, truth].into_iter())
    })
}

/// The intervals that say nothing are no forecast.
fn refuse_wide(calibration: &mut Calibration, rows: &mut Vec<PolicyRow>, trace: &RunFigures) {
    let width =
        |row: &PolicyRow| 100.0 * (row.elapsed_ns.high - row.elapsed_ns.low) / (trace.elapsed_ns.0 as f64).max(1.0);
    let others = rows.iter().filter(|row| row.policy != PolicyName::Observed.to_string());
    let Some(narrowest) = others.map(width).min_by(f64::total_cmp).filter(|least| *least > MOST_WIDTH) else { return };
    let open = calibration.open_on_path_ns;
    let own = calibration.own_error_percent();
    let by = if open.0 > 0 {
        format!(", and {} of the critical path may have been caused by any task", open.human())
    } else {
        String::new()
    };
    calibration.reasons.push(format!(
        "the narrowest interval is {narrowest:.0} % of the elapsed time wide, more than {MOST_WIDTH} %: the model's own error is {own:.1} %{by}"
    ));
    calibration.advice.push("record all CPUs, without losses, and every event that schedviz record records".to_owned());
    rows.clear();
}

/// The parts of a trace that are open, and that no simulation has.
#[derive(Clone, Copy, Debug)]
struct Opened {
    /// The least elapsed time under any scheduler, in nanoseconds; zero if it is not known.
    least: f64,
    /// The time on the critical path that may move with any task, in nanoseconds.
    path_ns: f64,
    /// Whether the waiting tasks may be bound to their CPUs, so that no policy changes anything.
    may_be_bound: bool,
    /// Whether the searches of the policy may find no more than those of the trace, so that nothing changes.
    may_change_nothing: bool,
}

/// The number of a trace with the change that a policy makes to the model: the difference of its run from the one by the trace's own rules,
/// smaller in proportion where that one has more than the trace. Both runs share what the model has wrong.
fn changed(truth: f64, own_rules: f64, policy: f64) -> f64 {
    truth + (policy - own_rules) * if own_rules > truth { truth / own_rules } else { 1.0 }
}

/// The row of a policy: the trace with the policy's change under the usual assumptions. The interval has the runs themselves under each
/// assumption, and reaches as far on both sides as the run without stealing, `rules`, is from the trace.
fn predicted_row(
    name: PolicyName,
    trace: &RunFigures,
    (observed, rules): (&RunFigures, &RunFigures),
    runs: &[(RunFigures, Run)],
    open: &Opened,
) -> PolicyRow {
    let each: Vec<Run> = runs.iter().map(|(_, run)| *run).collect();
    row(name, &each, |metric| {
        let (run, truth, own_rules) = (metric.of(&runs[0].0), metric.of(trace), metric.of(rules));
        let most = if let Metric::Busy = metric { 100.0 } else { f64::MAX };
        // One queue for all CPUs has none of the trace's rules, and the trace's own rules are the model's error.
        let is_change = !name.is_free() && name != PolicyName::Steal(None);
        let value = if is_change { changed(truth, own_rules, run).min(most) } else { run };
        let error = error_percent(metric.of(observed), truth).abs() / 100.0;
        let miss = (own_rules - truth).abs();
        let values = runs.iter().map(|(figures, _)| metric.of(figures)).chain([value - miss, value + miss]);
        let widened = values.flat_map(|value| [value * (1.0 - error).max(0.0), value * (1.0 + error)]);
        let unchanged = (open.may_be_bound || open.may_change_nothing).then_some(truth);
        let moved = if let Metric::Elapsed = metric { open.path_ns } else { 0.0 };
        let least = if let Metric::Elapsed = metric { open.least } else { 0.0 };
        let ends = widened.chain(unchanged).flat_map(|value| [value, value - moved]);
        Estimate::new(value.max(least), truth, ends.map(|value| value.clamp(0.0, most).max(least)))
    })
}

/// The sleep on a path, and the part of it without a known cause, in nanoseconds.
fn sleep_on_path(model: &Model, path: &Path) -> (u64, u64) {
    // The sleeps of each PID, in the order of time.
    let mut sleeps: SeededMap<Pid, Vec<(Ts, &ModelSleep)>> = SeededMap::default();
    for sleep in &model.sleeps {
        sleeps.entry(model.tasks[sleep.task as usize].pid).or_default().push((sleep.start, sleep));
    }
    sleeps.values_mut().for_each(|of_pid| of_pid.sort_by_key(|(start, _)| *start));
    let is_known = |pid: Pid, at: Ts| {
        let of_pid = sleeps.get(&pid).map_or(&[][..], Vec::as_slice);
        let before = of_pid.partition_point(|(start, _)| *start <= at);
        // One sleep ends where the next begins.
        let last = of_pid.get(before.saturating_sub(2)..before).unwrap_or_default();
        last.iter().any(|(start, sleep)| at <= start.after(Dur(sleep.length)) && sleep.class.is_known())
    };
    let (mut all, mut unknown) = (0_u64, 0_u64);
    for segment in &path.path {
        let ns = segment.end_ns.since(segment.start_ns).0;
        match segment.kind {
            SegmentKind::Unknown => unknown = unknown.saturating_add(ns),
            SegmentKind::Sleeping if !is_known(segment.pid, segment.start_ns) => unknown = unknown.saturating_add(ns),
            SegmentKind::Sleeping => {}
            _ => continue,
        }
        all = all.saturating_add(ns);
    }
    (all, unknown)
}

fn calibrate(
    model: &Model,
    trace: &RunFigures,
    (observed, run): (&RunFigures, &Run),
    kept: &RunFigures,
    path: Option<&Path>,
) -> Calibration {
    let path = path.filter(|path| path.task.is_some());
    let (sleep, unknown) = path.map_or((0, 0), |path| sleep_on_path(model, path));
    let length = path.map_or(0, |path| path.times.total());
    let elapsed_error = error_percent(observed.elapsed_ns.0 as f64, trace.elapsed_ns.0 as f64);
    let mut reasons = Vec::new();
    let mut advice = Vec::new();
    if !run.finished || observed.elapsed_is_command != trace.elapsed_is_command {
        reasons.push("the model does not come to the end of the traced command".to_owned());
    } else if elapsed_error.abs() > MOST_ERROR {
        reasons.push(format!(
            "the model of the trace's own policy misses the elapsed time by {elapsed_error:+.1} %, more than {MOST_ERROR} %"
        ));
    }
    if !reasons.is_empty() {
        advice.push(
            "record without losses, all CPUs, sched_waking, sched_wakeup and sched_process_fork among the events"
                .to_owned(),
        );
    }
    let open = path.map_or(0, |path| path.times.unknown_ns.saturating_add(path.possible_ns));
    if unknown as f64 * 100.0 > WORTH_CAUSES * length as f64 {
        advice.push(format!(
            "{:.0} % of the critical path is sleep without a known cause; record the causes for narrower intervals: schedviz record --whatif, or \
             with trace-cmd -e timer -e irq -e block_rq_complete -e 'syscalls:sys_enter_*nanosleep'",
            100.0 * unknown as f64 / length as f64
        ));
    }
    let mean = |figures: &RunFigures, command| {
        figures.by_command.iter().find(|row| row.command == command).and_then(|row| row.waits.mean_ns)
    };
    let errors = trace.by_command.iter().map(|row| CommandError {
        command: row.command,
        number: row.waits.count,
        trace_mean_ns: row.waits.mean_ns,
        observed_mean_ns: mean(observed, row.command),
    });
    let share = |figures: &RunFigures| 100.0 * figures.violation_ns.0 as f64 / (figures.window_ns.0 as f64).max(1.0);
    Calibration {
        is_predictable: reasons.is_empty(),
        reasons,
        advice,
        elapsed_error_percent: elapsed_error,
        violation_error_points: share(observed) - share(trace),
        mean_wait_error_percent: error_percent(Metric::MeanWait.of(observed), Metric::MeanWait.of(trace)),
        rules_elapsed_error_percent: error_percent(kept.elapsed_ns.0 as f64, trace.elapsed_ns.0 as f64),
        rules_violation_error_points: share(kept) - share(trace),
        rules_mean_wait_error_percent: error_percent(Metric::MeanWait.of(kept), Metric::MeanWait.of(trace)),
        path_ns: Dur(length),
        sleep_on_path_ns: Dur(sleep),
        unknown_sleep_on_path_ns: Dur(unknown),
        open_on_path_ns: Dur(open),
        seem_bound_percent: trace.confined_percent,
        waits: errors.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn a_prediction_is_the_trace_with_the_change_of_the_model() {
        // The model has less than the trace by its own rules, as much, and more.
        assert_eq!([changed(10.0, 8.0, 6.0), changed(10.0, 10.0, 6.0), changed(10.0, 20.0, 6.0)], [8.0, 6.0, 3.0]);
        // The trace has none, and so has what becomes less.
        assert_eq!([changed(0.0, 5.0, 0.0), changed(0.0, 0.0, 3.0)], [0.0, 3.0]);
    }
}
