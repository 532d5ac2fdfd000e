//! The columns of the task-stealing series.

use crate::delta::Delta;
use serde::Serialize;

/// The columns of a row of the table, which is a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Columns {
    /// The elapsed time in seconds, if known.
    pub time_s: Option<f64>,
    /// The share of the CPU time in which tasks ran, in percent.
    pub busy_percent: Option<f64>,
    /// The mean time slice, in milliseconds.
    pub slice_ms: Option<f64>,
    /// The number of calls of schedule() per CPU; from a trace, that of switches.
    pub sched: f64,
    /// The number of these calls or switches that chose the idle task, per CPU.
    pub idle: f64,
    /// The number of wakeups done by the CPU, per CPU.
    pub wake: f64,
    /// The share of the CPU time spent searching for tasks and CPUs, in percent.
    pub find_percent: Option<f64>,
    /// The number of stolen tasks per CPU; from a trace, that of new-idle pulls.
    pub steal: Option<f64>,
}

impl Columns {
    /// Returns the columns of two snapshots; `time_s` is the elapsed time of the run in seconds, if known.
    pub fn of(delta: &Delta, time_s: Option<f64>) -> Columns {
        let cpus = delta.cpus.len().max(1) as f64;
        let sum = |of: &dyn Fn(&crate::CpuDelta) -> u64| delta.cpus.iter().map(of).fold(0, u64::saturating_add) as f64;
        let share = |ns: f64| time_s.filter(|t| *t > 0.0).map(|t| 100.0 * ns / (cpus * t * 1e9));
        let (busy_ns, pcount) = (sum(&|c| c.cpu_time_ns), sum(&|c| c.pcount));
        let series = delta.cpus.iter().all(|c| c.steal.is_some());
        Columns {
            time_s,
            busy_percent: share(busy_ns),
            slice_ms: (pcount > 0.0).then(|| busy_ns / pcount / 1e6),
            sched: sum(&|c| c.sched_count) / cpus,
            idle: sum(&|c| c.sched_goidle) / cpus,
            wake: sum(&|c| c.ttwu_count) / cpus,
            find_percent: if series { share(sum(&|c| c.find_ns.unwrap_or(0))) } else { None },
            steal: series.then(|| sum(&|c| c.steal.unwrap_or(0)) / cpus),
        }
    }
}

/// The share of a CPU's time up to which a measured elapsed time counts as right, in percent: the copies of the counters are
/// taken a little outside of the time that is measured.
const ALL_OF_THE_TIME: f64 = 101.0;

impl Columns {
    /// Returns the columns without the time and the shares of it where tasks ran for longer than that time has room for, and
    /// the least elapsed time that has, in seconds.
    #[must_use]
    pub fn possible(self) -> (Columns, Option<f64>) {
        match (self.busy_percent, self.time_s) {
            (Some(busy), Some(time)) if busy > ALL_OF_THE_TIME => {
                let columns = Columns { time_s: None, busy_percent: None, find_percent: None, ..self };
                (columns, Some(time * busy / 100.0))
            }
            _ => (self, None),
        }
    }
}

/// Returns the speedup of the new time over the base in percent, 100 · (base / new − 1); `None` if the new time is
/// zero.
pub fn speedup(base_s: f64, new_s: f64) -> Option<f64> {
    (new_s > 0.0).then(|| 100.0 * (base_s / new_s - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuDelta;
    use sched::Cpu;

    /// The rows that the series printed for hackbench (time, %busy, sched, idle; slice in ms).
    #[test]
    fn the_series_rows_come_out() {
        let delta = |time: f64, busy: f64, sched: u64, idle: u64| Delta {
            cpus: vec![CpuDelta {
                cpu: Cpu(0),
                sched_count: sched,
                sched_goidle: idle,
                ttwu_count: 0,
                ttwu_local: 0,
                cpu_time_ns: (time * busy / 100.0 * 1e9) as u64,
                run_delay_ns: 0,
                pcount: sched - idle,
                find_ns: None,
                steal: None,
                steal_fail: None,
            }],
            domains: Vec::new(),
            jiffies: None,
            warnings: Vec::new(),
        };
        let row = Columns::of(&delta(8.084, 75.02, 105_476, 46_291), Some(8.084));
        assert_eq!(format!("{:.2} {:.2}", row.slice_ms.unwrap(), row.busy_percent.unwrap()), "0.10 75.02");
        assert_eq!((row.sched, row.idle, row.steal), (105_476.0, 46_291.0, None));
        let shown = |base, new| format!("{:.1}", speedup(base, new).unwrap());
        assert_eq!([shown(8.084, 5.938), shown(2.182, 2.229)], ["36.1", "-2.1"]);
        assert_eq!(speedup(1.0, 0.0), None);
        // Tasks ran for 6.06 s: an elapsed time of 4.6 s is no possible one, and one of 6.05 s is a rounded one.
        let busy = delta(8.084, 75.02, 105_476, 46_291);
        let (columns, at_least) = Columns::of(&busy, Some(4.6)).possible();
        assert_eq!((columns.time_s, columns.busy_percent, columns.idle), (None, None, 46_291.0));
        assert_eq!(format!("{:.3}", at_least.unwrap()), "6.065");
        assert_eq!(Columns::of(&busy, Some(6.05)).possible().1, None);
        assert_eq!(Columns::of(&busy, None).possible().1, None);
    }
}
