//! The commands and the tables as data, from which the Python module is generated.

use super::{COMMANDS, command_line, define_all, schemas};
use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The kind of an argument's values.
fn kind(argument: &Arg) -> &'static str {
    let id = argument.get_value_parser().type_id();
    let is = |of: &[TypeId]| of.iter().any(|of| id == *of);
    if argument.get_num_args().is_some_and(|number| !number.takes_values()) {
        "flag"
    } else if !argument.get_possible_values().is_empty() {
        "choice"
    } else if is(&[TypeId::of::<PathBuf>()]) {
        "path"
    } else if is(&[TypeId::of::<usize>(), TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<u16>()]) {
        "integer"
    } else if is(&[TypeId::of::<f64>(), TypeId::of::<f32>()]) {
        "number"
    } else {
        "text"
    }
}

/// The name of an argument: of its option, or of its place in the usage.
fn name(argument: &Arg) -> String {
    let place = || argument.get_value_names().and_then(|names| names.first()).map(|name| name.to_lowercase());
    let name = argument.get_long().map(|long| long.replace('-', "_")).or_else(place);
    name.unwrap_or_else(|| argument.get_id().to_string())
}

/// An argument: its name, the word on the command line, its values and its help.
fn argument(argument: &Arg) -> Value {
    let values = argument.get_num_args();
    let text = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
    let choices: Vec<_> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    json!({
        "name": name(argument),
        "option": argument.get_long().map(|long| format!("--{long}")),
        "heading": argument.get_help_heading(),
        "help": text,
        "kind": kind(argument),
        "choices": choices,
        "repeats": matches!(argument.get_action(), ArgAction::Append) || values.is_some_and(|n| n.max_values() > 1),
        "value_can_be_left_out": values.is_some_and(|n| n.takes_values() && n.min_values() == 0),
        "commas": argument.get_value_delimiter().is_some(),
        "required": argument.is_required_set(),
    })
}

/// The arguments of all commands, by their names; of arguments that share a name, the second is called `NAME.2`.
#[derive(Default)]
struct Arguments(BTreeMap<String, Value>);

impl Arguments {
    /// Adds an argument unless it is there; returns its name here.
    fn add(&mut self, argument: Value) -> String {
        let name = argument["name"].as_str().expect("a name").to_owned();
        let mut names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}.{n}")));
        let place =
            names.find(|name| self.0.get(name).is_none_or(|known| *known == argument)).expect("names without end");
        self.0.entry(place.clone()).or_insert(argument);
        place
    }
}

/// A command, with the schemas of the documents that it prints.
fn described(command: &Command, all: &mut Arguments) -> Value {
    let entry = COMMANDS.iter().find(|entry| entry.name == command.get_name());
    let schemas = entry.map_or_else(Vec::new, |entry| schemas::of(entry).into_iter().map(|(id, _)| id).collect());
    let arguments = command.get_arguments().filter(|a| !a.is_hide_set() && a.get_id() != "help");
    let arguments: Vec<_> = arguments.map(|one| all.add(argument(one))).collect();
    json!({
        "name": command.get_name(),
        "about": command.get_about().map(ToString::to_string),
        "more": command.get_long_about().map(ToString::to_string),
        "schemas": schemas,
        "arguments": arguments,
    })
}

/// A table of facts.
fn table(table: export::FactTable) -> Value {
    let columns = table.columns().iter();
    let columns: Vec<_> = columns.map(|c| json!({ "name": c.name, "type": c.kind.name(), "doc": c.doc })).collect();
    json!({ "name": table.name(), "doc": table.doc(), "columns": columns })
}

/// `python/commands.json` has the commands, their arguments and the tables as the program has them. `SCHEDVIZ_BLESS=1` writes it, and
/// `python/generate.py` the Python module from it.
#[test]
fn the_python_module_is_generated_from_the_commands_as_they_are() {
    let mut command = command_line();
    define_all(&mut command);
    let mut arguments = Arguments::default();
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
    let commands: Vec<_> = shown.map(|command| described(command, &mut arguments)).collect();
    let tables = export::FactTable::ALL.map(table);
    let all = json!({
        "arguments": arguments.0,
        "commands": commands,
        "tables_schema": export::SCHEMA,
        "tables": tables,
    });
    let text = serde_json::to_string_pretty(&all).expect("JSON") + "\n";
    schemas::check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/commands.json"), &text);
}
