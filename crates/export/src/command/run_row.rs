//! The row of a run.

use crate::{Column, FactTable, Output, SCHEMA, Type, Value};
use compare::measures::{self, Measured};
use sched::Ts;
use session::Session;

/// The share of unknown CPU time above which `schedviz compare` trusts no run, in percent.
pub(super) const MAX_LOSS: f64 = 1.0;

/// The columns of the metrics of `schedviz compare`.
pub(super) fn metric_columns() -> Vec<Column> {
    let column = |(metric, _): &(compare::Metric, measures::Get)| Column {
        name: metric.key.replace('-', "_").into(),
        kind: Type::Double,
        doc: format!("`{}` of `schedviz compare`: {}.", metric.key, metric.name).into(),
    };
    measures::metrics().iter().map(column).collect()
}

/// Writes the row of a run over a window from one instant to another.
pub(super) fn write(session: &Session, measured: &Measured, (from, to): (Ts, Ts), output: &Output) {
    let mut values = facts(session, measured, (from, to));
    values.extend(measures::metrics().iter().map(|(_, get)| get(measured).into()));
    output.row(FactTable::Run, &values);
}

/// The values of the fixed columns.
fn facts(session: &Session, measured: &Measured, (from, to): (Ts, Ts)) -> Vec<Value<'static>> {
    let info = session.trace.info();
    let (report, why) = (&measured.workcons, &measured.reasons);
    let violation = report.violation.as_ref().filter(|_| measured.no_violation.is_none());
    let lengths = report.by_min_episode.as_ref().and_then(|rows| rows.first()).filter(|_| violation.is_some());
    let columns = &measured.columns;
    let known = |text: String| Some(text).filter(|text| !text.is_empty());
    vec![
        SCHEMA.into(),
        from.into(),
        to.into(),
        info.kernel.map(String::from).into(),
        session.machine.as_ref().map(machine::Machine::summary).into(),
        Some(info.cpus).filter(|cpus| *cpus > 0).into(),
        columns.cpus.into(),
        known(info.clock.into()).into(),
        columns.command.map(|command| command.to_string()).into(),
        session::csv::word(report.waiters).ok().into(),
        columns.unknown_percent.into(),
        measured.no_violation.clone().into(),
        columns.busy_ns.into(),
        violation.map(|violation| violation.ns).into(),
        lengths.map(|row| row.totals.cpu_time_lost_ns).into(),
        violation.map(|violation| violation.thread_ns).into(),
        why.waiting.as_ref().map(|rows| rows.total_ns).into(),
        why.idling.as_ref().map(|rows| rows.total_ns).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/files.md` lists every column; `SCHEDVIZ_BLESS=1` writes the lists anew.
    #[test]
    fn the_document_lists_every_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/files.md");
        let text = std::fs::read_to_string(path).expect("docs/files.md");
        let (head, _) = text.split_once("\n## The tables\n").expect("the section of the tables");
        let expected = format!("{head}\n## The tables\n{}", crate::markdown(&metric_columns()));
        if std::env::var_os("SCHEDVIZ_BLESS").is_some() {
            std::fs::write(path, &expected).expect("written");
        } else {
            assert!(text == expected, "docs/files.md is not that of these tables; SCHEDVIZ_BLESS=1 writes it anew");
        }
    }
}
