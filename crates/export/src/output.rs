//! The destination of the rows: one writer for each table that is wanted.

use crate::schema::FactTable;
use crate::value::Value;
use session::atomic_file::AtomicFile;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that takes its place when it is complete.
pub trait Sink: Write + Send {
    /// Removes all behind this number of bytes; writing goes on there.
    fn cut(&mut self, to: u64) -> io::Result<()>;

    /// Puts the file in its place.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Sink for AtomicFile {
    fn cut(&mut self, to: u64) -> io::Result<()> {
        AtomicFile::cut(self, to)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        AtomicFile::finish(*self)
    }
}

/// The writer of one table in one format.
pub trait TableWriter: Send {
    /// Begins with the rows of a run.
    fn begin(&mut self, group: Option<&str>, run: &str) -> io::Result<()>;

    /// Forgets the rows since the run began: they come once more.
    fn restart(&mut self) -> io::Result<()>;

    /// Adds a row.
    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()>;

    /// Completes the rows of the run.
    fn end(&mut self) -> io::Result<()>;

    /// Completes the table.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// The tables that are written. Each has a lock of its own, so that analyses on several threads write to different
/// tables; the rows of one table come from one analysis, and their order does not depend on the threads.
#[derive(Default)]
pub struct Output {
    tables: [Option<Mutex<Box<dyn TableWriter>>>; FactTable::ALL.len()],
    /// The first error. Rows behind it are dropped, since an analysis cannot stop the pass.
    failed: Mutex<Option<io::Error>>,
}

fn locked<T: ?Sized>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Output {
    /// With a writer of this table; tables without one are not written.
    #[must_use]
    pub fn with(mut self, table: FactTable, rows: Box<dyn TableWriter>) -> Output {
        self.tables[table as usize] = Some(Mutex::new(rows));
        self
    }

    /// Whether this table is written.
    pub fn has(&self, table: FactTable) -> bool {
        self.tables[table as usize].is_some()
    }

    fn each(&self, mut work: impl FnMut(&mut dyn TableWriter) -> io::Result<()>) -> io::Result<()> {
        self.tables.iter().flatten().try_for_each(|rows| work(&mut **locked(rows)))
    }

    /// Begins with the rows of a run.
    pub fn begin(&self, group: Option<&str>, run: &str) -> io::Result<()> {
        self.each(|rows| rows.begin(group, run))
    }

    /// Forgets the rows of the run: the pass is made once more.
    pub fn restart(&self) {
        if let Err(error) = self.each(|rows| rows.restart()) {
            self.fail(error);
        }
    }

    /// Adds a row, if the table is written. The first error is reported by [`Output::check`].
    pub fn row(&self, table: FactTable, values: &[Value<'_>]) {
        debug_assert!(table == FactTable::Run || values.len() == table.columns().len(), "{}", table.name());
        if let Some(rows) = &self.tables[table as usize]
            && let Err(error) = locked(rows).row(values)
        {
            self.fail(error);
        }
    }

    fn fail(&self, error: io::Error) {
        locked(&self.failed).get_or_insert(error);
    }

    /// Returns the first error, if a row could not be written.
    pub fn check(&self) -> io::Result<()> {
        locked(&self.failed).take().map_or(Ok(()), Err)
    }

    /// Completes the rows of the run.
    pub fn end(&self) -> io::Result<()> {
        self.check()?;
        self.each(|rows| rows.end())
    }

    /// Completes all tables.
    pub fn finish(self) -> io::Result<()> {
        self.check()?;
        let rows = self.tables.into_iter().flatten();
        rows.map(|rows| rows.into_inner().unwrap_or_else(PoisonError::into_inner)).try_for_each(TableWriter::finish)
    }
}
