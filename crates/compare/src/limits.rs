//! Limits that a regression job fails on.

use crate::{Better, Finding, Metric, Row, least_p};
use sched::{Judgement, Verdict};

/// Former names of metrics, each with the present one. A limit may still use them.
const RENAMED: [(&str, &str); 2] = [("capacity", "cpu-time-lost"), ("migrations-behalf", "migrations-nohz-idle")];

/// A limit for the growth of a metric: `METRIC>5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The key of the metric.
    pub metric: String,
    /// The growth that the limit allows, in percent; the fall of a metric of which more is better.
    pub percent: f64,
}

impl Limit {
    /// Parses `METRIC>PERCENT%`, or returns an error message. The metric is one of these, or a number of a benchmark, which the
    /// runs may turn out to lack.
    pub fn parse(text: &str, metrics: &[Metric]) -> Result<Limit, String> {
        let Some((key, percent)) = text.split_once('>') else {
            return Err(format!("{text:?} is not METRIC>PERCENT%, such as elapsed>5%"));
        };
        let named = RENAMED.iter().find(|(old, _)| *old == key.trim()).map_or(key.trim(), |(_, now)| now);
        let is_of_benchmark = benchmarks::PREFIXES.iter().any(|prefix| named.starts_with(prefix));
        if !is_of_benchmark && metrics.iter().all(|m| m.key != named) {
            let keys: Vec<&str> = metrics.iter().map(|m| m.key.as_ref()).collect();
            return Err(format!("there is no metric {:?}; there are {}", key.trim(), keys.join(", ")));
        }
        let number = percent.trim().trim_end_matches('%').trim().parse::<f64>();
        let percent = number.ok().filter(|p| p.is_finite() && *p >= 0.0);
        let percent = percent.ok_or_else(|| format!("{text:?} does not end in a percentage"))?;
        Ok(Limit { metric: named.to_owned(), percent })
    }
}

/// Judges the growth of a metric by a limit; untrusted if the runs are too few, or if the metric exceeds the limit but may
/// be noise. `alpha` is the probability with which noise may pass for a change.
pub fn judge(limit: &Limit, rows: &[Row], alpha: f64) -> Verdict {
    let key = limit.metric.as_str();
    let Some(row) = rows.iter().find(|row| row.metric.key == key) else {
        return Verdict::new(Judgement::Untrusted, "a group has no run with this metric");
    };
    // Any growth from zero is unbounded.
    let grown = row.new.median > row.base.median;
    let change = row.change_percent.unwrap_or(if grown { f64::INFINITY } else { 0.0 });
    let worse = if row.metric.better == Better::More { -change } else { change };
    let limit = limit.percent;
    let p = row.p.map_or(String::new(), |p| format!(", p {p:.3}"));
    let (base, new) = (row.base.runs, row.new.runs);
    let (verdict, reason) = match row.finding {
        Finding::TooFew => (
            Judgement::Untrusted,
            format!(
                "{base} and {new} runs are too few to distinguish a change from noise; record at least three, better \
                 five, of each"
            ),
        ),
        _ if worse <= limit => (Judgement::Pass, format!("{change:+.1} %, within {limit} %")),
        Finding::Noise if row.is_hopeless(alpha) => (
            Judgement::Untrusted,
            format!(
                "{change:+.1} % exceeds {limit} %, but {base} and {new} runs cannot show a change: their least p is \
                 {:.3}",
                least_p(base, new)
            ),
        ),
        Finding::Noise => {
            (Judgement::Untrusted, format!("{change:+.1} % exceeds {limit} %, but may be noise{p}; record more runs"))
        }
        _ => (Judgement::Fail, format!("{change:+.1} % exceeds {limit} %{p}")),
    };
    Verdict::new(verdict, reason)
}
