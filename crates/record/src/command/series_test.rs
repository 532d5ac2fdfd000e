//! `record --runs auto`: the test that ends a series once it has decided whether the variants differ.

use anyhow::Result;
use judging::{RoundBets, fewest_rounds, least_change_percent};
use session::runs::VariantRun;
use std::path::Path;

/// The probability with which noise may pass for a change, at whatever round the series ends.
pub(super) const ALPHA: f64 = 0.05;

/// The number of recordings of each variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunCount {
    /// A number that the user gives.
    Fixed(usize),
    /// A number that the test of the series finds.
    Auto,
}

impl RunCount {
    /// Parses a number, or `auto`.
    pub(crate) fn parse(text: &str) -> Result<RunCount, String> {
        match text {
            "auto" => Ok(RunCount::Auto),
            text => text.parse().map(RunCount::Fixed).map_err(|_| "a number of runs or auto is needed".to_owned()),
        }
    }
}

/// The rounds of a series so far, with the number of each run by which the variants are compared.
pub(super) struct SeriesTest {
    /// The names of the variants, the first of which is the base.
    variants: Vec<String>,
    /// The key of the number, known after the first run that has one.
    measure: Option<String>,
    /// The numbers of the round that is being made, by variant.
    round: Vec<Option<f64>>,
    /// The values of the base and of each further variant in the rounds that have both.
    pairs: Vec<Vec<(f64, f64)>>,
}

impl SeriesTest {
    pub(super) fn new(variants: Vec<String>) -> SeriesTest {
        let others = variants.len().saturating_sub(1);
        SeriesTest { measure: None, round: vec![None; variants.len()], pairs: vec![Vec::new(); others], variants }
    }

    /// The key of the number by which the variants are compared: `metric` of `--metric`, the first number of a benchmark, or `elapsed`.
    pub(super) fn measure(&self) -> &str {
        self.measure.as_deref().unwrap_or(ELAPSED)
    }

    /// Adds a traced run of a variant, whose output is in a file. A run whose command failed has no number.
    pub(super) fn add(&mut self, variant: usize, run: &VariantRun, output: &Path) -> Result<()> {
        if run.status != Some(0) {
            return Ok(());
        }
        let numbers = benchmarks::read(output)?;
        let key = self.measure.get_or_insert_with(|| match (run.metric, numbers.first()) {
            (Some(_), _) => METRIC.to_owned(),
            (None, Some(first)) => first.metric.key.clone().into_owned(),
            (None, None) => ELAPSED.to_owned(),
        });
        let value = match key.as_str() {
            METRIC => run.metric,
            ELAPSED => Some(run.seconds),
            key => numbers.iter().find(|number| number.metric.key == key).map(|number| number.value),
        };
        if let Some(place) = self.round.get_mut(variant) {
            *place = value;
        }
        Ok(())
    }

    /// Ends a round. Variants without a number in it have none of this round.
    pub(super) fn end_round(&mut self) {
        let values: Vec<Option<f64>> = self.round.iter_mut().map(Option::take).collect();
        let Some((Some(base), others)) = values.split_first() else { return };
        for (pairs, value) in self.pairs.iter_mut().zip(others) {
            pairs.extend(value.map(|value| (*base, value)));
        }
    }

    /// Whether each further variant is known to differ from the base.
    pub(super) fn is_decided(&self) -> bool {
        self.pairs.iter().all(|pairs| RoundBets::over(pairs.iter().copied()).p() <= ALPHA)
    }

    /// A sentence on each further variant: the change of the median, and its p; of an undecided one the least change that these rounds could
    /// have shown.
    pub(super) fn sentences(&self) -> Vec<String> {
        let (base, measure) = (&self.variants[0], self.measure());
        let sentence = |(name, pairs): (&String, &Vec<(f64, f64)>)| {
            let bets = RoundBets::over(pairs.iter().copied());
            let rounds = sched::nouns::counted(bets.rounds(), "round");
            let change = change(pairs).map_or_else(|| "unknown".to_owned(), |percent| format!("{percent:+.1} %"));
            let begin = format!("{name} against {base}: {measure} {change} in {rounds}, p {:.3}", bets.p());
            if bets.p() <= ALPHA {
                return format!("{begin}: more than noise");
            }
            let least = match least_change_percent(pairs, ALPHA) {
                Some(percent) => format!("these rounds could have shown {percent:.1} %"),
                None => format!("{} rounds are the least that can show a change", fewest_rounds(ALPHA)),
            };
            format!("{begin}: may be noise; {least}")
        };
        self.variants.iter().skip(1).zip(&self.pairs).map(sentence).collect()
    }
}

/// The key of the number of `--metric`.
const METRIC: &str = "metric";
/// The key of the time from the start of the command to its end.
const ELAPSED: &str = "elapsed";

/// The change of the median from the base to the other variant, in percent; nothing for a base of zero.
fn change(pairs: &[(f64, f64)]) -> Option<f64> {
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        question::median(&values)
    };
    let (base, new) = (median(|pair| pair.0), median(|pair| pair.1));
    (base != 0.0).then(|| 100.0 * (new - base) / base.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seconds: f64, status: i32) -> VariantRun {
        VariantRun {
            variant: "a".into(),
            number: 1,
            trace: None,
            seconds,
            status: Some(status),
            metric: None,
            complete: Some(true),
        }
    }

    #[test]
    fn a_clear_change_is_decided_after_six_rounds() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.out");
        std::fs::write(&output, "done\n").unwrap();
        let mut test = SeriesTest::new(vec!["off".into(), "on".into()]);
        for round in 1..=6 {
            assert!(!test.is_decided(), "{round}");
            test.add(0, &run(2.0 + 0.01 * f64::from(round), 0), &output).unwrap();
            test.add(1, &run(1.0 + 0.01 * f64::from(round), 0), &output).unwrap();
            test.end_round();
        }
        assert!(test.is_decided());
        let sentences = test.sentences();
        assert!(sentences[0].starts_with("on against off: elapsed -49.1 % in 6 rounds, p 0.04"), "{sentences:?}");
        // A round with a failed run does not count.
        test.add(0, &run(2.0, 1), &output).unwrap();
        test.add(1, &run(1.0, 0), &output).unwrap();
        test.end_round();
        assert_eq!(test.sentences(), sentences);
    }

    #[test]
    fn the_first_number_of_a_benchmark_is_compared() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.out");
        std::fs::write(&output, "Running in process mode with 1 groups\nTime: 0.5\n").unwrap();
        let mut test = SeriesTest::new(vec!["off".into(), "on".into()]);
        test.add(0, &run(2.0, 0), &output).unwrap();
        assert_eq!(test.measure(), "hackbench-time");
        test.add(1, &run(1.0, 0), &output).unwrap();
        test.end_round();
        assert_eq!(
            test.sentences(),
            [
                "on against off: hackbench-time +0.0 % in 1 round, p 1.000: may be noise; 6 rounds are the least that can show a change"
            ]
        );
        assert_eq!((RunCount::parse("auto"), RunCount::parse("5")), (Ok(RunCount::Auto), Ok(RunCount::Fixed(5))));
        assert!(RunCount::parse("many").is_err());
    }
}
