//! The pieces of a pass, joined.

use crate::counted::PanelWatch;
use crate::{CpuInPanel, Gather, Now, Options, RunningWaiting, Sum, Together, change};
use sched::counted::CountedQueues;
use sched::{Analysis, Cpu, Joined, SchedState, Task, Ts};
use timeline::{Piece, PieceClass, Turns};
use workcons::SelectedWatch;
use workcons::violation::ALL;

/// The beginning of a later piece of a pass, as the state there shows it.
pub(crate) struct PieceStart {
    at: Ts,
    parts: Vec<PanelWatch>,
    whole: Option<PanelWatch>,
    reaching: Vec<SelectedWatch>,
    queues: CountedQueues,
    places: Vec<(Option<usize>, CpuInPanel)>,
    panels: Vec<Now>,
    violated: bool,
}

/// The run queue of a CPU over time.
pub(crate) enum QueueRow {
    /// The lane so far.
    Lane(Turns),
    /// The turns within a later piece of a pass.
    Turned(Vec<(PieceClass, Ts)>),
}

impl QueueRow {
    pub(crate) fn new(options: &Options<'_>) -> QueueRow {
        QueueRow::Lane(Turns::new(options.from, options.to, options.columns()))
    }

    /// Lets the lane show this class from `ts` on.
    pub(crate) fn turn(&mut self, class: PieceClass, ts: Ts) {
        match self {
            QueueRow::Lane(lane) => lane.turn(class, ts),
            QueueRow::Turned(turns) if turns.last().is_some_and(|(last, _)| *last == class) => {}
            QueueRow::Turned(turns) => turns.push((class, ts)),
        }
    }

    /// The pieces of the lane, which ends here.
    pub(crate) fn finish(self, end: Ts) -> Vec<Piece> {
        match self {
            QueueRow::Lane(lane) => lane.finish(end),
            QueueRow::Turned(_) => Vec::new(),
        }
    }

    fn join(&mut self, later: QueueRow) {
        if let QueueRow::Turned(turns) = later {
            turns.into_iter().for_each(|(class, ts)| self.turn(class, ts));
        }
    }
}

/// Makes room for this number of columns.
#[cold]
#[inline(never)]
pub(crate) fn grow(sums: &mut Vec<Sum>, number: usize) {
    sums.resize(number, Sum::default());
}

impl Sum {
    /// Adds the time of the same column in a later piece.
    fn join(&mut self, later: &Sum) {
        let Sum { ns, running, total, violated, unknown, offline, least, most } = *later;
        self.ns += ns;
        self.running = self.running.saturating_add(running);
        self.total = self.total.saturating_add(total);
        self.violated += violated;
        self.unknown += unknown;
        self.offline = self.offline.saturating_add(offline);
        self.least = match (self.least, least) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.min(b.1))),
            (a, b) => a.or(b),
        };
        self.most = (self.most.0.max(most.0), self.most.1.max(most.1));
    }
}

impl Gather {
    /// Has only room for columns from an instant on, as they come.
    fn resume(&mut self, at: Ts) {
        (self.since, self.first, self.sums) = (at, self.columns.part_of(at), Vec::new());
    }

    fn join(&mut self, at: Ts, later: &Gather) {
        self.advance(at);
        let from = later.first - self.first;
        self.sums[from..].iter_mut().zip(&later.sums).for_each(|(sum, more)| sum.join(more));
        (self.now, self.since) = (later.now, later.since);
    }
}

impl Together {
    fn join(&mut self, at: Ts, later: Together) {
        self.advance(at);
        let violated_ns = self.violated_ns.saturating_add(later.violated_ns);
        *self = Together { violated_ns, ..later };
    }
}

impl RunningWaiting<'_> {
    /// Counts the tasks that wait on CPUs of no panel, as those are that begin to wait there.
    fn follow_others(&mut self, state: &SchedState) {
        if self.all {
            return;
        }
        let (options, places, sets) = (self.options, &self.places, &mut self.sets);
        let count = |task: &Task, _| u8::from(options.counts(task, state)) << ALL;
        let has_panel = |cpu: &Cpu| places.get(cpu.index()).is_some_and(|(panel, _)| panel.is_some());
        for cpu in state.observed().chain(state.unobserved_queues()).filter(|cpu| !has_panel(cpu)) {
            self.queues.begin(cpu, state, count, |cpu, flags, by| change(places, sets, cpu, flags, by));
        }
    }
}

impl Joined for RunningWaiting<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.panels.iter_mut().for_each(|panel| panel.resume(at));
        self.together.since = at;
        self.begin(at, state);
        self.follow_others(state);
        self.parts.iter_mut().chain(&mut self.whole).for_each(|part| part.resume(state));
        let options = self.options;
        self.reaching.iter_mut().for_each(|watch| watch.resume(state, |task, state| options.counts(task, state)));
        self.rows.iter_mut().flatten().for_each(|row| *row = QueueRow::Turned(Vec::new()));
        self.piece = Some(Box::new(PieceStart {
            at,
            parts: self.parts.clone(),
            whole: self.whole.clone(),
            reaching: self.reaching.clone(),
            queues: self.queues.clone(),
            places: self.places.clone(),
            panels: self.panels.iter().map(|panel| panel.now).collect(),
            violated: self.together.violated,
        }));
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(piece) = &later.piece else { return false };
        let knows_same = |(a, b): (&PanelWatch, &PanelWatch)| a.knows_same(b);
        self.panels.iter().map(|panel| panel.now).eq(piece.panels.iter().copied())
            && self.together.violated == piece.violated
            && self.parts.iter().zip(&piece.parts).all(knows_same)
            && self.whole.iter().zip(&piece.whole).all(knows_same)
            && self.reaching.iter().zip(&piece.reaching).all(|(a, b)| a.knows_same(b))
            && self.queues.has_same(&piece.queues)
            && self.places == piece.places
    }

    fn join(&mut self, later: Self) {
        let Some(piece) = later.piece else { return };
        let at = piece.at;
        self.panels.iter_mut().zip(&later.panels).for_each(|(panel, more)| panel.join(at, more));
        self.together.join(at, later.together);
        for (row, later) in self.rows.iter_mut().zip(later.rows) {
            if let (Some(row), Some(later)) = (row, later) {
                row.join(later);
            }
        }
        self.gaps += later.gaps;
        (self.parts, self.whole, self.queues) = (later.parts, later.whole, later.queues);
        (self.places, self.sets, self.reaching) = (later.places, later.sets, later.reaching);
    }
}
