//! What another policy would have done with the work that a trace shows (`docs/definitions.md`, section 10).
//!
//! [`ModelBuilder`] is an analysis that turns a trace into work: programs of tasks. [`simulate`] executes the work under a
//! [`Policy`] and emits the scheduler's events of that run, which are measured as those of a trace are.

mod args;
mod build;
mod costs;
mod engine;
mod measures;
mod model;
mod policy;
mod predict;
mod question;
mod report;
mod simulated;
mod text;

pub use args::WhatifArgs;
pub use build::{BuildOptions, Context, ModelBuilder};
pub use engine::{Costs, EngineOptions, Interrupts, LONGEST, Machine, Order, Run, TakesEvent, simulate};
pub use measures::{CommandWaits, RunFigures};
pub use model::{
    Begin, ClassSum, JoinIndex, Model, ModelCpu, ModelSleep, ModelTask, PlacedOn, QueueJoin, QueuedMove, SleepClass,
    SleepIndex, Step, Taken, TaskIndex,
};
pub use policy::{Ideal, Observed, Placement, Policy, PolicyName, Steal};
pub use predict::{MOST_ERROR, MOST_UNKNOWN, PredictOptions, measure_run, predict};
pub use question::{WhatifQuestion, WhatifReport};
pub use report::{Calibration, CommandError, CostsOfPolicies, Estimate, PolicyRow, Prediction};
pub use simulated::SimulatedRun;
