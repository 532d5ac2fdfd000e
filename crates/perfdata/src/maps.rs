//! The files that processes have mapped, by the `MMAP` and `MMAP2` records: the modules of the addresses of programs.

use crate::bytes::Bytes;
use crate::limits;
use parse::{Endian, ModuleInfo};
use sched::event::CleanText;
use sched::seeded::SeededMap;

/// A stretch of a process's memory that shows a file.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    /// The place of the start in the file, in bytes.
    offset: u64,
    module: u32,
}

/// The mapped files of all processes.
#[derive(Debug, Default)]
pub(crate) struct ProcessMaps {
    modules: Vec<ModuleInfo>,
    numbers: SeededMap<(CleanText, Vec<u8>), u32>,
    /// The mappings of each process, the latest last.
    of: SeededMap<u32, Vec<Mapping>>,
    parents: SeededMap<u32, u32>,
    mappings: usize,
}

/// The number of forks back to a process with mappings of its own.
const GENERATIONS: usize = 16;

impl ProcessMaps {
    /// Takes a record of a mapping; `is_second`: it is an `MMAP2`, which has a build ID where `misc` shows that.
    pub(crate) fn map(&mut self, body: &[u8], endian: Endian, is_second: bool, misc: u16) {
        /// `PERF_RECORD_MISC_MMAP_DATA`: the mapping is of data.
        const OF_DATA: u16 = 1 << 13;
        /// `PERF_RECORD_MISC_MMAP_BUILD_ID`: the record has a build ID in the place of the inode.
        const HAS_BUILD_ID: u16 = 1 << 14;
        let mut bytes = Bytes::new(body, endian);
        let numbers = (bytes.u32(), bytes.u32(), bytes.u64(), bytes.u64(), bytes.u64());
        let (Some(process), Some(_task), Some(start), Some(length), Some(offset)) = numbers else { return };
        let mut build_id = Vec::new();
        if is_second {
            // The device and the inode, or the build ID; the protection and the flags.
            let Some(file) = bytes.take(24) else { return };
            if misc & HAS_BUILD_ID != 0 {
                let size = usize::from(file.first().copied().unwrap_or(0)).min(20);
                build_id = file.get(4..4 + size).unwrap_or_default().to_vec();
            }
            if bytes.take(8).is_none() {
                return;
            }
        }
        let name = bytes.rest();
        let name = name.get(..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())).unwrap_or_default();
        if misc & OF_DATA != 0 || name.is_empty() || self.mappings >= limits::MAPPINGS {
            return;
        }
        let Some(module) = self.module(CleanText::of_bytes(name), build_id) else { return };
        self.mappings = self.mappings.saturating_add(1);
        let mapping = Mapping { start, end: start.saturating_add(length), offset, module };
        self.of.entry(process).or_default().push(mapping);
    }

    /// The number of a file; nothing where there are too many.
    fn module(&mut self, path: CleanText, build_id: Vec<u8>) -> Option<u32> {
        let key = (path, build_id);
        if let Some(known) = self.numbers.get(&key) {
            return Some(*known);
        }
        if self.modules.len() >= limits::MODULES || key.0.len() > limits::MODULE_NAME {
            return None;
        }
        let number = u32::try_from(self.modules.len()).ok()?;
        self.modules.push(ModuleInfo { path: key.0.clone(), build_id: key.1.clone() });
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Takes a record of a fork: a new process has the mappings of its parent.
    pub(crate) fn fork(&mut self, body: &[u8], endian: Endian) {
        let mut bytes = Bytes::new(body, endian);
        if let (Some(process), Some(parent)) = (bytes.u32(), bytes.u32())
            && process != parent
            && self.parents.len() < limits::NAMES
        {
            self.parents.insert(process, parent);
        }
    }

    /// Returns the file that an address of a process is in, and the place in it in bytes.
    pub(crate) fn find(&self, process: u32, address: u64) -> Option<(u32, u64)> {
        let mut of = process;
        for _ in 0..GENERATIONS {
            let mappings = self.of.get(&of).map(Vec::as_slice).unwrap_or_default();
            let found = mappings.iter().rev().find(|mapping| (mapping.start..mapping.end).contains(&address));
            if let Some(Mapping { start, offset, module, .. }) = found {
                return Some((*module, address.wrapping_sub(*start).wrapping_add(*offset)));
            }
            of = *self.parents.get(&of)?;
        }
        None
    }

    /// The file of a number.
    pub(crate) fn info(&self, module: u32) -> Option<&ModuleInfo> {
        self.modules.get(module as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(process: u32, start: u64, length: u64, offset: u64, name: &str) -> Vec<u8> {
        let mut body = [process.to_le_bytes(), process.to_le_bytes()].concat();
        [start, length, offset].iter().for_each(|number| body.extend(number.to_le_bytes()));
        body.extend(name.bytes().chain([0]));
        body
    }

    #[test]
    fn the_latest_mapping_counts_and_children_have_those_of_their_parents() {
        let mut maps = ProcessMaps::default();
        maps.map(&mapping(7, 0x1000, 0x1000, 0x400, "/bin/a"), Endian::Little, false, 0);
        maps.map(&mapping(7, 0x1800, 0x100, 0, "/bin/b"), Endian::Little, false, 0);
        // Data, and a record that is too short.
        maps.map(&mapping(7, 0x1000, 0x1000, 0, "/bin/c"), Endian::Little, false, 1 << 13);
        maps.map(&[7, 0, 0, 0], Endian::Little, false, 0);
        maps.fork(&[8u32.to_le_bytes(), 7u32.to_le_bytes()].concat(), Endian::Little);
        assert_eq!(maps.find(7, 0x1010), Some((0, 0x410)));
        assert_eq!(maps.find(8, 0x1810), Some((1, 0x10)));
        assert_eq!((maps.find(7, 0x3000), maps.find(9, 0x1010)), (None, None));
        assert_eq!(maps.info(1).map(|module| module.path.as_str()), Some("/bin/b"));
    }

    #[test]
    fn forks_in_a_circle_end() {
        let mut maps = ProcessMaps::default();
        maps.fork(&[8u32.to_le_bytes(), 7u32.to_le_bytes()].concat(), Endian::Little);
        maps.fork(&[7u32.to_le_bytes(), 8u32.to_le_bytes()].concat(), Endian::Little);
        assert_eq!(maps.find(7, 1), None);
    }
}
