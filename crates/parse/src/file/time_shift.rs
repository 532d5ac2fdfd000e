//! From the time of a guest to that of its host: the option TIME_SHIFT (`docs/trace-dat.md`, section 9).

use crate::bytes::{Bytes, Eof};
use sched::Cpu;

/// The offset and scale from some instant of the guest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShiftSample {
    time: i64,
    offset: i64,
    scaling: i64,
    /// The scaling's fraction bits.
    fraction: u32,
}

/// The samples of each CPU of a guest, by CPU number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeShift {
    /// The trace id of the host's recording.
    pub(crate) peer: u64,
    /// Offsets are interpolated between two samples (the PTP protocol).
    interpolates: bool,
    cpus: Vec<Vec<ShiftSample>>,
}

impl TimeShift {
    /// Parses the payload of the option. Its counts are bounded by its own length: each sample has at least 24 bytes.
    pub(crate) fn parse(mut payload: Bytes<'_>) -> Result<TimeShift, Eof> {
        let peer = payload.u64()?;
        let interpolates = payload.u32()? & 1 != 0;
        let count = payload.u32()?;
        let mut cpus: Vec<Vec<ShiftSample>> = Vec::new();
        for _ in 0..count {
            let samples = usize::try_from(payload.u32()?).map_err(|_| Eof)?;
            if samples > payload.rest().len() / 24 {
                return Err(Eof);
            }
            let mut numbers =
                || (0..samples).map(|_| Ok(payload.u64()?.cast_signed())).collect::<Result<Vec<i64>, Eof>>();
            let (times, offsets, scalings) = (numbers()?, numbers()?, numbers()?);
            let both = times.into_iter().zip(offsets).zip(scalings);
            cpus.push(
                both.map(|((time, offset), scaling)| ShiftSample { time, offset, scaling, fraction: 0 }).collect(),
            );
        }
        // Recorders before October 2021 wrote none.
        if !payload.rest().is_empty() {
            for sample in cpus.iter_mut().flatten() {
                sample.fraction = u32::try_from(payload.u64()?.min(127)).unwrap_or(127);
            }
        }
        for samples in &mut cpus {
            samples.sort_by_key(|sample| sample.time);
            samples.dedup_by_key(|sample| sample.time);
        }
        Ok(TimeShift { peer, interpolates, cpus })
    }

    /// The number of CPUs with samples; times of the others stay as they are.
    pub(crate) fn sampled(&self) -> usize {
        self.cpus.iter().filter(|samples| !samples.is_empty()).count()
    }

    /// The host's stamp for one of a guest's CPU; the same for a CPU without samples.
    pub(crate) fn host(&self, cpu: Cpu, raw: u64) -> u64 {
        let samples = self.cpus.get(cpu.index()).map_or(&[][..], Vec::as_slice);
        let (first, ts) = match samples {
            [] => return raw,
            [only] => return clamped(i128::from(raw).saturating_add(i128::from(only.offset))),
            [first, ..] => (first, i128::from(raw)),
        };
        let place = samples.partition_point(|sample| i128::from(sample.time) <= ts).saturating_sub(1);
        let sample = samples.get(place).unwrap_or(first);
        let mut offset = i128::from(sample.offset);
        // Beyond the last sample the line through the last two goes on.
        let pair = place.min(samples.len().saturating_sub(2));
        if let (true, Some([a, b])) = (self.interpolates, samples.get(pair..pair.saturating_add(2))) {
            let (length, rise) = (i128::from(b.time) - i128::from(a.time), i128::from(b.offset) - i128::from(a.offset));
            let along = ts - i128::from(a.time);
            // Rounded as trace-cmd rounds, so that both give the same times.
            let rounded = rise.saturating_mul(along).saturating_add(length / 2) / length.max(1);
            offset = i128::from(a.offset).saturating_add(rounded);
        }
        // 64 bits by 64 fit 128.
        let scaled = (ts * i128::from(sample.scaling)) >> sample.fraction;
        clamped(scaled.saturating_add(offset))
    }
}

fn clamped(ts: i128) -> u64 {
    u64::try_from(ts.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Endian;

    fn shift(flags: u32, cpus: &[&[(i64, i64, i64)]], fractions: Option<i64>) -> Result<TimeShift, Eof> {
        let mut payload = [0xfeed_u64.to_le_bytes().as_slice(), &flags.to_le_bytes()].concat();
        payload.extend((cpus.len() as u32).to_le_bytes());
        for samples in cpus {
            payload.extend((samples.len() as u32).to_le_bytes());
            for part in [|s: &(i64, i64, i64)| s.0, |s: &(i64, i64, i64)| s.1, |s: &(i64, i64, i64)| s.2] {
                samples.iter().for_each(|sample| payload.extend(part(sample).to_le_bytes()));
            }
        }
        if let Some(bits) = fractions {
            cpus.iter().flat_map(|samples| samples.iter()).for_each(|_| payload.extend(bits.to_le_bytes()));
        }
        TimeShift::parse(Bytes::new(&payload, 0, Endian::Little))
    }

    #[test]
    fn a_guests_time_becomes_the_hosts() {
        let kvm = shift(0, &[&[(0, 500, 1)], &[(2_000, 20, 3), (1_000, 10, 2), (2_000, 99, 9)]], Some(1)).unwrap();
        assert_eq!(kvm.host(Cpu(0), 7), 507, "one sample: its offset alone");
        // Before, at and between the samples, and behind them: halves, since one bit is the fraction.
        let hosts = [500, 1_000, 1_999, 2_000, 4_000].map(|ts| kvm.host(Cpu(1), ts));
        assert_eq!(hosts, [510, 1_010, 2_009, 3_020, 6_020]);
        assert_eq!(kvm.host(Cpu(2), 7), 7, "no samples");
        let ptp = shift(1, &[&[(1_000, 100, 1), (2_000, 200, 1)]], None).unwrap();
        assert_eq!([500, 1_000, 1_500, 3_000].map(|ts| ptp.host(Cpu(0), ts)), [551, 1_100, 1_650, 3_300]);
        // One nanosecond in a thousand. Halves go up, and what is negative toward zero, 551 above, as in trace-cmd.
        let slow = shift(1, &[&[(0, 5, 1), (1_000, 6, 1)]], None).unwrap();
        assert_eq!([0, 499, 500, 999].map(|ts| slow.host(Cpu(0), ts)), [5, 504, 506, 1_005]);
        let below = shift(0, &[&[(0, -500, 1)]], None).unwrap();
        assert_eq!((below.host(Cpu(0), 400), below.host(Cpu(0), u64::MAX)), (0, u64::MAX - 500));
    }

    #[test]
    fn counts_beyond_the_payload_are_refused() {
        let mut payload = vec![0; 12];
        payload.extend(1u32.to_le_bytes());
        payload.extend(u32::MAX.to_le_bytes());
        assert!(TimeShift::parse(Bytes::new(&payload, 0, Endian::Little)).is_err());
        payload.splice(12..16, u32::MAX.to_le_bytes());
        payload.splice(16..20, 0u32.to_le_bytes());
        assert!(TimeShift::parse(Bytes::new(&payload, 0, Endian::Little)).is_err());
    }
}
