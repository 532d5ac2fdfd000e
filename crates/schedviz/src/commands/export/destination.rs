//! The files of the tables.

use super::run_row;
use crate::atomic_file::AtomicFile;
use crate::writer;
use anyhow::{Context, Result, bail};
use export::{Csv, Output, Sink, Table};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

impl Sink for AtomicFile {
    fn cut(&mut self, to: u64) -> io::Result<()> {
        AtomicFile::cut(self, to)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        AtomicFile::finish(*self)
    }
}

/// A table for standard output, which waits in a file without a name until it is complete: a pass that begins again
/// writes its rows again.
struct Spool(File);

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Sink for Spool {
    fn cut(&mut self, to: u64) -> io::Result<()> {
        self.0.set_len(to)?;
        self.0.seek(io::SeekFrom::Start(to)).map(drop)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.rewind()?;
        let mut out = io::stdout().lock();
        io::copy(&mut self.0, &mut out)?;
        out.flush()
    }
}

/// The output, and the words for it.
pub(super) struct Written {
    pub(super) output: Output,
    /// The folder, unless standard output was asked for.
    folder: Option<PathBuf>,
    /// The number of tables.
    tables: usize,
    replaced: bool,
}

impl Written {
    /// Puts all files in their places, and reports them.
    pub(super) fn finish(self, quiet: bool) -> Result<()> {
        self.output.finish()?;
        if let (Some(folder), false) = (self.folder, quiet) {
            let (verb, tables) = (writer::verb(self.replaced), self.tables);
            let noun = if tables == 1 { "table" } else { "tables" };
            eprintln!("schedviz: {verb} {tables} {noun} in {}", folder.display());
        }
        Ok(())
    }
}

/// The columns of a table.
fn columns(table: Table) -> Cow<'static, [export::Column]> {
    match table {
        Table::Run => [table.columns(), &run_row::metric_columns()].concat().into(),
        _ => table.columns().into(),
    }
}

/// Begins tables as comma-separated values in a folder, or one on standard output.
pub(super) fn csv(folder: &Path, tables: &[Table]) -> Result<Written> {
    let mut output = Output::default();
    if folder.as_os_str() == "-" {
        let [table] = tables else {
            bail!("--csv - writes a single table; choose one with --tables, or name a folder");
        };
        let spool = Spool(tempfile::tempfile().context("a temporary file for standard output")?);
        let csv = Csv::new(Box::new(spool), &columns(*table))?;
        let output = output.with(*table, Box::new(csv));
        return Ok(Written { output, folder: None, tables: 1, replaced: false });
    }
    if folder.exists() && !folder.is_dir() {
        bail!("{} is a file; --csv names a folder", folder.display());
    }
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut replaced = false;
    for table in tables {
        let path = folder.join(format!("{}.csv", table.name()));
        replaced |= path.exists();
        let csv = Csv::new(Box::new(AtomicFile::create(&path)?), &columns(*table))?;
        output = output.with(*table, Box::new(csv));
    }
    Ok(Written { output, folder: Some(folder.to_owned()), tables: tables.len(), replaced })
}

/// Begins tables as Parquet: `FOLDER/TABLE/group=GROUP/run=RUN/TABLE.parquet`.
#[cfg(feature = "parquet")]
pub(super) fn parquet(folder: &Path, tables: &[Table]) -> Result<Written> {
    if folder.exists() && !folder.is_dir() {
        bail!("{} is a file; --parquet names a folder", folder.display());
    }
    let mut output = Output::default();
    for table in tables {
        let (root, name) = (folder.join(table.name()), format!("{}.parquet", table.name()));
        let make = move |group: Option<&str>, run: &str| -> io::Result<Box<dyn Sink>> {
            let place = root.join(partition("group", group)).join(partition("run", Some(run)));
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", place.display()));
            std::fs::create_dir_all(&place).map_err(named)?;
            Ok(Box::new(AtomicFile::create(&place.join(&name))?))
        };
        let parquet = export::Parquet::new(table.name(), &columns(*table), Box::new(make))?;
        output = output.with(*table, Box::new(parquet));
    }
    Ok(Written { output, folder: Some(folder.to_owned()), tables: tables.len(), replaced: false })
}

/// Refuses Parquet: this program was built without it.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_: &Path, _: &[Table]) -> Result<Written> {
    bail!("this program was built without Parquet; build it with --features parquet, or use --csv")
}

/// The folder of a Hive partition: characters that could end the name or leave the folder are escaped as `%NN`, and an
/// absent value has the name that engines read as null.
#[cfg(feature = "parquet")]
fn partition(key: &str, value: Option<&str>) -> String {
    let Some(value) = value else { return format!("{key}=__HIVE_DEFAULT_PARTITION__") };
    let mut name = format!("{key}=");
    for c in value.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '+' | ',' | '@' | '~' => name.push(c),
            c if c.is_ascii() => name.push_str(&format!("%{:02X}", u32::from(c))),
            c => name.push(c),
        }
    }
    name
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;

    #[test]
    fn names_of_partitions_stay_in_their_folder() {
        assert_eq!(partition("run", Some("a/1.dat")), "run=a%2F1.dat");
        assert_eq!(partition("group", Some("x=1 %")), "group=x%3D1%20%25");
        assert_eq!(partition("group", None), "group=__HIVE_DEFAULT_PARTITION__");
    }
}
