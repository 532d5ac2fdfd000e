//! One name, one thing: few names of types are defined in more than two crates.

use crate::support::sources_of_crates;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Names that any number of crates may define: each crate has one of its own, and it is used by the crate's name.
const KEPT: [&str; 4] = ["Args", "Error", "Options", "Report"];

/// Names that more than two crates still define. The list may only shrink: `cargo test -p schedviz --test integration -- names
/// --nocapture` prints those that can be taken from it.
const NOT_YET: [&str; 2] = ["Item", "Kernel"];

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
    let is_allowed = |name: &str| KEPT.contains(&name) || NOT_YET.contains(&name);
    let surplus: Vec<_> = crates.iter().filter(|(name, _)| !is_allowed(name)).collect();
    assert!(surplus.is_empty(), "defined in more than two crates: name them for what each one is: {surplus:#?}");
    let unused: Vec<_> = NOT_YET.iter().filter(|name| !crates.contains_key(**name)).collect();
    println!("no longer in more than two crates: {unused:?}");
    crates.iter().for_each(|(name, crates)| println!("{name}: {crates:?}"));
}
