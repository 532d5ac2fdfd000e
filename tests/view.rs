//! `schedviz view`: the server over a real socket, and its tiles against the other commands.

use crate::support::{fixture, program, root, schedviz, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `schedviz view`, ended when it is dropped.
pub(crate) struct View {
    child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// An answer: its status, its headers in lower case, and its body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

impl View {
    pub(crate) fn of(traces: &[&Path]) -> View {
        View::with(traces, &[])
    }

    /// A server whose passes are made in pieces of this number of events.
    pub(crate) fn in_pieces(traces: &[&Path], events: &str) -> View {
        let mut command = Command::new(program());
        command.env("SCHEDVIZ_PIECES", events);
        View::started(command, traces, &[])
    }

    pub(crate) fn with(traces: &[&Path], arguments: &[&str]) -> View {
        View::started(Command::new(program()), traces, arguments)
    }

    fn started(mut command: Command, traces: &[&Path], arguments: &[&str]) -> View {
        command.args(["view", "--no-open"]).args(arguments).args(traces).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("schedviz");
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut url).expect("an address");
        let rest = url.trim().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{url}"));
        let mut parts = rest.split('/');
        let port = parts.next().and_then(|port| port.parse().ok()).expect("a port");
        let token = parts.next().expect("a token").to_owned();
        assert_eq!((token.len(), parts.next()), (32, Some("index.html")));
        View { child, port, token }
    }

    /// Sends a request as it is, and reads the answer.
    pub(crate) fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut bytes = Vec::new();
        // A refusal can close the connection before all of the request was read.
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let headers = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, headers, body: bytes.get(end + 4..).unwrap_or_default().to_vec() }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        let View { port, token, .. } = self;
        self.send(&format!("GET /{token}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"))
    }

    /// A number of /proc/PID/status in bytes: `VmRSS`, the memory of the server, or `VmHWM`, the greatest until now.
    #[cfg(target_os = "linux")]
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a number");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        self.get(path).json()
    }

    /// The head of a trace once all of it was read.
    pub(crate) fn head(&self, trace: usize) -> Value {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(300) {
            let head = self.json(&format!("t/{trace}/head.json"));
            if head["full"] == true {
                return head;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the trace was not read within five minutes");
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number of few bytes.
fn number(tile: &[u8], at: &mut usize) -> u64 {
    let length = tile[*at..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let digits = tile[*at..*at + length].iter().rev();
    *at += length;
    digits.fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// The columns of one lane: their entries, each a task or a constant and its share.
pub(crate) fn lane(tile: &[u8], lane: usize) -> Vec<Vec<(u32, f64)>> {
    let u16_at = |at: usize| u16::from_le_bytes([tile[at], tile[at + 1]]);
    assert_eq!(&tile[..4], b"SVT2");
    let (columns, lanes, mut at) = (usize::from(u16_at(4)), usize::from(u16_at(6)), 8);
    assert!(lane < lanes);
    for number_of_lane in 0..lanes {
        let mut all = Vec::new();
        while all.len() < columns {
            let (run, head) = (usize::from(tile[at]) + 1, tile[at + 1]);
            at += 2;
            if head & 0x80 > 0 {
                (0..3).for_each(|_| _ = number(tile, &mut at));
            }
            let mut entries: Vec<(u32, f64)> = Vec::new();
            for nth in 0..head & 7 {
                let id = (number(tile, &mut at) as u32).wrapping_add(0xffff_fffc);
                let share = if nth > 0 { f64::from(u16_at(at)) / 65_535.0 } else { 1.0 };
                at += if nth > 0 { 2 } else { 0 };
                entries.push((id, share));
            }
            let others: f64 = entries.iter().skip(1).map(|(_, share)| share).sum();
            entries.first_mut().into_iter().for_each(|(_, share)| *share -= others);
            all.extend(std::iter::repeat_n(entries, run));
        }
        if number_of_lane == lane {
            return all;
        }
    }
    unreachable!("the lane is one of those")
}

#[test]
fn only_the_page_with_its_token_is_answered() {
    let view = View::of(&[&fixture("hackbench-v6.dat")]);
    let View { port, token, .. } = &view;
    let page = view.get("index.html");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self';",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(page.headers.contains(header), "{header} in {}", page.headers);
    }
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let status = |line: &str, headers: &str| view.send(&format!("{line}\r\n{headers}Connection: close\r\n\r\n")).status;
    let ours = format!("GET /{token}/traces.json HTTP/1.1");
    assert_eq!(status(&ours, &host), 200);
    assert_eq!(status(&ours, &format!("Host: localhost:{port}\r\n")), 200);
    assert_eq!(status(&ours, &format!("{host}Origin: http://127.0.0.1:{port}\r\n")), 200);
    let other = token.chars().rev().collect::<String>();
    for (line, headers, refused) in [
        ("GET /traces.json HTTP/1.1", host.as_str(), 404),
        ("GET / HTTP/1.1", &host, 404),
        (&format!("GET /{other}/traces.json HTTP/1.1"), &host, 404),
        (&format!("GET /{}/traces.json HTTP/1.1", &token[1..]), &host, 404),
        (&format!("GET /{token}/../../etc/passwd HTTP/1.1"), &host, 404),
        (&format!("GET /{token}/%2e%2e/%2e%2e/etc/passwd HTTP/1.1"), &host, 404),
        (&ours, "", 403),
        (&ours, "Host: example.org\r\n", 403),
        (&ours, &format!("Host: example.org:{port}\r\n"), 403),
        (&ours, "Host: 127.0.0.1\r\n", 403),
        (&ours, &format!("{host}{host}"), 400),
        (&ours, &format!("{host}Origin: http://example.org\r\n"), 403),
        (&ours, &format!("{host}Origin: null\r\n"), 403),
        (&ours, &format!("{host}Origin: https://127.0.0.1:{port}\r\n"), 403),
        (&ours, &format!("{host}Sec-Fetch-Site: cross-site\r\n"), 403),
        (&ours.replace("GET", "POST"), &host, 405),
        (&ours, &format!("{host}Content-Length: 5\r\n"), 413),
        (&ours, &format!("{host}Transfer-Encoding: chunked\r\n"), 413),
        (&ours, &format!("{host}X: {}\r\n", "x".repeat(20_000)), 431),
        ("hello", &host, 400),
    ] {
        assert_eq!(status(line, headers), refused, "{line} {headers}");
    }
    assert_eq!(status(&ours, &host), 200, "it goes on serving");
    let missing =
        ["t/1/head.json", "t/0/x", "t/0/lanes/1/2", "t/0/lanes/-1/0/0.bin", "t/0/lanes/0/0/99999999999999999999.bin"];
    for path in missing.into_iter().chain(["t/0/lanes/64/0/0.bin", "t/0/lanes/0/0/9000000000000000000.bin"]) {
        view.head(0);
        assert_eq!(view.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_signal_ends_it_in_order() {
    let mut view = View::of(&[&fixture("hackbench-v6.dat")]);
    view.head(0);
    let pid = view.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    assert_eq!(view.child.wait().expect("an exit").code(), Some(0));
}

/// The busy, idle, unknown and offline time of each lane of `dat2graph`, for a window in nanoseconds.
fn lanes_of_dat2graph(path: &Path, from: u64, to: u64) -> BTreeMap<u64, [f64; 4]> {
    let (min, max) = (format!("{from}ns"), format!("{to}ns"));
    let path = path.to_str().expect("a name");
    let json = schedviz(&["dat2graph", "-q", "--json", path, "--min", &min, "--max", &max]).success().text();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let time = |lane: &Value, key: &str| lane[key].as_f64().expect("a number");
    let lane = |lane: &Value| {
        let times = ["busy_ns", "idle_ns", "unknown_ns", "offline_ns"].map(|key| time(lane, key));
        (lane["cpu"].as_u64().expect("a CPU"), times)
    };
    json["lanes"].as_array().expect("lanes").iter().map(lane).collect()
}

#[test]
fn tiles_agree_with_the_other_commands() {
    for path in ["hackbench.dat", "hackbench-v6.dat", "hotplug.dat", "balance.dat", "instance.dat"].map(fixture) {
        compare_lanes(&View::of(&[&path]), &path);
    }
}

/// Compares the lanes of some tiles with those of `dat2graph`.
pub(crate) fn compare_lanes(view: &View, path: &Path) {
    let head = view.head(0);
    let (span, top) = (head["span"].as_u64().expect("a span"), head["levels"][1].as_u64().expect("a level"));
    let cpus = head["cpus"].as_array().expect("CPUs");
    let (columns, lanes) = (head["tile"]["columns"].as_u64().expect("columns"), head["tile"]["lanes"].as_u64());
    let lanes = lanes.expect("lanes") as usize;
    // The whole trace, and a window of the length of one tile in the middle of it.
    for (level, index) in [(top, 0), (top - 3, 2), (top - 9, (span >> (top - 9)) / columns / 2)] {
        let (from, to) = ((index * columns) << level, (((index + 1) * columns) << level).min(span));
        if from >= to {
            continue;
        }
        let truth = lanes_of_dat2graph(path, from, to);
        assert!(truth.keys().all(|cpu| cpus.iter().any(|place| place["cpu"] == *cpu)), "{cpus:?} {truth:?}");
        for (place, cpu) in cpus.iter().enumerate() {
            // A figure has no lane for a CPU without events.
            let truth = cpu["cpu"].as_u64().and_then(|number| truth.get(&number));
            assert!(truth.is_some() || cpu["silent"] == true, "{}: {cpu}", path.display());
            let Some(truth) = truth else { continue };
            let tile = view.get(&format!("t/0/lanes/{level}/{}/{index}.bin", place / lanes));
            assert_eq!(tile.status, 200);
            assert!(tile.body.len() <= view::TILE_BYTES, "{} bytes", tile.body.len());
            let mut sums = [0.0; 4];
            for (nth, column) in lane(&tile.body, place % lanes).iter().enumerate() {
                let begin = from + ((nth as u64) << level);
                let ns = (begin + (1 << level)).min(to).saturating_sub(begin) as f64;
                for (id, share) in column {
                    let kind = match id {
                        0xffff_ffff => 1,
                        0xffff_fffe => 2,
                        0xffff_fffd => 3,
                        _ => 0,
                    };
                    sums[kind] += share * ns;
                }
            }
            let all = (to - from) as f64;
            for (found, truth) in sums.iter().zip(truth) {
                // A share has sixteen bits.
                assert!((found - truth).abs() <= all * 2e-4, "{cpu}, level {level}: {sums:?} {truth:?}");
            }
        }
    }
}

/// The document of a command.
fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&schedviz(arguments).success().text()).expect("JSON")
}

#[test]
fn a_task_and_a_window_have_the_numbers_of_the_other_commands() {
    let path = fixture("hackbench.dat");
    let name = path.to_str().expect("a name");
    let view = View::of(&[&path]);
    let head = view.head(0);
    let span = head["span"].as_u64().expect("a span");
    let tasks = head["tasks"].as_array().expect("tasks");
    let longest = tasks.iter().max_by_key(|task| task["run"].as_u64()).expect("a task");
    let (from, to) = (span / 4, span / 2);
    let (min, max) = (format!("{from}ns"), format!("{to}ns"));
    let number = longest["pid"].as_i64().expect("a pid");
    let pid = number.to_string();
    let latency = document(&["latency", "-q", "--json", name, "--pid", &pid, "--min", &min, "--max", &max]);
    let found = view.json(&format!("t/0/task.json?pid={pid}&from={from}&to={to}"));
    let measure = |name: &str| {
        let of = latency["measures"].as_array().expect("measures").iter().find(|row| row["measure"] == name);
        of.unwrap_or_else(|| panic!("{name}")).clone()
    };
    let numbers = &found["numbers"];
    for (key, truth) in [("count", "count"), ("median", "p50_ns"), ("p99", "p99_ns"), ("max", "max_ns")] {
        assert_eq!(numbers["wakeup_latency"][key], measure("wakeup")[truth], "{key}");
    }
    let sum = |list: &str| {
        let list = found[list].as_array().expect("a list");
        list.iter().map(|row| row[1].as_u64().unwrap_or(0) - row[0].as_u64().unwrap_or(0)).sum::<u64>()
    };
    assert_eq!(found["truncated"], false);
    assert_eq!(numbers["run"].as_u64(), Some(sum("runs")));
    assert_eq!(numbers["wait"].as_u64(), Some(sum("waits")));
    let drawn = document(&["dat2graph", "-q", "--json", name, "--min", &min, "--max", &max]);
    let ran = drawn["tasks"].as_array().expect("tasks").iter().filter(|task| task["pid"] == number);
    assert_eq!(ran.map(|task| task["run_ns"].as_u64().unwrap_or(0)).sum::<u64>(), sum("runs"));
    let window = view.json(&format!("t/0/window.json?from={from}&to={to}"));
    for (key, of) in [("busy", "busy_ns"), ("idle", "idle_ns"), ("unknown", "unknown_ns"), ("offline", "offline_ns")] {
        let lanes = drawn["lanes"].as_array().expect("lanes");
        assert_eq!(window[key].as_u64(), lanes.iter().map(|lane| lane[of].as_u64()).sum(), "{key}");
    }
    let counted = document(&["running-waiting", "-q", "--json", name, "--min", &min, "--max", &max]);
    assert_eq!(window["violation"], counted["violated_ns"]);
    assert_eq!(window["waiting"], counted["panels"][0]["waiting_ns"]);
    let first = window["tasks"][0].as_array().expect("a task");
    let first_task = &tasks[first[0].as_u64().expect("a place") as usize];
    assert_eq!((&first_task["pid"], &first[1]), (&drawn["tasks"][0]["pid"], &drawn["tasks"][0]["run_ns"]));
}

/// The lag in the panel of a task is that of `picks`, also where older probes recorded it.
#[test]
fn the_lag_of_a_task_is_that_of_picks() {
    let path = root().join("examples/waiting/eevdf.dat");
    let view = View::of(&[&path]);
    let span = view.head(0)["span"].as_u64().expect("a span");
    let found = view.json(&format!("t/0/task.json?pid=32&from=0&to={span}"));
    let picks = document(&["picks", "-q", "--json", "--by", "task", path.to_str().expect("a name")]);
    let row = picks["rows"].as_array().expect("rows").iter().find(|row| row["pid"] == 32).expect("ksoftirqd/2");
    let (lag, truth) = (&found["numbers"]["lag"], &row["lag"]);
    assert_eq!((&lag["count"], &lag["greatest"]), (&truth["count"], &truth["greatest_ns"]));
    assert_eq!((&lag["count"], &lag["greatest"]), (&Value::from(1), &Value::from(92_856_537)));
}

#[test]
fn an_instant_is_what_the_stepper_shows() {
    let path = fixture("hackbench.dat");
    let view = View::of(&[&path]);
    let head = view.head(0);
    let at = head["span"].as_u64().expect("a span") / 3;
    let steps =
        document(&["stepper", "-q", "--json", path.to_str().expect("a name"), "--at", &format!("{}ns", at + 1)]);
    let step = &steps["steps"][0];
    let found = view.json(&format!("t/0/at.json?cpu=0&at={at}"));
    let (cpus, truth) = (found["cpus"].as_array().expect("CPUs"), step["cpus"].as_array().expect("CPUs"));
    assert_eq!(cpus.len(), truth.len());
    for (cpu, truth) in cpus.iter().zip(truth) {
        assert_eq!((&cpu["cpu"], &cpu["pid"]), (&truth["cpu"], &truth["running"]["pid"]));
        let waiting: Vec<&Value> =
            truth["waiting"].as_array().expect("a queue").iter().map(|task| &task["pid"]).collect();
        assert_eq!(cpu["waiting"].as_array().expect("a queue").iter().collect::<Vec<_>>(), waiting);
    }
    assert_eq!(found["next"]["text"], step["event"]["text"]);
    assert_eq!((&found["next"]["flags"], found["next"]["flags"].is_string()), (&step["flags"], true));
    assert_eq!(found["next"]["at"], step["in_trace_ns"]);
}

#[test]
fn lists_searches_and_figures() {
    let path = fixture("hackbench.dat");
    let name = path.to_str().expect("a name");
    let view = View::of(&[&path]);
    let head = view.head(0);
    let report = document(&["workcons", "-q", "--json", name]);
    let all = &report["runs"][0]["by_min_episode"][0];
    let list = |kind: &str| view.json(&format!("t/0/list.json?kind={kind}"))["rows"].as_array().expect("rows").clone();
    let length = |row: &Value| row["to"].as_u64().zip(row["from"].as_u64()).map(|(to, from)| to - from);
    let episodes = list("episodes");
    assert_eq!(Some(episodes.len() as u64), all["episodes"].as_u64());
    assert_eq!(episodes.iter().map(length).sum::<Option<u64>>(), all["ns"].as_u64());
    assert!(episodes.is_sorted_by(|a, b| length(a) >= length(b)));
    let waits = list("waits");
    assert!(waits.is_sorted_by(|a, b| length(a) >= length(b)) && !waits.is_empty());
    let missed = view.json("t/0/list.json?kind=missed");
    let truth = &document(&["why", "-q", "--json", name])["runs"][0]["missed"];
    let rows = missed["rows"].as_array().expect("rows");
    assert_eq!((&missed["number"], &missed["idle_entries"]), (&truth["number"], &truth["idle_entries"]));
    assert!(rows.len() > 10 && rows.is_sorted_by(|a, b| length(a) >= length(b)));
    assert_eq!(missed["number"].as_u64(), Some(rows.len() as u64));
    for (row, truth) in
        missed["by_distance"].as_array().expect("rows").iter().zip(truth["by_distance"].as_array().expect("rows"))
    {
        assert_eq!((&row["number"], &row["violated"]), (&truth["number"], &truth["violated_ns"]));
        let listed = rows.iter().filter(|listed| listed["nearest"] == row["nearest"]);
        assert_eq!(row["number"].as_u64(), Some(listed.count() as u64), "{row}");
    }
    list("herds");
    let pid =
        head["tasks"].as_array().expect("tasks").iter().find(|t| t["comm"] == "hackbench").expect("one")["pid"].clone();
    let found = view.json("t/0/search.json?q=HACKB");
    assert!(found["tasks"].as_array().expect("tasks").contains(&pid) && found["events_number"] == 0);
    let found = view.json("t/0/search.json?q=sched_migrate");
    let event = &found["events"][0];
    assert!(event["name"] == "sched_migrate_task" && event["text"].as_str().is_some_and(|t| t.contains("dest_cpu=")));
    let part = "from=1000000&to=3000000&cpus=0-1&color-by=command";
    let command = view.json(&format!("t/0/command.json?{part}"))["command"].as_str().expect("a line").to_owned();
    assert!(command.ends_with("--min 1000000ns --max 3000000ns --cpus 0-1 --color-by command"), "{command}");
    let folder = scratch("view-figure");
    let file = folder.join("window.svg");
    // The name of the trace is in quotes if it has a space.
    let trace = fixture("hackbench.dat").display().to_string();
    let line = command.replace(&format!("'{trace}'"), "TRACE").replace(&trace, "TRACE");
    let words = line.split(' ').skip(1).map(|word| if word == "TRACE" { trace.as_str() } else { word });
    let words: Vec<&str> = words.chain(["-q", "-o", file.to_str().expect("a name")]).collect();
    schedviz(&words).success();
    // The same lanes; the foot names the command line as it was typed.
    let marks = |svg: &str| svg.lines().filter(|line| line.contains("<path")).map(str::to_owned).collect::<Vec<_>>();
    let drawn = String::from_utf8(view.get(&format!("t/0/figure.svg?{part}")).body).expect("text");
    let truth = std::fs::read_to_string(&file).expect("the figure");
    assert!(marks(&drawn).len() > 2 && marks(&drawn) == marks(&truth));
    assert!(view.get(&format!("t/0/figure.pdf?{part}")).body.starts_with(b"%PDF"));
    assert!(view.get(&format!("t/0/figure.png?{part}")).body.starts_with(b"\x89PNG"));
    let bad = ["figure.pdf", "figure.pdf?from=5&to=5", "command.json?from=1&to=2&color-by=x", "at.json?cpu=99&at=0"];
    for path in bad.into_iter().chain(["task.json?pid=x", "window.json?from=-1", "list.json", "search.json?q="]) {
        assert_eq!(view.get(&format!("t/0/{path}")).status, 400, "{path}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// The tiles of a pack with their names.
fn packed(pack: &[u8]) -> Vec<(String, Vec<u8>)> {
    assert_eq!(&pack[..4], b"SVP1");
    let begin = 8 + u32::from_le_bytes(pack[4..8].try_into().expect("four bytes")) as usize;
    let directory: serde_json::Map<String, Value> = serde_json::from_slice(&pack[8..begin]).expect("JSON");
    let number = |value: &Value| value.as_u64().expect("a number") as usize;
    let tile = |(name, at): (String, Value)| (name, pack[begin + number(&at[0])..][..number(&at[1])].to_vec());
    directory.into_iter().map(tile).collect()
}

/// Compares what a folder has of a task with the server's answer.
fn same_numbers(found: &Value, asked: &Value, pid: &str) {
    for key in ["run", "wait", "sleep", "runs", "waits", "migrations"] {
        assert_eq!(found["numbers"][key], asked["numbers"][key], "{key} of {pid}");
    }
    let latency = &found["numbers"]["wakeup_latency"];
    if !latency.is_null() || asked["numbers"]["wakeup_latency"]["count"] != 0 {
        assert_eq!(latency, &asked["numbers"]["wakeup_latency"], "{pid}");
    }
    let length = |wait: &Value| wait[1].as_u64().expect("an end") - wait[0].as_u64().expect("a start");
    let lengths = |waits: &Value| -> Vec<u64> {
        let mut lengths: Vec<u64> = waits.as_array().expect("waits").iter().map(length).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.truncate(8);
        lengths
    };
    assert_eq!(lengths(&found["waits"]), lengths(&asked["waits"]), "{pid}");
    for wait in found["waits"].as_array().expect("waits") {
        let same = |other: &&Value| [0, 1, 2, 5].iter().all(|part| other[part] == wait[part]);
        assert!(asked["waits"].as_array().expect("waits").iter().find(same).is_some(), "{wait} of {pid}");
    }
}

/// The address at which the server has a tile of a folder: rows of tasks are 64 together there.
fn asked_at_server(name: &str, head: &Value) -> String {
    let parts: Vec<&str> = name.split(['/', '.']).collect();
    let ["rows", level, index, group, "bin"] = parts.as_slice() else { return name.to_owned() };
    let first = group.parse::<usize>().expect("a number") * 64;
    let end = head["tasks"].as_array().expect("tasks").len().min(first + 64);
    let places: Vec<String> = (first..end).map(|place| place.to_string()).collect();
    format!("rows/{level}/{index}.bin?of={}", places.join(","))
}

#[test]
fn an_exported_folder_has_the_tiles_of_the_server() {
    let path = fixture("hackbench.dat");
    let name = path.to_str().expect("a name");
    let folder = scratch("view-export");
    let page = folder.join("page");
    let page_name = page.to_str().expect("a name");
    let ran = schedviz(&["view", name, "--export", page_name, "--min", "0.2", "--max", "0.2001"]).success();
    let mut files: Vec<std::path::PathBuf> = vec![page.clone()];
    let (mut number, mut bytes) = (0, 0);
    let mut names = Vec::new();
    let view = View::of(&[&path]);
    let head = view.head(0);
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(path.read_dir().expect("a folder").flatten().map(|entry| entry.path()));
            continue;
        }
        let content = std::fs::read(&path).expect("a file");
        (number, bytes) = (number + 1, bytes + content.len());
        let place = path.strip_prefix(&page).expect("inside").to_str().expect("a name").to_owned();
        if place.ends_with(".bin") {
            for (name, tile) in packed(&content) {
                assert!(view.get(&format!("t/0/{}", asked_at_server(&name, &head))).body == tile, "{name} in {place}");
                names.push(name);
            }
        } else if !place.ends_with(".json") {
            assert!(view.get(&place).body == content, "{place}");
        }
    }
    assert!(names.len() > 40 * number / 10, "{} tiles in {number} files", names.len());
    let size = format!("{number} files, {:.1} MB", bytes as f64 / 1e6);
    assert!(number > 20 && ran.stderr.contains(&size), "{size} in {}", ran.stderr);
    let json = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(page.join(name)).expect("a file")).expect("JSON")
    };
    assert_eq!(json("traces.json")["static"], true);
    let exported = json("t/0/head.json");
    assert_eq!((&exported["tasks"], &exported["span"]), (&head["tasks"], &head["span"]));
    let finest = exported["levels"][0].as_u64().expect("a level");
    let columns = exported["tile"]["columns"].as_u64().expect("columns");
    for kind in ["episodes", "waits", "herds", "missed"] {
        assert_eq!(json(&format!("t/0/list/{kind}.json")), view.json(&format!("t/0/list.json?kind={kind}")));
    }
    let index = (200_000_000u64 >> finest) / columns;
    assert!(names.contains(&format!("machine/{finest}/{index}.bin")));
    // The rows of tasks are on the coarsest levels, and take little room beside the lanes.
    let rows = json("t/0/rows.json");
    assert_eq!(rows["times"], view.json("t/0/rows.json")["times"]);
    assert!(rows["levels"][0].as_u64().is_some_and(|level| names.contains(&format!("rows/{level}/0/0.bin"))), "{rows}");
    assert_eq!(rows["levels"][1], exported["levels"][1]);
    // Each task has the numbers of the window that the server gives, and its longest waits.
    let tasks = json("t/0/tasks.json");
    let window = format!("from={}&to={}", tasks["from"], tasks["to"]);
    assert_eq!((&tasks["from"], &tasks["to"]), (&200_000_000.into(), &200_100_000.into()));
    let found = tasks["tasks"].as_object().expect("tasks");
    assert!(found.len() > 10, "{tasks}");
    for (pid, found) in found {
        same_numbers(found, &view.json(&format!("t/0/task.json?pid={pid}&{window}")), pid);
    }
    // The index leads to the pack of each tile.
    let packs = json("t/0/packs.json");
    let firsts = packs["tiles"][&finest.to_string()].as_array().expect("packs");
    let pack = firsts.iter().rfind(|first| first[0].as_u64() <= Some(index)).expect("a pack");
    let pack = std::fs::read(page.join(format!("t/0/packs/{}.bin", pack[1]))).expect("a pack");
    assert!(
        pack.len() < 400_000 && packed(&pack).iter().any(|(name, _)| *name == format!("machine/{finest}/{index}.bin"))
    );
    let again = schedviz(&["view", name, "--export", page_name]);
    assert!(again.code == Some(1) && again.stderr.contains("choose another name"), "{}", again.stderr);
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn an_index_is_kept_in_a_file_and_used_again() {
    let (trace, folder) = (fixture("hackbench.dat"), scratch("view-index"));
    let file = folder.join("index");
    let name = file.to_str().expect("a name");
    let page = |trace: &Path, page: &str| {
        let (page, trace) = (folder.join(page), trace.to_str().expect("a name"));
        schedviz(&["view", trace, "--index", name, "--export", page.to_str().expect("a name")])
    };
    let tile = |view: &View| {
        let head = view.head(0);
        let (level, top) = (&head["index"]["level"], &head["levels"][1]);
        [format!("{level}/0/3"), format!("{top}/0/0"), "8/0/70000".into()]
            .map(|place| view.get(&format!("t/0/lanes/{place}.bin")).body)
    };
    let first = View::with(&[&trace], &["--index", name]);
    let (head, tiles) = (first.head(0), tile(&first));
    let written = std::fs::read(&file).expect("the index");
    drop(first);
    let second = View::with(&[&trace], &["--index", name]);
    let again = second.head(0);
    assert!(tile(&second) == tiles && tiles.iter().all(|tile| tile.len() > 8));
    for key in ["tasks", "span", "levels", "index", "losses", "command"] {
        assert_eq!(again[key], head[key], "{key}");
    }
    for kind in ["episodes", "waits", "missed", "herds"] {
        assert!(!second.json(&format!("t/0/list.json?kind={kind}")).is_null());
    }
    drop(second);
    // The index of another trace, and a damaged one, are made anew, with a reason.
    let other = page(&fixture("hackbench-v6.dat"), "other").success();
    assert!(other.stderr.contains("another trace") && other.stderr.contains("made anew"), "{}", other.stderr);
    let mut damaged = written.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 4;
    std::fs::write(&file, &damaged).expect("written");
    let mended = page(&trace, "mended").success();
    assert!(mended.stderr.contains("damaged"), "{}", mended.stderr);
    assert!(std::fs::read(&file).expect("the index") == written, "it is as it was");
    // Another file is never replaced, and a trace least of all.
    std::fs::write(&file, "a letter").expect("written");
    let refused = page(&trace, "refused");
    assert!(refused.code == Some(1) && refused.stderr.contains("is no index"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&file).expect("the letter"), b"a letter");
    let trace_name = trace.to_str().expect("a name");
    let refused = schedviz(&["view", trace_name, "--index", trace_name, "--no-open"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("is an input"), "{}", refused.stderr);
    let refused = schedviz(&["view", trace_name, trace_name, "--index", name, "--no-open"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("one trace"), "{}", refused.stderr);
    let _ = std::fs::remove_dir_all(folder);
}
