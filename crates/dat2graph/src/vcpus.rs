//! The time for which the host kept the vCPUs of a guest, over its lanes: `--host`.

use draw::{Figure, Paint, Unit};
use lanes::{Options, Overlay};
use sched::{Dur, Ts};
use session::host::Vcpus;
use session::vcpus::VcpuThread;
use timeline::page::{LegendEntry, Swatch};
use timeline::palette::INK;
use timeline::strips::{BLANK, FIRST, Strips, UNKNOWN};
use timeline::{Columns, LaneLayout, Piece, TimeScale};

/// The part of a lane's height that a strip takes.
const SHARE: Unit = 4;

/// Draws a figure with these vCPUs over its lanes and over the marks that it has already.
pub(crate) fn over<T>(
    vcpus: Option<&Vcpus>,
    options: &Options,
    beneath: Option<&Overlay<'_>>,
    figure: impl FnOnce(Option<&Overlay<'_>>) -> T,
) -> T {
    let Some(vcpus) = vcpus else { return figure(beneath) };
    let draw = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
        if let Some(beneath) = beneath {
            (beneath.draw)(figure, scale, top, height);
        }
        draw(figure, vcpus, options, scale, top, height);
    };
    let caption = beneath.map_or_else(String::new, |beneath| format!("{} ", beneath.caption)) + &caption(vcpus);
    let mut legend = beneath.map_or_else(Vec::new, |beneath| beneath.legend.clone());
    let solid = Swatch::Area(Paint::Solid(INK));
    legend.push(LegendEntry { swatch: solid, label: "along the upper edge: the host kept the vCPU".into() });
    if vcpus.times.unknown_ns > 0 {
        let swatch = Swatch::Area(Paint::Hatch);
        legend.push(LegendEntry { swatch, label: "there: not in the host's recording".into() });
    }
    figure(Some(&Overlay { is_pale: beneath.is_some_and(|beneath| beneath.is_pale), caption, legend, draw: &draw }))
}

/// The sentence about the vCPUs.
fn caption(vcpus: &Vcpus) -> String {
    let kept = Dur(vcpus.times.kept_ns).human();
    let unknown = match vcpus.times.unknown_ns {
        0 => String::new(),
        ns => format!("; for {} that is unknown", Dur(ns).human()),
    };
    format!("The host ({}) kept vCPUs from running for {kept} in all{unknown}. Times are the host's.", vcpus.recording)
}

/// The strip of a vCPU, in columns.
fn pieces(vcpu: Option<&VcpuThread>, options: &Options) -> Vec<Piece> {
    let mut columns = Columns::new(options.from, options.to, options.columns());
    let Some(vcpu) = vcpu else {
        columns.push(UNKNOWN, options.from, options.to);
        return columns.finish();
    };
    let mut until: Ts = options.from;
    for stretch in &vcpu.stretches {
        columns.push(BLANK, until, stretch.from);
        columns.push(if stretch.is_unknown { UNKNOWN } else { FIRST }, stretch.from, stretch.to);
        until = stretch.to;
    }
    columns.push(BLANK, until, options.to);
    columns.finish()
}

/// Draws a strip along the upper edge of each lane.
fn draw(figure: &mut Figure, vcpus: &Vcpus, options: &Options, scale: &TimeScale, top: Unit, height: Unit) {
    let layout = LaneLayout::among(&options.cpus, &options.all_cpus, top, height);
    let mut strips = Strips::new(scale, 1);
    let strip = (layout.bar() / SHARE).max(1);
    for (lane, (cpu, _)) in options.cpus.iter().enumerate() {
        strips.add(&pieces(vcpus.of(*cpu), options), layout.top_of(lane), strip);
    }
    strips.draw(figure, |_| INK);
}
