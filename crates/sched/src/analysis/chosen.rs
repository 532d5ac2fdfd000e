//! Selections of tasks: those that a figure or a number is about.

use crate::analysis::Analysis;
use crate::event::kthread;
use crate::event::span::Span;
use crate::event::{Comm, Pid, Ts, escape};
use crate::state::{SchedState, Task};
use regex::Regex;

/// Which tasks are meant: whether this one is, in this state.
pub type Chosen<'c> = dyn Fn(&Task, &SchedState) -> bool + Sync + 'c;

/// The tasks that are chosen by the properties of each alone; by default all.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Only tasks whose names match.
    pub tasks: Option<Regex>,
    /// No task whose name matches.
    pub exclude: Option<Regex>,
    /// Only tasks with these numbers; any where there is none.
    pub pids: Vec<Pid>,
}

impl TaskFilter {
    /// Whether all tasks are chosen.
    pub fn takes_all(&self) -> bool {
        self.tasks.is_none() && self.exclude.is_none() && self.pids.is_empty()
    }

    /// Whether a task of this number and name is chosen; the name is asked for where it matters.
    pub fn takes(&self, pid: Pid, name: impl Fn() -> Comm) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && self.tasks.as_ref().is_none_or(|expression| is_match(expression, name()))
            && self.exclude.as_ref().is_none_or(|expression| !is_match(expression, name()))
    }
}

/// Whether a task's name matches, as it is shown, or the name of its command: reports print `kworker/N:N` for
/// `kworker/3:1` ([`kthread::command`]).
pub fn is_match(expression: &Regex, name: Comm) -> bool {
    let matches = |name: Comm| expression.is_match(&escape(name.as_bytes()));
    let command = kthread::command(name);
    matches(name) || command != name && matches(command)
}

/// Whether a task has this name, or its command has.
pub fn is_called(name: Comm, wanted: &str) -> bool {
    [name, kthread::command(name)].iter().any(|name| name.as_bytes() == wanted.as_bytes())
}

/// Whether a selection of tasks has figures. Those of an empty or unknowable one are unknown, which is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Why it is unknowable: it depends on the application, and that is unknown.
    pub unknowable: Option<&'static str>,
    /// Whether some task of the window is selected.
    pub found: bool,
}

/// Finds out whether a selection of tasks has figures.
pub struct Selected<'c> {
    tasks: Option<&'c Chosen<'c>>,
    by_descent: bool,
    found: bool,
}

impl<'c> Selected<'c> {
    /// The selection of these tasks; nothing where all are. `by_descent`: the selection depends on the application.
    pub fn new(tasks: Option<&'c Chosen<'c>>, by_descent: bool) -> Selected<'c> {
        Selected { tasks, by_descent, found: tasks.is_none() }
    }
}

impl Analysis for Selected<'_> {
    type Output = Selection;

    fn span(&mut self, span: &Span, state: &SchedState) {
        if !self.found {
            let chosen = |task| self.tasks.is_none_or(|chosen| chosen(task, state));
            self.found = state.task(span.task).is_some_and(chosen);
        }
    }

    fn finish(self, _: Ts, state: &SchedState) -> Selection {
        let unknowable = state.why_application_is_unknown().filter(|_| self.by_descent);
        Selection { unknowable, found: self.found }
    }
}

/// A report on selected tasks.
pub trait OfSelection {
    /// Withholds the figures of the selected tasks, since these are unknown for this reason: no figure is not zero.
    fn withhold(&mut self, why: String);
}

/// The report, beside findings that no selection concerns.
impl<R: OfSelection, F> OfSelection for (R, F) {
    fn withhold(&mut self, why: String) {
        self.0.withhold(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_by_number_and_name() {
        let name = |name: &str| Comm::new(name.as_bytes());
        let takes = |filter: &TaskFilter| {
            [(5, "k0"), (5, "k1"), (6, "k0"), (5, "\x1b0")].map(|(pid, of)| filter.takes(Pid(pid), || name(of)))
        };
        assert_eq!(takes(&TaskFilter::default()), [true; 4]);
        let (tasks, exclude) = (Regex::new("^k").ok(), Regex::new("1$").ok());
        assert_eq!(takes(&TaskFilter { tasks, exclude, pids: vec![Pid(5)] }), [true, false, false, false]);
        let tasks = Regex::new(r"^\\x1b0$").ok();
        assert_eq!(takes(&TaskFilter { tasks, ..TaskFilter::default() }), [false, false, false, true]);
    }

    #[test]
    fn tasks_by_the_name_of_their_command() {
        let name = |name: &str| Comm::new(name.as_bytes());
        let takes = |expression: &str| {
            let filter = TaskFilter { tasks: Regex::new(expression).ok(), ..TaskFilter::default() };
            ["kworker/3:1", "kworker/u8:1", "ksoftirqd/3"].map(|of| filter.takes(Pid(7), || name(of)))
        };
        assert_eq!(takes("^kworker/N:N$"), [true, false, false]);
        assert_eq!(takes("^ksoftirqd/N$"), [false, false, true]);
        assert_eq!(takes("^kworker/3"), [true, false, false]);
        let exclude = TaskFilter { exclude: Regex::new("^kworker/u?N").ok(), ..TaskFilter::default() };
        assert_eq!(["kworker/3:1", "k0"].map(|of| exclude.takes(Pid(7), || name(of))), [false, true]);
        assert!(is_called(name("migration/2"), "migration/N") && is_called(name("migration/2"), "migration/2"));
        assert!(!is_called(name("migration/2"), "migration/3"));
    }
}
