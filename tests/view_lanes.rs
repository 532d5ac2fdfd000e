//! The lanes of `schedviz view`: nodes, caches and cores as one lane each.

use crate::support::{fixture, scratch};
use crate::view::{View, lane};
use crate::view_browser::{COMPLETE, Server, assert_clean, number, open};
use crate::webdriver::Browser;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Writes a topology of nodes, LLCs and cores of these numbers of CPUs into a folder.
pub(crate) fn topology(folder: &Path, cpus: u32, [node, llc, core]: [u32; 3]) -> PathBuf {
    let path = folder.join("cpus.txt");
    let line = |cpu: u32| {
        let (smt, cache) = (cpu / core * core, cpu / llc * llc);
        let ends = (smt + core - 1, cache + llc - 1);
        format!(
            "cpu{cpu} socket={} core={} smt={smt}-{} llc={cache}-{}\n",
            cpu / node,
            cpu % node / core,
            ends.0,
            ends.1
        )
    };
    std::fs::write(&path, (0..cpus).map(line).collect::<String>()).expect("written");
    path
}

fn arguments<'a>(trace: &'a Path, topology: &'a Path) -> [&'a Path; 3] {
    [trace, Path::new("--topology"), topology]
}

/// The tasks that a column does not name.
const OTHERS: u32 = 0xffff_fffc;

/// The busy share of a column.
fn busy(column: &[(u32, f64)]) -> f64 {
    column.iter().filter(|(id, _)| !(0xffff_fffd..).contains(id)).map(|(_, share)| share).sum()
}

#[test]
fn a_group_as_one_lane_has_the_mean_of_its_lanes() {
    let folder = scratch("view-sums");
    let (trace, cpus) = (fixture("hackbench-v6.dat"), topology(&folder, 16, [8, 4, 2]));
    let view = View::of(&arguments(&trace, &cpus));
    let head = view.head(0);
    let folds = head["folds"].as_array().expect("groups").clone();
    let named: Vec<String> = folds.iter().map(|fold| format!("{} {}", fold["kind"], fold["number"])).collect();
    let expected = [("node", 2, 1), ("llc", 4, 4), ("core", 8, 2)];
    let expected =
        expected.iter().flat_map(|(kind, n, step)| (0..*n).map(move |at| format!("\"{kind}\" {}", at * step)));
    assert_eq!(named, expected.collect::<Vec<_>>());
    let number = |value: &serde_json::Value| value.as_u64().expect("a number") as usize;
    let (top, lanes) = (number(&head["levels"][1]), number(&head["tile"]["lanes"]));
    let (mut compared, mut of_commands) = (0, 0);
    let comm = |id: &u32| head["tasks"][*id as usize]["comm"].as_str().map(str::to_owned);
    for (level, index) in [(top, 0), (top - 3, 3), (top - 9, 100)] {
        let get = |kind: &str, group: usize| {
            let tile = view.get(&format!("t/0/{kind}/{level}/{group}/{index}.bin"));
            assert!(tile.status == 200 && tile.body.len() <= view::TILE_BYTES, "{kind} {level}: {}", tile.status);
            tile.body
        };
        for fold in &folds {
            let sum = lane(&get("sums", number(&fold["tile"])), number(&fold["lane"]));
            let places = number(&fold["lanes"][0])..number(&fold["lanes"][1]);
            let of = |place: usize| lane(&get("lanes", place / lanes), place % lanes);
            let parts: Vec<_> = places.map(of).collect();
            for (nth, column) in sum.iter().enumerate() {
                let mean = parts.iter().map(|part| busy(&part[nth])).sum::<f64>() / parts.len() as f64;
                assert!((busy(column) - mean).abs() < 1e-3, "{fold}, column {nth}: {column:?}, not {mean}");
                compared += usize::from(mean > 0.01);
            }
            let commands = lane(&get("commands", number(&fold["tile"])), number(&fold["lane"]));
            for (nth, column) in commands.iter().enumerate() {
                // The shares of commands are the sums of those of their tasks, where the lanes name all that ran.
                let entries = || parts.iter().flat_map(|part| &part[nth]);
                let mut expected: BTreeMap<String, f64> = BTreeMap::new();
                for (id, share) in entries() {
                    comm(id)
                        .into_iter()
                        .for_each(|comm| *expected.entry(comm).or_default() += share / parts.len() as f64);
                }
                assert!((busy(column) - busy(&sum[nth])).abs() < 1e-3, "{fold}, column {nth}");
                if expected.len() > 4 || entries().any(|(id, _)| *id == OTHERS) {
                    continue;
                }
                let found: BTreeMap<String, f64> =
                    column.iter().filter_map(|(id, share)| Some((comm(id)?, *share))).collect();
                assert_eq!(
                    found.len(),
                    column.iter().filter(|(id, _)| comm(id).is_some()).count(),
                    "each command once"
                );
                for (comm, share) in &expected {
                    assert!((found.get(comm).unwrap_or(&0.0) - share).abs() < 2e-3, "{fold}, column {nth}: {column:?}");
                }
                // More tasks than a column names.
                of_commands += usize::from(sum[nth].iter().any(|(id, _)| *id == OTHERS));
            }
        }
    }
    assert!(compared > 500 && of_commands > 100, "{compared}, {of_commands}");
    assert_eq!(view.get(&format!("t/0/sums/{top}/1/0.bin")).status, 404);
}

/// The places of the pane's rows in their order: the number of a CPU, or the name of a group.
const ROWS: &str = "schedviz.panes[0].layout.rows.map(row => row.members ? \
    schedviz.panes[0].layout.groups.find(group => group.fold === row.fold).name : String(row.cpu)).join(' ')";

/// Clicks on the name or line of a group.
fn click(browser: &Browser, name: &str) {
    let group = format!("schedviz.panes[0].layout.groups.find(group => group.name === '{name}')");
    let place = |axis: &str, within: &str| {
        let canvas = "schedviz.panes[0].canvas.getBoundingClientRect()";
        number(browser, &format!("{canvas}.{axis} + {within}")) as i64
    };
    let x = place("x", &format!("6 + 14 * {group}.depth + 7"));
    let y = place("y", &format!("schedviz.panes[0].places().lanes + {group}.y + 6"));
    browser.drag(&[(x, y)]);
}

#[test]
fn groups_of_every_kind_collapse_by_click_menu_and_key() {
    let Some(browser) = Browser::start("lanes") else { return };
    let folder = scratch("view-lanes");
    let (trace, cpus) = (fixture("hackbench-v6.dat"), topology(&folder, 16, [8, 4, 2]));
    let server = Server::start(&arguments(&trace, &cpus));
    open(&browser, &server, "d=light");
    assert_eq!(number(&browser, "schedviz.panes[0].layout.rows.length"), 16.0);
    let is = |rows: &str| browser.wait_for(&format!("{ROWS} === '{rows}'"));
    let others = "8 9 10 11 12 13 14 15";
    click(&browser, "core 2");
    is(&format!("0 1 core 2 4 5 6 7 {others}"));
    click(&browser, "LLC 4");
    is(&format!("0 1 core 2 LLC 4 {others}"));
    browser.wait_for("location.hash.includes('x=0:c2,0:l4')");
    browser.wait_for(COMPLETE);
    // The lane of the cache is drawn: its colours, and some of its ground.
    let painted = "(() => { const pane = schedviz.panes[0], s = pane.scale(); const row = pane.layout.rows.find(row => row.members?.length === 4);
        const data = pane.context.getImageData(s.left, pane.places().lanes + row.y, s.right - s.left, row.bar).data;
        const colors = new Set(); for (let n = 0; n < data.length; n += 4) colors.add(data[n] << 16 | data[n + 1] << 8 | data[n + 2]); return colors.size; })()";
    browser.wait_for(&format!("{painted} > 6"));
    // Its tip has the shares of all of its CPUs.
    let tip = "document.getElementById('tip').textContent";
    browser.run(
        "const pane = schedviz.panes[0], box = pane.canvas.getBoundingClientRect(), row = pane.layout.rows.find(row => row.members?.length === 4);
         pane.canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + 500, clientY: box.y + pane.places().lanes + row.y + 5, bubbles: true }))",
    );
    browser.wait_for(&format!("{tip}.startsWith('LLC 4  ·  4 CPUs: 4-7')"));
    // The address reopens it, and a bare number is a node's.
    open(&browser, &server, "d=light&x=0:c2,0:l4");
    is(&format!("0 1 core 2 LLC 4 {others}"));
    open(&browser, &server, "d=light&x=0:1");
    is("0 1 2 3 4 5 6 7 node 1");
    // By key from the core of the cursor outwards, and back.
    open(&browser, &server, "d=light&p=0,5,1000000");
    for rows in ["0 1 2 3 core 4 6 7", "0 1 2 3 LLC 4", "node 0", "node 0"] {
        browser.keys("c");
        is(&format!("{rows} {others}"));
    }
    browser.wait_for("document.getElementById('here').textContent.includes('node 0')");
    browser.keys("e");
    is(&format!("0 1 2 3 LLC 4 {others}"));
    // All of a kind by the menu.
    let choose = |kind: &str| {
        browser.run(&format!(
            "const menu = document.getElementById('lanes'); menu.value = '{kind}'; menu.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        ));
    };
    choose("core");
    is("core 0 core 2 core 4 core 6 core 8 core 10 core 12 core 14");
    choose("node");
    is("node 0 node 1");
    open(&browser, &server, "d=light&x=0:l0,0:l4,0:l8,0:l12");
    assert_eq!(browser.run("return document.getElementById('lanes').value"), "llc");
    choose("");
    is(&format!("0 1 2 3 4 5 6 7 {others}"));
    assert_clean(&browser, &server);
}

#[test]
fn bars_of_a_figure_stay_on_a_collapsed_group() {
    let Some(browser) = Browser::start("lanes-plot") else { return };
    let folder = scratch("view-lanes-plot");
    let (trace, cpus) = (fixture("every-7.2.dat"), topology(&folder, 4, [2, 2, 1]));
    let [trace, flag, cpus] = arguments(&trace, &cpus);
    let server = Server::start(&[trace, flag, cpus, Path::new("--plot"), Path::new("irq")]);
    open(&browser, &server, "d=light&x=0:n0,0:n1");
    browser.wait_for("schedviz.panes[0].trace.plots.drawn.some(row => row.depths?.size === 2)");
    // The longest interrupt: the height of its colour in the group's lane is its share of the time of two CPUs.
    browser.run("const plots = schedviz.panes[0].trace.plots; const irq = [...plots.looks.get(0)].find(([, look]) => look.item === 'interrupt')[0];
        const longest = [...plots.blocks].flatMap(([, { block }]) => block.rows.flatMap(row => row.pieces.map(p => [block, row.lane, p]))
            .filter(([, , p]) => p[2] === irq || p[2].some?.(share => share[0] === irq))).sort((a, b) => (b[2][1] - b[2][0]) - (a[2][1] - a[2][0]))[0];
        globalThis.bar = { lane: longest[1], middle: longest[0].from + (longest[2][0] + longest[2][1]) / 2 };
        const length = longest[2][1] - longest[2][0]; schedviz.show(bar.middle - 3 * length, 6 * length)");
    browser.wait_for(COMPLETE);
    let rows = "(() => { const pane = schedviz.panes[0], s = pane.scale(); const d = pane.trace.plots.drawn.find(d => d.depths?.has(bar.lane));
        const width = s.right - s.left, data = pane.context.getImageData(s.left, Math.floor(d.y), width, Math.ceil(d.height)).data;
        let most = 0; for (let x = 0; x < width; x++) { let n = 0; for (let y = 0; y < Math.ceil(d.height); y++) {
            const at = 4 * (y * width + x); if (data[at] === 0xc0 && data[at + 1] === 0x10 && data[at + 2] === 0x20) n++; } most = Math.max(most, n); }
        const depth = d.depths.get(bar.lane); return [most, d.height / 2 / depth]; })()";
    browser.wait_for(&format!("{rows}[0] > 0"));
    let (drawn, expected) = (number(&browser, &format!("{rows}[0]")), number(&browser, &format!("{rows}[1]")));
    assert!((drawn - expected).abs() <= 2.0, "{drawn} rows of pixels, not {expected}");
    // Its tip has the share.
    browser.run("const pane = schedviz.panes[0], s = pane.scale(), box = pane.canvas.getBoundingClientRect(); const d = pane.trace.plots.drawn.find(d => d.depths?.has(bar.lane));
        pane.canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + s.left + (bar.middle - s.from) / s.perPixel, clientY: box.y + d.y + d.height / 2, bubbles: true }))");
    browser.wait_for("/interrupt.* %  of the time of 2 CPUs|interrupt.* % of the time of 2 CPUs/.test(document.getElementById('tip').textContent)");
    assert_clean(&browser, &server);
}
