//! The figure of `schedviz workcons` for one run: strips, and a closer look at the longest episodes.

use crate::{Look, Report};
use anyhow::Result;
use draw::{Figure, PT, Unit};
use lanes::{ColorBy, Coloring, Lane};
use sched::{Diagnostics, Dur, Ts};
use session::Session;
use session::heading::Loss;
use timeline::Sheet;

/// The number of episodes that are drawn closely.
const LOOKS: usize = 3;

/// The figure of a report that was made with strips.
pub(crate) fn drawn_run(
    session: &Session,
    report: &Report,
    diagnostics: &Diagnostics,
    sheet: &Sheet,
) -> Result<Figure> {
    let coloring = session.learned(Coloring { by: ColorBy::Command, ..Coloring::default() })?;
    let views: Vec<(Vec<Lane>, lanes::Options)> = report
        .longest()
        .iter()
        .take(LOOKS)
        .map(|episode| {
            // Some time before and after shows how it began and how it ended.
            let margin = (episode.duration_ns.0 / 4).max(1_000);
            let (from, to) = around(session, episode.start_ns, episode.duration_ns, margin);
            let mut options = session.lanes(from, to, coloring.clone());
            session.join_lanes(&mut options);
            session.ran_by(lanes::Options { pictures: LOOKS as u32, ..options })
        })
        .collect::<Result<_>>()?;
    let looks: Vec<Look<'_>> = views
        .iter()
        .map(|(lanes, options)| Look {
            from: options.from,
            to: options.to,
            draw: Box::new(|figure, scale, top, height| {
                lanes::draw_lanes(figure, lanes, options, scale, top, height);
            }),
        })
        .collect();
    let lanes = views.first().map_or(1, |(_, options)| options.lane_count().max(1)) as Unit;
    let lane_height = (200 * PT / lanes).clamp(PT, 14 * PT) * lanes;
    let all: Vec<Lane> = views.iter().flat_map(|(lanes, _)| lanes).cloned().collect();
    let legend =
        |listed: usize| views.first().map_or_else(Vec::new, |(_, options)| lanes::area_legend(&all, options, listed));
    let loss = Loss {
        gaps: report.unknown.gaps.iter().map(|g| g.gaps).sum(),
        unknown_ns: report.unknown.gaps.iter().map(|g| g.ns).fold(0, u64::saturating_add),
        cpu_time_ns: report.window_ns.0.saturating_mul(report.cpus.observed as u64),
    };
    let heading = session.lossy_heading(&loss, diagnostics).on(sheet);
    Ok(crate::run_figure(report, session.start, &looks, lane_height, &legend, &heading))
}

/// The time around an episode.
fn around(session: &Session, start: Ts, duration: Dur, margin: u64) -> (Ts, Ts) {
    let from = Ts(start.0.saturating_sub_unsigned(margin)).max(session.from);
    let to = start.after(duration).after(Dur(margin)).min(session.to);
    (from, to)
}
