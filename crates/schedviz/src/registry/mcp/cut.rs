//! A JSON value cut to a size: lists become shorter, and what was left out is counted. No text is cut.

use serde_json::{Map, Value};
use std::cell::Cell;

/// A list, or an object, of which an answer does not show all.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct LeftOut {
    /// The JSON pointer of the list or object.
    pub(super) part: String,
    /// The number of its rows or fields that the answer shows.
    pub(super) shown: usize,
    /// The number of its rows or fields in all; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) of: Option<usize>,
    /// The index of the first row behind those that are shown, from which a further request goes on; absent for an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<usize>,
    /// The fields of an object that are left out, up to a number of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) fields: Vec<String>,
}

impl LeftOut {
    /// The rows of a list behind those that are shown.
    fn rows(part: &str, shown: usize, of: usize, from: usize) -> LeftOut {
        LeftOut { part: part.to_owned(), shown, of: Some(of), from: Some(from), fields: Vec::new() }
    }
}

/// Maximum number of fields that are named.
const MOST_FIELDS: usize = 12;

/// A value that was cut.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// The value that is left.
    pub(super) value: Value,
    /// The lists and objects of which something was left out, from the outermost on.
    pub(super) left_out: Vec<LeftOut>,
}

/// The rows of the outermost list that are wanted, and of each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsWanted {
    /// The index of the first row of the outermost list.
    pub(super) from: usize,
    /// Maximum number of rows of each list.
    pub(super) most: usize,
}

/// Cuts a value to at most `budget` bytes of JSON. The largest lists are cut first, and all to a similar size: of the lists inside the value each
/// has at most so many bytes, without those of the lists in it, as make the whole fit. `pointer` is that of the value in its document.
pub(super) fn cut(value: &Value, pointer: &str, rows: RowsWanted, budget: usize) -> Cut {
    let caps = || std::iter::successors(Some(budget), |cap| (*cap > 0).then_some(cap * 3 / 4));
    let of_lists = caps().map(|lists| (lists, usize::MAX));
    // Objects with many fields, or long texts: fields are left out as well.
    let of_both = caps().map(|cap| (cap, cap));
    // A field that no answer can show is left out; of the others as many as can be are shown.
    let mut best: Option<(usize, Cut)> = None;
    for (lists, objects) in of_lists.chain(of_both) {
        let cutter = Cutter { rows, lists, objects, budget, visited: Cell::new(0) };
        let cut = cutter.root(value, pointer);
        let (shown, of) = match (&cut.value, value) {
            (Value::Object(shown), Value::Object(all)) => (shown.len(), all.len()),
            // The first row, at least, with shorter lists in it.
            (Value::Array(shown), Value::Array(all)) => {
                (shown.len().min(1), all.len().saturating_sub(rows.from).min(rows.most).min(1))
            }
            _ => (0, 0),
        };
        if shown == of {
            return cut;
        }
        if best.as_ref().is_none_or(|(most, _)| shown > *most) {
            best = Some((shown, cut));
        }
    }
    best.map_or(Cut { value: Value::Null, left_out: Vec::new() }, |(_, cut)| cut)
}

/// The sizes to which a value is cut.
struct Cutter {
    rows: RowsWanted,
    /// Maximum size of a list inside the value, in bytes, without the lists in it.
    lists: usize,
    /// Maximum size of an object inside the value, in bytes, without the lists in it.
    objects: usize,
    /// Maximum size of the value, in bytes.
    budget: usize,
    /// The bytes that were looked at: far beyond the budget the value does not fit, and the rest of it is not looked at.
    visited: Cell<usize>,
}

/// The length of a value as JSON, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    /// The length without the content of lists.
    own: usize,
    /// The whole length.
    all: usize,
}

impl Length {
    fn add(&mut self, other: Length, more: usize) {
        self.own += other.own + more;
        self.all += other.all + more;
    }
}

/// Multiple of the budget that is looked at.
const LOOKED_AT: usize = 8;

impl Cutter {
    /// Cuts the outermost value.
    fn root(&self, value: &Value, pointer: &str) -> Cut {
        let mut left_out = Vec::new();
        let value = match value {
            Value::Array(rows) => {
                let from = self.rows.from;
                let fits = |length: Length| length.all <= self.budget;
                let (shown, _) = self.list(rows, pointer, from, fits, &mut left_out);
                if shown.is_empty() && from < rows.len() {
                    // A row larger than an answer is asked for by itself.
                    left_out.clear();
                    left_out.extend((from + 1 < rows.len()).then(|| LeftOut::rows(pointer, 0, rows.len(), from + 1)));
                    let part = format!("{pointer}/{from}");
                    left_out.push(LeftOut { part, shown: 0, of: None, from: None, fields: Vec::new() });
                }
                Value::Array(shown)
            }
            Value::Object(fields) => {
                let (shown, _) = self.object(fields, pointer, |length| length.all <= self.budget, &mut left_out);
                Value::Object(shown)
            }
            other => other.clone(),
        };
        // The outermost comes first.
        left_out.reverse();
        Cut { value, left_out }
    }

    fn inner(&self, value: &Value, pointer: &str, left_out: &mut Vec<LeftOut>) -> (Value, Length) {
        match value {
            Value::Array(rows) => {
                let fits = |length: Length| length.own <= self.lists;
                let (rows, length) = self.list(rows, pointer, 0, fits, left_out);
                (Value::Array(rows), Length { own: 2, all: length.all })
            }
            Value::Object(fields) => {
                let fits = |length: Length| length.own <= self.objects;
                let (fields, length) = self.object(fields, pointer, fits, left_out);
                (Value::Object(fields), length)
            }
            leaf => {
                let length = leaf.to_string().len();
                self.visited.set(self.visited.get() + length);
                (leaf.clone(), Length { own: length, all: length })
            }
        }
    }

    /// Whether so much was looked at that the value cannot fit.
    fn is_hopeless(&self) -> bool {
        self.visited.get() > self.budget.saturating_mul(LOOKED_AT)
    }

    /// The rows of a list from `from` on that fit, and their length.
    fn list(
        &self,
        rows: &[Value],
        pointer: &str,
        from: usize,
        fits: impl Fn(Length) -> bool,
        left_out: &mut Vec<LeftOut>,
    ) -> (Vec<Value>, Length) {
        let (mut shown, mut length) = (Vec::new(), Length { own: 2, all: 2 });
        for (index, row) in rows.iter().enumerate().skip(from).take(self.rows.most) {
            let mut within = Vec::new();
            let (value, size) = self.inner(row, &format!("{pointer}/{index}"), &mut within);
            let before = length;
            length.add(size, 1);
            if !fits(length) || self.is_hopeless() {
                length = before;
                break;
            }
            shown.push(value);
            left_out.extend(within);
        }
        if from.saturating_add(shown.len()) < rows.len() {
            left_out.push(LeftOut::rows(pointer, shown.len(), rows.len(), from + shown.len()));
        }
        (shown, length)
    }

    /// The fields of an object that fit, and their length.
    fn object(
        &self,
        fields: &Map<String, Value>,
        pointer: &str,
        fits: impl Fn(Length) -> bool,
        left_out: &mut Vec<LeftOut>,
    ) -> (Map<String, Value>, Length) {
        let (mut shown, mut length, mut missing) = (Map::new(), Length { own: 2, all: 2 }, Vec::new());
        for (name, value) in fields {
            let key = Value::from(name.as_str()).to_string().len() + 2;
            let mut within = Vec::new();
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let (value, size) = self.inner(value, &format!("{pointer}/{escaped}"), &mut within);
            let before = length;
            length.add(size, key);
            if !fits(length) || self.is_hopeless() {
                length = before;
                missing.push(name);
                continue;
            }
            shown.insert(name.clone(), value);
            left_out.extend(within);
        }
        if !missing.is_empty() {
            let named = missing.iter().filter(|name| name.len() <= 64).take(MOST_FIELDS).map(|name| (*name).clone());
            let (part, of) = (pointer.to_owned(), Some(fields.len()));
            left_out.push(LeftOut { part, shown: shown.len(), of, from: None, fields: named.collect() });
        }
        (shown, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ALL: RowsWanted = RowsWanted { from: 0, most: usize::MAX };

    fn size(value: &Value) -> usize {
        value.to_string().len()
    }

    #[test]
    fn what_fits_is_not_cut() {
        let value = json!({ "a": [1, 2, { "b": "text" }], "c": {} });
        let whole = cut(&value, "", ALL, size(&value) + 8);
        assert_eq!((whole.value, whole.left_out), (value, Vec::new()));
    }

    #[test]
    fn the_largest_list_is_cut_and_the_small_one_stays() {
        let row = |n: usize| json!({ "pid": n, "name": "a task" });
        let value = json!({ "long": (0..1000).map(row).collect::<Vec<_>>(), "short": [1, 2, 3], "number": 7 });
        let short = cut(&value, "/runs/0", ALL, 1000);
        assert!(size(&short.value) <= 1000 && size(&short.value) > 600, "{}", size(&short.value));
        assert_eq!((&short.value["short"], &short.value["number"]), (&json!([1, 2, 3]), &json!(7)));
        let shown = short.value["long"].as_array().expect("a list").len();
        assert!(shown > 10, "{shown}");
        assert_eq!(short.left_out, [LeftOut::rows("/runs/0/long", shown, 1000, shown)]);
    }

    /// The only row of a list is shown although a list in it is too long.
    #[test]
    fn a_row_is_shown_without_all_of_the_list_in_it() {
        let rows: Vec<usize> = (1000..2000).collect();
        let value = json!({ "comparisons": [{ "finding": "better", "rows": rows }] });
        let short = cut(&value, "", ALL, 1500);
        assert_eq!(short.value["comparisons"][0]["finding"], "better");
        let shown = short.value["comparisons"][0]["rows"].as_array().expect("rows").len();
        assert!(shown > 100 && size(&short.value) <= 1500, "{shown} rows");
        assert_eq!(short.left_out, [LeftOut::rows("/comparisons/0/rows", shown, 1000, shown)]);
    }

    /// Page by page, each row is shown once.
    #[test]
    fn pages_of_a_list_are_the_list() {
        let rows: Vec<Value> = (0..500).map(|n| json!({ "n": n, "inner": vec![n; 3] })).collect();
        let (mut all, mut pages) = (Vec::new(), 0);
        let mut from = Some(0);
        while let Some(at) = from {
            let page = cut(&Value::Array(rows.clone()), "/rows", RowsWanted { from: at, most: usize::MAX }, 900);
            assert!(size(&page.value) <= 900);
            all.extend(page.value.as_array().expect("a list").clone());
            pages += 1;
            from = page.left_out.first().and_then(|left| left.from);
        }
        assert!(all == rows && pages > 10, "{pages} pages");
        let few = cut(&Value::Array(rows.clone()), "", RowsWanted { from: 498, most: 1 }, 900);
        assert_eq!(few.value, json!([{ "n": 498, "inner": [498] }]), "each list has so many rows");
        // A row that does not fit is shown in part; one that no answer can show is named.
        let long = "x".repeat(900);
        let wide = cut(&json!([1, { "a": long, "b": 2 }, 3]), "/r", RowsWanted { from: 1, most: 9 }, 500);
        assert_eq!(
            (&wide.value[0], wide.left_out.last().map(|left| left.fields.clone())),
            (&json!({ "b": 2 }), Some(vec!["a".to_owned()]))
        );
        let none = cut(&json!([1, long, 3]), "/r", RowsWanted { from: 1, most: 9 }, 500);
        let parts: Vec<_> = none.left_out.iter().map(|left| (left.part.as_str(), left.from)).collect();
        assert_eq!((none.value, parts), (json!([]), vec![("/r/1", None), ("/r", Some(2))]));
    }

    /// A text that does not fit is left out as a whole, and so are fields of an object with too many.
    #[test]
    fn no_text_is_cut() {
        let long = "x".repeat(5000);
        let value = json!({ "long": long, "short": "kept", "in": { "long": long, "n": 1 }, "list": [long, 1] });
        let short = cut(&value, "", ALL, 2000);
        assert_eq!(short.value, json!({ "short": "kept", "in": { "n": 1 }, "list": [] }));
        let parts: Vec<(&str, &[String])> =
            short.left_out.iter().map(|left| (left.part.as_str(), left.fields.as_slice())).collect();
        assert_eq!(parts, [("", &["long".to_owned()][..]), ("/list", &[][..]), ("/in", &["long".to_owned()][..])]);
        let many: Map<String, Value> = (0..2000).map(|n| (format!("field {n}/~"), n.into())).collect();
        let few = cut(&Value::Object(many), "", ALL, 2000);
        assert!(
            size(&few.value) <= 2000 && few.left_out[0].of == Some(2000) && few.left_out[0].fields.len() == MOST_FIELDS
        );
    }

    /// Every budget is kept, whatever the shape.
    #[test]
    fn every_budget_is_kept() {
        let deep = (0..60).fold(json!([[1, 2, 3], { "a": "b" }]), |inner, n| json!({ "n": n, "in": [inner, n] }));
        let wide = json!({ "rows": [deep.clone(), deep.clone()], "more": { "deep": deep } });
        for budget in [2, 3, 10, 50, 100, 333, 1000, 5000] {
            let short = cut(&wide, "", ALL, budget);
            assert!(size(&short.value) <= budget, "{budget}: {}", short.value);
        }
    }
}
