//! The files of the page.

/// Returns the type and the content of a file of the page.
pub(crate) fn file(name: &str) -> Option<(&'static str, &'static str)> {
    FILES.iter().find(|(other, _)| *other == name).map(|(name, text)| (kind(name), *text))
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// The array of files of the page by their names.
macro_rules! files {
    ($($name:literal),+ $(,)?) => { &[$(($name, include_str!(concat!("../../page/", $name)))),+] };
}

/// The files by their names.
pub(crate) const FILES: &[(&str, &str)] = files![
    "index.html",
    "style.css",
    "icon.svg",
    "main.js",
    "api.js",
    "bitmap.js",
    "comparepanel.js",
    "defaults.js",
    "details.js",
    "differences.js",
    "dom.js",
    "drawnhits.js",
    "entries.js",
    "eventmarks.js",
    "events.js",
    "family.js",
    "findings.js",
    "groups.js",
    "gutter.js",
    "hands.js",
    "hints.js",
    "input.js",
    "keeping.js",
    "lanes.js",
    "layout.js",
    "legend.js",
    "links.js",
    "lists.js",
    "machine.js",
    "marks.js",
    "minimap.js",
    "notes.js",
    "offline.js",
    "offlinepanel.js",
    "overlay.js",
    "packs.js",
    "palette.js",
    "past.js",
    "pairs.js",
    "pathpanel.js",
    "pathpick.js",
    "pathrow.js",
    "pane.js",
    "panel.js",
    "plotpanel.js",
    "plots.js",
    "plotsums.js",
    "raster.js",
    "rowarrows.js",
    "rowdraw.js",
    "rowkeys.js",
    "rows.js",
    "rowtiles.js",
    "sorted.js",
    "stacks.js",
    "state.js",
    "story.js",
    "tasklist.js",
    "tables.js",
    "tabletext.js",
    "tiles.js",
    "time.js",
    "trail.js",
    "trust.js",
    "waitpanel.js",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served_with_its_type() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let entries = std::fs::read_dir(folder).expect("the page").flatten();
        let mut on_disk: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let mut served: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        on_disk.sort();
        served.sort_unstable();
        assert_eq!(served, on_disk);
        for name in served {
            assert!(file(name).is_some_and(|(kind, _)| kind != "application/octet-stream"), "{name}");
        }
    }
}
