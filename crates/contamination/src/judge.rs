//! The judgement of a group of runs: those in which tasks outside of the application took more than chance explains.

use crate::{Culprit, OutsideWork};
use sched::Dur;
use serde::Serialize;

/// The least number of runs of a group that is judged.
pub const FEWEST_RUNS: usize = 4;

/// The probability with which chance alone names the greatest of the runs, if the work outside has an exponential distribution.
const CHANCE: f64 = 0.025;

/// The excess over the other runs that matters: this share of the length of the run, on one CPU.
const MATTERS: f64 = 0.005;

/// A measure by which runs are judged: its name, and the sums of a run and of a command.
type OutsideMeasure = (&'static str, fn(&OutsideWork) -> Dur, fn(&Culprit) -> Dur);

const MEASURES: [OutsideMeasure; 2] = [
    ("CPU time", |run| run.run_ns, |command| command.run_ns),
    ("waiting of the application", |run| run.wait_ns, |command| command.wait_ns),
];

/// A run in which tasks outside of the application took more than in the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contaminated {
    /// The position of the run in its group, from 0.
    pub run: usize,
    /// The measure in which the run lies beyond the others: `CPU time` of tasks outside of the application, or `waiting of the application`
    /// behind them.
    pub measure: &'static str,
    /// The measure of this run, in nanoseconds.
    pub ns: Dur,
    /// The greatest measure of the runs that it is judged by, in nanoseconds.
    pub others_most_ns: Dur,
    /// The command with the greatest excess over its median in the other runs.
    pub culprit: String,
    /// The excess of that command over its median in the other runs, in nanoseconds.
    pub culprit_excess_ns: Dur,
}

impl Contaminated {
    /// The finding in words, behind the name of the run.
    pub fn in_words(&self) -> String {
        let Contaminated { measure, ns, others_most_ns, culprit, culprit_excess_ns, .. } = self;
        let of = if *measure == MEASURES[0].0 {
            "of tasks outside of the application"
        } else {
            "behind tasks outside of it"
        };
        format!(
            "is contaminated: {measure} {of} {}, at most {} in the others; {culprit} has {} more than there",
            ns.human(),
            others_most_ns.human(),
            culprit_excess_ns.human()
        )
    }
}

/// Returns the runs that lie beyond the others, each once, by the measure in which its excess is greatest. Runs without numbers are
/// not judged.
///
/// The values of a measure are sorted. The lower half of the runs is taken for clean; each further run is clean if its value exceeds the
/// greatest clean one by at most [`factor`] times the range of the clean ones, or by no more than 0.5 % of its length. The first run
/// that is not, and all above it, are contaminated.
pub fn contaminated(runs: &[Option<&OutsideWork>]) -> Vec<Contaminated> {
    let mut found: Vec<Contaminated> = Vec::new();
    for measure in MEASURES {
        for of in by_measure(runs, measure) {
            match found.iter_mut().find(|other| other.run == of.run) {
                Some(other) if other.culprit_excess_ns < of.culprit_excess_ns => *other = of,
                Some(_) => {}
                None => found.push(of),
            }
        }
    }
    found.sort_by_key(|of| of.run);
    found
}

fn by_measure(runs: &[Option<&OutsideWork>], (measure, of_run, of_command): OutsideMeasure) -> Vec<Contaminated> {
    let mut sorted: Vec<(u64, usize, &OutsideWork)> =
        runs.iter().enumerate().filter_map(|(at, run)| Some((of_run((*run)?).0, at, (*run)?))).collect();
    if sorted.len() < FEWEST_RUNS {
        return Vec::new();
    }
    sorted.sort_by_key(|(value, at, _)| (*value, *at));
    let factor = factor(sorted.len());
    let half = sorted.len().div_ceil(2);
    let is_beyond = |at: usize| {
        let (least, most) = (sorted[0].0, sorted[at - 1].0);
        let excess = sorted[at].0.saturating_sub(most) as f64;
        let matters = MATTERS * sorted[at].2.length_ns.0 as f64;
        excess > factor * most.saturating_sub(least) as f64 && excess > matters
    };
    let Some(first) = (half..sorted.len()).find(|at| is_beyond(*at)) else { return Vec::new() };
    let (clean, beyond) = sorted.split_at(first);
    let others_most_ns = Dur(clean[clean.len() - 1].0);
    let culprit = |run: &OutsideWork| {
        let excess = |command: &Culprit| {
            let in_clean = |(_, _, clean): &(u64, usize, &OutsideWork)| {
                let same = clean.commands.iter().find(|other| other.command == command.command);
                same.map_or(0, |other| of_command(other).0)
            };
            let mut values: Vec<u64> = clean.iter().map(in_clean).collect();
            values.sort_unstable();
            Dur(of_command(command).0.saturating_sub(values[values.len() / 2]))
        };
        let greatest = run.commands.iter().rev().max_by_key(|command| excess(command));
        greatest.map_or((String::new(), Dur(0)), |command| (command.command.clone(), excess(command)))
    };
    let of = |(value, run, work): &(u64, usize, &OutsideWork)| {
        let (culprit, culprit_excess_ns) = culprit(work);
        Contaminated { run: *run, measure, ns: Dur(*value), others_most_ns, culprit, culprit_excess_ns }
    };
    beyond.iter().map(of).collect()
}

/// Returns the factor by which the greatest of `runs` runs must exceed the second, in ranges of all but the greatest, so that chance
/// alone names it with a probability of 2.5 % if the values have an exponential distribution with any offset.
///
/// The steps between sorted values of that distribution are independent, with means of 1/1, 1/2, … from the top down, so that the probability is
/// the product of k / (k + factor) over k from 2 to `runs` − 1.
pub fn factor(runs: usize) -> f64 {
    let chance = |factor: f64| (2..runs).map(|k| k as f64 / (k as f64 + factor)).product::<f64>();
    let (mut low, mut high) = (0.0, 1000.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if chance(middle) > CHANCE { low = middle } else { high = middle }
    }
    high
}
