//! The numbers in a sample of the output of each program. The samples of hackbench, perf, cyclictest, stress-ng and sysbench are output of Debian
//! 12; those of schbench and rtla are written in the form that their documents show.

use benchmarks::{BenchmarkNumber, PREFIXES, numbers};
use question::Better;

fn sample(name: &str) -> Vec<BenchmarkNumber> {
    let path = format!("{}/tests/samples/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    numbers(&std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// The keys and the values of a sample.
fn of(name: &str) -> Vec<(String, f64)> {
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    sample(name).into_iter().map(|number| (number.metric.key.into_owned(), rounded(number.value))).collect()
}

fn expected(numbers: &[(&str, f64)]) -> Vec<(String, f64)> {
    numbers.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
}

#[test]
fn hackbench_and_perf_have_a_time() {
    assert_eq!(of("hackbench"), expected(&[("hackbench-time", 0.135)]));
    assert_eq!(of("perf-messaging"), expected(&[("perf-messaging-time", 0.096)]));
    assert_eq!(of("perf-pipe"), expected(&[("perf-pipe-op", 31.314)]));
    assert_eq!(of("perf-all"), expected(&[("perf-messaging-time", 0.381), ("perf-pipe-op", 7.870224)]));
}

#[test]
fn schbench_has_the_last_of_its_sections() {
    let all = [
        ("schbench-wakeup-p50", 7.0),
        ("schbench-wakeup-p90", 18.0),
        ("schbench-wakeup-p99", 175.0),
        ("schbench-wakeup-p99.9", 909.0),
        ("schbench-wakeup-max", 10224.0),
        ("schbench-request-p50", 16864.0),
        ("schbench-request-p90", 16992.0),
        ("schbench-request-p99", 17248.0),
        ("schbench-request-p99.9", 19872.0),
        ("schbench-request-max", 27964.0),
        ("schbench-rps-p20", 198.0),
        ("schbench-rps-p50", 201.0),
        ("schbench-rps-p90", 207.0),
        ("schbench-rps-max", 212.0),
        ("schbench-delay-message", 10.0),
        ("schbench-delay-worker", 305.0),
        ("schbench-rps", 201.53),
    ];
    let mut found = of("schbench");
    assert_eq!(found.len(), all.len());
    for (key, value) in all {
        let at = found.iter().position(|(other, _)| other == key).unwrap_or_else(|| panic!("{key}"));
        assert_eq!(found.remove(at).1, value, "{key}");
    }
    let pipe = of("schbench-pipe");
    assert!(pipe.contains(&("schbench-wakeup-p20".to_owned(), 6.0)), "{pipe:?}");
    assert!(pipe.contains(&("schbench-transfer".to_owned(), 21924.84)), "{pipe:?}");
    let old = of("schbench-old");
    assert_eq!(
        (old.len(), &old[4], &old[7]),
        (8, &("schbench-wakeup-p99".into(), 44.0), &("schbench-wakeup-max".into(), 410.0))
    );
}

#[test]
fn cyclictest_has_the_average_of_all_cycles_and_the_maximum() {
    // (779 * 400 + 441 * 953) / 1220, (806 * 325 + 598 * 814) / 1404 and (800 * 325.5 + 200 * 814.5) / 1000.
    let of_threads = [
        ("cyclictest", 599.895902, 38236.0),
        ("cyclictest-histogram", 533.277778, 54035.0),
        ("cyclictest-json", 423.3, 54035.0),
    ];
    for (name, avg, max) in of_threads {
        assert_eq!(of(name), expected(&[("cyclictest-avg", avg), ("cyclictest-max", max)]), "{name}");
    }
}

#[test]
fn rtla_has_the_average_and_the_maximum_of_each_context() {
    let hist = [
        ("timerlat-irq-avg", 0.5),
        ("timerlat-irq-max", 16.0),
        ("timerlat-thread-avg", 6.0),
        ("timerlat-thread-max", 58.0),
    ];
    assert_eq!(of("rtla-timerlat-hist"), expected(&hist));
    // The second table holds for both CPUs: (600 * 9 + 200 * 13) / 800.
    let top = [
        ("timerlat-irq-avg", 1.0),
        ("timerlat-irq-max", 25.0),
        ("timerlat-thread-avg", 10.0),
        ("timerlat-thread-max", 41.0),
    ];
    assert_eq!(of("rtla-timerlat-top"), expected(&top));
    assert_eq!(of("rtla-osnoise-hist"), expected(&[("osnoise-max", 50.0)]));
    assert_eq!(of("rtla-osnoise-top"), expected(&[("osnoise-available", 99.5), ("osnoise-single", 56.0)]));
}

#[test]
fn stress_ng_has_the_rate_of_each_stressor() {
    let all = [
        ("stress-ng-pipe", 360850.33),
        ("stress-ng-switch", 144475.92),
        ("stress-ng-pipe-mb-per-sec-pipe-write-rate", 179.42),
        ("stress-ng-switch-nanosecs-per-context-switch-pipe-method", 6796.37),
    ];
    assert_eq!(of("stress-ng"), expected(&all));
    assert_eq!(of("stress-ng-old"), expected(&[("stress-ng-cpu", 340.38)]));
}

#[test]
fn sysbench_has_a_rate_and_latencies() {
    let all = [
        ("sysbench-rate", 367.0),
        ("sysbench-latency-avg", 1.37),
        ("sysbench-latency-max", 52.25),
        ("sysbench-latency-p95", 2.35),
    ];
    assert_eq!(of("sysbench"), expected(&all));
}

/// Rates are better large, times small; a row fits its column, and a key begins with a known name.
#[test]
fn every_number_has_its_direction_and_fits_its_row() {
    let folder = format!("{}/tests/samples", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
        let found = sample(&name);
        assert!(!found.is_empty(), "{name}");
        for BenchmarkNumber { metric, .. } in found {
            let is_rate = ["rps", "rate", "transfer", "available"].iter().any(|word| metric.key.contains(word))
                || metric.name.ends_with("bogo ops/s");
            assert_eq!(metric.better, if is_rate { Better::More } else { Better::Less }, "{name}: {metric:?}");
            assert!(metric.row.chars().count() <= 18, "{name}: {metric:?}");
            assert!(PREFIXES.iter().any(|prefix| metric.key.starts_with(prefix)), "{name}: {metric:?}");
        }
    }
}
