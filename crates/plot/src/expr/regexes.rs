//! The regular expressions of a specification: each different one is compiled once, and all together have a limit.

use regex::{Regex, RegexBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum size of a compiled regular expression in bytes.
const MOST_OF_ONE: usize = 1 << 20;
/// Number of bytes that the smallest regular expression counts for.
const LEAST: usize = 1 << 16;
/// Maximum size of all compiled regular expressions of a specification, in bytes. Their searches take a few times that.
const MOST_OF_ALL: usize = 1 << 22;
/// Maximum size of the tables that one search with a regular expression builds, in bytes.
const MOST_TABLES: usize = 1 << 17;

/// The compiled regular expressions of a specification.
#[derive(Debug, Default)]
pub struct Regexes {
    compiled: BTreeMap<String, Arc<Regex>>,
    /// The number of bytes that they count for.
    size: usize,
}

impl Regexes {
    /// Compiles a regular expression, or finds it if it was compiled before. A copy would have tables of its own for its searches.
    ///
    /// # Errors
    ///
    /// The reason why the text is no regular expression, or is too large, alone or together with those before it.
    pub(super) fn compile(&mut self, pattern: &str) -> Result<Arc<Regex>, String> {
        if let Some(known) = self.compiled.get(pattern) {
            return Ok(known.clone());
        }
        // The least power of two into which it fits: the size itself cannot be asked for.
        let mut size = LEAST;
        let regex = loop {
            if self.size + size > MOST_OF_ALL {
                return Err(self.too_large());
            }
            match RegexBuilder::new(pattern).size_limit(size).dfa_size_limit(MOST_TABLES).build() {
                Err(regex::Error::CompiledTooBig(_)) if size < MOST_OF_ONE => size *= 2,
                Err(error) => return Err(error.to_string()),
                Ok(regex) => break Arc::new(regex),
            }
        };
        self.size += size;
        self.compiled.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    }

    fn too_large(&self) -> String {
        format!(
            "the {} different regular expressions before this one and this one are too large together: more than {} MiB \
             compiled; use fewer or simpler ones, such as [a-z] for \\w",
            self.compiled.len(),
            MOST_OF_ALL >> 20
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_have_a_limit_together() {
        let mut regexes = Regexes::default();
        // The same one counts once.
        for _ in 0..1_000 {
            regexes.compile(r"\w{9}").expect("one");
        }
        assert_eq!(regexes.compiled.len(), 1);
        let refused = (1..1_000).find_map(|n| regexes.compile(&format!("a{{{n}}}b")).err().map(|error| (n, error)));
        let (number, error) = refused.expect("a limit");
        assert!((40..=64).contains(&number) && error.contains("4 MiB"), "{number}: {error}");
        let large = (1..100).find_map(|n| Regexes::default().compile(&format!(r"\w{{{}}}", 9 * n)).err());
        assert!(large.expect("a limit of one").contains("size limit"));
    }
}
