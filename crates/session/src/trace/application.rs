//! The application of a recording: the traced command, the tasks that were chosen, or none.

use crate::arguments::application_args::{ApplicationArgs, ApplicationChoice};
use crate::trace::heading;
use crate::trace::helpers::{Helpers, WakeGraph};
use crate::trace::lives::{Life, Lives, members_of};
use crate::trace::session::Session;
use anyhow::{Result, bail};
use machine::{Machine, RecordedApplication};
use membership::{ChosenGroups, TasksBy};
use parse::Want;
use sched::limits::PIDS;
use sched::seeded::{SeededMap, SeededSet};
use sched::{
    Application, ApplicationBasis, Comm, CommandWork, EventKind, EventSource, Pid, RunLengths, SchedEvent, Tracepoint,
    Ts,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The number of events within which the traced command is looked for before it is judged by its work.
const MOST_BEFORE_COMMAND: usize = 200_000;

/// The least number of events by which the share of other tasks is judged, and the bytes of a recording for each further one.
const LEAST_EVENTS: usize = 1 << 10;
const BYTES_FOR_EVENT: u64 = 1 << 11;

/// The length in nanoseconds from which on the command of a recording is judged: a shorter one has no time to idle.
const LEAST_LENGTH: u64 = 1_000_000_000;

/// The tasks that work for the application are looked for where tasks outside of it have this part of the CPU time.
const LEAST_OUTSIDE: u64 = 50;

/// The name of the note of a part on the application in words.
const NOTE: &str = "application";

/// The greatest number of names of tasks in a message.
const NAMES: usize = 5;

/// A recorded task's chooser: its PID, its name and an instant.
type Chooser<'c> = dyn Fn(Pid, Comm, Ts) -> bool + 'c;

impl Session {
    /// Takes the application that was asked for, or that the machine file names; without either it stays that of the
    /// traced command.
    pub(super) fn choose_application(&mut self) -> Result<()> {
        let ApplicationArgs { application, .. } = self.read.application.clone();
        let recorded = self.machine.as_ref().and_then(|machine| machine.application.clone());
        let nothing = |basis| Some(Application::without(basis));
        let chosen = application.as_ref().map(ToString::to_string);
        let application = match (application, recorded) {
            (Some(ApplicationChoice::Command), _) | (None, None) => None,
            (Some(ApplicationChoice::None), _) => nothing(ApplicationBasis::Nothing),
            (None, Some(RecordedApplication::Machine)) => nothing(ApplicationBasis::Machine),
            (Some(choice), _) => {
                let (typed, chosen) = (choice.to_string(), self.tasks_of(&choice)?);
                if chosen.members.is_empty() {
                    bail!(
                        "--application {typed}: there is no such task in {}; schedviz fairness --by task lists those it has",
                        self.name()
                    );
                }
                Some(chosen)
            }
            (None, Some(RecordedApplication::Processes(pids))) => Some(self.tasks_of(&ApplicationChoice::Pids(pids))?),
            (None, Some(RecordedApplication::Cgroup(path))) => Some(self.tasks_of_cgroups(|of| is_below(of, &path))?),
        };
        let Some(application) = application else {
            let noted = self.trace.past().and_then(|past| past.notes.get(NOTE));
            self.application = noted.map(|words| sched::event::escape(words.as_bytes()).into_owned());
            return Ok(());
        };
        if application.basis == ApplicationBasis::Chosen && application.members.is_empty() {
            let name = self.name();
            self.read.message(&format!(
                "{name}: no event is of the application that was recorded; choose one with --application"
            ));
        }
        self.application = Some(match application.basis.why_none() {
            Some(why) => format!("none, since {why}"),
            None => chosen.unwrap_or_else(|| "what was recorded".to_owned()),
        });
        self.trace.set_application(application);
        Ok(())
    }

    /// The session for a question about the application: the traced command is judged by its work in the whole recording, and
    /// one that hardly ran is no application; tasks that work for the application become part of it. A message says either.
    pub fn with_judged_command(mut self) -> Result<Session> {
        self.judge_command()?;
        Ok(self)
    }

    /// The same, but for questions of which some alone are about the application.
    pub fn with_judged_command_if(self, needs_application: bool) -> Result<Session> {
        if needs_application { self.with_judged_command() } else { Ok(self) }
    }

    /// The reason why the traced command is not the application, a clause for people; nothing where it may be.
    pub fn why_no_command(&self) -> Option<&'static str> {
        let of_part = self.trace.past().and_then(|past| past.application.as_ref());
        let basis = self.trace.application().map(|application| &**application).or(of_part)?.basis;
        match basis {
            ApplicationBasis::Command => None,
            ApplicationBasis::Chosen => Some("other tasks were chosen"),
            basis => basis.why_none(),
        }
    }

    /// A text with the application in words behind its head, where it is not the traced command with what descends from it alone.
    pub fn with_application(&self, text: String) -> String {
        heading::with_words(self.application.as_deref(), text)
    }

    /// The note of a part on the application in words; nothing where it is the traced command with what descends from it.
    pub fn note_on_application(&self) -> Option<(String, String)> {
        self.application.clone().map(|words| (NOTE.to_owned(), words))
    }

    fn judge_command(&mut self) -> Result<()> {
        let chosen = self.trace.application().cloned();
        let is_none = chosen.as_ref().is_some_and(|chosen| chosen.basis.why_none().is_some());
        // A part has the judgement of the whole.
        if is_none || self.trace.past().is_some() || !self.trace.has(Tracepoint::Switch) {
            return Ok(());
        }
        if chosen.is_none() && !self.has_busy_others()? || self.read.application.strict {
            return Ok(());
        }
        if self.trace.has(Tracepoint::Waking) { self.add_helpers(chosen.unwrap_or_default()) } else { Ok(()) }
    }

    /// Judges the traced command: whether it is an application, and other tasks run enough beside it to work for it.
    fn has_busy_others(&mut self) -> Result<bool> {
        let is_long = |(start, end): &(Ts, Ts)| end.since(*start).0 >= LEAST_LENGTH;
        let Some((start, end)) = self.trace.extent().filter(is_long).filter(|_| self.trace.has(Tracepoint::Exec))
        else {
            return Ok(false);
        };
        let work = self.command_work((start, end))?;
        if !work.hardly_ran() {
            return Ok(work.root().is_some() && work.outside_ns.saturating_mul(LEAST_OUTSIDE) >= work.busy_ns);
        }
        if self.read.application.application.is_none() {
            let (ran, length) = (work.ran_ns as f64 / 1e6, end.since(start).seconds());
            let words = format!("the traced command hardly ran ({ran:.1} ms of CPU time in {length:.1} s)");
            self.trace.set_application(Application::without(ApplicationBasis::HardlyRan));
            self.read.message(&format!(
                "{}: {words}: there is no application, and costs are those of the machine; choose one with --application \
                 (pid:PID, comm:NAME, cgroup:PATH; command: the command all the same)",
                self.name()
            ));
            self.application = Some(format!("none, since {words}"));
        }
        Ok(false)
    }

    /// The work of the traced command, as far as it takes to know that it is enough for an application.
    fn command_work(&self, (start, end): (Ts, Ts)) -> Result<CommandWork> {
        let bytes = std::fs::metadata(self.path()).map_or(0, |file| file.len());
        let least = usize::try_from(bytes / BYTES_FOR_EVENT).unwrap_or(usize::MAX);
        let least = least.clamp(LEAST_EVENTS, MOST_BEFORE_COMMAND);
        let (mut work, mut seen) = (CommandWork::new(start, end), 0_usize);
        self.watched(|| {
            self.trace.events_of(Want::Lineage)?.events(&mut |events| {
                events.iter().for_each(|event| work.learn(event));
                seen += events.len();
                let is_known = work.is_enough() && seen >= least;
                if is_known || work.root().is_none() && seen >= MOST_BEFORE_COMMAND {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })
        })?;
        Ok(work)
    }

    /// Makes the tasks that work for the application part of it, and says so.
    fn add_helpers(&mut self, application: Arc<Application>) -> Result<()> {
        let mut graph = WakeGraph::new(&application);
        self.watched(|| {
            self.trace.events()?.events(&mut |events| {
                events.iter().for_each(|event| graph.learn(event));
                ControlFlow::Continue(())
            })
        })?;
        let Helpers { members, names } = graph.helpers();
        if members.is_empty() {
            return Ok(());
        }
        let count = members.len() as u64;
        let words = format!(
            "{} outside of its tree work{} for it, hand in hand with it: {}",
            sched::nouns::counted(count, "task"),
            if count == 1 { "s" } else { "" },
            named_most(&names)
        );
        self.read.message(&format!("{}: the application: {words}; --strict leaves them out", self.name()));
        let before = self.application.take().unwrap_or_else(|| "the traced command".to_owned());
        self.application = Some(format!("{before}; {words}"));
        let mut application = Arc::unwrap_or_clone(application);
        application.members.extend(members);
        application.members.sort_unstable();
        self.trace.set_application(application);
        Ok(())
    }

    /// The application that a choice makes.
    fn tasks_of(&self, choice: &ApplicationChoice) -> Result<Application> {
        match choice {
            ApplicationChoice::Command | ApplicationChoice::None => Ok(Application::default()),
            ApplicationChoice::Pids(pids) => {
                let threads = self.machine.as_ref().map(|machine| threads_of(machine, pids)).unwrap_or_default();
                let pids: SeededSet<Pid> = pids.iter().copied().map(Pid).collect();
                self.application_of(&threads, &|pid, _, _| pids.contains(&pid))
            }
            ApplicationChoice::Comm(name) => {
                let name = Comm::new(name.as_bytes());
                self.application_of(&[], &|_, comm, _| comm == name)
            }
            ApplicationChoice::Tasks(pattern) => {
                self.application_of(&[], &|_, comm, _| sched::chosen::is_match(pattern, comm))
            }
            ApplicationChoice::Cgroup(pattern) => self.tasks_of_cgroups(|path| pattern.is_match(path)),
        }
    }

    /// The application of the tasks in some cgroups.
    fn tasks_of_cgroups(&self, is_chosen: impl Fn(&str) -> bool) -> Result<Application> {
        let groups = ChosenGroups::default().with_cgroups(self.task_groups(TasksBy::Cgroup)?, is_chosen);
        self.application_of(&[], &|pid, _, ts| groups.takes(pid, None, ts))
    }

    /// The application of tasks that live at the start, and of those that are chosen at any instant at which an event names them, with all their threads and
    /// children. Its critical path is that of the task among them with the most CPU time.
    fn application_of(&self, from_start: &[Pid], chooser: &Chooser<'_>) -> Result<Application> {
        let mut chosen = ChosenScan::new(self.start, chooser);
        chosen.members.extend(from_start.iter().take(PIDS).map(|pid| (*pid, 0)));
        let past = self.trace.past().map_or(&[][..], |past| &past.tasks);
        past.iter().for_each(|task| chosen.meet(task.pid, task.comm, self.start));
        if self.trace.has(Tracepoint::Switch) {
            self.watched(|| {
                self.trace.events_of(Want::Lineage)?.events(&mut |events| {
                    events.iter().for_each(|event| chosen.learn(event));
                    ControlFlow::Continue(())
                })
            })?;
        }
        Ok(chosen.application())
    }
}

/// The commonest names of tasks, with their numbers.
fn named_most(names: &BTreeMap<Comm, usize>) -> String {
    let mut names: Vec<(&Comm, &usize)> = names.iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut words: Vec<String> = names.iter().take(NAMES).map(|(name, count)| format!("{name} ({count})")).collect();
    if names.len() > NAMES {
        words.push("others".to_owned());
    }
    words.join(", ")
}

/// Whether a cgroup is this one or lies below it.
fn is_below(of: &str, path: &str) -> bool {
    of.strip_prefix(path.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The threads of processes, as a machine file lists those of the start.
fn threads_of(machine: &Machine, pids: &[i32]) -> Vec<Pid> {
    pids.iter().filter_map(|pid| machine.processes.get(pid)).flatten().copied().map(Pid).collect()
}

/// The chosen tasks of a recording, with the CPU time of all tasks.
struct ChosenScan<'c> {
    chooser: &'c Chooser<'c>,
    runs: RunLengths,
    lives: Lives,
    parents: SeededMap<Life, Life>,
    ran: SeededMap<Life, u64>,
    /// The latest name of each task, and whether it was chosen by it.
    met: SeededMap<Pid, Comm>,
    members: SeededSet<Life>,
}

impl<'c> ChosenScan<'c> {
    fn new(start: Ts, chooser: &'c Chooser<'c>) -> ChosenScan<'c> {
        ChosenScan {
            chooser,
            runs: RunLengths::new(start),
            lives: Lives::default(),
            parents: SeededMap::default(),
            ran: SeededMap::default(),
            met: SeededMap::default(),
            members: SeededSet::default(),
        }
    }

    /// An event names a task.
    fn meet(&mut self, pid: Pid, comm: Comm, ts: Ts) {
        let life = self.lives.of(pid);
        if pid.is_idle() || self.members.contains(&life) || self.members.len() >= PIDS {
            return;
        }
        if (self.chooser)(pid, comm, ts) {
            self.members.insert(life);
        }
    }

    fn learn(&mut self, event: &SchedEvent) {
        match event.kind {
            EventKind::Switch { prev, next, .. } => {
                let (ns, life) = (self.runs.switch(event.cpu, event.ts), self.lives.of(prev.pid));
                if !prev.pid.is_idle() && (self.ran.len() < PIDS || self.ran.contains_key(&life)) {
                    let ran = self.ran.entry(life).or_default();
                    *ran = ran.saturating_add(ns);
                }
                // The same task by the same name is not asked again; its cgroup can have changed since its last run.
                self.meet(prev.pid, prev.comm, event.ts);
                if self.met.get(&next.pid) != Some(&next.comm) {
                    sched::limits::keep_of_pid(&mut self.met, next.pid, next.comm);
                    self.meet(next.pid, next.comm, event.ts);
                }
            }
            EventKind::Fork { parent, child, .. } => {
                let parent = self.lives.of(parent);
                self.lives.fork(child);
                self.met.remove(&child);
                if self.parents.len() < PIDS {
                    self.parents.insert(self.lives.of(child), parent);
                }
            }
            EventKind::Exec { pid, program, .. } => self.meet(pid, program, event.ts),
            _ => {}
        }
    }

    fn application(self) -> Application {
        let members = members_of(&self.members, false);
        let ran = self.ran.iter().filter(|(life, _)| self.descends(**life));
        let most = ran.max_by_key(|((pid, life), ns)| (**ns, std::cmp::Reverse((*pid, *life))));
        let root = most.map(|((pid, _), _)| *pid).or(members.first().map(|member| member.pid));
        Application { basis: ApplicationBasis::Chosen, root, members }
    }

    /// Whether a task is chosen, or descends from one that is.
    fn descends(&self, life: Life) -> bool {
        let mut at = Some(life);
        for _ in 0..MOST_ANCESTORS {
            match at {
                Some(life) if self.members.contains(&life) => return true,
                Some(life) => at = self.parents.get(&life).copied(),
                None => return false,
            }
        }
        false
    }
}

/// The most ancestors of a task that are looked at.
const MOST_ANCESTORS: usize = 1 << 10;
