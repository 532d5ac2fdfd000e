//! The choice of the waiting tasks that count in a violation.

use crate::Waiters;
use session::args::TaskArgs;

/// The waiting tasks that count
#[derive(Clone, Debug, clap::Args)]
pub struct WaiterArgs {
    /// The waiting tasks that count [default: movable; application where --tasks, --pid or --forked choose]
    #[arg(long, value_enum, value_name = "WHICH")]
    waiters: Option<Waiters>,
}

impl WaiterArgs {
    /// The waiting tasks that count in the headline: the chosen tasks if there is a choice.
    pub fn of(&self, tasks: &TaskArgs) -> Waiters {
        let default = if tasks.chooses() { Waiters::Application } else { Waiters::default() };
        self.waiters.unwrap_or(default)
    }

    /// The waiting tasks that count where no tasks can be chosen.
    pub fn without_choice(&self) -> Waiters {
        self.waiters.unwrap_or_default()
    }

    /// Whether the headline depends on which tasks are the application.
    pub fn depend_on_descent(&self, tasks: &TaskArgs) -> bool {
        tasks.forked || self.of(tasks) == Waiters::Application && !tasks.chooses()
    }
}
