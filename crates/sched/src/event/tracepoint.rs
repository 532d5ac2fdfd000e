//! The tracepoints that this toolkit interprets: the one table of their names.

use crate::event::EventKind;

/// Makes the table of tracepoints: each row is a variant, its system and its name.
macro_rules! tracepoints {
    ($($(#[$doc:meta])* $variant:ident, $system:literal, $name:literal;)*) => {
        /// A tracepoint of the kernel that is interpreted here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Tracepoint {
            $($(#[$doc])* $variant,)*
        }

        impl Tracepoint {
            /// All tracepoints of the table, in its order.
            pub const ALL: &[Tracepoint] = &[$(Tracepoint::$variant),*];

            /// The system of the tracepoint, as `sched` in `sched:sched_switch`.
            pub const fn system(self) -> &'static str {
                match self { $(Tracepoint::$variant => $system,)* }
            }

            /// The name of the tracepoint, without its system.
            pub const fn name(self) -> &'static str {
                match self { $(Tracepoint::$variant => $name,)* }
            }

            /// The system and the name, such as `sched:sched_switch`, as options and reports have them.
            pub const fn full_name(self) -> &'static str {
                match self { $(Tracepoint::$variant => concat!($system, ":", $name),)* }
            }

            /// Returns the tracepoint of this system and name; `None` if the table lacks it.
            #[must_use]
            pub fn of(system: &str, name: &str) -> Option<Tracepoint> {
                match (system, name) {
                    $(($system, $name) => Some(Tracepoint::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

tracepoints! {
    /// A CPU switches from one task to another.
    Switch, "sched", "sched_switch";
    /// A task is queued after a wakeup.
    Wakeup, "sched", "sched_wakeup";
    /// A new task is queued for the first time.
    WakeupNew, "sched", "sched_wakeup_new";
    /// A wakeup begins.
    Waking, "sched", "sched_waking";
    /// A task moves to the queue of another CPU.
    Migrate, "sched", "sched_migrate_task";
    /// A task creates another.
    Fork, "sched", "sched_process_fork";
    /// A task executes a program.
    Exec, "sched", "sched_process_exec";
    /// A task ends.
    Exit, "sched", "sched_process_exit";
    /// A task takes another name.
    Rename, "task", "task_rename";
    /// NUMA balancing moves a task.
    MoveNuma, "sched", "sched_move_numa";
    /// NUMA balancing exchanges two tasks.
    SwapNuma, "sched", "sched_swap_numa";
    /// NUMA balancing cannot move a task.
    StickNuma, "sched", "sched_stick_numa";
    /// A CPU changes its frequency.
    Frequency, "power", "cpu_frequency";
    /// The kernel's stack behind another event.
    KernelStack, "ftrace", "kernel_stack";
    /// The program's stack behind another event.
    UserStack, "ftrace", "user_stack";
    /// An interrupt handler begins.
    IrqEntry, "irq", "irq_handler_entry";
    /// An interrupt handler ends.
    IrqExit, "irq", "irq_handler_exit";
    /// A softirq handler begins.
    SoftirqEntry, "irq", "softirq_entry";
    /// A softirq handler ends.
    SoftirqExit, "irq", "softirq_exit";
}

impl Tracepoint {
    /// The tracepoints that decide the state of the run queues.
    pub const STATE: [Tracepoint; 8] = [
        Tracepoint::Switch,
        Tracepoint::Wakeup,
        Tracepoint::WakeupNew,
        Tracepoint::Waking,
        Tracepoint::Migrate,
        Tracepoint::Fork,
        Tracepoint::Exec,
        Tracepoint::Exit,
    ];
}

impl EventKind {
    /// Whether no CPU recorded the event: a reader concludes it from missing ones.
    #[must_use]
    pub fn is_concluded(&self) -> bool {
        matches!(self, EventKind::Lost { .. } | EventKind::Offline)
    }

    /// The tracepoint of the event; `None` for events that have only a number, and for those that a reader concludes.
    #[must_use]
    pub fn tracepoint(&self) -> Option<Tracepoint> {
        Some(match self {
            EventKind::Switch { .. } => Tracepoint::Switch,
            EventKind::Waking { .. } => Tracepoint::Waking,
            EventKind::Wakeup { .. } => Tracepoint::Wakeup,
            EventKind::WakeupNew { .. } => Tracepoint::WakeupNew,
            EventKind::Migrate { .. } => Tracepoint::Migrate,
            EventKind::Fork { .. } => Tracepoint::Fork,
            EventKind::Exec { .. } => Tracepoint::Exec,
            EventKind::Rename { .. } => Tracepoint::Rename,
            EventKind::Exit { .. } => Tracepoint::Exit,
            EventKind::Numa { stuck: true, .. } => Tracepoint::StickNuma,
            EventKind::Numa { with: Some(_), .. } => Tracepoint::SwapNuma,
            EventKind::Numa { .. } => Tracepoint::MoveNuma,
            EventKind::Frequency { .. } => Tracepoint::Frequency,
            EventKind::Lost { .. } | EventKind::Offline => return None,
            EventKind::Interrupt { .. } | EventKind::Stack { .. } => return None,
            EventKind::Probe { .. } | EventKind::Other { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tracepoint_is_found_by_its_names() {
        for tracepoint in Tracepoint::ALL {
            assert_eq!(Tracepoint::of(tracepoint.system(), tracepoint.name()), Some(*tracepoint));
            assert_eq!(tracepoint.full_name(), format!("{}:{}", tracepoint.system(), tracepoint.name()));
        }
        assert_eq!(Tracepoint::of("power", "sched_switch"), None);
        assert_eq!(Tracepoint::Switch.full_name(), "sched:sched_switch");
    }
}
