//! The occupants of CPUs at the start of a part, as a reader of single CPUs finds them in the whole.

use parse::Want;
use sched::past::Occupant;
use sched::{Comm, Cpu, CpuFold, CpuSpan, Current, EventKind, Pid, SchedEvent, Ts};
use session::Session;
use std::ops::ControlFlow;

/// The occupants before `from`.
pub(super) fn at(session: &Session, from: Ts) -> Result<Vec<Occupant>, parse::Error> {
    let reader = session.trace.cpu_reader(Want::Switches)?;
    let found = session.trace.in_parallel(session.observed.clone(), |cpu| {
        let fold = CpuFold::new(cpu, from, session.to);
        let mut look = Look { fold, from, to: session.to, nameless: None, found: None };
        for buffer in reader.buffers_of(cpu).into_iter().take(1) {
            reader.events(buffer, cpu, Some(from), &mut |event| look.at(cpu, event));
        }
        look.found.or_else(|| look.fold.open_span().map(|span| of_span(&span)))
    });
    Ok(found.into_iter().flatten().collect())
}

/// A look for the occupant of one CPU.
struct Look {
    fold: CpuFold,
    from: Ts,
    to: Ts,
    /// The task that the first event shows, which is in the part, as long as no event in the part has the task's name.
    nameless: Option<Pid>,
    found: Option<Occupant>,
}

impl Look {
    fn at(&mut self, cpu: Cpu, event: &SchedEvent) -> ControlFlow<()> {
        if event.ts < self.from {
            self.fold.apply(event, &mut |_| {});
            return ControlFlow::Continue(());
        }
        let switches = matches!(event.kind, EventKind::Switch { .. } | EventKind::Lost { .. } | EventKind::Offline);
        if let Some(pid) = self.nameless {
            return self.at_nameless(cpu, pid, event, switches);
        }
        let occupant = match (&self.found, self.fold.open_span()) {
            (Some(found), _) => found.clone(),
            (None, Some(span)) => of_span(&span),
            // The first event shows it: if it is in the part, that has it, but for the name.
            (None, None) if event.ts <= self.to => {
                self.nameless = shown(event).and_then(Current::pid).filter(|_| !switches);
                return if self.nameless.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
            }
            (None, None) => match shown(event) {
                Some(current) => Occupant { cpu, current, comm: Comm::EMPTY },
                None => return ControlFlow::Break(()),
            },
        };
        let is_known = !occupant.comm.is_empty() || occupant.current.pid().is_none();
        // A task is named when it is switched out, which may be the first event behind the part.
        let comm = match event.kind {
            EventKind::Switch { prev, .. } if Current::of(prev.pid) == occupant.current && event.ts > self.to => {
                prev.comm
            }
            _ => Comm::EMPTY,
        };
        let comm = if is_known { occupant.comm } else { comm };
        self.found = Some(Occupant { comm, ..occupant });
        if is_known || switches || event.ts > self.to { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Look {
    /// Looks for the name of a task that runs from before the first event to behind the part: the switch away from it has it.
    fn at_nameless(&mut self, cpu: Cpu, pid: Pid, event: &SchedEvent, switches: bool) -> ControlFlow<()> {
        if let EventKind::Switch { prev, .. } = event.kind
            && event.ts > self.to
            && prev.pid == pid
        {
            self.found = Some(Occupant { cpu, current: Current::Task(pid), comm: prev.comm });
        }
        if switches || event.ts > self.to { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn of_span(span: &CpuSpan) -> Occupant {
    Occupant { cpu: span.cpu, current: span.current, comm: span.comm }
}

/// The occupant of a CPU until an event, if that shows it.
fn shown(event: &SchedEvent) -> Option<Current> {
    match event.kind {
        EventKind::Lost { .. } => Some(Current::Unknown),
        EventKind::Offline => Some(Current::Offline),
        EventKind::Stack { .. } => None,
        _ => Some(Current::of(event.pid)),
    }
}
