//! Notes on differences between runs that should not exist, and on values that runs lack.

use crate::measures::Measured;

/// Takes the elapsed time from the runs that were cut before their commands ended, where any run shows how long its
/// command lived: the elapsed time is that then. Returns a note on each of these runs.
pub(crate) fn without_elapsed(groups: &mut [(String, Vec<Measured>)]) -> Vec<String> {
    let mut notes = Vec::new();
    let by_command = groups.iter().flat_map(|(_, runs)| runs).any(|run| run.workcons.elapsed_is_command);
    for (group, runs) in groups {
        for run in runs {
            run.elapsed = run.workcons.elapsed(by_command);
            if run.elapsed.is_none() {
                notes.push(format!("{group}: {} has no elapsed time: {}", run.name, workcons::NO_ELAPSED));
            }
        }
    }
    notes
}

/// The runs that are in two groups.
pub(crate) fn shared(groups: &[(String, Vec<Measured>)]) -> Vec<String> {
    let mut notes = Vec::new();
    for (at, (name, runs)) in groups.iter().enumerate() {
        for (other, others) in &groups[at + 1..] {
            let in_both = |run: &&Measured| others.iter().any(|other| other.recording == run.recording);
            for run in runs.iter().filter(in_both) {
                notes.push(format!("{} is in {name} and in {other}: a run of both sides hides a change", run.name));
            }
        }
    }
    notes
}

/// Differences between runs that ought to be alike.
pub(crate) fn differences(groups: &[(String, Vec<Measured>)]) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(first) = groups.iter().flat_map(|(_, runs)| runs).next() else { return notes };
    for (at, (what, expected)) in first.setting.facts.iter().enumerate() {
        for (name, runs) in groups {
            let others = runs.iter().filter(|run| run.setting.facts[at].1 != *expected);
            let mut others = others.map(|run| (&run.name, &run.setting.facts[at].1));
            if let Some((trace, found)) = others.next() {
                let more = match others.count() {
                    0 => String::new(),
                    n => format!(" (and {n} more)"),
                };
                notes.push(format!("{what}: {name}: {trace}{more} has {found}; {} has {expected}", first.name));
            }
        }
    }
    notes
}
