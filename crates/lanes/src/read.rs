//! Lanes and colours from a trace: each CPU is read by itself, all in parallel.

use crate::Options;
use crate::color::{ColorBy, Coloring, Needs};
use crate::lane::{Lane, LaneFold};
use parse::{CpuReader, Trace, Want};
use sched::lineage::LineageHistory;
use sched::topology::CpuOrder;
use sched::{Cpu, Current, Diagnostics, Dur, EventIssue, EventKind, EventSource, Pid, SchedEvent, Topology, Ts};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use timeline::palette::TaskColors;

/// An event that is marked on the lanes.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The name, as `SYSTEM:NAME`.
    pub name: String,
    /// The number of its format; absent if no event of it occurs.
    pub id: Option<u16>,
}

/// Reads all lanes in parallel, with these events marked. They are in display order, without the CPUs that have no event.
pub fn read_lanes(
    trace: &Trace,
    reader: &CpuReader<'_>,
    options: &Options,
    marks: &[Mark],
) -> (Vec<Lane>, Diagnostics) {
    let cpus: Vec<Cpu> = options.cpus.iter().map(|(cpu, _)| *cpu).collect();
    let mark_of = |event: &SchedEvent| {
        if marks.is_empty() {
            return None;
        }
        match event.kind {
            EventKind::Other { id }
            | EventKind::Stack { id }
            | EventKind::Interrupt { id, .. }
            | EventKind::Probe { id, .. } => marks.iter().position(|m| m.id == Some(id)),
            kind => {
                let name = kind.tracepoint()?.full_name();
                marks.iter().position(|m| m.name == name)
            }
        }
    };
    let lanes = trace.in_parallel(cpus, |cpu| {
        let mut fold = LaneFold::new(cpu, options).with_names(reader);
        let mut diagnostics = Diagnostics::default();
        // Events of further buffers can be marked; only the first one has the switches.
        for (nth, buffer) in reader.buffers_of(cpu).into_iter().enumerate() {
            if nth > 0 && marks.is_empty() {
                break;
            }
            let found = reader.events(buffer, cpu, Some(options.from), &mut |event| {
                let more = if nth == 0 { fold.apply(event, mark_of(event)) } else { fold.mark(event, mark_of(event)) };
                if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            diagnostics.merge(&found);
        }
        diagnostics.add_many(EventIssue::EventsLost, fold.gaps());
        diagnostics.add_many(EventIssue::SwitchPrevMismatch, fold.mismatches());
        (fold.finish(), diagnostics)
    });
    let mut diagnostics = Diagnostics::default();
    lanes.iter().for_each(|(_, found)| diagnostics.merge(found));
    (lanes.into_iter().filter_map(|(lane, _)| lane).collect(), diagnostics)
}

/// Returns the colours of tasks and of commands, from samples of the trace.
pub fn learn_colors(trace: &Trace) -> Coloring {
    let task_colors = TaskColors::of_longest(trace.sampled_tasks());
    let mut coloring = Coloring { task_colors, ..Coloring::default() };
    coloring.know(trace.sampled_commands());
    coloring
}

/// Reads what the colours depend on from the whole trace: a window must not change a colour.
pub fn learn(coloring: &mut Coloring, trace: &Trace, topology: &Topology) -> Result<(), parse::Error> {
    let Needs { lineage, homes, commands, tasks, prios } = coloring.needs();
    if tasks {
        coloring.task_colors = TaskColors::of_longest(trace.sampled_tasks());
    }
    if commands {
        coloring.know(trace.sampled_commands());
    }
    if lineage {
        if let Some(past) = trace.past() {
            coloring.lineage = past.lineages(trace.application());
        } else if let Some(application) = trace.application() {
            coloring.lineage = LineageHistory::of_application(application);
        }
        trace.events_of(Want::Lineage)?.events(&mut |events| {
            events.iter().for_each(|event| coloring.lineage.learn(event));
            ControlFlow::Continue(())
        })?;
    }
    if coloring.by == ColorBy::Parent {
        // A parent has its colour by the time for which those that it forked ran.
        let mut times: BTreeMap<Pid, Dur> = BTreeMap::new();
        for (pid, time) in trace.sampled_tasks() {
            if let Some(parent) = coloring.lineage.of(pid, Ts::MAX).parent {
                *times.entry(parent).or_default() += time;
            }
        }
        coloring.task_colors = TaskColors::of_longest(times);
    }
    if prios {
        let reader = trace.cpu_reader(Want::Switches)?;
        let latest = trace.in_parallel(trace.observed(), |cpu| latest_prios(&reader, cpu));
        let mut all: HashMap<Pid, (Ts, i32)> = HashMap::new();
        for (pid, of) in latest.into_iter().flatten() {
            let known = all.entry(pid).or_insert(of);
            *known = (*known).max(of);
        }
        coloring.prios = all.into_iter().map(|(pid, (_, prio))| (pid, prio)).collect();
    }
    if homes {
        let reader = trace.cpu_reader(Want::Switches)?;
        let firsts = trace.in_parallel(trace.observed(), |cpu| (cpu, first_runs(&reader, cpu)));
        let mut homes: HashMap<Pid, (Ts, Cpu)> = HashMap::new();
        for (cpu, firsts) in firsts {
            for (pid, ts) in firsts {
                let home = homes.entry(pid).or_insert((ts, cpu));
                *home = (*home).min((ts, cpu));
            }
        }
        let node = |cpu: Cpu| topology.group(cpu, CpuOrder::Node);
        coloring.homes = homes.into_iter().filter_map(|(pid, (_, cpu))| Some((pid, node(cpu)?))).collect();
    }
    Ok(())
}

/// The kernel priority with which each task was last switched in or out on a CPU, and when.
fn latest_prios(reader: &CpuReader<'_>, cpu: Cpu) -> HashMap<Pid, (Ts, i32)> {
    let mut latest = HashMap::new();
    for buffer in reader.buffers_of(cpu).into_iter().take(1) {
        reader.events(buffer, cpu, None, &mut |event| {
            if let EventKind::Switch { prev, next, .. } = event.kind {
                latest.insert(prev.pid, (event.ts, prev.prio));
                latest.insert(next.pid, (event.ts, next.prio));
            }
            ControlFlow::Continue(())
        });
    }
    latest
}

/// The time at which each task first ran on a CPU.
fn first_runs(reader: &CpuReader<'_>, cpu: Cpu) -> HashMap<Pid, Ts> {
    let mut firsts = HashMap::new();
    for buffer in reader.buffers_of(cpu).into_iter().take(1) {
        reader.events(buffer, cpu, None, &mut |event| {
            if let Some(pid) = Current::of(event.pid).pid() {
                firsts.entry(pid).or_insert(event.ts);
            }
            if let EventKind::Switch { next, .. } = event.kind {
                firsts.entry(next.pid).or_insert(event.ts);
            }
            ControlFlow::Continue(())
        });
    }
    firsts
}
