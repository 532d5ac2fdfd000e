//! The high-resolution timers that tasks set, as records of a trace show them: the task that set a timer which expires, and the expiry that
//! it was set for.

use crate::Session;
use parse::{Record, Trace};
use sched::seeded::SeededMap;
use sched::serial::bounded;
use sched::{Cpu, Pid, Tracepoint, Ts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The bit of a timer's mode that makes its expiry relative.
const RELATIVE: i64 = 1;

/// The bits of a record's flags of an interrupt, or its softirq, that emitted it.
const IN_INTERRUPT: i64 = 0x18;

/// The name of the note in the past of a part.
const NAME: &str = "timers";

/// Maximum number of timers that are followed at once, and that the note of a part has.
const MOST_TIMERS: usize = 1 << 17;

/// Maximum number of wakings whose programmed expiries are kept; later ones have none.
const MOST_EXPIRIES: usize = 1 << 20;

/// A timer that a task has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetTimer {
    /// The PID of the task.
    pub task: Pid,
    /// Whether the kernel counts the expiry as absolute, by the timer's mode, which kernels before 4.16 do not record.
    pub is_absolute: bool,
    /// The programmed expiry in nanoseconds of the timer's clock, without the slack that the kernel may add.
    pub expiry: i64,
}

/// The timers that tasks have set and that have not expired, each by its address.
#[derive(Debug)]
pub struct SetTimers {
    starts: u16,
    expires: u16,
    set: SeededMap<i64, SetTimer>,
}

impl SetTimers {
    /// Begins before the records of a trace, with the timers that the note of a part has; nothing where the trace does not show which
    /// task set the timer that expires.
    pub fn of(trace: &Trace) -> Option<SetTimers> {
        let id = |name: &str| trace.format_named("timer", name).map(|format| format.id);
        let (starts, expires) = (id("hrtimer_start")?, id("hrtimer_expire_entry")?);
        Some(SetTimers { starts, expires, set: noted(trace).set.into_iter().take(MOST_TIMERS).collect() })
    }

    /// The number of timers that are set.
    pub fn count(&self) -> usize {
        self.set.len()
    }

    /// Follows a record that sets a timer, or with which one expires: then the timer is returned, if a task set it.
    pub fn take(&mut self, record: &Record<'_>) -> Option<SetTimer> {
        if record.id() == self.expires {
            return self.set.remove(&record.number("hrtimer")?);
        }
        if record.id() != self.starts {
            return None;
        }
        let timer = record.number("hrtimer")?;
        let in_task = record.number("common_flags").is_some_and(|flags| flags & IN_INTERRUPT == 0);
        let expiry = record.number("softexpires").filter(|_| in_task);
        match expiry {
            Some(expiry) if self.set.len() < MOST_TIMERS || self.set.contains_key(&timer) => {
                let is_absolute = record.number("mode").is_some_and(|mode| mode & RELATIVE == 0);
                self.set.insert(timer, SetTimer { task: record.pid(), is_absolute, expiry });
            }
            // An interrupt has set it again, as a timer with a period does.
            _ => drop(self.set.remove(&timer)),
        }
        None
    }
}

/// The note of a part on the timers that were set before it, and that expire as it begins.
#[derive(Default, Serialize, Deserialize)]
struct NotedTimers {
    /// The timers by their addresses.
    #[serde(deserialize_with = "bounded::deserialize")]
    set: Vec<(i64, SetTimer)>,
    /// The interrupts of timers that the part begins within.
    #[serde(default, deserialize_with = "bounded::deserialize")]
    on_cpus: Vec<(Cpu, TimerInterrupt)>,
}

fn noted(trace: &Trace) -> NotedTimers {
    let text = trace.past().and_then(|past| past.notes.get(NAME));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Returns the name and the text of the note for a part that begins at `from`: the timers that tasks had set before it. There is none where the
/// trace does not show them.
pub fn note(trace: &Trace, from: Ts) -> Option<(String, String)> {
    let mut learned = Learned::of(trace)?;
    // The pass reports the losses of a damaged file.
    let _ = trace.records(&mut |record| {
        if record.ts >= from {
            return ControlFlow::Break(());
        }
        learned.take(record);
        learned.found.clear();
        ControlFlow::Continue(())
    });
    let set: BTreeMap<i64, SetTimer> = learned.set.set.into_iter().collect();
    let on_cpus: BTreeMap<Cpu, TimerInterrupt> = learned.on_cpus.into_iter().collect();
    let noted = NotedTimers { set: set.into_iter().collect(), on_cpus: on_cpus.into_iter().collect() };
    Some((NAME.to_owned(), serde_json::to_string(&noted).ok()?))
}

/// The programmed expiry of the timer that a task had set and whose function woke it.
#[derive(Clone, Copy, Debug)]
struct Expiry {
    waking: Ts,
    cpu: Cpu,
    task: Pid,
    programmed: Ts,
}

/// The programmed expiries of timers whose functions woke the tasks that had set them.
#[derive(Debug, Default)]
pub struct TimerExpiries(Vec<Expiry>);

impl TimerExpiries {
    /// Learns the expiries of a trace up to the end of the window; nothing where the trace does not show them.
    pub fn of(session: &Session) -> Option<TimerExpiries> {
        let trace = &session.trace;
        let mut learned = Learned::of(trace)?;
        if !trace.occurs(learned.set.starts) || !trace.occurs(learned.set.expires) || !trace.occurs(learned.waking?) {
            return None;
        }
        // The pass reports the losses of a damaged file.
        let _ = trace.records(&mut |record| {
            if record.ts > session.to || learned.found.len() >= MOST_EXPIRIES {
                return ControlFlow::Break(());
            }
            learned.take(record);
            ControlFlow::Continue(())
        });
        Some(TimerExpiries(learned.found))
    }

    /// The programmed expiry of the timer whose function woke the task with the waking at this place; nothing where another cause did, or one
    /// that no record shows.
    pub fn of_waking(&self, ts: Ts, cpu: Cpu, task: Pid) -> Option<Ts> {
        let first = self.0.partition_point(|expiry| expiry.waking < ts);
        let at = self.0.get(first..)?.iter().take_while(|expiry| expiry.waking == ts);
        at.into_iter().find(|expiry| (expiry.cpu, expiry.task) == (cpu, task)).map(|expiry| expiry.programmed)
    }
}

/// The interrupt of timers on a CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct TimerInterrupt {
    /// The reading of the timers' clock, and the instant of the first record with it.
    read: Option<(i64, Ts)>,
    /// The task whose timer's function runs, and the programmed expiry.
    running: Option<(Pid, Ts)>,
}

/// The expiries that the records so far show.
struct Learned {
    set: SetTimers,
    waking: Option<u16>,
    ends: [Option<u16>; 2],
    on_cpus: SeededMap<Cpu, TimerInterrupt>,
    found: Vec<Expiry>,
}

impl Learned {
    /// Begins before the records of a trace, with what the note of a part has.
    fn of(trace: &Trace) -> Option<Learned> {
        let set = SetTimers::of(trace)?;
        let id = |tracepoint: Tracepoint| trace.format_of(tracepoint).map(|format| format.id);
        let exit = trace.format_named("timer", "hrtimer_expire_exit").map(|format| format.id);
        let (waking, ends) = (id(Tracepoint::Waking), [exit, id(Tracepoint::Switch)]);
        let on_cpus = noted(trace).on_cpus.into_iter().collect();
        Some(Learned { set, waking, ends, on_cpus, found: Vec::new() })
    }

    fn take(&mut self, record: &Record<'_>) {
        let expired = self.set.take(record);
        let id = record.id();
        if id == self.set.expires {
            let on_cpu = self.on_cpus.entry(record.cpu).or_default();
            on_cpu.running = None;
            let Some(now) = record.number("now") else { return };
            // An interrupt reads the clock once, and then runs the functions of all timers that have expired.
            let (_, at) = *on_cpu.read.insert(on_cpu.read.filter(|(read, _)| *read == now).unwrap_or((now, record.ts)));
            let programmed = |timer: SetTimer| {
                let late = now.checked_sub(timer.expiry).filter(|late| *late >= 0)?;
                Some((timer.task, Ts(at.0.checked_sub(late)?)))
            };
            on_cpu.running = expired.and_then(programmed);
        } else if Some(id) == self.waking {
            let running = self.on_cpus.get_mut(&record.cpu).and_then(|on_cpu| on_cpu.running.take());
            let woken = record.number("pid").and_then(|pid| i32::try_from(pid).ok()).map(Pid);
            if let Some((task, programmed)) = running.filter(|(task, _)| woken == Some(*task)) {
                self.found.push(Expiry { waking: record.ts, cpu: record.cpu, task, programmed });
            }
        } else if self.ends.contains(&Some(id))
            && let Some(on_cpu) = self.on_cpus.get_mut(&record.cpu)
        {
            on_cpu.running = None;
        }
    }
}
