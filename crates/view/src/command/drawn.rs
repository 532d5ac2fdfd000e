//! The window that the page shows, drawn by `dat2graph`.

use super::other::Sessions;
use crate::{Drawing, Format};
use anyhow::{Result, bail};
use clap::ValueEnum;
use lanes::{ColorBy, Coloring, read_lanes, report};
use parse::Want;
use sched::topology::{CpuOrder, format_cpu_list};
use sched::{Dur, Ts};
use session::Session;
use session::args::needs_groups;
use timeline::Sheet;

/// The resolution of pictures, in dots per inch.
const DPI: f64 = 150.0;

impl Sessions<'_> {
    /// The trace, and the property that decides the colours.
    fn checked(&self, trace: usize, drawing: &Drawing) -> Result<(&Session, ColorBy)> {
        let session = self.of(trace)?;
        let by = match &drawing.color_by {
            None => session.usual_color(),
            Some(name) => ColorBy::from_str(name, false).map_err(|_| anyhow::anyhow!("color-by: no such property"))?,
        };
        if by == ColorBy::Node {
            needs_groups(&session.topology, CpuOrder::Node, "--color-by node")?;
        }
        let is_shown = |cpu| session.shown.cpus.iter().any(|(shown, _)| shown == cpu);
        if !drawing.cpus.is_empty() && !drawing.cpus.iter().any(is_shown) {
            bail!("cpus: none of them has an event");
        }
        Ok((session, by))
    }

    /// The command line that draws the figure.
    pub(super) fn line(&self, trace: usize, drawing: &Drawing) -> Result<String> {
        self.checked(trace, drawing).map(|(session, _)| line(session, drawing))
    }

    /// The figure as a file.
    pub(super) fn draw(&self, trace: usize, drawing: &Drawing, format: Format) -> Result<Vec<u8>> {
        let (session, by) = self.checked(trace, drawing)?;
        let instant = |ns: u64| session.start.after(Dur(ns)).min(session.to);
        let (from, to): (Ts, Ts) = (instant(drawing.from), instant(drawing.to));
        if from >= to {
            bail!("the window is outside of the trace");
        }
        let trace = &session.trace;
        let coloring = session.learned(Coloring { by, ..Coloring::default() })?;
        let mut options = session.lanes(from, to, coloring);
        if !drawing.cpus.is_empty() {
            options.cpus.retain(|(cpu, _)| drawing.cpus.contains(cpu));
            options.all_cpus.retain(|(cpu, _)| drawing.cpus.contains(cpu));
        }
        session.join_lanes(&mut options);
        let reader = trace.cpu_reader(Want::Switches).map_err(|e| session.named(e))?;
        let (lanes, mut diagnostics) = read_lanes(trace, &reader, &options, &[]);
        diagnostics.merge(trace.diagnostics());
        let numbers = report(&lanes, &options);
        let mut heading = session.lanes_heading(&numbers, &diagnostics).on(&Sheet::default());
        heading.command = session::command_line::shown(&line(session, drawing));
        let figure = lanes::figure(&lanes, &numbers, &options, &heading);
        Ok(match format {
            Format::Pdf => draw::pdf(&[figure]),
            Format::Svg => draw::svg(&figure).into_bytes(),
            Format::Png => draw::png(&figure, DPI)?,
        })
    }
}

/// The command line that draws a window, without the name of an output.
fn line(session: &Session, drawing: &Drawing) -> String {
    let mut more = vec![format!("--min {}ns", drawing.from), format!("--max {}ns", drawing.to)];
    if !drawing.cpus.is_empty() {
        more.push(format!("--cpus {}", format_cpu_list(&drawing.cpus)));
    }
    more.extend(drawing.color_by.as_ref().map(|by| format!("--color-by {by}")));
    session.drawable.one_line("dat2graph", &more)
}
