//! `schedviz top`: the scheduler of this machine, second by second.

use crate::live::moment::{LiveQueue, Moment, Waited};
use crate::live::{BETWEEN, Follower, follow};
use crate::plan::buffers::parse_size;
use crate::signals::Forwarder;
use anyhow::Result;
use question::Subcommand;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline};
use ratatui::{DefaultTerminal, Frame};
use sched::lengths::{Summary, human};
use sched::{Current, Dur};
use session::warnings::grouped;
use session::writer::print;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tracefs::{Need, Tracefs};

/// Show work conservation, run queues and migrations of this machine as they are
///
/// An instance of its own records the scheduler's events; they are read from the kernel's buffers and measured in
/// intervals, with the definitions of the other commands. On a terminal the view is refreshed after each interval:
/// "waiting" is the number of tasks in a runqueue wait, "waking to switch" their wakeup latency.
/// q quits, p pauses, up and down scroll. Elsewhere, and with --text, each interval is printed. The tasks of this program are left
/// out of the figures, and their share is shown. Needs root, or write access to tracefs.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// Length of an interval, such as 1s or 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = session::args::positive_length)]
    interval: Dur,
    /// Number of intervals, after which the view ends [default: until it is quit]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print each interval as text, also on a terminal
    #[arg(long, conflicts_with = "json")]
    text: bool,
    /// Print each interval as a line of JSON
    #[arg(long)]
    json: bool,
    /// Size of each CPU's buffer: a number of KiB, or with K, M or G [default: as record]
    #[arg(short, long, value_name = "SIZE", value_parser = parse_size)]
    buffer: Option<u64>,
    /// Folder where tracefs is mounted [default: /sys/kernel/tracing or /sys/kernel/debug/tracing]
    #[arg(long, value_name = "FOLDER")]
    tracefs: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  sudo schedviz top
  sudo schedviz top --interval 5s --count 12 --text    a minute, as text
  sudo schedviz top --json > violation.jsonl           for another program";

/// The number of intervals in the history.
const HISTORY: usize = 200;

/// The state of this machine at the moment.
#[derive(Debug)]
pub struct TopCommand;

impl Subcommand for TopCommand {
    const NAME: &'static str = "top";
    const IS_PAGED: bool = false;
    const QUESTION: Option<(&'static str, &'static str)> = Some(("How does this machine do at the moment?", ""));
    type Args = TopArgs;

    fn run(args: &TopArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Follows the machine until the count of intervals is reached, the user quits, or a signal arrives.
pub(crate) fn run(args: &TopArgs) -> Result<()> {
    let is_on_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let is_drawn = !args.text && !args.json && is_on_terminal;
    let tracefs = Tracefs::find(args.tracefs.as_deref())?;
    tracefs.check_rights(&[Need::Instance])?;
    let signals = Forwarder::install()?;
    let (instance, mut follower) = follow(&tracefs, args.buffer, None)?;
    instance.start()?;
    let mut view = LiveView { args, signals: &signals, history: VecDeque::new(), scroll: 0, is_paused: false };
    if !is_drawn {
        return view.print(&mut follower);
    }
    let mut terminal = ratatui::try_init()?;
    let shown = view.show(&mut follower, &mut terminal);
    ratatui::try_restore()?;
    shown
}

/// The view and its position.
struct LiveView<'v> {
    args: &'v TopArgs,
    signals: &'v Forwarder,
    /// The violation of the latest intervals, in hundredths of a percent.
    history: VecDeque<u64>,
    scroll: usize,
    is_paused: bool,
}

/// The event that ends a waiting.
enum NextStep {
    /// The interval has ended.
    Interval,
    /// The view changes.
    Redraw,
    Quit,
}

impl LiveView<'_> {
    /// Prints each interval.
    fn print(&mut self, follower: &mut Follower) -> Result<()> {
        let mut left = self.args.count;
        while left != Some(0) {
            let end = Instant::now() + Duration::from_nanos(self.args.interval.0);
            if !follower.collect_until(end, || self.signals.first().is_some())? {
                break;
            }
            let text = match follower.measure()? {
                Some(moment) if self.args.json => serde_json::to_string(&moment)? + "\n",
                Some(moment) => lines(&moment).join("\n") + "\n\n",
                None if self.args.json => String::new(),
                None => "no event\n\n".to_owned(),
            };
            print(text.as_bytes())?;
            left = left.map(|left| left - 1);
        }
        Ok(())
    }

    /// Shows each interval on the terminal.
    fn show(&mut self, follower: &mut Follower, terminal: &mut DefaultTerminal) -> Result<()> {
        let mut moment: Option<Moment> = None;
        let mut left = self.args.count;
        let mut end = Instant::now() + Duration::from_nanos(self.args.interval.0);
        while left != Some(0) {
            terminal.draw(|frame| self.draw(frame, moment.as_ref()))?;
            match self.wait(follower, end)? {
                NextStep::Quit => break,
                NextStep::Redraw => {}
                NextStep::Interval => {
                    end = Instant::now() + Duration::from_nanos(self.args.interval.0);
                    let measured = follower.measure()?;
                    let percent = measured.as_ref().map_or(0.0, |measured| measured.violation_percent);
                    self.history.push_back((100.0 * percent) as u64);
                    self.history.drain(..self.history.len().saturating_sub(HISTORY));
                    if !self.is_paused {
                        moment = measured;
                    }
                    left = left.map(|left| left - 1);
                }
            }
        }
        Ok(())
    }

    fn wait(&mut self, follower: &mut Follower, end: Instant) -> Result<NextStep> {
        while Instant::now() < end {
            if self.signals.first().is_some() {
                return Ok(NextStep::Quit);
            }
            if poll(BETWEEN.min(end.saturating_duration_since(Instant::now())))?
                && let Some(next) = self.key(&read()?)
            {
                return Ok(next);
            }
            follower.collect()?;
        }
        Ok(NextStep::Interval)
    }

    fn key(&mut self, event: &Event) -> Option<NextStep> {
        match event {
            Event::Key(KeyEvent { code, modifiers, kind, .. }) if *kind != KeyEventKind::Release => {
                match code {
                    KeyCode::Char('q') | KeyCode::Esc => return Some(NextStep::Quit),
                    KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return Some(NextStep::Quit),
                    KeyCode::Char('p') => self.is_paused = !self.is_paused,
                    KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
                    KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
                    KeyCode::PageDown => self.scroll = self.scroll.saturating_add(16),
                    KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(16),
                    _ => return None,
                }
                Some(NextStep::Redraw)
            }
            Event::Resize(..) => Some(NextStep::Redraw),
            _ => None,
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, moment: Option<&Moment>) {
        let [head, history, body] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(4), Constraint::Min(0)]).areas(frame.area());
        let bold = Style::default().add_modifier(Modifier::BOLD);
        let state = if self.is_paused { "paused" } else { "" };
        let title = format!("schedviz top   q quit  p pause  \u{2191} \u{2193} scroll   {state}");
        frame.render_widget(Paragraph::new(Line::styled(title, bold)), head);
        let wide = usize::from(history.width);
        let data: Vec<u64> = self.history.iter().skip(self.history.len().saturating_sub(wide)).copied().collect();
        // A full bar is an interval in violation throughout.
        frame.render_widget(
            Sparkline::default().data(&data).max(10_000).style(Style::default().fg(Color::Red)),
            history,
        );
        let lines = moment.map_or_else(|| vec!["the first interval is being measured".to_owned()], lines);
        let last = lines.len().saturating_sub(usize::from(body.height));
        self.scroll = self.scroll.min(last);
        let lines: Vec<Line<'_>> = lines.into_iter().skip(self.scroll).map(Line::from).collect();
        frame.render_widget(Paragraph::new(lines), body);
    }
}

/// An interval in words, in lines of 80 columns.
fn lines(moment: &Moment) -> Vec<String> {
    let seconds = moment.to_ns.since(moment.from_ns).seconds().max(1e-9);
    let rate = |n: u64| (n as f64 / seconds).round() as u64;
    let mut lines = vec![
        format!(
            "violation {:6.2} %  CPU time lost {:6.2} %  running {:6.2} of {}  waiting {:6.2}",
            moment.violation_percent, moment.cpu_time_lost_percent, moment.running, moment.cpus, moment.waiting
        ),
        format!(
            "{} events/s in {seconds:.3} s, schedviz itself {:.2} % of a CPU, {}",
            grouped(rate(moment.events)),
            moment.own_percent,
            match moment.losses {
                0 => "nothing lost".to_owned(),
                places => {
                    let unknown = moment.unknown_percent;
                    format!("events lost in {}, {unknown:.1} % unknown", session::heading::places(places))
                }
            }
        ),
        latency("waking to switch", &moment.wakeup),
        latency("preempted", &moment.preempted),
    ];
    lines.extend(migrations(moment, rate));
    lines.push(String::new());
    if !moment.tasks.is_empty() {
        lines.push(format!("{:<18}  {:>6}  {:>10}  {:>10}", "waited most", "PID", "waited", "ran"));
        let row = |task: &Waited| {
            let (waited, ran) = (human(Some(Dur(task.waiting_ns))), human(Some(Dur(task.running_ns))));
            format!("{:<18}  {:>6}  {waited:>10}  {ran:>10}", task.command.to_string(), task.pid)
        };
        lines.extend(moment.tasks.iter().map(row));
        lines.push(String::new());
    }
    lines.push(format!("{:>5}  {:<16}  {:>5}  waiting tasks", "CPU", "running", "queue"));
    lines.extend(moment.queues.iter().map(queue));
    lines
}

fn latency(name: &str, summary: &Summary) -> String {
    let (p50, p99, max) = (human(summary.p50_ns), human(summary.p99_ns), human(summary.max_ns));
    format!("{name:<16} p50 {p50:>9}   p99 {p99:>9}   max {max:>9}   of {}", grouped(summary.count))
}

fn migrations(moment: &Moment, rate: impl Fn(u64) -> u64) -> Vec<String> {
    let all: u64 = moment.migrations.iter().map(|of| of.count).sum();
    let mut text = format!("migrations/s    {}", grouped(rate(all)));
    for (nth, of) in moment.migrations.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{} {} {}", if nth == 0 { ":" } else { "," }, of.cause, grouped(rate(of.count)));
    }
    let mut out = String::new();
    timeline::text::lines(&mut out, 80, 0, 16, &text);
    out.lines().map(str::to_owned).collect()
}

/// A CPU and its queue in a line.
fn queue(queue: &LiveQueue) -> String {
    let running = match queue.current {
        Current::Task(_) => queue.command.to_string(),
        Current::Idle => "-".to_owned(),
        Current::Offline => "(offline)".to_owned(),
        Current::Unknown => "(unknown)".to_owned(),
    };
    let mut line = format!("{:>5}  {running:<16}  {:>5} ", queue.cpu.0, queue.waiting.len());
    for command in &queue.waiting {
        let name = command.to_string();
        if line.chars().count() + name.chars().count() + 1 > 78 {
            line.push_str(" \u{2026}");
            break;
        }
        let _ = write!(line, " {name}");
    }
    line
}
