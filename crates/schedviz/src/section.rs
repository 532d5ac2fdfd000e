//! Sections of a report: each command has one for its analysis, and `commands/report.rs` the list of them.

use crate::document::Document;
use crate::output;
use crate::session::Session;
use anyhow::Result;
use dat2graph::Lane;
use draw::{Figure, Unit};
use sched::{Analysis, Diagnostics, Listed};
use serde::Serialize;
use std::cell::OnceCell;
use timeline::page::{DrawLanes, Heading};
use timeline::{Sheet, TimeScale};

/// A section of the report.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) figures: Vec<Figure>,
    /// The text that the command prints, or nothing.
    pub(crate) text: String,
    /// The document of the command's `--json`.
    pub(crate) json: Vec<u8>,
}

/// The output of an analysis, as it becomes a section once the pass has ended.
pub(crate) type Answer<'p> = Box<dyn FnOnce(&Page<'_>) -> Result<Section> + Send + 'p>;

/// A part of the report, with the options of its analysis.
pub(crate) trait Part {
    /// The analysis, anew for each pass.
    fn analysis(&self) -> Listed<'_, Answer<'_>>;
}

/// The parts of a trace's report that can be missing: an analysis whose events were not recorded, for example.
pub(crate) type Asked<'s> = Result<Option<Box<dyn Part + 's>>>;

struct Of<O, F> {
    options: O,
    analysis: F,
}

impl<O, F: for<'p> Fn(&'p O) -> Listed<'p, Answer<'p>>> Part for Of<O, F> {
    fn analysis(&self) -> Listed<'_, Answer<'_>> {
        (self.analysis)(&self.options)
    }
}

/// Makes a part of the options of an analysis, and of a function that makes the analysis by them.
pub(crate) fn part<'s, O: 's>(
    options: O,
    analysis: impl for<'p> Fn(&'p O) -> Listed<'p, Answer<'p>> + 's,
) -> Box<dyn Part + 's> {
    Box::new(Of { options, analysis })
}

/// An analysis in the list, and the section that shows what it found.
pub(crate) fn listed<'p, A: Analysis<Output: Send> + Send + 'p>(
    analysis: A,
    section: impl FnOnce(A::Output, &Page<'_>) -> Result<Section> + Send + 'p,
) -> Listed<'p, Answer<'p>> {
    Listed::new(analysis, move |output| Box::new(move |page: &Page<'_>| section(output, page)) as Answer<'p>)
}

/// The surroundings of the sections.
pub(crate) struct Page<'p> {
    pub(crate) session: &'p Session,
    pub(crate) sheet: &'p Sheet,
    pub(crate) diagnostics: &'p Diagnostics,
    /// The lanes, once their section is there: the ground of others.
    lanes: OnceCell<(Vec<Lane>, dat2graph::Options)>,
}

impl<'p> Page<'p> {
    pub(crate) fn new(session: &'p Session, sheet: &'p Sheet, diagnostics: &'p Diagnostics) -> Page<'p> {
        Page { session, sheet, diagnostics, lanes: OnceCell::new() }
    }

    /// The surroundings of a figure that does not show where events were lost.
    pub(crate) fn heading(&self) -> Heading {
        self.session.general_heading(self.diagnostics).on(self.sheet)
    }

    /// The report of a command as its `--json` prints it.
    pub(crate) fn json<R: Serialize>(&self, report: &R) -> Result<Vec<u8>> {
        output::json(&Document::of(self.session, report, self.diagnostics))
    }

    /// Keeps the lanes as the ground of other figures.
    pub(crate) fn keep_lanes(&self, lanes: (Vec<Lane>, dat2graph::Options)) {
        self.lanes.get_or_init(|| lanes);
    }

    /// A figure over the lanes in pale grey.
    pub(crate) fn over_lanes(&self, figure: impl FnOnce(&Heading, Option<&DrawLanes<'_>>) -> Figure) -> Figure {
        let Some((lanes, options)) = self.lanes.get() else { return figure(&self.heading(), None) };
        let ran = dat2graph::report(lanes, options);
        let heading = self.session.lanes_heading(&ran, self.diagnostics).on(self.sheet);
        let draw = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
            dat2graph::draw_pale_lanes(figure, lanes, options, scale, top, height);
        };
        figure(&heading, Some(&draw))
    }
}
