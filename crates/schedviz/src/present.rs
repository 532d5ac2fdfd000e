//! How a command ends that looked at one trace.

use crate::output::{Forms, OutputArgs};
use crate::subject::Subject;
use crate::trust;
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
    trust: &'d Diagnostics,
}

impl<'d, R: Serialize> Document<'d, R> {
    /// What was found.
    pub(crate) fn of(subject: &Subject, report: &'d R, trust: &'d Diagnostics) -> Document<'d, R> {
        let info = subject.trace.info();
        Document { trace: subject.name(), kernel: info.kernel, clock: info.clock, report, trust }
    }

    /// Says what is not to be overlooked, and gives what `command` was asked for.
    pub(crate) fn give(&self, command: &str, subject: &Subject, output: &OutputArgs, forms: Forms<'_>) -> Result<()> {
        trust::warn(self.trust, &subject.read);
        output.give(&subject.origin(), command, self, forms, subject.read.quiet)
    }
}
