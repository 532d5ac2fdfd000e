//! Where results go: files, written whole or not at all, and standard output.

use anyhow::{Context, Result, bail};
use draw::Figure;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A format of output
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A page that can be mailed and printed
    Pdf,
    /// For the web, and for editing
    Svg,
    /// A picture, at --dpi
    Png,
    /// The numbers
    Json,
    /// The series as a table, where the command has series
    Csv,
}

/// What to write, and where
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// The file to write: .pdf, .svg, .png, .json or .csv by its ending; - for standard output.
    /// Default: the trace's name with the command's and .pdf, in this folder
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// The format, where the file's ending does not say
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    format: Option<Format>,
    /// The numbers as JSON on standard output; with -o the figure as well
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Dots per inch of a PNG
    #[arg(long, value_name = "N", default_value_t = 150.0, help_heading = "Output")]
    dpi: f64,
}

impl OutputArgs {
    /// The format of the output file.
    fn format(&self, path: &Path) -> Result<Format> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        match path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).as_deref() {
            Some("pdf") => Ok(Format::Pdf),
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            Some("json") => Ok(Format::Json),
            Some("csv") => Ok(Format::Csv),
            _ => bail!("{}: the name ends in none of .pdf, .svg, .png, .json and .csv; say --format", path.display()),
        }
    }

    /// Checks the output's name before any work is done.
    pub(crate) fn check(&self) -> Result<()> {
        self.output.as_deref().map_or(Ok(()), |path| self.format(path).map(drop))
    }

    /// Whether the numbers are to go to standard output as JSON.
    pub(crate) fn wants_json(&self) -> bool {
        self.json
    }

    /// Whether the file is standard output.
    pub(crate) fn is_standard_output(&self) -> bool {
        self.output.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Whether a file was asked for.
    pub(crate) fn wants_file(&self) -> bool {
        self.output.is_some()
    }

    /// Whether the file is to be a table.
    pub(crate) fn wants_csv(&self) -> bool {
        let by_name = |path: &PathBuf| self.format(path).is_ok_and(|format| format == Format::Csv);
        self.output.as_ref().map_or(self.format == Some(Format::Csv), by_name)
    }

    /// Writes figures and their numbers as asked; what was written to a file, in words. Several
    /// figures are the pages of a PDF, or files with numbers; they are drawn only where they are
    /// wanted. `csv`: the series, where there are any.
    pub(crate) fn write(
        &self,
        trace: &Path,
        command: &str,
        figures: impl FnOnce() -> Result<Vec<Figure>>,
        report: &impl Serialize,
        csv: Option<String>,
    ) -> Result<Option<String>> {
        if self.json {
            print_json(report)?;
            if self.output.is_none() {
                return Ok(None);
            }
        }
        let path = self.path(trace, command);
        let files = match self.format(&path)? {
            Format::Pdf => vec![draw::pdf(&figures()?)],
            Format::Svg => figures()?.iter().map(|figure| draw::svg(figure).into_bytes()).collect(),
            Format::Png => figures()?.iter().map(|figure| draw::png(figure, self.dpi)).collect::<Result<_, _>>()?,
            Format::Json => vec![json(report)?],
            Format::Csv => match csv {
                Some(csv) => vec![csv.into_bytes()],
                None => bail!("{command} has no series to write as .csv; use .json"),
            },
        };
        if path.as_os_str() == "-" {
            if files.len() > 1 {
                bail!("several pages of SVG or PNG do not go to standard output; name a file, or use PDF");
            }
            files.iter().try_for_each(|bytes| print(bytes))?;
            return Ok(None);
        }
        let size = files.iter().map(Vec::len).sum::<usize>().div_ceil(1000);
        if let [bytes] = files.as_slice() {
            replace(&path, bytes)?;
            return Ok(Some(format!("{} ({size} kB)", path.display())));
        }
        let paths: Vec<PathBuf> = (1..=files.len()).map(|nth| numbered(&path, nth, files.len())).collect();
        for (path, bytes) in paths.iter().zip(&files) {
            replace(path, bytes)?;
        }
        let [first, .., last] = paths.as_slice() else { return Ok(None) };
        Ok(Some(format!("{} to {} ({size} kB)", first.display(), last.display())))
    }

    /// The file to write: as named, or by the trace and the command.
    fn path(&self, trace: &Path, command: &str) -> PathBuf {
        if let Some(path) = &self.output {
            return path.clone();
        }
        let stem = trace.file_stem().map_or("trace".into(), |s| s.to_string_lossy());
        let ending = match self.format {
            None | Some(Format::Pdf) => "pdf",
            Some(Format::Svg) => "svg",
            Some(Format::Png) => "png",
            Some(Format::Json) => "json",
            Some(Format::Csv) => "csv",
        };
        PathBuf::from(format!("{stem}.{command}.{ending}"))
    }
}

/// `figure.svg` as `figure-07.svg`, with as many digits as the last one has.
fn numbered(path: &Path, nth: usize, of: usize) -> PathBuf {
    let digits = of.to_string().len();
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let ending = path.extension().map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{stem}-{nth:0digits$}{ending}"))
}

fn json(report: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(report)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Tells what was written, to whoever wants to hear it.
pub(crate) fn announce(written: Option<String>, quiet: bool) {
    if let (Some(written), false) = (written, quiet) {
        eprintln!("schedviz: wrote {written}");
    }
}

/// Prints a report.
pub(crate) fn print_json(report: &impl Serialize) -> Result<()> {
    print(&json(report)?)
}

/// Prints bytes.
pub(crate) fn print(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes a file beside its place and moves it there, so that nobody sees half of it. What is no
/// regular file, such as /dev/stdout, is written to as it is.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = || path.display().to_string();
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        return std::fs::write(path, bytes).with_context(name);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // Whatever went wrong with it, the rest is not to be left behind.
        let _ = std::fs::remove_file(&part);
    }
    written.with_context(name)
}

/// Whether this error says that nobody reads our output any more.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|e| e.downcast_ref::<std::io::Error>());
    let mut kinds = io.map(std::io::Error::kind);
    kinds.any(|kind| kind == std::io::ErrorKind::BrokenPipe)
}
