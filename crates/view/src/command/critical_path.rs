//! The critical path of the application or of a task, by the definition of `path`.

use crate::{FoundPath, PathFinding, PathOf};
use anyhow::Result;
use path::{find_of_command, find_of_task};
use sched::pass::Window;
use session::Session;
use session::args::BeginArgs;

/// Finds the path in a window.
pub(super) fn of(session: &Session, of: PathOf, window: Window) -> Result<PathFinding> {
    let begin = BeginArgs::default();
    let (found, named) = match of {
        PathOf::Task { pid, .. } => (find_of_task(session, &begin, window, pid, 0)?, Some(format!("--pid {pid}"))),
        PathOf::Application => match find_of_command(session, &begin, window, 0)? {
            Ok(outcome) => (outcome, None),
            Err(why) => return Ok(PathFinding::NoApplication(why)),
        },
    };
    let end = |name: &str, at: Option<sched::Ts>| at.map(|at| format!("--{name} {}ns", at.since(session.start).0));
    let ends = [named, end("min", window.from), end("max", window.to)].into_iter().flatten();
    let command = session.drawable.one_line("path", &ends.collect::<Vec<String>>());
    Ok(PathFinding::Found(Box::new(FoundPath { path: found.output, command })))
}
