//! The jobs of a task that have ended, in few bytes each.

use sched::packed::{PackedNumbers, put, put_difference};
use sched::{Dur, Ts};

/// A job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedJob {
    pub(crate) release: Ts,
    pub(crate) by_interrupt: bool,
    pub(crate) by_expiry: bool,
    pub(crate) response: Dur,
    pub(crate) run: Dur,
    pub(crate) waited: Dur,
}

/// The jobs of a task in the order of their ends. A job takes some 14 bytes, rather than 40.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndedJobs {
    bytes: Vec<u8>,
    /// The release of the latest.
    latest: Ts,
}

impl EndedJobs {
    /// Appends a job.
    pub(crate) fn push(&mut self, job: EndedJob) {
        let EndedJob { release, by_interrupt, by_expiry, response, run, waited } = job;
        self.bytes.push(u8::from(by_interrupt) | u8::from(by_expiry) << 1);
        put_difference(&mut self.bytes, release.0, self.latest.0);
        put(&mut self.bytes, run.0);
        put(&mut self.bytes, waited.0);
        put(&mut self.bytes, response.0.wrapping_sub(run.0).wrapping_sub(waited.0));
        self.latest = release;
    }

    /// Iterates over the jobs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = EndedJob> {
        let (mut numbers, mut latest) = (PackedNumbers::of(&self.bytes), Ts::default());
        std::iter::from_fn(move || {
            if numbers.is_empty() {
                return None;
            }
            let flags = numbers.take();
            latest = Ts(numbers.take_from(latest.0));
            let (run, waited) = (numbers.take(), numbers.take());
            let response = Dur(numbers.take().wrapping_add(run).wrapping_add(waited));
            let (by_interrupt, by_expiry) = (flags & 1 > 0, flags & 2 > 0);
            Some(EndedJob { release: latest, by_interrupt, by_expiry, response, run: Dur(run), waited: Dur(waited) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_back() {
        let times = [0, 1, 127, 128, 4_000_000, u64::MAX];
        let mut all = Vec::new();
        for (nth, release) in [5, -5, i64::MIN, i64::MAX, 1_000_000].into_iter().enumerate() {
            for run in times {
                for waited in times {
                    // A job can have been throttled as well, and times that contradict each other are kept as they are.
                    let response = Dur(times[(nth + 1) % 6]);
                    let (by_interrupt, by_expiry) = (nth % 2 == 0, run == 1);
                    let (run, waited) = (Dur(run), Dur(waited));
                    all.push(EndedJob { release: Ts(release), by_interrupt, by_expiry, response, run, waited });
                }
            }
        }
        let mut jobs = EndedJobs::default();
        assert_eq!(jobs.iter().next(), None);
        all.iter().for_each(|job| jobs.push(*job));
        assert_eq!(jobs.iter().collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_job_takes_few_bytes() {
        let mut jobs = EndedJobs::default();
        for nth in 0..1000 {
            let (run, waited) = (Dur(2_000_000), Dur(300_000));
            let release = Ts(1_000_000_000_000 + nth * 10_000_000);
            let response = Dur(2_300_000);
            jobs.push(EndedJob { release, by_interrupt: true, by_expiry: false, response, run, waited });
        }
        assert!(jobs.bytes.len() < 14_000, "{}", jobs.bytes.len());
    }
}
