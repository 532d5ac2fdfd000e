//! The files that processes had mapped, by the maps of the recorder (`trace-cmd record --proc-map`): the modules of the addresses of programs.

use crate::bytes::until_nul;
use crate::limits;
use sched::event::CleanText;
use sched::seeded::SeededMap;

/// A file that processes have mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleInfo {
    /// The path of the file as it was recorded, or a name in brackets.
    pub path: CleanText,
    /// The build ID of the file; empty where it was not recorded.
    pub build_id: Vec<u8>,
}

/// The number of the option PROCMAPS.
const MAPS: u16 = 10;

/// A file in the memory of a process.
#[derive(Clone, Copy, Debug)]
struct ProgramMap {
    start: u64,
    end: u64,
    module: u32,
    /// The address of the first part of the file in the process.
    base: u64,
}

/// The maps of processes as of the end of the recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramMaps {
    modules: Vec<ModuleInfo>,
    /// The maps of each process by address.
    of: SeededMap<u32, Vec<ProgramMap>>,
}

impl ProgramMaps {
    /// Reads the maps of the options of a file, by their numbers and payloads: a line with the process, and one for each of its maps. Lines that
    /// cannot be understood are passed over, and there are at most [`limits::PROGRAM_MAPS`].
    pub(crate) fn of_options(options: &[(u16, Vec<u8>)]) -> ProgramMaps {
        let mut maps = ProgramMaps::default();
        let mut modules: SeededMap<&[u8], u32> = SeededMap::default();
        let mut number = 0;
        for (_, payload) in options.iter().filter(|(id, _)| *id == MAPS) {
            let mut lines = until_nul(payload).split(|byte| *byte == b'\n');
            let Some(process) = lines.next().and_then(|line| hexadecimal(&mut line.splitn(3, |byte| *byte == b' ')))
            else {
                continue;
            };
            let mut bases: SeededMap<u32, u64> = SeededMap::default();
            for line in lines {
                let mut words = line.splitn(3, |byte| *byte == b' ');
                let (start, end) = (hexadecimal(&mut words), hexadecimal(&mut words));
                let (Some(start), Some(end), Some(path)) = (start, end, words.next()) else { continue };
                if start >= end || path.is_empty() || path.len() > limits::PROGRAM_MAP_NAME {
                    continue;
                }
                if number >= limits::PROGRAM_MAPS {
                    return maps;
                }
                number += 1;
                let next = maps.modules.len() as u32;
                let module = *modules.entry(path).or_insert(next);
                if module == next {
                    maps.modules.push(ModuleInfo { path: CleanText::of_bytes(path), build_id: Vec::new() });
                }
                let base = *bases.entry(module).or_insert(start);
                let map = ProgramMap { start, end, module, base: base.min(start) };
                maps.of.entry(process as u32).or_default().push(map);
            }
        }
        maps.of.values_mut().for_each(|maps| maps.sort_by_key(|map| map.start));
        maps
    }

    /// Returns the number of the file that an address of a process is in, and the place of the address behind the first part of the file,
    /// in bytes; nothing where no map has it.
    pub(crate) fn module_of(&self, process: u32, address: u64) -> Option<(u32, u64)> {
        let maps = self.of.get(&process)?;
        let behind = maps.partition_point(|map| map.start <= address);
        let map = maps.get(behind.checked_sub(1)?).filter(|map| address < map.end)?;
        Some((map.module, address.saturating_sub(map.base)))
    }

    /// Returns the file of a number; nothing if there is none.
    pub(crate) fn module(&self, module: u32) -> Option<&ModuleInfo> {
        self.modules.get(module as usize)
    }
}

/// The next word as a hexadecimal number.
fn hexadecimal<'w>(words: &mut impl Iterator<Item = &'w [u8]>) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(texts: &[&str]) -> ProgramMaps {
        let options: Vec<(u16, Vec<u8>)> = texts.iter().map(|text| (MAPS, text.as_bytes().to_vec())).collect();
        ProgramMaps::of_options(&options)
    }

    #[test]
    fn an_address_is_in_the_file_that_its_process_has_there() {
        let maps = maps(&[
            "1f 3 spmd\n400000 401000 /usr/bin/my prog\n401000 402000 /usr/bin/my prog\n7f00 7f80 /lib/libc.so.6\n\0",
            "20 1 other\n400000 402000 /bin/other\nnot a map\n5000 4000 /bin/other\n\0",
            "no process\n400000 402000 /bin/none\n\0",
        ]);
        let path = |process, address| {
            let (module, place) = maps.module_of(process, address)?;
            Some((maps.module(module)?.path.as_str(), place))
        };
        assert_eq!(path(0x1f, 0x401010), Some(("/usr/bin/my prog", 0x1010)));
        assert_eq!(path(0x1f, 0x7f7f), Some(("/lib/libc.so.6", 0x7f)));
        assert_eq!(path(0x20, 0x400010), Some(("/bin/other", 0x10)));
        assert_eq!([path(0x1f, 0x402000), path(0x20, 0x4fff), path(7, 0x400010)], [None; 3]);
        assert!(maps.module(3).is_none());
    }

    #[test]
    fn maps_of_programs_have_a_limit() {
        let lines: String =
            (0..limits::PROGRAM_MAPS + 5).map(|nth| format!("{nth:x}0 {nth:x}8 /bin/{nth}\n")).collect();
        let maps = maps(&[&format!("1 1 p\n{lines}\0"), "2 1 q\n10 20 /bin/q\n\0"]);
        assert_eq!(maps.modules.len(), limits::PROGRAM_MAPS);
        assert_eq!(maps.module_of(2, 0x10), None);
    }
}
