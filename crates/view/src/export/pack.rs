//! Packs: files that each hold many tiles of an exported folder.
//!
//! A pack is `SVP1`, the length of its directory in four bytes (little-endian), the directory, and the contents. The
//! directory is a JSON object: by the name of a tile its place behind the directory and its length, in bytes. All tiles of
//! one level and place of time are in one pack, and neighbours follow one another, so that the tiles in view are in few
//! packs. `packs.json` lists, by series and level, the first place of each pack.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// A pack is ended once it has this number of bytes: a request of a moment, even over a slow line.
const ENOUGH: usize = 256 << 10;

/// A gatherer of tiles into packs.
pub(crate) struct Packer<'p> {
    /// The function that takes each pack with its number, in ascending order.
    put: &'p mut dyn FnMut(u32, &[u8]) -> io::Result<()>,
    number: u32,
    directory: serde_json::Map<String, Value>,
    contents: Vec<u8>,
    /// The first place of each pack and its number, by series and level.
    index: BTreeMap<String, BTreeMap<u32, Vec<(u64, u32)>>>,
}

impl<'p> Packer<'p> {
    pub(crate) fn new(put: &'p mut dyn FnMut(u32, &[u8]) -> io::Result<()>) -> Packer<'p> {
        let (directory, contents, index) = Default::default();
        Packer { put, number: 0, directory, contents, index }
    }

    /// Adds the tiles of a series at one level and place, by their names.
    pub(crate) fn add(
        &mut self,
        series: &str,
        (level, place): (u32, u64),
        tiles: &[(String, Vec<u8>)],
    ) -> io::Result<()> {
        if tiles.is_empty() {
            return Ok(());
        }
        let bytes: usize = tiles.iter().map(|(_, tile)| tile.len()).sum();
        if self.contents.len() + bytes > ENOUGH {
            self.end()?;
        }
        let packs = self.index.entry(series.to_owned()).or_default().entry(level).or_default();
        if packs.last().is_none_or(|(_, number)| *number != self.number) {
            packs.push((place, self.number));
        }
        for (name, tile) in tiles {
            self.directory.insert(name.clone(), json!([self.contents.len(), tile.len()]));
            self.contents.extend(tile);
        }
        Ok(())
    }

    /// Ends the pack, if anything is in it.
    fn end(&mut self) -> io::Result<()> {
        if self.directory.is_empty() {
            return Ok(());
        }
        let directory = serde_json::to_vec(&std::mem::take(&mut self.directory))?;
        let length = u32::try_from(directory.len()).map_err(io::Error::other)?;
        let pack =
            [b"SVP1".as_slice(), &length.to_le_bytes(), &directory, &std::mem::take(&mut self.contents)].concat();
        (self.put)(self.number, &pack)?;
        self.number += 1;
        Ok(())
    }

    /// Ends the last pack, and returns the content of `packs.json`.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u8>> {
        self.end()?;
        Ok(serde_json::to_vec(&self.index)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_found_by_the_first_places_of_packs() {
        let mut packs: Vec<Vec<u8>> = Vec::new();
        let mut put = |number: u32, pack: &[u8]| {
            assert_eq!(number as usize, packs.len());
            packs.push(pack.to_vec());
            Ok(())
        };
        let mut packer = Packer::new(&mut put);
        let tile = |level: u32, place: u64| vec![level as u8 ^ place as u8; 100_000];
        for (level, places) in [(9, 0..1), (8, 0..2), (7, 0..4)] {
            for place in places {
                packer
                    .add("tiles", (level, place), &[(format!("{level}/{place}"), tile(level, place))])
                    .expect("added");
            }
        }
        packer.add("tiles", (3, 7), &[]).expect("nothing");
        let index: Value = serde_json::from_slice(&packer.finish().expect("an index")).expect("JSON");
        assert_eq!(packs.len(), 4, "two tiles in each, one in the last");
        assert_eq!(index, json!({ "tiles": { "7": [[0, 1], [1, 2], [3, 3]], "8": [[0, 0], [1, 1]], "9": [[0, 0]] } }));
        for (level, place, pack) in [(9, 0, 0), (8, 1, 1), (7, 2, 2), (7, 3, 3)] {
            let pack = &packs[pack];
            let length = u32::from_le_bytes(pack[4..8].try_into().expect("four bytes")) as usize;
            let directory: Value = serde_json::from_slice(&pack[8..8 + length]).expect("JSON");
            let at = |n: usize| directory[&format!("{level}/{place}")][n].as_u64().expect("a number") as usize;
            assert_eq!(pack[8 + length + at(0)..][..at(1)], tile(level, place), "{level}/{place}");
        }
    }
}
