//! Where a pass or a listing begins and ends.

use sched::Ts;
use std::fmt;

/// An instant as a user gives it: from the trace's start, or on the trace's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// A number of nanoseconds after the first event.
    FromStart(i64),
    /// An instant of the trace's clock.
    At(Ts),
}

impl Where {
    /// Parses `1.25` (seconds), `150ms`, `20us`, `7ns`, `3s`, and with `@` in front the same on the
    /// trace's own clock. Exact to the nanosecond: no floating point is involved.
    pub fn parse(text: &str) -> Result<Where, String> {
        let (text, absolute) = match text.trim().strip_prefix('@') {
            Some(rest) => (rest, true),
            None => (text.trim(), false),
        };
        let ns = nanoseconds(text).ok_or_else(|| {
            format!("{text:?} is not a time; give seconds (1.25) or a number with ns, us, ms or s, such as 150ms")
        })?;
        Ok(if absolute { Where::At(Ts(ns)) } else { Where::FromStart(ns) })
    }

    /// The instant, in a trace that starts at `start`.
    pub fn in_trace(self, start: Ts) -> Ts {
        match self {
            Where::At(ts) => ts,
            Where::FromStart(ns) => Ts(start.0.saturating_add(ns).clamp(Ts::MIN.0, Ts::MAX.0)),
        }
    }
}

/// The time in seconds, as [`Where::parse`] takes it.
impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, ns) = match *self {
            Where::At(ts) => ("@", ts.0),
            Where::FromStart(ns) => ("", ns),
        };
        let (minus, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
        let fraction = format!(".{:09}", ns % 1_000_000_000);
        write!(f, "{sign}{minus}{}{}", ns / 1_000_000_000, fraction.trim_end_matches('0').trim_end_matches('.'))
    }
}

fn nanoseconds(text: &str) -> Option<i64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let digits: usize = match unit.trim() {
        "" | "s" => 9,
        "ms" => 6,
        "us" | "\u{b5}s" | "\u{3bc}s" => 3,
        "ns" => 0,
        _ => return None,
    };
    let (negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Digits beyond the nanosecond are cut.
    let kept: String = fraction.chars().chain(std::iter::repeat('0')).take(digits).collect();
    let value: i64 =
        format!("{whole}{kept}").parse().ok().or(if format!("{whole}{kept}").is_empty() { Some(0) } else { None })?;
    let value = value.min(Ts::MAX.0);
    Some(if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let ns = |text| Where::parse(text);
        assert_eq!(ns("1.25"), Ok(Where::FromStart(1_250_000_000)));
        assert_eq!(ns("0.000000001"), Ok(Where::FromStart(1)));
        assert_eq!(ns("150ms"), Ok(Where::FromStart(150_000_000)));
        assert_eq!(ns("2.5us"), Ok(Where::FromStart(2_500)));
        assert_eq!(ns(".5ms"), Ok(Where::FromStart(500_000)));
        assert_eq!(ns("7ns"), Ok(Where::FromStart(7)));
        assert_eq!(ns("@20.899224388"), Ok(Where::At(Ts(20_899_224_388))));
        assert_eq!(ns("-1ms"), Ok(Where::FromStart(-1_000_000)));
        for text in ["1.25", "0.000000001", "3", "-0.001", "@20.899224388", "0"] {
            assert_eq!(Where::parse(text).map(|at| at.to_string()).as_deref(), Ok(text));
        }
        for bad in ["", "x", "1h", "1.2.3", "--1", "1e3", ".", "99999999999999999999"] {
            assert!(ns(bad).is_err(), "{bad}");
        }
    }
}
