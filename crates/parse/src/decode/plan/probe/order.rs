//! The order of the run queues at a pick, as `schedviz record --why=picks` reads it from the kernel: the rule by which that gives the task.
//!
//! Level 0 is the run queue of the picked task, and each level above it that of the group of the level below. At the switch the picked ones
//! have left the order of their run queues, and the task that was switched out is in it again if it can run on: what is left are the rivals.

use super::At;
use crate::bytes::Endian;
use crate::decode::format::EventFormat;
use sched::probe::ChoiceRule;

/// The sizes of the fields of a level: sum, load, zero, the shift of weights where the kernel has one, and both times of the first rival.
const SUMS: [(&str, usize); 6] =
    [("sum", 8), ("load", 8), ("zero", 8), ("shift", 4), ("first_vruntime", 8), ("first_deadline", 8)];

/// The places of the numbers that show the order, in records whose fields have exactly the layout that the recorder gives them.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderAt {
    /// The place of the sums of level 0, and of the first field of level 1.
    own: usize,
    group: usize,
    /// The number of levels of groups.
    levels: u8,
    /// Whether the kernel scales weights by a shift of each run queue; otherwise by ten bits.
    has_shift: bool,
    /// Whether slices are protected up to a virtual time (6.16 and later); otherwise while the lag's place has the deadline.
    has_protected_time: bool,
}

/// A task or a group among those of its run queue.
#[derive(Clone, Copy, Debug)]
struct Level {
    vruntime: i64,
    deadline: i64,
    weight: u64,
    /// The number of tasks and groups on the run queue.
    length: u64,
    /// The mean of the virtual run times of the rivals: the sum, by weight, of those less `zero`, and the sum of weights.
    sum: i64,
    load: u64,
    zero: i64,
    shift: Option<u32>,
    /// The virtual run time and the deadline of the rival with the earliest deadline.
    of_first: (i64, i64),
    /// Whether its slice, within which it ran already, protects it.
    is_protected: bool,
}

impl OrderAt {
    /// The places, if the record has these fields.
    pub(super) fn of(format: &EventFormat) -> Option<OrderAt> {
        let field = |name: &str| At::of(format, name);
        let has_shift = field("shift0").is_some();
        let has_protected_time = field("vprot1").is_some();
        let order = OrderAt {
            own: field("sum0")?.offset,
            group: field("group1")?.offset,
            levels: (1..=u8::MAX).take_while(|level| field(&format!("left{level}")).is_some()).last()?,
            has_shift,
            has_protected_time,
        };
        let protection = if has_protected_time { "vprot" } else { "vlag" };
        let group = [("group", 8), ("vruntime", 8), ("deadline", 8), ("weight", 8), (protection, 8), ("nr", 4)];
        let sums = || SUMS.into_iter().filter(|(name, _)| has_shift || *name != "shift");
        let mut at = order.own;
        let mut follows = |name: String, size: usize| {
            let fits = field(&name).is_some_and(|field| field.offset == at && field.size == size);
            at += size;
            fits
        };
        let mut fits = sums().all(|(name, size)| follows(format!("{name}0"), size));
        for level in 1..=order.levels {
            let all = group.into_iter().chain(sums()).chain([("left", 8)]);
            fits &= all.into_iter().all(|(name, size)| follows(format!("{name}{level}"), size));
        }
        (fits && follows(format!("group{}", order.levels + 1), 8)).then_some(order)
    }

    /// The bytes of the sums of a level, and of all of a level.
    fn sizes(&self) -> (usize, usize) {
        let sums = if self.has_shift { 44 } else { 40 };
        (sums, 44 + sums + 8)
    }

    /// The rule of the pick of a task with these numbers, on a run queue of this length.
    pub(super) fn rule(&self, p: &[u8], e: Endian, own: (i64, i64, u64), length: u64) -> Option<ChoiceRule> {
        let (sums, size) = self.sizes();
        let word = |at: usize| e.uint(p, at, 8);
        let time = |at: usize| word(at).map(u64::cast_signed);
        let level = |at: usize, (vruntime, deadline, weight): (i64, i64, u64), length, is_protected| {
            let shift = if self.has_shift { Some(e.u32(p, at + 24)?) } else { None };
            let first = at + sums - 16;
            let (sum, load, zero) = (time(at)?, word(at + 8)?, time(at + 16)?);
            let (first_vruntime, first_deadline) = (time(first)?, time(first + 8)?);
            let of_first = (first_vruntime, first_deadline);
            Some(Level { vruntime, deadline, weight, length, sum, load, zero, shift, of_first, is_protected })
        };
        let place = |nth: u8| self.group + usize::from(nth - 1) * size;
        let mut rule = level(self.own, own, length, false)?.rule();
        for nth in 1..=self.levels {
            let at = place(nth);
            let group = word(at)?;
            if group == 0 {
                return Some(rule);
            }
            let (vruntime, deadline, weight) = (time(at + 8)?, time(at + 16)?, word(at + 24)?);
            let protection = time(at + 32)?;
            let is_within = match self.has_protected_time {
                true => vruntime.wrapping_sub(protection) < 0,
                false => protection == deadline,
            };
            // The groups above the task that left end with a null one.
            let mut left =
                (1..=self.levels).map_while(|other| word(place(other) + size - 8)).take_while(|other| *other != 0);
            let is_protected = is_within && left.any(|other| other == group);
            let length = u64::from(e.u32(p, at + 40)?);
            rule = rule_of_both(rule, level(at + 44, (vruntime, deadline, weight), length, is_protected)?.rule());
        }
        // The group of the last recorded level is within another one, whose order is not recorded.
        let is_whole = word(place(self.levels) + size)? == 0;
        Some(match rule {
            rule if is_whole => rule,
            ChoiceRule::Beaten | ChoiceRule::Ineligible => rule,
            _ => ChoiceRule::Unrecorded,
        })
    }
}

/// The rule of a pick that was made on two levels: the one that says less.
fn rule_of_both(one: ChoiceRule, other: ChoiceRule) -> ChoiceRule {
    if one as u8 >= other as u8 { one } else { other }
}

impl Level {
    /// Whether one with this virtual run time is eligible: it has not had more than its share (`vruntime_eligible`).
    fn is_eligible(&self, vruntime: i64) -> bool {
        let weight = match self.shift {
            None => (self.weight >> 10).max(2),
            Some(0) => self.weight,
            Some(shift) => (self.weight.checked_shr(shift).unwrap_or(0)).max(2),
        };
        let key = |vruntime: i64| i128::from(vruntime.wrapping_sub(self.zero));
        let sum = i128::from(self.sum) + key(self.vruntime) * i128::from(weight);
        let load = i128::from(self.load) + i128::from(weight);
        sum >= key(vruntime) * load
    }

    /// The rule by which the kernel picks here (`pick_eevdf`).
    fn rule(&self) -> ChoiceRule {
        if self.length <= 1 {
            return ChoiceRule::Only;
        }
        let is_beaten = self.of_first.1.wrapping_sub(self.deadline) < 0;
        match (self.is_eligible(self.vruntime), is_beaten) {
            (false, _) => ChoiceRule::Ineligible,
            (true, false) => ChoiceRule::Earliest,
            (true, true) if self.is_protected => ChoiceRule::Protected,
            (true, true) if self.is_eligible(self.of_first.0) => ChoiceRule::Beaten,
            // The earlier one is not eligible: it is the only rival, or others can be earlier as well.
            (true, true) if self.length == 2 => ChoiceRule::Earliest,
            (true, true) => ChoiceRule::PossiblyEarliest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run queue whose picked one has a weight of 1,024, beside rivals of which the first has this virtual run time and this deadline.
    fn level(vruntime: i64, deadline: i64, length: u64, rivals: &[(i64, i64)], is_protected: bool) -> Level {
        let sum = rivals.iter().map(|(vruntime, _)| (vruntime - 1_000) * 1_024).sum();
        let of_first = rivals.iter().copied().min_by_key(|(_, deadline)| *deadline).unwrap_or_default();
        let load = 1_024 * rivals.len() as u64;
        Level {
            vruntime,
            deadline,
            weight: 1 << 20,
            length,
            sum,
            load,
            zero: 1_000,
            shift: None,
            of_first,
            is_protected,
        }
    }

    #[test]
    fn a_level_has_the_rule_of_the_kernel() {
        use ChoiceRule::{Beaten, Earliest, Ineligible, Only, PossiblyEarliest, Protected};
        let rule = |own: (i64, i64), rivals: &[(i64, i64)], is_protected| {
            level(own.0, own.1, rivals.len() as u64 + 1, rivals, is_protected).rule()
        };
        assert_eq!(rule((1_000, 4_000), &[], false), Only);
        // The mean of both is 1,100.
        assert_eq!(rule((1_000, 4_000), &[(1_200, 4_200)], false), Earliest);
        assert_eq!(rule((1_200, 4_000), &[(1_000, 4_200)], false), Ineligible);
        // The earlier one has had more than its share; a second rival can be earlier as well, and be eligible.
        assert_eq!(rule((1_000, 4_000), &[(1_200, 3_900)], false), Earliest);
        assert_eq!(rule((1_000, 4_000), &[(1_200, 3_900), (1_010, 3_950)], false), PossiblyEarliest);
        assert_eq!(rule((1_100, 4_000), &[(1_000, 3_900), (1_300, 5_000)], false), Beaten);
        assert_eq!(rule((1_100, 4_000), &[(1_000, 3_900), (1_300, 5_000)], true), Protected);
    }

    #[test]
    fn weights_are_shifted_as_the_kernel_does() {
        let mut level = level(1_000, 4_000, 2, &[(1_200, 4_200)], false);
        // The sums are of whole weights now: the picked one weighs 1,024 times as much as its rival, and the mean is nearly its own.
        level.shift = Some(0);
        assert!(level.is_eligible(1_000) && !level.is_eligible(1_001));
        level.shift = Some(10);
        assert!(level.is_eligible(1_100) && !level.is_eligible(1_101));
        level.shift = Some(200);
        assert!(level.is_eligible(1_199) && !level.is_eligible(1_200));
    }

    /// The layout of the recorder, with one level of groups.
    fn format(has_shift: bool, broken: bool) -> EventFormat {
        let (mut text, mut offset) = ("name: pick\nID: 9\nformat:\n".to_owned(), 8);
        let sums = |level: u8| {
            let names = SUMS.into_iter().filter(move |(name, _)| has_shift || *name != "shift");
            names.map(move |(name, size)| (format!("{name}{level}"), size))
        };
        let own = [("group", 8), ("vruntime", 8), ("deadline", 8), ("weight", 8), ("vlag", 8), ("nr", 4)];
        let own = own.map(|(name, size)| (format!("{name}1"), size));
        let rest = [("left1".to_owned(), if broken { 4 } else { 8 }), ("group2".to_owned(), 8)];
        for (field, size) in sums(0).chain(own).chain(sums(1)).chain(rest) {
            text.push_str(&format!("\tfield:u{} {field};\toffset:{offset};\tsize:{size};\tsigned:0;\n", size * 8));
            offset += size;
        }
        EventFormat::parse("lb", &text).unwrap()
    }

    /// A record: the sums of level 0, level 1, and the group above it.
    fn record(own: [i64; 5], group: [i64; 5], nr: u32, sums: [i64; 5], left: i64, top: i64) -> Vec<u8> {
        let words = |words: &[i64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let parts =
            [vec![0; 8], words(&own), words(&group), nr.to_le_bytes().to_vec(), words(&sums), words(&[left, top])];
        parts.concat()
    }

    #[test]
    fn a_record_has_the_rule_of_all_levels() {
        let at = OrderAt::of(&format(false, false)).expect("the recorder's layout");
        assert!(OrderAt::of(&format(true, false)).is_some_and(|at| at.has_shift));
        assert!(OrderAt::of(&format(false, true)).is_none());
        let (own, alone) = ((1_000, 4_000, 1 << 20), [0, 0, 1_000, 0, 0]);
        let rule = |group: [i64; 5], nr, sums, left, top| {
            let bytes = record(alone, group, nr, sums, left, top);
            at.rule(&bytes, Endian::Little, own, 1)
        };
        let group = [77, 100, 400, 1 << 20, 400];
        // The other group has a virtual run time of 80, and an earlier or a later deadline.
        let sums = |deadline: i64| [-20 * 1_024, 1_024, 100, 80, deadline];
        let eligible = [77, 70, 400, 1 << 20, 400];
        assert_eq!(rule(eligible, 2, sums(500), 0, 0), Some(ChoiceRule::Earliest));
        assert_eq!(rule(group, 2, sums(500), 0, 0), Some(ChoiceRule::Ineligible));
        assert_eq!(rule(group, 1, sums(500), 0, 0), Some(ChoiceRule::Only));
        // Three groups: the first one is eligible and earlier.
        let three = [(80 - 100) * 1_024 + 500 * 1_024, 2_048, 100, 80, 300];
        assert_eq!(rule(eligible, 3, three, 0, 0), Some(ChoiceRule::Beaten));
        assert_eq!(rule(eligible, 3, three, 77, 0), Some(ChoiceRule::Protected));
        assert_eq!(rule(eligible, 3, three, 78, 0), Some(ChoiceRule::Beaten));
        // Above the recorded groups is another one.
        assert_eq!(rule(eligible, 2, sums(500), 0, 99), Some(ChoiceRule::Unrecorded));
        // A task of the root group has none above it: nothing else of the level is read.
        assert_eq!(rule([0; 5], 0, [0; 5], 0, 99), Some(ChoiceRule::Only));
        let bytes = record(alone, group, 2, sums(500), 0, 0);
        assert_eq!(at.rule(&bytes[..bytes.len() - 1], Endian::Little, own, 1), None);
    }
}
