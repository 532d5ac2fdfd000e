//! Colours for tasks.
//!
//! Sixteen colours, found by a search that maximises the least distance (in Oklab) between any two
//! as seen with normal sight, protanopia, deuteranopia and tritanopia (Machado, Oliveira and
//! Fernandes 2009, full severity), then ordered so that those with neighbouring numbers differ
//! most: tasks forked one after another have neighbouring numbers, and run side by side.

use draw::{Color, Shape};
use sched::{Dur, Pid};
use std::cmp::Reverse;

/// The colours, in their order.
pub const PALETTE: [Color; 16] = [
    Color::rgb(0x40, 0x88, 0xb8),
    Color::rgb(0x58, 0x28, 0x58),
    Color::rgb(0xa0, 0xd0, 0x88),
    Color::rgb(0x58, 0x10, 0xe8),
    Color::rgb(0x88, 0x88, 0x40),
    Color::rgb(0xd0, 0xa0, 0xe8),
    Color::rgb(0x88, 0x10, 0x10),
    Color::rgb(0x70, 0x58, 0xa0),
    Color::rgb(0xe8, 0xd0, 0x10),
    Color::rgb(0x28, 0xb8, 0xa0),
    Color::rgb(0x10, 0x70, 0x58),
    Color::rgb(0x40, 0x10, 0xa0),
    Color::rgb(0xe8, 0x40, 0xe8),
    Color::rgb(0x58, 0xe8, 0xe8),
    Color::rgb(0xd0, 0xa0, 0x40),
    Color::rgb(0xb8, 0x28, 0x28),
];

/// The places in the palette of the colours that differ most, also with deuteranopia: the tasks that matter most have
/// these.
pub const APART: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 8, 9];
/// The places of the other colours.
const REST: [usize; 7] = [7, 10, 11, 12, 13, 14, 15];

/// Assigns places in the palette to items in the order of their weight. The first nine have colours of [`APART`], one
/// each, the next seven the other colours, one each, and so on. `wish` gives a number to each item: items with equal
/// numbers have the same place in every trace, unless a heavier item has it.
pub fn assign<T: Copy>(ranked: &[T], wish: impl Fn(T) -> usize) -> Vec<(T, usize)> {
    let mut assigned = Vec::with_capacity(ranked.len());
    for as_many in ranked.chunks(PALETTE.len()) {
        let mut taken = [false; PALETTE.len()];
        for (rank, item) in as_many.iter().enumerate() {
            let pool: &[usize] = if rank < APART.len() { &APART } else { &REST };
            let places = (0..pool.len()).map(|step| pool[wish(*item).wrapping_add(step) % pool.len()]);
            let place = places.into_iter().find(|place| !taken[*place]).unwrap_or(0);
            taken[place] = true;
            assigned.push((*item, place));
        }
    }
    assigned
}

/// The colours of the tasks of a trace.
#[derive(Clone, Debug, Default)]
pub struct TaskColors {
    /// The places of the tasks that run longest, by PID.
    own: Vec<(Pid, usize)>,
}

impl TaskColors {
    /// Gives a colour of its own to each of the tasks that run longest, as many as there are colours.
    pub fn of_longest(times: impl IntoIterator<Item = (Pid, Dur)>) -> TaskColors {
        let mut times: Vec<(Pid, Dur)> = times.into_iter().collect();
        times.sort_unstable_by_key(|(pid, time)| (Reverse(*time), *pid));
        let longest: Vec<Pid> = times.iter().take(PALETTE.len()).map(|(pid, _)| *pid).collect();
        let mut own = assign(&longest, |pid| pid.0.unsigned_abs() as usize);
        own.sort_unstable();
        TaskColors { own }
    }

    /// Returns the place of a task's colour in the palette. Tasks that run less have one by their number.
    pub fn place(&self, pid: Pid) -> usize {
        match self.own.binary_search_by_key(&pid, |(own, _)| *own) {
            Ok(found) => self.own[found].1,
            Err(_) => pid.0.rem_euclid(PALETTE.len() as i32) as usize,
        }
    }
}

/// Returns the colour of text on this ground.
pub fn ink_on(ground: Color) -> Color {
    let [r, g, b] = ground.0.map(u32::from);
    if 2 * r + 5 * g + b > 8 * 0x80 { INK } else { Color::WHITE }
}

/// Colours of markers and of lines over time. They differ at a glance, also with deuteranopia.
pub const MARKERS: [Color; 5] = [
    Color::rgb(0xc0, 0x10, 0x20),
    Color::rgb(0x10, 0x40, 0xc0),
    Color::rgb(0x00, 0xa0, 0x70),
    Color::rgb(0xb0, 0x60, 0xe0),
    INK,
];

/// Returns the look of the markers of the kind in this place: neighbours differ in colour and in shape.
pub fn marker(index: usize) -> (Shape, Color) {
    (Shape::ALL[index % Shape::ALL.len()], MARKERS[(index + index / Shape::ALL.len()) % MARKERS.len()])
}

/// Tasks that are not in question.
pub const OTHER: Color = Color::grey(0x60);
/// Several tasks in one column, none of which has the most.
pub const MIXED: Color = Color::grey(0xd0);
/// The ground of the lane of a CPU without any event.
pub const NO_EVENTS: Color = Color::rgb(0xf4, 0xee, 0xdf);
/// Time in which a CPU is offline.
pub const OFFLINE: Color = Color::grey(0x90);
/// The colour of text and axes.
pub const INK: Color = Color::grey(0x20);
/// The colour of text of less weight.
pub const FAINT: Color = Color::grey(0x60);
/// Rules between lanes and at ticks.
pub const RULE: Color = Color::grey(0xd0);

/// Bands of a quantity from low to high: light to dark, so that it reads without colour as well.
pub const BANDS: [Color; 6] = [
    Color::rgb(0xfd, 0xe7, 0xc8),
    Color::rgb(0xfb, 0xc1, 0x8a),
    Color::rgb(0xf4, 0x8f, 0x5a),
    Color::rgb(0xdb, 0x57, 0x4a),
    Color::rgb(0xa4, 0x2a, 0x5b),
    Color::rgb(0x58, 0x12, 0x57),
];

/// Marks other than tasks, in figures that show tasks as well: the three of the space that stand
/// farthest from the palette, from the greys and from each other, to all four sights.
pub const BESIDE_TASKS: [Color; 3] =
    [Color::rgb(0x00, 0x00, 0x00), Color::rgb(0x00, 0x50, 0x80), Color::rgb(0xf0, 0x50, 0x10)];

#[cfg(test)]
mod tests {
    use super::*;
    use deltae::{DEMethod, DeltaE, LabValue};

    type V = [f64; 3];

    fn times(m: &[V; 3], v: V) -> V {
        m.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
    }

    fn linear(c: Color) -> V {
        c.0.map(|level| {
            let v = f64::from(level) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn oklab(rgb: V) -> V {
        let lms = times(
            &[
                [0.412_221_47, 0.536_332_54, 0.051_445_99],
                [0.211_903_5, 0.680_699_55, 0.107_396_96],
                [0.088_302_46, 0.281_718_84, 0.629_978_7],
            ],
            rgb,
        );
        times(
            &[
                [0.210_454_26, 0.793_617_79, -0.004_072_05],
                [1.977_998_5, -2.428_592_2, 0.450_593_71],
                [0.025_904_04, 0.782_771_77, -0.808_675_77],
            ],
            lms.map(f64::cbrt),
        )
    }

    /// Machado, Oliveira and Fernandes 2009, severity 1.0.
    const SIGHTS: [[V; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_82, 0.042_94, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.3039]],
    ];

    fn least_distance(a: Color, b: Color) -> f64 {
        let seen = |c: Color, sight| oklab(times(sight, linear(c)).map(|v: f64| v.clamp(0.0, 1.0)));
        let distance = |sight| {
            let (a, b) = (seen(a, sight), seen(b, sight));
            (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
        };
        SIGHTS.iter().map(distance).fold(f64::MAX, f64::min)
    }

    /// Converts linear sRGB to CIE L*a*b* of the white point D65 (IEC 61966-2-1, CIE 15).
    fn lab(rgb: V) -> LabValue {
        let xyz = times(
            &[
                [0.412_456_4, 0.357_576_1, 0.180_437_5],
                [0.212_672_9, 0.715_152_2, 0.072_175],
                [0.019_333_9, 0.119_192, 0.950_304_1],
            ],
            rgb,
        );
        let [x, y, z] = [xyz[0] / 0.950_47, xyz[1], xyz[2] / 1.088_83]
            .map(|t| if t > 216.0 / 24_389.0 { t.cbrt() } else { (24_389.0 / 27.0 * t + 16.0) / 116.0 });
        let [l, a, b] = [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)].map(|v| v as f32);
        LabValue { l, a, b }
    }

    /// Returns the difference by CIEDE2000 of two colours as a sight has them; from 15 on they differ at a glance.
    fn difference(a: Color, b: Color, sight: &[V; 3]) -> f64 {
        let seen = |color: Color| lab(times(sight, linear(color)).map(|v| v.clamp(0.0, 1.0)));
        f64::from(*DeltaE::new(seen(a), seen(b), DEMethod::DE2000).value())
    }

    #[test]
    fn tasks_that_matter_most_differ_with_deuteranopia_too() {
        for sight in [&SIGHTS[0], &SIGHTS[2]] {
            for (i, a) in APART.iter().enumerate() {
                for b in &APART[i + 1..] {
                    let d = difference(PALETTE[*a], PALETTE[*b], sight);
                    assert!(d >= 15.0, "{a} and {b}: {d:.1}");
                }
                for other in [Color::WHITE, OTHER, MIXED] {
                    let d = difference(PALETTE[*a], other, sight);
                    assert!(d >= 13.0, "{a} and {other:?}: {d:.1}");
                }
            }
        }
        for (i, a) in MARKERS.iter().enumerate() {
            for b in MARKERS[i + 1..].iter().chain([&Color::WHITE]) {
                let d = [&SIGHTS[0], &SIGHTS[2]].map(|sight| difference(*a, *b, sight));
                assert!(d.iter().all(|d| *d >= 15.0), "markers {a:?} and {b:?}: {d:?}");
            }
        }
        let longest = (0..20).map(|n| (Pid(100 + 16 * n), Dur(1_000 - n as u64)));
        let colors = TaskColors::of_longest(longest);
        let places: Vec<usize> = (0..20).map(|n| colors.place(Pid(100 + 16 * n))).collect();
        // Without an assignment all of them would have one colour.
        assert!(places[..9].iter().all(|place| APART.contains(place)));
        let own: std::collections::BTreeSet<usize> = places[..16].iter().copied().collect();
        assert_eq!((own.len(), &places[16..]), (16, &[100 % 16; 4][..]));
        assert_eq!(TaskColors::default().place(Pid(-1)), 15);
    }

    /// The lightness of a colour that is printed in grey, from 0 to 100.
    fn lightness(color: Color) -> f64 {
        let [r, g, b] = linear(color);
        116.0 * (0.2126 * r + 0.7152 * g + 0.0722 * b).cbrt() - 16.0
    }

    #[test]
    fn causes_of_migrations_differ_also_with_deuteranopia_and_in_grey() {
        use crate::causes::{color, dash};
        use sched::Cause;
        for (i, a) in Cause::ALL.into_iter().enumerate() {
            for b in Cause::ALL.into_iter().skip(i + 1) {
                for sight in [&SIGHTS[0], &SIGHTS[2]] {
                    let d = difference(color(a), color(b), sight);
                    assert!(d >= 9.0, "{a:?} and {b:?}: {d:.1}");
                }
            }
            // On white, and over tasks in pale grey.
            for ground in [Color::WHITE, Color::grey(0xd8)] {
                let d = [&SIGHTS[0], &SIGHTS[2]].map(|sight| difference(color(a), ground, sight));
                assert!(d.iter().all(|d| *d >= 12.0), "{a:?}: {d:?}");
            }
        }
        let balances = [Cause::NewIdle, Cause::Idle, Cause::Periodic];
        for (i, a) in balances.into_iter().enumerate() {
            for b in balances.into_iter().skip(i + 1) {
                let (light, other) = (lightness(color(a)), lightness(color(b)));
                assert!((light - other).abs() >= 25.0, "{a:?} and {b:?}: {light:.0} and {other:.0}");
                assert_ne!(dash(a), dash(b), "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn neighbours_can_be_told_apart_by_everyone() {
        for (i, a) in PALETTE.iter().enumerate() {
            for (k, b) in PALETTE.iter().enumerate() {
                let apart = (16 + k - i) % 16;
                let least = match apart {
                    0 => continue,
                    1 | 15 => 0.15,
                    2 | 14 => 0.12,
                    _ => 0.07,
                };
                let d = least_distance(*a, *b);
                assert!(d >= least, "{a:?} and {b:?}, {apart} apart: {d:.3}");
            }
        }
    }

    #[test]
    fn what_is_not_a_task_looks_like_none() {
        for (i, a) in BESIDE_TASKS.iter().enumerate() {
            for b in PALETTE.iter().chain([&Color::WHITE, &OTHER, &MIXED]) {
                assert!(least_distance(*a, *b) > 0.06, "{a:?} and {b:?}: {:.3}", least_distance(*a, *b));
            }
            for b in &BESIDE_TASKS[i + 1..] {
                assert!(least_distance(*a, *b) > 0.2, "{a:?} and {b:?}: {:.3}", least_distance(*a, *b));
            }
        }
    }

    #[test]
    fn no_task_looks_idle_or_grey() {
        for color in PALETTE {
            for other in [Color::WHITE, OTHER, MIXED] {
                let (a, b) = (oklab(linear(color)), oklab(linear(other)));
                let d = (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt();
                assert!(d > 0.08, "{color:?} and {other:?}: {d:.3}");
            }
        }
    }
}
