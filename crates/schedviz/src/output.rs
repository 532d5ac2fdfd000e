//! In what form a command gives what it found, and where to.

use crate::sink::{Lines, print, save, stream};
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
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
    /// What the command tells, where it tells something
    Txt,
}

impl Format {
    /// Those of a figure,
    pub(crate) const FIGURE: &[Format] = &[Format::Pdf, Format::Svg, Format::Png];
    /// of a table,
    pub(crate) const TABLE: &[Format] = &[Format::Csv];
    /// of a text.
    pub(crate) const TEXT: &[Format] = &[Format::Txt];

    /// The ending of its files' names.
    fn ending(self) -> &'static str {
        match self {
            Format::Pdf => "pdf",
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Txt => "txt",
        }
    }
}

/// Writes a table, which can be too long to be held.
type Table<'f> = dyn FnOnce(&mut dyn Write) -> Result<()> + 'f;

/// The forms, besides its numbers, in which a command can give what it found; each is made only where it is wanted.
pub(crate) struct Forms<'f> {
    figures: Box<dyn FnOnce() -> Result<Vec<Figure>> + 'f>,
    text: Option<Box<dyn FnOnce() -> String + 'f>>,
    csv: Option<Box<Table<'f>>>,
    /// The figure is written where no form is asked for,
    is_drawn: bool,
    /// and the text is printed.
    is_told: bool,
}

impl<'f> Forms<'f> {
    /// Of a command that draws.
    pub(crate) fn drawn(figures: impl FnOnce() -> Result<Vec<Figure>> + 'f) -> Forms<'f> {
        Forms { figures: Box::new(figures), text: None, csv: None, is_drawn: true, is_told: false }
    }

    /// Of a command that tells, and draws where it is asked to.
    pub(crate) fn told(
        text: impl FnOnce() -> String + 'f,
        figures: impl FnOnce() -> Result<Vec<Figure>> + 'f,
    ) -> Forms<'f> {
        Forms { is_drawn: false, is_told: true, ..Forms::drawn(figures).with_text(text) }
    }

    /// Of a command that only tells.
    pub(crate) fn words(text: impl FnOnce() -> String + 'f) -> Forms<'f> {
        Forms::told(text, || bail!("there is no figure of this"))
    }

    /// The figure is written as well, unasked.
    pub(crate) fn and_drawn(self) -> Forms<'f> {
        Forms { is_drawn: true, ..self }
    }

    /// It can be put into words for who wants a text.
    pub(crate) fn with_text(self, text: impl FnOnce() -> String + 'f) -> Forms<'f> {
        Forms { text: Some(Box::new(text)), ..self }
    }

    /// There are series for a table.
    pub(crate) fn with_csv(self, csv: impl FnOnce(&mut dyn Write) -> Result<()> + 'f) -> Forms<'f> {
        Forms { csv: Some(Box::new(csv)), ..self }
    }
}

/// What to write, and where
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// The file to write: .pdf, .svg, .png, .json, .csv or .txt by its ending; - for standard output.
    /// Where a figure is drawn without it: the trace's name with the command's and .pdf, in this folder
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
        let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let found = Format::value_variants().iter().find(|format| format.ending() == ending);
        found.copied().ok_or_else(|| {
            let name = path.display();
            anyhow!("{name}: the name ends in none of .pdf, .svg, .png, .json, .csv and .txt; say --format")
        })
    }

    /// Checks, before any work is done, that the output is of a format that the command gives besides JSON.
    pub(crate) fn check(&self, gives: &[&[Format]]) -> Result<()> {
        let asked = self.output.as_deref().map_or(Ok(self.format), |path| self.format(path).map(Some))?;
        let given = gives.concat();
        if let Some(asked) = asked.filter(|asked| *asked != Format::Json && !given.contains(asked)) {
            let others: Vec<String> = given.iter().map(|format| format!(".{}", format.ending())).collect();
            bail!("there is no .{} of this; use {} or .json", asked.ending(), others.join(", "));
        }
        Ok(())
    }

    /// Whether a file was asked for, or a format, which is that of a file.
    pub(crate) fn wants_file(&self) -> bool {
        self.output.is_some() || self.format.is_some()
    }

    /// Whether the file is standard output.
    fn is_standard_output(&self) -> bool {
        self.output.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Whether the file is to have this format.
    fn wants(&self, format: Format) -> bool {
        let by_name = |path: &PathBuf| self.format(path).is_ok_and(|of| of == format);
        self.output.as_ref().map_or(self.format == Some(format), by_name)
    }

    /// Gives what a command found in each form that was asked for. `of`: the trace, after which a file without a
    /// name is called.
    pub(crate) fn give(
        &self,
        of: &Path,
        command: &str,
        document: &impl Serialize,
        mut forms: Forms<'_>,
        quiet: bool,
    ) -> Result<()> {
        if self.json {
            print_json(document)?;
        }
        let elsewhere = self.json || self.wants(Format::Txt) || self.is_standard_output();
        if let Some(text) = forms.text.take_if(|_| forms.is_told && !elsewhere) {
            print(text().as_bytes())?;
        }
        if !self.wants_file() && (self.json || !forms.is_drawn) {
            return Ok(());
        }
        let path = self.path(of, command);
        let written = self.write(&path, document, forms)?;
        if let (Some(written), false) = (written, quiet) {
            eprintln!("schedviz: wrote {written}");
        }
        Ok(())
    }

    /// Writes the file, or several where there are several figures, but for PDF, which has pages; what was written, in
    /// words.
    fn write(&self, path: &Path, document: &impl Serialize, forms: Forms<'_>) -> Result<Option<String>> {
        let Forms { figures, text, csv, .. } = forms;
        let files = match self.format(path)? {
            Format::Pdf => vec![draw::pdf(&figures()?)],
            Format::Svg => figures()?.iter().map(|figure| draw::svg(figure).into_bytes()).collect(),
            Format::Png => figures()?.iter().map(|figure| draw::png(figure, self.dpi)).collect::<Result<_, _>>()?,
            Format::Json => vec![json(document)?],
            Format::Csv => match csv {
                Some(csv) => return stream(path, csv),
                None => bail!("there is no table of this"),
            },
            Format::Txt => match text {
                Some(text) => vec![text().into_bytes()],
                None => bail!("there is no text of this"),
            },
        };
        save(path, &files)
    }

    /// The file to write: as named, or by the trace and the command.
    fn path(&self, trace: &Path, command: &str) -> PathBuf {
        if let Some(path) = &self.output {
            return path.clone();
        }
        let stem = trace.file_stem().map_or("trace".into(), |s| s.to_string_lossy());
        PathBuf::from(format!("{stem}.{command}.{}", self.format.unwrap_or(Format::Pdf).ending()))
    }

    /// Where a text goes that is too long to be held: standard output, or a file.
    pub(crate) fn lines(&self) -> Result<Lines> {
        let format = match &self.output {
            Some(path) if !self.is_standard_output() => Some(self.format(path)?),
            _ => self.format,
        };
        if self.json || format.is_some_and(|format| format != Format::Txt) {
            bail!("a list is text: it goes to standard output, or with -o to a file whose name ends in .txt");
        }
        Lines::open(self.output.as_deref().filter(|_| !self.is_standard_output()))
    }
}

/// A document as it is written.
pub(crate) fn json(report: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(report)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Prints a report.
fn print_json(report: &impl Serialize) -> Result<()> {
    print(&json(report)?)
}
