//! `record --until`: a flight recorder. The kernel's buffers hold the latest events; a second instance is followed, and
//! once a condition on its intervals holds, the recording stops and is saved.

use super::Recorder;
use crate::live::moment::Moment;
use crate::live::{Follower, follow};
use crate::traced::Traced;
use anyhow::{Result, bail};
use machine::Machine;
use parse::Where;
use sched::Dur;
use session::warnings::grouped;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tracefs::Instance;

/// A measure of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntervalMeasure {
    /// The violation of work conservation, in percent of the time.
    Violation,
    /// The CPU time lost to the violation, in percent of the CPU time.
    CpuTimeLost,
    /// The mean number of waiting tasks.
    Waiting,
    /// The wakeup latency: the 99th percentile, and the maximum.
    WakeupP99,
    WakeupMax,
    /// The longest wait of a preempted task.
    WaitMax,
}

impl IntervalMeasure {
    /// The measures, by their names in a condition.
    const ALL: [(&str, IntervalMeasure); 6] = [
        ("violation", IntervalMeasure::Violation),
        ("cpu-time-lost", IntervalMeasure::CpuTimeLost),
        ("waiting", IntervalMeasure::Waiting),
        ("wakeup-p99", IntervalMeasure::WakeupP99),
        ("wakeup-max", IntervalMeasure::WakeupMax),
        ("wait-max", IntervalMeasure::WaitMax),
    ];

    /// The value in an interval: percent, tasks, or nanoseconds. None, where there is no sample.
    fn of(self, moment: &Moment) -> Option<f64> {
        let length = |length: Option<Dur>| length.map(|length| length.0 as f64);
        match self {
            IntervalMeasure::Violation => Some(moment.violation_percent),
            IntervalMeasure::CpuTimeLost => Some(moment.cpu_time_lost_percent),
            IntervalMeasure::Waiting => Some(moment.waiting),
            IntervalMeasure::WakeupP99 => length(moment.wakeup.p99_ns),
            IntervalMeasure::WakeupMax => length(moment.wakeup.max_ns),
            IntervalMeasure::WaitMax => length(moment.preempted.max_ns),
        }
    }

    /// A value in words.
    fn human(self, value: f64) -> String {
        match self {
            IntervalMeasure::Violation | IntervalMeasure::CpuTimeLost => format!("{value:.2} %"),
            IntervalMeasure::Waiting => format!("{value:.2}"),
            IntervalMeasure::WakeupP99 | IntervalMeasure::WakeupMax | IntervalMeasure::WaitMax => {
                Dur(value as u64).human()
            }
        }
    }
}

/// The condition that ends a recording: `MEASURE>LIMIT/INTERVAL`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StopCondition {
    measure: IntervalMeasure,
    /// Percent, tasks, or nanoseconds.
    limit: f64,
    interval: Dur,
}

impl StopCondition {
    /// Parses a condition: `violation>20%/1s`.
    pub(crate) fn parse(text: &str) -> Result<StopCondition, String> {
        let shape = "this is not MEASURE>LIMIT/INTERVAL, such as violation>20%/1s or wakeup-max>50ms/500ms";
        let (name, rest) = text.split_once('>').ok_or(shape)?;
        let (limit, interval) = rest.split_once('/').ok_or(shape)?;
        // The former name of the measure.
        let named = if name.trim() == "capacity" { "cpu-time-lost" } else { name.trim() };
        let found = IntervalMeasure::ALL.iter().find(|(known, _)| *known == named);
        let Some((_, measure)) = found else {
            let names: Vec<&str> = IntervalMeasure::ALL.iter().map(|(name, _)| *name).collect();
            return Err(format!("there is no measure {:?}; there are {}", name.trim(), names.join(", ")));
        };
        let interval = session::args::positive_length(interval.trim())?;
        let limit = limit.trim();
        let limit = match measure {
            IntervalMeasure::Violation | IntervalMeasure::CpuTimeLost => {
                limit.strip_suffix('%').unwrap_or(limit).trim().parse().ok()
            }
            IntervalMeasure::Waiting => limit.parse().ok(),
            IntervalMeasure::WakeupP99 | IntervalMeasure::WakeupMax | IntervalMeasure::WaitMax => {
                match Where::parse(limit) {
                    // A number alone would be of seconds, which a latency hardly is.
                    Ok(Where::FromStart(ns)) if ns > 0 && limit.ends_with('s') => Some(ns as f64),
                    _ => None,
                }
            }
        };
        let limit = limit.filter(|limit: &f64| limit.is_finite() && *limit >= 0.0).ok_or_else(|| match measure {
            IntervalMeasure::Violation | IntervalMeasure::CpuTimeLost => {
                "the limit is a percentage, such as 20%".to_owned()
            }
            IntervalMeasure::Waiting => "the limit is a number of tasks".to_owned(),
            _ => "the limit is a length of time with its unit, such as 50ms".to_owned(),
        })?;
        Ok(StopCondition { measure: *measure, limit, interval })
    }

    /// The value in an interval that is beyond the limit.
    fn beyond(&self, moment: &Moment) -> Option<f64> {
        self.measure.of(moment).filter(|value| *value > self.limit)
    }

    fn name(&self) -> &'static str {
        IntervalMeasure::ALL.iter().find(|(_, measure)| *measure == self.measure).map_or("", |(name, _)| name)
    }
}

/// The end of the watching.
enum Met {
    /// The condition held in an interval, with this value.
    Yes { moment: Box<Moment>, value: f64 },
    /// The command ended, or a signal arrived.
    No,
}

impl Recorder<'_> {
    /// Records until the condition holds, and saves the latest events. Exits with 3 if it never held.
    pub(super) fn record_until(&self, condition: &StopCondition, output: &Path) -> Result<ExitCode> {
        let args = self.args;
        let instance = Instance::create(self.tracefs, &self.settings)?;
        let (live, mut follower) = follow(self.tracefs, None, args.clock.clone())?;
        let mut machine = self.machine();
        let mut traced = match args.command.as_slice() {
            [] => None,
            command => Some(Traced::spawn(command, self.signals, None)?),
        };
        self.go_on()?;
        let begin = Instant::now();
        let before = self.probes.missed();
        instance.start()?;
        live.start()?;
        traced.as_mut().map_or(Ok(()), Traced::resume)?;
        let met = self.watch(condition, &mut follower, traced.as_mut())?;
        instance.stop()?;
        // Its open files would hold the instance.
        drop(follower);
        drop(live);
        let code = match met {
            Met::Yes { moment, value } => {
                // Of the command so far, which runs on.
                traced.iter_mut().for_each(|traced| machine.add_running(&traced.running_so_far()));
                self.finish(&mut machine, &before);
                self.save_latest(condition, instance, output, &machine, (&moment, value))?;
                ExitCode::SUCCESS
            }
            Met::No => {
                args.note(&format!(
                    "{} never exceeded {} in {:.1} s: nothing is saved",
                    condition.name(),
                    condition.measure.human(condition.limit),
                    begin.elapsed().as_secs_f64()
                ));
                ExitCode::from(3)
            }
        };
        // The command itself was not to be ended: it runs on.
        traced.map_or(Ok(()), |traced| traced.wait(begin).map(|_| ()))?;
        Ok(code)
    }

    /// Measures interval by interval.
    fn watch(
        &self,
        condition: &StopCondition,
        follower: &mut Follower,
        mut traced: Option<&mut Traced<'_>>,
    ) -> Result<Met> {
        loop {
            let end = Instant::now() + Duration::from_nanos(condition.interval.0);
            let mut has_ended = false;
            follower.collect_until(end, || {
                has_ended = traced.as_mut().is_some_and(|traced| traced.has_ended());
                has_ended || self.signals.first().is_some()
            })?;
            if self.signals.first().is_some() {
                return Ok(Met::No);
            }
            // An interval that the end of the command cuts counts as it is.
            let moment = follower.measure()?;
            if let Some((moment, value)) =
                moment.and_then(|moment| condition.beyond(&moment).map(|value| (moment, value)))
            {
                return Ok(Met::Yes { moment: Box::new(moment), value });
            }
            if has_ended {
                return Ok(Met::No);
            }
        }
    }

    fn save_latest(
        &self,
        condition: &StopCondition,
        instance: Instance,
        output: &Path,
        machine: &Machine,
        (moment, value): (&Moment, f64),
    ) -> Result<()> {
        let args = self.args;
        let (saved, _) = self.save(instance, machine, output)?;
        super::replace(&Machine::path_beside(output), &super::json(machine)?)?;
        super::probes::check(args, &saved.trace, machine)?;
        let Some((start, end)) = saved.trace.extent() else {
            bail!("{}: the buffers hold no event", output.display());
        };
        args.note(&format!(
            "{} was {} in an interval of {:.3} s, more than {}",
            condition.name(),
            condition.measure.human(value),
            moment.to_ns.since(moment.from_ns).seconds(),
            condition.measure.human(condition.limit)
        ));
        let events: u64 = saved.trace.event_counts().iter().map(|event| event.count).sum();
        args.note(&format!(
            "saved the last {:.3} s, {} {}: {} ({} kB)",
            end.since(start).seconds(),
            grouped(events),
            sched::nouns::noun(events, "event"),
            output.display(),
            saved.bytes.div_ceil(1000)
        ));
        // Both instances have the same clock.
        let (from, to) = (moment.from_ns.max(start).since(start).seconds(), moment.to_ns.since(start).seconds());
        if to > from {
            args.note(&format!("the interval: --min {from:.6} --max {to:.6}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_a_measure_a_limit_and_an_interval() {
        let parsed = |text: &str| StopCondition::parse(text).map(|c| (c.name(), c.limit, c.interval.0));
        assert_eq!(parsed("violation>20%/1s"), Ok(("violation", 20.0, 1_000_000_000)));
        assert_eq!(parsed("wakeup-max > 50ms / 500ms"), Ok(("wakeup-max", 50_000_000.0, 500_000_000)));
        assert_eq!(parsed("waiting>3.5/10s"), Ok(("waiting", 3.5, 10_000_000_000)));
        for (text, error) in [
            ("violation", "MEASURE>LIMIT/INTERVAL"),
            ("violation>20%", "MEASURE>LIMIT/INTERVAL"),
            ("violence>20%/1s", "there are violation, cpu-time-lost"),
            ("violation>much/1s", "a percentage"),
            ("violation>-1%/1s", "a percentage"),
            ("wakeup-p99>5/1s", "with its unit"),
            ("violation>20%/0s", "above zero"),
        ] {
            let message = parsed(text).expect_err(text);
            assert!(message.contains(error), "{text}: {message}");
        }
    }
}
