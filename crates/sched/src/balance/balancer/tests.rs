use super::*;
use crate::event::Pid;
use crate::event::probe::AtMost4s;

fn event(probe: Probe) -> SchedEvent {
    SchedEvent { ts: Ts(5), cpu: Cpu(3), pid: Pid(7), flags: 0, kind: EventKind::Probe { id: 1, probe } }
}

fn attempts(probes: &[Probe]) -> Vec<Attempt> {
    let mut attempts = Attempts::default();
    probes.iter().filter_map(|probe| attempts.event(&event(*probe))).collect()
}

const MC: [u8; 2] = *b"MC";
const FOUND: Probe = Probe::Searched { found: true, imbalance: Some(2), how: Some(2) };
const NOT_FOUND: Probe = Probe::Searched { found: false, imbalance: None, how: None };
const RUNS: Examined = Examined { on_cpu: Some(true), bound: Some(false) };

fn end(balancing: Balancing, moved: u32) -> Probe {
    Probe::AttemptEnds { balancing, domain: Comm::new(&MC), moved }
}

#[test]
fn an_attempt_ends_where_its_probes_show() {
    let outcomes = |probes: &[Probe]| attempts(probes).iter().map(|attempt| attempt.outcome).collect::<Vec<_>>();
    let refused = Probe::Examined(RUNS, false);
    let end_of = end(Balancing::Idle, 0);
    assert_eq!(outcomes(&[end_of]), [AttemptOutcome::NotChosen]);
    assert_eq!(outcomes(&[NOT_FOUND, end_of]), [AttemptOutcome::NoBusiestGroup]);
    assert_eq!(outcomes(&[FOUND, end_of]), [AttemptOutcome::NoTaskExamined]);
    let twice = outcomes(&[FOUND, refused, end_of, end_of]);
    assert_eq!(twice, [AttemptOutcome::AllRefused, AttemptOutcome::NotChosen]);
    let moved = [FOUND, refused, Probe::Examined(RUNS, true), end(Balancing::Idle, 1)];
    let found = attempts(&moved);
    assert_eq!((found[0].outcome, found[0].imbalance), (AttemptOutcome::Moved, Some((2, Some(2)))));
    assert_eq!(found[0].verdicts, Verdicts { movable: 1, running: 1, ..Verdicts::default() });
    let lost = SchedEvent { kind: EventKind::Lost { count: None }, ..event(FOUND) };
    let mut attempts = Attempts::default();
    assert_eq!([event(FOUND), lost].map(|event| attempts.event(&event)), [None, None]);
    let after = attempts.event(&event(end_of)).expect("an attempt");
    assert_eq!(after.outcome, AttemptOutcome::NotChosen, "the part before the gap does not count");
}

#[test]
fn older_kernels_have_the_arguments_on_the_entry() {
    let bound = Examined { on_cpu: Some(false), bound: Some(true) };
    let found = attempts(&[
        Probe::AttemptBegins(Balancing::Busy, Comm::new(b"NUMA")),
        FOUND,
        Probe::Examines(bound),
        Probe::Examined(Examined::default(), false),
        Probe::AttemptEnds { balancing: Balancing::Unknown, domain: Comm::EMPTY, moved: 0 },
    ]);
    assert_eq!(found.len(), 1);
    let Attempt { balancing, domain, outcome, verdicts, .. } = found[0];
    assert_eq!((balancing, domain, outcome), (Balancing::Busy, Comm::new(b"NUMA"), AttemptOutcome::AllRefused));
    assert_eq!(verdicts, Verdicts { one_cpu: 1, ..Verdicts::default() });
}

fn queue(overloaded: bool, avg_idle: u64, cost: u64) -> RunQueue {
    RunQueue {
        overloaded: Some(overloaded),
        pending: Some(false),
        avg_idle: Some(AtMost4s::of(avg_idle)),
        cost: Some(AtMost4s::of(cost)),
    }
}

/// The outcome at the switch behind these records.
fn outcome(has_attempts: bool, probes: &[Probe]) -> NewIdleOutcome {
    outcome_of(Attempts::default(), has_attempts, probes)
}

fn outcome_of(mut attempts: Attempts, has_attempts: bool, probes: &[Probe]) -> NewIdleOutcome {
    let mut newidles = NewIdles::new(has_attempts);
    for probe in probes {
        let attempt = attempts.event(&event(*probe));
        newidles.event(&event(*probe), attempt.as_ref());
    }
    let found = newidles.switch(Cpu(3)).outcome;
    assert_eq!(newidles.switch(Cpu(3)).outcome, NewIdleOutcome::Unknown, "a switch later nothing is known");
    found
}

/// Without the probe on verdicts no record of an examined task is not a record of none.
#[test]
fn nothing_shows_whether_a_task_was_examined_without_verdicts() {
    let new_idle = end(Balancing::NewIdle, 0);
    let of = |has_verdicts: bool, probes: &[Probe]| outcome_of(Attempts::new(has_verdicts), true, probes);
    assert_eq!(of(true, &[FOUND, new_idle]), NewIdleOutcome::NoTaskExamined);
    assert_eq!(of(false, &[FOUND, new_idle]), NewIdleOutcome::NoneMoved);
    assert_eq!(of(false, &[NOT_FOUND, new_idle]), NewIdleOutcome::NoBusiestGroup);
    assert_eq!(of(false, &[FOUND, end(Balancing::NewIdle, 1)]), NewIdleOutcome::Pulled);
    assert!(NewIdleOutcome::NoneMoved.is_attempted());
}

#[test]
fn new_idle_balancing_is_gated_or_comes_as_far_as_its_best_attempt() {
    let begins = |queue| Probe::NewIdleBegins(queue);
    let pending = RunQueue { pending: Some(true), ..queue(false, 1, 9) };
    assert_eq!(outcome(true, &[begins(pending)]), NewIdleOutcome::WakeupPending);
    assert_eq!(outcome(true, &[begins(queue(false, 1, 9))]), NewIdleOutcome::NotOverloaded);
    assert_eq!(outcome(true, &[begins(queue(true, 1, 9))]), NewIdleOutcome::TooCostly);
    assert_eq!(outcome(true, &[begins(queue(true, 9, 9))]), NewIdleOutcome::NotAttempted);
    assert_eq!(outcome(false, &[begins(queue(true, 9, 9))]), NewIdleOutcome::Unknown);
    assert_eq!(outcome(true, &[]), NewIdleOutcome::Unknown);
    // Where the function is inlined, the state on going idle stands in.
    assert_eq!(outcome(true, &[Probe::GoesIdle(queue(true, 1, 9))]), NewIdleOutcome::TooCostly);
    let (new_idle, idle) = (end(Balancing::NewIdle, 0), end(Balancing::Idle, 0));
    let tried = [begins(queue(true, 9, 1)), FOUND, Probe::Examined(RUNS, false), new_idle, NOT_FOUND, new_idle];
    assert_eq!(outcome(true, &tried), NewIdleOutcome::AllRefused);
    assert_eq!(outcome(true, &[begins(queue(true, 9, 1)), FOUND, idle]), NewIdleOutcome::NotAttempted);
    let again = [FOUND, new_idle, begins(queue(true, 1, 9))];
    assert_eq!(outcome(true, &again), NewIdleOutcome::NoTaskExamined, "the balance that came furthest decides");
    let gates = |first, second| outcome(true, &[begins(first), begins(second)]);
    assert_eq!(gates(queue(true, 1, 9), pending), NewIdleOutcome::TooCostly);
    assert_eq!(gates(pending, queue(false, 1, 9)), NewIdleOutcome::NotOverloaded);
    assert_eq!(gates(queue(true, 9, 9), queue(true, 1, 9)), NewIdleOutcome::NotAttempted, "one was worth its cost");
}
