//! The texts of events by their own print formats: the kernel's calls and conversions, each on a record made for it.

use crate::support::{schedviz, scratch};
use testkit::{Buffer, TraceBuilder};

/// The fields of all formats here, which follow the common ones.
const FIELDS: &str = "\
\tfield:unsigned int bits;\toffset:8;\tsize:4;\tsigned:0;
\tfield:__data_loc u8[] data;\toffset:12;\tsize:4;\tsigned:0;
\tfield:__data_loc unsigned long[] mask;\toffset:16;\tsize:4;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;
\tfield:u64 ns;\toffset:24;\tsize:8;\tsigned:0;
\tfield:const char * words;\toffset:32;\tsize:8;\tsigned:0;
\tfield:const char * nowhere;\toffset:40;\tsize:8;\tsigned:0;
\tfield:__u8 v6[16];\toffset:48;\tsize:16;\tsigned:0;
\tfield:__u8 socket[28];\toffset:64;\tsize:28;\tsigned:0;
\tfield:__be32 v4;\toffset:92;\tsize:4;\tsigned:0;
\tfield:unsigned char mac[6];\toffset:96;\tsize:6;\tsigned:0;
";

/// Print formats, each with the text of the record by it.
const PRINTED: [(&str, &str); 20] = [
    (r#""bits=%u\n", REC->bits"#, "bits=6"),
    (r#""%s", __print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))"#, "de ad be ef 00"),
    (r#""%s", __print_hex_str(__get_dynamic_array(data), 2)"#, "dead"),
    (r#""[%*phD]", (int) 3, __get_dynamic_array(data)"#, "[de-ad-be]"),
    (
        r#""%s", __print_array(__get_dynamic_array(mask), __get_dynamic_array_len(mask) / sizeof(unsigned long), sizeof(u64))"#,
        "{0x3a,0x8000000000000001}",
    ),
    (r#""%s", __print_dynamic_array(data, 1)"#, "{0xde,0xad,0xbe,0xef,0x0}"),
    (r#""%s", __print_dynamic_array(name, 1)"#, r#""eth\x1b0""#),
    (r#""cpumask=%s", __get_cpumask(mask)"#, "cpumask=1,3-5,64,127"),
    (r#""cpumask=%s", __get_bitmask(mask)"#, "cpumask=80000000,00000001,00000000,0000003a"),
    (r#""%llu.%09u", __print_ns_to_secs(REC->ns), __print_ns_without_secs(REC->ns)"#, "7.000000042"),
    (r#""%s|%s", REC->words, REC->nowhere"#, "Start scheduler-tick|0xdead"),
    (r#""%p %px %pK", REC->nowhere, REC->words, (void *)0"#, "0xdead 0xff10 (nil)"),
    (r#""%pM %pI4 %pI6c", REC->mac, &REC->v4, REC->v6"#, "00:1b:21:ff:00:09 127.0.0.1 ::ffff:127.0.0.1"),
    (r#""src=%pISpc", REC->socket"#, "src=[::1]:5000"),
    (r#""pid=%d %s", REC->ent.pid, __builtin_expect(!!(REC->bits), 0) ? "set" : "clear""#, "pid=7 set"),
    (
        r#""%s", REC->bits ? __print_flags(REC->bits, "|", {( unsigned long)(( gfp_t)((((1UL))) << (1))), "A"}, {LEFT, "B"}, { 0, ((void *)0) } ) : "none""#,
        "A|0x4",
    ),
    (r#""page=%p pfn=0x%x", (((struct page *)vmemmap_base) + (REC->bits)), REC->bits"#, "page=? pfn=0x6"),
    (r#""[%c%c]", REC->bits & 4 ? 'F' : ' ', __get_str(name)[0]"#, "[Fe]"),
    (r#""age=%lu of %lu", (jiffies - REC->ns) / 250, REC->ns"#, "age=? of 7000000042"),
    (
        r#""%s", unheard_of(REC->bits)"#,
        "bits=6 data=[de ad be ef 00] mask=[3a 00 00 00 00 00 00 00 01 00 00 00 00 00 00 80] name=eth\\x1b0 ns=7000000042 \
         words=0xff10 nowhere=0xdead v6=[00 00 00 00 00 00 00 00 00 00 ff ff 7f 00 00 01] \
         socket=[0a 00 13 88 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00] v4=16777343 \
         mac=[00 1b 21 ff 00 09]",
    ),
];

/// Returns the bytes of a record; `common` are those of the common fields.
fn payload(common: Vec<u8>) -> Vec<u8> {
    let mut bytes = common;
    let mask: Vec<u8> = [0x3a, 0x8000_0000_0000_0001_u64].iter().flat_map(|long| long.to_le_bytes()).collect();
    let dynamic: [(u32, &[u8]); 3] = [(104, b"\xde\xad\xbe\xef\0"), (112, &mask), (128, b"eth\x1b0\0")];
    bytes.extend(6u32.to_le_bytes());
    dynamic.iter().for_each(|(at, what)| bytes.extend(((what.len() as u32) << 16 | at).to_le_bytes()));
    [7_000_000_042u64, 0xff10, 0xdead].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1]);
    bytes.extend([10, 0, 0x13, 0x88, 0, 0, 0, 0]);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    bytes.extend([127, 0, 0, 1, 0, 0x1b, 0x21, 0xff, 0, 9, 0, 0]);
    for (at, what) in dynamic {
        bytes.resize(at as usize, 0);
        bytes.extend(what);
    }
    bytes
}

#[test]
fn the_kernels_calls_are_followed() {
    let mut trace = TraceBuilder { printk: "0xff10 : \"Start scheduler-tick\"\n".into(), ..TraceBuilder::default() };
    let layout = trace.layout();
    let mut ring = trace.ring();
    for (nth, (print_fmt, _)) in (0u16..).zip(PRINTED) {
        let format = layout.format(500 + nth, &format!("event_{nth}"), FIELDS);
        trace.formats.push(("made".into(), format.replace("print fmt: \"\"", &format!("print fmt: {print_fmt}"))));
        ring.event(1_000 * u64::from(nth + 1), &payload(layout.bare(500 + nth, 7)));
    }
    trace.buffers =
        vec![Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus: vec![(0, ring.finish())] }];
    let list = listed("words", &trace);
    let printed: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_once(": event_")?.1.split_once(':'))
        .map(|(_, text)| text.trim_start())
        .collect();
    assert_eq!(printed, PRINTED.map(|(_, text)| text));
}

#[test]
fn lines_have_the_form_of_the_report() {
    let mut trace = TraceBuilder::default();
    let layout = trace.layout();
    let mut ring = trace.ring();
    let field = |declaration: &str| format!("\tfield:{declaration};\tsigned:0;\n");
    let raw = field("unsigned int id;\toffset:8;\tsize:4") + &field("char buf[];\toffset:12;\tsize:0");
    trace.formats.push(("ftrace".into(), layout.format(19, "raw_data", &raw)));
    // The machine has been up for an hour, then for a month.
    for seconds in [3_600, 2_592_000] {
        ring.event(seconds * 1_000_000_000 + 42, &[layout.bare(19, 7), b"\x05\0\0\0ab\0\x07".to_vec()].concat());
    }
    trace.buffers =
        vec![Buffer { name: String::new(), clock: "mono".into(), page_size: 0, cpus: vec![(3, ring.finish())] }];
    let list = listed("words-lines", &trace);
    assert_eq!(
        list,
        "           <...>-7     [003]  3600.000000042: raw_data:             # 5 61 62 00 07\n           <...>-7     [003] 2592000.000000042: raw_data:             # 5 61 62 00 07\n"
    );
}

/// Returns the list of the events of a trace.
fn listed(name: &str, trace: &TraceBuilder) -> String {
    let folder = scratch(name);
    let file = folder.join("words.dat");
    std::fs::write(&file, trace.build()).expect("written");
    schedviz(&["events", "--list", "-q", file.to_str().expect("a path")]).success().text()
}
