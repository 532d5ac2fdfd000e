//! The commands and the tables as data, from which `python/generate.py` makes the Python module.

use super::arguments::{self, ValueKind};
use super::{command_line, define_all};
use clap::{Arg, Command};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The word for the kind of an argument's values.
fn kind(argument: &Arg) -> &'static str {
    match arguments::kind(argument) {
        ValueKind::Switch => "flag",
        _ if !argument.get_possible_values().is_empty() => "choice",
        ValueKind::Path => "path",
        ValueKind::Whole => "integer",
        ValueKind::Number => "number",
        ValueKind::Pattern | ValueKind::Group | ValueKind::Text => "text",
    }
}

/// The name of an argument as one of a function.
fn name(argument: &Arg) -> String {
    arguments::name(argument).replace('-', "_")
}

/// An argument: its name, the word on the command line, its values and its help.
fn argument(argument: &Arg) -> Value {
    let text = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
    let choices: Vec<_> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    json!({
        "name": name(argument),
        "option": argument.get_long().map(|long| format!("--{long}")),
        "heading": argument.get_help_heading(),
        "help": text,
        "kind": kind(argument),
        "choices": choices,
        "repeats": arguments::is_list(argument),
        "value_can_be_left_out": arguments::is_value_optional(argument),
        "commas": argument.get_value_delimiter().is_some(),
        "required": argument.is_required_set(),
    })
}

/// The arguments of all commands, by their names; of arguments that share a name, the second is called `NAME.2`.
#[derive(Default)]
struct Arguments(BTreeMap<String, Value>);

impl Arguments {
    /// Adds an argument unless it is there; returns its name here.
    fn add(&mut self, name: &str, argument: Value) -> String {
        let (mut place, mut number) = (name.to_owned(), 1);
        while self.0.get(&place).is_some_and(|known| *known != argument) {
            number += 1;
            place = format!("{name}.{number}");
        }
        self.0.entry(place.clone()).or_insert(argument);
        place
    }
}

/// A command: its name, its texts, and the names of its arguments.
fn described(command: &Command, all: &mut Arguments) -> Value {
    let arguments = command.get_arguments().filter(|a| !a.is_hide_set() && a.get_id() != "help");
    let arguments: Vec<_> = arguments.map(|one| all.add(&name(one), argument(one))).collect();
    json!({
        "name": command.get_name(),
        "about": command.get_about().map(ToString::to_string),
        "more": command.get_long_about().map(ToString::to_string),
        "arguments": arguments,
    })
}

/// A table of facts.
fn table(table: export::FactTable) -> Value {
    let columns = table.columns().iter();
    let columns: Vec<_> = columns.map(|c| json!({ "name": c.name, "type": c.kind.name(), "doc": c.doc })).collect();
    json!({ "name": table.name(), "doc": table.doc(), "columns": columns })
}

/// The commands, their arguments, and the tables of facts, as a JSON document.
pub(super) fn all() -> Value {
    let mut command = command_line();
    define_all(&mut command);
    let mut arguments = Arguments::default();
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
    let commands: Vec<_> = shown.map(|command| described(command, &mut arguments)).collect();
    json!({
        "arguments": arguments.0,
        "commands": commands,
        "tables_schema": export::SCHEMA,
        "tables": export::FactTable::ALL.map(table),
    })
}
