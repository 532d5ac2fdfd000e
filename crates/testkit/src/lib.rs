//! For tests only, never published: real trace.dat bytes, and schedules whose true state is known.
//!
//! In go seeds and programs of tasks, out come events, files, and the truth about them. Begin reading in `simulation.rs`, then
//! `file.rs`.
//!
//! * [`TraceBuilder`] writes files of either version, any byte order, word size, page size and
//!   compression. It is written from the description of the format (`trace-cmd.dat(5)`, the
//!   kernel's ring-buffer documentation), and shares no code with the reader.
//! * [`PerfBuilder`] and [`PerfettoBuilder`] write the files of other recorders, [`tar()`] an archive of files,
//!   [`viewer_json`] and [`viewer_page`] the files of trace viewers.
//! * [`KernelLayout`] describes the sched events as kernels of several ages lay them out.
//! * [`Simulation`] runs CPUs and tasks at random, and records the running task and the run queue of
//!   each CPU after each event.
//! * [`Workload`] runs programs of tasks by known rules, with or without stealing.
//! * [`Eevdf`] runs tasks of several weights on one CPU under EEVDF, and records each pick and its lag.
//! * [`Laws`] is an analysis that checks the invariants of every trace; [`in_pieces`] checks that an analysis finds the same
//!   in pieces of any length.
//! * [`any_events`] makes events of any bytes, which contradict themselves.
//! * [`peak`] runs a program and returns its peak memory, for benchmarks [`timed`] with its elapsed time.
//!
//! ```
//! use testkit::{Simulation, TraceBuilder};
//!
//! let simulation = Simulation::run(1, 4, 100);
//! assert_eq!(simulation.events.len(), simulation.truth.len());
//! let bytes = TraceBuilder::default().events(&simulation.events).build();
//! assert!(bytes.starts_with(b"\x17\x08\x44tracing"));
//! ```

mod eevdf;
mod example;
mod ext;
mod file;
mod hostile;
mod laws;
mod layout;
mod peak;
mod perf;
mod perfetto;
mod pieces;
mod ring;
mod simulation;
mod tar;
mod viewer;
mod workload;

pub use eevdf::{Eevdf, SimulatedPick};
pub use example::a_wait_beside_an_idle_cpu;
pub use ext::ExtQueues;
pub use file::{Buffer, Compression, TraceBuilder};
pub use hostile::any_events;
pub use laws::{LawReport, Laws};
pub use layout::{Age, KernelLayout};
pub use peak::{MeasuredRun, measured, peak, timed};
pub use perf::{PerfBuilder, PerfForm};
pub use perfetto::{PerfettoBuilder, PerfettoForm};
pub use pieces::{PieceTally, in_pieces};
pub use ring::Ring;
pub use simulation::{Rng, Simulation, Truth, is_stopper, with_throttling};
pub use tar::tar;
pub use viewer::{gzip, viewer_json, viewer_page};
pub use workload::{Operation, Worker, Workload};

/// The byte order of a file to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Appends `value` in `size` bytes.
    pub fn put(self, to: &mut Vec<u8>, value: u64, size: usize) {
        match self {
            ByteOrder::Little => to.extend(&value.to_le_bytes()[..size]),
            ByteOrder::Big => to.extend(&value.to_be_bytes()[8 - size..]),
        }
    }
}
