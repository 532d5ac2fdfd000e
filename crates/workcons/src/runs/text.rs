//! The texts of runs, with how far each can be trusted.

use super::{WorkconsDocument, WorkconsRun};
use crate::Report;
use question::Spread;
use sched::Cpu;
use sched::topology::format_cpu_list;
use session::warnings;
use std::fmt::Write;
use timeline::text::{Detail, paragraph};

impl WorkconsDocument {
    /// Returns the text for people: the report of a single run, or the table of several.
    pub(crate) fn text(&self, detail: Detail) -> String {
        if let [run] = self.runs.as_slice() {
            return run.text(detail);
        }
        let rows: Vec<(String, Report)> = self
            .runs
            .iter()
            .map(|r| (r.group.as_ref().map_or(r.trace.clone(), |g| format!("{g}: {}", r.trace)), r.report.clone()))
            .collect();
        let mut out = crate::table(&rows);
        for g in &self.groups {
            let spread = |s: Option<Spread>, unit: &str| {
                // The notes below name the runs without the number.
                let of = |s: Spread| if s.runs == g.runs { String::new() } else { format!(", of {}", s.runs) };
                s.map_or("unknown".into(), |s| {
                    format!("{:.3}{unit} ({:.3}\u{2013}{:.3}{})", s.median, s.min, s.max, of(s))
                })
            };
            let (time, lost) = (spread(g.percent, " %"), spread(g.cpu_time_lost_percent, " %"));
            let elapsed = spread(g.elapsed_s, " s");
            let medians = format!("time {time}, CPU time lost {lost}, elapsed {elapsed}");
            out.push('\n');
            paragraph(
                &mut out,
                0,
                2,
                &format!("{}: median of {} and spread: {medians}", g.name, sched::nouns::counted(g.runs, "run")),
            );
        }
        for note in &self.notes {
            paragraph(&mut out, 0, 2, &format!("note: {note}"));
        }
        out
    }
}

impl WorkconsRun {
    /// Returns the text for people about the run.
    pub(crate) fn text(&self, detail: Detail) -> String {
        let mut out = crate::text(&self.report, &self.drawable, detail);
        trust_text(&mut out, self);
        out.push_str(&crate::next(&self.report, &self.drawable));
        out
    }
}

/// The CPUs on which tasks were queued that may be bound, as a part of a sentence; empty where they are not known.
fn confined_to(cpus: &[Cpu]) -> String {
    let word = match cpus {
        [] => return String::new(),
        [_] => "CPU",
        _ => "CPUs",
    };
    format!(", but on {word} {} alone", format_cpu_list(cpus))
}

/// Writes how far the numbers of a run can be trusted.
fn trust_text(out: &mut String, run: &WorkconsRun) {
    let r = &run.report;
    out.push_str("\nHow far this can be trusted:\n");
    let mut line = |text: &str| paragraph(out, 2, 4, text);
    let matters = |what: sched::Diagnostic| what.severity() != sched::Severity::Note;
    if r.violation.is_none() {
        line("the selected tasks are unknown: there is no figure of them");
    }
    if r.unknown.unknown_percent == 0.0 {
        let doubts = run.trust.iter().any(|(what, ..)| matters(what))
            || !run.coverage.unobserved.is_empty()
            || run.coverage.doubtful_topology.is_some();
        line(match doubts {
            true => "no time of the CPUs with events is unknown, but:",
            false => "nothing was lost: the figures are exact",
        });
    } else {
        let mut unknown = format!("nothing is known of {:.3} % of the CPU time", r.unknown.unknown_percent);
        if let Some(v) = &r.violation {
            // Writing to a string cannot fail.
            let _ = write!(
                unknown,
                ": violated {:.2} % of the time, or {:.2} % if unknown CPUs are at fault",
                v.percent, v.possible_percent
            );
        }
        line(&unknown);
        if let Some(b) = r.violation.as_ref().and_then(|v| v.bounds) {
            line(&format!(
                "whatever the lost events were: at least {:.2} %, at most {:.2} % of the time (episodes of any length)",
                b.least_percent, b.most_percent
            ));
        }
    }
    if let Some(share) = r.confined_percent {
        let only = confined_to(&r.confined_to);
        line(&format!(
            "in {share:.0} % of the violated time the waiting tasks were never queued on the idle CPUs{only}: these tasks may be \
             bound to other CPUs, which a trace does not show. schedviz record saves the CPUs that tasks may use; \
             schedviz machine does so while the tasks run"
        ));
    }
    run.coverage.doubtful_topology.iter().for_each(|doubt| line(doubt));
    run.coverage.run_queue_lengths.iter().for_each(|lengths| line(&lengths.text()));
    run.coverage.throttling.iter().for_each(|throttling| line(throttling));
    if !run.coverage.unobserved.is_empty() {
        let list = sched::topology::format_cpu_list(&run.coverage.unobserved);
        line(&format!(
            "CPUs without any event: {list}; they are in no figure (--assume-idle counts them as idle), and tasks may \
             have moved to and from them unseen: the number of waiting tasks is an upper bound"
        ));
    }
    for (what, count, first) in run.trust.iter().filter(|(what, ..)| matters(*what)) {
        line(&warnings::line(what, count, first));
    }
}
