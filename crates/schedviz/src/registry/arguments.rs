//! Arguments of the command line as assistants and the Python module know them, by clap's definitions.

use clap::{Arg, ArgAction};
use std::any::TypeId;
use std::path::PathBuf;

/// The kind of the value of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Given or not.
    Switch,
    /// The name of a file or folder.
    Path,
    /// Names of files, in which `*` stands for anything.
    Pattern,
    /// A group of files: `NAME=FILE[,FILE...]`.
    Group,
    /// A whole number.
    Whole,
    /// A number with a fraction.
    Number,
    /// Any other text.
    Text,
}

/// The kind of an argument, by its definition.
pub(super) fn kind(arg: &Arg) -> ValueKind {
    let has_type = |id: TypeId| arg.get_value_parser().type_id() == id;
    let names = arg.get_value_names().unwrap_or_default();
    let is_named = |name: &str| names.iter().any(|own| own.as_str() == name);
    let whole =
        [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<usize>(), TypeId::of::<i32>()];
    match () {
        () if !arg.get_action().takes_values() => ValueKind::Switch,
        () if is_named("NAME=FILES") => ValueKind::Group,
        () if is_named("FILES") => ValueKind::Pattern,
        () if has_type(TypeId::of::<PathBuf>()) || is_named("FILE") || is_named("FOLDER") => ValueKind::Path,
        () if whole.into_iter().any(has_type) => ValueKind::Whole,
        () if has_type(TypeId::of::<f64>()) || has_type(TypeId::of::<f32>()) => ValueKind::Number,
        () => ValueKind::Text,
    }
}

/// Whether an argument takes several values.
pub(super) fn is_list(arg: &Arg) -> bool {
    let many = arg.get_num_args().is_some_and(|number| number.max_values() > 1);
    arg.get_action().takes_values() && (many || matches!(arg.get_action(), ArgAction::Append))
}

/// Whether an argument can be given with a value or without.
pub(super) fn is_value_optional(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|number| number.min_values() == 0 && number.max_values() == 1)
}

/// The name of an argument outside of a command line: that of the option, or of the value of one without.
pub(super) fn name(arg: &Arg) -> String {
    let value = || arg.get_value_names().and_then(|names| names.first()).map(|name| name.to_lowercase());
    arg.get_long().map(str::to_owned).or_else(value).unwrap_or_else(|| arg.get_id().to_string())
}
