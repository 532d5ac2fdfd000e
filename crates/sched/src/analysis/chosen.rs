//! Selections of tasks: those that a figure or a number is about.

use crate::analysis::Analysis;
use crate::event::kthread;
use crate::event::span::Span;
use crate::event::{Comm, Pid, Ts, escape};
use crate::state::{SchedState, Task};
use regex::Regex;

/// A selection of tasks by a predicate: whether a task is selected, in the present state.
pub type Chosen<'c> = dyn Fn(&Task, &SchedState) -> bool + Sync + 'c;

/// A selection of tasks by the properties of each alone. The default selects all tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Expression for names: only tasks whose names match are selected.
    pub tasks: Option<Regex>,
    /// Expression for names: no task whose name matches is selected.
    pub exclude: Option<Regex>,
    /// PIDs of the tasks that are selected; if the list is empty, all are.
    pub pids: Vec<Pid>,
}

impl TaskFilter {
    /// Whether all tasks are selected.
    pub fn takes_all(&self) -> bool {
        self.tasks.is_none() && self.exclude.is_none() && self.pids.is_empty()
    }

    /// Whether a task of this PID and name is selected. `name` is called only if the name matters.
    pub fn takes(&self, pid: Pid, name: impl Fn() -> Comm) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && self.tasks.as_ref().is_none_or(|expression| is_match(expression, name()))
            && self.exclude.as_ref().is_none_or(|expression| !is_match(expression, name()))
    }
}

/// Whether the name of a task matches, or the name of its command: reports print `kworker/N:N` for `kworker/3:1`
/// ([`kthread::command`]). The expression is applied to the name as it is shown.
pub fn is_match(expression: &Regex, name: Comm) -> bool {
    let matches = |name: Comm| expression.is_match(&escape(name.as_bytes()));
    let command = kthread::command(name);
    matches(name) || command != name && matches(command)
}

/// Whether a task has the name `wanted`, or its command has.
pub fn is_called(name: Comm, wanted: &str) -> bool {
    [name, kthread::command(name)].iter().any(|name| name.as_bytes() == wanted.as_bytes())
}

/// The state of a selection of tasks in a window. The figures of an empty or unknowable selection are unknown, which is
/// not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The reason why the selection is unknowable: it depends on the application, and that is unknown. `None` if it is
    /// knowable.
    pub unknowable: Option<&'static str>,
    /// Whether some task of the window is selected.
    pub found: bool,
}

/// An analysis that finds out whether a selection of tasks has figures.
pub struct Selected<'c> {
    tasks: Option<&'c Chosen<'c>>,
    by_descent: bool,
    pub(super) found: bool,
}

impl<'c> Selected<'c> {
    /// Makes the analysis for a selection of tasks, `None` for all tasks. `by_descent`: the selection depends on the
    /// application.
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

/// A report on selected tasks, whose figures can be withheld.
///
/// A pass over a window finds out at its end whether the selection has figures ([`Selection`]). If it has none, the
/// caller calls [`OfSelection::withhold`] before it shows the report.
pub trait OfSelection {
    /// Withholds the figures of the selected tasks for the reason `why`, a clause for people: afterwards the report has
    /// no figures, rather than zeros, and shows the reason. Figures of CPUs, or of all tasks, may remain.
    fn withhold(&mut self, why: String);
}

/// A report together with findings that no selection concerns.
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
