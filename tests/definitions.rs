//! The names in JSON beside the definitions in the book are those of the schemas; the names of `why` are compared in its crate.

use crate::support::root;
use serde_json::Value;
use std::collections::BTreeSet;

/// The pages of the book, one after the other.
fn page() -> String {
    let pages = crate::book::pages();
    pages.into_iter().map(|page| std::fs::read_to_string(page).expect("a page")).collect()
}

/// The names in backticks in the column "name in JSON" of the table with this head.
fn names(page: &str, head: &str) -> BTreeSet<String> {
    let columns: Vec<&str> = head.split('|').map(str::trim).collect();
    let column = columns.iter().position(|name| *name == "name in JSON").expect("a column of names");
    let table = page.split_once(&format!("\n{head}\n")).expect(head).1;
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(column).expect("a cell"));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn schema(name: &str) -> Value {
    let text = std::fs::read_to_string(root().join(format!("docs/schemas/{name}.json"))).expect(name);
    serde_json::from_str(&text).expect("JSON")
}

/// The values of an enumeration.
fn values(of: &Value) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let own = of["enum"].as_array().into_iter().flatten().filter_map(text).chain(text(&of["const"]));
    own.chain(of["oneOf"].as_array().into_iter().flatten().flat_map(values)).collect()
}

#[test]
fn names_beside_the_rows_of_the_definitions_are_those_of_the_schemas() {
    let page = page();
    let (balance, why, used) = (schema("balance-2"), schema("why-2"), schema("utilization-1"));
    let causes = values(&balance["$defs"]["Cause"]);
    assert_eq!(causes.len(), 17);
    assert_eq!(names(&page, "| cause | name in JSON | pattern |"), causes);
    let outcomes = values(&why["$defs"]["NewIdleOutcome"]);
    assert_eq!(names(&page, "| outcome | name in JSON | records |"), outcomes);
    let shares =
        used["$defs"]["Shares"]["properties"].as_object().or(used["$defs"]["PerCpu"]["properties"].as_object());
    let classes: BTreeSet<String> = shares.expect("the times of a CPU").keys().cloned().collect();
    let ours = names(&page, "| the CPU | name in JSON |");
    assert!(!ours.is_empty() && ours.is_subset(&classes), "{ours:?} of {classes:?}");
    let others = classes.iter().filter(|name| name.ends_with("_ns") && *name != "irq_in_tasks_ns");
    assert_eq!(ours, others.cloned().collect());
    let reasons = values(&schema("fairness-2")["$defs"]["FairBefore"]);
    assert_eq!(names(&page, "| release | reason | name in JSON |"), reasons);
    // Distances to the nearest idle CPU stand in a sentence.
    let nearest = values(&why["$defs"]["Nearest"]);
    assert!(nearest.len() == 8 && nearest.iter().all(|name| page.contains(&format!("(`{name}`)"))), "{nearest:?}");
}
