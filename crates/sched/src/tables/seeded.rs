//! Hash tables whose keys a file chooses.
//!
//! Each table takes a seed by chance, so that no file can hold keys that share one chain, whose lookups would cost as many steps as
//! there are keys. The order of a table differs from run to run: what leaves it is sorted.

use std::collections::{HashMap, HashSet};

/// A hash map whose keys come from a file.
pub type SeededMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A hash set of values that come from a file.
pub type SeededSet<T> = HashSet<T, foldhash::fast::RandomState>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    /// Numbers that a hash without a seed puts into one chain: multiplied by its constant, they agree in the bits that choose it.
    #[test]
    fn no_fixed_keys_share_a_chain() {
        const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
        let collide = |pid: &u32| u64::from(*pid).wrapping_mul(MULTIPLIER).rotate_left(26) & 0xfff == 0;
        let pids: Vec<u32> = (1..).filter(collide).take(4096).collect();
        let map: SeededMap<u32, ()> = pids.iter().map(|pid| (*pid, ())).collect();
        let mut sharing = vec![0u32; 4096];
        pids.iter().for_each(|pid| sharing[(map.hasher().hash_one(pid) & 0xfff) as usize] += 1);
        // 4096 keys in 4096 places at random: twelve in one are less likely than one in 100,000.
        assert!(sharing.iter().all(|count| *count < 16), "{:?}", sharing.iter().max());
        let chain = |map: &SeededMap<u32, ()>| pids.iter().map(|pid| map.hasher().hash_one(pid)).collect::<Vec<_>>();
        assert_ne!(chain(&map), chain(&SeededMap::default()), "each table has a seed of its own");
    }
}
