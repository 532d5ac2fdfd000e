//! A load as a file for rt-app, by the grammar of its `doc/tutorial.txt`.

use crate::load::{LoadAction, LoadStart, LoadTask};
use crate::scheduling::Scheduling;
use crate::written::WrittenLoad;
use std::io::{self, Write};

/// The longest time of an event, in microseconds: rt-app takes numbers of 32 bits.
const LONGEST: u64 = i32::MAX as u64;

/// Writes the file.
pub(crate) fn write(written: &WrittenLoad<'_>, out: &mut dyn Write, affinity: bool, cgroups: bool) -> io::Result<()> {
    let about = serde_json::Value::from(written.told.lines());
    writeln!(out, "{{")?;
    writeln!(out, "\"about\": {about},")?;
    writeln!(
        out,
        "\"global\": {{\"duration\": -1, \"calibration\": \"CPU0\", \"default_policy\": \"SCHED_OTHER\", \"lock_pages\": false, \
         \"log_size\": \"disable\", \"ftrace\": \"none\"}},"
    )?;
    write!(out, "\"tasks\": {{")?;
    for (index, task) in written.load.tasks.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(out, "{comma}\n\"{}\": {{", name(written, index))?;
        properties(written, index, task, out, affinity, cgroups)?;
        TaskWriter { written, index, rest_ns: 0, timer_ns: delay_ns(task), events: 0 }.phases(task, out)?;
        write!(out, "}}")?;
    }
    writeln!(out, "\n}}\n}}")
}

/// The key of a task, which is the only one of that name.
fn name(written: &WrittenLoad<'_>, index: usize) -> String {
    let (name, unique) = (written.name(index), format!("t{}", index + 1));
    if name == unique { name } else { format!("{unique}-{name}") }
}

fn delay_ns(task: &LoadTask) -> u64 {
    if let LoadStart::At(ns) = task.start { ns } else { 0 }
}

fn properties(
    written: &WrittenLoad<'_>,
    index: usize,
    task: &LoadTask,
    out: &mut dyn Write,
    affinity: bool,
    cgroups: bool,
) -> io::Result<()> {
    let Scheduling { policy, priority } = written.scheduling(index, task.prio);
    // A task of which another one starts an instance.
    if task.start == LoadStart::Parent {
        write!(out, "\"instance\": 0, ")?;
    }
    write!(out, "\"loop\": 1, \"policy\": \"{}\", \"priority\": {priority}, ", policy.name())?;
    if let LoadStart::At(ns) = task.start {
        write!(out, "\"delay\": {}, ", (ns / 1000).min(LONGEST))?;
    }
    if let Some(cpus) = task.cpus.as_ref().filter(|_| affinity) {
        let cpus: Vec<String> = cpus.cpus().map(|cpu| cpu.0.to_string()).collect();
        write!(out, "\"cpus\": [{}], ", cpus.join(", "))?;
    }
    // No task of another class has one there.
    if let Some(cgroup) = written.cgroup(index).filter(|_| cgroups && task.prio >= 100) {
        write!(out, "\"taskgroup\": \"{cgroup}\", ")?;
    }
    Ok(())
}

/// The parts of a task's actions between changes of its priority, each with the priority that it begins with if that changes.
fn phases_of(task: &LoadTask) -> Vec<(Option<i32>, &[LoadAction])> {
    let mut phases = Vec::new();
    let mut prio = None;
    for (nth, part) in task.actions.split_inclusive(|action| matches!(action, LoadAction::Priority(_))).enumerate() {
        let (actions, next) = match part {
            [actions @ .., LoadAction::Priority(next)] => (actions, Some(*next)),
            actions => (actions, None),
        };
        if nth == 0 || !actions.is_empty() {
            phases.push((prio, actions));
        }
        prio = next;
    }
    if phases.is_empty() {
        phases.push((None, &[]));
    }
    phases
}

/// The actions of a task as events. A key is there once in an object, so that each event has a number behind its name.
struct TaskWriter<'w> {
    written: &'w WrittenLoad<'w>,
    index: usize,
    /// The part of a microsecond that no burst has had yet, in nanoseconds.
    rest_ns: u64,
    /// The instant to which the absolute timer was set, in nanoseconds.
    timer_ns: u64,
    events: u64,
}

impl TaskWriter<'_> {
    fn phases(mut self, task: &LoadTask, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "\"phases\": {{")?;
        for (nth, (prio, actions)) in phases_of(task).into_iter().enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            write!(out, "{comma}\"p{}\": {{", nth + 1)?;
            if let Some(prio) = prio {
                let Scheduling { policy, priority } = self.written.scheduling(self.index, prio);
                write!(out, "\"policy\": \"{}\", \"priority\": {priority}, ", policy.name())?;
            }
            self.events = 0;
            for action in actions {
                self.action(*action, out)?;
            }
            // rt-app refuses a phase without events.
            if self.events == 0 {
                self.event(out, "run", "0")?;
            }
            write!(out, "}}")?;
        }
        write!(out, "}}")
    }

    fn event(&mut self, out: &mut dyn Write, event: &str, value: &str) -> io::Result<()> {
        let comma = if self.events > 0 { ", " } else { "" };
        self.events += 1;
        write!(out, "{comma}\"{event}{}\": {value}", self.events)
    }

    /// Events of a length, as many as it takes.
    fn lengths(&mut self, out: &mut dyn Write, event: &str, mut us: u64) -> io::Result<()> {
        while us > 0 {
            let part = us.min(LONGEST);
            self.event(out, event, &part.to_string())?;
            us -= part;
        }
        Ok(())
    }

    fn action(&mut self, action: LoadAction, out: &mut dyn Write) -> io::Result<()> {
        match action {
            LoadAction::Compute(ns) => {
                let ns = ns.saturating_add(self.rest_ns);
                self.rest_ns = ns % 1000;
                self.lengths(out, "run", ns / 1000)
            }
            LoadAction::Wake(other) => {
                let other = format!("\"{}\"", name(self.written, other as usize));
                self.event(out, "sem_post", &other)
            }
            LoadAction::Wait => {
                let own = format!("\"{}\"", name(self.written, self.index));
                self.event(out, "sem_wait", &own)
            }
            LoadAction::SleepFor(ns) => self.lengths(out, "sleep", ns.div_ceil(1000)),
            LoadAction::SleepUntil(ns) => {
                let period = (ns.saturating_sub(self.timer_ns) / 1000).min(LONGEST);
                self.timer_ns += period * 1000;
                let timer = format!("{{\"ref\": \"unique\", \"period\": {period}, \"mode\": \"absolute\"}}");
                self.event(out, "timer", &timer)
            }
            LoadAction::Start(other) => {
                let other = format!("\"{}\"", name(self.written, other as usize));
                self.event(out, "fork", &other)
            }
            LoadAction::Priority(_) => Ok(()),
        }
    }
}
