//! How a command ends that looked at one trace.

use crate::Session;
use crate::formats::{OutputArgs, Renderings};
use crate::trace::ext::{self, ExtScheduler};
use crate::trace::heading;
use crate::warnings;
use anyhow::Result;
use sched::Diagnostics;
use sched::event::CleanText;
use serde::Serialize;

/// The document of `--json`: the trace, the report of the command, and how far it can be trusted. The schema is that of
/// the report.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceDocument<'d, R> {
    /// The file name of the trace.
    trace: String,
    /// The kernel's release; null if the trace does not have it.
    kernel: Option<CleanText>,
    /// The clock of the trace; empty for the recorder's default.
    clock: CleanText,
    /// The sched_ext scheduler that was loaded; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    sched_ext: Option<ExtScheduler>,
    #[serde(flatten)]
    report: &'d R,
    /// The losses, repairs and doubts of the trace.
    #[serde(serialize_with = "warnings::rows")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<warnings::Row<'static>>"))]
    trust: &'d Diagnostics,
}

impl<'d, R: Serialize> TraceDocument<'d, R> {
    /// The document of a report.
    pub fn of(session: &Session, report: &'d R, trust: &'d Diagnostics) -> TraceDocument<'d, R> {
        let info = session.trace.info();
        let sched_ext = session.sched_ext.clone();
        TraceDocument { trace: session.name(), kernel: info.kernel, clock: info.clock, sched_ext, report, trust }
    }

    /// Prints the warnings, and gives the output of `command` in the form asked for.
    pub fn give(&self, command: &str, session: &Session, output: &OutputArgs, forms: Renderings<'_>) -> Result<()> {
        warnings::warn(self.trust, &session.read);
        let ext = ext::head([(self.trace.as_str(), self.sched_ext.as_ref())]);
        let forms = forms.headed(heading::doubts(None, self.trust).into_iter().chain(ext).collect());
        output.give(&session.origin(), command, self, forms, session.read.quiet)
    }
}
