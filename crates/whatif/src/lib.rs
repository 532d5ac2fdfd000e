//! The work that a trace shows, under other policies (`docs/questions/whatif.md`).
//!
//! In goes a trace, out come predictions with intervals. [`ModelBuilder`] is an analysis that turns a trace into work: programs
//! of tasks. [`simulate`] executes the work under a [`Policy`] and emits the scheduler's events of that run, which are measured
//! as those of a trace are. Begin reading in `model.rs`, then `policy.rs` and `engine/mod.rs`.
//!
//! ```
//! use sched::{Pass, Topology};
//! use std::ops::ControlFlow;
//! use whatif::{BuildOptions, Costs, EngineOptions, Interrupts, ModelBuilder, Order, Steal, Wakeups, simulate};
//!
//! // A task waits on CPU 0 for 200 ns, from 200 on, while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let build = BuildOptions::default();
//! let model = Pass::over(events.as_slice()).run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
//! let topology = Topology::default();
//! let (order, costs, interrupts) = (Order::Fifo, Costs::default(), Interrupts::KeepLength);
//! let options = EngineOptions { topology: &topology, order, costs, interrupts, wakeups: Wakeups::ByKind };
//! // CPU 1 went idle before: a policy that steals on the way to idle gains nothing here.
//! let run = simulate(&model, &mut Steal { within: None }, &options, &mut |_| ControlFlow::Continue(()));
//! assert_eq!((run.end.0, run.steals), (600, 0));
//! ```

mod args;
mod balancer;
mod bound;
mod builder;
mod burst_ends;
mod chances;
mod costs;
mod document;
mod domains;
mod engine;
mod figure;
mod kernel;
mod measures;
mod model;
mod moves;
mod near_idle;
mod of_trace;
mod policy;
mod predict;
mod question;
mod recording;
mod report;
mod runs;
mod saved;
mod simulated;
mod skill;
mod text;
mod text_of_bound;
mod timers;
mod track;
mod unfit;
mod until_cut;
mod without;

pub use args::WhatifArgs;
pub use bound::{BoundScope, Granted, least_elapsed};
pub use builder::{BuildOptions, Context, ModelBuilder};
pub use chances::{Balancing, PullRate};
pub use engine::{
    Balancer, Costs, EngineOptions, Interrupts, LONGEST, Machine, NewIdleCost, Order, Placement, Policy, Pull, Pulls,
    Run, TakesEvent, Wakeups, simulate,
};
pub use kernel::{KernelBalancing, Mechanisms, NewIdleRule};
pub use measures::{CommandWaits, QueueWaits, Reports, RunFigures, measures};
pub use model::{
    Begin, ClassSum, JoinIndex, Model, ModelCpu, ModelSleep, ModelTask, MoveKind, PlacedOn, ProgramStep, QueueJoin,
    QueuedMove, SleepClass, SleepIndex, Taken, TaskIndex,
};
pub use of_trace::{build_options, origins};
pub use policy::{Ideal, Observed, PolicyName, Steal};
pub use predict::{MOST_ERROR, MOST_WIDTH, PredictOptions, measure_run, predict};
pub use question::WhatifQuestion;
pub use recording::write_run;
pub use report::{
    Bound, Calibration, CommandError, CostsOfPolicies, Estimate, LeastElapsed, OnPath, PolicyRow, Prediction,
};
pub use runs::{GroupEstimate, GroupPolicy, WhatifGroup};
pub use saved::save_run;
pub use simulated::SimulatedRun;
pub use skill::{Skill, SkillMetric};
pub use unfit::{MOST_CONTRADICTORY, Unfit};
pub use without::{CauseCurve, CurvePoint};
