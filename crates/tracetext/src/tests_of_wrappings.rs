//! Texts in JSON and pages of trace viewers, whole, cut and damaged.

use crate::tests::{events, read};
use crate::wrapped::{PIECE, Wrapping, json};
use crate::{fuzz, is_text, open, wrapped};
use parse::{FileIssue, Options, Source};
use sched::EventKind;
use std::io::{BufReader, Write};
use std::ops::ControlFlow;
use testkit::{gzip, viewer_json, viewer_page};

/// A text with this many events, whose tasks have odd names.
fn printed(events: u32) -> String {
    let line = |nth: u32| {
        format!(
            "\t<a \"b\\> ü\"-1  [001] d..2. 5.{nth:09}: sched_waking: comm=\"{{</c\\n pid={nth} prio=120 target_cpu=001\n"
        )
    };
    format!("# tracer: nop\n#   #P:4\n{}", (1..=events).map(line).collect::<String>())
}

/// The text that a file has, and whether it is whole.
fn text_of(file: &[u8]) -> (Vec<u8>, wrapped::Reading) {
    let mut text = Vec::new();
    let reading = wrapped::text(&Source::Memory(file.to_vec()), &mut |piece| {
        text.extend_from_slice(piece);
        ControlFlow::Continue(())
    });
    (text, reading)
}

fn is(file: &[u8]) -> bool {
    is_text(&Source::Memory(file.to_vec()))
}

#[test]
fn json_of_a_viewer_has_the_events_of_its_text() {
    let text = printed(2000);
    let json = viewer_json(&text);
    assert!(json.len() > 2 * PIECE, "more than one piece: {}", json.len());
    assert_eq!(
        text_of(json.as_bytes()),
        (text.clone().into_bytes(), wrapped::Reading { wrapping: Wrapping::Json, is_cut: false })
    );
    let (wrapped, plain) = (read(&json), read(&text));
    assert_eq!(events(&wrapped), events(&plain));
    assert_eq!((wrapped.origin().unwrap().format, wrapped.info().cpus), ("JSON of a trace viewer", 4));
    // Before the other events, with spaces, and behind a mark of the byte order.
    let spaced = "\u{feff} {\n \"systemTraceEvents\" : \"";
    let first = json.split_once("\"systemTraceEvents\":\"#").unwrap().1;
    assert_eq!(text_of(format!("{spaced}#{first}").as_bytes()).0, text.as_bytes());
}

#[test]
fn json_without_a_printed_trace_is_none() {
    let line = printed(1).replace('\n', "\\n").replace(['"', '\\', '\t'], "");
    assert!(is(format!("{{\"systemTraceEvents\":\"{line}\"}}").as_bytes()));
    for other in [
        "{\"traceEvents\":[]}",
        "{\"systemTraceEvents\":{\"type\":\"fuchsia\",\"events\":[]}}",
        "{\"systemTraceEvents\":\"SystemTraceData\"}",
        "{\"systemTraceEvents\":null,\"other\":\"LINE\"}",
        "{\"other\":{\"systemTraceEvents\":\"LINE\"}}",
        "{\"other\":\"systemTraceEvents\",\"more\":\"LINE\"}",
        "{\"systemTraceEvents2\":\"LINE\"}",
        "{\"systemTraceEvent\":\"LINE\"}",
        "{\"a\":1}{\"systemTraceEvents\":\"LINE\"}",
    ] {
        assert!(!is(other.replace("LINE", &line).as_bytes()), "{other}");
    }
}

/// Whatever the pieces in which a document comes, and where it is cut.
#[test]
fn strings_are_read_in_pieces_of_any_length() {
    let json = "{\"a\": [{\"b\\\"\": \"\\\\\"}, {}], \"systemTraceEvents\": \"ä\\u00e9\\uD83D\\uDE00\\ud83dx\\udE00\\/\\n\\r\\b\\f\\q\", \"c\": 1}";
    let expected = "äé😀\u{fffd}x\u{fffd}/\n\r\u{8}\u{c}q";
    for size in 1..20 {
        let mut text = Vec::new();
        let mut input = BufReader::with_capacity(size, json.as_bytes());
        let read = json::text(&mut input, &mut |piece| {
            text.extend_from_slice(piece);
            ControlFlow::Continue(())
        });
        assert_eq!((read.unwrap(), String::from_utf8(text).unwrap().as_str()), (true, expected), "{size}");
    }
    let (from, to) = (json.find("ä").unwrap(), json.rfind("\", \"c\"").unwrap());
    for end in 0..json.len() {
        let is_cut = text_of(&json.as_bytes()[..end]).1.is_cut;
        assert_eq!(is_cut, (from..=to).contains(&end), "{end}");
    }
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn pages_of_trace2html_have_the_events_of_their_texts() {
    let text = printed(2000);
    let (json, other) = (gzip(viewer_json(&text).as_bytes()), gzip(b"{\"traceEvents\":[]}"));
    let (packed, others) = (gzip(text.as_bytes()), [gzip(b"[1]"), gzip(b"PROCESS DUMP\nroot 1 0\n")].concat());
    for sources in [
        vec![packed.clone()],
        vec![json.clone()],
        vec![zlib(text.as_bytes())],
        vec![gzip(&packed)],
        vec![text.trim_end().into()],
        vec![other.clone(), gzip(b"[1]"), json, gzip(b"PROCESS DUMP\nroot 1 0\n")],
    ] {
        let page = viewer_page(&sources);
        assert!(is(&page), "{:?}", text_of(&page));
        let trace = open(&Source::Memory(page), Options::default()).unwrap();
        assert_eq!(events(&trace), events(&read(&text)));
        let issues = [FileIssue::TruncatedData, FileIssue::UnreadLines].map(|issue| trace.diagnostics().count(issue));
        assert_eq!((trace.origin().unwrap().format, issues), ("page of trace2html", [0, 0]));
    }
    for sources in [vec![other], vec![others], vec![]] {
        assert!(!is(&viewer_page(&sources)));
    }
    // A source begins a line, and the events of all are read.
    let two = [text.trim_end(), &text.replace(" 5.", " 6.")].map(|text| gzip(text.as_bytes()));
    assert_eq!(
        text_of(&viewer_page(&two)).0.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(),
        4004
    );
}

/// The text before the damage is kept, and said to be a part; other sources of the page are whole.
#[test]
fn cut_and_damaged_pages_are_said_to_be_so() {
    let (text, other) = (printed(2000), printed(3));
    let page = viewer_page(&[gzip(text.as_bytes()), gzip(other.as_bytes())]);
    let middle = page.len() / 2;
    let cut = open(&Source::Memory(page[..middle].to_vec()), Options::default()).unwrap();
    let mut found = events(&cut);
    assert!(matches!(found.pop().unwrap().kind, EventKind::Lost { count: None }));
    assert!(found.len() > 500 && events(&read(&text)).starts_with(&found), "{}", found.len());
    assert_eq!(cut.diagnostics().count(FileIssue::TruncatedData), 1);
    for byte in [b'!', b'<', b'\n', b'A', 0xff] {
        let mut damaged = page.clone();
        damaged[middle] = byte;
        let (text, reading) = text_of(&damaged);
        assert!(reading.is_cut, "{byte}");
        assert!(String::from_utf8_lossy(&text).trim_end().ends_with(other.trim_end()), "{byte}");
    }
    for end in (0..page.len()).step_by(97) {
        let _ = fuzz(&page[..end]);
    }
}

/// Zeros become a thousandth, twice a millionth: no page takes memory or time for more than is left of its limit.
#[test]
fn what_pages_may_become_is_bounded() {
    let bomb = gzip(&gzip(&vec![b'\n'; 256 << 20]));
    let page = viewer_page(&[bomb.clone(), bomb]);
    let most = transcript::expanded_limit(page.len() as u64);
    let (mut length, source) = (0, Source::Memory(page));
    let reading = wrapped::text(&source, &mut |piece| {
        length += piece.len() as u64;
        ControlFlow::Continue(())
    });
    assert!(reading.is_cut && length <= most, "{length} of {most}");
    assert!(length > most / 2, "{length} of {most}");
}
