//! The addresses behind the token, and their answers.

use super::address::{TileAt, Wanted};
use super::http::{Answer, JSON, Request};
use super::page;
use super::paths::Paths;
use super::server::Server;
use crate::ask::critical_path::{self, KeptPath, PathOf, PathQuestion, PathRow};
use crate::ask::filter::{ChosenTasks, PageFilter};
use crate::ask::questions::{AskedWindow, Asks, Fault, judged};
use crate::ask::selection_table::{AskedPart, TableBy, TableQuestion};
use crate::ask::{
    Commands, Drawing, Finding, Format, FoundTable, MainFindings, MissedSteals, PathFinding, Plotted, TaskGroupings,
    event_list, row_facts, story, task_stacks, wait_detail, wakeups,
};
use crate::index::store::CHECKPOINTS;
use crate::index::trust::WindowTrust;
use crate::index::viewed::NotReady;
use crate::index::{SumBy, Viewed};
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
    /// The critical paths of each trace that were asked for.
    paths: Vec<Paths>,
    /// Held by the one search for a critical path that goes on.
    path_turn: Mutex<()>,
    /// The latest table of each trace. The lock is held while a table is made.
    tables: Vec<Mutex<Option<KeptTable>>>,
    /// The figure of each specification in each trace, once it was asked for.
    plots: Vec<Vec<Asked<Plotted>>>,
}

/// A table with the rows, the window and the tasks that it is about.
struct KeptTable {
    about: (TableBy, AskedWindow, PageFilter),
    table: FoundTable,
    trust: WindowTrust,
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
        let paths = traces.iter().map(|_| Paths::default()).collect();
        let tables = traces.iter().map(|_| Mutex::default()).collect();
        let names = commands.plots();
        let plots = traces.iter().map(|_| names.iter().map(|_| OnceLock::new()).collect()).collect();
        Site { traces, commands, missed, main, groups, stacks, paths, path_turn: Mutex::new(()), tables, plots }
    }

    /// Reads the traces, and serves the page until the process ends.
    pub fn serve(&self, server: &Server) -> io::Result<()> {
        std::thread::scope(|scope| {
            scope.spawn(|| self.read_all(CHECKPOINTS));
            server.serve(&|path, request| self.answer(path, request))
        })
    }

    fn answer(&self, path: &str, request: &Request) -> Answer {
        let path = if path.is_empty() { "index.html" } else { path };
        if let Some((kind, text)) = page::file(path) {
            return Answer::of(kind, text.as_bytes().to_vec());
        }
        if path == "traces.json" {
            return Answer::of(JSON, self.list(None));
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
            Wanted::Tile(TileAt::Sums(level, group, index)) => {
                content(BINARY, trace.sums(level, group, index, SumBy::Task))?
            }
            Wanted::Tile(TileAt::Commands(level, group, index)) => {
                content(BINARY, trace.sums(level, group, index, SumBy::Command))?
            }
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
            Wanted::Path(of, question) => answered(self.path(number, trace, of, question)),
            Wanted::Wakeups(window) => answered(wakeups::answer(trace, window)),
            Wanted::RunMeasures(window, filter) => answered(self.run_measures(number, trace, window, &filter)),
            Wanted::EventKinds => answered(Ok(event_list::kinds(trace))),
            Wanted::Events(question, filter) => {
                answered(self.of_chosen(number, &filter, |tasks| event_list::answer(trace, &question, tasks)))
            }
            Wanted::Ticks(question, filter) => {
                answered(self.of_chosen(number, &filter, |tasks| event_list::ticks(trace, &question, tasks)))
            }
            Wanted::Table(question) => answered(self.table(number, trace, &question)),
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
        let made = || self.commands.missed_steals(number, &AskedPart::default());
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

    /// Searches a window for a critical path, behind every search before: each can take as much memory as `path`.
    fn search_path(&self, number: usize, of: PathOf, window: Window) -> Result<PathFinding, String> {
        let _turn = self.path_turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.commands.critical_path(number, of, window)
    }

    /// Looks at the critical path of a whole trace; the first request for one reads the trace for it, and others wait for it.
    fn on_path(
        &self,
        number: usize,
        trace: &Viewed<'_>,
        of: PathOf,
        look: impl FnOnce(&PathRow) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        of.check(trace)?;
        let paths = self.paths.get(number).ok_or_else(|| NotReady("there is no such trace".to_owned()))?;
        let window = Window { from: None, to: of.until(trace) };
        trace.store()?;
        match paths.get(of, || self.search_path(number, of, window)).get() {
            Some(Ok(KeptPath::Row(row))) => look(row),
            Some(Ok(KeptPath::NoApplication(why))) => Ok(critical_path::none(why)),
            Some(Err(why)) => Err(NotReady(why.clone()).into()),
            None => Err(NotReady("the path is being searched for".to_owned()).into()),
        }
    }

    /// The answer to a question about a critical path.
    fn path(&self, number: usize, trace: &Viewed<'_>, of: PathOf, question: PathQuestion) -> Result<Value, Fault> {
        match question {
            PathQuestion::Row(window, columns) => {
                let window = window.within(trace)?;
                self.on_path(number, trace, of, |row| Ok(row.answer(trace.extent().0, window, columns)))
            }
            PathQuestion::Share(pid, window) => {
                let window = window.within(trace)?;
                self.on_path(number, trace, of, |row| Ok(row.share(pid, window)))
            }
            PathQuestion::Tasks => self.on_path(number, trace, of, |row| Ok(row.tasks())),
            PathQuestion::Numbers(window) => {
                let (from, to) = window.within(trace)?;
                let (start, end) = trace.extent();
                let end = of.until(trace).unwrap_or(end);
                let (from, to) = (from.min(end), to.min(end));
                self.on_path(number, trace, of, |row| {
                    if (from, to) == (start, end) {
                        return Ok(row.numbers().clone());
                    }
                    let window = Window { from: Some(from), to: Some(to) };
                    Ok(critical_path::numbers(self.search_path(number, of, window))?)
                })
            }
        }
    }

    /// The numbers of a part of a run that `compare` compares.
    fn run_measures(
        &self,
        number: usize,
        trace: &Viewed<'_>,
        window: AskedWindow,
        filter: &PageFilter,
    ) -> Result<Value, Fault> {
        let window = window.within(trace)?;
        let made = |part: &AskedPart, _| Ok(self.commands.run_measures(number, part)?.answer());
        Ok(OfTrace { site: self, number }.of_part(Some(window), filter, made)?)
    }

    /// An answer about the tasks of a trace that pass a filter.
    fn of_chosen(
        &self,
        number: usize,
        filter: &PageFilter,
        answer: impl FnOnce(Option<&ChosenTasks>) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        answer(OfTrace { site: self, number }.chosen(filter)?.as_ref())
    }

    /// A page of a table of a window. The latest table is kept: another order or page of it takes no pass.
    fn table(&self, number: usize, trace: &Viewed<'_>, question: &TableQuestion) -> Result<Value, Fault> {
        let store = trace.store()?;
        let chosen = OfTrace { site: self, number }.chosen(&question.filter)?;
        let none = || NotReady("there is no such trace".to_owned());
        let kept = self.tables.get(number).ok_or_else(none)?;
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let about = (question.by, question.window, question.filter.clone());
        let known = match kept.take().filter(|kept| kept.about == about) {
            Some(known) => known,
            None => {
                let (from, to) = question.window.within(trace)?;
                let is_whole = (from, to) == trace.extent();
                let window = if is_whole { Window::default() } else { Window { from: Some(from), to: Some(to) } };
                let pids = chosen.as_ref().map(|chosen| chosen.pids(store.index().tasks()));
                let ask = AskedPart { window, pids };
                let table = self.commands.table(number, question.by, &ask).map_err(NotReady)?;
                let trust = judged(trace, (from, to), chosen.as_ref())?;
                KeptTable { about, table, trust }
            }
        };
        let mut answer = known.table.answer(question, chosen.map(|chosen| chosen.number));
        answer["trust"] = serde_json::to_value(&known.trust).unwrap_or_default();
        *kept = Some(known);
        Ok(answer)
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

    /// The names of the traces as JSON. `exported`: questions are not answered, and this view is shown to a visitor whose address has none.
    pub(crate) fn list(&self, exported: Option<&str>) -> Vec<u8> {
        let names: Vec<&str> = self.traces.iter().map(Viewed::name).collect();
        let plots = self.commands.plots();
        let mut list =
            json!({ "schema": "schedviz/view/1", "traces": names, "static": exported.is_some(), "plots": plots });
        if let Some(view) = exported.filter(|view| !view.is_empty()) {
            list["view"] = json!(view);
        }
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
    pub(crate) fn read_all(&self, checkpoints: (usize, usize)) {
        self.traces.iter().for_each(|trace| trace.read(checkpoints));
    }
}

/// The answers about one trace that other commands give.
struct OfTrace<'s, 't> {
    site: &'s Site<'t>,
    number: usize,
}

impl OfTrace<'_, '_> {
    /// An answer about a window, and the tasks that pass a filter; it gets the start of the trace as well.
    fn of_part(
        &self,
        window: Option<(Ts, Ts)>,
        filter: &PageFilter,
        answer: impl FnOnce(&AskedPart, Ts) -> Result<Value, String>,
    ) -> Result<Value, NotReady> {
        let trace = self.site.traces.get(self.number).ok_or_else(|| NotReady("there is no such trace".to_owned()))?;
        let store = trace.store()?;
        let pids = self.chosen(filter)?.map(|chosen| chosen.pids(store.index().tasks()));
        let is_part = |window: &(Ts, Ts)| *window != trace.extent();
        let window =
            window.filter(is_part).map_or_else(Window::default, |(from, to)| Window { from: Some(from), to: Some(to) });
        answer(&AskedPart { window, pids }, trace.extent().0).map_err(NotReady)
    }
}

impl Asks for OfTrace<'_, '_> {
    fn missed(&self, window: Option<(Ts, Ts)>, filter: &PageFilter) -> Result<Value, NotReady> {
        let OfTrace { site, number } = *self;
        if window.is_none() && filter.is_empty() {
            return site.missed(number);
        }
        self.of_part(window, filter, |part, zero| {
            let mut answer = site.commands.missed_steals(number, part)?.answer(zero);
            answer["chosen"] = json!(part.pids.as_ref().map(Vec::len));
            Ok(answer)
        })
    }

    fn violations(&self, window: (Ts, Ts), filter: &PageFilter) -> Result<Value, NotReady> {
        let OfTrace { site, number } = *self;
        self.of_part(Some(window), filter, |part, zero| {
            let mut answer = site.commands.violations(number, part)?.answer(zero);
            answer["chosen"] = json!(part.pids.as_ref().map(Vec::len));
            Ok(answer)
        })
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
