//! Figures with marks over the lanes of the CPUs.

use crate::Session;
use crate::heading::Loss;
use anyhow::Result;
use draw::{Figure, Unit};
use lanes::Coloring;
use sched::{Diagnostics, Tracepoint};
use timeline::page::{DrawLanes, Heading};
use timeline::{Sheet, TimeScale};

/// Returns the findings of a reading of records together with those about the trace.
pub fn with_those_of(session: &Session, found: &Diagnostics) -> Diagnostics {
    let mut diagnostics = session.trace.diagnostics().clone();
    diagnostics.merge(found);
    diagnostics
}

/// Draws a figure of marks over the lanes of the running tasks, in the colours of `ground`; without lanes where there
/// is no `ground` or no event shows the running tasks.
pub fn over_lanes(
    ground: Option<Coloring>,
    session: &Session,
    diagnostics: &Diagnostics,
    sheet: &Sheet,
    figure: impl FnOnce(&Heading, Option<&DrawLanes<'_>>) -> Figure,
) -> Result<Vec<Figure>> {
    let Some(coloring) = ground else {
        return Ok(vec![figure(&session.general_heading(diagnostics).on(sheet), None)]);
    };
    let coloring = session.learned(coloring)?;
    let (lanes, lanes_options) = if session.trace.has(Tracepoint::Switch) {
        session.ran(session.from, session.to, coloring)?
    } else {
        (Vec::new(), session.lanes(session.from, session.to, coloring))
    };
    let loss = Loss::of_lanes(lanes.iter().map(|l| &l.report), session.to.since(session.from));
    let mut heading = session.lossy_heading(&loss, diagnostics).on(sheet);
    if lanes.is_empty() {
        heading.warnings.push("The tasks that ran are unknown: there is no sched:sched_switch in the trace.".into());
    }
    let background = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
        lanes::draw_lanes(figure, &lanes, &lanes_options, scale, top, height);
    };
    let background: &DrawLanes<'_> = &background;
    Ok(vec![figure(&heading, (!lanes.is_empty()).then_some(background))])
}
