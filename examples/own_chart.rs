//! Draws a custom chart on a figure with plotters: the cumulative distribution of run lengths by command.
//!
//! `cargo run --example own_chart -- tests/fixtures/hackbench.dat runs.pdf`

use draw::{ChartArea, Figure, PT, Rect};
use parse::{Options, Trace};
use plotters::prelude::*;
use sched::{Analysis, Pass, SchedState, Span, TaskState, Ts};
use std::collections::BTreeMap;
use std::error::Error;

/// The lengths of complete runs by command, in nanoseconds.
#[derive(Default)]
struct Runs(BTreeMap<String, Vec<u64>>);

impl Analysis for Runs {
    type Output = BTreeMap<String, Vec<u64>>;

    fn span(&mut self, span: &Span, state: &SchedState) {
        if let (TaskState::Running(_), true, true, Some(task)) =
            (span.state, span.begun, span.ended, state.task(span.task))
        {
            self.0.entry(task.comm.to_string()).or_default().push(span.duration().0);
        }
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> Self::Output {
        self.0.values_mut().for_each(|lengths| lengths.sort_unstable());
        self.0
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(trace), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: own_chart TRACE.dat FIGURE.pdf".into());
    };
    let trace = Trace::open(trace.as_ref(), Options::default())?;
    let runs = Pass::over(trace.events()?).run(Runs::default)?.output;
    let mut commands: Vec<_> = runs.iter().collect();
    commands.sort_by_key(|(name, lengths)| (std::cmp::Reverse(lengths.len()), *name));
    commands.truncate(4);
    let longest = commands.iter().filter_map(|(_, lengths)| lengths.last()).max().copied().unwrap_or(1);

    let mut figure = Figure::new(420 * PT, 260 * PT, "run lengths");
    let whole = Rect { x: 0, y: 0, w: figure.width, h: figure.height };
    let area = ChartArea::new(&mut figure, whole).into_drawing_area();
    let size = 8 * PT as u32;
    let mut chart = ChartBuilder::on(&area)
        .caption("Run lengths, cumulative", ("sans-serif", 11 * PT as u32))
        .margin(size)
        .x_label_area_size(4 * size)
        .y_label_area_size(5 * size)
        .build_cartesian_2d((1e-3..longest as f64 / 1e6).log_scale(), 0.0..100.0)?;
    chart
        .configure_mesh()
        .label_style(("sans-serif", size))
        .x_desc("length of a run, ms")
        .y_desc("runs at most as long, %")
        .max_light_lines(0)
        .draw()?;
    for (i, (name, lengths)) in commands.iter().enumerate() {
        let color = Palette99::pick(i).to_rgba();
        let share = |nth: usize| 100.0 * (nth + 1) as f64 / lengths.len() as f64;
        let curve = lengths.iter().enumerate().map(|(nth, ns)| (*ns as f64 / 1e6, share(nth)));
        chart
            .draw_series(LineSeries::new(curve, color.stroke_width(PT as u32)))?
            .label(name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 15 * PT, y)], color.stroke_width(PT as u32)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .legend_area_size(20 * PT)
        .margin(10 * PT)
        .label_font(("sans-serif", size))
        .draw()?;
    drop((chart, area));
    std::fs::write(output, draw::pdf(&[figure]))?;
    Ok(())
}
