//! The blocks of a text, parsed by several threads and taken in their order.

use crate::lines::BlockCutter;
use crate::parsed::{KnownEvents, ParsedBlock};
use crate::wrapped::TextSink;
use std::collections::VecDeque;
use std::io::Error;
use std::mem;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Builder, Scope};

/// Threads that parse: taking the blocks, which one thread does, is a third of the work.
const MOST: usize = 4;

/// Takes the lines of the next block.
type TakeBlock<'t> = &'t mut dyn FnMut(&mut ParsedBlock) -> Result<(), Error>;

/// A block, and where it goes when it is parsed.
type BlockJob = (ParsedBlock, SyncSender<ParsedBlock>);

/// Passes all blocks of a text to `take`, in their order, whatever the number of threads; returns the number of lines that were left out. An
/// error of `take` ends it.
pub(crate) fn blocks(
    text: impl FnOnce(TextSink<'_>),
    threads: usize,
    known: &KnownEvents,
    take: TakeBlock<'_>,
) -> Result<u64, Error> {
    let threads = if threads > 0 { threads } else { thread::available_parallelism().map_or(1, usize::from) };
    thread::scope(|scope| {
        let mut blocks = BlockQueue { known, jobs: None, pending: VecDeque::new(), most: 0, spare: Vec::new(), take };
        if threads > 1 {
            blocks.start(scope, threads.min(MOST));
        }
        blocks.all(text)
    })
}

/// The blocks on their way.
struct BlockQueue<'k, 't> {
    known: &'k KnownEvents,
    /// The threads' next blocks; `None` where there are no threads.
    jobs: Option<Sender<BlockJob>>,
    /// The blocks that are not taken yet, in their order, and the number of those that the threads may have.
    pending: VecDeque<Receiver<ParsedBlock>>,
    most: usize,
    /// The memory of blocks that were taken.
    spare: Vec<ParsedBlock>,
    take: TakeBlock<'t>,
}

impl<'k> BlockQueue<'k, '_> {
    /// Starts threads, as many as the system gives.
    fn start<'s>(&mut self, scope: &'s Scope<'s, 'k>, threads: usize) {
        let (jobs, waiting) = channel::<BlockJob>();
        let (waiting, known) = (Arc::new(Mutex::new(waiting)), self.known);
        let next = |waiting: &Mutex<Receiver<BlockJob>>| waiting.lock().ok()?.recv().ok();
        let started = (0..threads).filter(|_| {
            let waiting = Arc::clone(&waiting);
            let work = move || {
                while let Some((mut block, parsed)) = next(&waiting) {
                    block.parse(known);
                    // After an error nobody takes it.
                    let _ = parsed.send(block);
                }
            };
            Builder::new().spawn_scoped(scope, work).is_ok()
        });
        let started = started.count();
        (self.jobs, self.most) = (Some(jobs).filter(|_| started > 0), started.saturating_mul(2));
    }

    fn all(&mut self, text: impl FnOnce(TextSink<'_>)) -> Result<u64, Error> {
        let (mut cutter, mut failed) = (BlockCutter::default(), None);
        text(&mut |piece| {
            if !cutter.add(piece) {
                return ControlFlow::Continue(());
            }
            let mut block = self.spare.pop().unwrap_or_default();
            block.text = cutter.take(mem::take(&mut block.text));
            match self.push(block) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let (text, left_out) = cutter.end();
        self.push(ParsedBlock { text, ..ParsedBlock::default() })?;
        while !self.pending.is_empty() {
            self.take_next()?;
        }
        Ok(left_out)
    }

    fn push(&mut self, mut block: ParsedBlock) -> Result<(), Error> {
        let Some(jobs) = &self.jobs else {
            block.parse(self.known);
            return self.take(block);
        };
        let (parsed, waiting) = sync_channel(1);
        jobs.send((block, parsed)).map_err(Error::other)?;
        self.pending.push_back(waiting);
        while self.pending.len() > self.most {
            self.take_next()?;
        }
        Ok(())
    }

    fn take_next(&mut self) -> Result<(), Error> {
        let Some(waiting) = self.pending.pop_front() else { return Ok(()) };
        let block = waiting.recv().map_err(Error::other)?;
        self.take(block)
    }

    fn take(&mut self, mut block: ParsedBlock) -> Result<(), Error> {
        (self.take)(&mut block)?;
        self.spare.push(block);
        Ok(())
    }
}
