//! How a command ends that looked at one trace.

use crate::output::{Forms, OutputArgs};
use crate::session::Session;
use crate::warnings;
use anyhow::Result;
use sched::Diagnostics;
use serde::Serialize;

/// The document of `--json`: what a command found, in which trace, and how far it can be trusted. Its schema is the
/// report's, which knows its own form.
#[derive(Serialize)]
pub(crate) struct Document<'d, R> {
    trace: String,
    kernel: Option<String>,
    clock: String,
    #[serde(flatten)]
    report: &'d R,
    #[serde(serialize_with = "warnings::rows")]
    trust: &'d Diagnostics,
}

impl<'d, R: Serialize> Document<'d, R> {
    /// What was found.
    pub(crate) fn of(session: &Session, report: &'d R, trust: &'d Diagnostics) -> Document<'d, R> {
        let info = session.trace.info();
        Document { trace: session.name(), kernel: info.kernel, clock: info.clock, report, trust }
    }

    /// Says what is not to be overlooked, and gives what `command` was asked for.
    pub(crate) fn give(&self, command: &str, session: &Session, output: &OutputArgs, forms: Forms<'_>) -> Result<()> {
        warnings::warn(self.trust, &session.read);
        output.give(&session.origin(), command, self, forms, session.read.quiet)
    }
}
