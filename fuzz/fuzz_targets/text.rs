//! The texts that users provide beside a trace: /proc/schedstat, topologies, lists of CPUs, times.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    // A line with `====` separates two snapshots.
    let (before, after) = text.split_once("====").unwrap_or((&text, &text));
    if let (Ok(before), Ok(after)) = (schedstat::Snapshot::parse(before), schedstat::Snapshot::parse(after))
        && let Ok(delta) = schedstat::Delta::between(&before, &after)
    {
        let columns = schedstat::Columns::of(&delta, Some(1.0));
        let _ = schedstat::table(&[schedstat::StatRow { name: "new".into(), columns }]);
        let _ = schedstat::domains_text(&delta.domains);
    }
    let _ = sched::Topology::parse(&text);
    let _ = sched::topology::parse_cpu_list(&text);
    let _ = parse::Where::parse(&text);
});
