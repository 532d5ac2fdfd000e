//! `prev_state` of a `sched_switch`: one number, five meanings (`docs/trace-dat.md`, 11.1).

use crate::text::expr;
use sched::{PrevState, StateClass};
use serde::{Deserialize, Serialize};

/// The letters and masks of one event format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct States {
    /// The bits that have letters.
    letters: Vec<(u64, char)>,
    /// Bits of which none is set where the task is runnable (`R`).
    report: u64,
    /// The bit of a preempted task (`+`); 0 where the kernel reports none.
    plus: u64,
    encoding: Encoding,
}

/// The meaning of the numbers. The format text does not decide it: the kernels of the last two have the text of
/// the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Encoding {
    /// A mask, as the text has it: all kernels but those below.
    Mask,
    /// 4.14: an index, 0 R, 1 S, 2 D, 3 T, 4 t, 5 X, 6 Z, 7 P, 8 I; preempted is 0x1000.
    Index,
    /// 4.15 to 4.20: one shifted by the index, so that R is 1 and S is 2.
    Shifted,
}

/// The evidence of the data on the encoding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The idle task always switches out in R.
    pub(crate) idle_zero: bool,
    pub(crate) idle_one: bool,
    /// 5 and 6 are X and Z as an index; as masks they would be S and T, or D and T, at once.
    pub(crate) five_or_six: bool,
    pub(crate) bit_12: bool,
}

impl Evidence {
    pub(crate) fn add(&mut self, raw: u64, idle: bool) {
        self.idle_zero |= idle && raw == 0;
        self.idle_one |= idle && raw == 1;
        self.five_or_six |= matches!(raw, 5 | 6);
        self.bit_12 |= raw == 0x1000;
    }
}

/// 5.0 and later; also for a text that cannot be understood.
const MODERN: [(u64, char); 8] =
    [(1, 'S'), (2, 'D'), (4, 'T'), (8, 't'), (0x10, 'X'), (0x20, 'Z'), (0x40, 'P'), (0x80, 'I')];

/// Bits of a `prev_state` that is a mask.
#[derive(Clone, Copy, Debug)]
struct NamedBits {
    /// The bits that have a name or a meaning.
    named: u64,
    /// The bits of a dead task.
    dead: u64,
}

impl States {
    /// Returns the encoding of Linux 5.0 and later.
    pub(crate) fn modern() -> States {
        States { letters: MODERN.to_vec(), report: 0xff, plus: 0x100, encoding: Encoding::Mask }
    }

    /// Reads the encoding from the `print fmt` of `sched_switch`: the table of `__print_flags`, the mask of the test
    /// before it, and the mask of the `"+"`.
    pub(crate) fn from_print_fmt(fmt: &str) -> Option<States> {
        let at = fmt.find("__print_flags(")?;
        let arguments = expr::arguments(fmt.get(at..)?.split_once('(')?.1)?;
        let mut arguments = arguments.into_iter();
        let (mask, has_field) = expr::fold(arguments.next()?)?;
        if !has_field {
            return None;
        }
        arguments.next()?;
        let letters: Vec<(u64, char)> = arguments.filter_map(letter).collect();
        let all = letters.iter().fold(0, |all, (bit, _)| all | bit);
        // Without a mask of its own (before 3.2) the field stands bare and folds to all ones.
        let report = if mask == -1 { all } else { mask.cast_unsigned() };
        let plus = plus_mask(fmt).unwrap_or(0);
        (!letters.is_empty()).then_some(States { letters, report: report & !plus, plus, encoding: Encoding::Mask })
    }

    /// Returns the encoding that the kernel used.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns these states with an encoding that is already known.
    pub(crate) fn encoded(self, encoding: Encoding) -> States {
        States { encoding, ..self }
    }

    /// Settles the encoding by the data, and by the kernel's release where they do not decide.
    pub(crate) fn settle(&mut self, evidence: &Evidence, release: Option<(u32, u32)>) {
        // Only texts with a `+` of 0x100 can be any of the three.
        if self.plus != 0x100 {
            return;
        }
        let is = |from, to| release.is_some_and(|r| r >= from && r <= to);
        if evidence.idle_one && !evidence.idle_zero {
            self.encoding = Encoding::Shifted;
        } else if evidence.five_or_six || evidence.bit_12 || is((4, 14), (4, 14)) {
            self.encoding = Encoding::Index;
        } else if !evidence.idle_zero && is((4, 15), (4, 20)) {
            self.encoding = Encoding::Shifted;
        }
    }

    /// Decodes a number. The second value is true if it has unexplained bits. `kthread`: the
    /// task is a kernel thread that idles in state I, which collides with `+` in one encoding.
    pub(crate) fn decode(&self, raw: u64, kthread: impl FnOnce() -> bool) -> (PrevState, bool) {
        let shown = raw as u32;
        let state = |class| PrevState { class, raw: shown };
        match self.encoding {
            Encoding::Index => match raw {
                0 => (state(StateClass::Runnable), false),
                0x1000 | 0x100 => (state(StateClass::Preempted), false),
                5 | 6 => (state(StateClass::Dead), false),
                1..=8 => (state(StateClass::Asleep), false),
                _ => (state(StateClass::Asleep), true),
            },
            Encoding::Shifted => match raw {
                0 | 1 => (state(StateClass::Runnable), false),
                0x100 if kthread() => (state(StateClass::Asleep), false),
                0x100 => (state(StateClass::Preempted), false),
                0x20 | 0x40 => (state(StateClass::Dead), false),
                raw if raw & 0xff == raw => (state(StateClass::Asleep), false),
                _ => (state(StateClass::Asleep), true),
            },
            Encoding::Mask => self.decode_mask(raw, shown, self.bits()),
        }
    }

    /// The decoded small numbers, for decoding millions: nearly all numbers are small.
    /// Nothing where more than the number decides.
    pub(crate) fn table(&self) -> Vec<(StateClass, bool)> {
        const SMALL: u64 = 0x201;
        let classes = |(state, unknown): (PrevState, bool)| (state.class, unknown);
        match self.encoding {
            Encoding::Shifted => Vec::new(),
            Encoding::Index => (0..SMALL).map(|raw| classes(self.decode(raw, || false))).collect(),
            Encoding::Mask => {
                let bits = self.bits();
                (0..SMALL).map(|raw| classes(self.decode_mask(raw, raw as u32, bits))).collect()
            }
        }
    }

    /// The bits that have a name or a meaning, and those of a dead task.
    fn bits(&self) -> NamedBits {
        let of = |is: fn(char) -> bool| self.letters.iter().filter(|(_, c)| is(*c)).fold(0, |all, (bit, _)| all | bit);
        NamedBits { named: self.report | self.plus | of(|_| true), dead: of(|c| matches!(c, 'X' | 'Z' | 'x')) }
    }

    fn decode_mask(&self, raw: u64, shown: u32, bits: NamedBits) -> (PrevState, bool) {
        if raw == 0 {
            return (PrevState { class: StateClass::Runnable, raw: shown }, false);
        }
        let unknown = raw & !bits.named != 0;
        let dead = raw & bits.dead != 0;
        let class = match () {
            () if raw & self.plus != 0 && self.plus != 0 => StateClass::Preempted,
            () if dead => StateClass::Dead,
            () if raw & self.report == 0 && !unknown => StateClass::Runnable,
            () => StateClass::Asleep,
        };
        (PrevState { class, raw: shown }, unknown)
    }

    /// Returns the state as `trace-cmd report` prints it where the encoding is a known one: `S`, `R+`, `D|W`.
    pub(crate) fn letters(&self, raw: u64) -> String {
        let index = match self.encoding {
            Encoding::Mask => None,
            Encoding::Index => Some(raw),
            Encoding::Shifted if raw == 0 => Some(0),
            Encoding::Shifted => Some(u64::from(raw.trailing_zeros())),
        };
        if let Some(index) = index {
            let letter = usize::try_from(index).ok().and_then(|i| "RSDTtXZPI".chars().nth(i));
            return letter.map_or_else(|| if raw == 0x1000 { "R+".into() } else { format!("{raw:#x}") }, String::from);
        }
        let mut letters = String::new();
        for (_, letter) in self.letters.iter().filter(|(bit, _)| raw & bit & !self.plus != 0) {
            if !letters.is_empty() {
                letters.push('|');
            }
            letters.push(*letter);
        }
        match raw & self.report {
            _ if !letters.is_empty() => {}
            0 => letters.push('R'),
            unnamed => letters = format!("{unnamed:#x}"),
        }
        if raw & self.plus != 0 {
            letters.push('+');
        }
        letters
    }
}

/// `{ 0x0001, "S" }`; bits above what the kernel names one letter for are left out.
fn letter(pair: &str) -> Option<(u64, char)> {
    let (value, name) = pair.strip_prefix('{')?.strip_suffix('}')?.split_once(',')?;
    let bit = expr::constant(value.trim())?.cast_unsigned();
    let name = expr::string_literal(name)?;
    let mut chars = name.chars();
    let letter = chars.next()?;
    // 3.4 to 4.13 have e.g. { 1, "S"} and { 128, "K" }: always one letter.
    (bit.is_power_of_two() && chars.next().is_none()).then_some((bit, letter))
}

/// The mask of `… REC->prev_state & MASK ? "+" : ""`.
fn plus_mask(fmt: &str) -> Option<u64> {
    let (before, _) = fmt.split_once("? \"+\"").or_else(|| fmt.split_once("?\"+\""))?;
    // The condition starts after the last comma outside of parentheses.
    let mut depth = 0i32;
    let start = before.char_indices().rev().find_map(|(at, c)| {
        match c {
            ')' => depth = depth.saturating_add(1),
            '(' => depth = depth.saturating_sub(1),
            ',' if depth <= 0 => return Some(at),
            _ => {}
        }
        None
    });
    let condition = before.get(start?..)?.strip_prefix(',')?.trim();
    let (mask, has_field) = expr::fold(condition)?;
    has_field.then_some(mask.cast_unsigned())
}

#[cfg(test)]
mod tests;
