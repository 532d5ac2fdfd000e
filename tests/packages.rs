//! The metadata of the packages that `.ci/package` makes.

use crate::support::{root, scratch};
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
    for script in ["package", "dist", "run", "release", "../packaging/PKGBUILD"] {
        let checked = Command::new("bash").arg("-n").arg(root().join(".ci").join(script)).status().expect("bash");
        assert!(checked.success(), "{script}");
    }
}

/// The files of Arch and Nix have the version of the workspace, and the name of the archive that a release makes.
#[test]
fn arch_and_nix_have_the_version_of_the_workspace() {
    let manifest: toml::Table = text("Cargo.toml").parse().expect("TOML");
    let version = manifest["workspace"]["package"]["version"].as_str().expect("a version").to_owned();
    let source = root().join("packaging/PKGBUILD");
    let line = format!("source '{}'; echo $pkgver ${{source[0]}}", source.display());
    let told = Command::new("bash").args(["-c", &line]).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&told.stdout), format!("{version} schedviz-{version}-src.tar.gz\n"));
    assert!(text(".ci/release").contains("$out/schedviz-$version-src.tar.gz"));
    assert!(text("packaging/flake.nix").contains(&format!("version = \"{version}\";")));
}

/// `.ci/release` in a small repository with the files that it changes.
#[test]
fn a_release_is_refused_or_shown_before_anything_changes() {
    let folder = scratch("release");
    let files = [
        "Cargo.toml",
        "Cargo.lock",
        "fuzz/Cargo.lock",
        "CHANGELOG.md",
        "packaging/PKGBUILD",
        "packaging/flake.nix",
        ".ci/release",
    ];
    for file in files {
        let copy = folder.join(file);
        std::fs::create_dir_all(copy.parent().expect("a folder")).expect("created");
        std::fs::copy(root().join(file), copy).expect("copied");
    }
    // Whatever the state of ours is.
    std::fs::write(folder.join("CHANGELOG.md"), "# Changelog\n\n## 0.1.0, unreleased\n\nAll.\n").expect("written");
    let git = |words: &[&str]| {
        let author = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"];
        let ran = Command::new("git").args(author).args(words).current_dir(&*folder).output().expect("git");
        assert!(ran.status.success(), "{words:?}: {ran:?}");
        String::from_utf8(ran.stdout).expect("text")
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "all"]);
    let release = |words: &[&str]| {
        let ran = Command::new("bash").arg(".ci/release").args(words).current_dir(&*folder).output().expect("bash");
        (
            ran.status.code(),
            String::from_utf8_lossy(&ran.stdout).into_owned(),
            String::from_utf8_lossy(&ran.stderr).into_owned(),
        )
    };
    let (status, shown, errors) = release(&["--dry-run", "7.8.9"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{shown}");
    let has = |line: &str| shown.lines().filter(|shown| *shown == line).count();
    assert_eq!((has("+pkgver=7.8.9"), has("+        version = \"7.8.9\";")), (1, 1), "{shown}");
    // One of the workspace, and one of each crate in a lock file, but for those of tests, which have none of their own.
    let ours = |lock: &str| text(lock).lines().filter(|line| line.starts_with("name = \"schedviz")).count();
    let versions = has("+version = \"7.8.9\"");
    assert!(versions > 40 && versions <= ours("Cargo.lock") + ours("fuzz/Cargo.lock") + 1, "{shown}");
    assert!(shown.contains("+## 7.8.9, 20"), "{shown}");
    for (words, why) in [
        (&["--dry-run", "0.0.9"][..], "0.0.9 is older than"),
        (&["1.2"], "write .ci/release [--dry-run] VERSION"),
        (&["--dry-run", "1.2.03"], "write .ci/release"),
        (&[], "write .ci/release"),
    ] {
        let (status, _, errors) = release(words);
        assert!(status == Some(1) && errors.contains(why), "{words:?}: {errors}");
    }
    git(&["tag", "v7.8.9"]);
    assert!(release(&["--dry-run", "7.8.9"]).2.contains("the tag v7.8.9 exists"));
    assert_eq!(git(&["status", "--porcelain"]), "", "nothing was changed");
    std::fs::write(folder.join("new"), "").expect("written");
    assert!(release(&["7.9.0"]).2.contains("the tree is not clean"));
}
