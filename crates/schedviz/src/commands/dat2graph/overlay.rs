//! Marks over the lanes of `schedviz dat2graph`: `--path` and `--wakeups`.

use super::Dat2graphArgs;
use crate::args::BeginArgs;
use crate::commands::events::options;
use crate::commands::path;
use crate::session::Session;
use anyhow::Result;
use critical_path::Path;
use dat2graph::Overlay;
use draw::{Figure, Unit};
use events::{WakeupReport, Wakeups};
use sched::{Comm, Pid};
use timeline::TimeScale;

/// The marks that are asked for.
pub(super) enum Overlaid {
    None,
    /// The path, and the number of CPUs that it does not use and that have no lane.
    Path(Box<Path>, usize),
    Wakeups(WakeupReport),
}

/// Finds the marks. Where there are many CPUs, those stay that a path uses.
pub(super) fn find(args: &Dat2graphArgs, session: &mut Session) -> Result<Overlaid> {
    let begin = BeginArgs::default();
    if args.draw_path || args.path_to.is_some() {
        let found = path::find(session, &begin, (args.path_to.map(Pid), None), 0)?.output;
        let hidden = match args.tool.lanes {
            None => session.shown.only_where_many(|cpu| found.cpus.iter().any(|share| share.of.cpu == cpu)),
            Some(_) => 0,
        };
        return Ok(Overlaid::Path(Box::new(found), hidden));
    }
    if !args.wakeups {
        return Ok(Overlaid::None);
    }
    let tasks = args.tasks.filter();
    let wanted = |pid: Pid, command: Comm| tasks.takes(pid, || command);
    let analysis = || Wakeups::new(&session.shown.chosen, session.from, session.to).only(&wanted);
    Ok(Overlaid::Wakeups(session.follow(&begin, session.page(), analysis)?.output))
}

impl Overlaid {
    /// The figure with these marks.
    pub(super) fn over<T>(&self, session: &Session, figure: impl FnOnce(Option<&Overlay<'_>>) -> T) -> T {
        match self {
            Overlaid::None => figure(None),
            Overlaid::Path(path, hidden) => {
                let cores = session.cores(session.from, session.to);
                let draw = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
                    critical_path::draw(figure, path, &cores, scale, top, height);
                };
                let caption = format!("{}{}", critical_path::caption(path), critical_path::without_lanes(*hidden));
                let legend = critical_path::legend(path);
                figure(Some(&Overlay { is_pale: true, caption, legend, draw: &draw }))
            }
            Overlaid::Wakeups(report) => {
                let options = options(session);
                let draw = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
                    events::draw_wakeups(figure, report, &options, scale, top, height);
                };
                let (caption, legend) = (events::wakeups_caption(report), events::wakeups_legend(report));
                // Bars would hide in colours.
                let is_pale = report.wakeups.is_empty();
                figure(Some(&Overlay { is_pale, caption, legend, draw: &draw }))
            }
        }
    }
}
