//! Every JSON document conforms to its schema in `docs/schemas`.

use crate::conforms::conforms;
use crate::support::{asked, fixture, root, schedviz};
use serde_json::Value;
use std::collections::BTreeSet;

/// Runs a command and checks its document; returns the schema that the document names.
fn checked(arguments: &[&str]) -> String {
    let ran = schedviz(&[arguments, &["--json", "-q"]].concat());
    // A document is given whatever the verdict is.
    assert!(matches!(ran.code, Some(0 | 3)), "{arguments:?}: {}", ran.stderr);
    let json: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let id = json["schema"].as_str().expect("a schema").to_owned();
    let name = id.strip_prefix("schedviz/").expect("a schema of ours").replace('/', "-");
    let schema = std::fs::read_to_string(root().join(format!("docs/schemas/{name}.json"))).expect(&name);
    conforms(&json, &serde_json::from_str(&schema).expect("JSON"), &format!("{arguments:?}: $"));
    id
}

/// No unit test writes a document with the options of the command line: a field that only they add must be in the published schema.
#[test]
fn every_document_conforms_to_its_schema() {
    let mut seen = BTreeSet::new();
    let path = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let [hackbench, cpus, base] = ["hackbench.dat", "hackbench.cpus.txt", "spmd-plus1.dat"].map(path);
    // An ordinary run, one with an unknown application, silent CPUs, CPUs that go offline, and markers in pairs.
    for name in ["hackbench.dat", "forked-unknown.dat", "mask.dat", "hotplug.dat", "marker-pairs.dat"] {
        let trace = path(name);
        for command in [
            &["info"][..],
            &["dat2graph", "--events", "sched:*"],
            &["running-waiting", "--per-cpu", "--forked"],
            &["workcons", "--forked", "--max-loss", "50"],
            &["stepper", "--steps", "20"],
            &["events", "--events", "*"],
            &["latency", "--by", "task", "--forked"],
            &["preemptions", "--by", "cpu"],
            &["wakers", "--by", "task"],
            &["picks", "--by", "task"],
            &["offcpu", "--time", "both"],
            &["offcpu", "--by", "both"],
            &["jobs", "--deadline", "1ms"],
            &["fairness", "--forked"],
        ] {
            seen.insert(checked(&[command, &[&trace]].concat()));
        }
        // Every question, but for what this recording cannot answer.
        for entry in schedviz::COMMANDS.iter().filter(|entry| entry.formats().is_some()) {
            let needs = match name {
                "hackbench.dat" => &[][..],
                _ => &["path", "whatif", "residency"],
            };
            let Some(words) = asked(entry, &trace).filter(|_| !needs.contains(&entry.name)) else { continue };
            seen.insert(checked(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        }
    }
    for command in ["dat2graph", "workcons", "why", "events", "latency", "utilization", "running-waiting"] {
        checked(&[command, &hackbench, "--topology", &cpus]);
    }
    checked(&["migrations", &hackbench, "--topology", &cpus]);
    seen.insert(checked(&["residency", &hackbench, "--topology", &cpus]));
    checked(&["migrations", &path("balance.dat")]);
    checked(&["events", &path("marker.dat"), "--events", "ftrace:print", "--value", "cpu"]);
    checked(&["workcons", "--group", &format!("a={hackbench},{base}"), "--group", &format!("b={}", path("mask.dat"))]);
    checked(&["workcons", &hackbench, "--max-violation", "99"]);
    seen.insert(checked(&["compare", "--base", &base, "--new", &hackbench, "--fail-if", "busy>100000%"]));
    seen.insert(checked(&["whatif", &hackbench, "--topology", &cpus]));
    seen.insert(checked(&["plot", "markers", &path("marker-pairs.dat")]));
    seen.insert(checked(&["schedstat", &path("eas.before"), &path("eas.after")]));
    let elsewhere = ["schedviz/machine/1", "schedviz/top/2"];
    let files = std::fs::read_dir(root().join("docs/schemas")).expect("the schemas");
    let described: BTreeSet<String> = files
        .map(|file| {
            let text = std::fs::read_to_string(file.expect("an entry").path()).expect("a schema");
            serde_json::from_str::<Value>(&text).expect("JSON")["title"].as_str().expect("a title").to_owned()
        })
        .filter(|id| !elsewhere.contains(&id.as_str()))
        .collect();
    assert_eq!(
        seen, described,
        "each schema is that of a document here; machine files and live intervals have tests of their own"
    );
}
