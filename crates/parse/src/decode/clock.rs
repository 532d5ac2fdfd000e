//! Clocks, and the corrections that make instants of raw stamps.

use crate::error::Error;
use sched::Ts;

/// The meaning of the numbers of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// The numbers are nanoseconds.
    Nanoseconds,
    /// Cycles of a counter, convertible with TSC2NSEC or a frequency.
    Cycles,
    /// `uptime`: hundredths of a second.
    Ticks,
    /// `counter`: a number per event, no time at all.
    Order,
}

/// The clocks that kernels have (`/sys/kernel/tracing/trace_clock`), and the recorder's own (`tsc2nsec`), but for those
/// without a time.
pub const CLOCKS: [&str; 11] =
    ["local", "global", "perf", "mono", "mono_raw", "boot", "tai", "tsc2nsec", "x86-tsc", "ppc-tb", "s390-tod"];

impl ClockKind {
    /// Returns the meaning of the clock with this name. A file without a name used `local`; an unknown name is that of
    /// an architecture's counter.
    pub(crate) fn of(name: &str) -> ClockKind {
        match name {
            "" | "local" | "global" | "perf" | "mono" | "mono_raw" | "boot" | "tai" | "tsc2nsec" => {
                ClockKind::Nanoseconds
            }
            "uptime" => ClockKind::Ticks,
            "counter" => ClockKind::Order,
            _ => ClockKind::Cycles,
        }
    }
}

/// The conversion of raw stamps into instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockConversion {
    scale: Option<(u32, u32)>,
    hz: Option<u64>,
    shift_ns: i64,
}

/// The option TSC2NSEC: `ns = (cycles * mult) >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TscScale {
    pub(crate) mult: u32,
    pub(crate) shift: u32,
}

impl ClockConversion {
    /// The conversion for a clock, or why there is none. `offset` is DATE and OFFSET together.
    pub(crate) fn new(
        clock: &str,
        tsc: Option<TscScale>,
        hz: Option<u64>,
        offset: i64,
    ) -> Result<ClockConversion, Error> {
        let kind = ClockKind::of(clock);
        let refuse = |why, advice| Err(Error::Clock { clock: clock.to_owned(), why, advice });
        let mut conversion = ClockConversion { shift_ns: offset, ..ClockConversion::default() };
        match (kind, hz, tsc) {
            (ClockKind::Nanoseconds, None, Some(tsc)) if clock == "tsc2nsec" => {
                conversion.scale = Some((tsc.mult, tsc.shift));
            }
            (ClockKind::Nanoseconds, Some(_), _) => {
                return refuse("counts nanoseconds", "Leave --clock-hz out, or name another clock with --clock");
            }
            (ClockKind::Nanoseconds, None, _) => {}
            (ClockKind::Cycles, Some(hz), _) if hz > 0 => conversion.hz = Some(hz),
            (ClockKind::Cycles, _, Some(tsc)) => conversion.scale = Some((tsc.mult, tsc.shift)),
            (ClockKind::Cycles, ..) => {
                return refuse(
                    "counts cycles, and the file does not say how long one is",
                    "Give the counter's frequency with --clock-hz (dmesg | grep tsc shows it), or record with -C tsc2nsec, -C mono or -C local",
                );
            }
            (ClockKind::Ticks, ..) => {
                return refuse(
                    "ticks a hundred times a second: nearly all events have the same time",
                    "Record with -C mono or -C local",
                );
            }
            (ClockKind::Order, ..) => {
                return refuse("numbers the events and has no time", "Record with -C mono or -C local");
            }
        }
        Ok(conversion)
    }

    /// Whether raw stamps are instants as they are.
    pub(crate) fn is_identity(&self) -> bool {
        self.scale.is_none() && self.hz.is_none() && self.shift_ns == 0
    }

    /// The instant of a raw stamp that is one as it is, at most [`Ts::MAX`].
    #[inline]
    pub(crate) fn as_is(raw: u64) -> Ts {
        Ts(raw.min(Ts::MAX.0.cast_unsigned()).cast_signed())
    }

    /// The instant of a raw stamp, kept within [`Ts::MIN`] and [`Ts::MAX`].
    #[inline]
    pub(crate) fn ts(&self, raw: u64) -> Ts {
        if self.is_identity() {
            return ClockConversion::as_is(raw);
        }
        let mut ns = i128::from(raw);
        if let Some((mult, shift)) = self.scale {
            // u64 * u32 fits 96 bits.
            ns = ns.wrapping_mul(i128::from(mult)) >> shift.min(127);
        }
        if let Some(hz) = self.hz {
            ns = ns.wrapping_mul(1_000_000_000) / i128::from(hz);
        }
        ns = ns.saturating_add(i128::from(self.shift_ns)).clamp(i128::from(Ts::MIN.0), i128::from(Ts::MAX.0));
        Ts(i64::try_from(ns).unwrap_or(Ts::MAX.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tsc_is_scaled_in_128_bits() {
        let tsc = Some(TscScale { mult: 5_076_921, shift: 24 });
        let c = ClockConversion::new("x86-tsc", tsc, None, 0).unwrap();
        let raw = 1u64 << 60;
        assert_eq!(i128::from(c.ts(raw).0), (i128::from(raw) * 5_076_921) >> 24);
        assert!(ClockConversion::new("x86-tsc", None, None, 0).is_err());
        assert_eq!(ClockConversion::new("x86-tsc", None, Some(2_000_000_000), 0).unwrap().ts(10), Ts(5));
    }

    #[test]
    fn offsets_may_lead_below_zero_and_never_overflow() {
        let c = ClockConversion::new("local", None, None, -1000).unwrap();
        assert_eq!((c.ts(400), c.ts(u64::MAX)), (Ts(-600), Ts::MAX));
        assert_eq!(ClockConversion::default().ts(u64::MAX), Ts::MAX);
        // Both given: the file's own scale is used once, the label decides.
        let tsc = Some(TscScale { mult: 2, shift: 0 });
        assert_eq!(ClockConversion::new("tsc2nsec", tsc, None, 1).unwrap().ts(4), Ts(9));
        assert_eq!(ClockConversion::new("mono", tsc, None, 1).unwrap().ts(4), Ts(5));
    }

    #[test]
    fn clocks_without_time_are_refused_with_advice() {
        for clock in ["counter", "uptime", "x86-tsc", "ppc-tb"] {
            let e = ClockConversion::new(clock, None, None, 0).unwrap_err().to_string();
            assert!(e.contains(clock) && e.contains("-C mono"), "{e}");
        }
    }
}
