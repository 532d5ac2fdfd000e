use super::*;
use crate::before::Before;
use crate::catalog::{Catalog, EventInfo};
use crate::expr::Type;
use crate::spec::Spec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Made {
    ts: i64,
    cpu: u32,
    pid: i32,
    id: u16,
    fields: Vec<(&'static str, i128)>,
    is_after_loss: bool,
}

impl Event for Made {
    fn ts(&self) -> Ts {
        Ts(self.ts)
    }
    fn cpu(&self) -> Cpu {
        Cpu(self.cpu)
    }
    fn pid(&self) -> Pid {
        Pid(self.pid)
    }
    fn id(&self) -> u16 {
        self.id
    }
    fn name(&self) -> &str {
        ["", "begin", "end", "done", "freq"][usize::from(self.id)]
    }
    fn command(&self) -> String {
        format!("task{}", self.pid)
    }
    fn field(&self, name: &str) -> Option<EventValue> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, n)| EventValue::Number(*n))
    }
    fn text(&self) -> String {
        String::new()
    }
    fn is_after_loss(&self) -> bool {
        self.is_after_loss
    }
}

fn catalog() -> Catalog {
    let event = |id, name: &str, fields: &[&str]| EventInfo {
        id,
        name: name.to_owned(),
        count: 9,
        fields: fields.iter().map(|field| ((*field).to_owned(), Type::Number)).collect(),
        is_text: false,
    };
    let all = [
        event(1, "a:begin", &["id", "vec"]),
        event(2, "a:end", &["id"]),
        event(3, "a:done", &["took"]),
        event(4, "a:freq", &["hz", "of"]),
    ];
    Catalog { events: all.to_vec(), machine: None }
}

fn at(ts: i64, cpu: u32, pid: i32, id: u16, fields: &[(&'static str, i128)]) -> Made {
    Made { ts, cpu, pid, id, fields: fields.to_vec(), is_after_loss: false }
}

/// Start, length, task and value of an interval.
type Row = (i64, u64, i32, Option<String>);

fn run(source: &str, events: &[Made]) -> (PlotReport, Vec<Row>) {
    run_from(source, events, &[0])
}

/// The same over a window from the last of these instants on, with what goes on at each of them carried over it.
fn run_from(source: &str, events: &[Made], instants: &[i64]) -> (PlotReport, Vec<Row>) {
    let plan = Plan::new(&Spec::parse(source).expect("a specification"), &catalog()).expect("a plan");
    let cpus = vec![(Cpu(0), None), (Cpu(1), None)];
    let mut carried: Vec<Carried<Made>> = Vec::new();
    let (mut rest, mut from) = (events, 0);
    for instant in instants {
        let mut before = Before::new(&plan, &cpus);
        carried.into_iter().for_each(|c| before.resume(c.part, &c.event.clone(), c.event));
        let (early, later) = rest.split_at(rest.partition_point(|event| event.ts < *instant));
        early.iter().for_each(|event| before.event(event, || event.clone()));
        carried = before.finish();
        (rest, from) = (later, *instant);
    }
    let mut plot = Plot::new(&plan, Window { from: Ts(from), to: Ts(1000), cpus }, &carried);
    let mut rows = Vec::new();
    for event in rest {
        plot.event(event, &mut |found| {
            rows.push((found.start.0, found.length.0, found.pid.0, found.value.map(str::to_owned)));
        });
    }
    (plot.finish(), rows)
}

const PAIR: &str = "[[interval]]\nname = 'x'\nbegin = 'a:begin'\nend = 'a:end'\nmatch = ['$cpu', 'id']\n";

#[test]
fn intervals_match_nest_and_are_counted() {
    let events = [
        at(5, 0, 7, 2, &[("id", 1)]),
        at(10, 0, 7, 1, &[("id", 1), ("vec", 3)]),
        at(20, 1, 8, 1, &[("id", 1), ("vec", 4)]),
        at(30, 0, 7, 1, &[("id", 1), ("vec", 3)]),
        at(40, 0, 7, 2, &[("id", 1)]),
        at(60, 0, 7, 2, &[("id", 1)]),
        at(90, 1, 9, 2, &[("id", 2)]),
        at(100, 1, 9, 2, &[("id", 1)]),
        at(900, 0, 7, 1, &[("id", 5), ("vec", 4)]),
        // On a CPU that is not shown.
        at(910, 2, 7, 1, &[("id", 1), ("vec", 4)]),
    ];
    let (report, rows) = run(&format!("{PAIR}color_by = 'vec'\n[[series]]\nopen = 'x'\n"), &events);
    let value = |n: &str| Some(n.to_owned());
    assert_eq!(rows, [(30, 10, 7, value("3")), (10, 50, 7, value("3")), (20, 80, 8, value("4"))]);
    let x = &report.intervals[0];
    assert_eq!((x.count, x.total_ns, x.unended, x.unended_ns, x.unbegun, x.lost), (3, Dur(140), 1, Dur(100), 2, 0));
    assert!((x.share_percent - 7.0).abs() < 1e-9, "of two CPUs: {}", x.share_percent);
    let by: Vec<_> = x.by.iter().map(|v| (v.value.as_str(), v.count, v.total_ns)).collect();
    assert_eq!(by, [("4", 1, Some(Dur(80))), ("3", 2, Some(Dur(60)))]);
    let open = &report.series[0].lines[0];
    // 10 to 20 one, to 30 two, to 40 three, to 60 two, to 100 one, from 900 one.
    let mean = (10.0 + 20.0 + 30.0 + 40.0 + 40.0 + 100.0) / 1000.0;
    assert!((open.mean.expect("a mean") - mean).abs() < 1e-9 && open.max == Some(3.0), "{open:?}");
}

#[test]
fn losses_end_what_may_have_ended() {
    let lossy = |by: &str| {
        let mut events = vec![
            at(10, 0, 7, 1, &[("id", 1), ("vec", 3)]),
            at(20, 1, 8, 1, &[("id", 2), ("vec", 3)]),
            at(50, 0, 7, 3, &[("took", 5)]),
            at(60, 0, 7, 2, &[("id", 1)]),
            at(70, 1, 7, 2, &[("id", 2)]),
        ];
        events[2].is_after_loss = true;
        let x = run(&PAIR.replace("$cpu", by), &events).0.intervals[0].clone();
        (x.count, x.lost, x.unbegun)
    };
    assert_eq!(lossy("$cpu"), (1, 1, 1));
    assert_eq!(lossy("id"), (0, 2, 2));
}

#[test]
fn conditions_durations_points_and_values() {
    let source = format!(
        "{PAIR}where = 'vec != 3'\n[[interval]]\nname = 'done'\nevent = 'a:done'\nduration = 'took'\nunit = 'us'\n\
         [[point]]\nevent = 'a:begin'\ncolor_by = '$command'\n[[series]]\nevent = 'a:freq'\nvalue = 'hz'\nby = 'of'\nhold = true\n\
         [lanes]\nonly = '$pid != 9'\n"
    );
    let events = [
        at(10, 0, 7, 1, &[("id", 1), ("vec", 3)]),
        at(20, 0, 7, 1, &[("id", 2), ("vec", 4)]),
        at(30, 0, 9, 1, &[("id", 3), ("vec", 4)]),
        at(40, 0, 7, 2, &[("id", 1)]),
        at(50, 0, 7, 2, &[("id", 2)]),
        at(60, 1, 8, 3, &[("took", 2)]),
        at(500, 1, 8, 4, &[("hz", 100), ("of", 0)]),
        at(750, 1, 8, 4, &[("hz", 300), ("of", 0)]),
    ];
    let (report, rows) = run(&source, &events);
    assert_eq!(rows, [(20, 30, 7, None), (60 - 2000, 2000, 8, None)]);
    assert_eq!((report.intervals[0].unbegun, report.intervals[1].max_ns), (1, Some(Dur(2000))));
    let points: Vec<_> = report.points[0].by.iter().map(|v| (v.value.as_str(), v.count)).collect();
    assert_eq!((report.points[0].count, points), (2, vec![("task7", 2)]));
    let line = &report.series[0].lines[0];
    assert_eq!((line.by.as_deref(), line.count, line.mean), (Some("0"), 2, Some(200.0)));
    let text = crate::text(&report);
    assert!(text.contains("done") && text.contains("1 without a beginning"), "{text}");
}

#[test]
fn tasks_have_lanes_in_order_of_their_time() {
    let events = [
        at(10, 0, 7, 1, &[("id", 1), ("vec", 3)]),
        at(20, 0, 7, 2, &[("id", 1)]),
        at(30, 0, 8, 1, &[("id", 1), ("vec", 3)]),
        at(90, 0, 8, 2, &[("id", 1)]),
    ];
    let (report, _) = run(&format!("[lanes]\nby = 'task'\norder = 'time'\n{PAIR}"), &events);
    let lanes: Vec<_> = report.lanes.iter().map(|(_, lane)| (lane.name.as_str(), lane.total_ns)).collect();
    assert_eq!(lanes, [("task8", 60), ("task7", 10)]);
    assert_eq!(report.share_of, "window");
}

/// A million intervals on eight CPUs make a page whose size depends on its columns.
#[test]
fn a_million_intervals_make_a_small_page() {
    let spec = Spec::parse(&format!("{PAIR}color_by = 'vec'\n")).expect("a specification");
    let plan = Plan::new(&spec, &catalog()).expect("a plan");
    let cpus: Vec<(Cpu, Option<u32>)> = (0..8).map(|cpu| (Cpu(cpu), None)).collect();
    let (from, to) = (Ts(0), Ts(1_000_000_000));
    let mut plot = Plot::new::<Made>(&plan, Window { from, to, cpus: cpus.clone() }, &[]);
    let mut event = at(0, 0, 7, 1, &[("id", 1), ("vec", 0)]);
    for n in 0..125_000_i64 {
        for cpu in 0..8 {
            // Busy for an eighth to seven eighths of each turn.
            let (start, length) = (n * 8000 + i64::from(cpu), 1000 * (1 + (n + i64::from(cpu)) % 7));
            for (id, ts) in [(1, start), (2, start + length)] {
                (event.id, event.ts, event.cpu) = (id, ts, cpu);
                event.fields[1].1 = i128::from(n % 5);
                plot.event(&event, &mut |_| {});
            }
        }
    }
    let report = plot.finish();
    let ours = &report.intervals[0];
    assert_eq!((ours.count, ours.undrawn, ours.by.len()), (1_000_000, 0, 5));
    let options = crate::Options { zero: from, cpus, all_cpus: Vec::new(), group_name: String::new() };
    let figure = crate::figure(&report, &spec, &options, &timeline::page::Heading::default(), None);
    let bytes = draw::pdf(&[figure]).len();
    assert!(bytes < 70_000, "{bytes} bytes");
}

#[test]
fn what_goes_on_when_a_window_begins_is_in_it() {
    let events = [
        at(10, 0, 7, 1, &[("id", 1), ("vec", 3)]),
        at(20, 1, 8, 1, &[("id", 2), ("vec", 4)]),
        at(30, 1, 8, 2, &[("id", 2)]),
        at(40, 0, 7, 4, &[("hz", 9), ("of", 1)]),
        at(700, 0, 7, 2, &[("id", 1)]),
        at(800, 0, 7, 4, &[("hz", 3), ("of", 1)]),
    ];
    let series =
        "[[series]]\nopen = 'x'\n[[series]]\nname = 'f'\nevent = 'a:freq'\nvalue = 'hz'\nby = 'of'\nhold = true\n";
    let (report, rows) = run_from(&format!("[lanes]\nby = 'task'\n{PAIR}color_by = 'vec'\n{series}"), &events, &[500]);
    assert_eq!(rows, [(10, 690, 7, Some("3".to_owned()))]);
    let x = &report.intervals[0];
    assert_eq!((x.count, x.total_ns, x.unbegun, x.undrawn), (1, Dur(690), 0, 0));
    // A length counts where it ends; the share is that of the window, 200 of 500.
    assert!((x.share_percent - 40.0).abs() < 1e-9, "{}", x.share_percent);
    let lanes: Vec<_> = report.lanes.iter().map(|(_, lane)| (lane.name.as_str(), lane.total_ns)).collect();
    assert_eq!(lanes, [("task7", 200)], "a task whose intervals have ended has no lane");
    let open = &report.series[0].lines[0];
    assert_eq!((open.count, open.min, open.max), (2, Some(0.0), Some(1.0)));
    assert!((open.mean.expect("known") - 0.4).abs() < 1e-9);
    let held = &report.series[1].lines[0];
    assert!((held.mean.expect("known") - (9.0 * 300.0 + 3.0 * 200.0) / 500.0).abs() < 1e-9);
}

fn made() -> impl Strategy<Value = Vec<Made>> {
    let event = (0..1000_i64, 0..3_u32, 1..5_u16, 0..3_i128, 0..12_u8);
    proptest::collection::vec(event, 0..80).prop_map(|mut events| {
        events.sort_by_key(|event| event.0);
        let made = |(ts, cpu, id, value, loss): (i64, u32, u16, i128, u8)| Made {
            is_after_loss: loss == 0,
            ..at(ts, cpu, 7, id, &[("id", value), ("vec", value), ("took", value), ("hz", value), ("of", value)])
        };
        events.into_iter().map(made).collect()
    })
}

proptest! {
    #[test]
    fn a_window_has_the_intervals_of_the_whole_that_end_in_it(
        events in made(),
        mut instants in proptest::collection::vec(0..1000_i64, 1..4),
        keys in prop_oneof![Just("'$cpu', 'id'"), Just("'id'")],
    ) {
        instants.sort_unstable();
        let from = *instants.last().expect("one");
        let source = format!(
            "[[interval]]\nname = 'x'\nbegin = 'a:begin'\nend = 'a:end'\nmatch = [{keys}]\n\
             [[series]]\nopen = 'x'\n[[series]]\nname = 'f'\nevent = 'a:freq'\nvalue = 'hz'\nby = 'of'\nhold = true\n"
        );
        let (_, whole) = run(&source, &events);
        let (report, rows) = run_from(&source, &events, &instants);
        let expected: Vec<Row> = whole.into_iter().filter(|row| row.0 + row.1 as i64 >= from).collect();
        prop_assert_eq!(&rows, &expected);
        // However often the state is handed on.
        let (at_once, _) = run_from(&source, &events, &[from]);
        prop_assert_eq!(&report.series, &at_once.series);
        prop_assert_eq!(report.intervals[0].lost, at_once.intervals[0].lost);
    }
}
