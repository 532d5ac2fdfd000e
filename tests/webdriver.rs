//! A client of chromedriver: JSON over plain HTTP, as WebDriver defines it.

use crate::support::Scratch;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time after which a request or a condition of a test counts as failed: far beyond any load of the machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// An answer to a plain request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Sends a request to this machine and reads the whole answer. `headers` are lines that end in `\r\n`.
pub(crate) fn request(port: u16, method: &str, path: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: 127.0.0.1:{port}\r\n") };
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    read_answer(&mut stream)
}

/// Reads an answer up to the length that it declares: not every server closes the connection.
fn read_answer(stream: &mut TcpStream) -> std::io::Result<Answer> {
    let (mut bytes, mut part) = (Vec::new(), [0; 16_384]);
    loop {
        let head = bytes.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4);
        let text = String::from_utf8_lossy(&bytes[..head.unwrap_or(0)]).to_ascii_lowercase();
        let length = text.split("content-length:").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
        let complete = head.zip(length).is_some_and(|(head, length): (usize, usize)| bytes.len() >= head + length);
        let read = if complete { Ok(0) } else { stream.read(&mut part) };
        match read {
            Ok(0) => {}
            Ok(read) => {
                bytes.extend_from_slice(&part[..read]);
                continue;
            }
            // A signal of another test, or a machine that was stopped and went on.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        return Ok(Answer { status: status.ok_or_else(invalid)?, body: bytes.split_off(head.ok_or_else(invalid)?) });
    }
}

/// A page in a browser without a window; both end with this value.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: Scratch,
}

impl Browser {
    /// Starts a browser, if `SCHEDVIZ_REQUIRE_BROWSER` asks for one, as `.ci/run` does: its tours take minutes.
    pub(crate) fn start(name: &str) -> Option<Browser> {
        if std::env::var_os("SCHEDVIZ_REQUIRE_BROWSER").is_none() {
            eprintln!("the page is not tested in a browser: SCHEDVIZ_REQUIRE_BROWSER=1 asks for that");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let driver = driver.unwrap_or_else(|error| panic!("chromedriver: {error}"));
        let profile = crate::support::scratch(&format!("browser-{name}"));
        let mut browser = Browser { driver, port, session: String::new(), profile };
        wait("chromedriver", || request(port, "GET", "/status", "", "").is_ok_and(|answer| answer.status == 200));
        let options = json!({ "args": [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,900",
            "--force-device-scale-factor=1", "--disable-background-networking", "--no-first-run",
            format!("--user-data-dir={}", browser.profile.display()),
        ] });
        let wanted = json!({ "goog:loggingPrefs": { "browser": "ALL" }, "goog:chromeOptions": options });
        let session = browser.command("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = format!("/session/{}", session["sessionId"].as_str().expect("a session"));
        Some(browser)
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let json = "Content-Type: application/json\r\n";
        let answer = request(self.port, method, path, json, &body).expect("an answer of chromedriver");
        let mut value: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(answer.status, 200, "{path}: {value}");
        value["value"].take()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.command("POST", &format!("{}{path}", self.session), body)
    }

    /// Opens an address.
    pub(crate) fn open(&self, address: &str) {
        self.post("/url", &json!({ "url": address }));
    }

    /// Runs a script that returns a value.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until the script returns true.
    pub(crate) fn wait_for(&self, script: &str) {
        wait(script, || self.run(&format!("return Boolean({script})")) == json!(true));
    }

    /// Presses and releases keys one after another.
    pub(crate) fn keys(&self, keys: &str) {
        let presses: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() })))
            .collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": presses }] }));
    }

    /// Presses the mouse at the first of these points, moves it to the others, and releases it.
    pub(crate) fn drag(&self, points: &[(i64, i64)]) {
        let mut steps = Vec::new();
        for (n, (x, y)) in points.iter().enumerate() {
            steps.push(json!({ "type": "pointerMove", "x": x, "y": y, "duration": 20 }));
            if n == 0 {
                steps.push(json!({ "type": "pointerDown", "button": 0 }));
            }
        }
        steps.push(json!({ "type": "pointerUp", "button": 0 }));
        let mouse =
            json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": steps });
        self.post("/actions", &json!({ "actions": [mouse] }));
    }

    /// Turns the wheel at a point.
    pub(crate) fn wheel(&self, (x, y): (i64, i64), amount: i64) {
        let turn = json!({ "type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": amount, "duration": 0 });
        self.post("/actions", &json!({ "actions": [{ "type": "wheel", "id": "wheel", "actions": [turn] }] }));
    }

    /// Returns the messages of the console since the last call.
    pub(crate) fn console(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({ "type": "browser" }));
        log.as_array().expect("a list").iter().map(|entry| entry["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = request(self.port, "DELETE", &self.session, "", "");
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Waits for a condition; fails if it does not come true in time.
pub(crate) fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    // Most conditions hold at once; the pause doubles for those that take long.
    let mut pause = Duration::from_millis(2);
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what} did not come about in {PATIENCE:?}");
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
