//! Repeated runs of several variants: their order, and the file that lists them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The form of the file, and its version.
pub const SCHEMA: &str = "schedviz/runs/1";

/// The name of the file in the folder of the runs.
pub const FILE: &str = "runs.json";

/// The runs in a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunsFile {
    /// Name and version of the form, always [`SCHEMA`].
    pub schema: String,
    /// The seed of the order.
    pub seed: u64,
    /// The program that was run, without its arguments.
    pub command: String,
    /// The expression that finds the command's own number in its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The test that ends the series; none for a fixed number of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<AutoSeries>,
    /// The names of the variants, in the order in which they were given.
    pub variants: Vec<String>,
    /// The runs, in the order in which they were made.
    pub runs: Vec<VariantRun>,
}

/// A series that ends once a test has decided whether the variants differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoSeries {
    /// The maximum number of traced runs of each variant.
    pub max_runs: usize,
    /// The probability with which noise may pass for a change.
    pub alpha: f64,
    /// The key of the metric by which the variants are compared: `metric`, `elapsed` or that of a benchmark.
    pub measure: String,
    /// Whether each further variant differs from the first.
    pub is_decided: bool,
}

/// A run of the command under one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantRun {
    /// The name of its variant.
    pub variant: String,
    /// Number of the run among the traced runs of its variant, or among those that were not traced; from 1.
    pub number: usize,
    /// The name of its recording in the folder; none if it was not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The time from the start of the command to its end in seconds.
    pub seconds: f64,
    /// The exit status of the command; none if a signal ended it.
    pub status: Option<i32>,
    /// The command's own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<f64>,
    /// Whether no event was lost; none if it was not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The index of its variant.
    pub variant: usize,
    /// Number of the run among the traced runs of its variant, or among those that are not traced; from 1.
    pub number: usize,
    /// Whether the run is traced.
    pub traced: bool,
}

/// The reason why a file of runs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The text is not JSON of this form.
    #[error("not a list of runs: {0}")]
    Form(#[from] serde_json::Error),
    /// The file has another form or version.
    #[error("the schema is {0:?}, not {SCHEMA:?}")]
    Schema(String),
    /// A recording is not in the folder.
    #[error("{0:?} is not the name of a file in the folder")]
    Name(String),
    /// A variant, or a recording, is listed twice: it would be measured twice.
    #[error("{0:?} is listed twice")]
    Repeated(String),
    /// There are more variants than any series has.
    #[error("it has more than {MOST_VARIANTS} variants")]
    Variants,
}

/// Maximum number of variants.
pub const MOST_VARIANTS: usize = 1_000;

impl RunsFile {
    /// Reads the text of the file. Control characters in its strings are escaped.
    pub fn parse(text: &str) -> Result<RunsFile, RunsError> {
        let runs: RunsFile = sched::event::CleanJson::new(text).read()?;
        if runs.schema != SCHEMA {
            return Err(RunsError::Schema(runs.schema));
        }
        if runs.variants.len() > MOST_VARIANTS {
            return Err(RunsError::Variants);
        }
        let traces = || runs.runs.iter().filter_map(|run| run.trace.as_ref());
        if let Some(name) = repeated(runs.variants.iter()).or_else(|| repeated(traces())) {
            return Err(RunsError::Repeated(name.clone()));
        }
        let leads_elsewhere = |name: &&String| name.contains('/') || name.is_empty() || *name == "." || *name == "..";
        match traces().find(leads_elsewhere).cloned() {
            Some(name) => Err(RunsError::Name(name)),
            None => Ok(runs),
        }
    }

    /// The cost of tracing for a variant: the change of the median time against the runs that were not traced, in percent.
    pub fn tracing_cost_percent(&self, variant: &str) -> Option<f64> {
        let times = |traced: bool| {
            let runs = self.runs.iter().filter(|run| run.variant == variant && run.trace.is_some() == traced);
            median(runs.map(|run| run.seconds).collect())
        };
        let (with, without) = (times(true)?, times(false)?);
        (without > 0.0).then(|| 100.0 * (with / without - 1.0))
    }
}

/// The first name that occurred before.
fn repeated<'n>(mut names: impl Iterator<Item = &'n String>) -> Option<&'n String> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// The order of all runs: in rounds, each with one run of every variant in random order, so that a drift of the machine
/// concerns all variants alike. Runs without tracing take part in the rounds as variants of their own.
pub fn order(variants: usize, runs: usize, untraced: usize, seed: u64) -> Vec<Planned> {
    let mut random = Random(seed);
    let mut all = Vec::new();
    for number in 1..=runs.max(untraced) {
        let traced = (0..variants).filter(|_| number <= runs).map(|variant| Planned { variant, number, traced: true });
        let plain = (0..variants).filter(|_| number <= untraced);
        let plain = plain.map(|variant| Planned { variant, number, traced: false });
        let mut round: Vec<Planned> = traced.chain(plain).collect();
        for last in (1..round.len()).rev() {
            round.swap(last, random.below(last + 1));
        }
        all.extend(round);
    }
    all
}

/// The generator SplitMix64: the order is the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_every_variant_once() {
        let all = order(2, 5, 2, 7);
        assert_eq!(all.len(), 2 * 5 + 2 * 2);
        for round in 1..=5 {
            let of = |traced: bool| {
                let mut variants: Vec<usize> =
                    all.iter().filter(|p| p.number == round && p.traced == traced).map(|p| p.variant).collect();
                variants.sort_unstable();
                variants
            };
            assert_eq!((of(true), of(false)), (vec![0, 1], if round <= 2 { vec![0, 1] } else { vec![] }));
        }
        assert!(all.windows(2).all(|pair| pair[0].number <= pair[1].number));
        // The seed decides, and both orders occur.
        assert_eq!(all, order(2, 5, 2, 7));
        let firsts: std::collections::BTreeSet<usize> =
            order(2, 20, 0, 1).chunks(2).map(|round| round[0].variant).collect();
        assert_eq!(firsts.len(), 2);
        assert_ne!(order(2, 20, 0, 1), order(2, 20, 0, 2));
    }

    #[test]
    fn the_cost_of_tracing_is_that_of_the_medians() {
        let run = |seconds: f64, trace: Option<&str>| VariantRun {
            variant: "a".into(),
            number: 1,
            trace: trace.map(str::to_owned),
            seconds,
            status: Some(0),
            metric: None,
            complete: None,
        };
        let list = vec![run(11.0, Some("a.1.dat")), run(9.0, None), run(10.0, None), run(12.0, None)];
        let runs = RunsFile {
            schema: SCHEMA.into(),
            seed: 1,
            command: "x".into(),
            metric: None,
            auto: None,
            variants: vec!["a".into()],
            runs: list,
        };
        assert_eq!(runs.tracing_cost_percent("a"), Some(10.000000000000009));
        assert_eq!(runs.tracing_cost_percent("b"), None);
        let text = serde_json::to_string(&runs).unwrap();
        assert_eq!(RunsFile::parse(&text).unwrap(), runs);
        let elsewhere = RunsFile::parse(&text.replace("a.1.dat", "../a.1.dat")).unwrap_err();
        assert_eq!(elsewhere.to_string(), "\"../a.1.dat\" is not the name of a file in the folder");
    }

    /// A short list cannot have a recording measured again and again.
    #[test]
    fn nothing_is_listed_twice() {
        let list = |variants: &[String], traces: &[&str]| {
            let run =
                |trace: &&str| format!(r#"{{"variant":"a","number":1,"trace":"{trace}","seconds":1,"status":0}}"#);
            let (variants, runs) =
                (serde_json::to_string(variants).unwrap(), traces.iter().map(run).collect::<Vec<_>>());
            let runs = runs.join(",");
            format!(r#"{{"schema":"{SCHEMA}","seed":1,"command":"x","variants":{variants},"runs":[{runs}]}}"#)
        };
        let named = |count: usize| (0..count).map(|nth| format!("v{nth}")).collect::<Vec<_>>();
        let refused = |text: &str| RunsFile::parse(text).unwrap_err().to_string();
        assert!(RunsFile::parse(&list(&named(MOST_VARIANTS), &["1.dat", "2.dat"])).is_ok());
        assert_eq!(refused(&list(&named(2), &["1.dat", "2.dat", "1.dat"])), "\"1.dat\" is listed twice");
        assert_eq!(refused(&list(&[named(2), named(1)].concat(), &[])), "\"v0\" is listed twice");
        assert_eq!(refused(&list(&named(MOST_VARIANTS + 1), &[])), "it has more than 1000 variants");
    }
}
