//! The JSON schemas of all documents, generated from the types that are serialised.

use super::{compare, events, info, path, stepper, why, workcons};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use session::document::TraceDocument;
use std::path::Path;

/// Returns the schema of a type, whose documents name it in their field `schema`.
fn schema<T: JsonSchema>(id: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), id.into());
    let constant = serde_json::json!({ "const": id, "description": "The name and version of this schema." });
    *schema.pointer_mut("/properties/schema").expect("a document names its schema") = constant;
    schema
}

/// A document: the name and version of its schema, and the function that generates it.
type Entry = (&'static str, fn(&str) -> Schema);

/// Returns all documents.
fn all() -> Vec<Entry> {
    vec![
        ("schedviz/info/1", schema::<info::Report>),
        ("schedviz/dat2graph/1", schema::<TraceDocument<'static, lanes::Report>>),
        ("schedviz/running-waiting/1", schema::<TraceDocument<'static, running_waiting::Report>>),
        ("schedviz/workcons/2", schema::<workcons::Document>),
        ("schedviz/why/2", schema::<why::Document>),
        ("schedviz/path/1", schema::<TraceDocument<'static, path::Report<'static>>>),
        ("schedviz/stepper/2", schema::<TraceDocument<'static, stepper::Report>>),
        ("schedviz/events/1", schema::<TraceDocument<'static, ::events::Report>>),
        ("schedviz/balance/2", schema::<TraceDocument<'static, events::balance::WithProbes<'static>>>),
        ("schedviz/plot/1", schema::<TraceDocument<'static, plot::PlotReport>>),
        ("schedviz/latency/1", schema::<TraceDocument<'static, latency::LatencyReport>>),
        ("schedviz/utilization/1", schema::<TraceDocument<'static, utilization::UtilizationReport>>),
        ("schedviz/fairness/2", schema::<TraceDocument<'static, fairness::FairnessReport>>),
        ("schedviz/compare/2", schema::<compare::Document>),
        ("schedviz/schedstat/1", schema::<schedstat::Report>),
        #[cfg(target_os = "linux")]
        ("schedviz/top/2", schema::<record::moment::Moment>),
        ("schedviz/machine/1", schema::<machine::Machine>),
    ]
}

/// The schemas in `docs/schemas` are those of the types. `SCHEDVIZ_BLESS=1` writes them.
#[test]
fn the_schemas_in_the_documentation_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    for (id, schema) in all() {
        let name = id.trim_start_matches("schedviz/").replace('/', "-");
        let path = folder.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&schema(id)).expect("JSON") + "\n";
        if std::env::var_os("SCHEDVIZ_BLESS").is_some() {
            std::fs::write(&path, &text).expect("written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(kept == text, "{name} differs; SCHEDVIZ_BLESS=1 rewrites it");
    }
    let files = std::fs::read_dir(&folder).expect("the schemas").count();
    assert_eq!(files, all().len(), "a schema belongs to no document");
}
