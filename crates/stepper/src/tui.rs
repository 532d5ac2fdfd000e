//! The stepper for a terminal: the same picture, moved through with keys.
//!
//! [`App`] holds the screen and the meaning of keys; it has no terminal, so that a test drives it with
//! ratatui's own backend.

use crate::text::{cut, row};
use crate::words::{Names, matches};
use crate::{Options, Step};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use sched::{EventSource, Load, Replay, SchedEvent, SchedState, Ts};

const HELP: &str =
    "q quit  \u{2190} \u{2192} step  PgUp PgDn 100  / ? find  g time  n p violation  \u{2191} \u{2193} scroll";

/// The purpose of the text that is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    Find { back: bool },
    Time,
}

/// A function that makes an instant of the text that was typed, or gives the reason for which the text is none.
pub type ParseTime<'f> = Box<dyn Fn(&str) -> Result<Ts, String> + 'f>;

/// A function that decides whether an event is one to step at, given the state before it, which has the names of its
/// tasks. It may be called for every event of the trace, and must give the same answer each time.
pub type Wants<'f> = Box<dyn Fn(&SchedEvent, &SchedState) -> bool + 'f>;

/// The stepper's state.
pub struct App<'f, S> {
    replay: Replay<S>,
    options: Options,
    names: Box<dyn Names>,
    parse_time: ParseTime<'f>,
    /// The events at which the stepper stops; at all without it.
    wants: Option<Wants<'f>>,
    title: String,
    prompt: Option<(Prompt, String)>,
    /// The last search.
    sought: String,
    message: String,
    /// The first CPU shown.
    scroll: usize,
    /// Whether the view scrolls to the CPUs that the event concerns; not where the user has scrolled at this event.
    follows: bool,
    done: bool,
}

impl<'f, S: EventSource> App<'f, S> {
    /// Shows the step at which the replay is. `parse_time`: the instants that the user may type; `names`: those of
    /// events without an effect on the state.
    pub fn new(
        title: String,
        replay: Replay<S>,
        options: Options,
        names: Box<dyn Names>,
        parse_time: ParseTime<'f>,
    ) -> App<'f, S> {
        App {
            replay,
            options,
            names,
            parse_time,
            wants: None,
            title,
            prompt: None,
            sought: String::new(),
            message: String::new(),
            scroll: 0,
            follows: true,
            done: false,
        }
    }

    /// Steps only at the events that `wants` holds for, from the next of them on.
    pub fn step_at(&mut self, wants: Wants<'f>) -> Result<(), S::Error> {
        self.wants = Some(wants);
        let at = self.replay.at();
        let found = self.wanted(at, false)?;
        self.jump(found, "no chosen event from here on")
    }

    /// The first wanted event from `from` on, or the last before it.
    fn wanted(&mut self, from: u64, back: bool) -> Result<Option<u64>, S::Error> {
        let Some(wants) = &self.wants else { return Ok(None) };
        // A name that is not in the event is looked up where the state has it.
        let state = self.replay.state().clone();
        let wants = |event: &SchedEvent| wants(event, &state);
        if back { self.replay.find_back(from, wants) } else { self.replay.find(from, wants) }
    }

    /// Goes a number of steps on, or back.
    fn steps(&mut self, count: u64, back: bool) -> Result<(), S::Error> {
        let at = self.replay.at();
        if self.wants.is_none() {
            return self.replay.go(if back { at.saturating_sub(count) } else { at.saturating_add(count) });
        }
        let (mut latest, mut last) = (at, None);
        for _ in 0..count {
            let Some(found) = self.wanted(if back { latest } else { latest + 1 }, back)? else { break };
            (latest, last) = (found, Some(found));
        }
        self.jump(last, if back { "no chosen event before this" } else { "no chosen event after this" })
    }

    /// Whether the user has seen enough.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The step that is shown.
    pub fn step(&self) -> Step {
        let (replay, options) = (&self.replay, &self.options);
        Step::of(replay.at(), replay.state(), replay.event(), options, self.names.as_ref())
    }

    /// Does what a key asks for.
    pub fn key(&mut self, key: KeyEvent) -> Result<(), S::Error> {
        self.message.clear();
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            self.done = true;
            return Ok(());
        }
        if let Some((prompt, typed)) = self.prompt.take() {
            let before = self.replay.at();
            self.type_on(prompt, typed, key.code)?;
            self.follows |= self.replay.at() != before;
            return Ok(());
        }
        let before = self.replay.at();
        self.do_key(key.code)?;
        self.follows |= self.replay.at() != before;
        Ok(())
    }

    fn do_key(&mut self, code: KeyCode) -> Result<(), S::Error> {
        match code {
            KeyCode::Right | KeyCode::Char('l' | ' ') => self.steps(1, false),
            KeyCode::Left | KeyCode::Char('h') => self.steps(1, true),
            KeyCode::PageDown => self.steps(100, false),
            KeyCode::PageUp => self.steps(100, true),
            KeyCode::Home => self.replay.go(0),
            KeyCode::End => self.replay.go(u64::MAX),
            KeyCode::Char('n') => self.jump(self.replay.next_violation(), "no violation begins after this"),
            KeyCode::Char('p') => self.jump(self.replay.previous_violation(), "no violation begins before this"),
            code => {
                self.other_key(code);
                Ok(())
            }
        }
    }

    fn other_key(&mut self, code: KeyCode) {
        self.follows &= !matches!(code, KeyCode::Down | KeyCode::Up);
        match code {
            KeyCode::Down => self.scroll = (self.scroll + 1).min(self.options.cpus.len().saturating_sub(1)),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Char('/') => self.prompt = Some((Prompt::Find { back: false }, String::new())),
            KeyCode::Char('?') => self.prompt = Some((Prompt::Find { back: true }, String::new())),
            KeyCode::Char('g') => self.prompt = Some((Prompt::Time, String::new())),
            KeyCode::Char('q') | KeyCode::Esc => self.done = true,
            _ => {}
        }
    }

    fn type_on(&mut self, prompt: Prompt, mut typed: String, code: KeyCode) -> Result<(), S::Error> {
        match code {
            KeyCode::Enter => return self.entered(prompt, &typed),
            KeyCode::Esc => return Ok(()),
            KeyCode::Char(c) => typed.push(c),
            KeyCode::Backspace if typed.pop().is_none() => return Ok(()),
            _ => {}
        }
        self.prompt = Some((prompt, typed));
        Ok(())
    }

    fn entered(&mut self, prompt: Prompt, typed: &str) -> Result<(), S::Error> {
        match prompt {
            Prompt::Time => match (self.parse_time)(typed) {
                Ok(ts) => {
                    let step = self.replay.step_at(ts)?;
                    self.replay.go(step)
                }
                Err(why) => {
                    self.message = why;
                    Ok(())
                }
            },
            Prompt::Find { back } => {
                // Nothing typed: the same again.
                if !typed.is_empty() {
                    typed.clone_into(&mut self.sought);
                }
                let (at, names, sought) = (self.replay.at(), self.names.as_ref(), self.sought.as_str());
                let found = if back {
                    self.replay.find_back(at, |event| matches(event, names, sought))?
                } else {
                    self.replay.find(at + 1, |event| matches(event, names, sought))?
                };
                let none = format!("nothing that matches {sought:?}");
                self.jump(found, &none)
            }
        }
    }

    fn jump(&mut self, to: Option<u64>, otherwise: &str) -> Result<(), S::Error> {
        match to {
            Some(step) => self.replay.go(step),
            None => {
                otherwise.clone_into(&mut self.message);
                Ok(())
            }
        }
    }

    /// Draws the present step.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let step = self.step();
        let [head, cpus, next, help] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(1), Constraint::Length(2), Constraint::Length(1)])
                .areas(frame.area());
        let width = usize::from(frame.area().width);
        let chosen = if self.wants.is_some() { "  (chosen events)" } else { "" };
        let title = format!("{}  {}{chosen}", self.title, step.when(&self.options));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let alarm = if step.violated { Style::new().fg(Color::Red) } else { Style::new() };
        let head_lines = vec![Line::styled(cut(&title, width), bold), Line::styled(cut(&step.summary(), width), alarm)];
        frame.render_widget(Paragraph::new(head_lines), head);
        let rows = self.rows(&step, cpus);
        frame.render_widget(Paragraph::new(rows), cpus);
        let text = step.coming().map_or("the trace ends here".into(), |coming| format!("next, {coming}"));
        let (first, rest) = text.split_at(text.char_indices().nth(width).map_or(text.len(), |(at, _)| at));
        let lines = [first.to_owned(), cut(rest, width)].map(|line| Line::styled(line, bold));
        frame.render_widget(Paragraph::new(Vec::from(lines)), next);
        let bottom = match &self.prompt {
            Some((Prompt::Find { back: false }, typed)) => format!("find an event, pid or command: {typed}\u{2588}"),
            Some((Prompt::Find { back: true }, typed)) => {
                format!("find back an event, pid or command: {typed}\u{2588}")
            }
            Some((Prompt::Time, typed)) => format!("go to (1.25, 150ms, @123.4): {typed}\u{2588}"),
            None if !self.message.is_empty() => self.message.clone(),
            None => HELP.to_owned(),
        };
        frame.render_widget(Paragraph::new(cut(&bottom, width)).style(Style::new().fg(Color::DarkGray)), help);
    }

    /// The CPUs that fit, from the one scrolled to. Those that the event concerns are always among them: where they
    /// are too far apart, the others stand on top.
    fn rows<'l>(&mut self, step: &Step, area: Rect) -> Vec<Line<'l>> {
        let (height, width) = (usize::from(area.height), usize::from(area.width));
        let concerned: Vec<usize> = match step.event.as_ref().filter(|_| self.follows) {
            Some(event) => (0..step.cpus.len()).filter(|lane| event.concerns(step.cpus[*lane].cpu)).collect(),
            None => Vec::new(),
        };
        if let (Some(first), Some(last)) = (concerned.first(), concerned.last()) {
            // Some lines above the first one, if both fit.
            let in_sight = self.in_sight(step, self.scroll, height);
            if !concerned.iter().all(|lane| in_sight.contains(lane)) {
                self.scroll = first.saturating_sub(height / 4);
                if !self.in_sight(step, self.scroll, height).contains(last) {
                    self.scroll = *first;
                }
            }
        }
        let mut pinned = Vec::new();
        // Each one on top takes a line from the others.
        while let Some(lane) = (concerned.iter().rev())
            .find(|lane| {
                let in_sight = self.in_sight(step, self.scroll, height.saturating_sub(pinned.len()));
                !pinned.contains(*lane) && !in_sight.contains(*lane)
            })
            .filter(|_| pinned.len() < height / 2)
        {
            pinned.push(*lane);
        }
        pinned.sort_unstable();
        let mut lines: Vec<Line<'l>> = pinned.iter().map(|lane| line(step, *lane, width)).collect();
        for (lane, group) in self.from(step, self.scroll) {
            if let Some(group) = group {
                lines.push(Line::styled(group, Style::new().fg(Color::DarkGray)));
            }
            lines.push(line(step, lane, width));
            if lines.len() >= height {
                break;
            }
        }
        lines.truncate(height);
        lines
    }

    /// The CPUs from one on, each with the name of its group where that begins.
    fn from<'a>(&'a self, step: &'a Step, scroll: usize) -> impl Iterator<Item = (usize, Option<String>)> + 'a {
        let mut group = None;
        (0..step.cpus.len()).zip(&self.options.cpus).skip(scroll).map(move |(lane, (_, this))| {
            let begins = this.filter(|this| group != Some(*this));
            group = begins.or(group);
            (lane, begins.map(|this| format!("{} {this}", self.options.group_name)))
        })
    }

    /// The CPUs that fit in this number of lines.
    fn in_sight(&self, step: &Step, scroll: usize, height: usize) -> Vec<usize> {
        let mut used = 0;
        let fits = |(_, group): &(usize, Option<String>)| {
            used += 1 + usize::from(group.is_some());
            used <= height
        };
        self.from(step, scroll).take_while(fits).map(|(lane, _)| lane).collect()
    }
}

/// The line of a CPU.
fn line<'l>(step: &Step, lane: usize, width: usize) -> Line<'l> {
    let lane = &step.cpus[lane];
    let who = (width / 4).clamp(12, 24);
    let marked = step.event.as_ref().is_some_and(|e| e.concerns(lane.cpu));
    let style = match lane.load {
        _ if marked => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
        Load::Overloaded => Style::new().fg(Color::Red),
        Load::Idle | Load::SwitchPending | Load::Unserved => Style::new().fg(Color::Green),
        Load::Unknown | Load::Offline | Load::Unobserved => Style::new().fg(Color::DarkGray),
        Load::Busy => Style::new(),
    };
    Line::styled(row(lane, step, who, width), style)
}

#[cfg(test)]
mod tests;
