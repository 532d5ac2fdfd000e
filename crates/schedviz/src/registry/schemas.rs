//! The JSON schemas of all documents, generated from the types that are serialised.

use super::COMMANDS;
use crate::commands::info;
use question::{NamedSchema, schema};
use std::path::Path;

/// Returns the schemas of all documents: those of questions, and of the commands that answer none.
fn all() -> Vec<NamedSchema> {
    let mut all: Vec<NamedSchema> = COMMANDS.iter().flat_map(question::Entry::schemas).collect();
    all.push(schema::<info::Report>(info::SCHEMA));
    all.push(schema::<machine::Machine>(machine::SCHEMA));
    #[cfg(target_os = "linux")]
    all.push(schema::<record::moment::Moment>(record::moment::SCHEMA));
    all
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
