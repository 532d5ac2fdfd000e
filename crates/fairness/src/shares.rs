//! The shares of cgroups by weight, which a pass of their own finds.

use anyhow::Result;
use entitlement::{ShareMeter, SharesReport, WeightTree};
use membership::{Cgroups, Processes};
use session::Session;
use session::args::BeginArgs;

/// Measures the shares of all cgroups in the window of a session.
pub(crate) fn measure(session: &Session, begin: &BeginArgs) -> Result<SharesReport> {
    let machine = session.machine.as_ref();
    let processes = Processes::of(&session.trace, machine);
    let cgroups = Cgroups::of(&session.trace, machine, &processes);
    match WeightTree::of(machine, &cgroups) {
        Ok(tree) => Ok(session.follow(begin, session.page(), || ShareMeter::new(&tree, &cgroups))?.output),
        Err(why) => Ok(SharesReport { groups: Vec::new(), unknown: Some(why.to_owned()) }),
    }
}
