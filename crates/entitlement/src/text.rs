//! The shares for people.

use crate::{GroupShare, SharesReport};
use sched::Dur;
use std::fmt::Write;
use timeline::table::{TextColumn, TextTable};
use timeline::text::{end_of, paragraph, short};

/// The text of the shares of at most `rows` cgroups.
pub fn text(report: &SharesReport, rows: usize) -> String {
    let mut out = String::new();
    if let Some(why) = &report.unknown {
        paragraph(&mut out, 0, 2, &format!("Shares by weight are left out: {why}."));
        return out;
    }
    let numbers = [6, 8, 8, 6, 5, 6, 6].map(TextColumn::Numbers);
    let mut table = TextTable::new([TextColumn::Words(15)].into_iter().chain(numbers));
    table.row(["share by weight", "weight", "runnable", "entitled", "got", "of it", "< half", "equals"]);
    let mut groups: Vec<&GroupShare> = report.groups.iter().collect();
    groups.sort_by(|a, b| b.entitled_ns.cmp(&a.entitled_ns).then_with(|| a.cgroup.cmp(&b.cgroup)));
    for group in groups.iter().take(rows) {
        let weight = match (group.is_idle, group.weight) {
            (true, _) => "idle".to_owned(),
            (false, weight) => weight.map_or("-".to_owned(), |weight| weight.to_string()),
        };
        let of_it = group.got_percent.map_or("-".to_owned(), |percent| format!("{percent:.0}%"));
        let below = Some(group.longest_below_half_ns).filter(|ns| *ns > Dur(0));
        let equals = group
            .equal_tasks
            .as_ref()
            .map_or("-".to_owned(), |tasks| format!("{:.0}-{:.0}%", tasks.least_percent, tasks.most_percent));
        let times = [group.runnable_ns, group.entitled_ns, group.got_ns].map(|ns| short(Some(ns)));
        let first = [end_of(&group.cgroup, 16), weight];
        table.row(first.into_iter().chain(times).chain([of_it, short(below), equals]));
    }
    table.write(&mut out);
    if groups.len() > rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "({} more)", sched::nouns::counted(groups.len() - rows, "group"));
    }
    out
}
