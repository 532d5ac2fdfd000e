//! The true size of a buffer's pages, where its label is wrong (`docs/trace-dat.md`, section 6).
//!
//! trace-cmd 3.1.6 on a kernel with 16 KiB sub-buffers labels a buffer 16384 and fills it with
//! 4 KiB pages; older writers label whole 16 KiB sub-buffers 4096. Either way the pages
//! themselves show it: where the next page begins, a page header must stand.

use crate::file::page_layout::PageLayout;
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::ring::page::RingPage;
use crate::ring::unit::CpuPages;
use sched::Diagnostics;

const SMALLEST: usize = 4096;
const LARGEST: usize = 1 << 20;

/// Number of slots of each CPU that are looked at.
const SAMPLE: usize = 16;

/// The page size that the slots of a CPU speak for.
#[derive(Default)]
struct Votes {
    smaller: usize,
    as_labelled: usize,
    /// Number of doublings of the page size after which the first page of a CPU is whole, one for each CPU that votes
    /// for a larger size.
    larger: Vec<usize>,
}

/// Looks at the first slots of each CPU and corrects the stride of all where they agree.
pub(crate) fn settle(source: &Source, lanes: &mut [CpuPages], diagnostics: &mut Diagnostics) {
    let Some(layout) = lanes.first().map(|l| l.layout) else { return };
    let mut votes = Votes::default();
    for lane in lanes.iter() {
        lane.with_bytes(source, 0, |bytes| {
            if let Ok(bytes) = bytes {
                vote(bytes, &layout, &mut votes);
            }
        });
    }
    let size = if votes.smaller > 0 && votes.as_labelled == 0 {
        diagnostics.add_at(FileIssue::SmallerStride, || format!("{} instead of {}", SMALLEST, layout.size));
        SMALLEST
    } else if let (0, Some(doublings)) = (votes.as_labelled, votes.larger.iter().max()) {
        let size = layout.size.wrapping_shl(*doublings as u32);
        diagnostics.add_at(FileIssue::LargerStride, || format!("{size} instead of {}", layout.size));
        size
    } else {
        return;
    };
    for lane in lanes {
        lane.layout.size = size;
    }
}

fn vote(bytes: &[u8], layout: &PageLayout, votes: &mut Votes) {
    for (slot, page) in bytes.chunks(layout.size).take(SAMPLE).enumerate() {
        match RingPage::parse(page, layout) {
            Ok(parsed) if parsed.is_empty() => {}
            // A page that fills more than the small size has the size of its label.
            Ok(_) if layout.size > SMALLEST && !is_whole(page, &with_size(layout, SMALLEST)) => {
                votes.as_labelled = votes.as_labelled.saturating_add(1);
            }
            Ok(parsed) if layout.size > SMALLEST => {
                let inner = page.chunks(SMALLEST).skip(1).any(|p| follows(p, &with_size(layout, SMALLEST), parsed.ts));
                votes.smaller = votes.smaller.saturating_add(usize::from(inner));
            }
            Ok(_) => votes.as_labelled = votes.as_labelled.saturating_add(1),
            Err(_) if page.len() == layout.size && slot == 0 => {
                let fits = (1..=8)
                    .find(|n| layout.size << n <= LARGEST && is_whole(bytes, &with_size(layout, layout.size << n)));
                votes.larger.extend(fits);
                return;
            }
            Err(_) => {}
        }
    }
}

fn with_size(layout: &PageLayout, size: usize) -> PageLayout {
    PageLayout { size, ..*layout }
}

/// Whether a page of this layout, with all of its records whole, begins here.
fn is_whole(bytes: &[u8], layout: &PageLayout) -> bool {
    let Some(Ok(page)) = bytes.get(..layout.size.min(bytes.len())).map(|b| RingPage::parse(b, layout)) else {
        return false;
    };
    let mut records = page.records();
    while let Ok(record) = records.next() {
        if record.is_none() {
            return true;
        }
    }
    false
}

/// Whether a page with events that is not earlier than `ts` begins here.
fn follows(bytes: &[u8], layout: &PageLayout, ts: u64) -> bool {
    let later = RingPage::parse(bytes, layout).is_ok_and(|p| !p.is_empty() && p.ts >= ts && p.ts - ts < 1 << 50);
    later && is_whole(bytes, layout)
}
