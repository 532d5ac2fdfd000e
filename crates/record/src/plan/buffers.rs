//! Sizes of buffers, and the calibration by a dry run.

use serde::Serialize;

/// The smallest buffer of a CPU in KiB.
const LEAST_KB: u64 = 1 << 10;

/// The largest buffer of a CPU that is chosen without a request, in KiB.
const MOST_KB: u64 = 64 << 10;

/// The share of the available memory that all buffers together may take without a request.
const MEMORY_SHARE: u64 = 8;

/// Bytes of a page of the buffer that hold events, of each 4096.
const PAGE_PAYLOAD: f64 = 4080.0 / 4096.0;

/// Reads a size such as `8192` (KiB, as trace-cmd's `-b`), `64M` or `1G`, in KiB.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, scale) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 10),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 20),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
    let size = number.and_then(|number| number.checked_mul(scale)).filter(|kb| *kb > 0 && *kb < 1 << 40);
    size.ok_or_else(|| "a size is a number of KiB, or a number with K, M or G, such as 64M".to_owned())
}

/// Prints a size in KiB with a unit: `64 MiB`.
pub fn format_size(kb: u64) -> String {
    match kb {
        kb if kb >= 10 << 20 => format!("{} GiB", kb.div_ceil(1 << 20)),
        kb if kb >= 10 << 10 => format!("{} MiB", kb.div_ceil(1 << 10)),
        kb => format!("{kb} KiB"),
    }
}

/// The size of each CPU's buffer in KiB if none was asked for: an eighth of the available memory over all CPUs, between
/// 1 MiB and 64 MiB.
pub fn default_size(available_kb: Option<u64>, cpus: usize) -> u64 {
    let share = available_kb.map_or(LEAST_KB, |kb| kb / MEMORY_SHARE / cpus.max(1) as u64);
    share.clamp(LEAST_KB, MOST_KB)
}

/// The counters of one CPU over a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuRate {
    /// Number of the CPU.
    pub cpu: u32,
    /// Events recorded, lost ones included.
    pub events: u64,
    /// Bytes in the buffer.
    pub bytes: u64,
    /// Events in the buffer.
    pub kept: u64,
}

/// The result of a dry run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The length of the dry run in seconds.
    pub seconds: f64,
    /// The length of the planned recording in seconds.
    pub planned_seconds: f64,
    /// Events per second of all CPUs.
    pub events_per_second: f64,
    /// Events per second of the busiest CPU.
    pub busiest_events_per_second: f64,
    /// The busiest CPU.
    pub busiest: Option<u32>,
    /// The mean size of an event in bytes.
    pub bytes_per_event: f64,
    /// Bytes per second of all CPUs, about the growth of the file before compression.
    pub bytes_per_second: f64,
    /// The buffer of each CPU in KiB that holds the planned recording, with a quarter to spare.
    pub buffer_kb: u64,
    /// The time of the busiest CPU that recording takes, in percent; absent if the cost of an event is unknown.
    pub slowdown_percent: Option<f64>,
    /// The counters by CPU.
    pub cpus: Vec<CpuRate>,
}

impl Calibration {
    /// Computes it from the counters of a dry run of `seconds`, for a recording of `planned` seconds. `event_ns` is the
    /// cost of one event in nanoseconds. Nothing was recorded: no calibration.
    pub fn of(cpus: &[CpuRate], seconds: f64, planned: f64, event_ns: Option<f64>) -> Option<Calibration> {
        let (events, kept) = cpus.iter().fold((0_u64, 0_u64), |(e, k), cpu| (e + cpu.events, k + cpu.kept));
        let bytes: u64 = cpus.iter().map(|cpu| cpu.bytes).sum();
        if kept == 0 || seconds <= 0.0 {
            return None;
        }
        let busiest = cpus.iter().max_by_key(|cpu| cpu.events)?;
        let bytes_per_event = bytes as f64 / kept as f64;
        let rate = busiest.events as f64 / seconds;
        let needed = rate * bytes_per_event * planned / PAGE_PAYLOAD * 1.25 / 1024.0;
        Some(Calibration {
            seconds,
            planned_seconds: planned,
            events_per_second: events as f64 / seconds,
            busiest_events_per_second: rate,
            busiest: Some(busiest.cpu),
            bytes_per_event,
            bytes_per_second: events as f64 / seconds * bytes_per_event,
            buffer_kb: (needed.ceil() as u64).max(LEAST_KB),
            slowdown_percent: event_ns.map(|ns| rate * ns / 1e7),
            cpus: cpus.to_vec(),
        })
    }
}

/// The cost of one event in nanoseconds: the difference of the times that writing `n` markers took with recording on
/// and off, never below zero.
pub fn event_cost_ns(on_ns: u64, off_ns: u64, n: u64) -> Option<f64> {
    (n > 0).then(|| on_ns.saturating_sub(off_ns) as f64 / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!([parse_size("8192"), parse_size("64M"), parse_size("2g")], [Ok(8192), Ok(65_536), Ok(2 << 20)]);
        for bad in ["", "M", "0", "-1", "+1", "1.5M", "99999999999G", "64 MB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!([format_size(900), format_size(65_536), format_size(20 << 20)], ["900 KiB", "64 MiB", "20 GiB"]);
        // 16 GiB over 8 CPUs would be 256 MiB each.
        assert_eq!(default_size(Some(16 << 20), 8), 64 << 10);
        assert_eq!(default_size(Some(2 << 20), 64), 4096);
        assert_eq!(default_size(Some(2 << 20), 4096), 1024);
        assert_eq!(default_size(None, 8), 1024);
    }

    #[test]
    fn a_dry_run_gives_rates_and_a_buffer() {
        // 1000 events of 40 bytes on CPU 0 and 3000 on CPU 2, of which a small buffer kept 1000, in half a second.
        let cpus = [
            CpuRate { cpu: 0, events: 1000, bytes: 40_000, kept: 1000 },
            CpuRate { cpu: 2, events: 3000, bytes: 40_000, kept: 1000 },
        ];
        let found = Calibration::of(&cpus, 0.5, 10.0, Some(250.0)).unwrap();
        assert_eq!((found.events_per_second, found.busiest_events_per_second), (8000.0, 6000.0));
        assert_eq!((found.busiest, found.bytes_per_event, found.bytes_per_second), (Some(2), 40.0, 320_000.0));
        // 6000/s of 40 bytes for 10 s are 2.4 MB, with pages and a quarter to spare 2942 KiB.
        assert_eq!(found.buffer_kb, 2942);
        // 6000 events of 250 ns each second are 1.5 ms of each second.
        assert_eq!(found.slowdown_percent, Some(0.15));
        assert_eq!(Calibration::of(&[], 1.0, 10.0, None), None);
        assert_eq!(event_cost_ns(5_000_000, 2_000_000, 10_000), Some(300.0));
        assert_eq!((event_cost_ns(1, 2, 3), event_cost_ns(1, 0, 0)), (Some(0.0), None));
    }
}
