//! The figure: a histogram for each kind of request, over a logarithmic scale of time.

use crate::{PreemptionsReport, Source};
use draw::Figure;
use timeline::histogram::{Histogram, histograms};
use timeline::page::Heading;

/// Draws the figure of a report.
pub fn figure(report: &PreemptionsReport, heading: &Heading) -> Figure {
    let panels: Vec<Histogram<'_>> = report.panels.iter().map(|(name, lengths)| Histogram { name, lengths }).collect();
    let from = match report.source {
        Source::Probe => "From the instant of the request, as the probe recorded it.",
        Source::Flags => "From the earliest instant that the flags of the events allow: the times are at most these.",
    };
    let note = format!(
        "{from} The share of each kind by length, in eighths of a doubling; lines: median, 99 % and the greatest."
    );
    histograms(
        &panels,
        &heading.texts(format!("{}: from the request to reschedule to the switch", heading.trace), note),
    )
}
