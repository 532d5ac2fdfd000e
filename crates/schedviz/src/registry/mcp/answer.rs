//! An answer: the document cut to its budget, what was left out, how far it can be trusted, and the command line that shows the same.

use super::child::{Ran, SomeLines};
use super::cut::{Cut, LeftOut, RowsWanted, cut};
use super::words::Paging;
use serde::Serialize;
use serde_json::{Map, Value};

/// The size of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Maximum number of bytes of its text.
    pub(super) bytes: usize,
}

/// The bytes that are counted as one token. Tokenizers of today's models need 2.5 to 4 bytes of such JSON for one.
const BYTES_OF_TOKEN: usize = 3;

impl Budget {
    /// The size of this number of tokens.
    pub(super) fn tokens(tokens: u32) -> Budget {
        Budget { bytes: (tokens as usize).saturating_mul(BYTES_OF_TOKEN) }
    }
}

/// The fields of documents that tell how far their numbers can be trusted. An answer about a part has those of all that is around it.
const TRUST: [&str; 9] = [
    "trust",
    "diagnostics",
    "untrusted",
    "is_untrusted",
    "verdict",
    "verdicts",
    "notes",
    "warnings",
    "selection_unknown",
];

/// Maximum number of lists and objects that an answer names as cut.
const MOST_LEFT_OUT: usize = 16;

/// Maximum number of messages, and of bytes of one.
const MOST_MESSAGES: (usize, usize) = (8, 600);

/// The text of an answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct Answer {
    /// The command line that a person types to see the same; absent where there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) command: String,
    /// The exit status: 2 where a limit is exceeded, 3 where losses withhold the verdict; absent for 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit: Option<i32>,
    /// The reason why there is no answer; absent with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The messages that the command prints on standard error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<String>,
    /// The part of the document that is shown; absent for all of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) part: String,
    /// The trust in what is around the part, by its place; absent for all of the document.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) trust: Map<String, Value>,
    /// The document, or its part.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) document: Value,
    /// Lines of text in place of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lines: Option<Vec<String>>,
    /// The lists and objects of which something was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) left_out: Vec<LeftOut>,
    /// The number of further lists and objects of which something was left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) left_out_besides: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Answer {
    /// The answer of a question that failed, or was refused.
    pub(super) fn error(command: String, error: String) -> Answer {
        Answer { command, error: Some(error), ..Answer::default() }
    }

    /// The answer of a command whose output is one document.
    pub(super) fn of_document(command: String, ran: &Ran<Vec<u8>>, paging: &Paging, budget: Budget) -> Answer {
        let kept = messages(&ran.messages);
        let exit = ran.code.filter(|code| *code != 0);
        if exit == Some(1) {
            return Answer { exit, ..Answer::error(command, kept.join("\n")) };
        }
        match serde_json::from_slice::<Value>(&ran.output) {
            Ok(document) => {
                let messages = if has_trust(&document) { Vec::new() } else { kept };
                let answer = Answer { command, exit, messages, ..Answer::default() };
                answer.showing(&document, paging, budget)
            }
            // Some options print a text in place of the document.
            Err(_) => {
                let text = String::from_utf8_lossy(&ran.output);
                let lines: Value = text.lines().map(Value::from).collect::<Vec<_>>().into();
                let paging = Paging { part: String::new(), ..paging.clone() };
                let answer = Answer { command, exit, messages: kept, ..Answer::default() };
                answer.showing(&lines, &paging, budget)
            }
        }
    }

    /// The answer of a command that prints lines.
    pub(super) fn of_lines(command: String, ran: Ran<SomeLines>, from: usize) -> Answer {
        let (kept, exit) = (messages(&ran.messages), ran.code.filter(|code| *code != 0));
        if exit == Some(1) {
            return Answer { exit, ..Answer::error(command, kept.join("\n")) };
        }
        let SomeLines { lines, has_more } = ran.output;
        let shown = lines.len();
        let more = LeftOut { part: String::new(), shown, of: None, from: Some(from + shown), fields: Vec::new() };
        let left_out = has_more.then_some(more).into_iter().collect();
        Answer { command, exit, messages: kept, lines: Some(lines), left_out, ..Answer::default() }
    }

    /// The answer with as much of a document, or of its part, as the budget allows.
    pub(super) fn showing(mut self, document: &Value, paging: &Paging, budget: Budget) -> Answer {
        let Some(part) = document.pointer(&paging.part) else {
            let error = format!("the document has no part {:?}; ask without part to see what it has", paging.part);
            return Answer::error(self.command, error);
        };
        self.part.clone_from(&paging.part);
        self.trust = trust_around(document, &paging.part, budget.bytes / 6);
        let rows = RowsWanted { from: paging.from, most: paging.rows.unwrap_or(usize::MAX) };
        let mut most = budget.bytes.saturating_sub(self.text().len() + 32);
        // What was left out takes room as well: how much is known afterwards.
        loop {
            let Cut { value, left_out } = cut(part, &paging.part, rows, most);
            self.document = value;
            self.left_out_besides = left_out.len().saturating_sub(MOST_LEFT_OUT);
            self.left_out = left_out;
            self.left_out.truncate(MOST_LEFT_OUT);
            let over = self.text().len().saturating_sub(budget.bytes);
            if over == 0 {
                return self;
            }
            if most == 0 {
                self.left_out_besides += self.left_out.len();
                self.left_out.clear();
                return self;
            }
            most = most.saturating_sub(over.max(64));
        }
    }

    /// The text of the answer: JSON on one line.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The messages that are kept, without the name of the program.
fn messages(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim_start_matches("schedviz: "));
    let (most, longest) = MOST_MESSAGES;
    lines.filter(|line| !line.is_empty() && line.len() <= longest).take(most).map(str::to_owned).collect()
}

/// Whether a document, or each of its runs, has its trust in it: the messages say the same.
fn has_trust(document: &Value) -> bool {
    let has = |value: &Value| value.get("trust").is_some() || value.get("diagnostics").is_some();
    let runs = document.get("runs").and_then(Value::as_array);
    has(document) || runs.is_some_and(|runs| !runs.is_empty() && runs.iter().all(has))
}

/// The trust in all objects around a part, by their places, in at most so many bytes.
fn trust_around(document: &Value, part: &str, budget: usize) -> Map<String, Value> {
    let mut around = Map::new();
    for (end, _) in part.match_indices('/') {
        let place = &part[..end];
        let Some(Value::Object(fields)) = document.pointer(place) else { continue };
        let is_said = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(rows) => !rows.is_empty(),
            _ => true,
        };
        let said = fields.iter().filter(|(name, value)| TRUST.contains(&name.as_str()) && is_said(value));
        let said: Map<String, Value> = said.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !said.is_empty() {
            around.insert(if place.is_empty() { "/".to_owned() } else { place.to_owned() }, said.into());
        }
    }
    match cut(&around.into(), "", RowsWanted { from: 0, most: usize::MAX }, budget).value {
        Value::Object(around) => around,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ran(document: &Value, messages: &str, code: i32) -> Ran<Vec<u8>> {
        Ran { output: document.to_string().into_bytes(), messages: messages.to_owned(), code: Some(code) }
    }

    fn many() -> Value {
        let row = |n: usize| json!({ "pid": n, "inner": (0..n % 40).collect::<Vec<_>>() });
        json!({ "runs": [{ "rows": (0..3000).map(row).collect::<Vec<_>>(), "trust": [{ "kind": "lost" }] }], "notes": ["a"] })
    }

    /// The limit holds for every part, and pages reach the last row.
    #[test]
    fn answers_stay_within_their_budget() {
        let (document, budget) = (many(), Budget::tokens(2000));
        for part in ["", "/runs", "/runs/0", "/runs/0/rows", "/runs/0/rows/39/inner"] {
            let paging = Paging { part: part.to_owned(), ..Paging::default() };
            let answer = Answer::of_document("schedviz x".into(), &ran(&document, "", 0), &paging, budget);
            let text = answer.text();
            assert!(text.len() <= 6000 && (text.len() > 4000 || part.ends_with("inner")), "{part}: {}", text.len());
            assert_eq!(answer.left_out.is_empty(), part.ends_with("inner"), "{part}");
        }
        let (mut from, mut rows) = (Some(0), 0);
        while let Some(at) = from {
            let paging = Paging { part: "/runs/0/rows".to_owned(), from: at, rows: None };
            let answer = Answer::of_document(String::new(), &ran(&document, "", 0), &paging, budget);
            assert_eq!(answer.trust["/runs/0"]["trust"][0]["kind"], "lost");
            assert_eq!(answer.trust["/"]["notes"][0], "a");
            rows += answer.document.as_array().expect("rows").len();
            from = answer.left_out.iter().find(|left| left.part == "/runs/0/rows").and_then(|left| left.from);
        }
        assert_eq!(rows, 3000);
    }

    #[test]
    fn errors_and_texts_are_answers() {
        let failed = Answer::of_document(
            "c".into(),
            &ran(&json!(1), "schedviz: no such task\n", 1),
            &Paging::default(),
            Budget::tokens(2000),
        );
        assert_eq!((failed.error.as_deref(), failed.exit), (Some("no such task"), Some(1)));
        let text = Ran { output: b"one\ntwo\n".to_vec(), messages: String::new(), code: Some(0) };
        let answer = Answer::of_document("c".into(), &text, &Paging::default(), Budget::tokens(2000));
        assert_eq!(answer.document, json!(["one", "two"]));
        let paging = Paging { part: "/nothing".to_owned(), ..Paging::default() };
        let absent = Answer::of_document("c".into(), &ran(&json!({}), "", 0), &paging, Budget::tokens(2000));
        assert!(absent.error.expect("an error").contains("no part"));
    }
}
