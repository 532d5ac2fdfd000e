//! The pager for long text, as git has it: `SCHEDVIZ_PAGER`, `PAGER` or less, where standard output is a terminal.
//!
//! [`enable`] allows it, for commands whose output is text. It starts with the first text that is printed ([`begin`]), so that the progress of what comes
//! before it is seen, and [`end`] waits until the reader has closed it. The exit status of the program stays that of the command.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether text may go to a pager.
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Allows a pager for the text of this run.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// Text is about to be printed: starts the pager where it is allowed and standard output is a terminal. Returns whether one reads the text, now or since
/// earlier. Without it, as where the pager cannot be started, the text goes to the terminal.
pub fn begin() -> bool {
    let is_paged = ENABLED.load(Ordering::Relaxed) && imp::begin();
    // It is asked for each piece of a long text.
    if !is_paged {
        ENABLED.store(false, Ordering::Relaxed);
    }
    is_paged
}

/// Waits until the reader closes the pager, if there is one. Nothing more goes to it.
pub fn end() {
    imp::end();
}

/// The command of the pager, and whether a shell has to read it; nothing where none is wanted.
fn wanted(get: impl Fn(&str) -> Option<OsString>) -> Option<(OsString, bool)> {
    // A terminal without a cursor pages nothing.
    get("TERM").filter(|term| term != "dumb")?;
    let command = get("SCHEDVIZ_PAGER").or_else(|| get("PAGER")).unwrap_or_else(|| "less".into());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte) || !byte.is_ascii();
    let is_program = command.as_encoded_bytes().iter().all(is_word);
    (!command.is_empty() && command != "cat").then_some((command, !is_program))
}

#[cfg(target_os = "linux")]
mod imp {
    use rustix::io::dup;
    use rustix::stdio::{dup2_stderr, dup2_stdout, stderr};
    use std::io::{IsTerminal, Write};
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex, PoisonError};

    /// A pager that runs.
    struct Running {
        child: Child,
        /// The terminal that standard error was, if it goes to the pager as well.
        stderr: Option<OwnedFd>,
    }

    #[derive(Default)]
    enum State {
        #[default]
        NotAsked,
        /// There is none, and will be none.
        Without,
        Running(Running),
    }

    static STATE: Mutex<State> = Mutex::new(State::NotAsked);

    pub(super) fn begin() -> bool {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::NotAsked) {
            *state = started().map_or(State::Without, State::Running);
        }
        matches!(*state, State::Running(_))
    }

    /// Starts the pager and writes to it from now on; nothing where there is no terminal, or no such program.
    fn started() -> Option<Running> {
        if !std::io::stdout().is_terminal() {
            return None;
        }
        let (pager, of_shell) = super::wanted(|name| std::env::var_os(name))?;
        let mut command = if of_shell { Command::new("sh") } else { Command::new(&pager) };
        if of_shell {
            command.arg("-c").arg(&pager);
        }
        // As git: what fits the screen is printed and the pager ends, colours are kept, the text stays on the screen.
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let saved_stderr = if std::io::stderr().is_terminal() { Some(dup(stderr()).ok()?) } else { None };
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let pipe = child.stdin.take()?;
        dup2_stdout(&pipe).ok()?;
        if saved_stderr.is_some() {
            // Messages about the text belong to it.
            dup2_stderr(&pipe).ok()?;
        }
        // Ctrl-C is for the pager, as in less, where it ends a search.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)));
        Some(Running { child, stderr: saved_stderr })
    }

    pub(super) fn end() {
        let state = std::mem::replace(&mut *STATE.lock().unwrap_or_else(PoisonError::into_inner), State::Without);
        let State::Running(mut running) = state else { return };
        let _ = std::io::stdout().flush();
        // The pager sees the end of the text. What is still held, since the pager was closed early, must not appear on the terminal at the program's end.
        if let Ok((_, nowhere)) = std::io::pipe() {
            let _ = dup2_stdout(&nowhere);
        }
        if let Some(stderr) = running.stderr {
            let _ = dup2_stderr(&stderr);
        }
        let _ = running.child.wait();
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    pub(super) fn begin() -> bool {
        false
    }

    pub(super) fn end() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_that_of_the_environment() {
        let pager = |variables: &[(&str, &str)]| {
            let get = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).into());
            wanted(get).map(|(command, of_shell)| (command.to_string_lossy().into_owned(), of_shell))
        };
        let vt = ("TERM", "xterm");
        assert_eq!(pager(&[vt]), Some(("less".into(), false)));
        assert_eq!(pager(&[vt, ("PAGER", "/usr/bin/most")]), Some(("/usr/bin/most".into(), false)));
        assert_eq!(pager(&[vt, ("PAGER", "more"), ("SCHEDVIZ_PAGER", "less -S")]), Some(("less -S".into(), true)));
        for without in
            [&[][..], &[("TERM", "dumb")], &[vt, ("PAGER", "cat")], &[vt, ("PAGER", "most"), ("SCHEDVIZ_PAGER", "")]]
        {
            assert_eq!(pager(without), None, "{without:?}");
        }
    }
}
