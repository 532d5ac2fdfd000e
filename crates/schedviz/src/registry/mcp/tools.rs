//! The tools: each command that answers, with the arguments of its definition.

use crate::commands::info::InfoCommand;
use crate::registry::COMMANDS;
use crate::registry::arguments::{ValueKind, is_list, is_value_optional, kind, name};
use clap::builder::PossibleValue;
use clap::{Arg, ArgAction};
use question::{Answers, Entry, Subcommand};
use serde_json::{Map, Value, json};

/// The tool that lists the recordings, and answers what one holds.
pub(super) const OPEN: &str = "open";

/// The tool that shows pages of the book, and all options of a command.
pub(super) const HELP: &str = "help";

/// The command behind [`OPEN`].
pub(super) const INFO: &str = InfoCommand::NAME;

/// The options that name files to read. One that takes a path and is not among them is not offered: it may write.
const INPUTS: [&str; 9] = ["topology", "host", "kallsyms", "base", "new", "group", "predict_from", "measured", "trace"];

/// The arguments that concern the terminal, messages or the text alone. The rows of a text are pages of the answer here.
const OF_THE_TERMINAL: [&str; 10] =
    ["help", "version", "verbose", "markdown", "text", "tui", "rows", "threads", "quiet", "color"];

/// The headings whose options write, or form what is written.
const OF_OUTPUT: [&str; 2] = ["Output", "Figure"];

/// The arguments of each tool that page through an answer, with their descriptions.
pub(super) const PAGING: [(&str, &str, &str); 3] = [
    ("part", "string", "JSON pointer: only this part"),
    ("from", "integer", "First row, from 0"),
    ("rows", "integer", "Maximum rows of each list"),
];

/// A command that an assistant can run.
pub(super) struct Tool {
    /// The line of the registry.
    pub(super) entry: &'static Entry,
    /// The form of its answer.
    pub(super) answers: Answers,
    /// The definition of its command line.
    pub(super) command: clap::Command,
}

/// Whether an assistant can give an argument: none that writes, and none without an effect on the document.
fn is_offered(arg: &Arg) -> bool {
    let id = arg.get_id().as_str();
    let is_of_output = arg.get_help_heading().is_some_and(|heading| OF_OUTPUT.contains(&heading));
    let is_path = matches!(kind(arg), ValueKind::Path | ValueKind::Pattern | ValueKind::Group);
    let is_input = !is_path || arg.is_positional() || INPUTS.contains(&id);
    let is_other = is_of_output || session::inputs::OUTPUTS.contains(&id) || OF_THE_TERMINAL.contains(&id);
    is_input && !is_other && !arg.is_hide_set()
}

impl Tool {
    /// The tools of all commands that answer, in the order of the registry.
    pub(super) fn all() -> Vec<Tool> {
        let tool = |entry: &'static Entry| {
            let mut command = entry.definition();
            command.build();
            Some(Tool { entry, answers: entry.answers?, command })
        };
        COMMANDS.iter().filter(|entry| !entry.is_hidden).filter_map(tool).collect()
    }

    /// The arguments that an assistant can give.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &Arg> {
        self.command.get_arguments().filter(|arg| is_offered(arg))
    }

    /// The description of the tool: the question, and what the command does.
    pub(super) fn description(&self) -> String {
        let about = self.command.get_about().map(ToString::to_string).unwrap_or_default();
        self.entry.question.map_or_else(|| about.clone(), |(question, _)| format!("{question} {about}"))
    }

    /// The JSON schema of the arguments: those that short help shows, which one question needs. The others are accepted as well.
    pub(super) fn schema(&self) -> Map<String, Value> {
        let is_shown = |arg: &&Arg| arg.is_positional() || !arg.is_hide_short_help_set();
        let listed = |arg: &Arg| {
            let mut property = property(arg);
            if let Some(Value::String(help)) = property.get_mut("description") {
                help.truncate(brief(help).len());
            }
            (name(arg), property)
        };
        let mut properties: Map<String, Value> = self.arguments().filter(is_shown).map(listed).collect();
        let required: Vec<String> = self.arguments().filter(|arg| arg.is_required_set()).map(name).collect();
        let is_document = self.answers == Answers::Document;
        for (name, kind, about) in PAGING.into_iter().filter(|(name, ..)| is_document || *name != "part") {
            properties.insert(name.to_owned(), json!({ "type": kind, "description": about }));
        }
        object(properties, required)
    }

    /// All options of the command, for [`HELP`].
    pub(super) fn options(&self) -> Vec<Value> {
        let option = |arg: &Arg| {
            let mut option = property(arg);
            option["name"] = name(arg).into();
            option
        };
        self.arguments().map(option).collect()
    }
}

/// The length of a description, in bytes, above which its first words are enough in a list: a conversation begins with all of it.
const BRIEF: usize = 80;

/// The beginning of the description of an argument: its first sentence, or what is before a colon where that is long.
pub(super) fn brief(help: &str) -> &str {
    let before =
        |text: &'_ str, marks: &[&str]| marks.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let first = &help[..before(help, &["; ", ". ", " ["])];
    if first.len() > BRIEF { &first[..before(first, &[": ", ", such as ", " ("])] } else { first }
}

/// The JSON schema of an object.
pub(super) fn object(properties: Map<String, Value>, required: Vec<String>) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

/// The JSON schema of the value of an argument.
fn property(arg: &Arg) -> Value {
    let choices = arg.get_possible_values();
    let choices: Vec<&str> = choices.iter().filter(|value| !value.is_hide_set()).map(PossibleValue::get_name).collect();
    let one = match kind(arg) {
        ValueKind::Switch if matches!(arg.get_action(), ArgAction::Count) => json!({ "type": "integer" }),
        ValueKind::Switch => json!({ "type": "boolean" }),
        _ if is_value_optional(arg) => json!({ "type": ["string", "boolean"] }),
        ValueKind::Whole => json!({ "type": "integer" }),
        ValueKind::Number => json!({ "type": "number" }),
        _ if choices.is_empty() => json!({ "type": "string" }),
        _ => json!({ "type": "string", "enum": choices }),
    };
    let mut value = if is_list(arg) { json!({ "type": "array", "items": one }) } else { one };
    if let Some(help) = arg.get_help() {
        value["description"] = help.to_string().replace('\n', " ").into();
    }
    value
}
