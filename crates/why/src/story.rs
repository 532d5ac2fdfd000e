//! One episode of violation, step by step.
//!
//! The steps of the open episode are kept until it ends: the waits and the idle stretches that begin and end in it, in
//! the order of their events. The episode that holds the instant asked for is the story.

use crate::EstimatedGate;
use crate::category::{Category, IdleOrigin, WaitEnd, WaitOrigin, short};
use crate::ledger::MoveKey;
use crate::nearest::Nearest;
use sched::balancer::{Attempt, AttemptOutcome, NewIdleOutcome, Verdicts};
use sched::topology::shorten_cpu_list;
use sched::{Cause, Comm, Cpu, CpuMask, Dur, Pid, Ts};
use serde::Serialize;

/// The maximum number of steps of a story.
const STEPS: usize = 5_000;

/// A task in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) pid: Pid,
    pub(crate) command: Comm,
}

/// The change of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A counted task joins the run queue of a CPU, whose running task is within its slice or not, where its pick was recorded.
    Waits(Who, WaitOrigin, Option<MoveKey>, Option<bool>),
    /// A counted task leaves the run queue after this time.
    Leaves(Who, WaitEnd, Option<MoveKey>, Dur),
    /// A CPU goes idle, and misses a steal from that far; the outcome of its new-idle balancing, where probes show it.
    Idles(IdleOrigin, Option<MoveKey>, Option<Nearest>, (Option<NewIdleOutcome>, Option<EstimatedGate>)),
    /// The CPU attempted to balance a domain.
    Balances(Attempt),
    /// A counted task that waits on a CPU may use these CPUs from now on; unknown ones if the record lacks some.
    MayUse(Who, Option<CpuMask>),
    /// A CPU runs a task after it has idled for this time.
    Runs(Option<Who>, Dur),
}

/// A step: an event, and one change that it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) ts: Ts,
    /// The CPU of the event.
    pub(crate) on: Cpu,
    pub(crate) cpu: Cpu,
    pub(crate) change: Change,
}

/// A wait or an idle stretch that an episode begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    /// A counted task waits.
    Waiting(Who, Cpu, Ts),
    /// A CPU idles.
    Idle(Cpu, Ts),
}

/// The steps of the open episode, and the story once it is there.
#[derive(Clone, Debug)]
pub(crate) struct Chronicle {
    at: Ts,
    open: Option<Ts>,
    /// The end of the latest episode: one that begins there continues it.
    ended: Option<(Ts, Ts)>,
    present: Vec<Present>,
    steps: Vec<Step>,
    unlisted: u64,
    is_found: bool,
}

impl Chronicle {
    /// Returns the chronicle of the episode that holds an instant.
    pub(crate) fn new(at: Ts) -> Chronicle {
        Chronicle { at, open: None, ended: None, present: Vec::new(), steps: Vec::new(), unlisted: 0, is_found: false }
    }

    /// The window begins within an episode.
    pub(crate) fn begin(&mut self, start: Ts, present: Vec<Present>) {
        (self.open, self.present) = (Some(start), present);
    }

    /// An event at `now` is about to be applied: an episode that ended before is over.
    pub(crate) fn before(&mut self, now: Ts) {
        if let Some((start, end)) = self.ended.filter(|(_, end)| *end < now) {
            self.ended = None;
            if start <= self.at && self.at < end {
                self.is_found = true;
                self.open = Some(start);
                self.ended = Some((start, end));
            }
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        if self.is_found {
            return;
        }
        if self.steps.len() < STEPS {
            self.steps.push(step);
        } else {
            self.unlisted += 1;
        }
    }

    /// The steps of an event at `now` were added; V was so before it and is so behind it.
    pub(crate) fn after(&mut self, now: Ts, was: bool, is: bool, present: impl FnOnce() -> Vec<Present>) {
        match (was, is) {
            _ if self.is_found => {}
            (false, true) => match self.ended.take().filter(|(_, end)| *end == now) {
                Some((start, _)) => self.open = Some(start),
                None => {
                    // The steps of the opening event belong to the episode, older ones do not.
                    self.steps.retain(|step| step.ts == now);
                    self.unlisted = 0;
                    self.open = Some(now);
                    self.present = present();
                }
            },
            (true, false) => self.ended = self.open.take().map(|start| (start, now)),
            (false, false) if self.ended.is_none_or(|(_, end)| end < now) => self.steps.clear(),
            _ => {}
        }
    }

    /// A migration has this cause.
    pub(crate) fn settle(&mut self, key: MoveKey, cause: Cause) {
        for step in self.steps.iter_mut().rev() {
            match &mut step.change {
                Change::Waits(_, origin, of, _) if *of == Some(key) => *origin = origin.caused_by(cause),
                Change::Leaves(_, end, of, _) if *of == Some(key) => *end = end.caused_by(cause),
                Change::Idles(origin, of, ..) if *of == Some(key) => *origin = origin.caused_by(cause),
                _ if step.ts < key.1 => break,
                _ => {}
            }
        }
    }

    pub(crate) fn finish(mut self, end: Ts, zero: Ts) -> Option<Story> {
        self.before(Ts(i64::MAX));
        let (start, stop) = match (self.is_found, self.ended, self.open) {
            (true, Some(episode), _) => episode,
            (false, _, Some(start)) if start <= self.at && self.at <= end => (start, end),
            _ => return None,
        };
        let seconds = |ts: Ts| ts.0.saturating_sub(zero.0);
        let steps = self.steps.iter().filter(|step| step.ts >= start && step.ts <= stop);
        let steps = steps.map(|step| StoryStep {
            ts_ns: step.ts,
            after_ns: step.ts.since(start),
            cpu: step.cpu,
            words: step.words(),
            pid: step.who().map(|who| who.pid),
            mark: step.mark(),
        });
        Some(Story {
            start_ns: start,
            start_in_trace_ns: seconds(start).unsigned_abs(),
            duration_ns: stop.since(start),
            before: self.present.iter().map(|present| present.words(start)).collect(),
            steps: steps.collect(),
            unlisted: self.unlisted,
        })
    }
}

impl Present {
    fn words(&self, start: Ts) -> String {
        match self {
            Present::Waiting(who, cpu, since) => {
                format!("CPU {cpu}: {} has waited for {}", who.pid.named(who.command), start.since(*since).human())
            }
            Present::Idle(cpu, since) => format!("CPU {cpu}: idle for {}", start.since(*since).human()),
        }
    }
}

impl Step {
    fn who(&self) -> Option<Who> {
        match self.change {
            Change::Waits(who, ..) | Change::Leaves(who, ..) | Change::MayUse(who, _) => Some(who),
            Change::Runs(who, _) => who,
            Change::Idles(..) | Change::Balances(_) => None,
        }
    }

    /// The mark of the step in a figure.
    fn mark(&self) -> Option<Mark> {
        match self.change {
            Change::Leaves(_, WaitEnd::Moved(_), Some((_, _, dest)), _) => Some(Mark::Moved(self.cpu, dest)),
            Change::Waits(_, WaitOrigin::Woken(..), ..) => Some(Mark::Woken(self.on, self.cpu)),
            Change::Waits(_, WaitOrigin::Forked, ..) => Some(Mark::Woken(self.on, self.cpu)),
            Change::Idles(_, _, Some(_), _) => Some(Mark::Missed(self.cpu)),
            Change::Balances(attempt) => Some(Mark::Balanced(self.cpu, attempt.outcome)),
            _ => None,
        }
    }

    fn words(&self) -> String {
        let cpu = self.cpu;
        let name = |who: Who| who.pid.named(who.command);
        match self.change {
            Change::Waits(who, origin, _, within_slice) => {
                let slice = match within_slice {
                    None => "",
                    Some(true) => "; the running task is within its slice",
                    Some(false) => "; the running task is beyond its slice",
                };
                format!("CPU {cpu}: {} waits: {}{slice}", name(who), origin.words())
            }
            Change::Leaves(who, WaitEnd::Moved(cause), Some((_, _, dest)), waited) => {
                format!("CPU {cpu}: {} moves to CPU {dest}, {}; queued {}", name(who), short(cause), waited.human())
            }
            Change::Leaves(who, end, _, waited) => {
                format!("CPU {cpu}: {} {}; queued {}", name(who), end.words(), waited.human())
            }
            Change::Balances(attempt) => attempt_words(&attempt),
            Change::Idles(origin, _, missed, (outcome, gate)) => {
                let missed = match missed {
                    None => "",
                    Some(Nearest::Core) => "; missed steal: a task waits on the same core",
                    Some(Nearest::Cluster) => "; missed steal: a task waits in the same cluster",
                    Some(Nearest::Llc) => "; missed steal: a task waits in the same LLC",
                    Some(Nearest::Node) => "; missed steal: a task waits on the same node",
                    Some(Nearest::Beyond) => "; missed steal: a task waits on another node",
                    Some(_) => "; missed steal: a task waits on another CPU",
                };
                let known = outcome.filter(|outcome| *outcome != NewIdleOutcome::Unknown);
                let balance = known.map_or(String::new(), |known| format!("; new-idle balance: {}", known.words()));
                let gate = gate.map_or(String::new(), |gate| format!("; its gate, estimated: {}", gate.words()));
                format!("CPU {cpu} goes idle: {}{missed}{balance}{gate}", origin.words())
            }
            Change::MayUse(who, None) => format!("CPU {cpu}: {} may use other CPUs from now on", name(who)),
            Change::MayUse(who, Some(mask)) => {
                let cpus = shorten_cpu_list(&mask.cpus().collect::<Vec<_>>(), 8);
                format!("CPU {cpu}: {} may use CPUs {cpus} from now on", name(who))
            }
            Change::Runs(Some(who), idled) => format!("CPU {cpu} runs {} after {} idle", name(who), idled.human()),
            Change::Runs(None, idled) => format!("CPU {cpu} no longer idles, after {}", idled.human()),
        }
    }
}

/// An attempt in words: `CPU 3 balances MC (new-idle): all 2 examined tasks refused (1 running, 1 other)`.
fn attempt_words(attempt: &Attempt) -> String {
    let Verdicts { running, one_cpu, other, .. } = attempt.verdicts;
    let outcome = match attempt.outcome {
        AttemptOutcome::NotChosen => "another CPU of its group balances".to_owned(),
        AttemptOutcome::NoBusiestGroup => "no group is busier".to_owned(),
        AttemptOutcome::NoneMoved => "a group is busier, no task was moved".to_owned(),
        AttemptOutcome::NoTaskExamined => "a group is busier, no task was examined".to_owned(),
        AttemptOutcome::AllRefused => {
            let all = attempt.verdicts.examined();
            let reasons = [(running, "running"), (one_cpu, "bound to one CPU"), (other, "for other reasons")];
            let reasons = reasons.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}"));
            format!("examined {all} and moved none ({})", reasons.collect::<Vec<_>>().join(", "))
        }
        AttemptOutcome::Moved => match attempt.moved {
            1 => "moved 1 task".to_owned(),
            n => format!("moved {n} tasks"),
        },
    };
    let domain = match attempt.domain.is_empty() {
        true => String::new(),
        false => format!(" {}", attempt.domain),
    };
    format!("CPU {} balances{domain} ({}): {outcome}", attempt.on, attempt.balancing.name())
}

/// A step of a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoryStep {
    /// The time of the event on the trace's clock, in nanoseconds.
    pub ts_ns: Ts,
    /// The time since the start of the episode, in nanoseconds.
    pub after_ns: Dur,
    /// The CPU of the run queue, or the CPU that idles.
    pub cpu: Cpu,
    /// The task; absent where a CPU goes idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The step in words.
    pub words: String,
    /// The mark of the step in a figure; absent where it has none.
    #[serde(skip)]
    pub(crate) mark: Option<Mark>,
}

/// A mark of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A waiting task is moved from one CPU to another.
    Moved(Cpu, Cpu),
    /// A wakeup or a fork on one CPU queues a task on another or the same.
    Woken(Cpu, Cpu),
    /// A CPU goes idle while a task waits elsewhere.
    Missed(Cpu),
    /// A CPU attempts to balance a domain.
    Balanced(Cpu, AttemptOutcome),
}

/// An episode of violation, step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Story {
    /// The start of the episode on the trace's clock, in nanoseconds: the opening event.
    pub start_ns: Ts,
    /// The start of the episode after the start of the trace, in nanoseconds.
    pub start_in_trace_ns: u64,
    /// The length of the episode in nanoseconds, to the closing event or the end of the window.
    pub duration_ns: Dur,
    /// The waiting tasks and the idle CPUs after the opening event, in words.
    pub before: Vec<String>,
    /// The steps, in the order of time.
    pub steps: Vec<StoryStep>,
    /// The number of steps that are not listed, since there are too many.
    pub unlisted: u64,
}
