//! The critical path of the application, by the definition of `path`.

use crate::{FoundPath, PathFinding};
use anyhow::Result;
use path::find_of_command;
use sched::pass::Window;
use session::Session;
use session::args::BeginArgs;

/// Finds the path in a window.
pub(super) fn of(session: &Session, window: Window) -> Result<PathFinding> {
    let found = match find_of_command(session, &BeginArgs::default(), window, 0)? {
        Ok(outcome) => outcome.output,
        Err(why) => return Ok(PathFinding::NoApplication(why)),
    };
    let end = |name: &str, at: Option<sched::Ts>| at.map(|at| format!("--{name} {}ns", at.since(session.start).0));
    let ends: Vec<String> = [end("min", window.from), end("max", window.to)].into_iter().flatten().collect();
    let command = session.drawable.one_line("path", &ends);
    Ok(PathFinding::Found(Box::new(FoundPath { path: found, command })))
}
