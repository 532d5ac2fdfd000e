//! The shape of the project: the dependencies of each crate, and the truth of the documents about them.

use crate::support::root;
use sched::Tracepoint;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The lines of a block in backquotes of ARCHITECTURE.md, behind a sentence.
fn block(map: &str, above: &str) -> Vec<String> {
    let (_, rest) = map.split_once(above).unwrap_or_else(|| panic!("ARCHITECTURE.md: no {above:?}"));
    let (block, _) = rest.split_once("```\n").and_then(|(_, rest)| rest.split_once("```")).expect("a block");
    block.lines().map(str::to_owned).collect()
}

/// The crates of the picture in ARCHITECTURE.md, each with its floor, counted from the highest.
fn floors(map: &str) -> BTreeMap<String, usize> {
    let (mut floor, mut floors) = (0, BTreeMap::new());
    for line in block(map, "## Floors\n") {
        let names = match line.strip_prefix(' ') {
            Some(more) => more,
            None => {
                floor += 1;
                line.split_once(' ').expect("a floor and its crates").1
            }
        };
        for name in names.split_whitespace() {
            assert_eq!(floors.insert(name.to_owned(), floor), None, "ARCHITECTURE.md: {name} is on two floors");
        }
    }
    floors
}

/// The arrows between crates of one floor in ARCHITECTURE.md.
fn arrows_within_a_floor(map: &str) -> BTreeSet<(String, String)> {
    let lines = block(map, "The arrows within a floor:\n");
    let arrows = lines.iter().flat_map(|line| {
        let (from, to) = line.split_once(" -> ").unwrap_or_else(|| panic!("no arrow: {line}"));
        to.split(' ').map(|to| (from.to_owned(), to.to_owned())).collect::<Vec<_>>()
    });
    arrows.collect()
}

/// The dependencies between crates of ours by their folders, without those of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let folder = |package: &serde_json::Value| {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        manifest.parent().and_then(Path::file_name).expect("a folder").to_string_lossy().into_owned()
    };
    let packages = metadata["packages"].as_array().expect("packages");
    // The unit tests of a crate can be a package of their own, from its sources.
    let is_crate = |package: &&serde_json::Value| !package["name"].as_str().expect("a name").ends_with("-units");
    let packages: Vec<&serde_json::Value> = packages.iter().filter(is_crate).collect();
    let of = |package: &&serde_json::Value| {
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        assert!(package["name"] != "schedviz-sched" || dependencies.iter().all(|d| d["name"] != "clap"), "no flags");
        let ours = dependencies.iter().filter(|dependency| dependency["kind"].as_str() != Some("dev"));
        let ours = ours.filter_map(|ours| packages.iter().find(|package| package["name"] == ours["name"]));
        (folder(package), ours.map(|package| folder(package)).collect())
    };
    packages.iter().map(of).collect()
}

/// The picture of the floors has every crate once, and each has a line below it.
#[test]
fn every_crate_is_on_one_floor() {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (floors, crates) = (floors(&map), dependencies());
    assert_eq!(floors.keys().collect::<Vec<_>>(), crates.keys().collect::<Vec<_>>(), "the picture, and the workspace");
    let told = map.lines().filter_map(|line| line.strip_prefix("* `crates/")?.split('`').next());
    let told: Vec<&str> = told.filter(|name| !name.contains('/')).collect();
    let on_floor = |name: &&str| floors[*name];
    assert!(told.is_sorted_by_key(on_floor), "the lines stand in the order of the floors");
    assert_eq!(told.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), crates.into_keys().collect());
}

/// Arrows lead to lower floors, but for those within a floor that ARCHITECTURE.md lists; each of these is there.
#[test]
fn arrows_lead_to_lower_floors() {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (floors, mut listed) = (floors(&map), arrows_within_a_floor(&map));
    for (from, to) in &listed {
        assert_eq!(floors.get(from), floors.get(to), "ARCHITECTURE.md: {from} -> {to} is not within a floor");
    }
    let mut astray = Vec::new();
    for (from, tos) in dependencies() {
        for to in tos {
            let is_listed = listed.remove(&(from.clone(), to.clone()));
            if floors[&from] >= floors[&to] && !is_listed {
                astray.push(format!("{from} -> {to}"));
            }
        }
    }
    assert_eq!(astray, [""; 0], "arrows up or within a floor that ARCHITECTURE.md does not list");
    assert!(listed.is_empty(), "ARCHITECTURE.md lists arrows that are not there: {listed:?}");
}

/// ARCHITECTURE.md: there is no `unsafe` but in the optional binding of libtraceevent.
#[test]
fn one_crate_alone_has_unsafe_code() {
    let allows = |source: &String| {
        let text = std::fs::read_to_string(root().join(source)).unwrap_or_else(|e| panic!("{source}: {e}"));
        text.contains("allow(unsafe_code)") || text.contains("global_asm!")
    };
    let sources: Vec<String> = tracked(&["crates/*.rs"]).into_iter().filter(allows).collect();
    assert_eq!(sources, ["crates/traceevent/src/lib.rs"]);
}

/// The folders that the project's design names stay where they are: people who know it look for them there.
#[test]
fn folders_of_the_design_are_there() {
    let crates = ["parse", "dat2graph", "running-waiting", "stepper", "events", "workcons"];
    for name in crates {
        let manifest = std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect(name);
        let library = format!("[lib]\nname = \"{}\"\n", name.replace('-', "_"));
        assert!(manifest.contains(&library), "crates/{name} holds the library of that name");
        assert!(manifest.contains(&format!("name = \"schedviz-{name}\"\n")), "crates/{name}: the name of the package");
    }
    for folder in ["examples", "tests/fixtures"] {
        assert!(root().join(folder).is_dir(), "{folder}");
    }
}

/// Paths in backquotes that look like files of the repository exist, and so do the documents that comments cite.
#[test]
fn documents_name_files_that_exist() {
    let prefixes = ["crates/", "tests/", "docs/", "fuzz/", "examples/", "benches/", ".ci/"];
    for document in tracked(&["*.md"]) {
        let text = std::fs::read_to_string(root().join(&document)).unwrap_or_else(|e| panic!("{document}: {e}"));
        let words = text.split('`').skip(1).step_by(2).filter(|w| !w.contains([' ', '*', '<', '$', '(']));
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for word in words.filter(|w| w.contains('/') && prefixes.iter().any(|p| w.starts_with(p))) {
            let file = word.split('#').next().unwrap_or(word);
            assert!(root().join(file).exists(), "{document} names {word}, which is not there");
        }
        let folder = root().join(&document).parent().expect("a folder").to_owned();
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            assert!(folder.join(link).exists(), "{document} links to {link}, which is not there");
        }
    }
    for source in tracked(&["*.rs"]) {
        let text = std::fs::read_to_string(root().join(&source)).unwrap_or_else(|e| panic!("{source}: {e}"));
        for comment in text.lines().filter_map(|line| line.split_once("//").map(|(_, comment)| comment)) {
            let cited = comment.split([' ', '`', '(', ')', ',', ';', '[', ']']).filter(|w| w.ends_with(".md"));
            for word in cited.filter(|w| w.len() > ".md".len()) {
                let near = root().join(&source).parent().expect("a folder").join(word);
                assert!(root().join(word).exists() || near.exists(), "{source} cites {word}, which is not there");
            }
        }
    }
}

/// The files of the repository that match.
fn tracked(patterns: &[&str]) -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "--"]).args(patterns).current_dir(root()).output();
    let listed = listed.expect("git");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let files: Vec<String> = String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect();
    assert!(files.len() > 5, "{patterns:?}: {files:?}");
    files
}

/// The names of interpreted events stand in `crates/sched/src/event/tracepoint.rs` alone; the test kit, which writes files,
/// and unit tests have their own.
#[test]
fn names_of_events_stand_in_one_table() {
    let mut elsewhere = Vec::new();
    for source in tracked(&["crates/*.rs"]) {
        let has_own = source.starts_with("crates/testkit") || source.ends_with("/tests.rs");
        if has_own || source == "crates/sched/src/event/tracepoint.rs" {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&source)).unwrap_or_else(|e| panic!("{source}: {e}"));
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for tracepoint in Tracepoint::ALL {
            for name in [tracepoint.name(), tracepoint.full_name()] {
                if code.contains(&format!("\"{name}\"")) {
                    elsewhere.push(format!("{source}: {name}"));
                }
            }
        }
    }
    // The list of the tracer's events that are printed in a way of their own names one of them.
    elsewhere.retain(|place| place != "crates/parse/src/trace/print.rs: kernel_stack");
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
}

/// Keys of a hash table come from a file, which can choose those of one chain where the hash has no seed: tables are
/// `sched::seeded`'s, or the standard library's, which have one.
#[test]
fn hash_tables_have_a_seed() {
    for source in tracked(&["crates/*.rs", "crates/*/Cargo.toml", "Cargo.toml"]) {
        let text = std::fs::read_to_string(root().join(&source)).unwrap_or_else(|e| panic!("{source}: {e}"));
        for unseeded in ["rustc_hash", "rustc-hash", "fxhash", "FixedState", "BuildHasherDefault", "impl Hasher for"] {
            assert!(!text.contains(unseeded), "{source}: {unseeded}");
        }
        let names_foldhash = text.contains("foldhash");
        let is_place =
            ["crates/sched/src/tables/seeded.rs", "crates/sched/Cargo.toml", "Cargo.toml"].contains(&source.as_str());
        assert!(!names_foldhash || is_place, "{source}: sched::seeded is the one place of this hash");
    }
}

/// The README of each library shows the example of its front page, which runs as a test.
#[test]
fn every_library_has_a_front_page() {
    let (mut seen, together) = (0, root().join("crates/readmes"));
    let tested = std::fs::read_to_string(together.join("src/lib.rs")).expect("the READMEs that are tested together");
    for entry in std::fs::read_dir(root().join("crates")).expect("crates").flatten() {
        let (folder, read) = (entry.path(), |file: &str| std::fs::read_to_string(entry.path().join(file)));
        let Some(library) = read("src/lib.rs").ok().filter(|_| folder != together) else { continue };
        let name = folder.file_name().expect("a name").to_string_lossy();
        let is_its_own = !read("Cargo.toml").expect("Cargo.toml").contains("doctest = false");
        assert_ne!(
            is_its_own,
            tested.contains(&format!("\"{name}\"")),
            "{name}: tested by itself or in crates/readmes"
        );
        let readme = read("README.md").unwrap_or_else(|e| panic!("{}: README.md: {e}", folder.display()));
        assert!(read("Cargo.toml").expect("Cargo.toml").contains("readme = \"README.md\""), "{}", folder.display());
        let (_, shown) = readme.split_once("```rust\n").unwrap_or_else(|| panic!("{}: no example", folder.display()));
        // An example of the binding of libtraceevent cannot run where that is not installed.
        if folder.ends_with("traceevent") {
            continue;
        }
        let page: Vec<&str> = library.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim_end).collect();
        let code = page.iter().skip_while(|line| **line != " ```").skip(1).take_while(|line| **line != " ```");
        let code: Vec<&str> = code.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        let visible = code.iter().filter(|line| **line != "#" && !line.starts_with("# "));
        let visible: Vec<&str> = visible.copied().skip_while(|line| line.is_empty()).collect();
        assert!(!visible.is_empty(), "{}: no example on the front page", folder.display());
        let shown: Vec<&str> = shown.lines().take_while(|line| *line != "```").collect();
        assert_eq!(shown, visible, "{}", folder.display());
        seen += 1;
    }
    assert!(seen > 15, "{seen} libraries");
}

#[test]
fn files_stay_readable() {
    let mut long = Vec::new();
    let mut folders =
        vec![root().join("crates"), root().join("tests"), root().join("benches"), root().join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let lines = std::fs::read_to_string(&path).expect("text").lines().count();
                if lines > 620 {
                    long.push((path, lines));
                }
            }
        }
    }
    assert!(long.is_empty(), "{long:?}");
}

/// Every dependency that is compiled here has a licence that deny.toml allows; CI need not have cargo-deny
/// for that.
#[test]
fn licences_are_those_that_are_allowed() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let list = deny.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).expect("a list of licences");
    let allowed: Vec<&str> = list.split(',').map(|l| l.trim().trim_matches('"')).collect();
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc");
    let rustc = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = rustc.lines().find_map(|l| l.strip_prefix("host: ")).expect("the host's triple");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", host])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let used: Vec<&str> =
        metadata["resolve"]["nodes"].as_array().expect("nodes").iter().filter_map(|n| n["id"].as_str()).collect();
    let mut seen = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        if !used.contains(&package["id"].as_str().expect("an id")) {
            continue;
        }
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or("none"));
        let plain = licence.replace(['(', ')'], "").replace('/', " OR ");
        let fits = |choice: &str| choice.split(" AND ").all(|part| allowed.contains(&part.trim()));
        let exception = format!("{{ name = {name}, allow = [\"{licence}\"] }}");
        assert!(plain.split(" OR ").any(fits) || deny.contains(&exception), "{name}: {licence}");
        seen += 1;
    }
    assert!(seen > 50, "{seen} packages are too few to be all");
}

/// All files are opened for reading by the crate `opened`, which remembers them: no output replaces one of them.
#[test]
fn inputs_are_opened_in_one_place() {
    let ways = ["File::open(", "fs::read(", "read_to_string(", "OpenOptions::", "File::options("];
    let exceptions = [
        "crates/opened/src/lib.rs",
        // The kernel's files.
        "crates/machine/src/root.rs",
        "crates/record/src/kernel.rs",
        "crates/record/src/live/facts.rs",
        "crates/record/src/traced/command_tasks.rs",
        // It notes the file that it opens without waiting for a writer of a FIFO.
        "crates/machine/src/bounded.rs",
        // It reads a file to find out whether it may replace it.
        "crates/schedviz/src/registry/report.rs",
        "crates/view/src/command/index_file.rs",
        "crates/machine/src/kept_output.rs",
        "crates/record/src/command/kept_output.rs",
        // They open what they write.
        "crates/session/src/output/atomic_file.rs",
        "crates/record/src/traced.rs",
        // It is compiled for tests alone.
        "crates/schedviz/src/registry/documentation.rs",
        "crates/schedviz/src/registry/schemas.rs",
    ];
    let exempt = ["crates/testkit/", "crates/tracefs/"];
    let mut looked_at = 0;
    for path in tracked(&["crates/*/src/*.rs"]) {
        if exceptions.contains(&path.as_str())
            || exempt.iter().any(|folder| path.starts_with(folder))
            || path.ends_with("tests.rs")
        {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&path)).expect("a source");
        let code = text.split("#[cfg(test)]\nmod tests").next().and_then(|code| code.split("#[test]").next());
        looked_at += 1;
        for way in ways {
            let line =
                code.unwrap_or_default().lines().find(|line| line.contains(way) && !line.contains("proc/schedstat"));
            assert!(line.is_none(), "{path}: {}: use opened::file", line.unwrap_or_default().trim());
        }
    }
    assert!(looked_at > 300, "{looked_at} files");
}

/// All outputs go through one file, which follows no link of a stranger. The helper of a recording is an exception: it writes
/// to a nameless file of its parent.
#[test]
fn outputs_are_written_in_one_place() {
    let ways =
        ["fs::write(", "File::create(", "OpenOptions::", "File::options(", "fs::copy(", "create_dir", ".persist("];
    let exceptions = ["crates/session/src/output/atomic_file.rs", "crates/record/src/traced.rs"];
    let mut looked_at = 0;
    // The test kit writes traces for tests, tracefs the files of the kernel.
    let exempt = ["crates/testkit/", "crates/tracefs/"];
    let others = |path: &String| !exempt.iter().any(|folder| path.starts_with(folder)) && !path.ends_with("/tests.rs");
    for path in tracked(&["crates/*/src/*.rs"]).into_iter().filter(others) {
        let text = std::fs::read_to_string(root().join(&path)).expect("a source");
        // Behind it are tests.
        let code = text.split("#[cfg(test)]\nmod tests").next().and_then(|code| code.split("#[test]").next());
        let code = code.unwrap_or_default();
        looked_at += 1;
        if exceptions.contains(&path.as_str()) {
            continue;
        }
        for way in ways {
            let line = code.lines().find(|line| line.replace("AtomicFile::create(", "").contains(way));
            assert!(line.is_none(), "{path}: {}: use atomic_file", line.unwrap_or_default().trim());
        }
    }
    assert!(looked_at > 300, "{looked_at} files");
}
