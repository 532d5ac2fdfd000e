//! A sched_ext scheduler that was loaded while a trace was recorded, as the head of a report has it.

use machine::Machine;
use parse::Trace;
use sched::event::CleanText;
use serde::Serialize;

/// A sched_ext scheduler that was loaded while the trace was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtScheduler {
    /// The name of the scheduler by the machine file; null if its own events alone show it.
    pub scheduler: Option<CleanText>,
}

impl ExtScheduler {
    /// The scheduler by the machine file, by its own events (`sched_ext:*`), or by the note of a part; nothing where none was loaded.
    pub(crate) fn of(trace: &Trace, machine: Option<&Machine>) -> Option<ExtScheduler> {
        let scheduler = machine.and_then(|machine| machine.scheduler.ext.clone());
        let is_loaded = scheduler.is_some() || trace.has_ext_queues() || trace.has_sched_ext_events();
        is_loaded.then_some(ExtScheduler { scheduler })
    }

    /// The consequence for the numbers of a report, as a sentence.
    pub fn sentence(&self) -> String {
        let name = self.scheduler.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        format!(
            "A sched_ext scheduler{name} was loaded: its queues are in no event. A waiting task is shown on the last CPU known to have it, \
             and counts in a violation beside each idle CPU, that one included."
        )
    }
}

/// Returns the lines for the head of a report on runs, each with its name: one for each sched_ext scheduler, with the names of its runs
/// where there are several.
pub fn head<'r>(runs: impl IntoIterator<Item = (&'r str, Option<&'r ExtScheduler>)>) -> Vec<String> {
    let runs: Vec<_> = runs.into_iter().collect();
    let mut found: Vec<(&ExtScheduler, Vec<&str>)> = Vec::new();
    for (name, ext) in &runs {
        let Some(ext) = ext else { continue };
        match found.iter_mut().find(|(other, _)| other == ext) {
            Some((_, names)) => names.push(name),
            None => found.push((ext, vec![name])),
        }
    }
    let line = |(ext, names): (&ExtScheduler, Vec<&str>)| match runs.len() {
        1 => ext.sentence(),
        _ => format!("{}: {}", names.join(", "), ext.sentence()),
    };
    found.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_scheduler_share_a_line() {
        let [minimal, unknown] = [Some("minimal".into()), None].map(|scheduler| ExtScheduler { scheduler });
        let one = head([("a.dat", Some(&minimal))]);
        assert_eq!(one, [minimal.sentence()]);
        assert!(one[0].starts_with("A sched_ext scheduler (minimal) was loaded: "), "{one:?}");
        let runs = [("a.dat", Some(&minimal)), ("b.dat", None), ("c.dat", Some(&minimal)), ("d.dat", Some(&unknown))];
        let several = head(runs);
        assert_eq!(several.len(), 2);
        assert!(several[0].starts_with("a.dat, c.dat: A sched_ext scheduler (minimal)"), "{several:?}");
        assert!(several[1].starts_with("d.dat: A sched_ext scheduler was loaded"), "{several:?}");
        assert!(head([("a.dat", None)]).is_empty());
    }
}
