//! The texts are those of real kernels.

use super::*;
use StateClass::{Asleep, Dead, Preempted, Runnable};

const V5: &str = r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1), "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R", REC->prev_state & (((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#;

const V4_4: &str = r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K"}, { 256, "W" }, { 512, "P" }, { 1024, "N" }) : "R", REC->prev_state & 2048 ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#;

const V2_6_38: &str = r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, REC->prev_state ? __print_flags(REC->prev_state, "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "W" }) : "R", REC->next_comm, REC->next_pid, REC->next_prio"#;

fn classes(states: &States, raws: &[u64]) -> Vec<StateClass> {
    raws.iter().map(|raw| states.decode(*raw, || false).0.class).collect()
}

#[test]
fn masks_since_5_0() {
    let states = States::from_print_fmt(V5).unwrap();
    assert_eq!(states, States::modern());
    assert_eq!(
        classes(&states, &[0, 1, 2, 0x10, 0x20, 0x80, 0x100]),
        [Runnable, Asleep, Asleep, Dead, Dead, Asleep, Preempted]
    );
    assert_eq!(states.letters(0x100), "R+");
    assert_eq!(states.letters(3), "S|D");
    assert!(states.decode(0x400, || false).1, "a bit that the text does not explain");
}

#[test]
fn masks_from_3_2_to_4_13() {
    let states = States::from_print_fmt(V4_4).unwrap();
    assert_eq!((states.plus, states.report), (2048, 2047));
    assert_eq!(
        classes(&states, &[0, 2048, 1, 130, 0x402, 64, 16]),
        [Runnable, Preempted, Asleep, Asleep, Asleep, Dead, Dead]
    );
    assert_eq!(states.letters(130), "D|K");
}

#[test]
fn raw_states_before_3_2() {
    let states = States::from_print_fmt(V2_6_38).unwrap();
    assert_eq!(states.plus, 0);
    assert_eq!(classes(&states, &[0, 1, 64]), [Runnable, Asleep, Dead]);
}

#[test]
fn the_index_of_4_14_shows_in_the_data() {
    let mut evidence = Evidence::default();
    for (raw, idle) in [(0, true), (1, false), (5, false), (0x1000, false)] {
        evidence.add(raw, idle);
    }
    let mut states = States::from_print_fmt(V5).unwrap();
    states.settle(&evidence, None);
    assert_eq!(states.encoding, Encoding::Index);
    assert_eq!(
        classes(&states, &[0, 1, 2, 5, 6, 8, 0x1000]),
        [Runnable, Asleep, Asleep, Dead, Dead, Asleep, Preempted]
    );
    assert_eq!((states.letters(8), states.letters(0x1000)), ("I".into(), "R+".into()));
    let mut by_release = States::modern();
    by_release.settle(&Evidence { idle_zero: true, ..Evidence::default() }, Some((4, 14)));
    assert_eq!(by_release.encoding, Encoding::Index);
}

#[test]
fn the_shift_of_4_15_shows_in_the_idle_task() {
    let mut evidence = Evidence::default();
    evidence.add(1, true);
    let mut states = States::from_print_fmt(V5).unwrap();
    states.settle(&evidence, Some((4, 18)));
    assert_eq!(states.encoding, Encoding::Shifted);
    assert_eq!(classes(&states, &[1, 2, 4, 0x20, 0x40, 0x100]), [Runnable, Asleep, Asleep, Dead, Dead, Preempted]);
    assert_eq!(states.decode(0x100, || true).0.class, Asleep, "an idle kworker");
    let mut modern = States::modern();
    modern.settle(&Evidence { idle_zero: true, ..Evidence::default() }, Some((4, 19)));
    assert_eq!(modern.encoding, Encoding::Mask, "a tree that has the fix");
}

#[test]
fn nonsense_is_not_understood() {
    for text in ["", "__print_flags(", "__print_flags(1, \"|\", {1, \"S\"})", "__print_flags(REC->x, \"|\")"] {
        assert_eq!(States::from_print_fmt(text), None);
    }
}
