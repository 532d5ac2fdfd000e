//! Limits that a regression job fails on.

use crate::{Finding, Metric, Row, least_p};
use serde::Serialize;

/// `METRIC>5%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Which metric, by its place.
    pub metric: usize,
    /// It may grow by so many percent.
    pub percent: f64,
}

impl Limit {
    /// Reads `METRIC>PERCENT%`; what is wrong with it.
    pub fn parse(text: &str, metrics: &[Metric]) -> Result<Limit, String> {
        let Some((key, percent)) = text.split_once('>') else {
            return Err(format!("{text:?} is not METRIC>PERCENT%, such as elapsed>5%"));
        };
        let Some(metric) = metrics.iter().position(|m| m.key == key.trim()) else {
            let keys: Vec<&str> = metrics.iter().map(|m| m.key).collect();
            return Err(format!("there is no metric {:?}; there are {}", key.trim(), keys.join(", ")));
        };
        let number = percent.trim().trim_end_matches('%').trim().parse::<f64>();
        let percent = number.ok().filter(|p| p.is_finite() && *p >= 0.0);
        let percent = percent.ok_or_else(|| format!("{text:?} does not end in a percentage"))?;
        Ok(Limit { metric, percent })
    }
}

/// What a limit comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Within the limit.
    Pass(String),
    /// Exceeded, by more than noise.
    Fail(String),
    /// Too few runs, or exceeded by what may be noise.
    Unclear(String),
}

/// Judges a metric by a limit. `alpha`: how often noise may pass for a change.
pub fn judge(limit: &Limit, rows: &[Row], metrics: &[Metric], alpha: f64) -> Outcome {
    let name = metrics.get(limit.metric).map_or("", |m| m.key);
    let Some(row) = rows.iter().find(|row| row.metric.key == name) else {
        return Outcome::Unclear(format!("{name}: no run has it"));
    };
    // Of nothing any growth is without bound.
    let grown = row.new.median > row.base.median;
    let change = row.change_percent.unwrap_or(if grown { f64::INFINITY } else { 0.0 });
    let limit = limit.percent;
    let p = row.p.map_or(String::new(), |p| format!(", p {p:.3}"));
    match row.finding {
        Finding::TooFew => Outcome::Unclear(format!(
            "{name}: {} and {} runs are too few to tell noise from change; three a side are the least, five are better",
            row.base.runs, row.new.runs
        )),
        _ if change <= limit => Outcome::Pass(format!("{name}: {change:+.1} %, within {limit} %")),
        Finding::Noise if row.is_hopeless(alpha) => Outcome::Unclear(format!(
            "{name}: {change:+.1} % exceeds {limit} %, but {} and {} runs cannot show a change: their least p is {:.3}",
            row.base.runs,
            row.new.runs,
            least_p(row.base.runs, row.new.runs)
        )),
        Finding::Noise => Outcome::Unclear(format!(
            "{name}: {change:+.1} % exceeds {limit} %, but may be noise{p}; more runs would tell"
        )),
        _ => Outcome::Fail(format!("{name}: {change:+.1} % exceeds {limit} %{p}")),
    }
}
