//! The steps of an analysis that are left to the pieces before.

/// The steps of an analysis whose sums go by the order of all events, such as the time of a job over its runs.
///
/// A step is what an event means for the analysis, with all that it asks the state about. The first piece of a pass follows each step at once. A later
/// piece keeps its steps, and [`Joined::join`](super::joined::Joined::join) has the pieces before follow them. So the state is moved, and asked, on many
/// threads; the steps alone are followed on one.
#[derive(Clone, Debug)]
pub struct StepLog<S> {
    kept: Option<Vec<S>>,
}

impl<S> Default for StepLog<S> {
    fn default() -> Self {
        StepLog { kept: None }
    }
}

impl<S> StepLog<S> {
    /// Keeps the steps from now on: a later piece of a pass begins.
    pub fn resume(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// Whether steps are kept.
    pub fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns the step if it is to be followed now, and keeps it otherwise.
    #[inline]
    pub fn at_once(&mut self, step: S) -> Option<S> {
        match &mut self.kept {
            Some(kept) => {
                kept.push(step);
                None
            }
            None => Some(step),
        }
    }

    /// The steps that were kept, in their order.
    pub fn into_steps(self) -> impl Iterator<Item = S> {
        self.kept.into_iter().flatten()
    }
}
