//! The page of `schedviz view` in a real browser: Debian's chromium, driven by chromedriver.
//!
//! The tests skip with a line unless `SCHEDVIZ_REQUIRE_BROWSER` asks for a browser.

use crate::support::{events, fixture, program, root, scratch};
use crate::webdriver::{Browser, request};
use draw::Color;
use parse::Trace;
use sched::{Cpu, CpuFold, CpuSpan, Current, Ts};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use timeline::palette::{PALETTE, TaskColors};

/// A running `schedviz view`, which ends with this value.
pub(crate) struct Server {
    program: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(traces: &[&Path]) -> Server {
        let mut program = Command::new(program())
            .args(["view", "--no-open"])
            .args(traces)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let lines = BufReader::new(program.stdout.take().expect("a pipe")).lines();
        let address = lines.map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("http://127.0.0.1:")?;
            let rest = rest.split_whitespace().next()?;
            Some(format!("http://127.0.0.1:{}", rest.trim_end_matches("index.html")))
        });
        Server { program, address: address.expect("an address on standard output") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

pub(crate) const COMPLETE: &str = "document.documentElement.dataset.ready === 'true' \
    && document.documentElement.dataset.complete === 'true' && !schedviz.awaitsFrame() && schedviz.state.traces.every(t => t.head.full)";

/// Opens the page with this view in its address, and waits until all of it is drawn.
pub(crate) fn open(browser: &Browser, server: &Server, view: &str) {
    browser.open("about:blank");
    browser.open(&format!("{}#{view}", server.address));
    browser.wait_for(COMPLETE);
}

/// Asserts that the console is empty and that every request went to the server.
pub(crate) fn assert_clean(browser: &Browser, server: &Server) {
    let mut console = browser.console();
    // The browser's advice about a test that reads the canvas.
    console.retain(|message| !message.contains("willReadFrequently"));
    assert_eq!(console, Vec::<String>::new());
    let requests = browser.run("return performance.getEntriesByType('resource').map(entry => entry.name)");
    let requests = requests.as_array().expect("a list");
    assert!(requests.len() > 20, "{} requests", requests.len());
    for address in requests {
        assert!(address.as_str().is_some_and(|address| address.starts_with(&server.address)), "{address}");
    }
}

/// Returns the spans of a CPU, by its own events alone.
fn spans(trace: &[sched::SchedEvent], cpu: Cpu) -> Vec<CpuSpan> {
    let (from, to) = (trace.first().expect("events").ts, trace.last().expect("events").ts);
    let mut fold = CpuFold::new(cpu, from, to);
    let mut spans = Vec::new();
    for event in trace.iter().filter(|event| event.cpu == cpu) {
        fold.apply(event, &mut |span: &CpuSpan| spans.push(*span));
    }
    fold.finish(&mut |span: &CpuSpan| spans.push(*span));
    spans
}

/// Returns the pixels of a CPU's bar at these times, each from above to below.
fn pixels(browser: &Browser, cpu: Cpu, times: &[i64]) -> Vec<Vec<Color>> {
    let script = format!(
        "const pane = schedviz.panes[0], scale = pane.scale(), row = pane.layout.byCpu.get({});
         const top = pane.places().lanes + row.y - pane.trace.scroll;
         return {times:?}.map(time => {{
           const x = Math.floor(scale.left + (time - scale.from) / scale.perPixel);
           const data = pane.context.getImageData(x, top, 1, pane.layout.bar).data;
           const colors = [];
           for (let n = 0; n < data.length; n += 4) colors.push([data[n], data[n + 1], data[n + 2]]);
           return colors;
         }})",
        cpu.0
    );
    let byte = |value: &Value| value.as_u64().expect("a level") as u8;
    let column = |column: &Value| {
        let colors = column.as_array().expect("pixels").iter();
        colors.map(|rgb| Color::rgb(byte(&rgb[0]), byte(&rgb[1]), byte(&rgb[2]))).collect()
    };
    browser.run(&script).as_array().expect("columns").iter().map(column).collect()
}

/// The level of the tiles that are compared column by column.
const LEVEL: u32 = 19;
/// The ground of a lane in the light theme.
const LANE: Color = Color::rgb(0xfa, 0xfa, 0xfa);

#[test]
fn the_canvas_has_the_colours_of_the_running_tasks_and_their_shares() {
    let Some(browser) = Browser::start("colours") else { return };
    let path = fixture("hackbench.dat");
    let trace = Trace::open(&path, parse::Options::default()).expect("a trace");
    let events = events(&trace);
    let start = events[0].ts;
    let colors = TaskColors::of_longest(trace.sampled_tasks());
    let server = Server::start(&[&path]);
    open(&browser, &server, "d=light");
    let (mut long, mut mixed) = (0, 0);
    for cpu in [0, 3, 6].map(Cpu) {
        let spans = spans(&events, cpu);
        let since = |ts: Ts| ts.since(start).0 as i64;
        // Long spans: one colour from the bottom to the top.
        let wide: Vec<&CpuSpan> = spans.iter().filter(|span| since(span.end) - since(span.start) > 8_000_000).collect();
        let middles: Vec<i64> = wide.iter().map(|span| (since(span.start) + since(span.end)) / 2).collect();
        for (span, column) in wide.iter().zip(pixels(&browser, cpu, &middles)) {
            let expected = match span.current {
                Current::Task(pid) => PALETTE[colors.place(pid)],
                Current::Idle => LANE,
                Current::Unknown | Current::Offline => continue,
            };
            // Names stand in the middle of the bar.
            for place in [0, 1, column.len() - 2, column.len() - 1] {
                assert_eq!(column[place], expected, "CPU {cpu}, {span:?}");
            }
            long += 1;
        }
    }
    // A window whose columns are 1.9 pixels wide, so that the pixel at a column's centre is of no other column.
    let across = number(&browser, "schedviz.panes[0].scale().right - schedviz.panes[0].scale().left");
    let span = across * f64::from(1 << LEVEL) / 1.9;
    open(&browser, &server, &format!("d=light&w=870000000,{span:.0}"));
    for cpu in (0..8).map(Cpu) {
        let spans = spans(&events, cpu);
        let since = |ts: Ts| ts.since(start).0 as i64;
        let first = (870_000_000 >> LEVEL) + 1;
        let centres: Vec<i64> = (first..first + 460).map(|column| (column << LEVEL) + (1 << LEVEL) / 2).collect();
        // The part of a column's height in colour is the busy share of its time, to one row.
        for (centre, column) in centres.iter().zip(pixels(&browser, cpu, &centres)) {
            let (from, to) = (centre - (1 << LEVEL) / 2, centre + (1 << LEVEL) / 2);
            let busy = spans.iter().filter(|span| matches!(span.current, Current::Task(_)));
            let ns: i64 = busy.map(|span| (since(span.end).min(to) - since(span.start).max(from)).max(0)).sum();
            let expected = ns as f64 / (to - from) as f64 * column.len() as f64;
            let drawn = column.iter().filter(|color| **color != LANE).count() as f64;
            assert!((drawn - expected).abs() <= 1.01, "CPU {cpu} at {centre}: {drawn} rows of {expected}");
            mixed += u32::from(expected > 0.5 && expected < column.len() as f64 - 0.5);
        }
    }
    assert!(long >= 40 && mixed >= 40, "{long} long spans, {mixed} columns of several");
    assert_clean(&browser, &server);
}

pub(crate) fn number(browser: &Browser, expression: &str) -> f64 {
    browser.run(&format!("return {expression}")).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
}

#[test]
fn keys_and_mouse_move_the_window_and_the_address_reopens_it() {
    let Some(browser) = Browser::start("moves") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "");
    let (span, from) = ("schedviz.state.span", "schedviz.state.from");
    let whole = number(&browser, span);
    assert_eq!(whole, number(&browser, "schedviz.state.traces[0].head.span"));
    browser.wheel((600, 500), -300);
    browser.wait_for(&format!("{span} < {}", whole * 0.7));
    browser.keys("w");
    browser.wait_for(&format!("{span} < {}", whole * 0.5));
    let before = number(&browser, from);
    browser.keys("d");
    browser.wait_for(&format!("{from} > {before}"));
    let moved = number(&browser, from) - before;
    assert!((moved - number(&browser, span) / 10.0).abs() < 1.0, "{moved} is not a tenth of the window");
    let before = number(&browser, from);
    browser.drag(&[(700, 500), (600, 500), (500, 500)]);
    browser.wait_for(&format!("{from} > {before}"));
    let pixels = (number(&browser, from) - before) / number(&browser, "schedviz.panes[0].scale().perPixel");
    assert!((pixels - 200.0).abs() <= 1.0, "the window moved by {pixels} pixels");
    // A drag on the axis selects.
    browser.drag(&[(300, 130), (400, 130), (500, 130)]);
    browser.wait_for("schedviz.state.selection !== null");
    browser.wait_for("document.getElementById('panel').textContent.startsWith('Selection')");
    browser.keys("m");
    browser.wait_for("location.hash.includes('c=command') && location.hash.includes('s=')");
    browser.wait_for(COMPLETE);
    let state = "JSON.stringify([schedviz.state.from, schedviz.state.span, schedviz.state.selection, schedviz.state.color].flat() \
        .map(v => typeof v === 'number' ? Math.round(v) : v))";
    let (address, kept) = (browser.run("return location.hash.slice(1)"), browser.run(&format!("return {state}")));
    open(&browser, &server, address.as_str().expect("an address"));
    assert_eq!(browser.run(&format!("return {state}")), kept);
    browser.keys("0");
    browser.wait_for(&format!("{span} === {whole}"));
    assert_clean(&browser, &server);
}

#[test]
fn a_click_highlights_the_task_and_a_search_finds_it() {
    let Some(browser) = Browser::start("click") else { return };
    let path = fixture("hackbench.dat");
    let events = events(&Trace::open(&path, parse::Options::default()).expect("a trace"));
    let server = Server::start(&[&path]);
    open(&browser, &server, "");
    let longest = spans(&events, Cpu(2)).into_iter().filter(|span| matches!(span.current, Current::Task(_)));
    let longest = longest.max_by_key(CpuSpan::duration).expect("a run");
    let Current::Task(pid) = longest.current else { unreachable!("filtered") };
    let middle = (longest.start.since(events[0].ts).0 + longest.end.since(events[0].ts).0) / 2;
    let place = format!(
        "(() => {{ const pane = schedviz.panes[0], scale = pane.scale(), box = pane.canvas.getBoundingClientRect();
         const row = pane.layout.byCpu.get(2);
         return [box.x + scale.left + ({middle} - scale.from) / scale.perPixel, box.y + pane.places().lanes + row.y + 5]; }})()"
    );
    let (x, y) = (number(&browser, &format!("{place}[0]")), number(&browser, &format!("{place}[1]")));
    browser.drag(&[(x as i64, y as i64)]);
    browser.wait_for(&format!("schedviz.state.highlight?.pid === {}", pid.0));
    browser.wait_for("document.getElementById('panel').textContent.startsWith('CPU 2 at')");
    // The instant's state names the running task.
    browser.wait_for(&format!("/ {}running/.test(document.getElementById('panel').textContent)", pid.0));
    browser.wait_for("schedviz.state.traces[0].task?.runs.length > 0");
    let run = browser.run("return schedviz.state.traces[0].task.runs.map(run => run.slice(0, 3))");
    let times = [longest.start, longest.end].map(|ts| ts.since(events[0].ts).0);
    let expected = serde_json::json!([times[0], times[1], 2]);
    assert!(run.as_array().expect("runs").contains(&expected), "{expected} in {run}");
    browser.keys("/");
    browser.wait_for("document.activeElement.id === 'search'");
    browser.keys("hackbench");
    browser.wait_for("document.getElementById('panel').textContent.includes('Found for “hackbench”')");
    let rows = "[...document.querySelectorAll('#panel tr.link')]";
    browser.wait_for(&format!("{rows}.some(row => row.textContent.includes('hackbench {}'))", pid.0));
    browser.run(&format!("{rows}.find(row => row.textContent.includes('hackbench')).click()"));
    browser.wait_for("schedviz.state.tab === 'task' && schedviz.state.highlight !== null");
    assert_clean(&browser, &server);
}

#[test]
fn the_legend_has_the_values_of_the_property_that_colours() {
    let Some(browser) = Browser::start("legend") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    let values = "[...document.querySelectorAll('#panel table')][0]";
    let row = |n: usize| format!("{values}.rows[{n}].textContent");
    for (color, first) in
        [("command", "hackbench"), ("class", "application"), ("parent", "children of"), ("node", "node ")]
    {
        open(&browser, &server, &format!("t=legend&c={color}"));
        browser.wait_for(&format!("{}.includes('{color}')", row(0)));
        browser.wait_for(&format!("{}.startsWith('{first}')", row(1)));
        // The tasks of all values are those of the trace.
        let counted = number(
            &browser,
            &format!("[...{values}.rows].slice(1).reduce((sum, row) => sum + Number(row.cells[1].textContent), 0)"),
        );
        let tasks = number(&browser, "schedviz.state.traces[0].head.tasks.length");
        assert!(
            counted == tasks || counted < tasks && number(&browser, &format!("{values}.rows.length")) == 25.0,
            "{color}: {counted}"
        );
    }
    // The swatch has the colour of the lanes.
    open(&browser, &server, "d=light&t=legend&c=class");
    let pixel = "Array.from(document.querySelector('#panel canvas').getContext('2d').getImageData(2, 2, 1, 1).data.slice(0, 3))";
    let Color([r, g, b]) = PALETTE[0];
    assert_eq!(browser.run(&format!("return {pixel}")), serde_json::json!([r, g, b]));
    assert_clean(&browser, &server);
}

#[test]
fn two_traces_share_one_zoom_and_are_aligned_at_the_command() {
    let Some(browser) = Browser::start("two") else { return };
    let server = Server::start(&[&fixture("hackbench.dat"), &fixture("hackbench-7.2.dat")]);
    open(&browser, &server, "");
    assert_eq!(number(&browser, "document.querySelectorAll('.pane canvas').length"), 2.0);
    let heads = "schedviz.state.traces.map(trace => [trace.zero, trace.head.command])";
    for trace in browser.run(&format!("return {heads}")).as_array().expect("traces") {
        assert!(trace[1].as_f64().is_some_and(|command| command > 0.0), "{trace}");
        assert_eq!(trace[0], trace[1]);
    }
    // The same aligned time has the same place in both.
    let place = "schedviz.panes.map(pane => { const s = pane.scale(); return s.left + (pane.trace.zero - s.from) / s.perPixel; })";
    browser.keys("ww");
    browser.wait_for("schedviz.state.span < 0.6 * Math.max(...schedviz.state.traces.map(t => t.head.span))");
    let places = browser.run(&format!("return {place}"));
    assert!((places[0].as_f64().expect("x") - places[1].as_f64().expect("x")).abs() < 1e-6, "{places}");
    browser.wait_for(COMPLETE);
    assert_clean(&browser, &server);
}

#[test]
fn names_in_a_trace_are_text_on_the_page() {
    let Some(browser) = Browser::start("names") else { return };
    // A file of version 6 is not compressed; the name has the length of the other.
    let mut bytes = std::fs::read(fixture("hackbench-v6.dat")).expect("the fixture");
    let places: Vec<usize> =
        bytes.windows(9).enumerate().filter(|(_, w)| *w == b"hackbench").map(|(at, _)| at).collect();
    places.iter().for_each(|at| bytes[*at..at + 9].copy_from_slice(b"<img src>"));
    let folder = scratch("view-names");
    let path = folder.join("<img src=x onerror=alert(1)>.dat");
    std::fs::write(&path, bytes).expect("written");
    let mut traces = vec![path];
    traces.extend(Some(root().join("../shared/cases/hostile/hostile-names.dat")).filter(|path| path.exists()));
    for path in &traces {
        let server = Server::start(&[path]);
        for view in ["t=window", "t=legend", "t=lists", "h=0,345&t=task", "p=0,1,1000000&t=here"] {
            open(&browser, &server, view);
            browser.wait_for("document.getElementById('panel').textContent.length > 20");
            let markup = "document.querySelectorAll('img, #panes script, #panel script, aside svg, iframe').length";
            assert_eq!(number(&browser, markup), 0.0, "{view}");
            assert_eq!(number(&browser, "document.scripts.length"), 1.0, "{view}");
        }
        open(&browser, &server, "t=window");
        browser.wait_for("document.getElementById('panel').textContent.includes('<')");
        assert_clean(&browser, &server);
    }
}

#[test]
fn the_window_is_saved_as_a_figure_and_as_a_command() {
    let Some(browser) = Browser::start("saved") else { return };
    let path = fixture("hackbench.dat");
    let server = Server::start(&[&path]);
    open(&browser, &server, "w=200000000,100000000");
    // The link of the button, fetched instead of saved.
    browser.run(
        "HTMLAnchorElement.prototype.click = function () { globalThis.saved = this.href };
         document.getElementById('svg').click()",
    );
    let link = browser.run("return globalThis.saved");
    let link = link.as_str().expect("a link").to_owned();
    let (port, rest) = link.strip_prefix("http://127.0.0.1:").expect("this server").split_once('/').expect("a path");
    let figure = request(port.parse().expect("a port"), "GET", &format!("/{rest}"), "", "").expect("an answer");
    let figure = String::from_utf8(figure.body).expect("text");
    assert!(figure.contains("<svg"), "{}", &figure[..figure.len().min(200)]);
    browser.run("document.getElementById('copy').click()");
    browser.wait_for("document.getElementById('here').textContent.includes('schedviz dat2graph')");
    // The printed command draws the same figure.
    let shown = browser.run("return document.getElementById('here').textContent");
    let shown = shown.as_str().expect("a command").trim_start_matches("copied: ").to_owned();
    let folder = scratch("view-saved");
    let out = folder.join("window.svg");
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{} -o '{}'", shown.replacen("schedviz", &format!("'{}'", program().display()), 1), out.display()))
        .current_dir(root())
        .status()
        .expect("a shell");
    assert!(status.success(), "{shown}");
    let drawn = std::fs::read_to_string(&out).expect("the figure");
    assert_eq!(drawn, figure, "{shown}");
}

#[test]
fn a_tile_whose_request_fails_is_asked_for_again() {
    let Some(browser) = Browser::start("again") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "t=legend");
    browser.run(
        "const real = globalThis.fetch; globalThis.failures = 0;
         globalThis.fetch = (...asked) => String(asked[0]).includes('/lanes/') && failures < 3
           ? (failures++, Promise.reject(new Error('the line is down'))) : real(...asked);
         schedviz.show(100e6, 20e6)",
    );
    browser.wait_for("failures === 3 && document.documentElement.dataset.complete === 'false'");
    browser.wait_for(COMPLETE);
    assert_clean(&browser, &server);
}
