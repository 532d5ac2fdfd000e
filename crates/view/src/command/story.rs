//! An episode of violation step by step, by the definition of `why`.

use crate::{EpisodeStory, Follow};
use anyhow::{Result, anyhow, bail};
use sched::Ts;
use session::Session;
use why::Why;
use workcons::Options;

/// The episode at an instant. Waiting tasks count as in the page's list of episodes, by the default of `why`.
pub(super) fn of(session: &Session, at: Ts, follow: &Follow<'_>) -> Result<EpisodeStory> {
    let options = Options { strips: None, ..workcons::Options::plain(session) };
    let why = Why::new(&options).with_episode_at(Some(at)).with_probes(why::Probed::of(session));
    let report = follow(why).map_err(|why| anyhow!(why))?;
    let Some(story) = report.episode else { bail!("work conservation is not violated at this time") };
    let at = format!("--at {}ns", story.start_in_trace_ns);
    let command = session.drawable.one_line("why", &[at]);
    Ok(EpisodeStory { story, command })
}
