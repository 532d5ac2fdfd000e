//! The window that the page shows, as a figure.

use sched::Cpu;

/// A format of the files with figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A vector figure as PDF.
    Pdf,
    /// A vector figure as SVG.
    Svg,
    /// A picture of pixels as PNG.
    Png,
}

impl Format {
    /// The ending of the names of files.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Pdf => "pdf",
            Format::Svg => "svg",
            Format::Png => "png",
        }
    }

    /// The type of content of such a file.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::Pdf => "application/pdf",
            Format::Svg => "image/svg+xml",
            Format::Png => "image/png",
        }
    }
}

/// The window and the look of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// The start of the window, in nanoseconds from the start of the trace.
    pub from: u64,
    /// The end of the window, in nanoseconds from the start of the trace.
    pub to: u64,
    /// The CPUs that are shown; empty for all.
    pub cpus: Vec<Cpu>,
    /// The property that decides the colours, as `dat2graph --color-by` names it.
    pub color_by: Option<String>,
}
