//! The addresses behind the token, and their answers.

use super::address::{TileAt, Wanted};
use super::http::{Answer, JSON, Request};
use super::page;
use super::server::Server;
use crate::ask::critical_path::{self, KeptPath};
use crate::ask::filter::{ChosenTasks, PageFilter};
use crate::ask::questions::{AskedWindow, Asks, Fault};
use crate::ask::{
    Commands, Drawing, Finding, Format, MainFindings, MissedSteals, PathFinding, Plotted, TaskGroupings, row_facts,
    story, task_stacks, wait_detail,
};
use crate::index::Viewed;
use crate::index::viewed::NotReady;
use membership::StackHistory;
use sched::pass::Window;
use sched::{EventIssue, Pid, Ts};
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The page of some traces, with all that it asks for.
pub struct Site<'t> {
    traces: Vec<Viewed<'t>>,
    commands: &'t dyn Commands,
    /// The missed steals of each trace, once they were asked for.
    missed: Vec<OnceLock<Result<MissedSteals, String>>>,
    /// The main findings about each trace, once they were asked for.
    main: Vec<OnceLock<Result<MainFindings, String>>>,
    /// The groups of the tasks of each trace, once they were asked for.
    groups: Vec<OnceLock<Result<TaskGroupings, String>>>,
    /// The stacks with which the tasks of each trace left their CPUs, once they were asked for.
    stacks: Vec<OnceLock<Result<StackHistory, String>>>,
    /// The critical path of each trace, once it was asked for.
    paths: Vec<OnceLock<Result<KeptPath, String>>>,
    /// Held by the one search for a critical path that goes on.
    path_turn: Mutex<()>,
    /// The figure of each specification in each trace, once it was asked for.
    plots: Vec<Vec<Asked<Plotted>>>,
}

/// An answer that is made when it is asked for, or the reason for which there is none.
type Asked<T> = OnceLock<Result<Arc<T>, String>>;

/// The reason for which no number of a trace is given any more.
pub(crate) const SHORTER: &str = "the file of the trace has become shorter since it was opened; open it again";

/// Bytes, as a type of content.
const BINARY: &str = "application/octet-stream";

impl<'t> Site<'t> {
    /// The page of these traces, with the results of the other commands.
    pub fn new(traces: Vec<Viewed<'t>>, commands: &'t dyn Commands) -> Site<'t> {
        let missed = traces.iter().map(|_| OnceLock::new()).collect();
        let main = traces.iter().map(|_| OnceLock::new()).collect();
        let groups = traces.iter().map(|_| OnceLock::new()).collect();
        let stacks = traces.iter().map(|_| OnceLock::new()).collect();
        let paths = traces.iter().map(|_| OnceLock::new()).collect();
        let names = commands.plots();
        let plots = traces.iter().map(|_| names.iter().map(|_| OnceLock::new()).collect()).collect();
        Site { traces, commands, missed, main, groups, stacks, paths, path_turn: Mutex::new(()), plots }
    }

    /// Reads the traces, and serves the page until the process ends.
    pub fn serve(&self, server: &Server) -> io::Result<()> {
        std::thread::scope(|scope| {
            scope.spawn(|| self.read_all());
            server.serve(&|path, request| self.answer(path, request))
        })
    }

    fn answer(&self, path: &str, request: &Request) -> Answer {
        let path = if path.is_empty() { "index.html" } else { path };
        if let Some((kind, text)) = page::file(path) {
            return Answer::of(kind, text.as_bytes().to_vec());
        }
        if path == "traces.json" {
            return Answer::of(JSON, self.list(false));
        }
        let found = path.strip_prefix("t/").and_then(|rest| rest.split_once('/')).and_then(|(number, rest)| {
            let number = number.parse::<usize>().ok()?;
            let trace = self.traces.get(number)?;
            let answer = match Wanted::of(rest, request)? {
                Ok(wanted) => self.of_trace(number, trace, wanted)?,
                Err(rule) => Answer::refused(400, rule),
            };
            // Looked at behind the reading: the numbers of the answer could be those of a part of the trace.
            Some(if trace.is_whole() { answer } else { Answer::refused(410, SHORTER) })
        });
        found.unwrap_or_else(|| Answer::refused(404, "there is no such page"))
    }

    /// The content of an address of a trace; nothing if the trace does not have it.
    fn of_trace(&self, number: usize, trace: &Viewed<'_>, wanted: Wanted) -> Option<Answer> {
        Some(match wanted {
            Wanted::Head => content(JSON, trace.head(0).map(Some))?,
            Wanted::Tile(TileAt::Lanes(level, group, index)) => content(BINARY, trace.lanes(level, group, index))?,
            Wanted::Tile(TileAt::Sums(level, group, index)) => content(BINARY, trace.sums(level, group, index))?,
            Wanted::Tile(TileAt::Machine(level, index)) => content(BINARY, trace.machine(level, index))?,
            Wanted::Rows(level, index, places) => content(BINARY, trace.row_tile(level, index, &places))?,
            Wanted::RowFacts => answered(row_facts::answer(trace).map_err(Fault::from)),
            Wanted::Command(drawing) => {
                let command = self.commands.command(number, &drawing).map(|command| json!({ "command": command }));
                command.map_or_else(|why| Answer::refused(400, &why), |command| answered(Ok(command)))
            }
            Wanted::Figure(drawing, format) => self.figure_file(number, &drawing, format),
            Wanted::Findings => answered(self.findings(number).map_err(Fault::from)),
            Wanted::MainFindings => answered(self.main_findings(number).map_err(Fault::from)),
            Wanted::TaskGroups => answered(self.task_groups(number).map_err(Fault::from)),
            Wanted::Wait(pid, window) => answered(wait_detail::answer(trace, pid, window)),
            Wanted::Path(window, columns) => answered(self.path_row(number, trace, window, columns)),
            Wanted::PathNumbers(window) => answered(self.path_numbers(number, trace, window)),
            Wanted::TaskStacks(pid, window) => answered(self.task_stacks(number, trace, pid, window)),
            Wanted::Story(window) => answered(self.story(number, trace, window)),
            Wanted::Answer(question) => answered(question.answer(trace, &OfTrace { site: self, number })),
            Wanted::Plot(place, question) => {
                let numbers = |from, to| self.commands.plot_numbers(number, place, from, to).map_err(NotReady);
                let answer = question.answer(trace, &|| self.plot(number, place), &numbers);
                answered(answer.transpose()?)
            }
        })
    }

    /// The figure of the window that is shown, as a file.
    fn figure_file(&self, trace: usize, drawing: &Drawing, format: Format) -> Answer {
        match self.commands.figure(trace, drawing, format) {
            Ok(figure) => {
                let saved_as = Some(format!("window-{}-{}.{}", drawing.from, drawing.to, format.ending()));
                Answer { saved_as, ..Answer::of(format.content_type(), figure) }
            }
            Err(why) => Answer::refused(400, &why),
        }
    }

    /// The missed steals of a trace; the first request reads the trace for them, and others wait for it.
    pub(crate) fn missed(&self, number: usize) -> Result<Value, NotReady> {
        let zero = self.traces.get(number).map(|trace| trace.extent().0).unwrap_or_default();
        let made = || self.commands.missed_steals(number, Window::default());
        let found = self.missed.get(number).map(|missed| missed.get_or_init(made));
        match found {
            Some(Ok(missed)) => Ok(missed.answer(zero)),
            Some(Err(why)) => Err(NotReady(why.clone())),
            None => Err(NotReady("there is no such trace".to_owned())),
        }
    }

    /// The main findings about a trace; the first request reads the trace for them, and others wait for it.
    pub(crate) fn main_findings(&self, number: usize) -> Result<Value, NotReady> {
        let zero = self.traces.get(number).map(|trace| trace.extent().0).unwrap_or_default();
        let found = self.main.get(number).map(|main| main.get_or_init(|| self.commands.main_findings(number)));
        match found {
            Some(Ok(found)) => Ok(found.answer(zero)),
            Some(Err(why)) => Err(NotReady(why.clone())),
            None => Err(NotReady("there is no such trace".to_owned())),
        }
    }

    /// The groups of the tasks of a trace, once all of it was read, as the page has them.
    pub(crate) fn task_groups(&self, number: usize) -> Result<Value, NotReady> {
        self.groups_of(number).map(TaskGroupings::answer)
    }

    /// The groups of the tasks of a trace, once all of it was read; the first request learns them, and others wait for it.
    fn groups_of(&self, number: usize) -> Result<&TaskGroupings, NotReady> {
        let (Some(trace), Some(groups)) = (self.traces.get(number), self.groups.get(number)) else {
            return Err(NotReady("there is no such trace".to_owned()));
        };
        let store = trace.store()?;
        let learned = || self.commands.task_groups(number, store.index().tasks().list());
        match groups.get_or_init(learned) {
            Ok(found) => Ok(found),
            Err(why) => Err(NotReady(why.clone())),
        }
    }

    /// The stacks of a task in a window; the first request for those of a trace reads it for them, and others wait for it.
    fn task_stacks(&self, number: usize, trace: &Viewed<'_>, pid: Pid, window: AskedWindow) -> Result<Value, Fault> {
        let learned = || match trace.trace.has_stacks() {
            true => self.commands.stack_history(number),
            false => Ok(StackHistory::default()),
        };
        match self.stacks.get(number).map(|stacks| stacks.get_or_init(learned)) {
            Some(Ok(history)) => task_stacks::answer(trace, history, pid, window),
            Some(Err(why)) => Err(NotReady(why.clone()).into()),
            None => Err(NotReady("there is no such trace".to_owned()).into()),
        }
    }

    /// Searches a window for the critical path, behind every search before: each can take as much memory as `path`.
    fn search_path(&self, number: usize, window: Window) -> Result<PathFinding, String> {
        let _turn = self.path_turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.commands.critical_path(number, window)
    }

    /// The critical path of a whole trace; the first request reads the trace for it, and others wait for it.
    fn path(&self, number: usize, trace: &Viewed<'_>) -> Result<&KeptPath, NotReady> {
        trace.store()?;
        let search = || self.search_path(number, Window::default()).map(KeptPath::of);
        match self.paths.get(number).map(|path| path.get_or_init(search)) {
            Some(Ok(path)) => Ok(path),
            Some(Err(why)) => Err(NotReady(why.clone())),
            None => Err(NotReady("there is no such trace".to_owned())),
        }
    }

    /// The row of the critical path in a window.
    fn path_row(&self, number: usize, trace: &Viewed<'_>, window: AskedWindow, columns: u64) -> Result<Value, Fault> {
        let window = window.within(trace)?;
        Ok(match self.path(number, trace)? {
            KeptPath::Row(row) => row.answer(trace.extent().0, window, columns),
            KeptPath::NoApplication(why) => critical_path::none(why),
        })
    }

    /// The numbers of the critical path of a window; those of the whole trace belong to the row.
    fn path_numbers(&self, number: usize, trace: &Viewed<'_>, window: AskedWindow) -> Result<Value, Fault> {
        let (from, to) = window.within(trace)?;
        match self.path(number, trace)? {
            KeptPath::Row(row) if (from, to) == trace.extent() => Ok(row.numbers().clone()),
            KeptPath::NoApplication(why) => Ok(critical_path::none(why)),
            KeptPath::Row(_) => {
                let window = Window { from: Some(from), to: Some(to) };
                Ok(critical_path::numbers(self.search_path(number, window))?)
            }
        }
    }

    /// The episode that holds the instant `from`, and ends at `to`.
    fn story(&self, number: usize, trace: &Viewed<'_>, window: AskedWindow) -> Result<Value, Fault> {
        let window = window.within(trace)?;
        let follow = |why: why::Why<'_>| story::follow(trace, window, why);
        let episode = self.commands.story(number, window.0, &follow).map_err(NotReady)?;
        Ok(episode.answer(trace.extent().0))
    }

    /// The findings about a trace, the gravest first, with their places on the time axis as far as they are known.
    pub(crate) fn findings(&self, number: usize) -> Result<Value, NotReady> {
        let trace = self.traces.get(number).ok_or_else(|| NotReady("there is no such trace".to_owned()))?;
        let store = trace.store()?;
        // Those of the pass have those of the file among them.
        let mut findings = self.commands.findings(number, store.diagnostics()).map_err(NotReady)?;
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let (index, zero) = (store.index(), trace.extent().0);
        let row = |finding: &Finding| {
            let issue = EventIssue::ALL.iter().find(|issue| finding.kind.is_some_and(|kind| kind == **issue));
            let places = issue.map_or(&[][..], |issue| index.notes.places.of(*issue));
            let places: Vec<_> = places.iter().map(|(ts, cpu)| (ts.since(zero).0, cpu)).collect();
            json!({ "severity": finding.severity, "text": finding.text, "places": places })
        };
        Ok(json!({ "findings": findings.iter().map(row).collect::<Vec<_>>(), "trust": trace.trust()? }))
    }

    /// The figure of a specification; the first request reads the trace for it, and others wait for that.
    pub(crate) fn plot(&self, trace: usize, plot: usize) -> Result<Arc<Plotted>, NotReady> {
        let made = || self.commands.plot(trace, plot).map(Arc::new);
        let found = self.plots.get(trace).and_then(|plots| plots.get(plot)).map(|asked| asked.get_or_init(made));
        match found {
            Some(found) => found.clone().map_err(NotReady),
            None => Err(NotReady("there is no such specification".to_owned())),
        }
    }

    /// The names of the traces as JSON. `is_static`: questions are not answered.
    pub(crate) fn list(&self, is_static: bool) -> Vec<u8> {
        let names: Vec<&str> = self.traces.iter().map(Viewed::name).collect();
        let plots = self.commands.plots();
        let list = json!({ "schema": "schedviz/view/1", "traces": names, "static": is_static, "plots": plots });
        list.to_string().into_bytes()
    }

    /// The number of specifications whose figures are shown.
    pub(crate) fn specifications(&self) -> usize {
        self.plots.first().map_or(0, Vec::len)
    }

    pub(crate) fn traces(&self) -> &[Viewed<'t>] {
        &self.traces
    }

    /// Reads the traces, one after the other: each uses all processors, and its coarse picture is there sooner.
    pub(crate) fn read_all(&self) {
        self.traces.iter().for_each(Viewed::read);
    }
}

/// The answers about one trace that other commands give.
struct OfTrace<'s, 't> {
    site: &'s Site<'t>,
    number: usize,
}

impl Asks for OfTrace<'_, '_> {
    fn missed(&self, window: Option<(Ts, Ts)>) -> Result<Value, NotReady> {
        let OfTrace { site, number } = *self;
        let (Some((from, to)), Some(trace)) = (window, site.traces.get(number)) else { return site.missed(number) };
        let window = Window { from: Some(from), to: Some(to) };
        let found = site.commands.missed_steals(number, window).map_err(NotReady)?;
        Ok(found.answer(trace.extent().0))
    }

    fn chosen(&self, filter: &PageFilter) -> Result<Option<ChosenTasks>, NotReady> {
        let Some(trace) = self.site.traces.get(self.number).filter(|_| !filter.is_empty()) else { return Ok(None) };
        let (store, none) = (trace.store()?, TaskGroupings::default());
        let groups = if filter.needs_groups() { self.site.groups_of(self.number)? } else { &none };
        Ok(Some(filter.chosen(store.index().tasks(), groups)))
    }
}

/// The answer to a question.
fn answered(answer: Result<Value, Fault>) -> Answer {
    match answer {
        Ok(answer) => Answer::of(JSON, answer.to_string().into_bytes()),
        Err(Fault::Bad(why)) => Answer::refused(400, why),
        Err(Fault::NotReady(NotReady(why))) => Answer::refused(503, &why),
    }
}

/// The content of this type; nothing if the trace does not have it.
fn content(kind: &'static str, content: Result<Option<Vec<u8>>, NotReady>) -> Option<Answer> {
    match content {
        Ok(content) => content.map(|content| Answer::of(kind, content)),
        Err(NotReady(why)) => Some(Answer::refused(503, &why)),
    }
}
