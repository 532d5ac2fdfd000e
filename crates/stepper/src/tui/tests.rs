use super::*;
use crate::Plain;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use sched::{ChosenCpus, Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef};
use workcons::ViolationSteps;

fn task(pid: i32, name: &str) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

/// CPU 1 idles. On CPU 0 make runs and is joined by cc, which then is moved to CPU 1.
fn story() -> Vec<SchedEvent> {
    let (make, cc, idle) = (task(7, "make"), task(9, "cc"), task(0, "swapper/1"));
    let at = |ns, cpu, pid, kind| SchedEvent { ts: Ts(ns), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    vec![
        at(0, 0, 7, EventKind::Other { id: 1 }),
        at(0, 1, 0, EventKind::Other { id: 1 }),
        at(1_000, 0, 7, EventKind::Wakeup { task: cc, target: Cpu(0) }),
        at(2_000, 1, 0, EventKind::Migrate { task: cc, orig: Cpu(0), dest: Cpu(1) }),
        at(3_000, 1, 0, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: cc }),
        at(4_000, 0, 7, EventKind::Switch { prev: make, state: PrevState::asleep(1), next: task(0, "swapper/0") }),
    ]
}

struct Driver<'e> {
    app: App<'e, &'e [SchedEvent]>,
    terminal: Terminal<TestBackend>,
}

impl Driver<'_> {
    fn new(events: &[SchedEvent]) -> Driver<'_> {
        Driver::of_width(events, 72)
    }

    fn of_width(events: &[SchedEvent], width: u16) -> Driver<'_> {
        let mut replay = Replay::with(events, 2, 4, || ViolationSteps::new(&ChosenCpus::default(), None))
            .unwrap_or_else(|never| match never {});
        replay.go(0).unwrap_or_else(|never| match never {});
        let cpus = vec![(Cpu(0), Some(0)), (Cpu(1), Some(1))];
        let options =
            Options { zero: Ts(0), cpus, group_name: "node".into(), recorded: replay.recorded(), ..Options::default() };
        let parse_time: ParseTime =
            Box::new(|text| text.parse().map(Ts).map_err(|_| format!("{text:?} is not a time")));
        let app = App::new("story".into(), replay, options, Box::new(Plain), parse_time);
        Driver { app, terminal: Terminal::new(TestBackend::new(width, 9)).expect("a terminal") }
    }

    /// Presses keys, and returns the screen.
    fn press(&mut self, keys: &[KeyCode]) -> Vec<String> {
        for key in keys {
            self.app.key(KeyEvent::new(*key, KeyModifiers::NONE)).unwrap_or_else(|never| match never {});
        }
        self.terminal.draw(|frame| self.app.draw(frame)).expect("drawn");
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
        buffer.content().chunks(width).map(|cells| row(cells).trim_end().to_owned()).collect()
    }
}

fn typed(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).chain([KeyCode::Enter]).collect()
}

#[test]
fn keys_move_through_the_trace() {
    let events = story();
    let mut driver = Driver::new(&events);
    let screen = driver.press(&[]);
    assert_eq!(screen[0], "story  0.000000000 s, event 1 of 6");
    assert_eq!(screen[1], "2 CPUs: 1 busy, 1 idle; 0 tasks wait");
    assert_eq!(screen[2..6], ["node 0", "*   0  make 7             |", "node 1", "    1                     |"]);
    assert_eq!(screen[6], "next, event 1: event 1 on CPU 0, in make 7");
    assert!(screen[8].contains("q quit"));
    // To the start of the violation: cc has joined make.
    let screen = driver.press(&[KeyCode::Char('n')]);
    assert_eq!(screen[0], "story  0.000002000 s, event 4 of 6");
    assert!(screen[1].ends_with("1 task waits; work conservation is violated"));
    assert_eq!(screen[3], "*   0  make 7             | cc 9");
    assert_eq!(screen[6], "next, sched_migrate_task: cc 9 moves from CPU 0 to CPU 1; CPU 1 does it");
    // Forward and back again shows the same.
    assert_eq!(driver.press(&[KeyCode::Right, KeyCode::Right, KeyCode::Left, KeyCode::Left]), screen);
    assert_eq!(driver.press(&[KeyCode::PageDown])[0], "story  0.000004000 s, event 6 of 6");
    assert_eq!(driver.press(&[KeyCode::End])[6], "the trace ends here");
    assert_eq!(driver.press(&[KeyCode::Char('p')]), screen);
    assert!(driver.press(&[KeyCode::Char('p')])[8].contains("no violation begins before"));
}

#[test]
fn what_happens_next_may_take_two_lines() {
    let events = story();
    let mut driver = Driver::of_width(&events, 40);
    let screen = driver.press(&[KeyCode::Char('n')]);
    assert_eq!(screen[6..8], ["next, sched_migrate_task: cc 9 moves fro", "m CPU 0 to CPU 1; CPU 1 does it"]);
    let mut driver = Driver::of_width(&events, 30);
    let screen = driver.press(&[KeyCode::Char('n')]);
    assert_eq!(screen[6..8], ["next, sched_migrate_task: cc 9", " moves from CPU 0 to CPU 1; C\u{2026}"]);
}

#[test]
fn find_and_go() {
    let events = story();
    let mut driver = Driver::new(&events);
    driver.press(&[KeyCode::Char('/')]);
    assert!(driver.press(&typed("switch"))[0].ends_with("event 5 of 6"));
    driver.press(&[KeyCode::Char('/')]);
    assert!(driver.press(&[KeyCode::Enter])[0].ends_with("event 6 of 6"), "nothing typed: the same again");
    driver.press(&[KeyCode::Char('?')]);
    assert!(driver.press(&typed("cc"))[0].ends_with("event 5 of 6"));
    driver.press(&[KeyCode::Char('/')]);
    assert!(driver.press(&typed("nobody"))[8].contains("nothing that matches \"nobody\""));
    driver.press(&[KeyCode::Char('g')]);
    assert!(driver.press(&typed("1500"))[0].ends_with("event 4 of 6"));
    driver.press(&[KeyCode::Char('g')]);
    assert!(driver.press(&typed("x"))[8].contains("not a time"));
    driver.press(&[KeyCode::Char('g')]);
    assert!(driver.press(&[KeyCode::Esc])[8].contains("q quit") && !driver.app.is_done());
    driver.press(&[KeyCode::Char('q')]);
    assert!(driver.app.is_done());
}

#[test]
fn with_chosen_events_keys_go_from_one_to_the_next() {
    let events = story();
    let mut driver = Driver::new(&events);
    let placed = |event: &SchedEvent, state: &SchedState| {
        crate::tasks_of(event, state).any(|(pid, _)| pid == Pid(9)) && !matches!(event.kind, EventKind::Switch { .. })
    };
    driver.app.step_at(Box::new(placed)).unwrap_or_else(|never| match never {});
    let at = |screen: Vec<String>| (screen[0].clone(), screen[8].clone());
    let (first, _) = at(driver.press(&[]));
    assert_eq!(first, "story  0.000001000 s, event 3 of 6  (chosen events)", "it begins with the first");
    assert!(at(driver.press(&[KeyCode::Right])).0.contains("event 4 of 6"));
    let (stays, message) = at(driver.press(&[KeyCode::Right]));
    assert!(stays.contains("event 4 of 6") && message.contains("no chosen event after this"), "{stays} {message}");
    assert!(at(driver.press(&[KeyCode::Left])).0.contains("event 3 of 6"));
    assert!(at(driver.press(&[KeyCode::PageDown])).0.contains("event 4 of 6"), "as many as there are");
    assert!(at(driver.press(&[KeyCode::PageUp])).0.contains("event 3 of 6"));
    let none = |_: &SchedEvent, _: &SchedState| false;
    driver.app.step_at(Box::new(none)).unwrap_or_else(|never| match never {});
    assert!(at(driver.press(&[])).1.contains("no chosen event from here on"));
}

#[test]
fn the_cores_of_the_event_are_in_sight() {
    let idle = |cpu: u32| task(0, &format!("swapper/{cpu}"));
    let at = |ns, cpu, pid, kind| SchedEvent { ts: Ts(ns), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    let cc = task(9, "cc");
    let mut events: Vec<SchedEvent> = (0..256).map(|cpu| at(0, cpu, 0, EventKind::Other { id: 1 })).collect();
    events.extend([
        at(1_000, 200, 0, EventKind::Wakeup { task: cc, target: Cpu(200) }),
        at(2_000, 3, 0, EventKind::Migrate { task: cc, orig: Cpu(200), dest: Cpu(3) }),
        at(3_000, 3, 0, EventKind::Switch { prev: idle(3), state: PrevState::RUNNABLE, next: cc }),
    ]);
    let mut replay = Replay::with(events.as_slice(), 2, 4, || ()).unwrap_or_else(|never| match never {});
    replay.go(256).unwrap_or_else(|never| match never {});
    let cpus = (0..256).map(|cpu| (Cpu(cpu), None)).collect();
    let options = Options { zero: Ts(0), cpus, recorded: replay.recorded(), ..Options::default() };
    let app = App::new("large".into(), replay, options, Box::new(Plain), Box::new(|_| Err(String::new())));
    let mut driver = Driver { app, terminal: Terminal::new(TestBackend::new(72, 15)).expect("a terminal") };
    let marked = |screen: &[String]| -> Vec<String> {
        let lines = screen[2..12].iter().filter(|line| line.starts_with('*'));
        lines.map(|line| line.split_whitespace().nth(1).unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(marked(&driver.press(&[])), ["200"]);
    // Too far from one another: both are there.
    let screen = driver.press(&[KeyCode::Right]);
    assert_eq!(marked(&screen), ["200", "3"], "{screen:?}");
    assert!(screen[2].starts_with("* 200") && screen[3].starts_with("    3") || screen[3].starts_with("*   3"));
    assert_eq!(marked(&driver.press(&[KeyCode::Right])), ["3"]);
    // The user's own scrolling stays, until the next step.
    let scrolled = driver.press(&[KeyCode::Down; 20]);
    assert!(marked(&scrolled).is_empty() && scrolled[2].starts_with("   23"), "{scrolled:?}");
    assert_eq!(marked(&driver.press(&[KeyCode::Left, KeyCode::Right])), ["3"]);
}
