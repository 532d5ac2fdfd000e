//! The threads that encode row groups.

use super::gathered::{EncodedColumn, Gathered, GroupForm, encode_group};
use parquet::errors::ParquetError;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A row group as it stands in a file, or the reason why it could not be encoded.
type EncodedGroup = Result<Vec<EncodedColumn>, ParquetError>;

/// The rows of a row group on their way to an encoder.
struct EncoderJob {
    rows: Vec<Gathered>,
    form: GroupForm,
    reply: Sender<EncodedGroup>,
}

/// Threads that encode and compress the row groups of tables. They end when this is dropped.
pub struct Encoders {
    /// The queue of the threads; `None` if there are none. It is as long as the tables let it become.
    jobs: Option<Mutex<Sender<EncoderJob>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Encoders {
    /// Maximum number of threads: those that make the rows keep no more of them busy.
    const MOST: usize = 6;

    /// The encoders of a program that may use this number of threads. With a single one, row groups are encoded by the
    /// thread that makes the rows.
    pub fn for_threads(threads: usize) -> Arc<Encoders> {
        let (jobs, queue) = channel::<EncoderJob>();
        let queue = Arc::new(Mutex::new(queue));
        let threads = (1..threads.min(Encoders::MOST + 1)).map_while(|_| {
            let queue = Arc::clone(&queue);
            // Without a further thread, those that there are have more to do.
            std::thread::Builder::new().name("encoder".to_owned()).spawn(move || work(&queue)).ok()
        });
        let threads: Vec<JoinHandle<()>> = threads.collect();
        Arc::new(Encoders { jobs: (!threads.is_empty()).then(|| Mutex::new(jobs)), threads })
    }

    /// Begins to encode a row group.
    pub(super) fn encode(&self, rows: Vec<Gathered>, form: &GroupForm) -> PendingGroup {
        let Some(jobs) = &self.jobs else { return PendingGroup::Ready(encode_group(&rows, form)) };
        let (reply, group) = channel();
        let job = EncoderJob { rows, form: form.clone(), reply };
        match jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job) {
            Ok(()) => PendingGroup::UnderWay(group),
            // All threads have panicked.
            Err(unsent) => PendingGroup::Ready(encode_group(&unsent.0.rows, form)),
        }
    }
}

impl Drop for Encoders {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has left its row group without an answer, which was reported.
            let _ = thread.join();
        }
    }
}

/// Encodes row groups until there can be no more.
fn work(queue: &Mutex<Receiver<EncoderJob>>) {
    loop {
        // The lock is held while this thread waits: the others wait behind it.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(EncoderJob { rows, form, reply }) = job else { return };
        // If the pass began again, no one waits for the rows.
        let _ = reply.send(encode_group(&rows, &form));
    }
}

/// A row group that is being encoded.
pub(super) enum PendingGroup {
    UnderWay(Receiver<EncodedGroup>),
    Ready(EncodedGroup),
}

impl PendingGroup {
    /// Whether [`PendingGroup::wait`] returns at once.
    pub(super) fn is_ready(&mut self) -> bool {
        if let PendingGroup::UnderWay(group) = self {
            match group.try_recv() {
                Ok(group) => *self = PendingGroup::Ready(group),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => {}
            }
        }
        true
    }

    /// The row group, once it is encoded.
    pub(super) fn wait(self) -> EncodedGroup {
        match self {
            PendingGroup::Ready(group) => group,
            PendingGroup::UnderWay(group) => group
                .recv()
                .unwrap_or_else(|_| Err(ParquetError::General("a thread that encodes rows has failed".to_owned()))),
        }
    }
}
