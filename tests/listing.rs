//! `events --list`: texts of early kernels, names, clocks, instances, and function graphs.

use crate::support::{fixture, schedviz, scratch};
use testkit::{Buffer, TraceBuilder};

/// The lines of `events --list` with these arguments.
fn list(file: &str, arguments: &[&str]) -> String {
    schedviz(&[&["events", "--list", "-q", file], arguments].concat()).success().text()
}

/// The list of a trace that a test builds.
fn list_of(name: &str, trace: &TraceBuilder, arguments: &[&str]) -> String {
    let folder = scratch(name);
    let file = folder.join("built.dat");
    std::fs::write(&file, trace.build()).expect("written");
    let lines = list(file.to_str().expect("a path"), arguments);
    std::fs::remove_dir_all(&folder).expect("removed");
    lines
}

/// A buffer with the data of one CPU.
fn buffer(name: &str, cpu: u32, pages: Vec<Vec<u8>>) -> Buffer {
    Buffer { name: name.into(), clock: "local".into(), page_size: 0, cpus: vec![(cpu, pages)] }
}

#[test]
fn markers_of_kernels_before_5_5_have_their_text() {
    let file = fixture("marker-before-5.5.dat");
    let lines = list(file.to_str().expect("a path"), &["--events", "ftrace:print"]);
    let texts: Vec<&str> = lines.lines().filter_map(|line| Some(line.split_once("0xffffffff8dd561a1: ")?.1)).collect();
    // The texts in the file's bytes (`strings`).
    assert_eq!(texts, [1, 2, 3].map(|cpu| format!("find_busiest_group: no imbalance cpu={cpu}")));
}

#[test]
fn printk_arguments_of_kernels_before_5_5_are_read() {
    let mut trace = TraceBuilder { printk: "0xff10 : \"moved %d of %s\\n\"\n".into(), ..TraceBuilder::default() };
    let field = |declaration: &str| format!("\tfield:{declaration};\tsigned:0;\n");
    let fields = field("unsigned long ip;\toffset:8;\tsize:8")
        + &field("const char * fmt;\toffset:16;\tsize:8")
        + &field("u32 buf;\toffset:24;\tsize:0");
    trace.formats.push(("ftrace".into(), trace.layout().format(6, "bprint", &fields)));
    let mut ring = trace.ring();
    let pointers = [0xdead_u64, 0xff10].iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
    ring.event(
        1_000,
        &[trace.layout().bare(6, 7), pointers, 3u32.to_le_bytes().into(), b"five\0\0\0\0".into()].concat(),
    );
    trace.buffers = vec![buffer("", 0, ring.finish())];
    let lines = list_of("listing-bprint", &trace, &[]);
    assert!(lines.ends_with("bprint:               0xdead: moved 3 of five\n"), "{lines}");
}
