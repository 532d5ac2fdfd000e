//! Marks over the lanes of `schedviz dat2graph`: `--path` and `--wakeups`.

use crate::Dat2graphArgs;
use anyhow::Result;
use draw::{Figure, Unit};
use events::options;
use events::{WakeupReport, Wakeups};
use lanes::{Lane, Options, Overlay};
use path::Path;
use sched::{Comm, Pid, Ts};
use session::Session;
use session::args::BeginArgs;
use timeline::{CpuLanes, TimeScale};

/// The marks that are asked for.
pub(crate) enum Overlaid {
    None,
    Path(Box<Path>),
    Wakeups(WakeupReport),
}

/// Finds the marks.
pub(crate) fn find(args: &Dat2graphArgs, session: &Session) -> Result<Overlaid> {
    let begin = BeginArgs::default();
    if args.draw_path || args.path_to.is_some() {
        let found = path::find(session, &begin, (args.path_to.map(Pid), None), 0)?;
        return Ok(Overlaid::Path(Box::new(found.output)));
    }
    if !args.wakeups {
        return Ok(Overlaid::None);
    }
    let tasks = args.tasks.chosen(session)?;
    let wanted = |pid: Pid, command: Comm, ts: Ts| tasks.takes(pid, ts, || command);
    let analysis = || Wakeups::new(&session.shown.chosen, session.from, session.to).only(&wanted);
    Ok(Overlaid::Wakeups(session.follow(&begin, session.page(), analysis)?.output))
}

impl Overlaid {
    /// The lanes of a path where they are not all: if no others were asked for, those of many CPUs that it uses. With them the
    /// number of CPUs that have none.
    pub(crate) fn fewer(
        &self,
        args: &Dat2graphArgs,
        session: &Session,
        options: &Options,
    ) -> Result<Option<(Vec<Lane>, Options, usize)>> {
        let (Overlaid::Path(path), None) = (self, args.lanes) else { return Ok(None) };
        let mut shown = session.shown.clone();
        let hidden = shown.only_where_many(|cpu| path.cpus.iter().any(|share| share.of.cpu == cpu));
        if hidden == 0 {
            return Ok(None);
        }
        // Fewer lanes have finer columns.
        let options = Options { cpus: shown.cpus, all_cpus: shown.all, ..options.clone() };
        let (lanes, options) = session.ran_by(options)?;
        Ok(Some((lanes, options, hidden)))
    }

    /// The figure of these CPUs with these marks; `hidden` CPUs have no lane.
    pub(crate) fn over<T>(
        &self,
        session: &Session,
        drawn: &Options,
        hidden: usize,
        figure: impl FnOnce(Option<&Overlay<'_>>) -> T,
    ) -> T {
        match self {
            Overlaid::None => figure(None),
            Overlaid::Path(path) => {
                let (cpus, all_cpus) = (drawn.cpus.clone(), drawn.all_cpus.clone());
                let shown = CpuLanes { cpus, all_cpus, ..session.cpu_lanes(session.from, session.to) };
                let draw = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
                    path::draw(figure, path, &shown, scale, top, height);
                };
                let caption = format!("{}{}", path::caption(path), path::without_lanes(hidden));
                let legend = path::legend(path);
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
