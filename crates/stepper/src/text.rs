//! A step for a terminal.

use crate::{CpuPicture, Options, Step, Who, at_rest};
use std::fmt::Write;

/// The step in lines of at most `width` characters. The CPUs of the next event are marked with `*`.
pub fn text(step: &Step, options: &Options, width: usize) -> String {
    let width = width.max(30);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", cut(&step.when(options), width));
    let _ = writeln!(out, "{}", cut(&step.summary(), width));
    let who = (width / 4).clamp(12, 24);
    let _ =
        writeln!(out, "{}", cut(&format!("  CPU  {:who$} | runqueue wait, in the order of arrival", "running"), width));
    let mut group = None;
    for (lane, (_, this)) in step.cpus.iter().zip(&options.cpus) {
        if let Some(this) = this.filter(|this| group != Some(*this)) {
            let _ = writeln!(out, "{}", cut(&format!("{} {this}", options.group_name), width));
            group = Some(this);
        }
        let _ = writeln!(out, "{}", row(lane, step, who, width));
    }
    let next = step.coming().unwrap_or_else(|| "the trace ends here".to_owned());
    timeline::text::lines(&mut out, width, 0, 2, &format!("next: {next}"));
    out
}

/// One CPU, in at most `width` characters.
pub(crate) fn row(lane: &CpuPicture, step: &Step, who: usize, width: usize) -> String {
    let marked = step.event.as_ref().is_some_and(|e| e.concerns(lane.cpu));
    let running = lane.running.as_ref().map_or_else(|| at_rest(lane.load).to_owned(), |task| fitted(task, who));
    let throttled = lane.throttled.iter().map(|who| format!("{} (throttled)", name(who)));
    let waiting: Vec<String> = lane.waiting.iter().map(name).chain(throttled).collect();
    let mark = if marked { '*' } else { ' ' };
    let mut row = format!("{mark} {:>3}  {:who$} | ", lane.cpu, cut(&running, who));
    row.push_str(&enumerated(&waiting, width.saturating_sub(row.chars().count())));
    cut(row.trim_end(), width)
}

/// The first of these names that `width` characters hold, and the number of the others.
fn enumerated(names: &[String], width: usize) -> String {
    let all = names.join(", ");
    if all.chars().count() <= width {
        return all;
    }
    let more = |shown: usize| format!(" and {} more", names.len() - shown);
    let mut ends = names.iter().scan(0, |end, name| {
        *end += name.chars().count() + ", ".len();
        Some(*end - ", ".len())
    });
    let shown = (1..names.len()).take_while(|n| ends.next().is_some_and(|end| end + more(*n).len() <= width)).last();
    match shown {
        Some(shown) => names[..shown].join(", ") + &more(shown),
        None => sched::nouns::counted(names.len(), "task"),
    }
}

/// A task's name and number in at most `width` characters. The number is never cut, because it alone identifies the task:
/// the name is.
fn fitted(who: &Who, width: usize) -> String {
    let whole = name(who);
    match whole.rsplit_once(' ') {
        Some((name, number)) if whole.chars().count() > width => {
            let room = width.saturating_sub(number.len() + 1);
            if room < 2 { number.to_owned() } else { format!("{} {number}", cut(name, room)) }
        }
        _ => whole,
    }
}

pub(crate) fn name(who: &Who) -> String {
    who.pid.named(who.command)
}

/// The first `width` characters of a text, the last one an ellipsis if there are more.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('\u{2026}');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_task_is_never_cut() {
        let who = Who { pid: sched::Pid(4_194_303), command: sched::Comm::new(b"kworker/255:12H"), prio: None };
        assert_eq!(fitted(&who, 24), "kworker/255:12H 4194303");
        assert_eq!(fitted(&who, 12), "kwo\u{2026} 4194303");
        assert_eq!(fitted(&who, 9), "4194303");
    }

    #[test]
    fn who_does_not_fit_is_counted() {
        let names: Vec<String> = (1..=4).map(|n| format!("make {n}")).collect();
        assert_eq!(enumerated(&names, 30), "make 1, make 2, make 3, make 4");
        assert_eq!(enumerated(&names, 29), "make 1, make 2 and 2 more");
        assert_eq!(enumerated(&names, 25), "make 1, make 2 and 2 more");
        assert_eq!(enumerated(&names, 24), "make 1 and 3 more");
        assert_eq!(enumerated(&names, 16), "4 tasks");
        assert_eq!(enumerated(&names[..1], 3), "1 task");
        assert_eq!(enumerated(&[], 0), "");
    }
}
