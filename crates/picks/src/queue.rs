//! The fluid model of a run queue of the fair class: every queued task gets its weighted share, and lag is what it got less.
//!
//! The rules are those of the kernel's EEVDF: the virtual time of a queue is the mean of the virtual run times of its tasks,
//! by weight; a task that joins is placed by the lag with which it left; a request ends when the virtual run time reaches the deadline.

/// The weight of nice 0.
pub(crate) const NICE_0: u64 = 1024;

/// A task on a run queue of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entity {
    /// The weight of the task; that of nice 0 is 1024.
    pub(crate) weight: u64,
    /// The virtual run time of the task, in nanoseconds.
    pub(crate) vruntime: i64,
    /// The virtual deadline of the task's request.
    pub(crate) deadline: i64,
}

/// The virtual length of a length of time for a task of this weight.
pub(crate) fn virtual_length(ns: u64, weight: u64) -> i64 {
    i64::try_from(u128::from(ns) * u128::from(NICE_0) / u128::from(weight.max(1))).unwrap_or(i64::MAX)
}

/// The length of time of a virtual length for a task of this weight, both of either sign.
pub(crate) fn real_length(virtual_ns: i64, weight: u64) -> i64 {
    let ns = i128::from(virtual_ns) * i128::from(weight) / i128::from(NICE_0);
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

/// The parameters of the kernel that the model needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    /// The request of a task that has set none, in nanoseconds.
    pub(crate) slice: u64,
    /// The length of a tick, in nanoseconds.
    pub(crate) tick: u64,
}

impl Parameters {
    /// The greatest virtual lag, of either sign, with which a task of this weight leaves a queue.
    pub(crate) fn limit(self, weight: u64) -> i64 {
        virtual_length((2 * self.slice).max(self.tick), weight)
    }
}

/// A run queue of the model: the sums over its tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) weight: u64,
    pub(crate) weighted: i128,
    /// The virtual time at which the queue was last empty.
    pub(crate) idle: i64,
}

impl Queue {
    /// The virtual time of the queue.
    pub(crate) fn time(&self) -> i64 {
        match self.weight {
            0 => self.idle,
            weight => (self.weighted / i128::from(weight)) as i64,
        }
    }

    /// Places a task with this virtual lag, and returns it. A new task's first request is half as long.
    pub(crate) fn join(&mut self, weight: u64, lag: i64, is_new: bool, parameters: Parameters) -> Entity {
        // The task itself moves the mean: its lag is enlarged so that it has this lag once it has joined.
        let lag = match self.weight {
            0 => 0,
            load => (i128::from(lag) * i128::from(load + weight) / i128::from(load)) as i64,
        };
        let vruntime = self.time().saturating_sub(lag);
        let slice = if is_new { parameters.slice / 2 } else { parameters.slice };
        let entity = Entity { weight, vruntime, deadline: vruntime.saturating_add(virtual_length(slice, weight)) };
        self.weight += weight;
        self.weighted += i128::from(vruntime) * i128::from(weight);
        entity
    }

    /// Takes a task from the queue, and returns the virtual lag with which it leaves.
    pub(crate) fn leave(&mut self, entity: &Entity, parameters: Parameters) -> i64 {
        let (time, limit) = (self.time(), parameters.limit(entity.weight));
        self.weight = self.weight.saturating_sub(entity.weight);
        self.weighted -= i128::from(entity.vruntime) * i128::from(entity.weight);
        if self.weight == 0 {
            (self.idle, self.weighted) = (time.max(entity.vruntime), 0);
        }
        time.saturating_sub(entity.vruntime).clamp(-limit, limit)
    }

    /// Lets a task run for a time.
    pub(crate) fn run(&mut self, entity: &mut Entity, ns: u64, parameters: Parameters) {
        let passed = virtual_length(ns, entity.weight);
        entity.vruntime = entity.vruntime.saturating_add(passed);
        self.weighted += i128::from(passed) * i128::from(entity.weight);
        if entity.vruntime >= entity.deadline {
            entity.deadline = entity.vruntime.saturating_add(virtual_length(parameters.slice, entity.weight));
        }
    }

    /// The virtual lag of a task of the queue.
    pub(crate) fn lag(&self, entity: &Entity) -> i64 {
        self.time().saturating_sub(entity.vruntime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters = Parameters { slice: 3_000, tick: 4_000 };

    #[test]
    fn lags_of_a_queue_are_zero_together() {
        let mut queue = Queue::default();
        let mut a = queue.join(1024, 0, false, PARAMETERS);
        let b = queue.join(2048, 0, false, PARAMETERS);
        queue.run(&mut a, 3_000, PARAMETERS);
        // The share of the first is a third: it has got 2,000 ns more than that.
        assert_eq!([&a, &b].map(|task| real_length(queue.lag(task), task.weight)), [-2_000, 2_000]);
        assert_eq!(a.deadline, 6_000);
        assert_eq!(queue.leave(&a, PARAMETERS), -2_000);
        assert_eq!(queue.lag(&b), 0);
    }

    #[test]
    fn a_task_has_the_lag_with_which_it_joins() {
        let mut queue = Queue::default();
        let a = queue.join(1024, 0, false, PARAMETERS);
        let b = queue.join(1024, -500, false, PARAMETERS);
        assert_eq!([queue.lag(&a), queue.lag(&b)], [500, -500]);
        // Alone it has none.
        let mut queue = Queue::default();
        let a = queue.join(1024, -500, true, PARAMETERS);
        assert_eq!((queue.lag(&a), a.deadline), (0, 1_500));
    }

    #[test]
    fn the_lag_of_a_task_that_leaves_is_bounded() {
        let mut queue = Queue::default();
        let mut a = queue.join(1024, 0, false, PARAMETERS);
        let b = queue.join(1024, 0, false, PARAMETERS);
        queue.run(&mut a, 100_000, PARAMETERS);
        assert_eq!(queue.leave(&a, PARAMETERS), -6_000);
        assert_eq!(queue.leave(&b, PARAMETERS), 0);
    }

    #[test]
    fn lengths_go_by_weight() {
        assert_eq!([virtual_length(1_000, 2048), real_length(-500, 2048)], [500, -1_000]);
    }
}
