//! /proc/schedstat, and the columns that the task-stealing series derived from it.
//!
//! In go two copies of the file, or a trace; out come the rows of the table. Begin reading in `parse.rs`, a snapshot, then
//! `delta.rs` and `trace.rs`.
//!
//! The version number alone does not identify the layout: private series used 16 and 17 for layouts other than
//! today's. The version, the number of fields of a CPU and the number of fields of a domain decide together;
//! a file that fits no layout is refused ([`SchedstatError::Layout`]).
//!
//! | column | from two snapshots | from a trace |
//! |---|---|---|
//! | `%busy` | Σ rq_cpu_time / (CPUs · time) | ∫ CPUs that run a task / (CPUs · window) |
//! | `slice` | Σ rq_cpu_time / Σ pcount | mean length of a completed run |
//! | `sched` | Σ sched_count / CPUs: calls of schedule() | switches / CPUs |
//! | `idle` | Σ sched_goidle / CPUs | switches to the idle task / CPUs |
//! | `wake` | Σ ttwu_count / CPUs: wakeups done *by* the CPU | sched_waking / CPUs |
//! | `%find` | Σ find_time / (CPUs · time); with the series only | |
//! | `steal` | Σ steal / CPUs; with the series only | new-idle pulls / CPUs |
//! | `%speedup` | 100 · (time of base / time of new − 1) | the same |
//!
//! ```
//! use schedstat::FromTrace;
//! use sched::Pass;
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let outcome = Pass::over(events.as_slice()).run(FromTrace::default).unwrap_or_else(|never| match never {});
//! assert_eq!(outcome.output.columns.busy_percent, Some(55.0));
//! ```

mod args;
mod columns;
mod delta;
mod metrics;
mod parse;
mod perf;
mod question;
mod report;
mod trace;

pub use self::parse::{CpuStat, DomainStat, PassedOver, SchedstatError, Snapshot, StatLayout};
pub use args::SchedstatArgs;
pub use columns::{Columns, speedup};
pub use delta::{CpuDelta, Delta, DomainDelta};
pub use metrics::metrics;
pub use question::SchedstatQuestion;
pub use report::{Report, StatRow, domains_text, table};
pub use trace::{FromTrace, TraceColumns};
