//! In what form a command gives what it found, and where to.

use crate::messages::emit;
use crate::page_args::PageArgs;
use crate::pager;
use crate::writer::{Lines, print, save, stream, unless_closed, verb};
use anyhow::{Result, bail};
use clap::ValueEnum;
use clap::builder::TypedValueParser;
use draw::Figure;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use timeline::Sheet;
use timeline::text::paragraph;

/// A format of output
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A page that can be mailed and printed
    Pdf,
    /// A drawing for the web, and for editing
    Svg,
    /// A picture, at --dpi
    Png,
    /// The numbers, as --json prints them
    Json,
    /// A table of comma-separated values
    Csv,
    /// The text report
    Txt,
    /// The table of series for sched/core: normalised, with `[pct imp](CV)`
    Tip,
    /// The table of mmtests
    Mmtests,
    /// The table of the kernel test robot (LKP)
    Lkp,
    /// The table of benchstat
    Benchstat,
    /// The rows of perf sched stats
    Perf,
    /// The verdicts as KTAP, for kselftest, KernelCI and LAVA
    Ktap,
    /// The verdicts as JUnit XML, for CI servers
    Junit,
}

impl Format {
    /// Whether it is a dialect of the text, which another tool or a mailing list has coined. A file in a dialect has any
    /// name, and without a file it goes to standard output.
    pub fn is_dialect(self) -> bool {
        use Format::{Benchstat, Csv, Json, Junit, Ktap, Lkp, Mmtests, Pdf, Perf, Png, Svg, Tip, Txt};
        match self {
            Pdf | Svg | Png | Json | Csv | Txt => false,
            Tip | Mmtests | Lkp | Benchstat | Perf | Ktap | Junit => true,
        }
    }

    /// Whether it holds verdicts alone.
    pub fn is_of_verdicts(self) -> bool {
        matches!(self, Format::Ktap | Format::Junit)
    }

    /// The word for it on a command line.
    pub fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The ending of its files' names.
    fn ending(self) -> &'static str {
        match self {
            Format::Pdf => "pdf",
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Junit => "xml",
            _ => "txt",
        }
    }

    /// The format that a file's name asks for, if it has such an ending.
    fn of_name(path: &Path) -> Option<Format> {
        let ending = path.extension()?.to_string_lossy().to_ascii_lowercase();
        let mut named = Format::value_variants().iter().copied().filter(|format| !format.is_dialect());
        named.find(|format| format.ending() == ending)
    }
}

/// The forms of output that a command has besides JSON, which all have. Its help lists these formats alone.
#[derive(Clone, Copy, Debug)]
pub struct Formats {
    figure: bool,
    table: bool,
    text: bool,
    /// Whether the command has JSON, which only a list of lines has not.
    numbers: bool,
    /// The middle of the name of the figure that is written where no file is asked for.
    unasked: Option<&'static str>,
    /// The dialects of the text.
    dialects: &'static [Format],
}

impl Formats {
    /// The format of a command that only prints text.
    pub const TEXT: Formats =
        Formats { figure: false, table: false, text: true, numbers: true, unasked: None, dialects: &[] };
    /// The format of a command that prints lines of text, which can be too long for any other format.
    pub const LINES: Formats = Formats { numbers: false, ..Formats::TEXT };
    /// The formats of a command that draws on request, and prints text.
    pub const FIGURE_AND_TEXT: Formats = Formats { figure: true, ..Formats::TEXT };

    /// The formats of a command whose figure is written to `<trace>.<command>.pdf` where no file is asked for.
    pub const fn figure_of(command: &'static str) -> Formats {
        Formats { figure: true, text: false, unasked: Some(command), ..Formats::TEXT }
    }

    /// Whether the figure is written where no file is asked for.
    pub const fn draws_unasked(self) -> bool {
        self.unasked.is_some()
    }

    /// Whether a table of comma-separated values is among the formats.
    pub const fn has_table(self) -> bool {
        self.table
    }

    /// Returns these formats and text.
    #[must_use]
    pub const fn and_text(self) -> Formats {
        Formats { text: true, ..self }
    }

    /// Returns these formats and a table.
    #[must_use]
    pub const fn and_table(self) -> Formats {
        Formats { table: true, ..self }
    }

    /// The same, and these dialects of the text.
    #[must_use]
    pub const fn and_dialects(self, dialects: &'static [Format]) -> Formats {
        Formats { dialects, ..self }
    }

    fn has(self, format: Format) -> bool {
        match format {
            Format::Pdf | Format::Svg | Format::Png => self.figure,
            Format::Json => self.numbers,
            Format::Csv => self.table,
            Format::Txt => self.text,
            dialect => self.dialects.contains(&dialect),
        }
    }

    /// Returns the endings of the files that can be written, the dialects of the text left out.
    pub fn files(self) -> impl Iterator<Item = &'static str> {
        self.formats().filter(|format| !format.is_dialect()).map(Format::ending)
    }

    fn formats(self) -> impl Iterator<Item = Format> {
        Format::value_variants().iter().copied().filter(move |format| self.has(*format))
    }

    /// The formats as endings: `.pdf, .svg, .png and .json`.
    fn endings(self, last: &str) -> String {
        let mut endings: Vec<String> = self.files().map(|ending| format!(".{ending}")).collect();
        let end = endings.pop().unwrap_or_default();
        if endings.is_empty() { end } else { format!("{} {last} {end}", endings.join(", ")) }
    }

    /// An output argument whose help fits the command.
    pub fn fit(self, argument: clap::Arg) -> clap::Arg {
        match argument.get_id().as_str() {
            "output" => {
                let default = match self.unasked {
                    Some(command) => format!(
                        "Default: `<trace>.{command}.pdf` in the current directory, with the window where one is given"
                    ),
                    None => "Default: the text on standard output alone".to_owned(),
                };
                let endings = self.endings("or");
                argument.help(format!("File to write: {endings} by its ending; - for standard output. {default}"))
            }
            "format" => {
                let possible = self.formats().filter_map(|format| format.to_possible_value());
                let parser = clap::builder::PossibleValuesParser::new(possible);
                let argument = argument.value_parser(parser.try_map(|name| Format::from_str(&name, false)));
                match self.dialects {
                    [] => argument,
                    dialects => {
                        let words: Vec<String> = dialects.iter().map(|dialect| dialect.word()).collect();
                        argument.help(format!(
                            "Format of the file, where its name has no such ending; without a file {} to standard output",
                            match words.as_slice() {
                                [word] => format!("{word} goes"),
                                words => format!("{} go", words.join(", ")),
                            }
                        ))
                    }
                }
            }
            "json" => argument.hide(!self.numbers),
            "dpi" | "width" | "height" | "font_size" | "title" | "embed_fonts" => argument.hide(!self.figure),
            _ => argument,
        }
    }
}

/// Writes a table, which can be too long to be held.
type Table<'f> = dyn FnOnce(&mut dyn Write) -> Result<()> + 'f;

/// Puts the answer into a dialect of the text.
type InDialect<'f> = dyn FnOnce(Format) -> Result<String> + 'f;

/// Draws the figures on a page.
type Draw<'f> = dyn FnOnce(&Sheet) -> Result<Vec<Figure>> + 'f;

/// The forms, besides its numbers, in which a command can give what it found; each is made only where it is wanted.
pub struct Renderings<'f> {
    figures: Box<Draw<'f>>,
    text: Option<Box<dyn FnOnce() -> String + 'f>>,
    csv: Option<Box<Table<'f>>>,
    dialect: Option<Box<InDialect<'f>>>,
    /// Whether the figure is written where no form is asked for.
    is_drawn: bool,
    /// Whether the text is printed where no form is asked for.
    is_told: bool,
}

impl<'f> Renderings<'f> {
    /// The forms of a command that draws.
    pub fn drawn(figures: impl FnOnce(&Sheet) -> Result<Vec<Figure>> + 'f) -> Renderings<'f> {
        Renderings { figures: Box::new(figures), text: None, csv: None, dialect: None, is_drawn: true, is_told: false }
    }

    /// The forms of a command that prints, and draws where it is asked to.
    pub fn told(
        text: impl FnOnce() -> String + 'f,
        figures: impl FnOnce(&Sheet) -> Result<Vec<Figure>> + 'f,
    ) -> Renderings<'f> {
        Renderings { is_drawn: false, is_told: true, ..Renderings::drawn(figures).with_text(text) }
    }

    /// The forms of a command that only prints.
    pub fn words(text: impl FnOnce() -> String + 'f) -> Renderings<'f> {
        Renderings::told(text, |_| bail!("there is no figure of this"))
    }

    /// Keeps the text from being printed where no format is asked for.
    #[must_use]
    pub fn untold(self) -> Renderings<'f> {
        Renderings { is_told: false, ..self }
    }

    /// Has the figure written as well where no format is asked for.
    #[must_use]
    pub fn and_drawn(self) -> Renderings<'f> {
        Renderings { is_drawn: true, ..self }
    }

    /// Adds a text, which is printed only where a text is asked for.
    #[must_use]
    pub fn with_text(self, text: impl FnOnce() -> String + 'f) -> Renderings<'f> {
        Renderings { text: Some(Box::new(text)), ..self }
    }

    /// Puts lines above the text, as [`headed`] does.
    #[must_use]
    pub fn headed(self, head: Vec<String>) -> Renderings<'f> {
        let Renderings { text: Some(text), .. } = self else { return self };
        Renderings { text: Some(Box::new(move || headed(&head, text()))), ..self }
    }

    /// Adds a table, which `csv` writes as comma-separated values.
    #[must_use]
    pub fn with_csv(self, csv: impl FnOnce(&mut dyn Write) -> Result<()> + 'f) -> Renderings<'f> {
        Renderings { csv: Some(Box::new(csv)), ..self }
    }

    /// There are dialects of the text; `dialect` is called with one that the command's [`Formats`] have.
    #[must_use]
    pub fn with_dialects(self, dialect: impl FnOnce(Format) -> Result<String> + 'f) -> Renderings<'f> {
        Renderings { dialect: Some(Box::new(dialect)), ..self }
    }
}

/// Puts lines above a text, each as a paragraph, and an empty line behind them.
pub fn headed(head: &[String], text: String) -> String {
    if head.is_empty() {
        return text;
    }
    let mut out = String::new();
    head.iter().for_each(|line| paragraph(&mut out, 0, 2, line));
    out + "\n" + &text
}

/// Files to write, and their formats
#[derive(Clone, Debug, clap::Args)]
pub struct OutputArgs {
    /// File to write, by its ending; - for standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Format of the file, where its name has no such ending
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    format: Option<Format>,
    /// The numbers as JSON on standard output; with -o the file as well
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Dots per inch of a PNG
    #[arg(long, value_name = "N", default_value_t = 150.0, help_heading = "Output")]
    dpi: f64,
    #[command(flatten)]
    page: PageArgs,
    /// Embed the font in a PDF, so that every viewer and printer shows the same letters
    #[arg(long, help_heading = "Figure")]
    embed_fonts: bool,
}

/// The trace, or other file, that an output file without a name is called after, and the part of it that is shown.
pub struct OutputName<'p> {
    path: &'p Path,
    part: Option<String>,
}

impl<'p> OutputName<'p> {
    /// The name of an output about all of a file.
    pub fn whole(path: &'p Path) -> OutputName<'p> {
        OutputName { path, part: None }
    }

    /// The name of an output about a part of a trace.
    pub fn part(path: &'p Path, part: Option<String>) -> OutputName<'p> {
        OutputName { path, part }
    }

    /// The name of a file or folder of this kind: `trace.dat2graph.3s-3.2s.pdf`. The folder's name stands in front
    /// where a folder beside it has a file of the same name, so that their outputs do not share a name.
    pub fn named(&self, kind: &str, ending: &str) -> PathBuf {
        let stem = self.path.file_stem().map_or("trace".into(), |stem| stem.to_string_lossy().into_owned());
        let words = [shared_folder(self.path), Some(stem), Some(kind.to_owned()), self.part.clone()];
        let words = words.into_iter().flatten().chain((!ending.is_empty()).then(|| ending.to_owned()));
        PathBuf::from(words.collect::<Vec<_>>().join("."))
    }
}

/// Folders beside a trace's own that are looked through for a file of the same name.
const NEIGHBOURS: usize = 4096;

/// The name of the folder of a file, if a folder beside it has a file of the same name and the file is not in the
/// current folder.
fn shared_folder(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?.canonicalize().ok()?;
    if std::env::current_dir().and_then(|here| here.canonicalize()).is_ok_and(|here| here == folder) {
        return None;
    }
    let (name, own) = (path.file_name()?, folder.file_name()?);
    let mut beside = folder.parent()?.read_dir().ok()?.take(NEIGHBOURS).flatten();
    let shared = beside.any(|entry| entry.file_name() != own && entry.path().join(name).is_file());
    shared.then(|| own.to_string_lossy().into_owned())
}

/// Refuses a file where a command writes a folder.
pub fn folder(named: &Path) -> Result<&Path> {
    let name = named.display();
    if named.exists() && !named.is_dir() {
        bail!("{name} is a file; --output names a folder");
    }
    if let Some(format) = Format::of_name(named).filter(|_| !named.is_dir()) {
        let folder = named.with_extension("");
        bail!(
            "{name} is the name of a file, but --output names a folder, such as {}; \
             a single .{} is written by the command of one analysis, such as schedviz workcons -o {name}",
            folder.display(),
            format.ending()
        );
    }
    Ok(named)
}

impl OutputArgs {
    /// The format of the output file.
    fn format(&self, path: &Path) -> Result<Format> {
        let (named, asked, name) = (Format::of_name(path), self.format, path.display());
        match (named, asked) {
            // A dialect of the text is in any file of text.
            (None | Some(Format::Txt), Some(asked)) if asked.is_dialect() => Ok(asked),
            (Some(named), Some(asked)) if named != asked => bail!(
                "--format {} contradicts the name {name}; leave out --format, or name the file .{}",
                asked.word(),
                asked.ending()
            ),
            (_, Some(format)) | (Some(format), None) => Ok(format),
            (None, None) if name.to_string() == "-" => bail!("-o - needs --format, such as --format json"),
            (None, None) => {
                bail!("{name}: the name ends in none of .pdf, .svg, .png, .json, .csv and .txt; add --format")
            }
        }
    }

    /// Checks, before any work is done, that the command has the format that is asked for.
    pub fn check(&self, gives: Formats) -> Result<()> {
        let asked = self.output.as_deref().map_or(Ok(self.format), |path| self.format(path).map(Some))?;
        if let Some(asked) = asked.filter(|asked| !gives.has(*asked)) {
            bail!("this command cannot write {}; use {}", shown(asked), gives.endings("or"));
        }
        let is_pdf = asked.map_or(gives.unasked.is_some(), |format| format == Format::Pdf);
        if self.embed_fonts && !is_pdf {
            bail!("--embed-fonts is for a PDF file; write one with -o FILE.pdf");
        }
        if self.page.is_given() && !gives.figure {
            bail!("this command draws no figure; leave out --width, --height, --font-size and --title");
        }
        if self.json && self.is_standard_output() {
            bail!("--json and -o - both write to standard output; use one of them");
        }
        if let Some(dialect) = self.dialect().filter(|_| self.json && self.output.is_none()) {
            bail!("--json and --format {} both write to standard output; name a file with -o", dialect.word());
        }
        Ok(())
    }

    /// The dialect of the text that was asked for.
    pub fn dialect(&self) -> Option<Format> {
        self.format.filter(|format| format.is_dialect())
    }

    /// Whether a file was asked for, or a format, which is that of a file.
    pub fn wants_file(&self) -> bool {
        self.output.is_some() || self.format.is_some_and(|format| !format.is_dialect())
    }

    /// Whether single entries are wanted: in JSON, or in a table.
    pub fn wants_entries(&self) -> bool {
        self.json || self.wants(Format::Json) || self.wants(Format::Csv)
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

    /// Writes the results of a command in each form that was asked for. A file without a name is named after the
    /// trace `of`.
    pub fn give(
        &self,
        of: &OutputName<'_>,
        command: &str,
        document: &impl Serialize,
        mut forms: Renderings<'_>,
        quiet: bool,
    ) -> Result<()> {
        if self.json {
            print_json(document)?;
        }
        let elsewhere = self.json || self.wants(Format::Txt) || self.dialect().is_some() || self.is_standard_output();
        if let Some(text) = forms.text.take_if(|_| forms.is_told && !elsewhere) {
            print(text().as_bytes())?;
        }
        if let (Some(dialect), None) = (self.dialect(), &self.output) {
            return print(in_dialect(forms.dialect, dialect)?.as_bytes());
        }
        if !self.wants_file() && (self.json || !forms.is_drawn) {
            return Ok(());
        }
        let unnamed = || of.named(command, self.format.unwrap_or(Format::Pdf).ending());
        let path = self.output.clone().unwrap_or_else(unnamed);
        let written = self.write(&path, document, forms)?;
        if let (Some(written), false) = (written, quiet) {
            emit(&written);
        }
        Ok(())
    }

    /// Writes the file, or several where there are several figures, but for PDF, which has pages; returns a message, in
    /// words.
    fn write(&self, path: &Path, document: &impl Serialize, forms: Renderings<'_>) -> Result<Option<String>> {
        let Renderings { figures, text, csv, dialect, .. } = forms;
        let drawn = || {
            let figures = figures(&self.page.sheet())?;
            self.page.check(&figures).map(|()| figures)
        };
        let files = match self.format(path)? {
            Format::Pdf if self.embed_fonts => vec![draw::pdf_with_fonts(&drawn()?)],
            Format::Pdf => vec![draw::pdf(&drawn()?)],
            Format::Svg => drawn()?.iter().map(|figure| draw::svg(figure).into_bytes()).collect(),
            Format::Png => drawn()?.iter().map(|figure| draw::png(figure, self.dpi)).collect::<Result<_, _>>()?,
            // A list of migrations has hundreds of megabytes: JSON is written as it is made.
            Format::Json => return stream(path, |out| write_json(out, document)),
            Format::Csv => match csv {
                Some(csv) => return stream(path, csv),
                None => bail!("there is no table of this"),
            },
            Format::Txt => match text {
                Some(text) => vec![text().into_bytes()],
                None => bail!("there is no text of this"),
            },
            asked => vec![in_dialect(dialect, asked)?.into_bytes()],
        };
        save(path, &files)
    }

    /// The message about the file, made before it is written: whether it is there already.
    pub fn announced(&self) -> Option<String> {
        let path = self.output.as_ref().filter(|_| !self.is_standard_output())?;
        Some(format!("{} {}", verb(path.is_file()), path.display()))
    }

    /// Opens the destination of a text that is too long to be held: standard output, or a file.
    pub fn lines(&self) -> Result<Lines> {
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

/// A format in messages: the ending of its files, or the word for a dialect.
fn shown(format: Format) -> String {
    if format.is_dialect() { format.word() } else { format!(".{}", format.ending()) }
}

/// The answer in a dialect of the text.
fn in_dialect(render: Option<Box<InDialect<'_>>>, dialect: Format) -> Result<String> {
    match render {
        Some(render) => render(dialect),
        None => bail!("there is no {} of this", dialect.word()),
    }
}

/// Returns a document as the bytes of its file.
pub fn json(report: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(report)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes a document.
fn write_json(out: &mut dyn Write, report: &impl Serialize) -> Result<()> {
    // As what it was, so that a closed pipe shows.
    serde_json::to_writer_pretty(&mut *out, report).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// Prints a report.
fn print_json(report: &impl Serialize) -> Result<()> {
    let paged = pager::begin();
    let mut out = Lines::open(None)?;
    unless_closed(paged, write_json(&mut out, report).and_then(|()| out.finish()))
}
