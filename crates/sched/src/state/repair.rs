//! Contradictions between events and the state.

use crate::diag::Diagnostic;

/// A contradiction between an event and the state, by the rule that resolves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // each is a `Diagnostic` of the same name, which explains it
pub enum Repair {
    SwitchPrevMismatch,
    UnseenMigration,
    UnseenWakeup,
    RunningElsewhere,
    MigrateRunning,
    MigrateOrigMismatch,
    WakeupTargetCorrected,
    UnseenExit,
    UnseenQueue,
    UnseenDeparture,
    EarlyWakeup,
}

impl Repair {
    /// All of them.
    pub const ALL: [Repair; 11] = [
        Repair::SwitchPrevMismatch,
        Repair::UnseenMigration,
        Repair::UnseenWakeup,
        Repair::RunningElsewhere,
        Repair::MigrateRunning,
        Repair::MigrateOrigMismatch,
        Repair::WakeupTargetCorrected,
        Repair::UnseenExit,
        Repair::UnseenQueue,
        Repair::UnseenDeparture,
        Repair::EarlyWakeup,
    ];

    /// The diagnostic that tells of it.
    pub fn diagnostic(self) -> Diagnostic {
        match self {
            Repair::SwitchPrevMismatch => Diagnostic::SwitchPrevMismatch,
            Repair::UnseenMigration => Diagnostic::UnseenMigration,
            Repair::UnseenWakeup => Diagnostic::UnseenWakeup,
            Repair::RunningElsewhere => Diagnostic::RunningElsewhere,
            Repair::MigrateRunning => Diagnostic::MigrateRunning,
            Repair::MigrateOrigMismatch => Diagnostic::MigrateOrigMismatch,
            Repair::WakeupTargetCorrected => Diagnostic::WakeupTargetCorrected,
            Repair::UnseenExit => Diagnostic::UnseenExit,
            Repair::UnseenQueue => Diagnostic::UnseenQueue,
            Repair::UnseenDeparture => Diagnostic::UnseenDeparture,
            Repair::EarlyWakeup => Diagnostic::EarlyWakeup,
        }
    }
}
