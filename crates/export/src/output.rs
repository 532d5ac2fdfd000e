//! The destination of the rows: one writer for each table that is wanted.

use crate::schema::FactTable;
use crate::value::Value;
use session::atomic_file::AtomicFile;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that takes its place when it is complete. One that is dropped before leaves nothing behind.
pub trait Sink: Write + Send {
    /// Removes all behind the first `to` bytes; writing goes on there. Called when a pass begins again; `to` is never
    /// behind the end.
    fn cut(&mut self, to: u64) -> io::Result<()>;

    /// Puts the file in its place. Called once, behind the last byte.
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

/// The writer of one table in one format. For each run, [`begin`](TableWriter::begin) comes first, then the rows, and
/// [`end`](TableWriter::end) last; [`finish`](TableWriter::finish) ends the table.
pub trait TableWriter: Send {
    /// Begins the rows of a run, in a group of runs if there are several. Called once for each run, never before the
    /// last one has ended.
    fn begin(&mut self, group: Option<&str>, run: &str) -> io::Result<()>;

    /// Forgets the rows since the run began: they come once more, since the pass begins again. Rows of earlier runs
    /// must stay.
    fn restart(&mut self) -> io::Result<()>;

    /// Adds a row. `values` has one value for each column of the table, in their order, of the type of the column or
    /// null. Called for every fact of the trace, in an order that does not depend on the threads.
    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()>;

    /// Completes the rows of the run. Called once for each run, and not for one whose pass failed.
    fn end(&mut self) -> io::Result<()>;

    /// Completes the table, and puts its files in their places. Called once, behind the last run.
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
    /// Adds a writer of this table; tables without one are not written.
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

    /// Begins the rows of a run in all tables.
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
        // Two tables can have more columns: metrics, and fields of events.
        let is_open = matches!(table, FactTable::Run | FactTable::Event);
        debug_assert!(is_open || values.len() == table.columns().len(), "{}", table.name());
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

    /// Completes the rows of the run in all tables. Returns the first error of a row, if there was one.
    pub fn end(&self) -> io::Result<()> {
        self.check()?;
        self.each(|rows| rows.end())
    }

    /// Completes all tables. Returns the first error of a row, if there was one.
    pub fn finish(self) -> io::Result<()> {
        self.check()?;
        let rows = self.tables.into_iter().flatten();
        rows.map(|rows| rows.into_inner().unwrap_or_else(PoisonError::into_inner)).try_for_each(TableWriter::finish)
    }
}
