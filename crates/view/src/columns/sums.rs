//! The times of a column by key: by the occupant of a CPU, or by the CPU of a task.

/// Times by key. A key can have several entries until they are summed; the last `NEAR` ones are searched for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyTimes<const NEAR: usize> {
    entries: Vec<(u32, u64)>,
    /// The number of entries at which they are to be summed.
    full: usize,
}

impl<const NEAR: usize> KeyTimes<NEAR> {
    pub(crate) fn add(&mut self, key: u32, ns: u64) {
        match self.entries.iter_mut().rev().take(NEAR).find(|(other, _)| *other == key) {
            Some((_, sum)) => *sum += ns,
            None => {
                self.entries.push((key, ns));
                if self.entries.len() >= self.full.max(4 * NEAR) {
                    self.entries = summed(std::mem::take(&mut self.entries));
                    self.full = 2 * self.entries.len();
                }
            }
        }
    }

    /// Takes over the times of a finer column, which is empty afterwards.
    pub(crate) fn absorb(&mut self, finer: &mut KeyTimes<NEAR>) {
        if self.entries.is_empty() {
            std::mem::swap(&mut self.entries, &mut finer.entries);
        }
        finer.entries.drain(..).for_each(|(key, ns)| self.add(key, ns));
    }

    /// The times, one entry a key. As long as all entries are searched for a key, each has one.
    pub(crate) fn sum(&mut self) -> &mut [(u32, u64)] {
        if self.entries.len() > NEAR {
            self.entries = summed(std::mem::take(&mut self.entries));
        }
        &mut self.entries
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The sums of the times by key, the least key first.
pub(crate) fn summed(mut times: Vec<(u32, u64)>) -> Vec<(u32, u64)> {
    times.sort_unstable_by_key(|(key, _)| *key);
    times.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 += later.1;
        }
        same
    });
    times
}
