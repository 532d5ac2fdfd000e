//! A step for a terminal.

use crate::{Core, Options, Step, Who, at_rest};
use std::fmt::Write;

/// The step in lines of at most `width` characters. What the event concerns is marked with `*`.
pub fn text(step: &Step, options: &Options, width: usize) -> String {
    let width = width.max(30);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", cut(&step.when(options), width));
    let _ = writeln!(out, "{}", cut(&step.summary(), width));
    let who = (width / 4).clamp(12, 24);
    let _ =
        writeln!(out, "{}", cut(&format!("  CPU  {:who$} | waiting, who came first stands first", "running"), width));
    let mut group = None;
    for (core, (_, this)) in step.cores.iter().zip(&options.cpus) {
        if let Some(this) = this.filter(|this| group != Some(*this)) {
            let _ = writeln!(out, "{}", cut(&format!("{} {this}", options.group_name), width));
            group = Some(this);
        }
        let _ = writeln!(out, "{}", cut(&row(core, step, who), width));
    }
    let next = step.event.as_ref().map_or("the trace ends here".into(), |e| format!("{}: {}", e.name, e.text));
    let _ = writeln!(out, "next: {}", cut(&next, width.saturating_sub(6)));
    out
}

/// One core.
pub(crate) fn row(core: &Core, step: &Step, who: usize) -> String {
    let marked = step.event.as_ref().is_some_and(|e| e.concerns(core.cpu));
    let running = core.running.as_ref().map_or_else(|| at_rest(core.load).to_owned(), name);
    let waiting: Vec<String> = core.waiting.iter().map(name).collect();
    let mark = if marked { '*' } else { ' ' };
    format!("{mark} {:>3}  {:who$} | {}", core.cpu, cut(&running, who), waiting.join(", ")).trim_end().to_owned()
}

pub(crate) fn name(who: &Who) -> String {
    who.pid.named(who.command)
}

/// At most `width` characters, the last one an ellipsis if there were more.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('\u{2026}');
    short
}
