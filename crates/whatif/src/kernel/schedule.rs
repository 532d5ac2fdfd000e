//! When each CPU balances each of its domains: `sched_balance_domains`, `get_sd_balance_interval`, `update_next_balance`, `should_we_balance` and
//! `need_active_balance` of Linux 6.12.

use super::groups::{Idleness, Seeker};
use super::search::{Failures, SearchOutcome};
use crate::domains::{Domain, Domains};
use crate::engine::Machine;
use crate::model::TaskIndex;
use sched::{Cpu, Ts};

/// The factor by which a CPU that runs a task balances less often: `busy_factor`.
const BUSY_FACTOR: u64 = 16;

/// The greatest interval while all tasks are bound, in milliseconds: `MAX_PINNED_INTERVAL`.
const MOST_BOUND: u64 = 512;

const MS: u64 = 1_000_000;

/// The balancing of one domain by one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// The number of the tick at which the domain was balanced last.
    pub(super) last: i64,
    /// `balance_interval`, in milliseconds; it is between the number of CPUs of the domain and twice that.
    pub(super) interval: u64,
    pub(super) least: u64,
    pub(super) failures: Failures,
}

impl Turn {
    /// Takes the outcome of a search, and returns the CPU whose running task is to be pushed away.
    pub(super) fn settle(&mut self, found: &SearchOutcome, idleness: Idleness) -> Option<Cpu> {
        let is_new = idleness == Idleness::NewlyIdle;
        match found {
            SearchOutcome::Tasks(_) => (self.failures.count, self.interval) = (0, self.least),
            SearchOutcome::Balance | SearchOutcome::Bound => {
                self.failures.count = 0;
                let most = if *found == SearchOutcome::Bound { MOST_BOUND.max(2 * self.least) } else { 2 * self.least };
                if !is_new && self.interval < most {
                    self.interval *= 2;
                }
            }
            SearchOutcome::Failure { source, by_number } => {
                self.failures.count = self.failures.count.saturating_add(u32::from(!is_new));
                if *by_number && !is_new && self.failures.count > self.failures.nice_tries + 2 {
                    return Some(*source);
                }
                self.interval = self.least;
            }
        }
        None
    }

    /// The task that a stopper takes off `source` for `cpu`: the first one that waits and may leave, else the running one, if that may
    /// (`active_load_balance_cpu_stop`).
    fn push(&mut self, source: Cpu, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
        let may = |task: &TaskIndex| machine.is_movable(*task) && machine.may_use(*task, cpu);
        let Some(running) = machine.running(source).filter(may) else {
            self.interval = if self.interval < 2 * self.least { 2 * self.interval } else { self.interval };
            return None;
        };
        (self.failures.count, self.interval) = (0, self.least);
        Some(machine.queue(source).find(may).unwrap_or(running))
    }
}

/// The balancing of all CPUs.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    pub(super) domains: Domains,
    turns: Vec<Vec<Turn>>,
    /// The number of the tick from which on each CPU balances (`rq->next_balance`).
    next: Vec<i64>,
    /// The length of a tick in nanoseconds.
    tick: u64,
    /// The greatest interval, in ticks: `max_load_balance_interval`, a tenth of a second for each CPU.
    most: i64,
}

impl Schedule {
    /// The schedule at the start of a run. A trace does not show when CPUs balanced last: their turns are spread over the intervals of CPUs that run a
    /// task, by their numbers.
    pub(super) fn new(machine: &Machine<'_>) -> Schedule {
        let (domains, tick) = (machine.domains(), machine.tick().max(1));
        let cpus = machine.model().cpus.len();
        let most = i64::try_from(cpus as u64 * 100 * MS / tick).unwrap_or(i64::MAX).max(1);
        let mut schedule = Schedule { domains, turns: Vec::new(), next: Vec::new(), tick, most };
        let now = schedule.number_at(machine.model().start);
        for cpu in (0..cpus as u32).map(Cpu) {
            let of_cpu = schedule.domains.of(cpu).iter().map(|(_, at)| schedule.domains.get(*at));
            let turns = of_cpu.map(|domain| {
                let least = domain.groups.iter().map(Vec::len).sum::<usize>() as u64;
                let failures = Failures { count: 0, nice_tries: nice_tries(domain) };
                let mut turn = Turn { last: now, interval: least, least, failures };
                let before = schedule.interval(&turn, true).saturating_mul(i64::from(cpu.0)) / cpus as i64;
                turn.last = now.saturating_sub(before);
                turn
            });
            let turns: Vec<Turn> = turns.collect();
            let is_busy = machine.running(cpu).is_some();
            let next = turns.iter().map(|turn| schedule.due(turn, is_busy)).min();
            schedule.turns.push(turns);
            schedule.next.push(next.unwrap_or(i64::MAX));
        }
        schedule
    }

    /// The number of the present tick.
    pub(super) fn now(&self, machine: &Machine<'_>) -> i64 {
        self.number_at(machine.now())
    }

    fn number_at(&self, instant: Ts) -> i64 {
        instant.0.div_euclid(i64::try_from(self.tick).unwrap_or(i64::MAX))
    }

    /// The number of ticks between balances (`get_sd_balance_interval`).
    fn interval(&self, turn: &Turn, is_busy: bool) -> i64 {
        let factor = if is_busy { BUSY_FACTOR } else { 1 };
        let ticks = turn.interval.saturating_mul(factor).saturating_mul(MS).div_ceil(self.tick);
        (i64::try_from(ticks).unwrap_or(i64::MAX) - i64::from(is_busy)).clamp(1, self.most)
    }

    /// The number of the tick at which a domain is balanced next.
    fn due(&self, turn: &Turn, is_busy: bool) -> i64 {
        turn.last.saturating_add(self.interval(turn, is_busy))
    }

    /// Whether `cpu` is to balance at this tick or has missed to.
    pub(super) fn is_due(&self, cpu: Cpu, now: i64) -> bool {
        self.next.get(cpu.index()).is_some_and(|next| *next <= now)
    }

    /// The number of the tick from which on `cpu` balances.
    pub(super) fn next_of(&self, cpu: Cpu) -> i64 {
        self.next.get(cpu.index()).copied().unwrap_or(i64::MAX)
    }

    /// A CPU that goes idle comes to one of its domains: it balances that at the intervals of idle CPUs (`update_next_balance`).
    pub(super) fn goes_idle(&mut self, cpu: Cpu, nth: usize) {
        if let Some(turn) = self.turns.get(cpu.index()).and_then(|turns| turns.get(nth)) {
            let next = self.due(turn, false);
            self.next[cpu.index()] = self.next[cpu.index()].min(next);
        }
    }

    /// Searches a domain for a CPU that goes idle.
    pub(super) fn search_newly_idle(&mut self, cpu: Cpu, nth: usize, machine: &Machine<'_>) -> Option<TaskIndex> {
        let (_, at) = *self.domains.of(cpu).get(nth)?;
        let seeker = Seeker { domain: self.domains.get(at), cpu, idleness: Idleness::NewlyIdle };
        let turn = self.turns.get_mut(cpu.index())?.get_mut(nth)?;
        let found = seeker.search(turn.failures, machine);
        turn.settle(&found, Idleness::NewlyIdle);
        if let SearchOutcome::Tasks(tasks) = found { tasks.first().copied() } else { None }
    }

    /// Whether it is this CPU that balances the domain for its group: the first one that idles, on an idle core if there is one, or the first one
    /// (`should_we_balance`).
    fn is_chosen(&self, domain: &Domain, cpu: Cpu, machine: &Machine<'_>) -> bool {
        let Some(group) = domain.groups.iter().find(|group| group.contains(&cpu)) else { return false };
        machine.look(group.len() as u64);
        let idle = || group.iter().filter(|other| machine.is_free(**other));
        let whole = idle().find(|other| domain.is_core || self.core_idles(**other, machine));
        whole.or_else(|| idle().next()).or(group.first()) == Some(&cpu)
    }

    fn core_idles(&self, cpu: Cpu, machine: &Machine<'_>) -> bool {
        let core = self.domains.of(cpu).first().map(|(_, at)| self.domains.get(*at)).filter(|domain| domain.is_core);
        core.is_none_or(|core| core.groups.iter().flatten().all(|sibling| machine.is_free(*sibling)))
    }
}

/// The number of failed searches from which on hot tasks leave (`sd_init`).
fn nice_tries(domain: &Domain) -> u32 {
    match domain {
        Domain { is_core: true, .. } => 0,
        Domain { most_between_nodes: Some(_), .. } => 2,
        _ => 1,
    }
}

/// Tasks that come to a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Coming {
    pub(super) tasks: Vec<TaskIndex>,
    pub(super) to: Cpu,
}

/// The balancing of the domains of a CPU, one after the other (`sched_balance_domains`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    pub(super) cpu: Cpu,
    /// The next domain of the CPU.
    nth: usize,
    /// The number of the tick at which it balances next, as far as it is known.
    next: i64,
}

impl Walk {
    pub(super) fn new(cpu: Cpu) -> Walk {
        Walk { cpu, nth: 0, next: i64::MAX }
    }

    /// Goes on until tasks come to the CPU; nothing once all of its domains are balanced. The tasks must have come before the next call.
    pub(super) fn go_on(&mut self, schedule: &mut Schedule, machine: &Machine<'_>) -> Option<Coming> {
        let (cpu, now) = (self.cpu, schedule.now(machine));
        while let Some((_, at)) = schedule.domains.of(cpu).get(self.nth).copied() {
            let nth = self.nth;
            self.nth += 1;
            let idleness = if machine.is_free(cpu) { Idleness::Idle } else { Idleness::Busy };
            let mut turn = schedule.turns[cpu.index()][nth];
            let mut coming = None;
            if now >= schedule.due(&turn, idleness == Idleness::Busy) {
                let domain = schedule.domains.get(at);
                let found = if schedule.is_chosen(domain, cpu, machine) {
                    Seeker { domain, cpu, idleness }.search(turn.failures, machine)
                } else {
                    // Another CPU of the group balances this domain, and those above.
                    self.nth = usize::MAX;
                    SearchOutcome::Balance
                };
                let pushed = turn.settle(&found, idleness).and_then(|source| turn.push(source, cpu, machine));
                let tasks = if let SearchOutcome::Tasks(tasks) = found { tasks } else { pushed.into_iter().collect() };
                coming = (!tasks.is_empty()).then_some(Coming { tasks, to: cpu });
                turn.last = now;
                schedule.turns[cpu.index()][nth] = turn;
            }
            let is_busy = coming.is_some() || idleness == Idleness::Busy;
            self.next = self.next.min(schedule.due(&turn, is_busy));
            schedule.next[cpu.index()] = self.next;
            if coming.is_some() {
                return coming;
            }
        }
        None
    }
}
