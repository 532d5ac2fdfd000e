//! `schedviz report`, and what the commands for shares and utilization print and draw.

use crate::support::{fixture, golden, schedviz, schedviz_in, scratch};
use testkit::Simulation;

#[test]
fn losses_are_told_by_whatever_follows_the_state() {
    let folder = scratch("losses");
    let trace = folder.join("lossy.dat");
    let (events, _) = Simulation::run(3, 6, 2000).lossy(3);
    std::fs::write(&trace, testkit::TraceBuilder::default().events(&events).build()).expect("written");
    let trace = trace.to_str().expect("a path");
    for arguments in [
        vec!["workcons"],
        vec!["latency"],
        vec!["utilization"],
        vec!["fairness"],
        vec!["stepper", "--text"],
        vec!["migrations"],
        vec!["running-waiting", "-o", "-", "--format", "svg"],
    ] {
        // Where it writes a figure unasked, it is no file of the repository.
        let ran = schedviz_in(&folder, &[&arguments[..1], &[trace], &arguments[1..]].concat()).success();
        assert_eq!(
            ran.stderr.matches("data loss: ").count() + ran.stderr.matches("incomplete: ").count(),
            1,
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn the_program_says_who_got_what() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let text = schedviz(&["fairness", trace, "--group-by", "^(hack|trace)"]).success().text();
    assert!(text.contains("2 members") && text.contains("longest waits"), "{text}");
    let json = schedviz(&["fairness", trace, "--group-by", "command", "--weights", "--json"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["schema"], &json["weights"]), (&"schedviz/fairness/2".into(), &true.into()));
    let text = schedviz(&["utilization", trace, "--per-cpu", "--interval", "100ms"]).success().text();
    assert!(text.contains("%app") && text.contains("idled beside overloaded ones"), "{text}");
    for (arguments, advice) in [
        (vec!["utilization", trace, "--interval", "0"], "not a length"),
        (vec!["utilization", trace, "--interval", "1ns"], "intervals"),
        (vec!["fairness", trace, "--group-by", "("], "--group-by"),
        (vec!["fairness", trace, "--cpus", "1"], "--cpus"),
    ] {
        let ran = schedviz(&arguments);
        assert!(ran.code == Some(1) && ran.stderr.contains(advice), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_report_is_one_page_whatever_the_threads() {
    let folder = scratch("report");
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let files = |threads: &str| {
        let to = folder.join(format!("threads-{threads}"));
        let to = to.to_str().expect("a path");
        schedviz(&["report", trace, "-o", to, "--threads", threads]).success();
        let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(to)
            .expect("the folder")
            .flatten()
            .map(|e| (e.file_name().to_string_lossy().into_owned(), std::fs::read(e.path()).expect("a file")))
            .collect();
        files.sort();
        files
    };
    // The analyses are on three threads with four of them, on six with eight.
    let one = files("1");
    assert!(one == files("4") && one == files("8"), "the same bytes whatever the threads");
    let names: Vec<&str> = one.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["index.html", "workcons.json", "workcons.svg", "latency.svg", "fairness-2.svg", "dat2graph.svg"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let page = one.iter().find(|(name, _)| name == "index.html").map(|(_, bytes)| String::from_utf8_lossy(bytes));
    let page = page.expect("the page");
    assert_eq!(page.matches("<svg").count(), 10);
    // The findings stand first, though they are made from the other sections.
    let findings = page.find("<h2 id=\"findings\">").expect("the findings");
    assert!(page.find("<h2").is_some_and(|first| first == findings));
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href=\"http"), "it stands alone");
    for (command, more) in [
        ("findings", vec![]),
        ("dat2graph", vec![]),
        ("running-waiting", vec!["--per-cpu"]),
        ("workcons", vec![]),
        ("why", vec![]),
        ("path", vec![]),
        ("utilization", vec![]),
        ("latency", vec![]),
        ("fairness", vec![]),
    ] {
        let alone = schedviz(&[&[command, trace, "--json"], more.as_slice()].concat()).success().stdout;
        let file = one.iter().find(|(name, _)| *name == format!("{command}.json")).map(|(_, bytes)| bytes);
        // dat2graph alone does not follow the state, and has none of its diagnostics.
        let document = |bytes: &[u8]| {
            let mut json: serde_json::Value = serde_json::from_slice(bytes).expect("JSON");
            if command == "dat2graph" {
                json["trust"].take();
            }
            json
        };
        assert_eq!(file.map(|bytes| document(bytes)), Some(document(&alone)), "{command}.json");
    }
    // Causes of migrations are there but for the list of single ones, and probes where they were recorded.
    let balance = |json: &[u8]| -> serde_json::Value {
        let mut json: serde_json::Value = serde_json::from_slice(json).expect("JSON");
        json.as_object_mut().expect("an object").remove("migrations");
        json
    };
    let file = one.iter().find(|(name, _)| name == "balance.json").map(|(_, bytes)| balance(bytes));
    assert_eq!(file, Some(balance(&schedviz(&["migrations", trace, "--json"]).success().stdout)));
    assert!(names.contains(&"balance.svg") && !names.contains(&"events.json"), "{names:?}");
    assert!(page.contains("<h2 id=\"balance\">Causes of migrations</h2>") && page.contains("wakeup placement"));
    let (probes, to) = (fixture("balance.dat"), folder.join("probes"));
    let (probes, to_name) = (probes.to_str().expect("a path"), to.to_str().expect("a path"));
    schedviz(&["report", probes, "-q", "-o", to_name]).success();
    let written = |name: &str| std::fs::read(to.join(name)).expect("a file");
    assert!(written("events.json") == schedviz(&["events", probes, "--json", "-q"]).success().stdout);
    let ours = balance(&written("balance.json"));
    assert_eq!(ours, balance(&schedviz(&["migrations", probes, "--json", "-q"]).success().stdout));
    assert!(ours["probes"]["attempts_by_moved"].is_object(), "{ours}");
    let page = String::from_utf8(written("index.html")).expect("the page");
    assert!(page.contains("lb:load_balance") && page.contains("Probes on the balancer"));
    assert!(String::from_utf8(written("events.svg")).expect("a figure").contains("108 events"));
    // For some CPUs, too, each part equals the command's own, and no part follows tasks wherever they run.
    let some = folder.join("some");
    schedviz(&["report", trace, "-o", some.to_str().expect("a path"), "-q", "--cpus", "0-3"]).success();
    for command in ["workcons", "utilization", "latency"] {
        let alone = schedviz(&[command, trace, "--json", "-q", "--cpus", "0-3"]).success().stdout;
        assert!(std::fs::read(some.join(format!("{command}.json"))).expect("a file") == alone, "{command}.json");
    }
    assert!(!some.join("fairness.json").exists());
    for command in ["latency", "utilization", "fairness"] {
        let run = |threads: &str| schedviz(&[command, trace, "--json", "--threads", threads]).success().text();
        assert_eq!(run("1"), run("4"), "{command}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn pages_and_figures_stay_as_they_are() {
    let (trace, cpus) = (fixture("hackbench.dat"), fixture("hackbench.cpus.txt"));
    let (trace, cpus) = (trace.to_str().expect("a path"), cpus.to_str().expect("a path"));
    for command in ["latency", "utilization", "fairness"] {
        let text = schedviz(&[command, "-q", trace, "--topology", cpus]).success().text();
        golden(&format!("{command}.txt"), &text);
    }
    for command in ["latency", "utilization"] {
        let svg = schedviz(&[command, "-q", trace, "--topology", cpus, "-o", "-", "--format", "svg"]);
        golden(&format!("{command}.svg"), &svg.success().text());
    }
    let folder = scratch("judging-golden");
    let path = folder.join("shares.svg");
    schedviz(&["fairness", "-q", trace, "-o", path.to_str().expect("a path")]).success();
    let svg = std::fs::read_to_string(folder.join("shares-1.svg")).expect("the Lorenz curve");
    // The command at its foot names the folder.
    assert!(svg.contains("share of the run time"));
    let both = fixture("hackbench-7.2.dat");
    let (a, b) = (format!("a={trace}"), format!("b={}", both.to_str().expect("a path")));
    golden("compare.txt", &schedviz(&["compare", "-q", "--group", &a, "--group", &b]).success().text());
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn specifications_are_sections_of_a_report() {
    let folder = scratch("report-plot");
    let trace = fixture("marker-pairs.dat");
    let trace = trace.to_str().expect("a path");
    let mine = folder.join("mine.toml");
    std::fs::write(&mine, "title = \"Texts <by> CPU\"\n[[point]]\nname = \"text\"\nevent = \"ftrace:print\"\n")
        .expect("written");
    let (mine, to) = (mine.to_str().expect("a path"), folder.join("page"));
    let to = to.to_str().expect("a path");
    for plots in [vec!["--plot", "markers"], vec!["--plot", "markers", "--plot", mine]] {
        schedviz(&[&["report", trace, "-o", to], &plots[..]].concat()).success();
        let page = std::fs::read_to_string(format!("{to}/index.html")).expect("a page");
        assert!(page.contains("Texts &lt;by&gt; CPU") == (plots.len() == 4) && !page.contains("Texts <by>"));
        let names: &[&str] = if plots.len() == 2 { &["plot"] } else { &["plot-1", "plot-2"] };
        for (name, plot) in names.iter().zip(plots.chunks(2)) {
            let kept = std::fs::read(format!("{to}/{name}.json")).expect("the numbers");
            assert_eq!(kept, schedviz(&["plot", plot[1], trace, "--json", "-q"]).success().stdout, "{name}");
            assert!(page.contains(&format!("<h2 id=\"{name}\">")), "{name}");
            let svg = std::fs::read_to_string(format!("{to}/{name}.svg")).expect("a figure");
            assert!(svg.starts_with("<svg"), "{name}");
        }
    }
    let ran = schedviz(&["report", trace, "-o", to, "--plot", "locks"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--plot locks: ") && ran.stderr.contains("lock:contention_begin"), "{}", ran.stderr);
    std::fs::remove_dir_all(&folder).expect("removed");
}
