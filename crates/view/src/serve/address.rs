//! The addresses of a trace, and what each asks for.
//!
//! Only the form of an address is checked here: numbers are numbers, and names are known. Whether the trace has an answer
//! is for the answers to find.

use super::http::Request;
use crate::ask::critical_path::{self, PathOf, PathQuestion};
use crate::ask::event_choice::EventChoice;
use crate::ask::event_list::{EventPlace, EventQuestion, MOST_COLUMNS, MOST_EVENTS, TickQuestion};
use crate::ask::filter::PageFilter;
use crate::ask::plots::{PlotQuestion, RowAt};
use crate::ask::questions::{AskedWindow, ListKind, Question};
use crate::ask::selection_table::{MOST_ROWS, TableBy, TableColumn, TableQuestion};
use crate::ask::{Drawing, Format};
use sched::topology::parse_cpu_list;
use sched::{Cpu, Pid};

/// The content that an address of a trace asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The facts about the trace.
    Head,
    /// The columns of some lanes.
    Tile(TileAt),
    /// The command line that draws a window.
    Command(Drawing),
    /// A figure of a window, as a file.
    Figure(Drawing, Format),
    /// The findings about the trace.
    Findings,
    /// The main findings about the scheduler, ranked by their cost.
    MainFindings,
    /// The groups of the tasks.
    TaskGroups,
    /// The facts about the rows of the tasks.
    RowFacts,
    /// A tile of the rows of the tasks with these places: level, number and places.
    Rows(u32, u64, Vec<usize>),
    /// The longest wait of a task in a window, and all that bears on it.
    Wait(Pid, AskedWindow),
    /// The answer to a question about the critical path of a task.
    Path(PathOf, PathQuestion),
    /// The wakeups of a window.
    Wakeups(AskedWindow),
    /// The numbers of a part of a run that `compare` compares.
    RunMeasures(AskedWindow, PageFilter),
    /// The kinds of events with their numbers.
    EventKinds,
    /// The events around a place, of the tasks that pass a filter.
    Events(EventQuestion, PageFilter),
    /// The columns of a window that have events, of the tasks that pass a filter.
    Ticks(TickQuestion, PageFilter),
    /// A table of a window.
    Table(TableQuestion),
    /// The stacks of a task in a window.
    TaskStacks(Pid, AskedWindow),
    /// The episode of violation in a window, step by step.
    Story(AskedWindow),
    /// The answer to a question about the trace.
    Answer(Question),
    /// The answer to a question about the figure of the specification with this place.
    Plot(usize, PlotQuestion),
}

/// The place of a tile: its level, and its number on that level from the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileAt {
    /// A tile of the lanes of a group: level, group and number.
    Lanes(u32, usize, u64),
    /// A tile of groups that are one lane each: level, tile of groups and number.
    Sums(u32, usize, u64),
    /// The same, of commands in place of tasks.
    Commands(u32, usize, u64),
    /// A tile of the machine: level and number.
    Machine(u32, u64),
}

/// The rule that the parameters of an address break.
type Rule = &'static str;

impl Wanted {
    /// The content behind a path below a trace's own; nothing if there is no such path.
    pub(crate) fn of(path: &str, request: &Request) -> Option<Result<Wanted, Rule>> {
        let parts: Vec<&str> = path.split('/').collect();
        Some(match *parts.as_slice() {
            ["head.json"] => Ok(Wanted::Head),
            ["lanes", level, group, index] => {
                Ok(Wanted::Tile(TileAt::Lanes(number(level)?, number(group)?, bin(index)?)))
            }
            ["sums", level, group, index] => {
                Ok(Wanted::Tile(TileAt::Sums(number(level)?, number(group)?, bin(index)?)))
            }
            ["commands", level, group, index] => {
                Ok(Wanted::Tile(TileAt::Commands(number(level)?, number(group)?, bin(index)?)))
            }
            ["machine", level, index] => Ok(Wanted::Tile(TileAt::Machine(number(level)?, bin(index)?))),
            ["rows.json"] => Ok(Wanted::RowFacts),
            ["rows", level, index] => {
                let (level, index) = (number(level)?, bin(index)?);
                places(request).map(|places| Wanted::Rows(level, index, places))
            }
            ["command.json"] => drawing(request).map(Wanted::Command),
            ["figure.pdf"] => drawing(request).map(|drawing| Wanted::Figure(drawing, Format::Pdf)),
            ["figure.svg"] => drawing(request).map(|drawing| Wanted::Figure(drawing, Format::Svg)),
            ["figure.png"] => drawing(request).map(|drawing| Wanted::Figure(drawing, Format::Png)),
            ["findings.json"] => Ok(Wanted::Findings),
            ["main.json"] => Ok(Wanted::MainFindings),
            ["groups.json"] => Ok(Wanted::TaskGroups),
            ["wait.json"] => task(request).map(|(pid, window)| Wanted::Wait(pid, window)),
            ["path.json"] => columns(request)
                .and_then(|columns| Ok(Wanted::Path(path_of(request)?, PathQuestion::Row(window(request)?, columns)))),
            ["path-numbers.json"] => {
                path_of(request).and_then(|of| Ok(Wanted::Path(of, PathQuestion::Numbers(window(request)?))))
            }
            ["path-tasks.json"] => path_of(request).map(|of| Wanted::Path(of, PathQuestion::Tasks)),
            ["path-share.json"] => path_of(request).and_then(|of| {
                let (pid, window) = task(request)?;
                Ok(Wanted::Path(of, PathQuestion::Share(pid, window)))
            }),
            ["wakeups.json"] => window(request).map(Wanted::Wakeups),
            ["measures.json"] => filtered(request).map(|(window, filter)| Wanted::RunMeasures(window, filter)),
            ["kinds.json"] => Ok(Wanted::EventKinds),
            ["events.json"] => events(request),
            ["ticks.json"] => ticks(request),
            ["table.json"] => table(request).map(Wanted::Table),
            ["stacks.json"] => task(request).map(|(pid, window)| Wanted::TaskStacks(pid, window)),
            ["story.json"] => window(request).map(Wanted::Story),
            ["plot", file] => Ok(Wanted::Plot(json(file)?, PlotQuestion::Head)),
            ["plot", place, "bar.json"] => plotted(place, point(request).map(PlotQuestion::Bar))?,
            ["plot", place, "numbers.json"] => plotted(place, window(request).map(PlotQuestion::Numbers))?,
            ["plot", place, level, index] => {
                let level = number(level).filter(|level| *level < 63)?;
                plotted(place, Ok(PlotQuestion::Block(level, json(index)?)))?
            }
            [file] => question(file, request)?.map(Wanted::Answer),
            _ => return None,
        })
    }
}

/// The maximum number of rows of a tile.
const ROWS: usize = 64;

/// The places of the tasks whose rows are asked for.
fn places(request: &Request) -> Result<Vec<usize>, Rule> {
    let places: Option<Vec<usize>> = request.get("of").and_then(|list| list.split(',').map(number).collect());
    places.filter(|places| (1..=ROWS).contains(&places.len())).ok_or("of is a list of 1 to 64 places of tasks")
}

/// The number of columns of a query.
fn columns(request: &Request) -> Result<u64, Rule> {
    let columns = parameter(request, "columns").filter(|columns| (1..=critical_path::COLUMNS).contains(columns));
    columns.ok_or("columns is a number from 1 to 8192")
}

/// The choice of events of a query.
fn choice(request: &Request) -> Result<EventChoice, Rule> {
    let cpus = request.get("cpus").unwrap_or_default();
    let cpus = if cpus.is_empty() { Some(Vec::new()) } else { parse_cpu_list(cpus) };
    let cpus = cpus.ok_or("cpus is a list such as 0-15,32")?;
    EventChoice::of(request.get("q").unwrap_or_default(), cpus).ok_or(EventChoice::RULE)
}

/// The events of a query.
fn events(request: &Request) -> Result<Wanted, Rule> {
    let number_of = |key: &str| request.get(key).map_or(Some(0), number);
    let most = |key: &str| request.get(key).map_or(Some(0), number).filter(|most| *most <= MOST_EVENTS);
    let (window, filter) = filtered(request)?;
    match (number_of("at"), number_of("nth"), most("before"), most("behind")) {
        (Some(ns), Some(nth), Some(before), Some(behind)) => {
            let (place, numbers) = (EventPlace { ns, nth }, (before, behind));
            Ok(Wanted::Events(EventQuestion { choice: choice(request)?, window, place, numbers }, filter))
        }
        _ => Err("at and nth are whole numbers, before and behind numbers of events up to 500"),
    }
}

/// The ticks of a query.
fn ticks(request: &Request) -> Result<Wanted, Rule> {
    let columns = parameter(request, "columns").filter(|columns| (1..=MOST_COLUMNS).contains(columns));
    let columns = columns.ok_or("columns is a number from 1 to 8192")?;
    let (window, filter) = filtered(request)?;
    Ok(Wanted::Ticks(TickQuestion { choice: choice(request)?, window, columns }, filter))
}

/// The table of a query.
fn table(request: &Request) -> Result<TableQuestion, Rule> {
    let by = request.get("by").and_then(TableBy::of).ok_or("by is task, command, process, cgroup, cpu or cache")?;
    let column = request.get("sort").map_or(Some(TableColumn::Run), TableColumn::of);
    let column = column.ok_or("sort is the name of a column")?;
    let down = match request.get("down") {
        None | Some("1") => true,
        Some("0") => false,
        Some(_) => return Err("down is 0 or 1"),
    };
    let number_of = |key: &str, default| request.get(key).map_or(Some(default), number);
    let (window, filter) = filtered(request)?;
    match (number_of("skip", 0), number_of("take", 100).filter(|take| (1..=MOST_ROWS).contains(take))) {
        (Some(skip), Some(take)) => Ok(TableQuestion { by, window, filter, order: (column, down), page: (skip, take) }),
        _ => Err("skip is a number of rows, take one from 1 to 32769"),
    }
}

/// The question of a file's name; nothing if no question has it.
fn question(file: &str, request: &Request) -> Option<Result<Question, Rule>> {
    Some(match file {
        "at.json" => match (parameter(request, "at"), parameter(request, "cpu")) {
            (Some(ns), Some(cpu)) => Ok(Question::At { ns, cpu: Cpu(cpu) }),
            _ => Err("at is a whole number of nanoseconds, cpu that of a CPU"),
        },
        "task.json" => task(request).map(|(pid, window)| Question::Task(pid, window)),
        "window.json" => filtered(request).map(|(window, filter)| Question::Sums(window, filter)),
        "list.json" => {
            let kind = request.get("kind").and_then(|name| ListKind::ALL.into_iter().find(|kind| kind.name() == name));
            let kind = kind.ok_or("kind is episodes, waits, missed or herds");
            kind.and_then(|kind| filtered(request).map(|(window, filter)| Question::List(kind, window, filter)))
        }
        "search.json" => {
            let number = |key: &str| request.get(key).map_or(Some(0), |number| number.parse().ok());
            match (number("from"), number("skip")) {
                (Some(from_ns), Some(skip)) => {
                    Ok(Question::Search { text: request.get("q").unwrap_or_default().to_owned(), from_ns, skip })
                }
                _ => Err("from is a whole number of nanoseconds, skip a number of events"),
            }
        }
        _ => return None,
    })
}

/// A number of a path.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// The number of a tile, from the name of its file.
fn bin(name: &str) -> Option<u64> {
    number(name.strip_suffix(".bin")?)
}

/// The number of a file of JSON, from its name.
fn json<T: std::str::FromStr>(name: &str) -> Option<T> {
    number(name.strip_suffix(".json")?)
}

/// The number of a query; nothing if it is missing or no such number.
fn parameter<T: std::str::FromStr>(request: &Request, key: &str) -> Option<T> {
    number(request.get(key)?)
}

/// The question about a specification; nothing if its place is no number.
fn plotted(place: &str, question: Result<PlotQuestion, Rule>) -> Option<Result<Wanted, Rule>> {
    let place = number(place)?;
    Some(question.map(|question| Wanted::Plot(place, question)))
}

/// The task and the window of a query.
fn task(request: &Request) -> Result<(Pid, AskedWindow), Rule> {
    let pid = parameter(request, "pid").ok_or("pid is that of a task")?;
    Ok((Pid(pid), window(request)?))
}

/// The task of a query whose critical path is asked for.
fn path_of(request: &Request) -> Result<PathOf, Rule> {
    let parameter = |key: &str| request.get(key).map(|text| text.parse().map_err(|_| PathOf::RULE)).transpose();
    match (request.get("of"), parameter("at")?) {
        (Some(pid), at) => Ok(PathOf::Task { pid: Pid(number(pid).ok_or(PathOf::RULE)?), at }),
        (None, None) => Ok(PathOf::Application),
        (None, Some(_)) => Err(PathOf::RULE),
    }
}

/// The window of a query.
fn window(request: &Request) -> Result<AskedWindow, Rule> {
    let end = |key: &str| request.get(key).map(|text| text.parse().map_err(|_| AskedWindow::RULE)).transpose();
    Ok(AskedWindow { from: end("from")?, to: end("to")? })
}

/// The window and the filter of a query.
fn filtered(request: &Request) -> Result<(AskedWindow, PageFilter), Rule> {
    let filter = PageFilter::of(request.get("filter").unwrap_or_default()).ok_or(PageFilter::RULE)?;
    Ok((window(request)?, filter))
}

/// The point of a figure's row in a query.
fn point(request: &Request) -> Result<RowAt, Rule> {
    match (parameter(request, "lane"), parameter(request, "depth"), parameter(request, "at")) {
        (Some(lane), Some(depth), Some(ns)) => Ok(RowAt { lane, depth, ns }),
        _ => Err("lane, depth and at are whole numbers"),
    }
}

/// The window and the look of a figure in a query.
fn drawing(request: &Request) -> Result<Drawing, Rule> {
    let (Some(from), Some(to)) = (parameter(request, "from"), parameter(request, "to")) else {
        return Err("from and to are whole numbers of nanoseconds");
    };
    if from >= to {
        return Err("the window is empty");
    }
    let cpus = match request.get("cpus").filter(|list| !list.is_empty()) {
        None => Vec::new(),
        Some(list) => parse_cpu_list(list).ok_or("cpus is a list such as 0-15,32")?,
    };
    Ok(Drawing { from, to, cpus, color_by: request.get("color-by").map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// The content that an address asks for, or the rule that it breaks.
    fn wanted(address: &str) -> Option<Result<Wanted, Rule>> {
        let bytes = format!("GET /{address} HTTP/1.1\r\n\r\n");
        let request = Request::read(&mut BufReader::new(bytes.as_bytes())).expect("a request");
        Wanted::of(&request.path[1..], &request)
    }

    #[test]
    fn addresses_are_questions_with_values() {
        let window = |from, to| AskedWindow { from, to };
        let filter = |text: &str| PageFilter::of(text).expect("a filter");
        let drawing = Drawing { from: 1, to: 2, cpus: vec![Cpu(0), Cpu(2)], color_by: Some("command".to_owned()) };
        for (address, expected) in [
            ("head.json", Wanted::Head),
            ("groups.json", Wanted::TaskGroups),
            ("lanes/3/1/7.bin", Wanted::Tile(TileAt::Lanes(3, 1, 7))),
            ("sums/3/1/7.bin", Wanted::Tile(TileAt::Sums(3, 1, 7))),
            ("commands/3/1/7.bin", Wanted::Tile(TileAt::Commands(3, 1, 7))),
            ("machine/3/7.bin", Wanted::Tile(TileAt::Machine(3, 7))),
            ("rows.json", Wanted::RowFacts),
            ("rows/3/7.bin?of=5,0", Wanted::Rows(3, 7, vec![5, 0])),
            ("figure.svg?from=1&to=2&cpus=0,2&color-by=command", Wanted::Figure(drawing, Format::Svg)),
            (
                "events.json?q=a+b%3D1&cpus=0,2&at=5&nth=1&before=3&behind=4&to=9",
                Wanted::Events(
                    EventQuestion {
                        choice: EventChoice::of("a b=1", vec![Cpu(0), Cpu(2)]).expect("a choice"),
                        window: window(None, Some(9)),
                        place: EventPlace { ns: 5, nth: 1 },
                        numbers: (3, 4),
                    },
                    PageFilter::default(),
                ),
            ),
            (
                "ticks.json?columns=8&filter=a",
                Wanted::Ticks(
                    TickQuestion { choice: EventChoice::default(), window: window(None, None), columns: 8 },
                    filter("a"),
                ),
            ),
            (
                "table.json?by=cache&from=1&to=9&filter=a&sort=p99&down=0&skip=7&take=3",
                Wanted::Table(TableQuestion {
                    by: TableBy::Cache,
                    window: window(Some(1), Some(9)),
                    filter: filter("a"),
                    order: (TableColumn::P99, false),
                    page: (7, 3),
                }),
            ),
            ("stacks.json?pid=4&to=9", Wanted::TaskStacks(Pid(4), window(None, Some(9)))),
            ("story.json?to=5", Wanted::Story(window(None, Some(5)))),
            ("at.json?at=9&cpu=2", Wanted::Answer(Question::At { ns: 9, cpu: Cpu(2) })),
            ("task.json?pid=4&from=0", Wanted::Answer(Question::Task(Pid(4), window(Some(0), None)))),
            ("wait.json?pid=4&from=1&to=2", Wanted::Wait(Pid(4), window(Some(1), Some(2)))),
            (
                "path.json?from=1&to=9&columns=4",
                Wanted::Path(PathOf::Application, PathQuestion::Row(window(Some(1), Some(9)), 4)),
            ),
            (
                "path-numbers.json?from=1&of=7",
                Wanted::Path(PathOf::Task { pid: Pid(7), at: None }, PathQuestion::Numbers(window(Some(1), None))),
            ),
            ("path-tasks.json?of=7&at=3", Wanted::Path(PathOf::Task { pid: Pid(7), at: Some(3) }, PathQuestion::Tasks)),
            (
                "path-share.json?pid=4&from=1&to=2",
                Wanted::Path(PathOf::Application, PathQuestion::Share(Pid(4), window(Some(1), Some(2)))),
            ),
            ("wakeups.json?to=5", Wanted::Wakeups(window(None, Some(5)))),
            ("window.json", Wanted::Answer(Question::Sums(AskedWindow::default(), PageFilter::default()))),
            (
                "list.json?kind=missed&from=1&filter=a%2C+b",
                Wanted::Answer(Question::List(ListKind::Missed, window(Some(1), None), filter("a,b"))),
            ),
            ("search.json?q=a+b", Wanted::Answer(Question::Search { text: "a b".to_owned(), from_ns: 0, skip: 0 })),
            (
                "search.json?q=a&from=7&skip=2",
                Wanted::Answer(Question::Search { text: "a".to_owned(), from_ns: 7, skip: 2 }),
            ),
            ("plot/2.json", Wanted::Plot(2, PlotQuestion::Head)),
            ("plot/2/62/5.json", Wanted::Plot(2, PlotQuestion::Block(62, 5))),
            ("plot/0/numbers.json?from=1&to=1", Wanted::Plot(0, PlotQuestion::Numbers(window(Some(1), Some(1))))),
            (
                "plot/0/bar.json?lane=1&depth=2&at=3",
                Wanted::Plot(0, PlotQuestion::Bar(RowAt { lane: 1, depth: 2, ns: 3 })),
            ),
        ] {
            assert_eq!(wanted(address), Some(Ok(expected)), "{address}");
        }
    }

    #[test]
    fn addresses_of_no_form_have_nothing_and_parameters_of_no_form_are_refused() {
        for address in ["", "heads.json", "lanes/3/1/7", "lanes/x/1/7.bin", "machine/3/1/7.bin", "plot/0/63/5.json"] {
            assert_eq!(wanted(address), None, "{address}");
        }
        for (address, rule) in [
            ("at.json?at=1", "at is a whole number of nanoseconds, cpu that of a CPU"),
            ("task.json?pid=x", "pid is that of a task"),
            ("stacks.json?from=1", "pid is that of a task"),
            ("rows/3/7.bin", "of is a list of 1 to 64 places of tasks"),
            ("rows/3/7.bin?of=1,,2", "of is a list of 1 to 64 places of tasks"),
            ("path-share.json?from=1", "pid is that of a task"),
            ("path-tasks.json?of=x", PathOf::RULE),
            ("path-tasks.json?at=1", PathOf::RULE),
            ("path-numbers.json?of=1&at=-1", PathOf::RULE),
            ("path.json?columns=8193", "columns is a number from 1 to 8192"),
            ("path.json?columns=8&from=x", AskedWindow::RULE),
            ("window.json?from=-1", AskedWindow::RULE),
            ("list.json?kind=x", "kind is episodes, waits, missed or herds"),
            ("search.json?q=a&from=x", "from is a whole number of nanoseconds, skip a number of events"),
            ("search.json?q=a&skip=-1", "from is a whole number of nanoseconds, skip a number of events"),
            ("list.json?kind=waits&to=x", AskedWindow::RULE),
            ("events.json?q=%3D1", EventChoice::RULE),
            ("events.json?behind=501", "at and nth are whole numbers, before and behind numbers of events up to 500"),
            ("ticks.json?columns=0", "columns is a number from 1 to 8192"),
            ("measures.json?from=x", AskedWindow::RULE),
            ("table.json?from=2", "by is task, command, process, cgroup, cpu or cache"),
            ("table.json?by=cpu&sort=x", "sort is the name of a column"),
            ("table.json?by=cpu&down=2", "down is 0 or 1"),
            ("table.json?by=cpu&take=32770", "skip is a number of rows, take one from 1 to 32769"),
            ("command.json?from=2&to=2", "the window is empty"),
            ("command.json?from=1&to=2&cpus=x", "cpus is a list such as 0-15,32"),
            ("plot/0/bar.json?lane=1", "lane, depth and at are whole numbers"),
        ] {
            assert_eq!(wanted(address), Some(Err(rule)), "{address}");
        }
    }
}
