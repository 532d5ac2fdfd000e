//! The finding about a run in one sentence.

use crate::report::{Rows, WhyReport};
use std::collections::BTreeMap;
use timeline::text::paragraph;

/// Writes the finding about a run: the violation, and the origins with the most waiting and the most idling.
pub(crate) fn finding(out: &mut String, report: &WhyReport) {
    let (Some(waiting), Some(idling), Some(percent)) = (&report.waiting, &report.idling, report.violation_percent)
    else {
        return;
    };
    let largest = |rows: &Rows| -> Option<String> {
        let mut by: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &rows.rows {
            let sum = by.entry(&row.words[0]).or_default();
            *sum = sum.saturating_add(row.total_ns.0);
        }
        let (words, ns) = by.into_iter().max_by_key(|(words, ns)| (*ns, std::cmp::Reverse(*words)))?;
        Some(format!("{words} ({:.0} %)", 100.0 * ns as f64 / (rows.total_ns.0 as f64).max(1.0)))
    };
    let began = |what: &str, rows: &Rows| {
        largest(rows).map_or(String::new(), |words| format!("; most {what} began so: {words}"))
    };
    let sentence = match waiting.rows.is_empty() {
        true => "no task that counts waited while a CPU idled that it may use".to_owned(),
        false => format!(
            "tasks waited while CPUs idled {percent:.2} % of the time{}{}",
            began("waiting", waiting),
            began("idling", idling)
        ),
    };
    paragraph(out, 0, 2, &format!("Finding: {sentence}."));
}
