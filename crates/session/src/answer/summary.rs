//! The summary of a step of a CI job.

use crate::atomic_file;
use crate::verdict::word;
use anyhow::Result;
use sched::Verdict;
use std::fmt::Write;
use std::path::PathBuf;

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
