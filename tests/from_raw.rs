//! The kernel's buffers as they are, in a folder or an archive: the pages of a recording give what the recording gives.

use crate::cut::{difference, outcome};
use crate::support::{events, fixture, schedviz_in, scratch};
use parse::{Options, Source, Trace};
use serde_json::Value;
use std::path::{Path, PathBuf};
use testkit::{ByteOrder, Simulation, TraceBuilder, tar};

/// The files of a recording, by their names below a folder.
type Files = Vec<(String, Vec<u8>)>;

/// Those that a copy of tracefs has, and those of the collector of google/schedviz.
fn layouts(formats: &[(String, String, Vec<u8>)], page: &[u8], cpus: &[(u32, Vec<u8>)]) -> [Files; 2] {
    let mut tracefs: Files =
        vec![("t/events/header_page".into(), page.into()), ("t/trace_clock".into(), b"[local] global\n".into())];
    let mut collector: Files = vec![
        ("formats/header_page".into(), page.into()),
        ("metadata.textproto".into(), b"trace_type: FTRACE\n".into()),
    ];
    for (system, name, text) in formats {
        tracefs.push((format!("t/events/{system}/{name}/format"), text.clone()));
        collector.push((format!("formats/{system}/{name}/format"), text.clone()));
    }
    for (cpu, pages) in cpus {
        tracefs.push((format!("t/per_cpu/cpu{cpu}/trace_pipe_raw"), pages.clone()));
        collector.push((format!("traces/cpu{cpu}"), pages.clone()));
    }
    [tracefs, collector]
}

fn put(folder: &Path, name: &str, files: &Files) -> PathBuf {
    for (file, bytes) in files {
        let path = folder.join(name).join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    folder.join(name)
}

/// The name in the text of a format.
fn name_of(text: &str) -> String {
    text.lines().find_map(|line| line.strip_prefix("name:")).expect("a name").trim().to_owned()
}

/// Of machines of each byte order and word size, with losses: the events are those of the trace.dat with the same pages.
#[test]
fn pages_in_a_folder_or_an_archive_are_those_of_a_recording() {
    let folder = scratch("raw");
    let simulated = Simulation::run(7, 3, 2000).lossy(5).0;
    for (nth, (order, long)) in
        [(ByteOrder::Little, 8), (ByteOrder::Big, 8), (ByteOrder::Little, 4), (ByteOrder::Big, 4)]
            .into_iter()
            .enumerate()
    {
        let builder = TraceBuilder { order, kernel_long: long, ..TraceBuilder::default() };
        let formats: Vec<_> =
            builder.layout().formats().into_iter().map(|(s, t)| (s, name_of(&t), t.into_bytes())).collect();
        let cpus: Vec<_> = builder.rings(&simulated).into_iter().map(|(cpu, pages)| (cpu, pages.concat())).collect();
        let page = builder.header_page();
        let whole = Trace::from_bytes(builder.events(&simulated).build(), Options::default()).expect("a trace");
        let expected = events(&whole);
        assert!(expected.len() > 1000);
        for (files, layout) in layouts(&formats, page.as_bytes(), &cpus).iter().zip(["tracefs", "collector"]) {
            let from_folder = put(&folder, &format!("{layout}-{nth}"), files);
            let trace = recordings::open(&from_folder, Options::default()).expect("a folder");
            assert!(events(&trace) == expected, "{layout} {order:?} {long}");
            let archive = Source::Memory(zstd::bulk::compress(&tar(files), 1).expect("memory"));
            let trace = recordings::of_source(archive, Options::default()).expect("an archive");
            assert!(events(&trace) == expected, "{layout} {order:?} {long}: tar");
            assert_eq!(trace.info().cpus, 3);
        }
    }
}

/// A part of a trace.dat of version 6 at this place, behind its size.
fn text_at(dat: &[u8], tag: &[u8]) -> Vec<u8> {
    let at = dat.windows(tag.len()).position(|part| part == tag).expect("the part") + tag.len();
    let size = u64::from_le_bytes(*dat[at..].first_chunk().expect("a size")) as usize;
    dat[at + 8..at + 8 + size].to_vec()
}

/// The pages of a real recording: reports about them are those about the recording.
#[test]
fn reports_about_the_pages_of_a_recording_are_those_about_it() {
    let folder = scratch("raw-real");
    let dat = std::fs::read(fixture("hackbench-v6.dat")).expect("a fixture");
    let trace = Trace::from_bytes(dat.clone(), Options::default()).expect("a trace");
    let formats: Vec<_> = trace
        .texts()
        .formats
        .into_iter()
        .map(|(system, text)| {
            let name = name_of(&String::from_utf8_lossy(&text));
            (system, name, text)
        })
        .collect();
    let tag = b"flyrecord\0";
    let table = dat.windows(tag.len()).position(|part| part == tag).expect("a table") + tag.len();
    let number = |at: usize| u64::from_le_bytes(*dat[at..].first_chunk().expect("a number")) as usize;
    let pages = |cpu: u32| {
        let row = table + 16 * cpu as usize;
        dat[number(row)..number(row) + number(row + 8)].to_vec()
    };
    let cpus: Vec<_> = (0..trace.info().cpus).map(|cpu| (cpu, pages(cpu))).collect();
    let page = text_at(&dat, b"header_page\0");
    let [tracefs, _] = layouts(&formats, &page, &cpus);
    put(&folder, "raw", &tracefs);
    schedviz_in(&folder, &["convert", "raw", "-o", "raw.dat", "-q"]).success();
    let of = |path: &Path, command: &str| -> Value {
        let mut document = outcome(&folder, path, &[command], &[]).expect("a document");
        let object = document.as_object_mut().expect("an object");
        ["trace", "trust", "kernel", "clock", "machine", "sched_ext"].iter().for_each(|key| drop(object.remove(*key)));
        document
    };
    for command in ["latency", "utilization"] {
        for path in ["raw", "raw.dat"] {
            let told = difference("", &of(&fixture("hackbench-v6.dat"), command), &of(&folder.join(path), command));
            assert_eq!(told, None, "{command} {path}");
        }
    }
    let info = schedviz_in(&folder, &["info", "raw", "-q"]).success().text();
    assert!(info.contains("raw buffers of the kernel") && info.contains("\nkernel     unknown\n"), "{info}");
}

/// Any part of an archive, and folders of other things, are read as far as they go, or refused.
#[test]
fn damaged_archives_and_other_folders_end_no_program() {
    let folder = scratch("raw-hostile");
    let simulated = Simulation::run(3, 2, 150).events;
    let builder = TraceBuilder::default();
    let formats: Vec<_> =
        builder.layout().formats().into_iter().map(|(s, t)| (s, name_of(&t), t.into_bytes())).collect();
    let cpus: Vec<_> = builder.rings(&simulated).into_iter().map(|(cpu, pages)| (cpu, pages.concat())).collect();
    let [files, _] = layouts(&formats, builder.header_page().as_bytes(), &cpus);
    let whole = tar(&files);
    for end in (0..whole.len()).step_by(1009) {
        let _ = recordings::of_source(Source::Memory(whole[..end].to_vec()), Options::default());
        let mut other = whole.clone();
        other[end] ^= 0xff;
        if let Ok(trace) = recordings::of_source(Source::Memory(other), Options::default()) {
            trace.records(&mut |_| std::ops::ControlFlow::Continue(()));
        }
    }
    // The number of a CPU that no machine has, a page of no size, formats without pages.
    let with = |name: &str, bytes: &[u8]| tar(&[files.clone(), vec![(name.to_owned(), bytes.to_vec())]].concat());
    let far = with("t/per_cpu/cpu4294967295/trace_pipe_raw", &[1; 4096]);
    let trace = recordings::of_source(Source::Memory(far), Options::default()).expect("a trace");
    assert_eq!(trace.info().cpus, 2);
    let page = with("t/events/header_page", b"\tfield: char data;\toffset:0;\tsize:0;\tsigned:1;\n");
    let _ = recordings::of_source(Source::Memory(page), Options::default());
    let alone: Files = files.iter().filter(|(name, _)| !name.ends_with("_raw")).cloned().collect();
    put(&folder, "formats", &alone);
    assert!(recordings::open(&folder.join("formats"), Options::default()).is_err());
    let why = recordings::of_source(Source::Memory(tar(&alone)), Options::default()).map(drop).expect_err("no pages");
    assert!(why.to_string().contains("tar archive"), "{why}");
}
