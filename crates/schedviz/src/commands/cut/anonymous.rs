//! The events of a trace with aliases in place of names.

use parse::{Aliases, EventStream};
use sched::diag::Diagnostics;
use sched::pass::{Extent, Sink};
use sched::{Comm, EventKind, EventSource, Pid, SchedEvent, TaskRef};
use std::cell::RefCell;

/// Events with aliases in place of names, if there are any.
pub(super) struct Anonymous<'a, 't> {
    pub(super) events: EventStream<'t>,
    pub(super) aliases: &'a RefCell<Option<Aliases>>,
}

/// The name that stands for `name`.
pub(super) fn alias(aliases: &RefCell<Option<Aliases>>, name: Comm) -> Comm {
    aliases.borrow_mut().as_mut().map_or(name, |aliases| aliases.of(name))
}

impl EventSource for Anonymous<'_, '_> {
    type Error = parse::Error;

    fn extent(&mut self) -> Result<Extent, parse::Error> {
        self.events.extent()
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), parse::Error> {
        let Anonymous { events, aliases } = self;
        if aliases.borrow().is_none() {
            return events.events(sink);
        }
        let mut renamed: Vec<SchedEvent> = Vec::new();
        events.events(&mut |events| {
            renamed.clear();
            renamed.extend(events.iter().map(|event| SchedEvent { kind: rename(event.kind, aliases), ..*event }));
            sink(&renamed)
        })
    }

    fn births(&mut self) -> bool {
        self.events.births()
    }

    fn saved_name(&self, pid: Pid) -> Comm {
        alias(self.aliases, self.events.saved_name(pid))
    }

    fn diagnostics(&self) -> Diagnostics {
        self.events.diagnostics()
    }
}

/// The same with aliases.
fn rename(mut kind: EventKind, aliases: &RefCell<Option<Aliases>>) -> EventKind {
    let name = |name: &mut Comm| *name = alias(aliases, *name);
    let task = |task: &mut TaskRef| task.comm = alias(aliases, task.comm);
    match &mut kind {
        EventKind::Switch { prev, next, .. } => {
            task(prev);
            task(next);
        }
        EventKind::Waking { task: woken, .. }
        | EventKind::Wakeup { task: woken, .. }
        | EventKind::WakeupNew { task: woken, .. } => {
            task(woken);
        }
        EventKind::Migrate { task: moved, .. } => task(moved),
        EventKind::Fork { child_comm, .. } => name(child_comm),
        EventKind::Rename { before, after, .. } => {
            name(before);
            name(after);
        }
        EventKind::Exec { program, .. } => name(program),
        EventKind::Exit { .. } | EventKind::Lost { .. } | EventKind::Offline | EventKind::Frequency { .. } => {}
        EventKind::Interrupt { .. }
        | EventKind::Numa { .. }
        | EventKind::Stack { .. }
        | EventKind::Probe { .. }
        | EventKind::Other { .. } => {}
    }
    kind
}
