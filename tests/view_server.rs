//! The server of `schedviz view`: connections of other programs, its address, and traces that change.

use crate::support::{fixture, program, scratch, stand_in};
use crate::view::View;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn silent_connections_lock_no_browser_out() {
    let view = View::of(&[&fixture("hackbench-v6.dat")]);
    let connect = || TcpStream::connect(("127.0.0.1", view.port)).expect("connected");
    let silent: Vec<TcpStream> = (0..150).map(|_| connect()).collect();
    assert_eq!(view.get("index.html").status, 200);
    let more: Vec<TcpStream> = (0..150).map(|_| connect()).collect();
    assert_eq!(view.get("traces.json").status, 200);
    drop((silent, more));
}

#[test]
fn headers_that_are_read_in_two_ways_are_refused() {
    let view = View::of(&[&fixture("hackbench-v6.dat")]);
    let View { port, token, .. } = &view;
    let status = |headers: &str| view.send(&format!("GET /{token}/index.html HTTP/1.1\r\n{headers}\r\n\r\n")).status;
    let host = format!("Host: 127.0.0.1:{port}");
    assert_eq!(status(&format!("{host}\r\nConnection: close")), 200);
    assert_eq!(status(&format!("Host : 127.0.0.1:{port}")), 400);
    assert_eq!(status(&format!("{host}\r\n{host}")), 400);
    assert_eq!(status(&format!("{host}\r\nOrigin : http://elsewhere")), 400);
}

/// Reading a trace that has become shorter misses events: its numbers are refused, not zero.
#[test]
fn numbers_of_a_trace_that_has_shrunk_are_refused() {
    let folder = scratch("shrunk");
    let path = folder.join("a.dat");
    std::fs::copy(fixture("hackbench-v6.dat"), &path).expect("copied");
    let view = View::of(&[&path]);
    let head = view.head(0);
    let size = path.metadata().expect("there").len();
    let file = std::fs::File::options().write(true).open(&path).expect("opened");
    file.set_len(size / 2).expect("cut");
    for place in ["t/0/head.json", "t/0/list/waits.json", "t/0/at.json?at=500000000", "t/0/lanes/64/0/0.bin"] {
        let answer = view.get(place);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status != 200 && (answer.status == 404 || text.contains("shorter")), "{place}: {text}");
    }
    assert_eq!(view.get("t/0/head.json").status, 410);
    assert_eq!(view.get("index.html").status, 200);
    // Later additions are not seen: the trace is as it was.
    std::fs::copy(fixture("hackbench-v6.dat"), &path).expect("copied");
    file.set_len(size + 10).expect("longer");
    assert_eq!(view.json("t/0/head.json"), head);
    drop(view);
}

/// Every user of a machine can read the arguments of a program: the address with the token is in no one's.
#[cfg(target_os = "linux")]
#[test]
fn the_token_is_in_no_arguments() {
    let folder = scratch("redirect");
    let (pages, words) = (folder.join("pages"), folder.join("words"));
    std::fs::create_dir(&pages).expect("created");
    let script = format!(
        "stat -c %a \"$1\" > '{0}/mode'; cp \"$1\" '{0}/page'; printf %s \"$*\" > '{0}/words.part'; mv '{0}/words.part' '{0}/words'",
        folder.display()
    );
    stand_in(&folder.join("xdg-open"), &script);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut view = Command::new(program());
    view.arg("view").arg(fixture("affine.dat")).env("PATH", path).env("TMPDIR", &pages);
    let mut view = view.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("schedviz");
    let mut url = String::new();
    BufReader::new(view.stdout.as_mut().expect("a pipe")).read_line(&mut url).expect("an address");
    let begin = Instant::now();
    while !words.is_file() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let token = url.trim().split('/').nth(3).expect("a token");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("written");
    let named = read("words");
    assert!(token.len() == 32 && !named.contains(token) && named.ends_with(".html"), "{named}");
    assert_eq!(read("mode"), "600\n");
    assert!(read("page").contains(&format!("content=\"0; url={}\"", url.trim())), "{}", read("page"));
    // The page goes with the server.
    let kill = Command::new("kill").args(["-INT", &view.id().to_string()]).status();
    assert!(kill.expect("kill").success() && view.wait().expect("ended").success());
    assert_eq!(std::fs::read_dir(&pages).expect("a folder").count(), 0);
}

/// A trace with the part of a page's address from # on opens that view; a file whose name has the sign is a trace.
#[test]
fn a_trace_can_have_the_view_behind_it() {
    let folder = scratch("view-hash");
    let path = folder.join("a#b.dat");
    std::fs::copy(fixture("affine.dat"), &path).expect("copied");
    let printed = |argument: &str| {
        let mut view = Command::new(program());
        let mut view = view
            .args(["view", "--no-open", argument])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("schedviz");
        let (mut url, mut error) = (String::new(), String::new());
        BufReader::new(view.stdout.as_mut().expect("a pipe")).read_line(&mut url).expect("a line");
        if url.is_empty() {
            BufReader::new(view.stderr.as_mut().expect("a pipe")).read_line(&mut error).expect("a line");
        }
        let _ = view.kill();
        let _ = view.wait();
        url + &error
    };
    let named = |behind: &str| format!("{}{behind}", path.display());
    assert!(printed(&named("")).ends_with("/index.html\n"));
    let view = "#w=100,200&h=0,5&q=command%3A%3Dmake";
    assert!(printed(&named(view)).ends_with(&format!("/index.html{view}\n")));
    assert!(printed(&named("#\"><script>")).contains("none of a page's address"));
    std::fs::remove_dir_all(&folder).expect("removed");
}
