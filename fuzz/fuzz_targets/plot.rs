//! A specification, its sentences, and its conditions on an event; against a small catalogue of events.
#![no_main]

use plot::expr::{EventValue, EventValues, Type, parse};
use plot::{Catalog, EventInfo, Plan, Spec, explain};

struct Event;

impl EventValues for Event {
    fn value(&self, name: &str) -> Option<EventValue> {
        Some(if name.len() % 2 == 0 {
            EventValue::Number(name.len() as i128)
        } else {
            EventValue::Text(name.repeat(20))
        })
    }
}

fn catalog() -> Catalog {
    let event = |id: u16, name: &str| EventInfo {
        id,
        name: name.to_owned(),
        count: 1,
        fields: vec![("vec".to_owned(), Type::Number), ("name".to_owned(), Type::Text)],
        is_text: name == "a:c",
    };
    Catalog { events: vec![event(1, "a:b"), event(2, "a:c"), event(3, "a:b_exit")], machine: Some("x86_64".to_owned()) }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(condition) = parse(text) {
        let _ = (condition.captures(&Event), condition.to_string());
    }
    if let Ok(spec) = Spec::parse(text) {
        let _ = explain(&spec);
        if let Err(error) = Plan::new(&spec, &catalog()) {
            assert!(error.line > 0 && error.column > 0);
        }
    }
});
