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

/// The files by their names.
pub(crate) const FILES: &[(&str, &str)] = &[("index.html", include_str!("../page/index.html"))];
