//! The shares of cgroups by weight, which a pass of their own finds; the evenness among the application's members.

use anyhow::Result;
use entitlement::{ShareMeter, SharesReport, WeightTree};
use membership::{Cgroups, Processes};
use serde::Serialize;
use session::Session;
use session::args::BeginArgs;

/// Measures the shares of all cgroups in the window of a session.
pub(crate) fn measure(session: &Session, begin: &BeginArgs) -> Result<SharesReport> {
    let machine = session.machine.as_ref();
    let processes = Processes::of(&session.trace, machine);
    let cgroups = Cgroups::of(&session.trace, machine, &processes);
    match WeightTree::of(machine, &cgroups) {
        Ok(tree) => Ok(session.follow_in_pieces(begin, session.page(), || ShareMeter::new(&tree, &cgroups))?.output),
        Err(why) => Ok(SharesReport { groups: Vec::new(), unknown: Some(why.to_owned()) }),
    }
}

/// The evenness among the members of the application.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationShares {
    /// The number of members of the application.
    pub members: usize,
    /// The Gini coefficient of their run times, from 0 to 1; null if none ran.
    pub gini: Option<f64>,
    /// Jain's index of their run times, from 0 to 1; null if none ran.
    pub jain: Option<f64>,
    /// Jain's index of their run times divided by the weights; null if none ran.
    pub weighted_jain: Option<f64>,
}
