//! The time for which the host kept the vCPUs of a guest (`--host`), as a figure over the lanes: it is shown, exported and measured as those
//! of `--plot` are.

use crate::Plotted;
use anyhow::{Context, Result};
use plot::expr::{EventValue, Type};
use plot::{Carried, Catalog, Event, EventInfo, Plan, Plot, PlotReport, Spec, Window};
use sched::{Cpu, Pid, Ts};
use session::Session;
use session::host::Vcpus;
use session::vcpus::{VcpuChanges, VcpuState};

/// The name of the figure.
pub(super) const NAME: &str = "vCPU not running";

const SPEC: &str = r#"
title = "vCPU not running"

[[interval]]
name = "the host kept the vCPU"
event = "host:kept"
duration = "length"
color = "black"
label = "thread"

[[interval]]
name = "not in the host's recording"
event = "host:unknown"
duration = "length"
color = "grey"
"#;

/// The events of the specification, by their numbers.
const EVENTS: [&str; 2] = ["host:kept", "host:unknown"];

/// A stretch of a vCPU, as an event at its end.
struct StretchEvent<'v> {
    vcpus: &'v Vcpus,
    cpu: Cpu,
    from: Ts,
    to: Ts,
    is_unknown: bool,
}

impl Event for StretchEvent<'_> {
    fn ts(&self) -> Ts {
        self.to
    }

    fn cpu(&self) -> Cpu {
        self.cpu
    }

    fn pid(&self) -> Pid {
        self.vcpus.of(self.cpu).map_or(Pid::IDLE, |vcpu| vcpu.pid)
    }

    fn id(&self) -> u16 {
        self.is_unknown.into()
    }

    fn name(&self) -> &str {
        EVENTS[usize::from(self.is_unknown)]
    }

    fn command(&self) -> String {
        self.vcpus.of(self.cpu).map_or_else(String::new, |vcpu| vcpu.command.to_string())
    }

    fn field(&self, name: &str) -> Option<EventValue> {
        match name {
            "length" => Some(EventValue::Number(self.to.since(self.from).0.into())),
            "thread" => {
                let vcpu = self.vcpus.of(self.cpu)?;
                Some(EventValue::Text(format!("thread {} of the host", vcpu.pid.named(vcpu.command))))
            }
            _ => None,
        }
    }

    fn text(&self) -> String {
        String::new()
    }

    fn is_after_loss(&self) -> bool {
        false
    }
}

/// The plan of the figure.
fn plan() -> Result<Plan> {
    let fields = || vec![("length".to_owned(), Type::Number), ("thread".to_owned(), Type::Text)];
    let event =
        |(id, name): (u16, &str)| EventInfo { id, name: name.to_owned(), count: 1, fields: fields(), is_text: false };
    let events = (0..).zip(EVENTS).map(event).collect();
    let spec = Spec::parse(SPEC).context(NAME)?;
    Plan::new(&spec, &Catalog { events, machine: None }).context(NAME)
}

/// Calls `take` with the parts of all stretches from one instant to another, in the order of their ends.
fn each_stretch<'v>(
    session: &Session,
    vcpus: &'v Vcpus,
    (from, to): (Ts, Ts),
    take: &mut dyn FnMut(&StretchEvent<'v>),
) {
    let mut begun: Vec<Option<(Ts, bool)>> = Vec::new();
    let mut end = |cpu: Cpu, at: Ts, begins: Option<bool>| {
        if cpu.index() >= begun.len() {
            begun.resize(cpu.index() + 1, None);
        }
        let next = begins.map(|is_unknown| (at, is_unknown));
        let Some((start, is_unknown)) = std::mem::replace(&mut begun[cpu.index()], next) else { return };
        let (from, to) = (start.max(from), at.min(to));
        if from < to {
            take(&StretchEvent { vcpus, cpu, from, to, is_unknown });
        }
    };
    // The host's recording does not show a CPU without a thread.
    let without = || session.shown.cpus.iter().map(|(cpu, _)| *cpu).filter(|cpu| vcpus.of(*cpu).is_none());
    without().for_each(|cpu| end(cpu, from, Some(true)));
    for (at, cpu, state) in VcpuChanges::new(&vcpus.vcpus).take_while(|(at, ..)| *at <= to) {
        end(cpu, at, (state != VcpuState::Free).then_some(state == VcpuState::Unknown));
    }
    vcpus.vcpus.iter().map(|vcpu| vcpu.vcpu).chain(without()).for_each(|cpu| end(cpu, to, None));
}

/// The figure from one instant to another, without what it draws.
fn window(session: &Session, from: Ts, to: Ts) -> Window {
    Window { from, to, cpus: session.shown.cpus.clone() }
}

/// No stretch begins before its window: each is cut there.
const NONE: &[Carried<StretchEvent<'static>>] = &[];

/// All that the figure draws in a trace.
pub(super) fn plotted(session: &Session, vcpus: &Vcpus) -> Result<Plotted> {
    let plan = plan()?;
    let (from, to) = session.trace.extent().context("the trace has no events")?;
    let mut plot = Plot::keeping(&plan, window(session, from, to), NONE);
    each_stretch(session, vcpus, (from, to), &mut |stretch| plot.event(stretch, &mut |_| {}));
    let (report, drawn) = plot.finish_kept();
    let about = format!(
        "Along the upper edge of each lane: {} kept the vCPU from running. What the guest shows below it did not run then.",
        vcpus.recording
    );
    let drawn = *drawn.context("nothing was kept")?;
    let (name, by) = (NAME.to_owned(), "cpu".to_owned());
    Ok(Plotted { name, about: Some(about), by, grey: false, is_of_host: true, report, drawn })
}

/// The numbers of the figure in a window.
pub(super) fn numbers(session: &Session, vcpus: &Vcpus, from: Ts, to: Ts) -> Result<PlotReport> {
    let plan = plan()?;
    let mut plot = Plot::new(&plan, window(session, from, to), NONE);
    each_stretch(session, vcpus, (from, to), &mut |stretch| plot.event(stretch, &mut |_| {}));
    Ok(plot.finish())
}
