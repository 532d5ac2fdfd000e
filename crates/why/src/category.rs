//! How waits and idle stretches begin and end (`docs/questions/why.md#waits`).

use crate::nearest::Nearest;
use sched::Cause;

/// The CPU on which a wakeup placed its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placed {
    /// The CPU on which the task last ran.
    Previous,
    /// The CPU of the waker.
    Waker,
    /// A CPU other than the previous one and the waker's.
    Elsewhere,
    /// A CPU that cannot be classified: the trace shows neither the previous CPU nor the waker's.
    Unknown,
}

/// The kind of task that took the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preempter {
    /// A task of the application.
    Application,
    /// A task of those that were selected in the place of the application.
    Selected,
    /// A task of another program.
    Other,
    /// A task of the deadline class.
    Deadline,
    /// A task of the real-time class.
    RealTime,
    /// A kernel thread, the stopper included.
    Kernel,
}

/// The origin of a wait: how it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitOrigin {
    /// A wakeup placed the task there, while the nearest idle CPU was that far from it.
    Woken(Placed, Nearest),
    /// A fork placed the task there.
    Forked,
    /// The task ran there and was preempted.
    Preempted(Preempter),
    /// The task ran there and stayed runnable while the CPU went idle.
    HeldBack,
    /// Bandwidth control (`cpu.max`) had throttled the task there, and no longer did.
    Unthrottled,
    /// The task waited elsewhere and was moved there.
    Moved(Cause),
    /// A wakeup or a fork placed the task on an idle CPU, which then ran another task.
    Overtaken,
    /// The task waited there when the window began.
    AtStart,
    /// The origin is not shown by an event.
    Unknown,
}

/// Why a CPU is free for another task: how its running task left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    /// The running task went to sleep.
    Slept,
    /// The running task exited.
    Exited,
    /// The stopper took its place and moved a task away.
    Moved,
    /// The running task was preempted.
    Preempted,
    /// The CPU idled.
    Idle,
}

/// The end of a wait: how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitEnd {
    /// The task ran there, since the running task left.
    Ran(Left),
    /// The task was moved away.
    Moved(Cause),
    /// Bandwidth control (`cpu.max`) throttled the task.
    Throttled,
    /// The task fell asleep again.
    Asleep,
    /// The task died.
    Died,
    /// The end is not shown by an event.
    Unknown,
    /// The window ended.
    WindowEnd,
}

/// The origin of an idle stretch: how it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleOrigin {
    /// The last task went to sleep.
    Slept,
    /// The last task exited.
    Exited,
    /// The stopper ran last and moved a task away.
    Moved(Cause),
    /// Bandwidth control (`cpu.max`) throttled the last task.
    Throttled,
    /// Tasks were queued on the CPU and did not run: they were throttled or held back.
    HeldBack,
    /// The CPU idled when the window began.
    AtStart,
    /// The origin is not shown by an event.
    Unknown,
}

/// The end of an idle stretch: how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleEnd {
    /// A wakeup placed a task there.
    Woken,
    /// A fork placed a task there.
    Forked,
    /// A task was moved there.
    Moved(Cause),
    /// A task ran that had been queued there before the CPU went idle, or that had been held back or throttled.
    Released,
    /// The CPU went offline.
    Offline,
    /// The end is not shown by an event.
    Unknown,
    /// The window ended.
    WindowEnd,
}

/// A category: its key in JSON, what distinguishes it further, and its words for people.
pub(crate) trait Category: Copy + Ord + std::hash::Hash {
    /// The name of the category in JSON.
    fn key(self) -> &'static str;

    /// The cause of the migration, if it is one.
    fn cause(self) -> Option<Cause>;

    /// The category with the cause that was found for its migration.
    fn caused_by(self, cause: Cause) -> Self;

    /// Whether an event shows the end, for a category that is one: otherwise the length of the case is unknown.
    fn is_seen(self) -> bool {
        true
    }

    /// The nearest idle CPU, where that distinguishes categories.
    fn nearest_idle(self) -> Option<Nearest> {
        None
    }

    /// The category without the nearest idle CPU.
    fn without_distance(self) -> Self {
        self
    }

    /// The words of the category for people.
    fn words(self) -> String;

    /// The words of the category for people, without the nearest idle CPU.
    fn words_without_distance(self) -> String {
        self.words()
    }
}

impl Category for WaitOrigin {
    fn key(self) -> &'static str {
        match self {
            WaitOrigin::Woken(Placed::Previous, _) => "woken-on-previous-cpu",
            WaitOrigin::Woken(Placed::Waker, _) => "woken-on-waker-cpu",
            WaitOrigin::Woken(Placed::Elsewhere, _) => "woken-elsewhere",
            WaitOrigin::Woken(Placed::Unknown, _) => "woken-from-unknown-cpu",
            WaitOrigin::Forked => "forked",
            WaitOrigin::Preempted(Preempter::Application | Preempter::Selected) => "preempted-by-application",
            WaitOrigin::Preempted(Preempter::Other) => "preempted-by-other",
            WaitOrigin::Preempted(Preempter::Deadline) => "preempted-by-deadline",
            WaitOrigin::Preempted(Preempter::RealTime) => "preempted-by-real-time",
            WaitOrigin::Preempted(Preempter::Kernel) => "preempted-by-kernel-thread",
            WaitOrigin::HeldBack => "held-back",
            WaitOrigin::Unthrottled => "unthrottled",
            WaitOrigin::Moved(_) => "moved",
            WaitOrigin::Overtaken => "queued-on-idle-cpu",
            WaitOrigin::AtStart => "at-start",
            WaitOrigin::Unknown => "unknown",
        }
    }

    fn cause(self) -> Option<Cause> {
        if let WaitOrigin::Moved(cause) = self { Some(cause) } else { None }
    }

    fn caused_by(self, cause: Cause) -> Self {
        if let WaitOrigin::Moved(_) = self { WaitOrigin::Moved(cause) } else { self }
    }

    fn nearest_idle(self) -> Option<Nearest> {
        if let WaitOrigin::Woken(_, nearest) = self { Some(nearest) } else { None }
    }

    fn without_distance(self) -> Self {
        if let WaitOrigin::Woken(placed, _) = self { WaitOrigin::Woken(placed, Nearest::Nowhere) } else { self }
    }

    fn words_without_distance(self) -> String {
        match self {
            WaitOrigin::Woken(placed, _) => format!("woken {}", where_placed(placed)),
            other => other.words(),
        }
    }

    fn words(self) -> String {
        let where_idle = |nearest| match nearest {
            Nearest::Itself => "it idled",
            Nearest::Core => "idle on core",
            Nearest::Cluster => "idle in cluster",
            Nearest::Llc => "idle in LLC",
            Nearest::Node => "idle on node",
            Nearest::Beyond => "idle beyond",
            Nearest::Somewhere => "some idle",
            Nearest::Nowhere => "none idle",
        };
        match self {
            WaitOrigin::Woken(placed, nearest) => {
                format!("woken {}, {}", where_placed(placed), where_idle(nearest))
            }
            WaitOrigin::Forked => "placed at fork".into(),
            WaitOrigin::Preempted(Preempter::Application) => "preempted by the application".into(),
            WaitOrigin::Preempted(Preempter::Selected) => "preempted by a selected task".into(),
            WaitOrigin::Preempted(Preempter::Other) => "preempted by another task".into(),
            WaitOrigin::Preempted(Preempter::Deadline) => "preempted by a deadline task".into(),
            WaitOrigin::Preempted(Preempter::RealTime) => "preempted by a real-time task".into(),
            WaitOrigin::Preempted(Preempter::Kernel) => "preempted by a kernel thread".into(),
            WaitOrigin::HeldBack => "held back while the CPU idled".into(),
            WaitOrigin::Unthrottled => "throttled by cpu.max before".into(),
            WaitOrigin::Moved(cause) => format!("moved there: {}", short(cause)),
            WaitOrigin::Overtaken => "queued on idle CPU, other task ran".into(),
            WaitOrigin::AtStart => "already waiting at the start".into(),
            WaitOrigin::Unknown => "unknown".into(),
        }
    }
}

impl Category for WaitEnd {
    fn is_seen(self) -> bool {
        self != WaitEnd::Unknown
    }

    fn key(self) -> &'static str {
        match self {
            WaitEnd::Ran(Left::Slept) => "ran-after-sleep",
            WaitEnd::Ran(Left::Exited) => "ran-after-exit",
            WaitEnd::Ran(Left::Moved) => "ran-after-move",
            WaitEnd::Ran(Left::Preempted) => "ran-by-preemption",
            WaitEnd::Ran(Left::Idle) => "ran-after-idle",
            WaitEnd::Moved(_) => "moved",
            WaitEnd::Throttled => "throttled",
            WaitEnd::Asleep => "asleep",
            WaitEnd::Died => "died",
            WaitEnd::Unknown => "unknown",
            WaitEnd::WindowEnd => "window-end",
        }
    }

    fn cause(self) -> Option<Cause> {
        if let WaitEnd::Moved(cause) = self { Some(cause) } else { None }
    }

    fn caused_by(self, cause: Cause) -> Self {
        if let WaitEnd::Moved(_) = self { WaitEnd::Moved(cause) } else { self }
    }

    fn words(self) -> String {
        match self {
            WaitEnd::Ran(Left::Slept) => "ran: the running task slept".into(),
            WaitEnd::Ran(Left::Exited) => "ran: the running task exited".into(),
            WaitEnd::Ran(Left::Moved) => "ran: the stopper moved a task".into(),
            WaitEnd::Ran(Left::Preempted) => "ran: it preempted".into(),
            WaitEnd::Ran(Left::Idle) => "ran: the CPU had gone idle".into(),
            WaitEnd::Moved(cause) => format!("moved: {}", short(cause)),
            WaitEnd::Throttled => "throttled by cpu.max".into(),
            WaitEnd::Asleep => "asleep again".into(),
            WaitEnd::Died => "died".into(),
            WaitEnd::Unknown => "unknown".into(),
            WaitEnd::WindowEnd => "end of the window".into(),
        }
    }
}

impl Category for IdleOrigin {
    fn key(self) -> &'static str {
        match self {
            IdleOrigin::Slept => "slept",
            IdleOrigin::Exited => "exited",
            IdleOrigin::Moved(_) => "moved",
            IdleOrigin::Throttled => "throttled",
            IdleOrigin::HeldBack => "held-back",
            IdleOrigin::AtStart => "at-start",
            IdleOrigin::Unknown => "unknown",
        }
    }

    fn cause(self) -> Option<Cause> {
        if let IdleOrigin::Moved(cause) = self { Some(cause) } else { None }
    }

    fn caused_by(self, cause: Cause) -> Self {
        if let IdleOrigin::Moved(_) = self { IdleOrigin::Moved(cause) } else { self }
    }

    fn words(self) -> String {
        match self {
            IdleOrigin::Slept => "the last task slept".into(),
            IdleOrigin::Exited => "the last task exited".into(),
            IdleOrigin::Moved(cause) => format!("a task was moved: {}", short(cause)),
            IdleOrigin::Throttled => "the last task was throttled".into(),
            IdleOrigin::HeldBack => "queued tasks were held back".into(),
            IdleOrigin::AtStart => "already idle at the start".into(),
            IdleOrigin::Unknown => "unknown".into(),
        }
    }
}

impl Category for IdleEnd {
    fn is_seen(self) -> bool {
        self != IdleEnd::Unknown
    }

    fn key(self) -> &'static str {
        match self {
            IdleEnd::Woken => "woken",
            IdleEnd::Forked => "forked",
            IdleEnd::Moved(_) => "moved",
            IdleEnd::Released => "released",
            IdleEnd::Offline => "offline",
            IdleEnd::Unknown => "unknown",
            IdleEnd::WindowEnd => "window-end",
        }
    }

    fn cause(self) -> Option<Cause> {
        if let IdleEnd::Moved(cause) = self { Some(cause) } else { None }
    }

    fn caused_by(self, cause: Cause) -> Self {
        if let IdleEnd::Moved(_) = self { IdleEnd::Moved(cause) } else { self }
    }

    fn words(self) -> String {
        match self {
            IdleEnd::Woken => "a task was woken there".into(),
            IdleEnd::Forked => "a task was forked there".into(),
            IdleEnd::Moved(cause) => format!("moved there: {}", short(cause)),
            IdleEnd::Released => "a task queued there before ran".into(),
            IdleEnd::Offline => "the CPU went offline".into(),
            IdleEnd::Unknown => "unknown".into(),
            IdleEnd::WindowEnd => "end of the window".into(),
        }
    }
}

fn where_placed(placed: Placed) -> &'static str {
    match placed {
        Placed::Previous => "on previous CPU",
        Placed::Waker => "on waker's CPU",
        Placed::Elsewhere => "elsewhere",
        Placed::Unknown => "from unknown CPU",
    }
}

/// A cause in few letters.
pub(crate) fn short(cause: Cause) -> &'static str {
    match cause {
        Cause::Wakeup => "at its wakeup",
        Cause::NewIdle => "new-idle pull",
        Cause::Stopper => "active balance or affinity",
        Cause::RealTime => "real-time",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const PAGE: &str = include_str!("../../../docs/questions/why.md");

    /// The names in the last column of the table whose head begins so.
    fn defined(head: &str) -> BTreeSet<&'static str> {
        let table = PAGE.split_once(&format!("\n| {head}")).expect("a table").1;
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        rows.filter_map(|row| row.trim_end_matches(" |").rsplit_once("| ")?.1.strip_prefix('`')?.strip_suffix('`'))
            .collect()
    }

    fn keys<C: Category>(all: &[C]) -> BTreeSet<&'static str> {
        all.iter().map(|category| category.key()).collect()
    }

    #[test]
    fn the_names_are_those_of_the_definitions() {
        let cause = Cause::Unknown;
        let placed = [Placed::Previous, Placed::Waker, Placed::Elsewhere, Placed::Unknown];
        let by = [
            Preempter::Application,
            Preempter::Selected,
            Preempter::Other,
            Preempter::Deadline,
            Preempter::RealTime,
            Preempter::Kernel,
        ];
        let left = [Left::Slept, Left::Exited, Left::Moved, Left::Preempted, Left::Idle];
        let mut begins = vec![
            WaitOrigin::Forked,
            WaitOrigin::HeldBack,
            WaitOrigin::Unthrottled,
            WaitOrigin::Moved(cause),
            WaitOrigin::Overtaken,
            WaitOrigin::AtStart,
            WaitOrigin::Unknown,
        ];
        begins.extend(placed.map(|placed| WaitOrigin::Woken(placed, Nearest::Nowhere)));
        begins.extend(by.map(WaitOrigin::Preempted));
        assert_eq!(keys(&begins), defined("a wait begins"));
        let mut ends = vec![
            WaitEnd::Moved(cause),
            WaitEnd::Throttled,
            WaitEnd::Asleep,
            WaitEnd::Died,
            WaitEnd::Unknown,
            WaitEnd::WindowEnd,
        ];
        ends.extend(left.map(WaitEnd::Ran));
        assert_eq!(keys(&ends), defined("a wait ends"));
        let begins = [
            IdleOrigin::Slept,
            IdleOrigin::Exited,
            IdleOrigin::Moved(cause),
            IdleOrigin::Throttled,
            IdleOrigin::HeldBack,
            IdleOrigin::AtStart,
            IdleOrigin::Unknown,
        ];
        assert_eq!(keys(&begins), defined("an idle stretch begins"));
        let ends = [
            IdleEnd::Woken,
            IdleEnd::Forked,
            IdleEnd::Moved(cause),
            IdleEnd::Released,
            IdleEnd::Offline,
            IdleEnd::Unknown,
            IdleEnd::WindowEnd,
        ];
        assert_eq!(keys(&ends), defined("an idle stretch ends"));
    }
}
