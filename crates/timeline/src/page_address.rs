//! The address of a view on the page of `schedviz view`: the one place that writes it.
//!
//! `crates/view/page/links.js` reads this short form, `state.js` the parts; `tests/view_links.rs` holds both against what is written here.

use sched::{Cpu, Dur, Pid};
use std::fmt;

/// A view of one trace on the page of `schedviz view`, as the part of the page's address behind `#`.
///
/// It is about a stretch of the trace, which is all that it names: the page takes the window around it, and the tab of the panel, from that.
/// Times are in nanoseconds from the start of the trace.
///
/// ```
/// use sched::{Dur, Pid};
/// use timeline::PageAddress;
///
/// let wait = PageAddress::wait(Pid(42), 3_000_000, Dur(400_000));
/// assert_eq!(wait.to_string(), "qw=0,42,3000000,3400000");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageAddress {
    kind: StretchKind,
    start: u64,
    end: u64,
    task: Option<Pid>,
    cpu: Option<Cpu>,
    has_row: bool,
}

/// The kind of the stretch, by the way in which the page shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StretchKind {
    Wait,
    Episode,
    Selection,
}

impl PageAddress {
    fn of(kind: StretchKind, start_ns: u64, length: Dur) -> PageAddress {
        PageAddress {
            kind,
            start: start_ns,
            end: start_ns.saturating_add(length.0),
            task: None,
            cpu: None,
            has_row: false,
        }
    }

    /// The view of a task's wait, with the answer why the task waited in the panel.
    pub fn wait(pid: Pid, start_ns: u64, length: Dur) -> PageAddress {
        PageAddress { task: Some(pid), ..PageAddress::of(StretchKind::Wait, start_ns, length) }
    }

    /// The view of an episode of violation, step by step in the panel. It is one of the page's list: of movable waiting tasks.
    pub fn episode(start_ns: u64, length: Dur) -> PageAddress {
        PageAddress::of(StretchKind::Episode, start_ns, length)
    }

    /// The view of another stretch, which is selected.
    pub fn selection(start_ns: u64, length: Dur) -> PageAddress {
        PageAddress::of(StretchKind::Selection, start_ns, length)
    }

    /// The same view with this task highlighted.
    #[must_use]
    pub fn task(self, pid: Option<Pid>) -> PageAddress {
        PageAddress { task: pid.or(self.task), ..self }
    }

    /// The same view with the cursor on this CPU, at the start of the stretch.
    #[must_use]
    pub fn cursor(self, cpu: Option<Cpu>) -> PageAddress {
        PageAddress { cpu, ..self }
    }

    /// The same view with a row of the highlighted task, and above it that of the critical path.
    #[must_use]
    pub fn row(self) -> PageAddress {
        PageAddress { has_row: true, ..self }
    }
}

impl fmt::Display for PageAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PageAddress { kind, start, end, task, cpu, has_row } = *self;
        match (kind, task) {
            (StretchKind::Wait, Some(pid)) => write!(f, "qw=0,{},{start},{end}", pid.0)?,
            (StretchKind::Episode, _) => write!(f, "e=0,{start},{end}")?,
            (StretchKind::Wait | StretchKind::Selection, _) => write!(f, "s={start},{end}")?,
        }
        if let Some(pid) = task.filter(|_| kind != StretchKind::Wait) {
            write!(f, "&h=0,{}", pid.0)?;
        }
        if let Some(cpu) = cpu {
            write!(f, "&p=0,{},{start}", cpu.0)?;
        }
        if has_row { f.write_str("&q=pinned") } else { Ok(()) }
    }
}
