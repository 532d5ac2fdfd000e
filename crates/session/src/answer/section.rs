//! Sections of a report: each question has one, or says why the trace does not answer it.

use crate::Session;
use crate::document::TraceDocument;
use crate::formats;
use anyhow::Result;
use draw::{Figure, Unit};
use lanes::Lane;
use sched::{Diagnostics, Joined, Lister};
use serde::Serialize;
use std::any::{Any, TypeId};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use timeline::page::{DrawLanes, Heading};
use timeline::{Sheet, TimeScale};

/// A section of the report.
pub struct ReportSection {
    /// The heading of the section.
    pub title: String,
    /// The figures, from the top down.
    pub figures: Vec<Figure>,
    /// The text that the command prints, or nothing.
    pub text: String,
    /// The document of the command's `--json`.
    pub json: Vec<u8>,
}

/// The output of an analysis, as it becomes a section once the pass has ended; [`Unanswered`] where the pass shows that there is no answer.
pub type Conclusion<'p> = Box<dyn FnOnce(&ReportPage<'_>) -> Result<ReportSection> + Send + 'p>;

/// A section of the report before the pass, with the options of its analysis.
pub trait SectionAnalysis {
    /// Returns the recipe for the analysis, which is made anew for each pass and each piece of one.
    fn analysis(&self) -> Lister<'_, Conclusion<'_>>;

    /// Whether the section is made from reports that other sections keep on the page: it is concluded behind all others. Its place in
    /// the report is that of its question all the same.
    fn is_concluded_last(&self) -> bool {
        false
    }
}

/// The section of a question in a report, before the pass; nothing where reports of this kind have none of it. The error is [`Unanswered`]
/// where the trace cannot answer the question.
pub type MaybeSection<'s> = Result<Option<Box<dyn SectionAnalysis + 's>>>;

/// The reason why a trace cannot answer a question, with what to record. A report has it in a line in place of a section.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unanswered(pub String);

impl Unanswered {
    /// Returns an error with this reason, which ends the section and not the report.
    pub fn because(reason: impl Into<String>) -> anyhow::Error {
        Unanswered(reason.into()).into()
    }
}

struct Of<O, F> {
    options: O,
    analysis: F,
    is_last: bool,
}

impl<O, F: for<'p> Fn(&'p O) -> Lister<'p, Conclusion<'p>>> SectionAnalysis for Of<O, F> {
    fn analysis(&self) -> Lister<'_, Conclusion<'_>> {
        (self.analysis)(&self.options)
    }

    fn is_concluded_last(&self) -> bool {
        self.is_last
    }
}

/// Makes a part of the options of an analysis, and of a function that makes the recipe for the analysis by them.
pub fn part<'s, O: 's>(
    options: O,
    analysis: impl for<'p> Fn(&'p O) -> Lister<'p, Conclusion<'p>> + 's,
) -> Box<dyn SectionAnalysis + 's> {
    Box::new(Of { options, analysis, is_last: false })
}

/// Makes a part like [`part`] whose section is made from reports that other sections keep: see [`ReportPage::kept`].
pub fn part_from_others<'s, O: 's>(
    options: O,
    analysis: impl for<'p> Fn(&'p O) -> Lister<'p, Conclusion<'p>> + 's,
) -> Box<dyn SectionAnalysis + 's> {
    Box::new(Of { options, analysis, is_last: true })
}

/// The recipe for an analysis in the list, and for the section that shows its output.
pub fn listed<'p, A: Joined<Output: Send> + 'p>(
    analysis: impl Fn() -> A + Send + Sync + 'p,
    section: impl Fn(A::Output, &ReportPage<'_>) -> Result<ReportSection> + Send + Sync + 'p,
) -> Lister<'p, Conclusion<'p>> {
    let section = Arc::new(section);
    Lister::new(analysis, move |output| {
        let section = Arc::clone(&section);
        Box::new(move |page: &ReportPage<'_>| section(output, page)) as Conclusion<'p>
    })
}

/// The surroundings of the sections.
pub struct ReportPage<'p> {
    /// The trace that the report is about.
    pub session: &'p Session,
    /// The page on which the figures are drawn.
    pub sheet: &'p Sheet,
    /// The losses, repairs and doubts that the pass found.
    pub diagnostics: &'p Diagnostics,
    /// The lanes, once their section is made: the ground of other figures.
    lanes: OnceCell<(Vec<Lane>, lanes::Options)>,
    /// The reports that sections keep for others, by their type.
    kept: RefCell<BTreeMap<TypeId, Rc<dyn Any>>>,
}

impl<'p> ReportPage<'p> {
    /// Surrounds the sections of a report on `session` by what the pass found.
    pub fn new(session: &'p Session, sheet: &'p Sheet, diagnostics: &'p Diagnostics) -> ReportPage<'p> {
        ReportPage { session, sheet, diagnostics, lanes: OnceCell::new(), kept: RefCell::default() }
    }

    /// The surroundings of a figure that does not show where events were lost.
    pub fn heading(&self) -> Heading {
        self.session.general_heading(self.diagnostics).on(self.sheet)
    }

    /// The report of a command as its `--json` prints it.
    pub fn json<R: Serialize>(&self, report: &R) -> Result<Vec<u8>> {
        formats::json(&TraceDocument::of(self.session, report, self.diagnostics))
    }

    /// Keeps the report of a section for sections that are concluded behind it; of several reports of one type the last.
    pub fn keep<R: Any>(&self, report: R) {
        self.kept.borrow_mut().insert(TypeId::of::<R>(), Rc::new(report));
    }

    /// Returns the report of this type that a section has kept; nothing where no section has.
    pub fn kept<R: Any>(&self) -> Option<Rc<R>> {
        self.kept.borrow().get(&TypeId::of::<R>())?.clone().downcast().ok()
    }

    /// Keeps the lanes as the ground of other figures.
    pub fn keep_lanes(&self, lanes: (Vec<Lane>, lanes::Options)) {
        self.lanes.get_or_init(|| lanes);
    }

    /// Draws a figure over the lanes in pale grey.
    pub fn over_lanes(&self, figure: impl FnOnce(&Heading, Option<&DrawLanes<'_>>) -> Figure) -> Figure {
        let Some((lanes, options)) = self.lanes.get() else { return figure(&self.heading(), None) };
        let ran = lanes::report(lanes, options);
        let heading = self.session.lanes_heading(&ran, self.diagnostics).on(self.sheet);
        let draw = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
            lanes::draw_pale_lanes(figure, lanes, options, scale, top, height);
        };
        figure(&heading, Some(&draw))
    }
}
