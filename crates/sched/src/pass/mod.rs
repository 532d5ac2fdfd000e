//! One pass over a trace: the prologue, the window, the feeding, the closing of open spans.

use crate::analysis::Analysis;
use crate::analysis::joined::Joined;
use crate::event::diag::Diagnostics;
use crate::event::{Pid, TaskRef, Ts};
use crate::state::{SchedState, Start, Task};
use std::ops::ControlFlow;

mod fold;
mod moves;
mod piece_events;
mod pieces;
pub mod replay;
mod source;
mod window;

pub use fold::SideBySide;
pub(crate) use fold::WindowFold;
pub use pieces::Pieces;
pub use source::{Batch, BatchSink, EventSource, Extent, FirstEvent, SendSink, Sink, in_turn, lending};
pub use window::Window;

use fold::{Haste, PassPlan, learn};
use moves::WindowEnd;

/// The output of an analysis that was divided into pieces, and those of the analyses beside it that followed the pass whole.
pub type OutputsBeside<A, B> = (<A as Analysis>::Output, Vec<<B as Analysis>::Output>);

/// The outcome of a pass over a window.
#[must_use]
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// The result of the analysis.
    pub output: T,
    /// The start of the window, within the trace.
    pub from: Ts,
    /// The end of the window, within the trace.
    pub to: Ts,
    /// The losses within the window, the repairs of the state, and the findings on the source.
    pub diagnostics: Diagnostics,
}

impl<T> Outcome<T> {
    /// Returns the outcome with the result that `change` makes of this one.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        let Outcome { output, from, to, diagnostics } = self;
        Outcome { output: change(output), from, to, diagnostics }
    }
}

/// A pass to be made over a source: the source, the window, and the length of the prologue.
#[must_use]
#[derive(Debug)]
pub struct Pass<S> {
    source: S,
    window: Window,
    prologue: usize,
    /// The minimum number of events of the prologue; see [`Pass::LEAST`].
    least: usize,
    /// The division into pieces; `None` if the threads of the source decide.
    pieces: Option<Pieces>,
}

impl<S: EventSource> Pass<S> {
    /// Maximum number of events that the prologue reads to find the tasks that waited at the start. Nearly every task
    /// shows itself within them; for one that does not, the pass is made again.
    pub const PROLOGUE: usize = 200_000;

    /// Minimum number of events that the prologue reads. Behind it the prologue ends once nothing new has come to light
    /// for as long as it took to find all that is known. If something does after all, within as many events as the
    /// prologue could have read, it reads them. A pass over a window that ends before the trace would not see that, and
    /// reads all of the prologue at once.
    const LEAST: usize = 16_384;

    /// Makes a pass over the whole of `source`.
    pub fn over(source: S) -> Pass<S> {
        Pass { source, window: Window::default(), prologue: Self::PROLOGUE, least: Self::LEAST, pieces: None }
    }

    /// Restricts the report to this window.
    pub fn window(mut self, window: Window) -> Pass<S> {
        self.window = window;
        self
    }

    /// Sets the maximum number of events that the prologue reads. The result is the same with any number.
    pub fn prologue(mut self, events: usize) -> Pass<S> {
        self.prologue = events;
        self
    }

    /// Ends the prologue after this number of events if nothing new comes to light for long enough. The result is the
    /// same with any number.
    pub fn hasty(mut self, events: usize) -> Pass<S> {
        self.least = events;
        self
    }

    /// Makes the pass. `analysis` is called once, and once more for each repetition of the pass.
    pub fn run<A: Analysis>(mut self, analysis: impl Fn() -> A) -> Result<Outcome<A::Output>, S::Error> {
        let plan = self.plan(self.least)?;
        self.alone(plan, analysis)
    }

    /// Makes the pass with one state.
    fn alone<A: Analysis>(
        &mut self,
        mut plan: PassPlan,
        analysis: impl Fn() -> A,
    ) -> Result<Outcome<A::Output>, S::Error> {
        loop {
            let mut fold = plan.fold(analysis());
            let most = self.source.most_state().unwrap_or(usize::MAX);
            let mut is_too_large = false;
            self.source.events(&mut |events| {
                let flow = fold.feed(events);
                is_too_large = fold.bytes() > most;
                if is_too_large { ControlFlow::Break(()) } else { flow }
            })?;
            if let Some(error) = self.source.too_large().filter(|_| is_too_large) {
                return Err(error);
            }
            if plan.was_right(&fold, &mut self.source) {
                return Ok(fold.outcome(&plan, &self.source));
            }
            self.look_further(&mut plan)?;
        }
    }

    /// Sets the division of a pass in pieces ([`Pass::run_in_pieces`]); without it the number of threads of the source
    /// decides. The result is the same with any division.
    pub fn pieces(mut self, pieces: Option<Pieces>) -> Pass<S> {
        self.pieces = pieces;
        self
    }

    /// Makes the pass in pieces that are analysed side by side, if the source has threads enough and the analysis can be
    /// divided, and otherwise like [`Pass::run`]; the results are the same. `analysis` is called for each piece, on any
    /// thread, and must make the same analysis each time.
    pub fn run_in_pieces<A: Joined>(self, analysis: impl Fn() -> A + Sync) -> Result<Outcome<A::Output>, S::Error> {
        let outcome = self.run_in_pieces_beside(analysis, Vec::<()>::new)?;
        Ok(outcome.map(|(output, _)| output))
    }

    /// Makes the pass in pieces as [`Pass::run_in_pieces`] does, beside analyses that cannot be divided, each of which follows
    /// all of it on a thread of its own. `others` is called once, and once more for each repetition of the pass.
    pub fn run_in_pieces_beside<A: Joined, B: Analysis + Send>(
        mut self,
        analysis: impl Fn() -> A + Sync,
        others: impl Fn() -> Vec<B>,
    ) -> Result<Outcome<OutputsBeside<A, B>>, S::Error> {
        let Some(division) = self.division().filter(|_| analysis().is_divisible()) else {
            return self.run(|| (analysis(), others()));
        };
        let mut plan = self.plan(self.least)?;
        loop {
            if let Some(outcome) = pieces::attempt(division, &mut plan, &mut self.source, &analysis, others())? {
                return Ok(outcome);
            }
            if plan.is_crowded {
                return self.alone(plan, || (analysis(), others()));
            }
            self.look_further(&mut plan)?;
        }
    }

    /// Whether a pass in pieces is divided: the source has threads enough, or a division was set.
    pub fn is_divided(&self) -> bool {
        self.division().is_some()
    }

    fn division(&self) -> Option<Pieces> {
        self.pieces.or_else(|| Pieces::for_threads(self.source.threads()))
    }

    /// Makes the pass with the members of a composition side by side, each on a thread of its own with a state of its
    /// own, if the source has threads: none waits for the calculations of another. The results are the same as those of
    /// [`Pass::run`]. `analyses` is called once, and once more for each repetition of the pass.
    pub fn run_side_by_side<A: SideBySide>(mut self, analyses: impl Fn() -> A) -> Result<Outcome<A::Output>, S::Error> {
        if self.source.threads() < 2 {
            return self.run(analyses);
        }
        let mut plan = self.plan(self.least)?;
        loop {
            if let Some(outcome) = analyses().side_by_side(&mut plan, &mut self.source)? {
                return Ok(outcome);
            }
            if plan.is_crowded {
                return self.alone(plan, analyses);
            }
            self.look_further(&mut plan)?;
        }
    }

    /// Makes a new plan after all of the prologue, if something came to light that it would have found.
    fn look_further(&mut self, plan: &mut PassPlan) -> Result<(), S::Error> {
        if plan.haste.was_wrong {
            *plan = self.plan(self.prologue)?;
        }
        Ok(())
    }

    /// Makes the plan after a prologue of at least this number of events.
    fn plan(&mut self, least: usize) -> Result<PassPlan, S::Error> {
        let extent = self.source.extent()?;
        if let Some(past) = extent.past {
            return Ok(PassPlan::after(past, extent.application, extent.capacities, self.window));
        }
        let mut start = Start {
            ts: extent.start,
            cpus: extent.firsts.iter().map(|first| (first.cpu, first.current)).collect(),
            named: Vec::new(),
            waiting: Vec::new(),
            groups: extent.groups,
            sched_idle: extent.sched_idle,
            capacities: extent.capacities,
            throttled: Vec::new(),
            without_wakeups: !extent.wakeups,
            by_wakings: !extent.wakeups && extent.wakings,
            without_wakings: true,
            incomplete: false,
            has_ext_queues: extent.has_ext_queues,
            without_contexts: extent.without_contexts,
            root: None,
            application: extent.application,
            past: None,
        };
        start.cpus.sort_unstable_by_key(|(cpu, _)| *cpu);
        let (from, to) = self.window.within(extent.start, extent.end);
        let least = if self.window.to.is_some() { self.prologue } else { least };
        let (early, left) = self.look_ahead(&start, least)?;
        learn(&mut start, &early, &mut self.source);
        self.name(&mut start, &early);
        let end = match self.window.to {
            None => WindowEnd::Open,
            Some(_) if to >= extent.end => WindowEnd::Inclusive,
            Some(_) => WindowEnd::Exclusive,
        };
        // Findings that the early state was given, and did not have to learn, will be given to the next one as well.
        let known = usize::from(!start.incomplete && early.shows_gaps());
        let haste = Haste { left, known, was_wrong: false };
        Ok(PassPlan { start, from, to, end, haste, late: Diagnostics::default(), is_crowded: false })
    }

    /// Names the tasks that run at first and throughout the prologue by the names that the recorder saved at the end,
    /// since no event shows more. With a window in a large trace these are the tasks that matter most.
    fn name(&self, start: &mut Start, early: &SchedState) {
        let nameless: Vec<Pid> = early.nameless(start).collect();
        for pid in nameless {
            start.name(TaskRef { pid, prio: Task::NO_PRIO, comm: self.source.saved_name(pid) });
        }
    }

    /// Reads the prologue. Returns the state after it and, if it has ended early, the number of events that it could
    /// have had.
    fn look_ahead(&mut self, start: &Start, least: usize) -> Result<(SchedState, usize), S::Error> {
        let mut state = SchedState::new(start);
        let most = self.prologue;
        let (mut seen, mut enough, mut is_early) = (0, least.min(most), false);
        let room = self.source.most_state().unwrap_or(usize::MAX);
        self.source.events(&mut |events| {
            let known = state.revelations();
            for event in events.iter().take(most - seen) {
                state.apply(event);
            }
            seen = most.min(seen + events.len());
            if state.revelations() > known {
                enough = most.min(enough.max(2 * seen));
            }
            is_early = seen < most && seen >= enough && state.nameless(start).next().is_none();
            let is_over = seen == most || is_early || state.bytes() > room;
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(error) = self.source.too_large().filter(|_| state.bytes() > room) {
            return Err(error);
        }
        Ok((state, if is_early { most } else { 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::diag::EventIssue;
    use crate::event::{Comm, Cpu, EventKind, PrevState, SchedEvent};
    use std::convert::Infallible;

    /// The task that runs on CPU 0 when the window begins.
    struct AtFirst(Comm);

    impl Analysis for AtFirst {
        type Output = Comm;

        fn begin(&mut self, _: Ts, state: &SchedState) {
            self.0 = state.running(Cpu(0)).map_or(Comm::EMPTY, |task| task.comm);
        }

        fn finish(self, _: Ts, _: &SchedState) -> Comm {
            self.0
        }
    }

    /// Events of a recorder that saved names.
    struct Saved<'e>(&'e [SchedEvent]);

    impl EventSource for Saved<'_> {
        type Error = Infallible;

        fn extent(&mut self) -> Result<Extent, Infallible> {
            self.0.extent()
        }

        fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Infallible> {
            self.0.events(sink)
        }

        fn saved_name(&self, _: Pid) -> Comm {
            Comm::new(b"at the end")
        }
    }

    /// The run time of the application's tasks in the window, and the time since when this number of them run.
    #[derive(Default)]
    struct Application {
        ns: u64,
        since: Ts,
        running: u64,
    }

    impl Application {
        fn pass(&mut self, ts: Ts) {
            self.ns += self.running * ts.since(self.since).0;
            self.since = ts;
        }
    }

    impl Analysis for Application {
        type Output = (u64, Option<Pid>);

        fn after(&mut self, event: &SchedEvent, state: &SchedState) {
            self.pass(event.ts);
            let running = state.observed().filter_map(|cpu| state.running(cpu));
            self.running = running.filter(|task| task.kin.descends).count() as u64;
        }

        fn finish(mut self, end: Ts, state: &SchedState) -> (u64, Option<Pid>) {
            self.pass(end);
            (self.ns, state.root())
        }
    }

    /// The traced command, 5, runs on CPU 0 and executes its program at 40. Before that another task forks 9, which
    /// runs on CPU 1 from 10 to 50; the command forks 6, which runs there from 60 to 70. The trace ends at 100.
    fn command_and_stranger() -> Vec<SchedEvent> {
        let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::EMPTY };
        let switch = |prev, next| EventKind::Switch { prev: task(prev), state: PrevState::asleep(1), next: task(next) };
        let fork = |parent, child| EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: Comm::EMPTY };
        let program = Comm::new(b"make");
        let at = |ts, cpu, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
        vec![
            at(0, 0, 5, EventKind::Other { id: 1 }),
            at(5, 1, 1, fork(1, 9)),
            at(10, 1, 1, switch(1, 9)),
            at(40, 0, 5, EventKind::Exec { pid: Pid(5), old_pid: Pid(5), program }),
            at(50, 1, 9, switch(9, 0)),
            at(55, 0, 5, fork(5, 6)),
            at(60, 1, 0, switch(0, 6)),
            at(70, 1, 6, switch(6, 0)),
            at(100, 0, 5, EventKind::Other { id: 1 }),
        ]
    }

    #[test]
    fn the_application_has_no_task_forked_by_others_before_the_exec() {
        let events = command_and_stranger();
        let measure = |events: &[SchedEvent], prologue, window| {
            let pass = Pass::over(events).prologue(prologue).hasty(prologue).window(window);
            pass.run(Application::default).unwrap_or_else(|never| match never {}).output
        };
        let all = Window::default();
        // 5 from 0 to 100, since the command before its exec is the command, and 6 from 60 to 70, wherever the look ahead ends.
        for prologue in [0, 1, 4, 200_000] {
            assert_eq!(measure(&events, prologue, all), (110, Some(Pid(5))), "{prologue}");
        }
        // A window before the exec has the command already: 9 is not taken for it.
        let before = Window { from: None, to: Some(Ts(30)) };
        assert_eq!(measure(&events, 200_000, before), (30, Some(Pid(5))));
        // Without the exec no task is known to be the application.
        let unknown: Vec<_> = events.iter().filter(|e| !matches!(e.kind, EventKind::Exec { .. })).copied().collect();
        assert_eq!(measure(&unknown, 200_000, all), (0, None));
    }

    #[test]
    fn who_runs_at_first_has_the_name_that_its_switch_tells() {
        let [softirq, idle] = [(7, "ksoftirqd/0"), (0, "swapper/0")].map(|(pid, name)| TaskRef {
            pid: Pid(pid),
            prio: 120,
            comm: Comm::new(name.as_bytes()),
        });
        let at = |ts, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind };
        let woken = TaskRef { pid: Pid(8), ..softirq };
        let events = [
            at(1, EventKind::Waking { task: woken, target: Cpu(0) }),
            at(2, EventKind::Switch { prev: softirq, state: PrevState::asleep(1), next: idle }),
        ];
        let at_first = |events, prologue| {
            let pass = Pass::over(Saved(events)).prologue(prologue);
            pass.run(|| AtFirst(Comm::EMPTY)).unwrap_or_else(|never| match never {}).output
        };
        assert_eq!(at_first(&events[..], Pass::<Saved<'_>>::PROLOGUE), softirq.comm);
        // Only the recorder has it.
        assert_eq!(at_first(&events[..1], 200), Comm::new(b"at the end"));
        // It had another name before, which no event shows: that of the program is the only one.
        let exec = EventKind::Exec { pid: Pid(7), old_pid: Pid(7), program: Comm::new(b"at the end") };
        assert_eq!(at_first(&[events[0], at(2, exec)], 200), Comm::new(b"at the end"));
    }

    /// Delivers events in batches, and counts how often it is asked to.
    struct Batches<'e>(&'e [SchedEvent], u32);

    impl EventSource for Batches<'_> {
        type Error = Infallible;

        fn extent(&mut self) -> Result<Extent, Infallible> {
            (&mut self.0).extent()
        }

        fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Infallible> {
            self.1 += 1;
            let _ = self.0.chunks(1000).try_for_each(sink);
            Ok(())
        }
    }

    /// How many wait on CPU 1 when the window begins.
    struct Waiting(usize);

    impl Analysis for Waiting {
        type Output = usize;

        fn begin(&mut self, _: Ts, state: &SchedState) {
            self.0 = state.waiting(Cpu(1)).count();
        }

        fn finish(self, _: Ts, _: &SchedState) -> usize {
            self.0
        }
    }

    #[test]
    fn a_prologue_that_was_too_short_is_read_on() {
        let task =
            |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == 0 { b"idle" } else { b"task" }) };
        let switch = |ts, cpu, prev, next| {
            let (prev, next) = (task(prev), task(next));
            let kind = EventKind::Switch { prev, state: PrevState::asleep(1), next };
            SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: prev.pid, flags: 0, kind }
        };
        // On CPU 1 a task waits behind another that ends at the event `late`.
        let found = |late: usize, to: Option<Ts>| {
            let quick = |n: i64| switch(n, 0, if n % 2 == 0 { 0 } else { 7 }, if n % 2 == 0 { 7 } else { 0 });
            let mut events: Vec<SchedEvent> = (0..300_000).map(quick).collect();
            events[0] = SchedEvent { kind: EventKind::Other { id: 1 }, ..switch(0, 1, 8, 9) };
            events[9] = switch(9, 1, 8, 10);
            events[10] = switch(10, 1, 10, 8);
            let woken = EventKind::Wakeup { task: task(11), target: Cpu(1) };
            events[11] = SchedEvent { kind: woken, ..switch(11, 1, 8, 9) };
            events[late] = switch(late as i64, 1, 8, 9);
            let mut source = Batches(&events, 0);
            let pass = Pass::over(&mut source).window(Window { from: None, to });
            let outcome = pass.run(|| Waiting(0)).unwrap_or_else(|never| match never {});
            (outcome.output, outcome.diagnostics.count(EventIssue::LateStart), source.1)
        };
        assert_eq!(found(3_000, None), (2, 0, 2), "the prologue and the pass");
        assert_eq!(found(40_000, None), (2, 0, 4), "each once more");
        assert_eq!(found(250_000, None), (2, 1, 3), "the pass once more");
        assert_eq!(found(40_000, Some(Ts(100))), (2, 0, 2), "behind the window");
    }
}
