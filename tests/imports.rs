//! The imports between the modules of each crate lead one way.
//!
//! Within a folder, the modules beside one another must not import each other in a circle, directly or through others.
//! A module and its own submodules count as one, so a parent may use its children and they may use it.

use crate::support::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// A module by its path within the crate; the crate's root is empty.
type Module = Vec<String>;

/// The imports of a file, and the names that it passes on.
#[derive(Default)]
struct File {
    /// Paths as they are written, from `crate`, `super`, `self` or a name.
    paths: Vec<Vec<String>>,
    /// By the name under which it is passed on, each path of a `pub use`.
    exports: BTreeMap<String, Vec<String>>,
}

impl File {
    fn trees(&mut self, tree: &syn::UseTree, mut path: Vec<String>, is_export: bool) {
        let (name, ident) = match tree {
            syn::UseTree::Path(p) => {
                path.push(p.ident.to_string());
                return self.trees(&p.tree, path, is_export);
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.trees(tree, path.clone(), is_export));
            }
            syn::UseTree::Glob(_) => return self.paths.push(path),
            syn::UseTree::Name(n) => (n.ident.to_string(), n.ident.to_string()),
            syn::UseTree::Rename(r) => (r.rename.to_string(), r.ident.to_string()),
        };
        if ident != "self" {
            path.push(ident);
        }
        if is_export {
            self.exports.insert(name, path.clone());
        }
        self.paths.push(path);
    }
}

impl<'ast> Visit<'ast> for File {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(module) => &module.attrs,
            syn::Item::Fn(function) => &function.attrs,
            syn::Item::Use(import) => &import.attrs,
            _ => return visit::visit_item(self, item),
        };
        let is_test =
            |a: &syn::Attribute| a.path().is_ident("cfg") && a.parse_args::<syn::Ident>().is_ok_and(|i| i == "test");
        if !attributes.iter().any(is_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        // A path from `::` on is one of another crate, also where a module has that name.
        if import.leading_colon.is_none() {
            self.trees(&import.tree, Vec::new(), !matches!(import.vis, syn::Visibility::Inherited));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.paths.push(names);
        }
        visit::visit_path(self, path);
    }
}

/// The modules of a crate and the modules that each imports.
struct Imports {
    files: BTreeMap<Module, File>,
}

impl Imports {
    fn of(source: &Path) -> Imports {
        let mut imports = Imports { files: BTreeMap::new() };
        imports.read(source, &mut Vec::new());
        assert!(imports.files.contains_key(&Vec::new()), "{}: no root", source.display());
        imports
    }

    fn read(&mut self, folder: &Path, module: &mut Module) {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        entries.sort();
        for path in entries {
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            // Tests in a file of their own count as little as those in a module under `cfg(test)`.
            if stem == "tests" {
                continue;
            }
            let is_root = ["lib", "main", "mod"].contains(&stem.as_str());
            if !is_root {
                module.push(stem);
            }
            if path.is_dir() {
                self.read(&path, module);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                self.files.entry(module.clone()).or_default().visit_file(&parsed);
            }
            if !is_root {
                module.pop();
            }
        }
    }

    /// The path from the crate's root; nothing for a path of another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let base = match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => module.clone(),
            "super" => {
                let (_, parent) = module.split_last()?;
                return match rest.first().is_some_and(|next| next == "super") {
                    true => self.absolute(&parent.to_vec(), rest),
                    false => Some([parent, rest].concat()),
                };
            }
            name if self.files.contains_key(&[module.as_slice(), &[name.to_owned()]].concat()) => {
                return Some([module.as_slice(), path].concat());
            }
            _ => return None,
        };
        Some([base.as_slice(), rest].concat())
    }

    /// The module that holds what an absolute path names, through `pub use`.
    fn holder(&self, path: &[String], depth: usize) -> Module {
        let within = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n])).unwrap_or(0);
        let (module, rest) = path.split_at(within);
        let module = module.to_vec();
        if let (Some(name), true) = (rest.first(), depth < 8)
            && let Some(exported) = self.files[&module].exports.get(name)
            && let Some(target) = self.absolute(&module, exported)
            && target != path[..=within]
        {
            return self.holder(&[target.as_slice(), &rest[1..]].concat(), depth + 1);
        }
        module
    }

    /// For each folder (a module with submodules) which of its children import which.
    fn between_siblings(&self) -> BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> {
        let mut all: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (module, file) in &self.files {
            for path in &file.paths {
                let Some(target) = self.absolute(module, path).map(|path| self.holder(&path, 0)) else { continue };
                let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
                    let folder = all.entry(module[..common].to_vec()).or_default();
                    folder.entry(from.clone()).or_default().insert(to.clone());
                }
            }
        }
        all
    }
}

/// A circle of imports, if there is one, from a module back to itself.
fn circle(imports: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        at: &str,
        imports: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> bool {
        if let Some(start) = way.iter().position(|name| name == at) {
            way.drain(..start);
            return true;
        }
        if !done.insert(at.to_owned()) {
            return false;
        }
        way.push(at.to_owned());
        let found = imports.get(at).into_iter().flatten().any(|next| walk(next, imports, way, done));
        if !found {
            way.pop();
        }
        found
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|name| {
        let mut way = Vec::new();
        walk(name, imports, &mut way, &mut done).then_some(way)
    })
}

/// The rooms of a crate, from the lowest to the highest. A module may import modules of its own row and of rows above it.
type Rooms = &'static [&'static [&'static str]];

/// The crates that are sorted into rooms, by their folders. `ARCHITECTURE.md` has the same tables.
const SORTED: [(&str, Rooms); 4] = [
    (
        "sched",
        &[&["event"], &["tables"], &["numbers"], &["state"], &["queued"], &["balance"], &["analysis"], &["pass"]],
    ),
    (
        "parse",
        &[
            &["bytes", "error", "issue", "limits", "parallel"],
            &["text"],
            &["decode"],
            &["file"],
            &["ring"],
            &["merge", "recover"],
            &["trace"],
            &["cut"],
        ],
    ),
    ("record", &[&["plan"], &["kernel", "signals"], &["traced", "live"], &["command", "top"]]),
    ("view", &[&["columns"], &["index"], &["ask"], &["serve"], &["export"], &["command"]]),
];

/// The imports that lead to a higher room, and the modules that are in none.
fn upwards(imports: &BTreeMap<String, BTreeSet<String>>, rooms: &[&[&str]]) -> Vec<String> {
    let height = |module: &str| rooms.iter().position(|row| row.contains(&module));
    let pairs = imports.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    let goes_down = |(from, to): &(&String, &String)| height(from).zip(height(to)).is_some_and(|(from, to)| from >= to);
    pairs.filter(|pair| !goes_down(pair)).map(|(from, to)| format!("{from} -> {to}")).collect()
}

#[test]
fn imports_between_rooms_lead_to_lower_ones() {
    let architecture = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    for (folder, rooms) in SORTED {
        let all = Imports::of(&root().join("crates").join(folder).join("src"));
        let mut modules: BTreeSet<&str> =
            all.files.keys().filter_map(|module| module.first()).map(String::as_str).collect();
        for room in rooms.iter().copied().flatten() {
            assert!(modules.remove(room), "{folder}: there is no {room}");
            let is_listed = [format!("`{room}`"), format!("`{room}/`")].iter().any(|name| architecture.contains(name));
            assert!(is_listed, "ARCHITECTURE.md lacks the room {room} of {folder}");
        }
        assert!(modules.is_empty(), "{folder}: in no room: {modules:?}");
        assert_eq!(upwards(&all.between_siblings()[&Vec::new()], rooms), Vec::<String>::new(), "{folder}");
    }
}

#[test]
fn an_import_of_a_higher_room_is_found() {
    let imports = |pairs: &[(&str, &str)]| -> BTreeMap<String, BTreeSet<String>> {
        pairs.iter().map(|(from, to)| ((*from).to_owned(), BTreeSet::from([(*to).to_owned()]))).collect()
    };
    let rooms: Rooms = &[&["low"], &["middle", "beside"], &["high"]];
    assert_eq!(upwards(&imports(&[("high", "low"), ("middle", "beside")]), rooms), Vec::<String>::new());
    assert_eq!(upwards(&imports(&[("high", "none"), ("low", "middle")]), rooms), ["high -> none", "low -> middle"]);
}

/// Takes seconds: all sources are parsed.
#[test]
fn modules_import_each_other_in_no_circle() {
    let mut circles = Vec::new();
    let mut crates: Vec<PathBuf> = std::fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    crates.sort();
    for folder in crates {
        for (module, imports) in Imports::of(&folder.join("src")).between_siblings() {
            if let Some(way) = circle(&imports) {
                let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
                circles.push(format!("{name}::{}: {}", module.join("::"), way.join(" -> ")));
            }
        }
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn a_circle_through_exports_and_supers_is_found() {
    let folder = crate::support::scratch("imports");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("written");
    };
    write("lib.rs", "mod a; mod b; mod c; pub use c::deep::Thing;");
    write("a.rs", "use crate::b::{self, Other as Else}; fn f() { b::g(); }");
    write(
        "b.rs",
        "pub(crate) struct Other; pub(crate) fn g() -> crate::Thing { todo!() } #[cfg(test)] mod tests { use crate::a; }",
    );
    write("c/mod.rs", "pub mod deep; use deep::Thing;");
    write("c/deep.rs", "use super::super::c; pub struct Thing;");
    let imports = |folder: &Path| Imports::of(folder).between_siblings();
    let expected = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|s| (*s).to_owned()).collect());
    let found = imports(&folder);
    assert_eq!(found[&Vec::new()], BTreeMap::from([expected("a", &["b"]), expected("b", &["c"])]));
    assert_eq!(circle(&found[&Vec::new()]), None);
    write("c/deep.rs", "pub struct Thing(super::super::a::F);");
    assert_eq!(circle(&imports(&folder)[&Vec::new()]).map(|way| way.len()), Some(3));
}
