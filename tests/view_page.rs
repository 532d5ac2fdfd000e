//! The files of the page of `schedviz view`: they need nothing from elsewhere, and have the colours of the figures.

use crate::support::root;
use draw::Color;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn folder() -> PathBuf {
    root().join("crates/view/page")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder()).expect("the page's folder").flatten();
    entries.map(|entry| entry.file_name().into_string().expect("a plain name")).collect()
}

/// Returns the texts between `open` and the next quote.
fn quoted<'t>(text: &'t str, open: &str) -> Vec<&'t str> {
    text.split(open).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_page_loads_every_file_and_nothing_else() {
    let page = text("index.html");
    let mut loaded: BTreeSet<String> = BTreeSet::from(["index.html".into()]);
    let mut next: Vec<String> = [" src=\"", " rel=\"icon\" href=\"", " rel=\"stylesheet\" href=\""]
        .iter()
        .flat_map(|open| quoted(&page, open))
        .map(str::to_owned)
        .collect();
    while let Some(name) = next.pop() {
        if loaded.insert(name.clone()) && name.ends_with(".js") {
            next.extend(quoted(&text(&name), " from \"./").into_iter().map(str::to_owned));
        }
    }
    assert_eq!(loaded, names());
}

#[test]
fn the_page_keeps_a_strict_content_security_policy() {
    for name in names() {
        let text = text(&name);
        let elsewhere = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for banned in
            ["http://", "https://", "//cdn", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("]
        {
            assert!(!elsewhere.contains(banned), "{name} has {banned}");
        }
    }
    let page = text("index.html");
    for inline in [" style=", " onclick=", " onload=", "<style", "<script>", "javascript:"] {
        assert!(!page.contains(inline), "index.html has {inline}");
    }
}

/// Returns the numbers `0x…` of a constant.
fn colors(text: &str, constant: &str) -> Vec<Color> {
    let (_, rest) = text.split_once(&format!("export const {constant} =")).expect("the constant");
    let (list, _) = rest.split_once(';').expect("its end");
    let hex = list.split("0x").skip(1).map(|rest| u32::from_str_radix(&rest[..6], 16).expect("six digits"));
    hex.map(|rgb| Color::rgb((rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8)).collect()
}

#[test]
fn the_page_has_the_colours_of_the_figures() {
    let text = text("palette.js");
    assert_eq!(colors(&text, "PALETTE"), timeline::palette::PALETTE);
    assert_eq!(colors(&text, "BANDS"), timeline::palette::BANDS);
    let (_, rest) = text.split_once("export const CAUSES =").expect("causes");
    let causes = quoted(rest.split_once(';').expect("its end").0, "  \"");
    let expected: Vec<String> = sched::Cause::ALL.iter().map(|cause| cause.name().to_owned()).collect();
    assert_eq!(causes, expected);
}
