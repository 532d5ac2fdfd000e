//! Messages on standard error, printed at once or held until their turn.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Prints a message on standard error with the program's name in front. A message that cannot be written, as where
/// standard error is closed or on a full disk, is dropped: it changes neither the output nor the exit status.
pub fn emit(message: &str) {
    // One write, so that the lines of programs that share a terminal stay whole.
    let _ = std::io::stderr().lock().write_all(format!("schedviz: {message}\n").as_bytes());
}

/// Whether messages are coloured: on a terminal, unless the environment has `NO_COLOR`.
pub fn are_coloured(color: clap::ColorChoice) -> bool {
    match color {
        clap::ColorChoice::Always => true,
        clap::ColorChoice::Never => false,
        clap::ColorChoice::Auto => std::io::stderr().is_terminal() && !is_plain(),
    }
}

/// Whether the environment has `NO_COLOR`, with any value but an empty one (no-color.org).
pub fn is_plain() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The destination of messages. While several traces are measured at the same time, the messages of each are held and
/// printed in the order of the traces.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    held: Option<Arc<Mutex<Vec<String>>>>,
}

impl Messages {
    /// Returns messages that are held until [`Messages::release`].
    pub fn held() -> Messages {
        Messages { held: Some(Arc::default()) }
    }

    /// Prints a message with the program's name in front, or holds it.
    pub fn add(&self, message: &str) {
        match &self.held {
            None => emit(message),
            Some(held) => held.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned()),
        }
    }

    /// Prints the held messages.
    pub fn release(&self) {
        if let Some(held) = &self.held {
            let held = std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
            held.iter().for_each(|message| emit(message));
        }
    }
}
