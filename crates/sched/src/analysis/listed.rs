//! Analyses of different kinds in one list.

use crate::analysis::joined::Joined;
use crate::analysis::{Analysis, Settled};
use crate::balance::causes::{Causes, Migration};
use crate::event::span::{CpuSpan, Span};
use crate::event::{SchedEvent, Ts};
use crate::state::SchedState;
use crate::state::past::Past;
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A recipe for an analysis of any type with a conclusion from its output, so that one list can hold analyses of several types.
///
/// `T` is the type of the conclusions, `'a` the lifetime of the things that the analyses borrow. Each event costs some
/// calls through a table more than in a tuple of analyses, whose calls the compiler sees.
///
/// ```
/// use sched::{Lister, Pass, Pid, SchedEvent, analysis::RunTime};
/// let events: &[SchedEvent] = &[];
/// let listers = [Lister::new(RunTime::default, |ran| format!("ran {} ns", ran.total().0))];
/// let analyses = || listers.iter().map(Lister::listed).collect::<Vec<_>>();
/// assert_eq!(Pass::over(events).run(analyses)?.output, ["ran 0 ns"]);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
pub struct Lister<'a, T> {
    make: Box<dyn Fn() -> Listed<'a, T> + Send + Sync + 'a>,
}

impl<T> fmt::Debug for Lister<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").finish_non_exhaustive()
    }
}

impl<'a, T> Lister<'a, T> {
    /// Makes the recipe. `analysis` makes the analysis anew for each pass and for each piece of one. `conclude` is called once,
    /// with the output of the analysis, after the window has ended; it is not called for an analysis that is dropped since
    /// the pass is repeated.
    pub fn new<A: Joined + 'a>(
        analysis: impl Fn() -> A + Send + Sync + 'a,
        conclude: impl Fn(A::Output) -> T + Send + Sync + 'a,
    ) -> Lister<'a, T> {
        let (conclude, exchange) = (Arc::new(conclude), Arc::<Exchange<A>>::default());
        let make = move || {
            let (conclude, exchange) = (Arc::clone(&conclude), Arc::clone(&exchange));
            let analysis = RefCell::new(Some(analysis()));
            Listed { analysis: Box::new(Concluded { analysis, aside: None, conclude, exchange }) }
        };
        Lister { make: Box::new(make) }
    }

    /// Makes the analysis.
    pub fn listed(&self) -> Listed<'a, T> {
        (self.make)()
    }
}

/// A place for an analysis of one type: a piece of a pass is handed through it to the analysis of the pieces before, of which
/// the compiler does not see that it has the same type. Pieces are joined one after another.
type Exchange<A> = Mutex<Option<A>>;

/// An analysis of any type, boxed with a conclusion from its output. A [`Lister`] makes it; those of one [`Lister`] can be joined,
/// if they are divisible.
pub struct Listed<'a, T> {
    analysis: Box<dyn Any<T> + Send + 'a>,
}

impl<T> fmt::Debug for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listed").finish_non_exhaustive()
    }
}

/// Passes the hooks of [`Analysis`] but the last to a macro.
macro_rules! hooks {
    ($does:ident) => {
        $does! {
            fn counts(&self) -> bool;
            fn looks_back(&self) -> bool;
            fn migrates(&self) -> bool;
            fn unsettled(&mut self, causes: &Causes);
            fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState);
            fn recall(&mut self, past: &Past, state: &SchedState);
            fn early(&mut self, event: &SchedEvent, state: &SchedState);
            fn begin(&mut self, start: Ts, state: &SchedState);
            fn before(&mut self, event: &SchedEvent, state: &SchedState);
            fn span(&mut self, span: &Span, state: &SchedState);
            fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState);
            fn after(&mut self, event: &SchedEvent, state: &SchedState);
        }
    };
}

/// Declares the hooks.
macro_rules! declared {
    ($($hooks:tt)+) => { $($hooks)+ };
}

/// The hooks of [`Analysis`] and [`Joined`], called through a table.
trait Any<T> {
    hooks!(declared);

    fn is_divisible(&self) -> bool;
    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState);
    /// Puts the analysis into the exchange, from which another one takes it.
    fn lend(&self);
    /// Takes the analysis back.
    fn take_back(&self);
    /// Whether the analysis in the exchange fits.
    fn fits_lent(&self) -> bool;
    /// Adds the analysis in the exchange, and empties that.
    fn join_lent(&mut self);
    /// Sets the analysis aside: no hook reaches it.
    fn set_aside(&mut self);
    /// Takes up an analysis that was set aside.
    fn take_up(&mut self);
    fn finish(self: Box<Self>, end: Ts, state: &SchedState) -> Option<T>;
}

/// An analysis, with the conclusion that is drawn from its output.
struct Concluded<A, F> {
    /// The analysis, but while it is in the exchange or set aside.
    analysis: RefCell<Option<A>>,
    aside: Option<A>,
    conclude: Arc<F>,
    exchange: Arc<Exchange<A>>,
}

/// The analysis in an exchange; a panic elsewhere leaves it as it is.
fn lent<A>(exchange: &Exchange<A>) -> MutexGuard<'_, Option<A>> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forwards a hook to the analysis inside, unless it is set aside.
macro_rules! to_inside {
    ($(fn $hook:ident($($this:tt)+) $(-> $out:ident)?;)+) => { $(to_inside!(@ $hook ($($this)+) $(-> $out)?);)+ };
    (@ $hook:ident (&self) -> bool) => {
        fn $hook(&self) -> bool {
            self.analysis.borrow().as_ref().is_some_and(A::$hook)
        }
    };
    (@ $hook:ident (&mut self, $($name:ident: $type:ty),+)) => {
        fn $hook(&mut self, $($name: $type),+) {
            if let Some(analysis) = self.analysis.get_mut() {
                analysis.$hook($($name),+);
            }
        }
    };
}

/// Forwards a hook through the table.
macro_rules! to_table {
    ($(fn $hook:ident($($this:tt)+) $(-> $out:ident)?;)+) => { $(to_table!(@ $hook ($($this)+) $(-> $out)?);)+ };
    (@ $hook:ident (&self) -> bool) => {
        fn $hook(&self) -> bool {
            self.analysis.$hook()
        }
    };
    (@ $hook:ident (&mut self, $($name:ident: $type:ty),+)) => {
        fn $hook(&mut self, $($name: $type),+) {
            self.analysis.$hook($($name),+);
        }
    };
}

impl<T, A: Joined, F: Fn(A::Output) -> T> Any<T> for Concluded<A, F> {
    hooks!(to_inside);

    fn is_divisible(&self) -> bool {
        self.analysis.borrow().as_ref().is_some_and(A::is_divisible)
    }

    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
        self.analysis.get_mut().iter_mut().for_each(|analysis| analysis.resume(start, at, state));
    }

    fn lend(&self) {
        *lent(&self.exchange) = self.analysis.take();
    }

    fn take_back(&self) {
        *self.analysis.borrow_mut() = lent(&self.exchange).take();
    }

    fn fits_lent(&self) -> bool {
        match (self.analysis.borrow().as_ref(), lent(&self.exchange).as_ref()) {
            (Some(analysis), Some(later)) => analysis.fits(later),
            _ => false,
        }
    }

    fn join_lent(&mut self) {
        let later = lent(&self.exchange).take();
        if let (Some(analysis), Some(later)) = (self.analysis.get_mut(), later) {
            analysis.join(later);
        }
    }

    fn set_aside(&mut self) {
        self.aside = self.analysis.take();
    }

    fn take_up(&mut self) {
        if let Some(analysis) = self.aside.take() {
            *self.analysis.get_mut() = Some(analysis);
        }
    }

    fn finish(self: Box<Self>, end: Ts, state: &SchedState) -> Option<T> {
        let Concluded { analysis, conclude, .. } = *self;
        analysis.into_inner().map(|analysis| conclude(analysis.finish(end, state)))
    }
}

impl<T> Analysis for Listed<'_, T> {
    type Output = T;

    hooks!(to_table);

    fn finish(self, end: Ts, state: &SchedState) -> T {
        // An analysis is in the exchange only while it is compared, or when it is joined to another, and aside only within a piece.
        self.analysis.finish(end, state).expect("an analysis in its place")
    }
}

impl<T> Joined for Listed<'_, T> {
    fn is_divisible(&self) -> bool {
        self.analysis.is_divisible()
    }

    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
        self.analysis.resume(start, at, state);
    }

    fn fits(&self, later: &Self) -> bool {
        later.analysis.lend();
        let fits = self.analysis.fits_lent();
        later.analysis.take_back();
        fits
    }

    fn join(&mut self, later: Self) {
        later.analysis.lend();
        self.analysis.join_lent();
    }

    fn join_members(&mut self, later: Self) {
        if self.fits(&later) {
            self.join(later);
            self.analysis.set_aside();
        }
    }

    fn take_up(&mut self) {
        self.analysis.take_up();
    }
}
