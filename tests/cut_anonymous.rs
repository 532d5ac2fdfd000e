//! An anonymous part has no text of the whole but those that are allowed: the kernel's own.

use crate::cut::{cut, readable};
use crate::support::{fixture, schedviz_in, scratch};
use parse::{FieldShape, Options, Trace};
use sched::Comm;
use sched::kthread::is_kernel_thread;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

/// The printable texts of at least this length, which begin and end with a letter or a digit.
fn texts(bytes: &[u8]) -> BTreeSet<Vec<u8>> {
    let runs = bytes.split(|byte| !byte.is_ascii_graphic()).map(|run| {
        let is_inner = |byte: &u8| !byte.is_ascii_alphanumeric();
        let start = run.iter().take_while(|byte| is_inner(byte)).count();
        let end = run.iter().rev().take_while(|byte| is_inner(byte)).count();
        run.get(start..run.len().saturating_sub(end)).unwrap_or_default().to_vec()
    });
    runs.filter(|run| run.len() >= 4).collect()
}

/// The texts in the events of a trace: all of their bytes that are not numbers by the format, words of the machine
/// included.
fn texts_of_events(path: &Path) -> BTreeSet<Vec<u8>> {
    let trace = Trace::open(path, Options::default()).expect("a recording");
    let mut found = BTreeSet::new();
    trace.records(&mut |record| {
        let mut payload = record.payload().to_vec();
        let Some(format) = record.format() else { return ControlFlow::Continue(()) };
        for field in &format.fields {
            let place = match field.shape {
                FieldShape::Scalar | FieldShape::Pointer => field.offset..field.offset + field.size,
                // Addresses of a stack and registers.
                FieldShape::Array { element: 8 } if field.kind.contains("long") => {
                    field.offset..field.offset + field.size
                }
                FieldShape::Tail { element: 8 } if field.kind.contains("long") => field.offset..payload.len(),
                // The word that points to the bytes.
                FieldShape::Dynamic { .. } => field.offset..field.offset + field.size,
                _ => continue,
            };
            let end = place.end.min(payload.len());
            payload[place.start.min(end)..end].fill(0);
        }
        found.extend(texts(&payload));
        ControlFlow::Continue(())
    });
    found
}

/// Whether a text may leave: a name that the kernel gives one of its threads, or that of a recorder.
fn is_allowed(text: &[u8]) -> bool {
    let is_number = |number: &[u8]| !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let only_x = text.iter().all(|byte| *byte == b'x');
    only_x
        || text.strip_prefix(b"swapper/").is_some_and(is_number)
        || (text.len() <= 15 && is_kernel_thread(Comm::new(text)))
        || [&b"trace-cmd"[..], b"schedviz", b"idle", b"NUMA"].contains(&text)
}

/// Takes seconds: every byte of a part is looked at for every text of the whole, in files of every kind.
#[test]
fn no_text_of_the_whole_is_in_an_anonymous_part() {
    let folder = scratch("cut-texts");
    let mut looked_for = 0;
    for name in [
        "every-7.2.dat",
        "hackbench-v6.dat",
        "instance.dat",
        "marker.dat",
        "marker-pairs.dat",
        "marker-before-5.5.dat",
        "fgraph-newidle.dat",
        "s390x-6.1.dat",
        "armhf-6.1.dat",
        "attempts-6.12.dat",
        "mask.dat",
        "throttled-6.12.dat",
    ] {
        let path = fixture(name);
        let part = cut(&folder, &path, "part.dat", &["--anonymize".to_owned()]);
        // A part without events has the texts of the kernel alone.
        let none = ["--anonymize", "--min", "0", "--max", "1ns"].map(str::to_owned);
        let kernel = texts(&readable(&std::fs::read(cut(&folder, &path, "none.dat", &none)).expect("read")));
        let part = texts(&readable(&std::fs::read(part).expect("read")));
        let left: Vec<&Vec<u8>> = part.iter().filter(|text| !kernel.contains(*text)).collect();
        let all = left.iter().flat_map(|text| text.iter().copied().chain([0])).collect::<Vec<u8>>();
        let whole = texts_of_events(&path);
        looked_for += whole.len();
        for text in whole.iter().filter(|text| !is_allowed(text)) {
            let is_there = all.windows(text.len()).any(|window| window == text.as_slice());
            assert!(!is_there, "{:?} of {name} is in the part", String::from_utf8_lossy(text));
        }
        if name == "every-7.2.dat" {
            // Names of files, in bytes of the type `unsigned char`.
            let has = |name: &[u8]| whole.iter().any(|text| text.windows(name.len()).any(|window| window == name));
            assert!(has(b"five.dat.cpu"), "the whole has names of files");
        }
    }
    assert!(looked_for > 300, "{looked_for} texts");
}

/// The names of buffers, the version of the recorder and the host are texts of the user as well.
#[test]
fn options_of_an_anonymous_part_have_known_words_alone() {
    let folder = scratch("cut-options");
    for (name, secrets) in [("instance.dat", &["extra"][..]), ("hackbench.dat", &[])] {
        let path = fixture(name);
        let trace = Trace::open(&path, Options::default()).expect("a recording");
        let info = trace.info();
        let uname = info.uname.clone().unwrap_or_default();
        let host = uname.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let buffers: Vec<String> = info.buffers.iter().map(|buffer| buffer.name.to_string()).collect();
        let part = cut(&folder, &path, "part.dat", &["--anonymize".to_owned()]);
        let bytes = readable(&std::fs::read(&part).expect("read"));
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        for secret in buffers.iter().map(String::as_str).chain([host.as_str()]).filter(|text| text.len() > 3) {
            assert!(!has(secret), "{secret} is in the part of {name}");
        }
        assert!(secrets.is_empty() || buffers.len() > 1, "{name} has an instance: {buffers:?}");
        let info = schedviz_in(&folder, &["info", "part.dat", "--json"]).success().text();
        let release = uname.split_whitespace().rev().nth(1).unwrap_or_default();
        assert!(
            has(&format!("Linux host {release} ")) && info.contains(&format!("\"kernel\": \"{release}\"")),
            "{info}"
        );
        assert!(info.contains("\"recorder\": \"3.1.6\"") && !has("not-a-git-repo"), "{info}");
        if buffers.len() > 1 {
            assert!(info.contains("\"buffer1\""), "{info}");
            // A buffer is chosen by the name that it has in the part.
            let chosen = schedviz_in(&folder, &["info", "part.dat", "-q", "--buffer", "buffer1"]);
            assert!(chosen.code == Some(0), "{}", chosen.stderr);
        }
        let listed = std::process::Command::new("trace-cmd").args(["report", "-i"]).arg(&part).output();
        if let Ok(listed) = listed {
            let count = String::from_utf8_lossy(&listed.stdout).lines().count();
            assert!(
                listed.status.success() && count > 100,
                "{count} lines: {}",
                String::from_utf8_lossy(&listed.stderr)
            );
        }
    }
}
