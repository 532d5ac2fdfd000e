//! The metadata of the packages that `.ci/package` makes.

use crate::support::root;
use std::process::Command;

fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The script stages all that both packages hold, and both hold the same files.
#[test]
fn both_packages_have_the_files_that_the_script_stages() {
    let manifest: toml::Table = text("crates/schedviz/Cargo.toml").parse().expect("TOML");
    let metadata = &manifest["package"]["metadata"];
    let of_deb = metadata["deb"]["assets"].as_array().expect("assets of the .deb");
    let of_deb: Vec<&str> = of_deb.iter().filter_map(|asset| asset[0].as_str()?.strip_prefix("../../")).collect();
    let of_rpm = metadata["generate-rpm"]["assets"].as_array().expect("assets of the .rpm");
    let of_rpm: Vec<&str> = of_rpm.iter().filter_map(|asset| asset["source"].as_str()).collect();
    assert_eq!(of_deb, of_rpm);
    let script = text(".ci/package");
    for asset in &of_deb {
        let folder = asset.strip_prefix("target/package/stage/").expect("a staged file").trim_end_matches(['*', '/']);
        assert!(script.contains(&format!("$stage/{folder}")), "the script does not stage {folder}");
    }
    assert_eq!(of_deb.len(), 7);
    assert_eq!(metadata["deb"]["recommends"].as_str(), Some("trace-cmd"));
    assert!(metadata["generate-rpm"]["recommends"].get("trace-cmd").is_some());
}

/// `cargo binstall` looks for the archives by the names that the script gives them.
#[test]
fn archives_have_the_names_that_binstall_looks_for() {
    let manifest: toml::Table = text("crates/schedviz/Cargo.toml").parse().expect("TOML");
    let binstall = &manifest["package"]["metadata"]["binstall"];
    let filled = |template: &toml::Value| {
        let parts = [("{ name }", "schedviz"), ("{ version }", "1.2.3"), ("{ target }", "x86_64-unknown-linux-musl")];
        let more =
            [("{ archive-suffix }", ".tgz"), ("{ bin }", "schedviz"), ("{ binary-ext }", ""), ("{ repo }", "REPO")];
        let template = template.as_str().expect("a template").to_owned();
        parts.iter().chain(&more).fold(template, |text, (from, to)| text.replace(from, to))
    };
    let (name, folder) = ("schedviz-1.2.3-x86_64-unknown-linux-musl", "/bin/schedviz");
    for place in [binstall, &binstall["overrides"]["x86_64-unknown-linux-gnu"]] {
        assert_eq!(filled(&place["pkg-url"]), format!("REPO/releases/download/v1.2.3/{name}.tgz"));
        assert_eq!(filled(&place["bin-dir"]), format!("{name}{folder}"));
    }
    assert!(text(".ci/package").contains("local name=schedviz-$version-$1"));
}

#[test]
fn the_scripts_have_no_slip_that_the_shell_sees() {
    for script in ["package", "dist", "run"] {
        let checked = Command::new("bash").arg("-n").arg(root().join(".ci").join(script)).status().expect("bash");
        assert!(checked.success(), "{script}");
    }
}
