//! The window that the page shows, as a figure.

use crate::http::Request;
use sched::Cpu;
use sched::topology::parse_cpu_list;

/// A format of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// PDF.
    Pdf,
    /// SVG.
    Svg,
    /// PNG.
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

    pub(crate) fn kind(self) -> &'static str {
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
    /// The end of the window.
    pub to: u64,
    /// Only these CPUs; all where there is none.
    pub cpus: Vec<Cpu>,
    /// The property that decides the colours, as `dat2graph --color-by` names it.
    pub color_by: Option<String>,
}

impl Drawing {
    /// The window that a request asks for.
    pub(crate) fn of(request: &Request) -> Result<Drawing, &'static str> {
        let time = |key: &str| request.get(key).and_then(|text| text.parse().ok());
        let (Some(from), Some(to)) = (time("from"), time("to")) else {
            return Err("from and to are whole numbers of nanoseconds");
        };
        if from >= to {
            return Err("the window is empty");
        }
        let cpus = match request.get("cpus").filter(|list| !list.is_empty()) {
            None => Vec::new(),
            Some(list) => parse_cpu_list(list).ok_or("cpus is a list such as 0-15,32")?,
        };
        Ok(Drawing { from, to, cpus, color_by: request.get("color-by").map(str::to_owned) })
    }
}
