//! The run as it would have been, as a recording in a file: `--as-trace`, and the second trace of `view --whatif`.

use crate::args::WhatifArgs;
use crate::engine::Costs;
use crate::model::Model;
use crate::of_trace::{asked_policies, predicted};
use crate::policy::PolicyName;
use crate::predict::Assumed;
use crate::recording::write_run;
use anyhow::{Result, bail};
use machine::Machine;
use session::Session;
use session::atomic_file::AtomicFile;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The first policy that is not the trace's own, which is drawn and saved; the trace's own where no other is asked for.
pub(crate) fn other_policy(args: &WhatifArgs, session: &Session) -> PolicyName {
    asked_policies(args, session)
        .into_iter()
        .find(|policy| *policy != PolicyName::Observed)
        .unwrap_or(PolicyName::Observed)
}

/// Writes the run of a trace's model under a policy to `path`, and its machine file beside it.
pub(crate) fn save(
    args: &WhatifArgs,
    session: &Session,
    (model, costs): (&Model, Costs),
    policy: PolicyName,
    path: &Path,
) -> Result<()> {
    let beside = Machine::path_beside(path);
    if session.machine.is_some() && beside.exists() && !path.exists() {
        let (beside, path) = (beside.display(), path.display());
        bail!("{beside} exists and is not of {path}; remove it, or choose another name for the output");
    }
    let costs = if policy.is_free() { Costs::default() } else { costs };
    let engine = Assumed::usual(args.queue).engine(&session.topology, costs);
    let kernel = session.trace.info().kernel.unwrap_or_default();
    let mut file = BufWriter::new(AtomicFile::create(path)?);
    // Errors of the file name it.
    write_run(model, &mut *policy.policy(), &engine, &kernel, &mut file)?;
    let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    // Neither takes its place before both are written.
    let machine = session.machine.as_ref().map(|machine| begin(machine, &beside)).transpose()?;
    file.finish()?;
    Ok(machine.map_or(Ok(()), AtomicFile::finish)?)
}

fn begin(machine: &Machine, path: &Path) -> Result<AtomicFile> {
    let mut file = AtomicFile::derived(path)?;
    file.write_all(serde_json::to_string_pretty(machine)?.as_bytes())?;
    Ok(file)
}

/// Writes the run that a trace would have been under a policy, by the usual rules, as a recording. Refused where `whatif` has no
/// prediction for the trace.
pub fn save_run(session: &Session, policy: PolicyName, path: &Path) -> Result<()> {
    let args = WhatifArgs::of_policy(policy, session.path())?;
    let most_turns = Model::most_turns_of(std::fs::metadata(session.path())?.len());
    let (run, model, costs) = predicted(&args, session, most_turns)?;
    refuse_unpredictable(session, &run.prediction.calibration.reasons)?;
    save(&args, session, (&model, costs), policy, path)
}

/// Refuses a run of which there is no prediction.
pub(crate) fn refuse_unpredictable(session: &Session, reasons: &[String]) -> Result<()> {
    if !reasons.is_empty() {
        bail!("{}: not predictable from this trace: {}", session.name(), reasons.join("; "));
    }
    Ok(())
}
