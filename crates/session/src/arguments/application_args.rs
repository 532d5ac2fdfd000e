//! The choice of the application.

use regex::Regex;
use std::fmt;

/// The choice of the application
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ApplicationArgs {
    /// The application, which is set apart from all other tasks: `command` (the traced command, even if it hardly ran), `none`, or
    /// tasks with all that descends from them: pid:LIST, comm:NAME, tasks:REGEX, cgroup:REGEX
    /// [default: what was recorded: the command, --pid, --cgroup or --time of schedviz record]
    #[arg(long, value_name = "WHICH", value_parser = ApplicationChoice::parse, help_heading = "Reading")]
    pub application: Option<ApplicationChoice>,
    /// The application without the tasks that work for it: those outside of it that wake its tasks and are woken by them, such as
    /// the server of a client
    #[arg(long, help_heading = "Reading")]
    pub strict: bool,
}

/// A choice of the application.
#[derive(Clone, Debug)]
pub enum ApplicationChoice {
    /// The traced command, whatever its work.
    Command,
    /// None: costs are those of the machine.
    None,
    /// The processes or threads with these numbers.
    Pids(Vec<i32>),
    /// The tasks with this name.
    Comm(String),
    /// The tasks whose name or command matches.
    Tasks(Regex),
    /// The tasks of cgroups whose path matches.
    Cgroup(Regex),
}

impl ApplicationChoice {
    /// Parses a choice.
    pub fn parse(text: &str) -> Result<ApplicationChoice, String> {
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "command" if value.is_empty() => Ok(ApplicationChoice::Command),
            "none" if value.is_empty() => Ok(ApplicationChoice::None),
            "pid" => ApplicationChoice::pids(value),
            "comm" => ApplicationChoice::comm(value),
            "tasks" => ApplicationChoice::tasks(value),
            "cgroup" => ApplicationChoice::cgroup(value),
            _ => Err("write command, none, pid:LIST, comm:NAME, tasks:REGEX or cgroup:REGEX".to_owned()),
        }
    }

    /// Parses the numbers of tasks, with commas between them.
    pub fn pids(list: &str) -> Result<ApplicationChoice, String> {
        let pids: Result<Vec<i32>, _> = list.split(',').map(str::parse).collect();
        let pids = pids.ok().filter(|pids| pids.iter().all(|pid| *pid > 0));
        pids.map(ApplicationChoice::Pids).ok_or_else(|| "write the numbers of tasks as 17,18".to_owned())
    }

    /// Parses the name of tasks.
    pub fn comm(name: &str) -> Result<ApplicationChoice, String> {
        some(name).map(|name| ApplicationChoice::Comm(name.to_owned()))
    }

    /// Parses an expression for the names of tasks.
    pub fn tasks(pattern: &str) -> Result<ApplicationChoice, String> {
        regex(pattern).map(ApplicationChoice::Tasks)
    }

    /// Parses an expression for the paths of cgroups.
    pub fn cgroup(pattern: &str) -> Result<ApplicationChoice, String> {
        regex(pattern).map(ApplicationChoice::Cgroup)
    }
}

/// A value that is not empty.
fn some(value: &str) -> Result<&str, String> {
    if value.is_empty() { Err("the value is missing".to_owned()) } else { Ok(value) }
}

fn regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(some(pattern)?).map_err(|e| e.to_string())
}

impl fmt::Display for ApplicationChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplicationChoice::Command => f.write_str("command"),
            ApplicationChoice::None => f.write_str("none"),
            ApplicationChoice::Pids(pids) => {
                let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
                write!(f, "pid:{}", pids.join(","))
            }
            ApplicationChoice::Comm(name) => write!(f, "comm:{name}"),
            ApplicationChoice::Tasks(pattern) => write!(f, "tasks:{pattern}"),
            ApplicationChoice::Cgroup(pattern) => write!(f, "cgroup:{pattern}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_written() {
        for text in ["command", "none", "pid:1,22", "comm:a:b", "tasks:^k", "cgroup:^/a"] {
            assert_eq!(ApplicationChoice::parse(text).map(|choice| choice.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "pid", "pid:", "pid:0", "pid:1,x", "comm:", "tasks:(", "none:1", "machine"] {
            assert!(ApplicationChoice::parse(text).is_err(), "{text}");
        }
    }
}
