//! The names of frames: each address is looked up once, and each name is stored once.

use crate::Options;
use parse::{StackFrame, StackId};
use sched::seeded::SeededMap;
use session::stacks::of_tracing;

/// A frame of a stack by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedFrame {
    /// The number of the name.
    pub(crate) name: u32,
    /// Whether the trace has a function for the address, and the name is not the address itself.
    pub(crate) is_function: bool,
    /// Whether the frame is of a program, whose functions show no kind.
    pub(crate) is_user: bool,
}

/// The names of frames so far.
pub(crate) struct FrameNames<'o> {
    options: &'o Options<'o>,
    names: Vec<String>,
    numbers: SeededMap<String, u32>,
    frames: SeededMap<StackFrame, NamedFrame>,
}

impl<'o> FrameNames<'o> {
    pub(crate) fn new(options: &'o Options<'o>) -> FrameNames<'o> {
        let (numbers, frames) = (SeededMap::default(), SeededMap::default());
        FrameNames { options, names: Vec::new(), numbers, frames }
    }

    /// The name of a number.
    pub(crate) fn name(&self, frame: NamedFrame) -> &str {
        self.names.get(frame.name as usize).map_or("", String::as_str)
    }

    /// The frames of a stack, the innermost first and without those that recorded its event; those of programs only where they are asked for.
    pub(crate) fn stack(&mut self, id: StackId) -> Vec<NamedFrame> {
        let options = self.options;
        let frames = options.stacks.frames(id).iter().filter(|frame| options.has_user || !frame.is_user);
        let mut named: Vec<NamedFrame> = frames.map(|frame| self.frame(*frame)).collect();
        let function = |frame: &NamedFrame| if frame.is_function { Some(self.name(*frame)) } else { None };
        let traced = of_tracing(named.iter().map(function));
        named.drain(..traced);
        named
    }

    /// The number of bytes that the names of a stack take in a row.
    pub(crate) fn size(&mut self, id: StackId) -> usize {
        let stack = self.stack(id);
        stack.iter().map(|frame| self.name(*frame).len() + size_of::<String>()).sum()
    }

    fn frame(&mut self, frame: StackFrame) -> NamedFrame {
        if let Some(known) = self.frames.get(&frame) {
            return *known;
        }
        let function = self.options.names.as_ref().and_then(|names| names(frame));
        let is_function = function.is_some();
        let text = function.unwrap_or_else(|| format!("{:#x}", frame.address));
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(text.clone()).or_insert(next);
        if number == next {
            self.names.push(text);
        }
        let named = NamedFrame { name: number, is_function, is_user: frame.is_user };
        self.frames.insert(frame, named);
        named
    }
}
