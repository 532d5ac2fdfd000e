//! The files of the tables.

use super::fields::FieldColumns;
use super::run_row;
use crate::{Csv, FactTable, Output, Sink};
use anyhow::{Context, Result, bail};
use session::atomic_file::{AtomicFile, Folders, WholeFolder};
use session::messages::emit;
use session::writer;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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

/// The folder of the tables. A new one appears when all of them are complete; in one that exists, or that another export
/// has made meanwhile, each table then takes the place of its own file.
enum Folder {
    New(WholeFolder),
    /// A folder that was there, with the folders that were created in it.
    Existing(PathBuf, Mutex<Vec<Folders>>),
}

impl Folder {
    fn open(path: &Path) -> Result<Folder> {
        if path.is_dir() {
            return Ok(Folder::Existing(path.to_owned(), Mutex::default()));
        }
        WholeFolder::create(path).map(Folder::New)
    }

    /// Begins a file, at this path below the folder.
    fn file(&self, name: &Path) -> io::Result<AtomicFile> {
        match self {
            Folder::New(whole) => whole.file(name),
            Folder::Existing(path, created) => {
                let path = path.join(name);
                if let Some(folder) = path.parent() {
                    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
                    let folders = Folders::create(folder).map_err(named)?;
                    created.lock().unwrap_or_else(PoisonError::into_inner).push(folders);
                }
                AtomicFile::derived(&path)
            }
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Folder::New(whole) => whole.finish_or_join(),
            Folder::Existing(_, created) => {
                created.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().for_each(Folders::keep);
                Ok(())
            }
        }
    }
}

/// The output, and the words for it.
pub(super) struct Written {
    pub(super) output: Output,
    /// The folder and its name, unless standard output was asked for.
    folder: Option<(PathBuf, Arc<Folder>)>,
    /// The number of tables.
    tables: usize,
    replaced: bool,
}

impl Written {
    /// Puts all files in their places, and reports them.
    pub(super) fn finish(self, quiet: bool) -> Result<()> {
        self.output.finish()?;
        let Some((path, folder)) = self.folder else { return Ok(()) };
        // The writers of the tables are gone: no other owner is left.
        Arc::into_inner(folder).map_or(Ok(()), Folder::finish)?;
        if !quiet {
            let (verb, tables) = (writer::verb(self.replaced), self.tables);
            let noun = if tables == 1 { "table" } else { "tables" };
            emit(&format!("{verb} {tables} {noun} in {}", path.display()));
        }
        Ok(())
    }
}

/// The columns of a table, those of the fields of events among them.
fn columns(table: FactTable, fields: &FieldColumns) -> Cow<'static, [crate::Column]> {
    match table {
        FactTable::Event => [table.columns(), &fields.columns()].concat().into(),
        FactTable::Run => [table.columns(), &run_row::metric_columns()].concat().into(),
        _ => table.columns().into(),
    }
}

/// Begins tables as comma-separated values in a folder, or one on standard output.
pub(super) fn csv(folder: &Path, tables: &[FactTable], fields: &FieldColumns) -> Result<Written> {
    let mut output = Output::default();
    if folder.as_os_str() == "-" {
        let [table] = tables else {
            bail!("--csv - writes a single table; choose one with --tables, or name a folder");
        };
        let spool = Spool(tempfile::tempfile().context("a temporary file for standard output")?);
        let csv = Csv::new(Box::new(spool), &columns(*table, fields))?;
        let output = output.with(*table, Box::new(csv));
        return Ok(Written { output, folder: None, tables: 1, replaced: false });
    }
    if folder.exists() && !folder.is_dir() {
        bail!("{} is a file; --csv names a folder", folder.display());
    }
    let (mut replaced, files) = (false, Arc::new(Folder::open(folder)?));
    for table in tables {
        let name = format!("{}.csv", table.name());
        replaced |= folder.join(&name).exists();
        let csv = Csv::new(Box::new(files.file(Path::new(&name))?), &columns(*table, fields))?;
        output = output.with(*table, Box::new(csv));
    }
    Ok(Written { output, folder: Some((folder.to_owned(), files)), tables: tables.len(), replaced })
}

/// Begins tables as Parquet: `FOLDER/TABLE/group=GROUP/run=RUN/TABLE.parquet`. `threads`: the number of threads that may be
/// used.
#[cfg(feature = "parquet")]
pub(super) fn parquet(folder: &Path, tables: &[FactTable], fields: &FieldColumns, threads: usize) -> Result<Written> {
    if folder.exists() && !folder.is_dir() {
        bail!("{} is a file; --parquet names a folder", folder.display());
    }
    let (mut output, files) = (Output::default(), Arc::new(Folder::open(folder)?));
    let encoders = crate::Encoders::for_threads(threads);
    for table in tables {
        let (root, files) = (PathBuf::from(table.name()), files.clone());
        let name = format!("{}.parquet", table.name());
        let make = move |group: Option<&str>, run: &str| -> io::Result<Box<dyn Sink>> {
            let place = root.join(partition("group", group)).join(partition("run", Some(run)));
            Ok(Box::new(files.file(&place.join(&name))?))
        };
        let parquet = crate::Parquet::new(table.name(), &columns(*table, fields), Box::new(make), &encoders)?;
        output = output.with(*table, Box::new(parquet));
    }
    Ok(Written { output, folder: Some((folder.to_owned(), files)), tables: tables.len(), replaced: false })
}

/// Refuses Parquet: this program was built without it.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_: &Path, _: &[FactTable], _: &FieldColumns, _: usize) -> Result<Written> {
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
