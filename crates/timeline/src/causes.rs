//! The looks of the causes of migrations: the same in every figure.

use draw::{Color, PT, Unit};
use sched::Cause;

/// Returns the colour of a cause. Those of steals, of idle and of periodic balance differ in lightness as well, so that they
/// differ with every sight and in grey. Sleepers, which wait nowhere, are apart.
pub fn color(cause: Cause) -> Color {
    match cause {
        Cause::Wakeup => Color::rgb(0x50, 0xc8, 0xf8),
        Cause::NewIdle => Color::rgb(0xd8, 0x30, 0x10),
        Cause::Idle => Color::rgb(0x10, 0x28, 0x7c),
        Cause::Periodic => Color::rgb(0x90, 0xd0, 0x50),
        Cause::NohzIdle => Color::rgb(0x38, 0x98, 0xb0),
        Cause::NewIdleSleeper => Color::rgb(0xf8, 0xb0, 0x98),
        Cause::IdleSleeper => Color::rgb(0x50, 0x50, 0x80),
        Cause::PeriodicSleeper => Color::rgb(0x80, 0xb0, 0x68),
        Cause::NohzIdleSleeper => Color::rgb(0x38, 0xc8, 0x98),
        Cause::Active => Color::rgb(0xb0, 0x98, 0x08),
        Cause::Affinity => Color::rgb(0x38, 0x68, 0x38),
        Cause::Stopper => Color::rgb(0x98, 0x80, 0x68),
        Cause::Exec => Color::rgb(0x98, 0x38, 0x08),
        Cause::NumaMove => Color::rgb(0xc8, 0x38, 0x80),
        Cause::NumaSwap => Color::rgb(0xe0, 0x80, 0xb0),
        Cause::RealTime => Color::rgb(0x80, 0x08, 0xc8),
        Cause::Unknown => Color::grey(0x30),
    }
}

/// Returns the length of the dashes of a cause's lines; 0 for a solid line.
pub fn dash(cause: Cause) -> Unit {
    match cause {
        Cause::Idle | Cause::IdleSleeper => 3 * PT,
        Cause::Periodic | Cause::PeriodicSleeper => PT,
        _ => 0,
    }
}
