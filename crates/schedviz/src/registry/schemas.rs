//! The JSON schemas of all documents, generated from the types that are serialised.

use super::COMMANDS;
use crate::commands::info;
use question::{Entry, NamedSchema, schema};
use std::path::Path;

/// Returns the schemas of all documents, each with the command that prints it: JSON Schema has no keyword for it.
fn all() -> Vec<NamedSchema> {
    let with_command = |entry: &'static Entry| {
        of(entry).into_iter().map(|(id, mut schema)| {
            schema.insert("x-command".into(), entry.name.into());
            (id, schema)
        })
    };
    COMMANDS.iter().flat_map(with_command).collect()
}

/// Returns the schemas of the documents of a command: those of a question, or of a command that answers none.
fn of(entry: &Entry) -> Vec<NamedSchema> {
    match entry.name {
        "info" => vec![schema::<info::Report>(info::SCHEMA)],
        "machine" => vec![schema::<machine::Machine>(machine::SCHEMA)],
        #[cfg(target_os = "linux")]
        "top" => vec![schema::<record::moment::Moment>(record::moment::SCHEMA)],
        _ => entry.schemas(),
    }
}

/// The schemas in `docs/schemas` are those of the types. `SCHEDVIZ_BLESS=1` writes them.
#[test]
fn the_schemas_in_the_documentation_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    for (id, schema) in all() {
        let name = id.trim_start_matches("schedviz/").replace('/', "-");
        let path = folder.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        if std::env::var_os("SCHEDVIZ_BLESS").is_some() {
            std::fs::write(&path, &text).expect("written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(kept == text, "{name} differs; SCHEDVIZ_BLESS=1 rewrites it");
    }
    let files = std::fs::read_dir(&folder).expect("the schemas").count();
    assert_eq!(files, all().len(), "a schema belongs to no document");
}
