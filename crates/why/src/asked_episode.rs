//! One episode of violation for `schedviz why`: `--episode` and `--at`.

use crate::Story;
use crate::WhyArgs;
use anyhow::{Result, anyhow};
use draw::{Figure, Unit};
use lanes::Coloring;
use sched::{Diagnostics, Dur, Ts};
use session::Session;
use timeline::{Sheet, TimeScale};
use workcons::{Options, WorkConservation};

/// The instant whose episode is asked for.
pub(crate) fn instant(args: &WhyArgs, session: &Session, options: &Options<'_>) -> Result<Option<Ts>> {
    let Some(nth) = args.episode else { return Ok(args.at.map(|at| at.in_trace(session.start))) };
    let by_descent = args.waiters.depend_on_descent(&args.tasks);
    let analysis = || WorkConservation::new(options);
    let (report, _) =
        session.measured_in_pieces(&args.begin, session.window, options.application, by_descent, analysis)?;
    let longest = report.longest();
    let wanted = (nth as usize).checked_sub(1).and_then(|nth| longest.get(nth));
    let wanted = wanted.ok_or_else(|| match longest.len() {
        0 => anyhow!("--episode {nth}: work conservation is not violated in the window"),
        n => anyhow!("--episode {nth}: give a number from 1 to {n}, the longest episodes; --at TIME gives any other"),
    })?;
    Ok(Some(wanted.start_ns))
}

/// The figure of an episode: its CPUs with some time around it.
pub(crate) fn figure(session: &Session, trust: &Diagnostics, story: &Story, sheet: &Sheet) -> Result<Figure> {
    let margin = Dur((story.duration_ns.0 / 8).max(1_000));
    let from = Ts(story.start_ns.0.saturating_sub_unsigned(margin.0)).max(session.from);
    let to = story.start_ns.after(story.duration_ns).after(margin).min(session.to);
    let coloring = session.learned(Coloring { by: session.usual_color(), ..Coloring::default() })?;
    let options = session.lanes(from, to, coloring);
    // The waits over the lanes need room in the file, too.
    let (lanes, options) = session.ran_by(lanes::Options { pictures: 3, ..options })?;
    let draw = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
        lanes::draw_lanes(figure, &lanes, &options, scale, top, height);
    };
    let legend = lanes::area_legend(&lanes, &options, 12);
    let heading = session.general_heading(trust).on(sheet);
    Ok(crate::story_figure(story, &session.cpu_lanes(from, to), &heading, legend, &draw))
}
