//! The events of a trace, as far as a specification depends on them.

use crate::expr::Type;

/// An event of a trace.
#[derive(Clone, Debug)]
pub struct EventInfo {
    /// The event's number in the trace.
    pub id: u16,
    /// The name of the event with its system, as `sched:sched_switch`.
    pub name: String,
    /// The number of its occurrences in the trace.
    pub count: u64,
    /// The fields of the event with their types.
    pub fields: Vec<(String, Type)>,
    /// Whether the event is a text of the user's, in which `name=value` is a value as well.
    pub is_text: bool,
}

impl EventInfo {
    /// The type of a value of this event.
    ///
    /// # Errors
    ///
    /// The event has no such value; the message has the nearest names.
    pub fn type_of(&self, name: &str) -> Result<Type, String> {
        match name {
            "$cpu" | "$pid" => return Ok(Type::Number),
            "$command" | "$event" | "$any" => return Ok(Type::Text),
            "$syscall" if self.fields.iter().any(|(field, kind)| field == "id" && *kind == Type::Number) => {
                return Ok(Type::Text);
            }
            "$syscall" => return Err(format!("{} has no field id, the number of a system call", self.name)),
            _ => {}
        }
        if let Some((_, kind)) = self.fields.iter().find(|(field, _)| field == name) {
            return Ok(*kind);
        }
        match name {
            "text" => Ok(Type::Text),
            _ if name.starts_with('$') => {
                Err(format!("there is no value {name}; there are $cpu, $pid, $command, $event, $any and $syscall"))
            }
            _ if self.is_text => Ok(Type::Either),
            _ => {
                let fields: Vec<&str> = self.fields.iter().map(|(field, _)| field.as_str()).collect();
                let near = crate::spec::nearest(name, &fields);
                let near = if near.is_empty() { format!("; its fields: {}", fields.join(", ")) } else { near };
                Err(format!("{} has no field {name}{near}", self.name))
            }
        }
    }
}

/// The events of a trace.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// All events of the trace, with and without occurrences.
    pub events: Vec<EventInfo>,
    /// The machine by its name in `uname`, such as `x86_64`: it decides the names of system calls.
    pub machine: Option<String>,
}

impl Catalog {
    /// The events of this name, each with the text that the `*` stands for.
    pub(crate) fn find(&self, pattern: &str) -> Vec<(&EventInfo, Option<String>)> {
        let matching = |event: &EventInfo| -> Option<Option<String>> {
            match pattern.split_once('*') {
                None => (event.name == pattern).then_some(None),
                Some((before, after)) => {
                    let rest = event.name.strip_prefix(before)?;
                    Some(Some(rest.strip_suffix(after)?.to_owned()))
                }
            }
        };
        self.events.iter().filter_map(|event| Some((event, matching(event)?))).collect()
    }
}
