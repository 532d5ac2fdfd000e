//! The figure: a histogram for each measure, over a logarithmic scale of time.

use crate::text::span;
use crate::{LatencyReport, Measure};
use draw::Figure;
use timeline::histogram::{Histogram, histograms};
use timeline::page::Heading;

/// The figure of a report.
pub fn figure(report: &LatencyReport, heading: &Heading) -> Figure {
    let shown = [Measure::Wakeup, Measure::New, Measure::Preempted, Measure::Run, Measure::Sleep];
    let panels: Vec<Histogram<'_>> = shown
        .into_iter()
        .filter(|measure| report.of(*measure).count > 0)
        .map(|measure| Histogram { name: measure.name(), lengths: &report.lengths[measure as usize] })
        .collect();
    let note = format!(
        "Wakeup latency: from {}. The share of each kind by length, in eighths of a doubling; lines: median, 99 % and the greatest.",
        span(report)
    );
    histograms(&panels, &heading.texts(format!("{}: runqueue waits, runs and sleeps", heading.trace), note))
}
