//! The summary of a step of a CI job.

use crate::verdict::word;
use crate::{Session, atomic_file};
use anyhow::Result;
use sched::Verdict;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A function that returns the findings about a trace, as text in columns.
pub type FindingsOf = fn(&Session) -> Result<String>;

/// The function that the program has named: the crate of findings depends on the commands whose summaries show them.
static FINDINGS: OnceLock<FindingsOf> = OnceLock::new();

/// Names the function that returns the findings about a trace, which [`findings`] calls. The program calls this once, before any command
/// runs; a later call has no effect.
pub fn take_findings(findings: FindingsOf) {
    let _ = FINDINGS.set(findings);
}

/// Returns the findings about a trace as Markdown, below a line that names it; nothing where the program has no findings.
pub fn findings(session: &Session) -> Result<String> {
    let Some(findings) = FINDINGS.get() else { return Ok(String::new()) };
    Ok(format!("Findings of `{}`:\n\n{}\n", session.name(), fenced(&findings(session)?)))
}

/// The file of the summary
#[derive(Clone, Debug, clap::Args)]
pub struct SummaryArgs {
    /// Append the finding, the table and the verdicts to this file as Markdown, such as "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    summary: Option<PathBuf>,
}

impl SummaryArgs {
    /// Whether a summary was asked for.
    pub fn is_asked_for(&self) -> bool {
        self.summary.is_some()
    }

    /// Appends a section to the file, if one was asked for. `body` returns Markdown without the title; the verdicts follow below
    /// it, each with its subject.
    pub fn append<'v>(
        &self,
        title: &str,
        body: impl FnOnce() -> String,
        verdicts: impl IntoIterator<Item = (&'v str, &'v Verdict)>,
    ) -> Result<()> {
        let Some(path) = &self.summary else { return Ok(()) };
        let mut text = format!("### {title}\n\n{}\n", body().trim_end());
        let mut mark = "\n";
        for (subject, verdict) in verdicts {
            let subject = subject.replace('|', "\\|");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{mark}* **{}**: {subject}: {}", word(verdict.verdict), verdict.reason);
            mark = "";
        }
        text.push('\n');
        Ok(atomic_file::append(path, text.as_bytes())?)
    }
}

/// Puts a text of columns into a Markdown block that keeps them.
pub fn fenced(text: &str) -> String {
    // No text of the program has three of these signs, but names of tasks may.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}
