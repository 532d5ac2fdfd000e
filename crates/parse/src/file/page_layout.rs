//! The layout of a page of the ring buffer, which the file describes.

use crate::bytes::Endian;

/// The offsets in a page of the ring buffer, from the text of `header_page`. They differ between 32-bit and 64-bit
/// kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    pub(crate) endian: Endian,
    /// Offset of the commit word.
    pub(crate) commit: usize,
    /// Size of the commit word, which is the kernel's `long`, in bytes.
    pub(crate) long: usize,
    /// Offset of the first record.
    pub(crate) data: usize,
    /// The size of a page.
    pub(crate) size: usize,
}

impl PageLayout {
    /// Returns the layout of a 64-bit kernel's pages of `size` bytes.
    pub(crate) fn new(endian: Endian, long: usize, size: usize) -> PageLayout {
        PageLayout { endian, commit: 8, long, data: 8usize.saturating_add(long), size }
    }

    /// The most that a page can hold.
    pub(crate) fn capacity(&self) -> usize {
        self.size.saturating_sub(self.data)
    }

    /// Returns this layout with the offsets that the text of `header_page` gives, in lines of the form `field: … name;
    /// offset:n; size:n;`.
    pub(crate) fn described(mut self, text: &str) -> PageLayout {
        for line in text.lines() {
            let part = |key: &str| {
                let value = line.split(';').find_map(|p| p.trim().strip_prefix(key))?;
                value.trim().parse::<usize>().ok().filter(|n| *n <= 1 << 20)
            };
            let Some(declaration) = line.split(';').next() else { continue };
            let (Some(offset), Some(size)) = (part("offset:"), part("size:")) else { continue };
            match declaration.split_whitespace().next_back() {
                Some("commit") if matches!(size, 4 | 8) => (self.commit, self.long) = (offset, size),
                Some("data") => self.data = offset,
                _ => {}
            }
        }
        self
    }
}
