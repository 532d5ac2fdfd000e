//! The origins of wakeups.

use sched::Comm;
use serde::{Deserialize, Serialize};

/// The origin of the wakeup that ended a sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WakerContext {
    /// A task woke the sleeping one.
    Task,
    /// An interrupt or softirq handler woke the task.
    Interrupt,
    /// No event shows the waker.
    #[default]
    Unknown,
    /// The sleep has not ended within the window.
    NotWoken,
    /// No wakeup: the task waits since it gave way to another one, or is new.
    NoWakeup,
}

impl WakerContext {
    /// The words for a waker in this context with this command.
    pub(crate) fn words(self, command: Comm) -> String {
        match self {
            WakerContext::Task if command == Comm::EMPTY => "woken by a task without a name".to_owned(),
            WakerContext::Task => format!("woken by {command}"),
            WakerContext::Interrupt => "woken by an interrupt".to_owned(),
            WakerContext::Unknown => "woken, by whom is unknown".to_owned(),
            WakerContext::NotWoken => "not woken".to_owned(),
            WakerContext::NoWakeup => "no wakeup".to_owned(),
        }
    }
}
