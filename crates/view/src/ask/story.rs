//! An episode of violation step by step, as `why` prints it.

use crate::index::viewed::{NotReady, Viewed};
use sched::{Cpu, Current, Dur, SchedState, Ts};
use serde_json::{Value, json};
use why::{Story, Why, WhyReport};

/// An episode, and the command line that prints it.
#[derive(Clone, Debug)]
pub struct EpisodeStory {
    /// The episode of violation, step by step.
    pub story: Story,
    /// The command line that prints the episode.
    pub command: String,
}

/// A function that follows a part of a trace around an episode with the analysis that it is given.
pub type Follow<'f> = dyn Fn(Why<'_>) -> Result<WhyReport, String> + 'f;

/// The part of a trace before and behind an episode that is followed as well: the causes of migrations depend on events
/// around them.
const AROUND: Dur = Dur(50_000_000);

/// Follows the trace around the time from `from` to `to`. It begins before all waits and idle stretches that last at
/// `from`, so that their lengths are those of the whole trace.
pub(crate) fn follow(trace: &Viewed<'_>, (from, to): (Ts, Ts), why: Why<'_>) -> Result<WhyReport, String> {
    let store = trace.store().map_err(|NotReady(why)| why)?;
    let (start, end) = trace.extent();
    let earliest = store.with_replay(|replay| {
        let step = replay.step_at(Ts(from.0.saturating_add(1)))?;
        replay.go(step)?;
        Ok(earliest(replay.state(), trace.cpus()).unwrap_or(from).min(from))
    });
    let begin = earliest.map(|at| Ts(at.0.saturating_sub_unsigned(AROUND.0)).max(start)).map_err(|e| e.to_string())?;
    store.window(begin, to.after(AROUND).min(end), why).map_err(|e| e.to_string())
}

/// The start of the wait or idle stretch that has lasted for the longest.
fn earliest(state: &SchedState, cpus: &[Cpu]) -> Option<Ts> {
    let since = |cpu: &Cpu| {
        let idle = (state.current(*cpu) == Current::Idle).then(|| state.current_since(*cpu));
        state.waiting(*cpu).map(|task| task.since).chain(idle).min()
    };
    cpus.iter().filter_map(since).min()
}

impl EpisodeStory {
    /// The answer to the page, with times from `zero`.
    pub(crate) fn answer(&self, zero: Ts) -> Value {
        let EpisodeStory { story, command } = self;
        let time = |ts: Ts| ts.since(zero).0;
        let step = |step: &why::StoryStep| {
            json!({
                "at": time(step.ts_ns), "after": step.after_ns.0, "cpu": step.cpu, "pid": step.pid, "text": step.words,
            })
        };
        json!({
            "from": time(story.start_ns),
            "to": time(story.start_ns.after(story.duration_ns)),
            "before": story.before,
            "steps": story.steps.iter().map(step).collect::<Vec<_>>(),
            "unlisted": story.unlisted,
            "command": command,
        })
    }
}
