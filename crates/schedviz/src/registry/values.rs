//! The values of options in completions, by the recording on the command line: `schedviz latency trace.dat --pid <TAB>`.
//!
//! The scripts of the shells call the hidden command `complete` (`completions.rs`). It prints a line for each value, with a description behind a
//! tab, and nothing at all where the word is no value that it knows, or where the recording does not answer within [`BUDGET`].

use super::COMMANDS;
use anyhow::Result;
use clap::Command;
use parse::{Options, Trace};
use question::Subcommand;
use sched::{Comm, EventKind, EventSource, Pid};
use session::patterns::full_name;
use session::writer;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// The time that a person at the terminal waits for the values, at most.
const BUDGET: Duration = Duration::from_millis(150);
/// The number of events at the beginning of the recording that are read for names and kinds.
const EVENTS: usize = 100_000;
/// The maximum number of values that are printed.
const MOST: usize = 1_000;

/// Print the values of an option that the recording on the command line has, for completions
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CompleteArgs {
    /// The shell: its rules for words
    #[arg(value_enum)]
    shell: Shell,
    /// The words behind the program's name, up to the one that is being typed; for bash the line up to there, and the characters between words
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// A shell that completes words
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The values of options in completions.
#[derive(Debug)]
pub(crate) struct CompleteCommand;

impl Subcommand for CompleteCommand {
    const NAME: &'static str = "complete";
    const IS_PAGED: bool = false;
    const IS_HIDDEN: bool = true;
    type Args = CompleteArgs;

    /// Prints nothing but values: whatever is wrong is no concern of somebody who types.
    fn run(args: &CompleteArgs) -> Result<ExitCode> {
        let text = asked(args).unwrap_or_default();
        let printed = writer::print(text.as_bytes());
        Ok(ExitCode::from(u8::from(text.is_empty() || printed.is_err())))
    }
}

/// The kind of an option's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// A pattern of names of tasks.
    Patterns,
    /// A name of tasks.
    Names,
    /// Numbers of tasks, with commas between them.
    Pids,
    /// Numbers of CPUs, with commas between them, or ranges of them.
    Cpus,
    /// Events as `SYSTEM:NAME`, with commas between them.
    Events,
    /// The choice of the application, of which some are tasks.
    Application,
    /// Origins of waits in violation, as `why` names them.
    Origins,
}

impl Values {
    /// The values of an argument, by its name in the definition of the command line; nothing for one whose values are not in a recording.
    pub(super) fn of(command: &str, argument: &clap::Arg) -> Option<Values> {
        // These are of the running machine.
        if matches!(command, "record" | "top" | "machine") {
            return None;
        }
        match argument.get_id().as_str() {
            "tasks" | "exclude_tasks" | "spins" => Some(Values::Patterns),
            "comm" => Some(Values::Names),
            "pid" => Some(Values::Pids),
            "cpus" => Some(Values::Cpus),
            "events" if argument.get_action().takes_values() => Some(Values::Events),
            "application" => Some(Values::Application),
            "without" => Some(Values::Origins),
            _ => None,
        }
    }
}

/// The lines for what is being typed; nothing where its values are not those of a recording.
fn asked(args: &CompleteArgs) -> Option<String> {
    let (words, typed) = match (args.shell, args.command.as_slice()) {
        (Shell::Bash, [line, breaks]) => {
            let (words, typed) = split(line.to_str()?);
            (words, Typed { breaks: breaks.to_str()?.to_owned(), ..typed })
        }
        (Shell::Bash, _) => return None,
        (_, [words @ .., last]) => (words.to_vec(), Typed { word: last.to_str()?.to_owned(), ..Typed::default() }),
        _ => return None,
    };
    let (entry, at) = words.iter().enumerate().find_map(|(at, word)| {
        let named = |entry: &&question::Entry| word == entry.name || entry.alias.is_some_and(|alias| word == alias);
        COMMANDS.iter().find(named).map(|entry| (entry, at + 1))
    })?;
    let mut command = entry.definition();
    command.build();
    let words = &words[at..];
    let (option, value) = match typed.word.split_once('=').filter(|(option, _)| option.starts_with("--")) {
        Some((option, value)) => (option_of(&command, option)?, value),
        None => (option_before(&command, words.last()?.to_str()?)?, typed.word.as_str()),
    };
    let values = Values::of(entry.name, option)?;
    let before = &typed.word[..typed.word.len() - value.len()];
    let found = found(recordings_in(&command, words), values);
    Some(lines(&completed(values, value, &found), args.shell, &typed, before))
}

/// The option that a word is, if it is one that takes a value.
fn option_of<'c>(command: &'c Command, word: &str) -> Option<&'c clap::Arg> {
    let long = word.strip_prefix("--")?;
    let mut arguments = command.get_arguments().filter(|argument| argument.get_action().takes_values());
    arguments.find(|argument| argument.get_long() == Some(long))
}

/// The option that a word is, if the next word is its value.
fn option_before<'c>(command: &'c Command, word: &str) -> Option<&'c clap::Arg> {
    option_of(command, word).filter(|option| !option.is_require_equals_set())
}

/// The words that may name the recording: files that are not the value of an option.
fn recordings_in(command: &Command, words: &[OsString]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut is_value = false;
    for word in words {
        let text = word.to_string_lossy();
        if !is_value && !text.starts_with('-') && Path::new(word).metadata().is_ok_and(|file| file.is_file()) {
            files.push(PathBuf::from(word));
        }
        is_value = option_before(command, &text).is_some();
    }
    files
}

/// The values that a recording has, each with its description.
type RecordedValues = BTreeMap<String, String>;

/// Collects the values on a thread of its own, which ends with the program: a recording that takes too long gives what it gave until then.
fn found(files: Vec<PathBuf>, values: Values) -> RecordedValues {
    let until = Instant::now() + BUDGET;
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let options = || Options { threads: 1, ..Options::default() };
        if let Some((file, trace)) = files.iter().find_map(|file| Some((file, recordings::open(file, options()).ok()?)))
        {
            // Nobody listens any more.
            let _ = collect(file, &trace, values, until, &send);
        }
    });
    let mut all = RecordedValues::new();
    while let Ok((value, what)) = receive.recv_timeout(until.saturating_duration_since(Instant::now())) {
        all.insert(value, what);
    }
    all
}

/// Sends the values of a recording, those of its header first.
fn collect(
    file: &Path,
    trace: &Trace,
    values: Values,
    until: Instant,
    send: &Sender<(String, String)>,
) -> Result<(), std::sync::mpsc::SendError<(String, String)>> {
    let mut sent = Ok(());
    let mut read = 0;
    let mut goes_on = |events: usize, sent: bool| {
        read += events;
        if sent && read < EVENTS && Instant::now() < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    match values {
        Values::Cpus => {
            for cpu in trace.observed() {
                send.send((cpu.0.to_string(), String::new()))?;
            }
        }
        Values::Events => {
            let mut seen = vec![false; 1 << 16];
            trace.records(&mut |record| {
                let is_known = std::mem::replace(&mut seen[usize::from(record.id())], true);
                if let Some(format) = record.format().filter(|_| !is_known) {
                    sent = send.send((sched::event::escaped(full_name(format)), String::new()));
                }
                goes_on(1, sent.is_ok())
            });
        }
        Values::Origins => {
            // What is wrong with the trace is told by the command itself; a pass goes on when time is over, and ends with the program.
            let put = |origin: &'static str| drop(send.send((origin.to_owned(), String::new())));
            let _ = whatif::origins(file, &put);
        }
        Values::Patterns | Values::Names | Values::Pids | Values::Application => {
            let put = |pid: Pid, comm: Comm| {
                if pid.is_idle() || comm == Comm::EMPTY {
                    return Ok(());
                }
                let (name, number) = (comm.to_string(), pid.0.to_string());
                match values {
                    Values::Pids => send.send((number, name)),
                    Values::Patterns => send.send((regex_of(&name), String::new())),
                    Values::Names => send.send((name, String::new())),
                    _ => send
                        .send((format!("comm:{name}"), String::new()))
                        .and(send.send((format!("pid:{number}"), name))),
                }
            };
            for (pid, comm) in trace.saved_names() {
                put(*pid, *comm)?;
            }
            let Ok(mut events) = trace.events() else { return Ok(()) };
            // What is wrong with the events is told by the command itself.
            let _ = events.events(&mut |batch: &[sched::SchedEvent]| {
                sent = batch.iter().try_for_each(|event| match event.kind {
                    EventKind::Switch { prev, next, .. } => put(prev.pid, prev.comm).and(put(next.pid, next.comm)),
                    _ => Ok(()),
                });
                goes_on(batch.len(), sent.is_ok())
            });
        }
    }
    sent
}

/// A pattern that a name alone matches, as far as characters with a meaning are concerned.
fn regex_of(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The values that begin with what is typed, each as the whole word, with its description.
fn completed(values: Values, typed: &str, found: &RecordedValues) -> Vec<(String, String)> {
    // A list is completed behind its last comma, a range behind its `-`, a pattern behind `^`.
    let kept = match values {
        Values::Pids | Values::Events => typed.rfind(',').map_or(0, |at| at + 1),
        Values::Cpus => typed.rfind([',', '-']).map_or(0, |at| at + 1),
        Values::Patterns => usize::from(typed.starts_with('^')),
        Values::Names | Values::Application | Values::Origins => 0,
    };
    let (kept, typed) = typed.split_at(kept);
    let listed: Vec<&str> = if values == Values::Patterns { Vec::new() } else { kept.split(',').collect() };
    let choices = ["command", "none"].map(|word| (word.to_owned(), String::new()));
    let choices = choices.into_iter().filter(|_| values == Values::Application);
    let found = found.iter().map(|(value, what)| (value.clone(), what.clone()));
    let mut all: Vec<(String, String)> = choices
        .chain(found)
        .filter(|(value, _)| value.starts_with(typed) && !listed.contains(&value.as_str()))
        .collect();
    // Numbers in their order.
    all.sort_by_key(|(value, _)| value.parse::<u64>().map_or((1, 0), |number| (0, number)));
    all.truncate(MOST);
    all.iter_mut().for_each(|(value, _)| value.insert_str(0, kept));
    all
}

/// The word that is being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Typed {
    /// The word as the program would get it, without quotes.
    word: String,
    /// The same as it is typed.
    raw: String,
    /// The quote in which it ends.
    quote: Option<char>,
    /// The characters between which bash replaces words: `COMP_WORDBREAKS`.
    breaks: String,
}

/// The lines as the shell takes them. `before` is the part of the word in front of the value, such as `--pid=`.
fn lines(values: &[(String, String)], shell: Shell, typed: &Typed, before: &str) -> String {
    let mut out = String::new();
    for (value, what) in values {
        let word = match (shell, typed.quote) {
            // fish puts the value behind the option itself.
            (Shell::Fish, _) => value.clone(),
            (Shell::Zsh, _) => format!("{before}{value}"),
            // bash replaces what stands behind the last of its breaks, and closes quotes.
            (Shell::Bash, Some(_)) => format!("{before}{value}"),
            (Shell::Bash, None) => {
                let word = format!("{before}{}", quoted(value));
                let kept = typed.raw.rfind(|c| "=:".contains(c) && typed.breaks.contains(c)).map_or(0, |at| at + 1);
                word.get(kept..).unwrap_or(&word).to_owned()
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{word}{}{what}", if what.is_empty() { "" } else { "\t" });
    }
    out
}

/// A word in which no character has a meaning for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./,:=@%+^".contains(c);
    word.chars().fold(String::new(), |mut out, c| {
        if !is_plain(c) {
            out.push('\\');
        }
        out.push(c);
        out
    })
}

/// Splits the beginning of a line as bash does, without its expansions but that of `~/`: the words behind the first one, and the last one, which is
/// being typed.
fn split(line: &str) -> (Vec<OsString>, Typed) {
    let mut words = Vec::new();
    let mut last = Typed::default();
    let mut escaped = false;
    for c in line.chars() {
        match (last.quote, c) {
            (None, ' ' | '\t') if !escaped => {
                if !last.raw.is_empty() {
                    words.push(std::mem::take(&mut last));
                }
                continue;
            }
            (None | Some('"'), '\\') if !escaped => escaped = true,
            (None, '\'' | '"') if !escaped => last.quote = Some(c),
            (Some(quote), c) if c == quote && !escaped => last.quote = None,
            _ => {
                last.word.push(c);
                escaped = false;
            }
        }
        last.raw.push(c);
    }
    let home = std::env::var("HOME").unwrap_or_default();
    let word = |typed: Typed| match typed.raw.strip_prefix("~/") {
        Some(_) => OsString::from(format!("{home}{}", &typed.word[1..])),
        None => OsString::from(typed.word),
    };
    let words = words.into_iter().skip(1).map(word).collect();
    (words, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_bash_splits_them() {
        let words = |line: &str| {
            let (words, last) = split(line);
            (words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>(), last)
        };
        let (before, last) = words(r#"./schedviz  latency 'a b'.dat c\ d "e\"f" --comm 'kwork"#);
        assert_eq!(before, ["latency", "a b.dat", "c d", "e\"f", "--comm"]);
        assert_eq!((last.word.as_str(), last.raw.as_str(), last.quote), ("kwork", "'kwork", Some('\'')));
        assert_eq!(words("schedviz why t.dat --pid ").1, Typed::default());
        assert_eq!(words("").0, [""; 0]);
    }

    #[test]
    fn values_are_completed_behind_what_is_typed() {
        let all = |values: &[&str]| {
            values.iter().map(|value| ((*value).to_owned(), String::new())).collect::<RecordedValues>()
        };
        let words = |values, typed: &str, found: &[&str]| -> Vec<String> {
            completed(values, typed, &all(found)).into_iter().map(|(value, _)| value).collect()
        };
        assert_eq!(words(Values::Pids, "", &["10", "9", "100"]), ["9", "10", "100"]);
        assert_eq!(words(Values::Pids, "10,1", &["10", "9", "100"]), ["10,100"]);
        assert_eq!(words(Values::Cpus, "0-", &["1", "2"]), ["0-1", "0-2"]);
        assert_eq!(words(Values::Patterns, "^ha", &["hack", "make"]), ["^hack"]);
        assert_eq!(words(Values::Application, "c", &["comm:a", "pid:7"]), ["command", "comm:a"]);
        let many: Vec<String> = (0..2 * MOST).map(|number| number.to_string()).collect();
        assert_eq!(words(Values::Pids, "", &many.iter().map(String::as_str).collect::<Vec<_>>()).len(), MOST);
    }

    #[test]
    fn words_for_bash_are_quoted_and_begin_behind_its_breaks() {
        let line = |value: &str, raw: &str, before: &str, quote| {
            let typed = Typed { raw: raw.into(), quote, breaks: " =:".into(), ..Typed::default() };
            lines(&[(value.to_owned(), String::new())], Shell::Bash, &typed, before)
        };
        assert_eq!(line("a b$(x)", "", "", None), "a\\ b\\$\\(x\\)\n");
        assert_eq!(line("sched:sched_switch", "sched:sch", "", None), "sched_switch\n");
        assert_eq!(line("330", "--pid=3", "--pid=", None), "330\n");
        assert_eq!(line("a b", "'a", "", Some('\'')), "a b\n");
        assert_eq!(regex_of("kworker/0:1+e"), r"kworker/0:1\+e");
    }
}
