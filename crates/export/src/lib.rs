//! The facts of a trace as tables: one row for each run of a task, wait, idle stretch, episode, migration, wakeup and event.
//!
//! In goes a trace, out come CSV, Parquet or Perfetto. The analyses of the other crates pass each fact to [`Tables`], which makes
//! it a row of a [`FactTable`] and gives it to [`Output`] as it comes: memory does not grow with the trace, and sums over a table
//! are the numbers of the commands. Begin reading in `schema.rs`, the tables and their columns, then `rows.rs`.
//!
//! ```
//! use export::{FactTable, Output, TableWriter, Tables, Value};
//! use sched::Pass;
//! use std::io;
//! use std::sync::{Arc, Mutex};
//! use workcons::{ListedEpisode, Options, WorkConservation};
//!
//! /// Sums the lengths of the rows.
//! struct Sum(Arc<Mutex<i64>>);
//!
//! impl TableWriter for Sum {
//!     fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
//!         if let Value::Int(length) = values[1] {
//!             *self.0.lock().unwrap() += length;
//!         }
//!         Ok(())
//!     }
//! #     fn begin(&mut self, _: Option<&str>, _: &str) -> io::Result<()> { Ok(()) }
//! #     fn restart(&mut self) -> io::Result<()> { Ok(()) }
//! #     fn end(&mut self) -> io::Result<()> { Ok(()) }
//! #     fn finish(self: Box<Self>) -> io::Result<()> { Ok(()) }
//! }
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let sum = Arc::default();
//! let output = Output::default().with(FactTable::Episode, Box::new(Sum(Arc::clone(&sum))));
//! let tables = Tables::new(&output);
//! let episode = |episode: &ListedEpisode| tables.episode(episode);
//! let options = Options::default();
//! let analysis = || WorkConservation::new(&options).listing(&episode);
//! Pass::over(events.as_slice()).run(analysis).unwrap_or_else(|never| match never {});
//! assert_eq!(*sum.lock().unwrap(), 200);
//! ```

mod command;
mod csv;
mod on_cpu;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
mod rows;
mod schema;
mod value;

pub use command::{ExportArgs, ExportCommand, write_perfetto};
pub use csv::Csv;
pub use on_cpu::{RestartRows, TaskRuns};
pub use output::{Output, Sink, TableWriter};
#[cfg(feature = "parquet")]
pub use parquet::{Encoders, Make, Parquet};
pub use perfetto::{EventRun, ListedTask, Perfetto, PerfettoTracks, RecordForms};
pub use rows::{EventRow, OnCpuRow, Tables};
pub use schema::{Column, FactTable, SCHEMA, Type, markdown};
pub use value::Value;
