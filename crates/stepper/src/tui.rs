//! The stepper for a terminal: the same picture, moved through with keys.
//!
//! [`App`] holds what is shown and what keys do; it knows no terminal, so that a test drives it with
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
use sched::{EventSource, Load, Replay, Ts};

const HELP: &str =
    "q quit  \u{2190} \u{2192} step  PgUp PgDn 100  / ? find  g time  n p violation  \u{2191} \u{2193} scroll";

/// What is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    Find { back: bool },
    Time,
}

/// Makes an instant of what was typed.
pub type ParseTime = Box<dyn Fn(&str) -> Result<Ts, String>>;

/// The stepper's state.
pub struct App<S> {
    replay: Replay<S>,
    options: Options,
    names: Box<dyn Names>,
    parse_time: ParseTime,
    title: String,
    prompt: Option<(Prompt, String)>,
    /// What was looked for last.
    sought: String,
    message: String,
    scroll: usize,
    done: bool,
}

impl<S: EventSource> App<S> {
    /// Begins where the replay is.
    pub fn new(
        title: String,
        replay: Replay<S>,
        options: Options,
        names: Box<dyn Names>,
        parse_time: ParseTime,
    ) -> App<S> {
        App {
            replay,
            options,
            names,
            parse_time,
            title,
            prompt: None,
            sought: String::new(),
            message: String::new(),
            scroll: 0,
            done: false,
        }
    }

    /// Whether the user has seen enough.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// What is shown now.
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
            return self.type_on(prompt, typed, key.code);
        }
        let at = self.replay.at();
        match key.code {
            KeyCode::Right | KeyCode::Char('l' | ' ') => self.replay.go(at + 1),
            KeyCode::Left | KeyCode::Char('h') => self.replay.go(at.saturating_sub(1)),
            KeyCode::PageDown => self.replay.go(at + 100),
            KeyCode::PageUp => self.replay.go(at.saturating_sub(100)),
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
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let step = self.step();
        let [head, cores, next, help] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(1), Constraint::Length(2), Constraint::Length(1)])
                .areas(frame.area());
        let width = usize::from(frame.area().width);
        let title = format!("{}  {}", self.title, step.when(&self.options));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let alarm = if step.violated { Style::new().fg(Color::Red) } else { Style::new() };
        let head_lines = vec![Line::styled(cut(&title, width), bold), Line::styled(cut(&step.summary(), width), alarm)];
        frame.render_widget(Paragraph::new(head_lines), head);
        frame.render_widget(Paragraph::new(self.rows(&step, cores)), cores);
        let text =
            step.event.as_ref().map_or("the trace ends here".into(), |e| format!("next, {}: {}", e.name, e.text));
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

    /// The cores that fit, from the one scrolled to; those that the event concerns are always among
    /// them if there is room.
    fn rows<'l>(&self, step: &Step, area: Rect) -> Vec<Line<'l>> {
        let (height, width) = (usize::from(area.height), usize::from(area.width));
        let who = (width / 4).clamp(12, 24);
        let mut lines = Vec::new();
        let mut group = None;
        for (core, (_, this)) in step.cores.iter().zip(&self.options.cpus).skip(self.scroll) {
            if let Some(this) = this.filter(|this| group != Some(*this)) {
                let name = format!("{} {this}", self.options.group_name);
                lines.push(Line::styled(name, Style::new().fg(Color::DarkGray)));
                group = Some(this);
            }
            let marked = step.event.as_ref().is_some_and(|e| e.concerns(core.cpu));
            let style = match core.load {
                _ if marked => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
                Load::Overloaded => Style::new().fg(Color::Red),
                Load::Idle | Load::Reacting => Style::new().fg(Color::Green),
                Load::Unknown | Load::Offline | Load::Unobserved => Style::new().fg(Color::DarkGray),
                Load::Busy => Style::new(),
            };
            lines.push(Line::styled(row(core, step, who, width), style));
            if lines.len() >= height {
                break;
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests;
