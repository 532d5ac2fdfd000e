//! The numbers of a run that `compare` compares, for two traces beside each other.

use serde_json::{Value, json};

/// A number of a run.
#[derive(Clone, Debug)]
pub struct RunMeasure {
    /// The name of the metric in options, such as `wakeup-p99`.
    pub key: String,
    /// The name of the metric in texts, with its unit.
    pub name: String,
    /// The direction in which the metric improves: `less`, `more` or `neither`.
    pub better: &'static str,
    /// The value; nothing where the trace does not show it.
    pub value: Option<f64>,
}

/// The numbers of a part of a run, and the command line that compares runs.
#[derive(Clone, Debug, Default)]
pub struct RunMeasures {
    /// The numbers, in the order of `compare`.
    pub measures: Vec<RunMeasure>,
    /// The reason for which the violation is unknown; nothing where it is known.
    pub no_violation: Option<String>,
}

impl RunMeasures {
    /// The answer to the page.
    pub(crate) fn answer(&self) -> Value {
        let row = |of: &RunMeasure| json!({ "key": of.key, "name": of.name, "better": of.better, "value": of.value });
        json!({ "measures": self.measures.iter().map(row).collect::<Vec<_>>(), "no_violation": self.no_violation })
    }
}
