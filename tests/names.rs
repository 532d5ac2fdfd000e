//! One name, one thing: few names of types are defined in more than two crates.

use crate::support::sources_of_crates;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Names that any number of crates may define: each crate has one of its own, and it is used by the crate's name.
const KEPT: [&str; 3] = ["Error", "Options", "Report"];

/// The names of the types that a source defines outside of its tests and functions.
#[derive(Default)]
struct Types(BTreeSet<String>);

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let is_test =
            |a: &syn::Attribute| a.path().is_ident("cfg") && a.parse_args::<syn::Ident>().is_ok_and(|i| i == "test");
        let name = match item {
            syn::Item::Struct(item) => &item.ident,
            syn::Item::Enum(item) => &item.ident,
            syn::Item::Trait(item) => &item.ident,
            syn::Item::Type(item) => &item.ident,
            syn::Item::Mod(module) if !module.attrs.iter().any(is_test) => return visit::visit_item(self, item),
            _ => return,
        };
        self.0.insert(name.to_string());
    }
}

/// Takes seconds: all sources are parsed.
#[test]
fn few_names_of_types_are_in_more_than_two_crates() {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, path, text) in sources_of_crates() {
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut types = Types::default();
        types.visit_file(&parsed);
        for defined in types.0 {
            crates.entry(defined).or_default().insert(name.clone());
        }
    }
    crates.retain(|_, crates| crates.len() > 2);
    let surplus: Vec<_> = crates.iter().filter(|(name, _)| !KEPT.contains(&name.as_str())).collect();
    assert!(surplus.is_empty(), "defined in more than two crates: name them for what each one is: {surplus:#?}");
    let unused: Vec<_> = KEPT.iter().filter(|name| !crates.contains_key(**name)).collect();
    assert!(unused.is_empty(), "in no more than two crates: take them from the list: {unused:?}");
}
