//! The head of a comparison: the machine that each group was recorded on.

use crate::measures::Measured;
use serde::Serialize;
use std::fmt::Write;

/// A fact about the machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Fact {
    /// The name of the fact, such as `preemption`.
    name: &'static str,
    /// The value for each group, in the order of the groups, with those of runs that differ one after another; null if it
    /// is unknown.
    values: Vec<Option<String>>,
}

/// The facts that the machine files beside the runs have, in the order of the first run that has each. A run without such a
/// file has the kernel, the CPUs and the command that its trace shows.
pub(crate) fn facts(groups: &[(String, Vec<Measured>)]) -> Vec<Fact> {
    let of_runs = |runs: &[Measured]| -> Vec<Vec<(&'static str, String)>> {
        runs.iter().map(|run| run.machine.clone().unwrap_or_else(|| of_trace(run))).collect()
    };
    let groups: Vec<_> = groups.iter().map(|(_, runs)| of_runs(runs)).collect();
    merge(&groups)
}

/// The facts that the trace of a run shows by itself.
fn of_trace(run: &Measured) -> Vec<(&'static str, String)> {
    let facts = run.setting.facts.iter().filter(|(name, value)| HEAD.contains(name) && !value.is_empty());
    facts.cloned().collect()
}

/// The facts of a trace that are in a head.
const HEAD: [&str; 3] = ["kernel", "CPUs with events", "command"];

/// The command of the runs; several one after another.
pub(crate) fn command(groups: &[(String, Vec<Measured>)]) -> String {
    let mut commands: Vec<&str> = Vec::new();
    for run in groups.iter().flat_map(|(_, runs)| runs) {
        let of_run = run.setting.facts.iter().find(|(name, _)| *name == "command");
        commands.extend(of_run.map(|(_, command)| command.as_str()).filter(|command| !commands.contains(command)));
    }
    if commands.is_empty() { "unknown".to_owned() } else { commands.join(", ") }
}

/// The facts of the machines of each group.
fn merge(groups: &[Vec<Vec<(&'static str, String)>>]) -> Vec<Fact> {
    let mut names: Vec<&'static str> = Vec::new();
    for (name, _) in groups.iter().flatten().flatten() {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let value = |name: &str, machines: &Vec<Vec<(&'static str, String)>>| {
        let mut values: Vec<&str> = Vec::new();
        for (_, value) in machines.iter().flatten().filter(|(other, _)| *other == name) {
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        (!values.is_empty()).then(|| values.join("; "))
    };
    let fact = |name| Fact { name, values: groups.iter().map(|machines| value(name, machines)).collect() };
    names.into_iter().map(fact).collect()
}

impl Fact {
    /// Whether it is the same for all groups.
    fn is_common(&self) -> bool {
        self.values.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// The value, or that of each group by the group's name.
    fn value(&self, names: &[&str]) -> String {
        let shown = |value: &Option<String>| match value.as_deref() {
            None => "unknown".to_owned(),
            Some("") => "none".to_owned(),
            Some(value) => value.to_owned(),
        };
        match self.values.first() {
            Some(value) if self.is_common() => shown(value),
            _ => {
                let each = names.iter().zip(&self.values).map(|(name, value)| format!("{name}: {}", shown(value)));
                each.collect::<Vec<_>>().join(" | ")
            }
        }
    }
}

/// The facts one per line, those that differ between the groups last and marked.
pub(crate) fn text(facts: &[Fact], names: &[&str]) -> String {
    let mut out = String::new();
    for fact in ordered(facts) {
        let mark = if fact.is_common() { "" } else { " (differs)" };
        let line = format!("{:15} {}{mark}", fact.name, fact.value(names));
        timeline::text::paragraph(&mut out, 0, 16, &line);
    }
    out
}

/// The same as a Markdown list.
pub(crate) fn markdown(facts: &[Fact], names: &[&str]) -> String {
    let mut out = String::new();
    for fact in ordered(facts) {
        let mark = if fact.is_common() { "" } else { " (differs)" };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "* {}: {}{mark}", fact.name, fact.value(names).replace('|', "\\|"));
    }
    out
}

/// The facts that groups differ in, for a figure.
pub(crate) fn notes(facts: &[Fact], names: &[&str]) -> Vec<String> {
    let differs = facts.iter().filter(|fact| !fact.is_common());
    differs.map(|fact| format!("{}: {}", fact.name, fact.value(names))).collect()
}

fn ordered(facts: &[Fact]) -> impl Iterator<Item = &Fact> {
    let common = facts.iter().filter(|fact| fact.is_common());
    common.chain(facts.iter().filter(|fact| !fact.is_common()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_groups_are_compared() {
        let run = |slice: &str| vec![("kernel", "6.12".to_owned()), ("base slice", slice.to_owned())];
        let same = merge(&[vec![run("3 ms"), run("3 ms")], vec![run("3 ms")]]);
        assert_eq!(text(&same, &["base", "new"]), "kernel          6.12\nbase slice      3 ms\n");
        let other = merge(&[vec![run("3 ms"), run("6 ms")], vec![run("2 ms")], vec![]]);
        let names = ["base", "new", "x"];
        assert_eq!(
            notes(&other, &names),
            ["kernel: base: 6.12 | new: 6.12 | x: unknown", "base slice: base: 3 ms; 6 ms | new: 2 ms | x: unknown"]
        );
        assert!(markdown(&other, &names).starts_with("* kernel: base: 6.12 \\| new: 6.12 \\| x: unknown (differs)\n"));
        assert_eq!(merge(&[vec![], vec![]]), []);
    }
}
