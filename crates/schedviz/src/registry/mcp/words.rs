//! The arguments of a request as the words of a command line.

use super::folders::Folders;
use super::tools::{PAGING, Tool};
use crate::registry::arguments::{ValueKind, is_list, is_value_optional, kind, name};
use clap::Arg;
use clap::parser::ValueSource;
use question::Answers;
use serde_json::{Map, Value};
use session::args::shell_word;
use std::ffi::OsStr;

/// Maximum number of values in a list.
const MOST_VALUES: usize = 256;

/// Maximum length of all words together, in bytes: the command line is part of the answer.
const MOST_BYTES: usize = 3000;

/// The part of a document that an answer is to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Paging {
    /// The JSON pointer of the part; empty for the document.
    pub(super) part: String,
    /// The index of the first row of the list there.
    pub(super) from: usize,
    /// Maximum number of rows of each list.
    pub(super) rows: Option<usize>,
}

impl Paging {
    /// Takes the paging out of the arguments of a request.
    pub(super) fn take(arguments: &mut Map<String, Value>) -> Result<Paging, String> {
        let [(part, ..), (from, ..), (rows, ..)] = PAGING;
        let number = |name: &str, value: Option<Value>| match value {
            None | Some(Value::Null) => Ok(None),
            Some(value) => whole(&value)
                .and_then(|number| usize::try_from(number).ok())
                .map(Some)
                .ok_or_else(|| format!("{name} is a whole number from 0")),
        };
        let pointer = match arguments.remove(part) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(pointer)) if pointer.is_empty() || pointer.starts_with('/') => pointer,
            Some(_) => return Err("part is a JSON pointer, such as /runs/0".to_owned()),
        };
        if pointer.len() > 512 {
            return Err("part is longer than 512 bytes".to_owned());
        }
        let first = number(from, arguments.remove(from))?.unwrap_or(0);
        Ok(Paging { part: pointer, from: first, rows: number(rows, arguments.remove(rows))? })
    }
}

/// A whole number, written as one or as a text.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// A command line that was asked for.
#[derive(Clone, Debug)]
pub(super) struct CommandLine {
    /// The name of the command and its arguments.
    words: Vec<String>,
    /// The form of the answer.
    pub(super) answers: Answers,
}

impl CommandLine {
    /// Returns the words of a request. Files outside of the folders, unknown options and values that the command refuses are errors.
    pub(super) fn of(tool: &Tool, arguments: &Map<String, Value>, folders: &Folders) -> Result<CommandLine, String> {
        let command = tool.entry.name;
        if let Some(unknown) = arguments.keys().find(|key| !tool.arguments().any(|arg| name(arg) == **key)) {
            return Err(format!("{command} has no option {unknown:?}; help about={command} lists all"));
        }
        let mut words = vec![command.to_owned()];
        let (positional, options): (Vec<&Arg>, Vec<&Arg>) = tool.arguments().partition(|arg| arg.is_positional());
        for arg in positional.into_iter().chain(options) {
            if let Some(value) = arguments.get(&name(arg)).filter(|value| !value.is_null()) {
                add(&mut words, arg, value, folders).map_err(|why| format!("{}: {why}", name(arg)))?;
            }
        }
        if words.iter().map(String::len).sum::<usize>() > MOST_BYTES {
            return Err(format!("the arguments are longer than {MOST_BYTES} bytes; write files with *: old/*.dat"));
        }
        let line = CommandLine { words, answers: tool.answers };
        line.check(tool)?;
        Ok(line)
    }

    /// Refuses what the definition of the command refuses, and every argument that is not offered.
    fn check(&self, tool: &Tool) -> Result<(), String> {
        let plain = tool.command.clone().color(clap::ColorChoice::Never);
        let matches = plain.try_get_matches_from(self.run()).map_err(|refused| {
            let text = refused.to_string();
            text.split("\n\nUsage")
                .next()
                .and_then(|text| text.split("\n\nFor more").next())
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned()
        })?;
        let is_typed = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let is_offered =
            |arg: &&Arg| arg.get_id() == "json" || tool.arguments().any(|other| other.get_id() == arg.get_id());
        match tool.command.get_arguments().filter(is_typed).find(|arg| !is_offered(arg)) {
            None => Ok(()),
            Some(arg) => Err(format!("{} is not offered", name(arg))),
        }
    }

    /// The words that are run: the answer goes to standard output, and nowhere else.
    pub(super) fn run(&self) -> Vec<&str> {
        let json = (self.answers == Answers::Document).then_some("--json");
        self.words.iter().map(String::as_str).chain(json).collect()
    }

    /// The command line that a person types to see the same.
    pub(super) fn shown(&self) -> String {
        let words = self.words.iter().map(|word| shell_word(OsStr::new(word)));
        std::iter::once("schedviz".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// Adds the words of an argument.
fn add(words: &mut Vec<String>, arg: &Arg, value: &Value, folders: &Folders) -> Result<(), String> {
    let long = arg.get_long().map(|long| format!("--{long}"));
    match (value, kind(arg)) {
        (Value::Bool(false), _) => return Ok(()),
        (Value::Bool(true), kind) if kind == ValueKind::Switch || is_value_optional(arg) => {
            words.extend(long);
            return Ok(());
        }
        (_, ValueKind::Switch) => return Err("true or false is needed".to_owned()),
        _ => {}
    }
    let values = match value {
        Value::Array(values) if is_list(arg) => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    if values.is_empty() || values.len() > MOST_VALUES {
        return Err(format!("a list has 1 to {MOST_VALUES} values"));
    }
    let values: Vec<String> = values.iter().map(|value| word(arg, value, folders)).collect::<Result<_, _>>()?;
    // A list with a separator is one word.
    let values = match arg.get_value_delimiter() {
        Some(separator) if long.is_some() => vec![values.join(&separator.to_string())],
        _ => values,
    };
    let takes_several = arg.get_num_args().is_some_and(|number| number.max_values() > 1);
    match long {
        None => words.extend(values),
        Some(long) if takes_several => words.extend(std::iter::once(long).chain(values)),
        Some(long) => {
            for value in values {
                // The value of an option may be optional, or begin with a hyphen.
                if arg.is_require_equals_set() || value.starts_with('-') {
                    words.push(format!("{long}={value}"));
                } else {
                    words.extend([long.clone(), value]);
                }
            }
        }
    }
    Ok(())
}

/// A value as a word of the command line.
fn word(arg: &Arg, value: &Value, folders: &Folders) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err("a text or a number is needed".to_owned()),
    };
    if text.contains('\0') {
        return Err("the value has a zero byte in it".to_owned());
    }
    let printed = |path: std::path::PathBuf| path.display().to_string();
    let word = match kind(arg) {
        ValueKind::Path => folders.find(&text).map(printed)?,
        ValueKind::Pattern => folders.find_pattern(&text).map(printed)?,
        ValueKind::Group => group(&text, folders)?,
        _ => {
            // A specification can be a file, or a name that the program knows.
            let found = if arg.is_positional() { folders.find(&text).ok().map(printed) } else { None };
            found.map_or_else(|| folders.refuse_outside(&text).map(|()| text.clone()), Ok)?
        }
    };
    let is_path = matches!(kind(arg), ValueKind::Path | ValueKind::Pattern);
    if is_path && arg.get_value_delimiter().is_some_and(|separator| word.contains(separator)) {
        return Err("the name has a comma in it".to_owned());
    }
    let is_alone = arg.get_long().is_none() || arg.get_num_args().is_some_and(|number| number.max_values() > 1);
    if is_alone && word.starts_with('-') {
        return Err(format!("{word:?} begins with a hyphen"));
    }
    Ok(word)
}

/// A group whose files are in the folders.
fn group(text: &str, folders: &Folders) -> Result<String, String> {
    let (name, files) = text.split_once('=').ok_or("this is not NAME=FILE[,FILE...]")?;
    let files: Vec<String> = files
        .split(',')
        .map(|file| folders.find_pattern(file).map(|path| path.display().to_string()))
        .collect::<Result<_, _>>()?;
    match files.iter().any(|file| file.contains(',')) {
        true => Err("a file of a group has a comma in its name".to_owned()),
        false => Ok(format!("{name}={}", files.join(","))),
    }
}
