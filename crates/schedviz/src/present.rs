//! How a command that measures ends: its figures in a file, its numbers as JSON, or its text.

use crate::args::ReadArgs;
use crate::output::{self, OutputArgs};
use crate::page;
use crate::subject::Subject;
use crate::trust;
use anyhow::Result;
use draw::Figure;
use sched::Diagnostics;
use serde::Serialize;
use timeline::Drawable;
use timeline::page::Heading;

/// The document of `--json`: a report, with its trace and how far it can be trusted.
#[derive(Serialize)]
pub(crate) struct Document<'d, R> {
    pub(crate) trace: String,
    #[serde(flatten)]
    pub(crate) report: &'d R,
    pub(crate) trust: &'d Diagnostics,
}

/// What a command found.
pub(crate) struct Found<'f, R> {
    /// The command's name, which is in that of its files.
    pub(crate) command: &'f str,
    pub(crate) report: &'f R,
    pub(crate) diagnostics: &'f Diagnostics,
}

impl<R: Serialize> Found<'_, R> {
    /// Writes what was asked for. Figures and text are made only where they are wanted.
    pub(crate) fn present(
        &self,
        subject: &Subject,
        read: &ReadArgs,
        output: &OutputArgs,
        figures: impl FnOnce(&Heading) -> Vec<Figure>,
        text: impl FnOnce(&Drawable) -> String,
    ) -> Result<()> {
        trust::warn(self.diagnostics, read.quiet, read.color);
        let document = Document { trace: subject.name(), report: self.report, trust: self.diagnostics };
        if output.wants_file() {
            let warnings = page::general_warnings(&subject.trace, &subject.observed, self.diagnostics);
            let figures = || Ok(figures(&subject.heading(warnings)));
            let written = output.write(subject.path(), self.command, figures, &document, None)?;
            output::announce(written, read.quiet);
        } else if output.wants_json() {
            output::print_json(&document)?;
        }
        if !output.wants_json() && !output.is_standard_output() {
            output::print(text(&subject.drawable).as_bytes())?;
        }
        Ok(())
    }
}
