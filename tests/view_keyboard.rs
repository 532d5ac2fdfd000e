//! The page of `schedviz view` by keys alone, and its picture while the window of the browser changes.

use crate::support::{fixture, scratch};
use crate::view_browser::{COMPLETE, Server, assert_clean, number, open};
use crate::view_lanes::topology;
use crate::webdriver::Browser;
use std::path::Path;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const RIGHT: &str = "\u{e014}";
const UP: &str = "\u{e013}";
const DOWN: &str = "\u{e015}";

/// The focused element: its id, or its name.
const FOCUS: &str = "(document.activeElement.id || document.activeElement.localName)";

#[test]
fn everything_is_reached_by_keys() {
    let Some(browser) = Browser::start("keyboard") else { return };
    let folder = scratch("view-keyboard");
    let (trace, cpus) = (fixture("hackbench.dat"), topology(&folder, 8, [4, 4, 1]));
    let server = Server::start(&[&trace, Path::new("--topology"), &cpus]);
    open(&browser, &server, "d=light");
    // Each control in the order of the page, and each with a visible focus and a name.
    let controls = [
        "skip", "search", "color", "lanes", "rows", "filter", "out", "in", "all", "pdf", "svg", "png", "copy", "theme",
        "help",
    ];
    for control in controls {
        browser.keys(TAB);
        browser.wait_for(&format!("{FOCUS} === '{control}'"));
        let outline = "getComputedStyle(document.activeElement).outlineStyle";
        assert_eq!(browser.run(&format!("return {outline}")), "solid", "{control}");
        let name = "(document.activeElement.ariaLabel || document.activeElement.closest('label')?.textContent || document.activeElement.textContent).trim()";
        assert!(number(&browser, &format!("{name}.length")) > 0.0, "{control}");
    }
    browser.keys(TAB);
    browser.wait_for(&format!("{FOCUS} === 'canvas'"));
    // The skip link leads to the same place, and leaves the view as it is.
    open(&browser, &server, "d=light&w=100000000,200000000");
    browser.keys(&format!("{TAB}{ENTER}"));
    browser.wait_for(&format!("{FOCUS} === 'canvas' && schedviz.state.span === 200000000"));
    // On the lanes: the cursor moves, is announced, and its instant opens; its node collapses and expands.
    browser.keys(&format!("{DOWN}{DOWN}"));
    let here = "document.getElementById('here').textContent";
    browser.wait_for(&format!("schedviz.state.place?.cpu === 1 && {here}.startsWith('CPU 1')"));
    browser.keys("c");
    browser.wait_for(&format!(
        "schedviz.panes[0].layout.rows.length === 5 && {here}.includes('node 0') && {here}.includes('collapsed')"
    ));
    browser.keys("e");
    browser.wait_for(&format!("schedviz.panes[0].layout.rows.length === 8 && {here}.includes('expanded')"));
    browser.keys(ENTER);
    browser.wait_for("document.getElementById('panel').textContent.startsWith('CPU 1 at')");
    // From the lanes to the tabs, to the lists, and through their rows.
    browser.keys(TAB);
    browser.wait_for(&format!("{FOCUS} === 'tab-here'"));
    browser.keys(&format!("{RIGHT}{RIGHT}{RIGHT}"));
    browser.wait_for(&format!("{FOCUS} === 'tab-lists'"));
    let rows = "[...document.querySelectorAll('#panel tbody tr')]";
    browser.wait_for(&format!("{rows}.length > 10"));
    // The panel, six lists, two heads, and one stop for all rows.
    for focus in ["panel", "button", "button", "button", "button", "button", "button", "button", "button", "tr"] {
        browser.keys(TAB);
        browser.wait_for(&format!("{FOCUS} === '{focus}'"));
    }
    browser.keys(&format!("{DOWN}{DOWN}{UP}"));
    browser.wait_for(&format!("document.activeElement === {rows}[1]"));
    browser.keys(ENTER);
    browser.wait_for("schedviz.state.story !== null && document.querySelectorAll('#panel .story tbody tr').length > 2");
    browser.keys("n");
    browser.wait_for("document.querySelector('#panel .story tr.current') !== null && schedviz.state.place !== null");
    browser.keys(ESCAPE);
    browser.wait_for("schedviz.state.story === null");
    // The episode that was open is the current one of the list.
    browser.wait_for(&format!("{rows}[1].className.includes('current')"));
    assert_clean(&browser, &server);
    stacks_are_reached_by_keys(&browser);
}

/// The stacks of a task: its longest sleep shows those at the cursor, which the Enter key expands and folds in place.
fn stacks_are_reached_by_keys(browser: &Browser) {
    let server = Server::start(&[&fixture("rt-5.10.dat")]);
    open(browser, &server, "d=light&t=task&h=0,184");
    let sleeps = "document.querySelector('table[aria-label=\"Longest sleeps\"] tr')";
    browser.wait_for(&format!("{sleeps} !== null"));
    browser.run(&format!("{sleeps}.focus()"));
    browser.keys(ENTER);
    let panel = "document.getElementById('panel').textContent";
    browser.wait_for(&format!("{panel}.includes('At the cursor') && {panel}.includes('Woken by')"));
    browser.run("document.querySelector('button.stack').focus()");
    browser.keys(ENTER);
    let is_open = "document.activeElement.ariaExpanded === 'true'";
    browser.wait_for(&format!("{is_open} && document.querySelectorAll('.frames li').length > 4"));
    browser.keys(ENTER);
    browser.wait_for("document.activeElement.ariaExpanded === 'false' && document.querySelector('.frames') === null");
    assert_clean(browser, &server);
}

#[test]
fn no_frame_is_blank_while_the_room_changes() {
    let Some(browser) = Browser::start("resize") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "d=light");
    // Each frame is looked at before the page draws its own: the canvas still holds the last one.
    browser.run(
        "globalThis.colors = []; globalThis.widths = new Set(); let n = 0;
         const frame = () => {
           const pane = schedviz.panes[0], p = pane.places(), width = pane.canvas.width - 200;
           const data = pane.context.getImageData(100, p.lanes, width, p.bottom - p.lanes).data, found = new Set();
           for (let at = 0; at < data.length; at += 4) found.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
           colors.push(found.size); widths.add(pane.canvas.width);
           if (n++ % 4 === 0) document.querySelector('main').style.gridTemplateColumns = `minmax(0, 1fr) ${300 + 10 * n}px`;
           if (n < 24) requestAnimationFrame(frame); else globalThis.done = true;
         };
         requestAnimationFrame(frame)",
    );
    browser.wait_for("globalThis.done === true");
    assert!(number(&browser, "widths.size") >= 4.0);
    let fewest = number(&browser, "Math.min(...colors)");
    assert!(fewest > 8.0, "a frame with {fewest} colours");
    browser.wait_for(COMPLETE);
    assert_clean(&browser, &server);
}

#[test]
fn the_hands_are_kept_for_the_next_visit_and_markers_show_their_distance() {
    let Some(browser) = Browser::start("hands") else { return };
    let path = fixture("hackbench.dat");
    let server = Server::start(&[&path]);
    open(&browser, &server, "");
    let hints = "document.getElementById('hints').hidden";
    assert_eq!(browser.run(&format!("return {hints}")), false);
    // A drag moves the window; the hints go with the first press.
    let (span, from) = ("schedviz.state.span", "schedviz.state.from");
    browser.keys("w");
    browser.wait_for(&format!("{hints} && {span} < schedviz.state.traces[0].head.span"));
    browser.keys("A");
    browser.wait_for("document.getElementById('markers').textContent.startsWith('A 0.')");
    browser.run("const menu = document.getElementById('hands'); menu.value = 'perfetto'; menu.dispatchEvent(new Event('change'))");
    browser.wait_for("schedviz.state.hands === 'perfetto'");
    // Another run of the program has another port, and the same hands.
    let next = Server::start(&[&path]);
    assert_ne!(server.address, next.address);
    open(&browser, &next, "w=200000000,400000000");
    browser.wait_for(&format!("document.getElementById('hands').value === 'perfetto' && {hints}"));
    let before = number(&browser, from);
    browser.drag(&[(500, 500), (550, 500), (600, 500)]);
    browser.wait_for("schedviz.state.selection !== null");
    assert_eq!(number(&browser, from), before);
    browser.keys("m");
    let markers = "schedviz.state.markers";
    browser.wait_for(&format!("{markers}.a !== null && {markers}.b > {markers}.a"));
    browser.wait_for("document.getElementById('markers').textContent.includes('B − A')");
    browser.keys("f");
    browser.wait_for(&format!("{span} < 2e8"));
    browser.keys("q");
    browser.wait_for("getComputedStyle(document.querySelector('aside')).display === 'none'");
    browser.keys("q");
    browser.wait_for("getComputedStyle(document.querySelector('aside')).display !== 'none'");
    assert_clean(&browser, &next);
}
