//! Signals during a recording: passed on to the traced command, so that the recording ends in order.

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

/// Receives SIGINT, SIGTERM and SIGHUP from its creation on.
pub(crate) struct Forwarder {
    state: Arc<Mutex<SignalState>>,
}

#[derive(Default)]
struct SignalState {
    /// The traced command, while it runs.
    command: Option<Pid>,
    /// The first signal that arrived.
    first: Option<i32>,
}

impl SignalState {
    /// Passes a signal on. A terminal has already sent an interrupt to the command; a second signal kills it.
    fn pass(&self, signal: i32, is_second: bool) {
        let Some(command) = self.command else { return };
        let sent = match signal {
            _ if is_second => Signal::KILL,
            SIGINT if std::io::stdin().is_terminal() => return,
            SIGINT => Signal::INT,
            SIGHUP => Signal::HUP,
            _ => Signal::TERM,
        };
        // The command may have ended just now.
        let _ = kill_process(command, sent);
    }
}

impl Forwarder {
    /// Starts to receive.
    pub(crate) fn install() -> Result<Forwarder> {
        let state = Arc::new(Mutex::new(SignalState::default()));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let received = Arc::clone(&state);
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let mut state = received.lock().unwrap_or_else(PoisonError::into_inner);
                let is_second = state.first.is_some();
                state.first.get_or_insert(signal);
                state.pass(signal, is_second);
            }
        });
        Ok(Forwarder { state })
    }

    /// Sets the command that gets the signals. A signal that arrived earlier is passed on at once.
    pub(crate) fn set_command(&self, command: Option<Pid>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.command = command;
        if let Some(signal) = state.first.filter(|_| command.is_some()) {
            state.pass(signal, true);
        }
    }

    /// The first signal that arrived.
    pub(crate) fn first(&self) -> Option<i32> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).first
    }
}

/// The exit status of a program that a signal ended, as shells count.
pub(crate) fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(1)
}
