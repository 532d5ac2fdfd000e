//! The specification that a user names, and its fit to a trace.

use crate::recorded::catalog;
use crate::{MAX_SIZE, Plan, Spec, VIEWS};
use anyhow::{Context, Result, anyhow, bail};
use session::Session;
use session::args::read_text;
use std::path::Path;

/// The text of a specification: of a file, or of one that comes with the program.
pub(crate) fn source(named: &str) -> Result<String> {
    let path = Path::new(named);
    if let Some(view) = VIEWS.iter().find(|view| view.name == named).filter(|_| !path.exists()) {
        return Ok(view.source.to_owned());
    }
    if !path.exists() {
        let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
        bail!("{named}: no such file, and no specification of this name comes with the program: {}", names.join(", "));
    }
    let size = path.metadata().with_context(|| named.to_owned())?.len();
    if size > MAX_SIZE as u64 {
        bail!("{named}: a specification is at most {} kB long", MAX_SIZE / 1024);
    }
    read_text(path)
}

/// A specification that fits a trace.
pub(crate) fn fitting(session: &Session, named: &str) -> Result<(Spec, Plan)> {
    let spec = Spec::parse(&source(named)?).map_err(|e| anyhow!("--plot {named}: {e}"))?;
    let plan = Plan::new(&spec, &catalog(session)).map_err(|e| anyhow!("--plot {named}: {e}"))?;
    Ok((spec, plan))
}
