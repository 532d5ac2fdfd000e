//! A load as a C program of its own.

use crate::load::{LoadAction, LoadStart, Reproduction};
use crate::scheduling::Scheduling;
use crate::written::{Told, WrittenLoad};
use sched::topology::format_cpu_list;
use std::io::{self, Write};

/// The program around the tables.
const PROGRAM: &str = include_str!("program.c");

/// The line of the program that the tables take the place of.
const TABLES: &str = "/*@tables*/\n";

/// The column behind which a line of a table ends.
const WIDTH: usize = 100;

/// Writes the program.
pub(crate) fn write(written: &WrittenLoad<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (before, after) = PROGRAM.split_once(TABLES).unwrap_or((PROGRAM, ""));
    let (license, before) = before.split_once('\n').unwrap_or(("", before));
    writeln!(out, "{license}")?;
    head(&written.told, out)?;
    out.write_all(before.as_bytes())?;
    tables(written, out)?;
    out.write_all(after.as_bytes())
}

/// A comment that says what the program is.
fn head(told: &Told, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "/* The work of a scheduler trace, by schedviz reproduce.")?;
    writeln!(out, " * cc -O2 -pthread FILE.c -o load && ./load      (--help: its options)")?;
    for line in told.lines() {
        writeln!(out, " * {line}")?;
    }
    writeln!(out, " */")
}

/// An action as an entry of a table.
fn entry(written: &WrittenLoad<'_>, task: usize, action: LoadAction) -> String {
    match action {
        LoadAction::Compute(ns) => format!("{{C,{ns}}},"),
        LoadAction::Wake(other) => format!("{{W,{other}}},"),
        LoadAction::Wait => "{A,0},".to_owned(),
        LoadAction::SleepFor(ns) => format!("{{S,{ns}}},"),
        LoadAction::SleepUntil(ns) => format!("{{U,{ns}}},"),
        LoadAction::Start(other) => format!("{{F,{other}}},"),
        LoadAction::Priority(prio) => {
            let Scheduling { policy, priority } = written.scheduling(task, prio);
            format!("{{P,{}}},", policy.number() * 256 + i64::from(priority) + 128)
        }
    }
}

fn tables(written: &WrittenLoad<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Reproduction { tasks, length_ns, .. } = written.load;
    writeln!(out, "#define TRACE_NS {length_ns}")?;
    writeln!(out, "#define TRACE_CPU_NS {}", written.told.counts.compute_ns)?;
    writeln!(out, "#define TRACE_WAITS {}\n", written.told.counts.waits)?;
    let letters = ["C COMPUTE", "W WAKE", "A WAIT", "S SLEEP", "U UNTIL", "F START", "P PRIORITY"];
    letters.iter().try_for_each(|letter| writeln!(out, "#define {letter}"))?;
    for (index, task) in tasks.iter().enumerate() {
        writeln!(out, "\nstatic const struct action a{index}[] = {{")?;
        let mut line = String::new();
        for action in &task.actions {
            line.push_str(&entry(written, index, *action));
            if line.len() > WIDTH {
                writeln!(out, "{line}")?;
                line.clear();
            }
        }
        writeln!(out, "{line}\n}};")?;
    }
    writeln!(out, "\nstatic struct task tasks[] = {{")?;
    for (index, task) in tasks.iter().enumerate() {
        let Scheduling { policy, priority } = written.scheduling(index, task.prio);
        let (policy, name, count) = (policy.name(), written.name(index), task.actions.len());
        let start = match task.start {
            LoadStart::Beginning => "BEGINNING".to_owned(),
            LoadStart::Parent => "STARTED".to_owned(),
            LoadStart::At(ns) => format!("AT, .at = {ns}"),
        };
        let cpus = task.cpus.as_ref().map_or(String::new(), |cpus| {
            let cpus: Vec<_> = cpus.cpus().collect();
            format!(", .cpus = \"{}\"", format_cpu_list(&cpus))
        });
        let cgroup = written.cgroup(index).map_or(String::new(), |cgroup| format!(" /* {cgroup} */"));
        writeln!(
            out,
            "{{ .name = \"{name}\", .actions = a{index}, .count = {count}, .start = {start}, .policy = {policy}, \
             .priority = {priority}{cpus} }},{cgroup}"
        )?;
    }
    writeln!(out, "}};")
}
