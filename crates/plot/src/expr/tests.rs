use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

struct Event(BTreeMap<&'static str, EventValue>);

impl EventValues for Event {
    fn value(&self, name: &str) -> Option<EventValue> {
        self.0.get(name).cloned()
    }
}

fn event() -> Event {
    let text = |text: &str| EventValue::Text(text.to_owned());
    Event(BTreeMap::from([
        ("ret", EventValue::Number(0)),
        ("vec", EventValue::Number(9)),
        ("flags", EventValue::Number(0x12)),
        ("big", EventValue::Number(i128::from(u64::MAX))),
        ("text", text("load: no busy group id=7")),
        ("$command", text("hackbench")),
    ]))
}

fn holds(source: &str) -> bool {
    parse(source).unwrap_or_else(|e| panic!("{source}: {e:?}")).holds(&event())
}

#[test]
fn conditions_hold_or_do_not() {
    for (source, expected) in [
        ("ret == 0", true),
        ("ret == 0 and vec != 3", true),
        ("ret == 0 and vec != 9", false),
        ("ret == 1 or vec >= 9 and flags > 0x11", true),
        ("(ret == 1 or vec >= 9) and flags > 0x12", false),
        ("not ret == 0 or not (vec < 9)", true),
        ("flags & 0x2 != 0", true),
        ("flags & 0x1 != 0", false),
        ("flags & 6 & 0xf == 2", true),
        ("big == 0xffffffffffffffff and big > -1", true),
        ("text =~ \"no .* group\"", true),
        ("text !~ 'id=8'", true),
        ("vec in [1, 9] and vec not in [2, 3]", true),
        ("$command == 'hackbench'", true),
        // An absent value, or one of the other type, compares with nothing.
        ("absent == 0 or absent != 0", false),
        ("ret == 'x' or ret != 'x'", false),
        ("not absent == 0", true),
    ] {
        assert_eq!(holds(source), expected, "{source}");
    }
}

#[test]
fn groups_become_values() {
    let expr = parse("text =~ 'id=(?<id>\\d+)' and text =~ '^(?<what>\\w+):'").expect("a condition");
    assert_eq!(expr.group_names(), ["id", "what"]);
    let found = expr.captures(&event()).expect("it holds");
    assert_eq!(found, [("id".into(), EventValue::Number(7)), ("what".into(), EventValue::Text("load".into()))]);
    assert_eq!(parse("text !~ '(?<x>y)'").expect("a condition").group_names(), [""; 0]);
}

#[test]
fn errors_have_their_place_and_a_remedy() {
    for (source, at, remedy) in [
        ("ret = 0", 4, "=="),
        ("ret == 0 && vec == 1", 9, "and"),
        ("ret == 0 || vec == 1", 9, "or"),
        ("ret", 3, "comparison"),
        ("ret == ", 7, "field"),
        ("(ret == 0", 9, ")"),
        ("ret == 0)", 8, "end of the condition"),
        ("text =~ no", 8, "quotation"),
        ("text =~ '('", 8, "unclosed"),
        ("text == 'x", 8, "closing"),
        ("ret == 12ab", 7, "not a number"),
        ("vec in 3", 7, "list"),
        ("ret == 0 ; vec", 9, "';'"),
    ] {
        let error = parse(source).expect_err(source);
        assert!(error.at == at && error.message.contains(remedy), "{source}: {error:?}");
    }
    let deep = format!("{}ret == 0{}", "(".repeat(100), ")".repeat(100));
    assert!(parse(&deep).expect_err("too deep").message.contains("64"));
    assert!(parse(&"not ".repeat(200)).expect_err("too deep").message.contains("64"));
    assert!(parse(&"x".repeat(5000)).expect_err("too long").message.contains("4096"));
}

#[test]
fn types_are_checked() {
    let type_of = |name: &str| match name {
        "ret" | "vec" => Ok(Type::Number),
        "text" => Ok(Type::Text),
        "word" => Ok(Type::Either),
        other => Err(format!("no field {other}")),
    };
    let check = |source: &str| parse(source).expect("a condition").check(&type_of).map_err(|e| (e.at, e.message));
    assert_eq!(check("ret == 0 and word == 'a' and word == 3 and text =~ 'x'"), Ok(()));
    assert_eq!(check("vec == 1 and ret == 'x'").expect_err("types").0, 17);
    assert!(check("ret =~ 'x'").expect_err("types").1.contains("number"));
    assert!(check("ret in [1, 'x']").expect_err("types").1.contains("never"));
    assert!(check("text & 1 == 1").expect_err("types").1.contains("bits"));
    assert_eq!(check("nothing == 1").expect_err("no field"), (0, "no field nothing".to_owned()));
}

#[test]
fn conditions_read_as_words() {
    let words = parse("not (ret == 0 or vec in [1,2]) and text =~ 'no .*'").expect("a condition").to_string();
    assert_eq!(words, "not (ret is 0 or vec is one of 1, 2) and text matches /no .*/");
}

/// Texts of the characters that conditions are made of.
fn any_text() -> impl Strategy<Value = String> {
    const CHARACTERS: &str = " abcdefghijklmnopqrstuvwxyz$0123456789&|=!<>~'\"()[],.*x-";
    let one = proptest::sample::select(CHARACTERS.chars().collect::<Vec<_>>());
    proptest::collection::vec(one, 0..60).prop_map(String::from_iter)
}

proptest! {
    /// Any text is a condition or has an error inside of it.
    #[test]
    fn no_text_panics(source in any_text()) {
        match parse(&source) {
            Ok(expr) => drop(expr.captures(&event())),
            Err(error) => prop_assert!(error.at <= source.len() && source.is_char_boundary(error.at)),
        }
    }

    #[test]
    fn comparisons_agree_with_integers(a in -50i128..50, b in -50i128..50) {
        struct Two(i128);
        impl EventValues for Two {
            fn value(&self, _: &str) -> Option<EventValue> {
                Some(EventValue::Number(self.0))
            }
        }
        for (how, expected) in [("==", a == b), ("!=", a != b), ("<", a < b), ("<=", a <= b), (">", a > b), (">=", a >= b)] {
            prop_assert_eq!(parse(&format!("x {how} {b}")).expect("a condition").holds(&Two(a)), expected);
        }
    }
}
