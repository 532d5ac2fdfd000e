//! A check of documents against the part of JSON Schema that the project's schemas use. A validator as a dependency would
//! be many times the size of the code that it checks.

use regex::Regex;
use serde_json::Value;

/// Panics if a document does not conform to a schema. Objects are closed: a field that is not in the schema is a fault
/// unless the schema allows further ones.
pub(crate) fn conforms(value: &Value, schema: &Value, at: &str) {
    if let Err(fault) = check(value, schema, schema, at) {
        panic!("{fault}");
    }
}

fn check(value: &Value, schema: &Value, root: &Value, at: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        check(value, target.expect("a local definition"), root, at)?;
    }
    let list = |name: &str| schema[name].as_array().map(Vec::as_slice).unwrap_or_default();
    if schema.get("const").is_some_and(|constant| constant != value) {
        return Err(format!("{at}: {value} is not {}", schema["const"]));
    }
    if schema["enum"].is_array() && !list("enum").contains(value) {
        return Err(format!("{at}: {value} is none of {}", schema["enum"]));
    }
    list("allOf").iter().try_for_each(|part| check(value, part, root, at))?;
    for (name, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
        let faults: Vec<String> = list(name).iter().filter_map(|part| check(value, part, root, at).err()).collect();
        let fitting = list(name).len() - faults.len();
        if schema[name].is_array() && !(1..=most).contains(&fitting) {
            return Err(format!("{at}: {fitting} of {name} fit: {}", faults.join("; ")));
        }
    }
    if schema["not"].is_object() && check(value, &schema["not"], root, at).is_ok() {
        return Err(format!("{at}: {value} is what it must not be"));
    }
    if let (Some(object), true) = (value.as_object(), schema["type"].is_null()) {
        let absent = list("required").iter().filter_map(Value::as_str).find(|name| !object.contains_key(*name));
        if let Some(name) = absent {
            return Err(format!("{at}: no {name}"));
        }
    }
    let types = match &schema["type"] {
        Value::Null => return Ok(()),
        Value::Array(types) => types.as_slice(),
        one => std::slice::from_ref(one),
    };
    let is = |of: &Value| match of.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("{at}: a type that this check does not support: {other}"),
    };
    if !types.iter().any(is) {
        return Err(format!("{at}: {value} is no {}", schema["type"]));
    }
    match value {
        Value::Object(_) => check_object(value, schema, root, at),
        Value::Array(_) => check_array(value, schema, root, at),
        Value::Number(number) => match (number.as_f64(), schema["minimum"].as_f64()) {
            (Some(number), Some(minimum)) if number < minimum => Err(format!("{at}: {number} is below {minimum}")),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_object(value: &Value, schema: &Value, root: &Value, at: &str) -> Result<(), String> {
    let object = value.as_object().into_iter().flatten();
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().expect("a name")).is_none() {
            return Err(format!("{at}: no {name}"));
        }
    }
    let patterns = || schema["patternProperties"].as_object().into_iter().flatten();
    let matching = |name: &str| patterns().find(|(pattern, _)| Regex::new(pattern).expect("a pattern").is_match(name));
    for (name, value) in object {
        let by_name = schema["properties"].get(name).or_else(|| Some(matching(name)?.1));
        let further = schema.get("additionalProperties").filter(|further| further.is_object());
        match by_name.or(further) {
            Some(property) => check(value, property, root, &format!("{at}.{name}"))?,
            None => return Err(format!("{at}: {name} is not in the schema")),
        }
    }
    Ok(())
}

fn check_array(value: &Value, schema: &Value, root: &Value, at: &str) -> Result<(), String> {
    let array = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |name: &str, default| schema[name].as_u64().unwrap_or(default);
    if !(count("minItems", 0)..=count("maxItems", u64::MAX)).contains(&(array.len() as u64)) {
        return Err(format!("{at}: {} items", array.len()));
    }
    let first = schema["prefixItems"].as_array().into_iter().flatten().chain(std::iter::repeat(&schema["items"]));
    let mut items = array.iter().zip(first).enumerate();
    items.try_for_each(|(i, (item, schema))| check(item, schema, root, &format!("{at}[{i}]")))
}

#[test]
fn faults_are_found() {
    let schema = serde_json::json!({
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": { "$ref": "#/$defs/length" },
            "b": { "anyOf": [{ "enum": ["x", "y"] }, { "type": "null" }] },
            "c": { "type": "array", "items": { "type": "number" }, "prefixItems": [{ "const": 1 }], "maxItems": 2 },
            "d": { "type": "object", "patternProperties": { "^\\d+$": { "type": "integer" } } }
        },
        "$defs": { "length": { "type": ["integer", "null"], "minimum": 0 } }
    });
    let fits = |value: Value| check(&value, &schema, &schema, "$").is_ok();
    for good in [
        serde_json::json!({ "a": null }),
        serde_json::json!({ "a": 3, "b": "y", "c": [1, 2.5], "d": { "7": 1 } }),
        serde_json::json!({ "a": 0, "b": null, "c": [] }),
    ] {
        assert!(fits(good.clone()), "{good}");
    }
    for bad in [
        serde_json::json!({}),
        serde_json::json!({ "a": -1 }),
        serde_json::json!({ "a": 1.5 }),
        serde_json::json!({ "a": 1, "b": "z" }),
        serde_json::json!({ "a": 1, "c": [2] }),
        serde_json::json!({ "a": 1, "c": [1, 2, 3] }),
        serde_json::json!({ "a": 1, "c": [1, "2"] }),
        serde_json::json!({ "a": 1, "d": { "x": 1 } }),
        serde_json::json!({ "a": 1, "e": 1 }),
    ] {
        assert!(!fits(bad.clone()), "{bad}");
    }
}
