//! The page of a figure: its size, its letters, its title, and its fonts, for every command that draws.

use crate::support::{fixture, schedviz};
use std::process::Command;

/// The commands that draw, with their arguments.
fn drawing() -> Vec<Vec<String>> {
    let path = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let (trace, cpus) = (path("hackbench.dat"), path("hackbench.cpus.txt"));
    let of = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let group = |name: &str, file: &str| format!("{name}={}", path(file));
    vec![
        of(&["dat2graph", &trace, "--topology", &cpus, "--events", "sched:sched_migrate_task"]),
        of(&["running-waiting", &trace, "--per-cpu", "--topology", &cpus]),
        of(&["workcons", &trace, "--topology", &cpus]),
        of(&["workcons", "--group", &group("a", "hackbench*.dat"), "--group", &group("b", "spmd-plus1.dat")]),
        of(&["utilization", &trace]),
        of(&["latency", &trace]),
        of(&["fairness", &trace]),
        of(&["migrations", &trace]),
        of(&["events", &trace, "--rate"]),
        of(&["events", &trace, "--max", "0.1"]),
        of(&["events", &trace, "--events", "sched:sched_migrate_task", "--value", "dest_cpu"]),
        of(&["stepper", &trace, "--at", "0.3"]),
        of(&["compare", "--group", &group("a", "hackbench*.dat"), "--group", &group("b", "spmd-plus1.dat")]),
    ]
}

/// A text of a figure: its box from left, top to right, bottom in hundredths of a point, its size, and its words.
struct Text {
    ends: [f64; 4],
    size: f64,
    words: String,
}

/// Finds the sizes and texts of the figure in an SVG document, with the widths of the font's own glyphs.
fn texts(svg: &str) -> (f64, f64, Vec<Text>) {
    let attribute = |element: &str, name: &str| {
        let from = element.find(&format!(" {name}=\""))? + name.len() + 3;
        Some(element[from..].split('"').next().expect("a value").to_owned())
    };
    let number =
        |element: &str, name: &str| attribute(element, name).map_or(f64::NAN, |v| v.parse().expect("a number"));
    let view = attribute(svg, "viewBox").expect("a page");
    let mut view = view.split(' ').skip(2).map(|v| v.parse::<f64>().expect("a number"));
    let (width, height) = (view.next().expect("a width"), view.next().expect("a height"));
    let bytes = std::fs::read(crate::support::root().join("crates/draw/fonts/sans.ttf")).expect("a font");
    let font = ttf_parser::Face::parse(&bytes, 0).expect("a font");
    let advance = |c| {
        let glyph = font.glyph_index(c).unwrap_or_else(|| panic!("no glyph for {c:?}"));
        f64::from(font.glyph_hor_advance(glyph).expect("a width")) / f64::from(font.units_per_em())
    };
    let text = |element: &str| {
        let words = element.split_once('>').expect("a text").1.split("</text").next().expect("an end");
        let words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        let (x, y, size) = (number(element, "x"), number(element, "y"), number(element, "font-size"));
        let long = words.chars().map(advance).sum::<f64>() * size;
        let back = match attribute(element, "text-anchor").as_deref() {
            None => 0.0,
            Some("middle") => long / 2.0,
            Some(_) => long,
        };
        // From the top of the capitals to the baseline.
        let ends = match attribute(element, "transform") {
            None => [x - back, y - 0.72 * size, x - back + long, y],
            Some(_) => [x - 0.72 * size, y + back - long, x, y + back],
        };
        Text { ends, size, words }
    };
    (width, height, svg.split("<text").skip(1).map(text).collect())
}

#[test]
fn pages_have_the_size_that_is_asked_for_and_hold_all_texts() {
    // A page of a paper, a slide, and a column with small letters.
    for (width, height, letters) in [("254mm", "190.5mm", 7.0), ("13.333in", "7.5in", 12.0), ("12cm", "15cm", 5.0)] {
        for command in drawing() {
            let letters_text = letters.to_string();
            let folder = crate::support::scratch("pages-size");
            let file = folder.join("figure.svg");
            let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
            arguments.extend(["--width", width, "--height", height, "--font-size", &letters_text, "-q"]);
            schedviz(&[&arguments[..], &["-o", file.to_str().expect("a path")]].concat()).success();
            let written = std::fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path());
            let svgs: Vec<String> = written.map(|path| std::fs::read_to_string(path).expect("a figure")).collect();
            assert!(!svgs.is_empty(), "{command:?}");
            for svg in &svgs {
                let (own_width, own_height, texts) = texts(svg);
                let points = |length: &str| {
                    let (number, unit) = length.split_at(length.len() - 2);
                    let each = match unit {
                        "mm" => 7200.0 / 25.4,
                        "cm" => 720.0 / 0.254,
                        _ => 7200.0,
                    };
                    (number.parse::<f64>().expect("a number") * each).round()
                };
                assert_eq!((own_width, own_height), (points(width), points(height)), "{command:?}");
                assert!(texts.len() > 3, "{command:?}");
                for text in &texts {
                    let [left, top, right, bottom] = text.ends;
                    let is_inside = left >= 0.0 && top >= 0.0 && right <= own_width && bottom <= own_height;
                    assert!(is_inside, "{command:?}, {letters} pt: {:?} at {:?}", text.words, text.ends);
                }
                let usual = texts.iter().filter(|text| text.size >= 0.8 * letters * 100.0).count();
                assert!(usual * 2 > texts.len(), "{command:?}: {usual} of {} texts are that large", texts.len());
                no_text_covers_another(&texts, &command);
            }
        }
    }
}

fn no_text_covers_another(texts: &[Text], command: &[String]) {
    for (i, a) in texts.iter().enumerate() {
        for b in &texts[i + 1..] {
            let [al, at, ar, ab] = a.ends;
            let [bl, bt, br, bb] = b.ends;
            // A tenth of a letter is not seen as an overlap.
            let least = 0.1 * a.size.min(b.size);
            let (across, down) = (ar.min(br) - al.max(bl), ab.min(bb) - at.max(bt));
            assert!(across < least || down < least, "{command:?}: {:?} covers {:?}", a.words, b.words);
        }
    }
}

#[test]
fn a_pdf_has_the_page_the_title_and_on_request_the_font() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let draw = |more: &[&str]| {
        let arguments = ["dat2graph", trace, "-q", "-o", "-", "--format", "pdf", "--max", "0.1"];
        schedviz(&[&arguments[..], more].concat()).success().stdout
    };
    let has = |pdf: &[u8], what: &str| pdf.windows(what.len()).any(|w| w == what.as_bytes());
    let plain = draw(&[]);
    let slide = draw(&["--width", "254mm", "--height", "190.5mm", "--font-size", "12", "--title", "Before the patch"]);
    assert!(has(&slide, "/MediaBox [0 0 720 540]") && !has(&plain, "/MediaBox [0 0 720 540]"));
    assert!(has(&slide, "(Before the patch)") && !has(&plain, "(Before the patch)"));
    let embedded = draw(&["--embed-fonts"]);
    assert!(has(&embedded, "/FontFile2") && !has(&embedded, "/Helvetica") && has(&plain, "/BaseFont /Helvetica"));
    assert!(embedded.len() < plain.len() + 20_000, "{} and {} bytes", embedded.len(), plain.len());
    // An independent reader finds the same text in both, where it is installed.
    let text = |pdf: &[u8], name: &str| {
        let folder = crate::support::scratch(name);
        let path = folder.join(name);
        std::fs::write(&path, pdf).expect("written");
        let run = Command::new("pdftotext").args(["-layout"]).arg(&path).arg("-").output().ok()?;
        run.status.success().then(|| String::from_utf8(run.stdout).expect("text"))
    };
    if let (Some(a), Some(b)) = (text(&plain, "plain.pdf"), text(&embedded, "embedded.pdf")) {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(
            words(&a).len() > 20
                && words(&a) == words(&b).into_iter().filter(|w| w != "--embed-fonts").collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_page_that_is_too_small_is_refused_with_the_size_it_needs() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let run = |more: &[&str]| schedviz(&[&["dat2graph", trace, "-q", "-o", "-", "--format", "svg"], more].concat());
    let refused = |ran: crate::support::Ran| {
        assert!(ran.code.is_some_and(|code| code > 0), "{}", ran.stderr);
        ran.stderr
    };
    let error = refused(run(&["--width", "254mm", "--height", "3cm"]));
    let least = error.split("at least ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a size").to_owned();
    assert!(least.parse::<u32>().is_ok_and(|least| least > 30 && least < 120), "{error}");
    run(&["--width", "254mm", "--height", &format!("{least}mm")]).success();
    for (bad, right) in
        [(["--width", "16"], "160mm"), (["--height", "tall"], "16cm"), (["--font-size", "0"], "2 to 72")]
    {
        let error = refused(run(&bad));
        assert!(error.contains(right), "{error}");
    }
    let error = refused(schedviz(&["dat2graph", trace, "-o", "x.svg", "--embed-fonts"]));
    assert!(error.contains("-o FILE.pdf"), "{error}");
    let error = refused(schedviz(&["info", trace, "--width", "16cm"]));
    assert!(error.contains("draws no figure"), "{error}");
}

/// In hackbench all tasks have the same name, and their PIDs differ by a few.
#[test]
fn tasks_that_run_longest_have_colours_of_their_own_in_every_window() {
    let trace = fixture("hackbench.dat");
    let colors = |window: &[&str]| -> Vec<(i64, String)> {
        let ran = schedviz(&[&["dat2graph", trace.to_str().expect("a path"), "--json", "-q"], window].concat());
        let report: serde_json::Value = serde_json::from_str(&ran.success().text()).expect("JSON");
        let of = |task: &serde_json::Value| Some((task["pid"].as_i64()?, task["color"].as_str()?.to_owned()));
        report["tasks"].as_array().expect("tasks").iter().map(|task| of(task).expect("a task")).collect()
    };
    let whole = colors(&[]);
    // The tasks are in the order of their run times; a task that changed its name is there twice.
    let mut longest: Vec<&(i64, String)> = whole.iter().collect();
    let mut seen = std::collections::BTreeSet::new();
    longest.retain(|(pid, _)| seen.insert(*pid));
    let of = |count: usize| longest[..count].iter().map(|(_, color)| color).collect::<std::collections::BTreeSet<_>>();
    assert_eq!((of(9).len(), of(16).len()), (9, 16));
    let apart: Vec<String> = timeline::palette::APART.iter().map(|place| timeline::PALETTE[*place].hex()).collect();
    assert!(of(9).into_iter().all(|color| apart.contains(color)));
    let window = colors(&["--min", "0.3", "--max", "0.4"]);
    assert!(window.len() > 10 && window.iter().all(|task| whole.contains(task)), "{window:?}");
}

/// The numbers of wakers' edges run together, and those of lags beyond a lane were written over one another.
#[test]
fn numbers_in_figures_lie_side_by_side() {
    let folder = crate::support::scratch("pages-numbers");
    let svg = folder.join("figure.svg");
    for (words, name) in [
        (&["wakers", "--by", "task"][..], "hackbench-7.2.dat"),
        (&["wakers", "--by", "task"], "hackbench.dat"),
        (&["wakers", "--by", "task"], "workload-outside-6.12.dat"),
        (&["picks"], "hackbench-7.2.dat"),
        (&["picks"], "workload-outside-6.12.dat"),
    ] {
        let trace = fixture(name);
        let more = [trace.to_str().expect("a path"), "-q", "-o", svg.to_str().expect("a path")];
        schedviz(&[words, &more].concat()).success();
        let texts = texts(&std::fs::read_to_string(&svg).expect("a figure")).2;
        no_text_covers_another(&texts, &[words[0].to_owned(), name.to_owned()]);
        let numbers =
            texts.iter().filter(|text| text.size <= 600.0 && text.words.starts_with(|c: char| c.is_ascii_digit()));
        // Few are left out.
        let numbers = numbers.count();
        assert!(numbers >= 10, "{words:?} {name}: {numbers} numbers");
    }
}

/// Two parents whose PIDs differ by the number of colours had one colour.
#[test]
fn parents_are_told_apart() {
    use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
    let colors = timeline::PALETTE.len() as i32;
    let parents: Vec<i32> = (0..4).map(|nth| 100 + nth * colors).collect();
    let task =
        |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == 0 { b"swapper/0" } else { b"work" }) };
    let at = |ts, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let switch = |ts, prev: i32, next| {
        let state = if prev == 0 { PrevState::RUNNABLE } else { PrevState::asleep(1) };
        at(ts, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
    };
    let family = |(nth, parent): (i64, &i32)| {
        let (start, child) = (nth * 1_000_000, parent + 5);
        let fork = EventKind::Fork { parent: Pid(*parent), child: Pid(child), child_comm: Comm::new(b"work") };
        [
            switch(start, 0, *parent),
            at(start + 1_000, *parent, fork),
            switch(start + 2_000, *parent, child),
            switch(start + 900_000, child, 0),
        ]
    };
    let events: Vec<SchedEvent> = (0..).zip(&parents).flat_map(family).collect();
    let folder = crate::support::scratch("pages-parents");
    let (trace, svg) = (folder.join("parents.dat"), folder.join("figure.svg"));
    std::fs::write(&trace, testkit::TraceBuilder::default().events(&events).build()).expect("written");
    let [path, out] = [&trace, &svg].map(|path| path.to_str().expect("a path"));
    schedviz(&["dat2graph", path, "--color-by", "parent", "-q", "-o", out]).success();
    let document = std::fs::read_to_string(&svg).expect("a figure");
    let names = texts(&document).2.into_iter().filter(|text| text.words.starts_with("forked by ")).count();
    let used = timeline::PALETTE.iter().filter(|color| document.contains(&color.hex())).count();
    assert_eq!((names, used), (4, 4));
}

/// The pictures of a run with many CPUs have the colours of its timeline: those of commands.
#[test]
fn all_timelines_of_a_run_have_the_same_colours() {
    let folder = crate::support::scratch("pages-colours");
    let [trace, ..] = trace_of_256_cpus(&folder);
    let svg = folder.join("figure.svg");
    let legend = |words: &[&str]| {
        schedviz(&[&words[..1], &[&trace, "-q", "-o", svg.to_str().expect("a path")], &words[1..]].concat()).success();
        let texts = texts(&std::fs::read_to_string(&svg).expect("a figure")).2;
        let entries =
            texts.into_iter().filter_map(|text| Some(text.words.strip_suffix(" %")?.rsplit_once(' ')?.0.to_owned()));
        let mut names: Vec<String> = entries.filter(|name| !name.starts_with("and ")).collect();
        names.sort();
        names.truncate(4);
        names
    };
    let of_commands = legend(&["dat2graph", "--color-by", "command"]);
    assert!(!of_commands.is_empty());
    assert_eq!(legend(&["dat2graph"]), of_commands);
    let shown = legend(&["why", "--episode", "1"]);
    // A task's name would be followed by its PID.
    assert!(!shown.is_empty() && shown.iter().all(|name| !name.contains(' ')), "{shown:?}");
}

#[test]
fn figures_of_256_cpus_are_readable() {
    let folder = crate::support::scratch("pages-256");
    let (trace, machine) = (folder.join("large.dat"), folder.join("machine.txt"));
    let run = testkit::Simulation::run(1, 256, 40 * 256);
    let bytes = testkit::TraceBuilder::default().events(&run.events).build();
    std::fs::write(&trace, &bytes).expect("written");
    let place = |cpu: u32| format!("cpu{cpu} socket={} core={} smt={} llc={}\n", cpu / 128, cpu / 2, cpu % 2, cpu / 16);
    std::fs::write(&machine, (0..256).map(place).collect::<String>()).expect("written");
    let [trace, machine] = [&trace, &machine].map(|path| path.to_str().expect("a path"));
    let commands: [&[&str]; 6] = [
        &["dat2graph"],
        &["running-waiting", "--per-cpu"],
        &["workcons"],
        &["utilization"],
        &["migrations"],
        &["stepper", "--at", "0.0001"],
    ];
    for words in commands {
        let svg = folder.join("figure.svg");
        let more = [trace, "--topology", machine, "-q", "-o", svg.to_str().expect("a path")];
        schedviz(&[words, &more].concat()).success();
        let (width, height, texts) = texts(&std::fs::read_to_string(&svg).expect("a figure"));
        for text in &texts {
            let [left, top, right, bottom] = text.ends;
            assert!(left >= 0.0 && top >= 0.0 && right <= width && bottom <= height, "{words:?}: {:?}", text.words);
            // Print resolves letters of three and a half points.
            assert!(text.size >= 350.0, "{words:?}: {:?} has {}", text.words, text.size);
        }
        let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        no_text_covers_another(&texts, &command);
    }
}

/// A recording of 256 CPUs, as a file in this folder, with its topology: 16 nodes of two caches of four cores each; and the
/// PID of the task that exits last.
fn trace_of_256_cpus(folder: &std::path::Path) -> [String; 3] {
    let run = testkit::Simulation::run(1, 256, 40_000);
    let (trace, machine) = (folder.join("many.dat"), folder.join("machine.txt"));
    let builder = testkit::TraceBuilder { cpu_count: 256, ..testkit::TraceBuilder::default() };
    std::fs::write(&trace, builder.events(&run.events).build()).expect("written");
    let place = |cpu: u32| {
        let [socket, node, llc, core] = [128, 16, 8, 2].map(|cpus| cpu / cpus);
        format!("cpu{cpu} socket={socket} node={node} core={core} smt={} llc={}\n", core * 2, llc * 8)
    };
    std::fs::write(&machine, (0..256).map(place).collect::<String>()).expect("written");
    let last = run.events.iter().rev().find_map(|event| match event.kind {
        sched::EventKind::Exit { pid } => Some(pid.to_string()),
        _ => None,
    });
    let [trace, machine] = [trace, machine].map(|path| path.to_str().expect("a path").to_owned());
    [trace, machine, last.expect("an exit")]
}

/// Takes seconds: only a trace of many CPUs has as many marks as a page has places, and each figure has its own.
#[test]
fn no_usual_figure_of_256_cpus_is_large() {
    let folder = crate::support::scratch("pages-small");
    let [trace, machine, last] = trace_of_256_cpus(&folder);
    let commands: [&[&str]; 13] = [
        &["dat2graph"],
        &["dat2graph", "--path-to", &last],
        &["path", "--pid", &last],
        &["running-waiting"],
        &["workcons"],
        &["why"],
        &["why", "--episode", "1"],
        &["migrations"],
        &["events"],
        &["latency"],
        &["fairness"],
        &["utilization"],
        &["stepper", "--at", "0.1"],
    ];
    let pdf = folder.join("figure.pdf");
    for words in commands {
        for topology in [&[][..], &["--topology", &machine][..]] {
            let more = [&trace, "-q", "-o", pdf.to_str().expect("a path")];
            schedviz(&[words, topology, &more].concat()).success();
            let bytes = std::fs::metadata(&pdf).expect("a figure").len();
            assert!(bytes < 100_000, "{words:?} {topology:?}: {bytes} bytes");
        }
    }
}

/// No fixture has more lanes than fit a page.
#[test]
fn many_cpus_share_lanes_by_the_topology() {
    let folder = crate::support::scratch("pages-lanes");
    let [trace, machine, last] = trace_of_256_cpus(&folder);
    let svg = folder.join("figure.svg");
    let run = |words: &[&str]| schedviz(&[&["dat2graph", &trace, "-o", svg.to_str().expect("a path")], words].concat());
    let drawn = |words: &[&str]| {
        run(words).success();
        let texts = texts(&std::fs::read_to_string(&svg).expect("a figure")).2;
        texts.into_iter().map(|text| text.words).collect::<Vec<String>>()
    };
    let named = |texts: &[String], kind: &str| texts.iter().filter(|text| text.starts_with(kind)).count();
    let topology = ["--topology", &machine];
    let caches = drawn(&topology);
    assert_eq!(named(&caches, "LLC "), 32);
    for words in ["LLC 248 (8)", "socket 1", "a lane: LLC of 8 CPUs", "its height: the time of all of them"] {
        assert!(caches.iter().any(|text| text == words), "{words:?} is not in {caches:?}");
    }
    assert!(caches.iter().any(|text| text.contains("coloured by command")), "{caches:?}");
    let nodes = drawn(&[&topology[..], &["--lanes", "node", "--color-by", "pid"]].concat());
    assert_eq!((named(&nodes, "node "), nodes.contains(&"node 15 (16)".to_owned())), (16, true));
    assert!(nodes.iter().any(|text| text.contains("coloured by task")), "{nodes:?}");
    let cores = drawn(&[&topology[..], &["--lanes", "core", "--cpus", "0-31"]].concat());
    assert_eq!(cores.iter().filter(|text| text.starts_with("core ") && text.ends_with(" (2)")).count(), 16);
    // A path goes from CPU to CPU.
    let path = drawn(&[&topology[..], &["--path-to", &last]].concat());
    assert_eq!(named(&path, "LLC "), 0);
    assert!(path.iter().any(|text| text.contains("CPUs that the path does not use have no lanes")), "{path:?}");
    // Its numbers are those of all CPUs, as without it, and no message is in the way where nothing is drawn.
    for words in [&["--path-to", &last][..], &[]] {
        let ran = schedviz(&[&["dat2graph", &trace, "--json"], words].concat()).success();
        let json: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        assert_eq!(json["lanes"].as_array().map(Vec::len), Some(256), "{words:?}");
        assert!(!ran.stderr.contains("lanes"), "{}", ran.stderr);
    }
    // Few CPUs have a lane each, in the same colours.
    let few = drawn(&[&topology[..], &["--cpus", "0-63"]].concat());
    assert!(named(&few, "LLC ") == 0 && few.iter().any(|text| text.contains("coloured by command")), "{few:?}");
    // Without a topology each CPU has a lane, and a message names the way to fewer.
    assert!(run(&[]).success().stderr.contains("256 CPUs are more than 64 lanes"));
    for (words, why) in [
        (&["--lanes", "node"][..], "--lanes node needs the machine's topology"),
        (&["--lanes", "core"][..], "--lanes core needs the machine's topology"),
        (
            &["--topology", &machine, "--lanes", "llc", "--frequency"],
            "--frequency is drawn CPU by CPU: give --lanes cpu",
        ),
        (
            &["--topology", &machine, "--lanes", "node", "--path-to", &last],
            "--path-to is drawn CPU by CPU: give --lanes cpu",
        ),
        (&["--topology", &machine, "--lanes", "llc", "--wakeups"], "--wakeups is drawn CPU by CPU: give --lanes cpu"),
    ] {
        let ran = run(words);
        assert!(ran.code == Some(1) && ran.stderr.contains(why), "{words:?}: {}", ran.stderr);
    }
}
