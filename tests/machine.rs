//! `schedviz machine`, and the machine file beside a trace.

use crate::conforms::conforms;
use crate::support::{fixture, golden, root, schedviz, schedviz_in, scratch};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Four CPUs in two nodes with two threads per core, as the files of the kernel show them.
fn fake_root(folder: &Path) {
    let cpu = |cpu: u32| {
        let (core, node) = (format!("{}-{}", cpu & 2, (cpu & 2) + 1), cpu / 2);
        vec![
            (format!("sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"), core.clone()),
            (format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"), node.to_string()),
            (format!("sys/devices/system/cpu/cpu{cpu}/cache/index0/level"), "1".into()),
            (format!("sys/devices/system/cpu/cpu{cpu}/cache/index0/shared_cpu_list"), cpu.to_string()),
            (format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/level"), "3".into()),
            (format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list"), core),
            (format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), if cpu < 2 { "1024" } else { "512" }.into()),
            (format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"), "powersave".into()),
            (format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"), "3000000".into()),
            (format!("sys/kernel/debug/sched/domains/cpu{cpu}/domain0/name"), "SMT".into()),
            (format!("sys/kernel/debug/sched/domains/cpu{cpu}/domain0/imbalance_pct"), "110".into()),
            (format!("sys/kernel/debug/sched/domains/cpu{cpu}/domain0/max_newidle_lb_cost"), (1000 + cpu).to_string()),
            (format!("sys/kernel/debug/sched/domains/cpu{cpu}/domain1/name"), "NUMA".into()),
        ]
    };
    let status =
        |name: &str, list: &str| format!("Name:\t{name}\nUid:\t1000\nCpus_allowed:\tf\nCpus_allowed_list:\t{list}\n");
    let single = [
        ("sys/devices/system/cpu/online", "0-3".to_owned()),
        ("sys/devices/system/cpu/isolated", "3".to_owned()),
        ("sys/devices/system/cpu/nohz_full", "(null)".to_owned()),
        ("sys/devices/system/cpu/smt/control", "on".to_owned()),
        ("sys/devices/system/node/node0/cpulist", "0-1".to_owned()),
        ("sys/devices/system/node/node0/distance", "10 21".to_owned()),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       2000000 kB\nNode 0 MemFree: 5 kB".to_owned()),
        ("sys/devices/system/node/node1/cpulist", "2-3".to_owned()),
        ("sys/devices/system/node/node1/distance", "21 10".to_owned()),
        ("sys/class/dmi/id/sys_vendor", "QEMU".to_owned()),
        ("sys/kernel/debug/sched/features", "PLACE_LAG NO_HRTICK NEXT_BUDDY".to_owned()),
        ("sys/kernel/debug/sched/base_slice_ns", "2800000".to_owned()),
        ("sys/kernel/debug/sched/debug", "Sched Debug Version: v0.11\nhost alices-box".to_owned()),
        ("sys/kernel/debug/sched/preempt", "none voluntary (full) lazy".to_owned()),
        ("sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "1000".to_owned()),
        ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu".to_owned()),
        ("sys/fs/cgroup/limited/cpu.max", "20000 50000".to_owned()),
        ("sys/fs/cgroup/limited/cpu.weight", "100".to_owned()),
        ("sys/fs/cgroup/limited/cpuset.cpus.effective", "0-3".to_owned()),
        (
            "sys/fs/cgroup/limited/cpu.stat",
            "usage_usec 7000\nnr_periods 12\nnr_throttled 5\nthrottled_usec 12345".to_owned(),
        ),
        ("sys/fs/cgroup/limited/cgroup.threads", "20\n0".to_owned()),
        // Below a limit, and below that a cgroup without the controller.
        ("sys/fs/cgroup/limited/inner/cpu.max", "max 100000".to_owned()),
        ("sys/fs/cgroup/limited/inner/cgroup.threads", "21".to_owned()),
        ("sys/fs/cgroup/limited/inner/leaf/cgroup.threads", "12\n1".to_owned()),
        ("sys/fs/cgroup/home-alice.mount/cpu.max", "max 100000".to_owned()),
        ("sys/fs/cgroup/home-alice.mount/cgroup.threads", "20".to_owned()),
        ("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=/dev/disk/by-label/alices-box isolcpus=3 quiet".to_owned()),
        ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Model T\nflags\t\t: fpu hypervisor\n".to_owned()),
        ("proc/sys/kernel/osrelease", "6.12.107+deb13-amd64".to_owned()),
        ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1".to_owned()),
        ("proc/sys/kernel/hostname", "alices-box".to_owned()),
        ("proc/sys/kernel/sched_schedstats", "1".to_owned()),
        ("proc/sys/kernel/numa_balancing", "0".to_owned()),
        ("proc/1/task/1/status", status("init", "0-2")),
        ("proc/20/task/20/status", status("alice", "0-2")),
        ("proc/20/task/21/status", status("alice", "3")),
        ("proc/20/environ", "USER=alice".to_owned()),
        ("proc/20/cmdline", "ssh alice".to_owned()),
    ];
    let files = (0..4).flat_map(cpu).chain(single.map(|(name, text)| (name.to_owned(), text)));
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, format!("{text}\n")).expect("written");
    }
}

#[test]
fn a_machine_file_has_every_fact_and_nothing_personal() {
    let folder = scratch("machine-file");
    fake_root(&folder);
    let ran = schedviz(&["machine", "--root", folder.to_str().expect("a name"), "--json"]).success().text();
    // The kernel's numbers of cgroups are the inode numbers of their folders.
    let number = |name: &str| std::fs::metadata(folder.join("sys/fs/cgroup").join(name)).expect("a folder").ino();
    let numbers = [("limited", "1001"), ("limited/inner", "1002"), ("limited/inner/leaf", "1003")];
    let ran = numbers.into_iter().fold(ran, |text, (name, fixed)| {
        let line = format!("\"id\": {},", number(name));
        assert!(text.contains(&line), "{text}");
        text.replace(&line, &format!("\"id\": {fixed},"))
    });
    golden("machine.json", &ran);
    assert!(!ran.contains("alice"), "{ran}");
    let schema = std::fs::read_to_string(root().join("docs/schemas/machine-1.json")).expect("a schema");
    let schema = serde_json::from_str(&schema).expect("JSON");
    conforms(&serde_json::from_str(&ran).expect("JSON"), &schema, "machine");
    let text = schedviz(&["machine", "--root", folder.to_str().expect("a name")]).success().text();
    golden("machine.txt", &text);
    let file = folder.join("m.json");
    let quiet = ["machine", "--root", folder.to_str().expect("a name"), "-q", "-o", file.to_str().expect("a name")];
    let quiet = schedviz(&quiet).success();
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty() && file.is_file());
}

#[test]
fn this_machine_has_a_file_too() {
    let ran = schedviz(&["machine", "--json"]).success().text();
    let machine: serde_json::Value = serde_json::from_str(&ran).expect("JSON");
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    assert_eq!(machine["kernel"]["release"], release.trim());
    let here = machine["affinity"][0]["tasks"].as_object().expect("tasks");
    assert!(here.values().flat_map(|pids| pids.as_array().expect("pids")).any(|pid| pid == std::process::id()));
    assert_eq!(schedviz(&["machine", "--root", "/nowhere"]).stderr, "schedviz: --root: /nowhere is not a folder\n");
}

/// The part of a report before its commands, which repeat the options.
fn figures(text: &str) -> String {
    text.lines().take_while(|line| !line.contains("schedviz ")).collect::<Vec<_>>().join("\n")
}

/// The places of `hackbench.dat`'s CPUs, once as text and once as a machine file: the same figures follow.
#[test]
fn the_machine_file_beside_a_trace_is_found() {
    let folder = scratch("machine-beside");
    std::fs::copy(fixture("hackbench.dat"), folder.join("hackbench.dat")).expect("copied");
    std::fs::copy(fixture("hackbench.cpus.txt"), folder.join("cpus.txt")).expect("copied");
    let latency = |more: &[&str]| {
        figures(&schedviz_in(&folder, &[&["latency", "hackbench.dat"], more].concat()).success().text())
    };
    let (without, given) = (latency(&[]), latency(&["--topology", "cpus.txt"]));
    assert!(without != given);
    let places: Vec<String> = (0..8)
        .map(|cpu| format!(r#"{{"cpu":{cpu},"core":{cpu},"llc":{0},"node":{1},"socket":{1}}}"#, cpu / 4 * 4, cpu / 4))
        .collect();
    let file = |release: &str| {
        format!(
            r#"{{"schema":"schedviz/machine/1","kernel":{{"release":"{release}"}},"scheduler":{{}},"cpus":{{"places":[{}]}}}}"#,
            places.join(",")
        )
    };
    let beside = folder.join("hackbench.machine.json");
    std::fs::write(&beside, file("6.12.107+deb13-amd64")).expect("written");
    assert!(latency(&[]) == given);
    let info = schedviz_in(&folder, &["info", "hackbench.dat"]).success().text();
    assert!(info.contains("\nmachine    8 CPUs, 2 sockets, 2 nodes, 2 LLCs\n"), "{info}");
    // Given by hand, it is a topology like any other.
    std::fs::rename(&beside, folder.join("other.json")).expect("renamed");
    assert!(latency(&["--topology", "other.json"]) == given);
    // A file of another kernel, or a damaged one, is reported and left out.
    for (text, why) in [
        (file("7.2.1"), "it is of Linux 7.2.1, the trace of 6.12.107+deb13-amd64; --topology takes it all the same"),
        ("{".to_owned(), "not a machine file: EOF while parsing an object at line 1 column 1"),
    ] {
        std::fs::write(&beside, text).expect("written");
        let ran = schedviz_in(&folder, &["latency", "hackbench.dat"]).success();
        assert!(ran.stderr.contains(&format!("hackbench.machine.json is left out: {why}\n")), "{}", ran.stderr);
        assert!(figures(&ran.text()) == without);
    }
    // The file is an input of every command that reads the trace.
    let ran = schedviz_in(&folder, &["latency", "hackbench.dat", "-o", "hackbench.machine.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is an input of this command"), "{}", ran.stderr);
}
