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
}

#[test]
fn the_program_says_who_got_what() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let text = schedviz(&["fairness", trace, "--group-by", "^(hack|trace)"]).success().text();
    assert!(
        text.contains("the application has 1 member;") && text.contains("of all 2") && text.contains("longest waits"),
        "{text}"
    );
    let json = schedviz(&["fairness", trace, "--group-by", "command", "--weights", "--json"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["schema"], &json["weights"]), (&"schedviz/fairness/2".into(), &true.into()));
    let text = schedviz(&["utilization", trace, "--per-cpu", "--interval", "100ms"]).success().text();
    assert!(text.contains("%app") && text.contains("idled beside overloaded ones"), "{text}");
    for (arguments, advice) in [
        (vec!["utilization", trace, "--interval", "0"], "not a length"),
        (vec!["utilization", trace, "--interval", "1ns"], "intervals"),
        (vec!["fairness", trace, "--group-by", "("], "--by"),
        (vec!["fairness", trace, "--cpus", "1"], "--cpus"),
    ] {
        let ran = schedviz(&arguments);
        assert!(ran.code == Some(1) && ran.stderr.contains(advice), "{arguments:?}: {}", ran.stderr);
    }
}

/// The questions that reports on a trace are about, in their order.
fn in_reports() -> Vec<&'static str> {
    let of_runs_alone = "compare";
    let entries = schedviz::COMMANDS.iter().filter(|entry| entry.is_in_report() && entry.name != of_runs_alone);
    entries.map(|entry| entry.name).collect()
}

#[test]
fn reports_are_about_every_question() {
    let others = schedviz::COMMANDS.iter().filter(|entry| entry.formats().is_some() && !entry.is_in_report());
    // A figure by a specification is asked for by --plot; an instant and copies of /proc/schedstat are not about a whole trace.
    assert_eq!(others.map(|entry| entry.name).collect::<Vec<_>>(), ["plot", "stepper", "schedstat"]);
}

/// Asserts that each question has a section with the document of its command, or stands among those that the trace cannot answer.
/// Returns these, each with its reason.
fn answered((trace, shared): (&str, &[&str]), page: &str, file: impl Fn(&str) -> Vec<u8>) -> Vec<(String, String)> {
    let sections: Vec<&str> = page.split("<h2 id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let lines = page.lines().filter_map(|line| line.strip_prefix("<li><code>")?.strip_suffix("</li>"));
    let unanswered = lines.map(|line| line.split_once("</code>: ").expect("a reason"));
    let unanswered: Vec<(String, String)> = unanswered.map(|(name, why)| (name.to_owned(), why.to_owned())).collect();
    let has_none = |name: &&str| unanswered.iter().any(|(other, _)| other == *name);
    let (without, with): (Vec<&str>, Vec<&str>) = in_reports().into_iter().partition(has_none);
    assert_eq!(unanswered.iter().map(|(name, _)| name).collect::<Vec<_>>(), without, "{trace}: in the order of help");
    let last = if without.is_empty() { None } else { Some("unanswered") };
    assert_eq!(sections, with.iter().copied().chain(last).collect::<Vec<_>>(), "{trace}");
    for name in with {
        let more: &[&str] = if name == "running-waiting" { &["--per-cpu"] } else { &[] };
        let alone = schedviz(&[&[name, trace, "--json", "-q"], shared, more].concat());
        let document = |bytes: &[u8]| {
            let mut json: serde_json::Value = serde_json::from_slice(bytes).expect("JSON");
            match name {
                // Alone it does not follow the state, and has none of its diagnostics.
                "dat2graph" => {
                    json["trust"].take();
                    // A lane read alone knows the task before the first switch, which the state of a perf.data file does not.
                    if trace.ends_with(".data") {
                        json["lanes"].take();
                        json["tasks"].take();
                    }
                }
                // A report has no list of single migrations.
                "migrations" => drop(json.as_object_mut().expect("an object").remove("migrations")),
                _ => {}
            }
            json
        };
        assert_eq!(document(&file(&format!("{name}.json"))), document(&alone.stdout), "{trace}: {name}.json");
    }
    unanswered
}

/// What each recording cannot answer, by the events that it lacks.
#[test]
fn each_question_has_a_section_or_says_what_to_record() {
    let folder = scratch("report-questions");
    for (name, more, without) in [
        ("balance.dat", &[][..], &["preemptions", "picks", "offcpu", "residency"][..]),
        ("hackbench-v6.dat", &["--topology", "hackbench-v6.cpus.txt"], &["preemptions", "picks", "offcpu", "events"]),
        ("perf-stacks.data", &[], &["preemptions", "picks"]),
    ] {
        let (trace, to) = (fixture(name), folder.join(name));
        let (trace, to_name) = (trace.to_str().expect("a path"), to.to_str().expect("a path"));
        let topology = more.last().map(|file| fixture(file).to_str().expect("a path").to_owned());
        let more: Vec<&str> = topology.iter().flat_map(|file| ["--topology", file.as_str()]).collect();
        schedviz(&[&["report", trace, "-q", "-o", to_name], more.as_slice()].concat()).success();
        let read = |file: &str| std::fs::read(to.join(file)).expect("a file");
        let page = String::from_utf8(read("index.html")).expect("the page");
        let unanswered = answered((trace, &more), &page, read);
        let names: Vec<&str> = unanswered.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, without, "{name}: {unanswered:#?}");
        let remedy = |name: &str| match name {
            "preemptions" => "schedviz record --why",
            "picks" => "schedviz record --why=picks",
            "offcpu" => "schedviz record --stacks",
            "residency" => "--topology cpus.json",
            "events" => "record with -e",
            other => panic!("{other}: why does this trace not answer it?"),
        };
        unanswered.iter().for_each(|(name, why)| assert!(why.contains(remedy(name)), "{name}: {why}"));
        if name == "balance.dat" {
            let funnel: serde_json::Value = serde_json::from_slice(&read("migrations.json")).expect("JSON");
            assert!(funnel["probes"]["attempts_by_moved"].is_object(), "{funnel}");
            assert!(page.contains("lb:load_balance") && page.contains("Probes on the balancer"));
            assert!(String::from_utf8(read("events.svg")).expect("a figure").contains("108 events"));
        }
    }
}

/// A report runs every analysis beside the others, so that an order of results that depends on threads shows here alone.
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
    assert_eq!(page.matches("<svg").count(), 13);
    // The findings stand first, though they are made from the other sections.
    let findings = page.find("<h2 id=\"findings\">").expect("the findings");
    assert!(page.find("<h2").is_some_and(|first| first == findings));
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href=\"http"), "it stands alone");
    let file = |name: &str| one.iter().find(|(file, _)| file == name).map(|(_, bytes)| bytes.clone());
    answered((trace, &[]), &page, |name| file(name).expect(name));
    assert!(!names.contains(&"events.json") && page.contains("<h2 id=\"migrations\">Causes of migrations</h2>"));
    assert!(page.contains("wakeup placement"));
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
}
