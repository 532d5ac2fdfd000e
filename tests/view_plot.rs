//! `schedviz view --plot`: its numbers and bars against those of `plot`, in the browser, and in an exported folder.

use crate::support::{csv, fixture, schedviz, scratch};
use crate::view::View;
use crate::view_browser::{COMPLETE, Server, assert_clean, number, open};
use crate::webdriver::Browser;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&schedviz(arguments).success().text()).expect("JSON")
}

/// The arguments of a page with the figures of these specifications.
fn with_plots<'a>(trace: &'a Path, specs: &'a [&'a str]) -> Vec<&'a Path> {
    let flags = specs.iter().flat_map(|spec| [Path::new("--plot"), Path::new(spec)]);
    std::iter::once(trace).chain(flags).collect()
}

/// The document of `plot` without the parts that only the command has.
fn numbers(mut document: Value) -> Value {
    let fields = ["intervals", "points", "series", "share_of", "notes", "from_ns", "to_ns", "title"];
    fields.iter().map(|field| ((*field).to_owned(), document[*field].take())).collect::<serde_json::Map<_, _>>().into()
}

/// The time of each interval's bars in a block, by summing its pieces.
fn drawn(head: &Value, block: &Value, lane: u64) -> Vec<(String, u64)> {
    let name = |class: u64| {
        let look = head["looks"].as_array().expect("looks").iter().find(|look| look["class"] == class);
        look.map(|look| look["item"].as_str().expect("a name").to_owned())
    };
    let mut sums: Vec<(String, u64)> = Vec::new();
    let mut add = |class: u64, ns: u64| {
        let Some(name) = name(class) else { return };
        match sums.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += ns,
            None => sums.push((name, ns)),
        }
    };
    for row in block["rows"].as_array().expect("rows").iter().filter(|row| row["lane"] == lane) {
        for piece in row["pieces"].as_array().expect("pieces") {
            match piece[2].as_array() {
                None => add(
                    piece[2].as_u64().expect("a class"),
                    piece[1].as_u64().expect("an end") - piece[0].as_u64().expect("a start"),
                ),
                Some(shares) => shares
                    .iter()
                    .for_each(|share| add(share[0].as_u64().expect("a class"), share[1].as_u64().expect("a time"))),
            }
        }
    }
    sums.sort();
    sums
}

#[test]
fn numbers_and_bars_are_those_of_plot() {
    let path = fixture("every-7.2.dat");
    let name = path.to_str().expect("a name");
    let specs = ["irq", "timers", "power"];
    let view = View::of(&with_plots(&path, &specs));
    let span = view.head(0)["span"].as_u64().expect("a span");
    assert_eq!(view.json("traces.json")["plots"], serde_json::json!(specs));
    for (place, spec) in specs.iter().enumerate() {
        let head = view.json(&format!("t/0/plot/{place}.json"));
        let whole = document(&["plot", "-q", "--json", spec, name]);
        let start = whole["from_ns"].as_u64().expect("a start");
        assert_eq!(numbers(head["report"].clone()), numbers(whole), "{spec}");
        let (from, to) = (span / 3, span / 2);
        let (min, max) = (format!("{from}ns"), format!("{to}ns"));
        let part = document(&["plot", "-q", "--json", spec, name, "--min", &min, "--max", &max]);
        assert_eq!(
            numbers(view.json(&format!("t/0/plot/{place}/numbers.json?from={from}&to={to}"))),
            numbers(part),
            "{spec}"
        );
        // All bars of the command's table, clipped to blocks on several levels.
        let folder = scratch("view-plot");
        let table = folder.join(format!("{spec}.csv"));
        schedviz(&["plot", "-q", spec, name, "-o", table.to_str().expect("a name")]).success();
        let bars = csv(&std::fs::read_to_string(&table).expect("a table"));
        let unended = head["report"]["intervals"]
            .as_array()
            .expect("intervals")
            .iter()
            .any(|i| i["unended"] != 0 || i["lost"] != 0);
        let top = head["levels"][1].as_u64().expect("a level");
        let mut rng = testkit::Rng::new(11);
        let mut compared = 0;
        for level in [top, top - 2, top - 5, top - 9] {
            let index = rng.below((span >> level) as usize + 1) as u64;
            let block = view.json(&format!("t/0/plot/{place}/{level}/{index}.json"));
            let (from, to) = (index << level, (index + 1) << level);
            assert_eq!((block["from"].as_u64(), block["to"].as_u64()), (Some(from), Some(to)));
            assert!(block.to_string().len() < 200_000);
            for lane in head["lanes"].as_array().expect("lanes") {
                let mut truth: Vec<(String, u64)> = Vec::new();
                for bar in bars.iter().filter(|bar| bar["cpu"] == lane["key"].as_str().expect("a key")) {
                    let begin = bar["start_ns"].parse::<u64>().expect("a start") - start;
                    let end = begin + bar["length_ns"].parse::<u64>().expect("a length");
                    let ns = end.min(to).saturating_sub(begin.max(from));
                    match truth.iter_mut().find(|(name, _)| *name == bar["interval"]) {
                        _ if ns == 0 => {}
                        Some((_, sum)) => *sum += ns,
                        None => truth.push((bar["interval"].clone(), ns)),
                    }
                }
                truth.sort();
                let found = drawn(&head, &block, lane["place"].as_u64().expect("a place"));
                // Intervals without an end are drawn and not in the table.
                if unended {
                    for (name, ns) in &truth {
                        let is_drawn = found.iter().any(|(n, sum)| n == name && sum >= ns);
                        assert!(is_drawn, "{spec} {level}: {found:?} {truth:?}");
                    }
                } else {
                    assert_eq!(found, truth, "{spec}, level {level}, CPU {}", lane["key"]);
                }
                compared += truth.len();
            }
        }
        assert!(compared > 8, "{spec}: {compared}");
        // A bar by itself.
        let bar = bars.iter().max_by_key(|bar| bar["length_ns"].parse::<u64>().unwrap_or(0)).expect("a bar");
        let begin = bar["start_ns"].parse::<u64>().expect("a start") - start;
        let lane = head["lanes"]
            .as_array()
            .expect("lanes")
            .iter()
            .find(|lane| lane["key"] == bar["cpu"].as_str())
            .expect("a lane");
        let found = (0..lane["depth"].as_u64().expect("rows")).map(|depth| {
            view.json(&format!("t/0/plot/{place}/bar.json?lane={}&depth={depth}&at={begin}", lane["place"]))
        });
        let found = found
            .into_iter()
            .find(|found| found["from"] == begin && found["name"] == bar["interval"].as_str())
            .expect("the bar");
        assert_eq!(found["to"].as_u64().map(|to| (to - begin).to_string()).as_ref(), Some(&bar["length_ns"]));
        // Counts of markers are kept in the coarsest block.
        let block = view.json(&format!("t/0/plot/{place}/{top}/0.json"));
        for (at, marks) in
            head["points"].as_array().expect("places").iter().zip(block["points"].as_array().expect("points"))
        {
            let Some(at) = at.as_u64() else { continue };
            let sum: u64 = marks.as_array().expect("marks").iter().filter_map(|mark| mark[3].as_u64()).sum();
            assert_eq!(Some(sum), head["report"]["points"][at as usize]["count"].as_u64());
        }
    }
    for path in ["plot/9.json", "plot/0/70/0.json", "plot/0/3/99999999999999.json", "plot/0/x/0.json", "plot/x.json"] {
        assert!([404, 503].contains(&view.get(&format!("t/0/{path}")).status), "{path}");
    }
    assert_eq!(view.get("t/0/plot/0/bar.json?lane=x").status, 400);
    let ran = schedviz(&["view", "--no-open", name, "--plot", "nothing"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no specification of this name"), "{}", ran.stderr);
    let ran = schedviz(&["view", "--no-open", name, "--plot", "block"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("block_rq_issue"), "{}", ran.stderr);
}

/// A specification whose title, names and labels are markup.
const HOSTILE: &str = r#"
title = "<img src=x onerror=alert(1)>"
about = "<script>alert(2)</script>"
[lanes]
by = "task"
[[interval]]
name = "<b onclick=alert(3)>call</b>"
begin = "raw_syscalls:sys_enter"
end = "raw_syscalls:sys_exit"
match = ["$pid", "id"]
color_by = "id"
label = "$command"
[[series]]
name = "<svg onload=alert(4)>"
open = "<b onclick=alert(3)>call</b>"
"#;

/// Moves the mouse to a place of the first pane in CSS pixels.
fn hover(browser: &Browser, x: &str, y: &str) {
    browser.run(&format!(
        "const pane = schedviz.panes[0], scale = pane.scale(), box = pane.canvas.getBoundingClientRect();
         const [x, y] = [{x}, {y}];
         pane.canvas.dispatchEvent(new PointerEvent('pointermove', {{ clientX: box.x + x, clientY: box.y + y, bubbles: true }}))"
    ));
}

#[test]
fn the_page_shows_the_figure_its_table_and_its_bars() {
    let Some(browser) = Browser::start("plot") else { return };
    let folder = scratch("view-plot-page");
    let spec = folder.join("hostile.toml");
    std::fs::write(&spec, HOSTILE).expect("written");
    let path = fixture("every-7.2.dat");
    let server = Server::start(&with_plots(&path, &["irq", spec.to_str().expect("a name")]));
    open(&browser, &server, "d=light&t=plots");
    let panel = "document.getElementById('panel').textContent";
    browser.wait_for(&format!(
        "{panel}.includes('Interrupts and softirqs') && {panel}.includes('<img src=x onerror=alert(1)>')"
    ));
    let whole = document(&["plot", "-q", "--json", "irq", path.to_str().expect("a name")]);
    for interval in whole["intervals"].as_array().expect("intervals") {
        let count = interval["count"].to_string();
        browser.wait_for(&format!(
            "[...document.querySelectorAll('#panel td')].some(cell => cell.textContent === '{count}')"
        ));
    }
    // The longest bar of a task: its tip has the name, the times and the label.
    let bar = "(() => { const plots = schedviz.panes[0].trace.plots; const [key, { block }] = [...plots.blocks].find(([key]) => key.startsWith('1/'));
        const rows = block.rows.filter(row => plots.drawn.some(d => d.plot === 1 && d.lane === row.lane && d.depth === row.depth));
        const bars = rows.flatMap(row => row.pieces.filter(p => typeof p[2] === 'number' && p[2] > 1).map(p => [row.lane, row.depth, block.from + p[0], block.from + p[1]]));
        bars.sort((a, b) => (b[3] - b[2]) - (a[3] - a[2])); return bars[0]; })()";
    browser.wait_for(bar);
    browser.run(&format!("globalThis.bar = {bar}"));
    let at = "scale.left + ((bar[2] + bar[3]) / 2 - scale.from) / scale.perPixel";
    let y = "(d => d.y + d.height / 2)(pane.trace.plots.drawn.find(d => d.plot === 1 && d.lane === bar[0] && d.depth === bar[1]))";
    hover(&browser, at, y);
    let tip = "document.getElementById('tip').textContent";
    browser
        .wait_for(&format!("!document.getElementById('tip').hidden && {tip}.includes('<b onclick=alert(3)>call</b>')"));
    browser.wait_for(&format!("/ s to .* s/.test({tip}) && /CPU [0-9]+, task [0-9]+/.test({tip})"));
    // A bar of the figure over the lanes has its colour there.
    let colored = "(() => { const pane = schedviz.panes[0], s = pane.scale(); const d = pane.trace.plots.drawn.filter(d => d.plot === 0);
        return d.some(d => { const data = pane.context.getImageData(s.left, d.y, s.right - s.left, Math.max(1, d.height)).data;
        for (let n = 0; n < data.length; n += 4) if (data[n] === 0xc0 && data[n + 1] === 0x10 && data[n + 2] === 0x20) return true; return false; }); })()";
    // The longest interrupt, which is wider than a pixel when the window is four times as long.
    browser.run("const plots = schedviz.panes[0].trace.plots; const irq = [...plots.looks.get(0)].find(([, look]) => look.item === 'interrupt')[0];
        const longest = [...plots.blocks].filter(([key]) => key.startsWith('0/')).flatMap(([, { block }]) => block.rows.flatMap(row => row.pieces.map(p => [block, p]))
            .filter(([, p]) => p[2] === irq || p[2].some?.(share => share[0] === irq))).sort((a, b) => (b[1][1] - b[1][0]) - (a[1][1] - a[1][0]))[0];
        schedviz.show(longest[0].from + longest[1][0] - 2 * (longest[1][1] - longest[1][0]), 6 * (longest[1][1] - longest[1][0]))");
    browser.wait_for(COMPLETE);
    browser.wait_for(colored);
    // Hidden by its box, and kept in the address.
    browser.run("document.getElementById('plot-0').click()");
    browser.wait_for("location.hash.includes('o=0') && !schedviz.panes[0].trace.plots.drawn.some(d => d.plot === 0)");
    let markup =
        "document.querySelectorAll('img, #panes script, #panel script, aside svg, aside b, #tip b, iframe').length";
    assert_eq!(number(&browser, markup), 0.0);
    // The selection has numbers of its own.
    browser.run("document.getElementById('plot-0').click()");
    open(&browser, &server, "t=plots&s=100000000,200000000");
    browser.wait_for(&format!("{panel}.includes('Selection')"));
    assert_clean(&browser, &server);
}

/// Serves the files of a folder; each path that was asked for is noted.
fn serve(folder: PathBuf) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (folder, noted) = (folder.clone(), Arc::clone(&noted));
            std::thread::spawn(move || {
                let mut line = String::new();
                let mut reader = BufReader::new(stream);
                if reader.read_line(&mut line).is_err() {
                    return;
                }
                let mut header = String::new();
                while reader.read_line(&mut header).is_ok_and(|n| n > 2) {
                    header.clear();
                }
                let path = line.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
                noted.lock().expect("a lock").push(path.clone());
                let kind = match path.rsplit('.').next() {
                    Some("html") => "text/html",
                    Some("js") => "text/javascript",
                    Some("css") => "text/css",
                    Some("svg") => "image/svg+xml",
                    Some("json") => "application/json",
                    _ => "application/octet-stream",
                };
                let (status, body) = match std::fs::read(folder.join(&path)) {
                    Ok(body) if !path.contains("..") => ("200 OK", body),
                    _ => ("404 Not Found", b"no".to_vec()),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let mut stream = reader.into_inner();
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            });
        }
    });
    (port, asked)
}

#[test]
fn an_exported_folder_is_shown_by_a_server_of_static_files() {
    let Some(browser) = Browser::start("static") else { return };
    let folder = scratch("view-static");
    let page = folder.join("page");
    let trace = fixture("every-7.2.dat");
    let name = trace.to_str().expect("a name");
    schedviz(&[
        "view",
        name,
        "--plot",
        "irq",
        "--export",
        page.to_str().expect("a name"),
        "--min",
        "0.02",
        "--max",
        "0.04",
    ])
    .success();
    let (port, asked) = serve(page);
    let address = format!("http://127.0.0.1:{port}/");
    browser.open("about:blank");
    browser.open(&format!("{address}index.html#d=light&t=plots"));
    browser.wait_for(COMPLETE);
    let panel = "document.getElementById('panel').textContent";
    browser.wait_for(&format!("{panel}.includes('Interrupts and softirqs')"));
    browser.wait_for("schedviz.panes[0].trace.plots.drawn.length > 0");
    let whole = number(&browser, "schedviz.state.span");
    browser.wheel((600, 400), -600);
    browser.wait_for(&format!("schedviz.state.span < {}", whole * 0.6));
    browser.wait_for(COMPLETE);
    // Into the window, whose finer tiles are in the folder.
    browser.run("schedviz.show(21e6, 18e6)");
    browser.wait_for("schedviz.state.span < 19e6");
    browser.wait_for(COMPLETE);
    let painted = "(() => { const pane = schedviz.panes[0], s = pane.scale(), p = pane.places(); const data = pane.context.getImageData(s.left, p.lanes, s.right - s.left, p.bottom - p.lanes).data;
        const colors = new Set(); for (let n = 0; n < data.length; n += 4) colors.add(data[n] << 16 | data[n + 1] << 8 | data[n + 2]); return colors.size; })()";
    browser.wait_for(&format!("{painted} > 8"));
    // A click highlights the task, whose numbers need the program.
    browser.keys("0");
    browser.wait_for(COMPLETE);
    let place = "(() => { const pane = schedviz.panes[0], box = pane.canvas.getBoundingClientRect(), s = pane.scale();
        for (const row of pane.layout.rows) for (let x = s.left; x < s.right; x += 3) { const hit = pane.hit(x, pane.places().lanes + row.y + 3); const run = pane.runAt(hit.row, hit.time);
        if (run && run.tile.entries[run.run] >= 1 && run.tile.ids[run.tile.entry[run.run]] < 0xfffffffc) return [box.x + x, box.y + pane.places().lanes + row.y + 3]; } })()";
    let (x, y) = (number(&browser, &format!("{place}[0]")), number(&browser, &format!("{place}[1]")));
    browser.drag(&[(x as i64, y as i64)]);
    browser.wait_for("schedviz.state.highlight !== null && schedviz.state.place !== null");
    // All CPUs then, the window and the task have their numbers from the folder alone.
    browser.wait_for(&format!("{panel}.includes('The exact instant needs the program')"));
    browser.run("document.getElementById('tab-window').click()");
    browser.wait_for(&format!("{panel}.includes('CPU time busy') && {panel}.includes('Summed from columns of')"));
    browser.run("document.getElementById('tab-task').click()");
    browser.wait_for(&format!("{panel}.includes('Longest waits') || {panel}.includes('Nothing of this task')"));
    // Tasks are found by name, without the program.
    browser.run("const box = document.getElementById('search'); box.value = 'kworker'; box.dispatchEvent(new Event('input', { bubbles: true }))");
    browser.wait_for(&format!("{panel}.includes('Found for') && {panel}.includes('kworker')"));
    // Tasks have rows, but there is no path: neither its menu nor its row, for the keys as well.
    browser.keys("\u{e00c}");
    browser.run("schedviz.change({ rows: 'filter', tab: 'task' })");
    browser.wait_for("schedviz.state.traces[0].rows.places().length > 3 && !document.querySelector('.rowbar').hidden");
    browser.wait_for(COMPLETE);
    assert_eq!(browser.run("return document.querySelector('.pathmenu').hidden"), true);
    browser.run("schedviz.panes[0].canvas.focus()");
    browser.keys("j");
    browser.wait_for("schedviz.state.row?.pid >= 0");
    browser.run("schedviz.change({ rows: '' })");
    // A wait has its time.
    browser.run("const { head } = schedviz.state.traces[0]; schedviz.change({ highlight: { trace: 0, pid: head.tasks.find(task => task.run > 1e6).pid } })");
    let wait = "[...document.querySelectorAll('#panel h3')].find(one => one.textContent === 'Longest waits')?.nextElementSibling.querySelector('tr').cells[0].textContent";
    browser.wait_for(&format!("/^[0-9.]+ s$/.test({wait} ?? '')"));
    // The lists are in the folder; an entry leads to its place.
    browser.keys("\u{e00c}");
    browser.run("document.getElementById('tab-lists').click()");
    let rows = "document.querySelectorAll('#panel tbody tr')";
    browser.wait_for(&format!("{rows}.length > 3"));
    browser.run(&format!("{rows}[1].click()"));
    browser.wait_for("schedviz.state.selection !== null && schedviz.state.story === null");
    browser.wait_for(COMPLETE);
    let mut console = browser.console();
    // Tiles outside of the window are not in the folder, which the page sees in the index of the packs.
    console.retain(|message| !message.contains("willReadFrequently"));
    assert_eq!(console, Vec::<String>::new());
    let asked = asked.lock().expect("a lock").clone();
    assert!(asked.iter().all(|path| !path.contains('?')), "a question in {asked:?}");
    assert!(asked.iter().all(|path| !path.contains("/lanes/") && !path.contains("/plot/0/")), "{asked:?}");
    let mut packs: Vec<&String> = asked.iter().filter(|path| path.starts_with("t/0/packs/")).collect();
    let number = packs.len();
    packs.sort_unstable();
    packs.dedup();
    assert!(!packs.is_empty() && packs.len() == number, "each pack once: {asked:?}");
    let requests = browser.run("return performance.getEntriesByType('resource').map(entry => entry.name)");
    assert!(
        requests
            .as_array()
            .expect("a list")
            .iter()
            .all(|name| name.as_str().is_some_and(|name| name.starts_with(&address)))
    );
    let _ = std::fs::remove_dir_all(folder);
}
