//! The name of a task that a reader of single CPUs meets without one.

use super::cpu::CpuReader;
use super::events::skip_of;
use crate::ring::unit::CpuPages;
use sched::{Comm, Cpu, CpuSpan, Current, EventKind, Pid, SchedEvent, Ts};

/// The part of an event on the name of a task that runs on its CPU.
enum NameEvidence {
    /// The event gives this name.
    Name(Comm),
    /// The event gives no name, and no event beyond it does.
    Nothing,
}

impl CpuReader<'_> {
    /// The span with the name of its task, if it has none: that of the switch, the exec or the rename before it, or else of the
    /// switch that ends the run, or else the one that the recorder saved.
    #[must_use]
    pub fn named(&self, span: &CpuSpan) -> CpuSpan {
        match span.current {
            Current::Task(pid) if span.comm.is_empty() => {
                CpuSpan { comm: self.name_of(span.cpu, pid, span.start), ..*span }
            }
            _ => *span,
        }
    }

    #[cold]
    fn name_of(&self, cpu: Cpu, pid: Pid, ts: Ts) -> Comm {
        let buffer = self.buffers_of(cpu).first().copied();
        let pages = buffer.and_then(|buffer| Some((buffer, self.trace.lanes().get(buffer)?)));
        let pages = pages.and_then(|(buffer, lanes)| Some((buffer, lanes.iter().find(|pages| pages.cpu == cpu)?)));
        let in_events = pages.and_then(|(buffer, pages)| {
            self.name_before(buffer, pages, pid, ts).or_else(|| self.name_behind(buffer, pages, pid, ts))
        });
        in_events.unwrap_or_else(|| self.trace.saved_name(pid))
    }

    /// The name by the latest event that shows it, until `ts`; nothing where the task runs since the start, or since a gap.
    fn name_before(&self, buffer: usize, pages: &CpuPages, pid: Pid, ts: Ts) -> Option<Comm> {
        let shown = |event: &SchedEvent| match event.kind {
            EventKind::Switch { next, .. } if next.pid == pid => Some(NameEvidence::Name(next.comm)),
            EventKind::Exec { pid: of, program, .. } if of == pid => Some(NameEvidence::Name(program)),
            EventKind::Rename { pid: of, after, .. } if of == pid => Some(NameEvidence::Name(after)),
            EventKind::Switch { .. } | EventKind::Lost { .. } | EventKind::Offline => Some(NameEvidence::Nothing),
            _ => None,
        };
        for unit in (0..=self.trace.unit_before(pages, ts)).rev() {
            let items = self.items(buffer, pages, unit);
            match items.iter().rev().filter(|event| event.ts <= ts).find_map(shown) {
                Some(NameEvidence::Name(name)) => return Some(name).filter(|name| !name.is_empty()),
                Some(NameEvidence::Nothing) => return None,
                None => {}
            }
        }
        None
    }

    /// The name by the first event that shows it, behind `ts`.
    fn name_behind(&self, buffer: usize, pages: &CpuPages, pid: Pid, ts: Ts) -> Option<Comm> {
        let shown = |event: &SchedEvent| match event.kind {
            EventKind::Switch { prev, .. } if prev.pid == pid => Some(NameEvidence::Name(prev.comm)),
            EventKind::Rename { pid: of, before, .. } if of == pid => Some(NameEvidence::Name(before)),
            // No event shows the name before.
            EventKind::Exec { pid: of, old_pid, program } if of == pid && old_pid == pid => {
                Some(NameEvidence::Name(program))
            }
            EventKind::Exec { pid: of, .. } if of == pid => Some(NameEvidence::Name(Comm::EMPTY)),
            EventKind::Switch { .. } | EventKind::Lost { .. } | EventKind::Offline => Some(NameEvidence::Nothing),
            _ => None,
        };
        for unit in self.trace.unit_before(pages, ts)..pages.units() {
            let items = self.items(buffer, pages, unit);
            match items.iter().filter(|event| event.ts > ts).find_map(shown) {
                Some(NameEvidence::Name(name)) => return Some(name),
                Some(NameEvidence::Nothing) => return None,
                None => {}
            }
        }
        None
    }

    fn items(&self, buffer: usize, pages: &CpuPages, unit: usize) -> Vec<SchedEvent> {
        self.trace.decode(pages, unit, &self.plan, skip_of(&self.skip, buffer), Vec::new()).items
    }
}
