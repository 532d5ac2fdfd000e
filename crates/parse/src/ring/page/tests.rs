//! Bytes written by hand, from the description of the format.

use super::*;

const LAYOUT: PageLayout = PageLayout { endian: Endian::Little, commit: 8, long: 8, data: 16, size: 128 };

/// A little-endian 64-bit page: its stamp, the flags of its commit word, its records.
fn page(ts: u64, flags: u64, records: &[u32], tail: &[u8]) -> Vec<u8> {
    let mut bytes = ts.to_le_bytes().to_vec();
    bytes.extend((flags | (records.len() as u64 * 4)).to_le_bytes());
    records.iter().for_each(|w| bytes.extend(w.to_le_bytes()));
    bytes.extend(tail);
    bytes.resize(128, 0xaa);
    bytes
}

fn word(kind: u32, delta: u32) -> u32 {
    kind | delta << 5
}

/// The stamps and the payload lengths of a page; `None` at the end if a record was bad.
fn walk(bytes: &[u8], layout: &PageLayout) -> Vec<Option<(u64, usize)>> {
    let mut records = RingPage::parse(bytes, layout).unwrap().records();
    let mut out = Vec::new();
    loop {
        match records.next() {
            Ok(Some(raw)) => out.push(Some((raw.ts, raw.payload.len()))),
            Ok(None) => return out,
            Err(BadRecord) => {
                out.push(None);
                assert_eq!(records.next(), Ok(None), "fused after an error");
                return out;
            }
        }
    }
}

#[test]
fn deltas_add_up_from_the_pages_stamp() {
    // The first delta counts: partial reads leave one (case 26).
    let bytes = page(1000, 0, &[word(1, 7), 0, word(2, 3), 0, 0], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((1007, 4)), Some((1010, 8))]);
}

#[test]
fn long_records_have_their_own_length() {
    let bytes = page(0, 0, &[word(0, 5), 12, 0, 0, word(1, 1), 0], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((5, 8)), Some((6, 4))]);
    for length in [0, 3, 200, u32::MAX] {
        let bytes = page(0, 0, &[word(1, 1), 0, word(0, 5), length, 0, 0], &[]);
        assert_eq!(walk(&bytes, &LAYOUT), [Some((1, 4)), None], "case 22, length {length}");
    }
}

#[test]
fn padding_stops_or_passes() {
    let bytes = page(0, 0, &[word(1, 1), 0, word(29, 0), 0, word(1, 1), 0], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((1, 4))], "delta 0 ends the page");
    for delta in [1, 9] {
        let bytes = page(0, 0, &[word(29, delta), 8, 0, word(1, 1), 0], &[]);
        assert_eq!(walk(&bytes, &LAYOUT), [Some((u64::from(delta) + 1, 4))]);
    }
}

#[test]
fn time_extends() {
    let extend = [word(30, 2), 1];
    let one = (1u64 << 27) + 2;
    let bytes = page(10, 0, &[extend[0], extend[1], word(1, 1), 0], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((10 + one + 1, 4))]);
    let bytes = page(10, 0, &[extend[0], extend[1], extend[0], extend[1], word(1, 1), 0], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((10 + 2 * one + 1, 4))]);
    let bytes = page(10, 0, &[word(1, 1), 0, extend[0], extend[1]], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((11, 4))], "at the end, with nothing after");
}

#[test]
fn absolute_stamps() {
    let bytes = page(10, 0, &[word(31, 77), 0, word(1, 1), 0], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((78, 4))]);
    // The five upper bits come from the page; a smaller value has wrapped.
    let high = 3u64 << 59;
    let bytes = page(high + 100, 0, &[word(31, 200), 0, word(1, 0), 0, word(31, 50), 0, word(1, 0), 0], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((high + 200, 4)), Some(((4u64 << 59) + 50, 4))]);
    // Without upper bits a smaller value is a step back, for the caller to notice.
    let bytes = page(1000, 0, &[word(31, 500), 0, word(1, 0), 0], &[]);
    assert_eq!(walk(&bytes, &LAYOUT), [Some((500, 4))]);
}

#[test]
fn losses_with_and_without_a_count() {
    let loss =
        |flags: u64, tail: &[u8]| RingPage::parse(&page(5, flags, &[word(1, 1), 0], tail), &LAYOUT).unwrap().lost;
    assert_eq!(loss(0, &[]), None);
    assert_eq!(loss(1 << 31, &[]), Some(Loss { count: None }));
    assert_eq!(loss(3 << 30, &178u64.to_le_bytes()), Some(Loss { count: Some(178) }));
    assert_eq!(loss(0xffff_ffff_c000_0000, &9u64.to_le_bytes()), Some(Loss { count: Some(9) }), "sign-extended");
    // The count at the very end of a full page.
    let mut full = page(5, (3 << 30) | 104, &[], &[]);
    full.splice(120..128, 4u64.to_le_bytes());
    assert_eq!(RingPage::parse(&full, &LAYOUT).unwrap().lost, Some(Loss { count: Some(4) }));
    // Flagged, but no room: of unknown size.
    let full = page(5, (3 << 30) | 112, &[], &[]);
    assert_eq!(RingPage::parse(&full, &LAYOUT).unwrap().lost, Some(Loss { count: None }));
}

#[test]
fn impossible_pages() {
    assert_eq!(RingPage::parse(&page(5, 113, &[], &[]), &LAYOUT).unwrap_err(), BadPage, "longer than the page");
    assert_eq!(RingPage::parse(&[0; 12], &LAYOUT).unwrap_err(), BadPage, "cut in its header");
    let cut = &page(5, 0, &[word(1, 1), 0], &[])[..24];
    assert_eq!(walk(cut, &LAYOUT), [Some((6, 4))], "a cut page whose data are whole is read");
    assert_eq!(RingPage::parse(&cut[..23], &LAYOUT).unwrap_err(), BadPage);
    assert!(RingPage::parse(&[0; 128], &LAYOUT).unwrap().is_empty());
}

#[test]
fn a_32_bit_big_endian_page() {
    let layout = PageLayout { endian: Endian::Big, commit: 8, long: 4, data: 12, size: 64 };
    let mut bytes = 1000u64.to_be_bytes().to_vec();
    bytes.extend((8u32 | 3 << 30).to_be_bytes());
    bytes.extend((1u32 << 27 | 7).to_be_bytes());
    bytes.extend(0x0102_0304u32.to_be_bytes());
    bytes.extend(42u32.to_be_bytes());
    bytes.resize(64, 0);
    let page = RingPage::parse(&bytes, &layout).unwrap();
    assert_eq!(page.lost, Some(Loss { count: Some(42) }));
    assert_eq!(walk(&bytes, &layout), [Some((1007, 4))]);
    // A 64-bit commit: the low half comes second.
    let layout = PageLayout::new(Endian::Big, 8, 64);
    bytes.splice(8..12, [0xff; 4].into_iter().chain(0xc000_0008u32.to_be_bytes()));
    let page = RingPage::parse(&bytes, &layout).unwrap();
    assert_eq!((page.lost, walk(&bytes, &layout)), (Some(Loss { count: Some(42 << 32) }), vec![Some((1007, 4))]));
}
