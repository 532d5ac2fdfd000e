//! A specification in plain sentences, from the specification alone.

use crate::spec::{
    Background, ColorSpec, Condition, IntervalSource, IntervalSpec, LaneKind, Order, Placed, PointSpec, Quantity,
    SeriesSpec, Spec,
};

/// Describes the figure of this specification, in a sentence or two for each of its parts.
///
/// ```
/// let spec = plot::Spec::parse(r#"
/// [[interval]]
/// name = "contention"
/// begin = "lock:contention_begin"
/// end = "lock:contention_end"
/// match = ["$pid", "lock_addr"]
/// color = "red"
/// "#).expect("a specification");
/// assert_eq!(plot::explain(&spec), "\
/// One row per CPU, with the running tasks in pale grey behind.
/// contention: a red bar from each lock:contention_begin to the next lock:contention_end of the same task and lock_addr.
/// ");
/// ```
pub fn explain(spec: &Spec) -> String {
    let mut sentences = Vec::new();
    sentences.extend(spec.about.clone());
    sentences.push(lanes(spec));
    sentences.extend(spec.intervals.iter().map(interval));
    sentences.extend(spec.points.iter().map(point));
    sentences.extend(spec.series.iter().map(series));
    if let Some(record) = &spec.record {
        sentences.push(format!("To record its events: {record}"));
    }
    let mut text: String = sentences.iter().map(|sentence| format!("{sentence}\n")).collect();
    // Constants, regular expressions and fields are in it as they were written.
    sched::event::escape_lines(&mut text, 0);
    text
}

fn lanes(spec: &Spec) -> String {
    let lanes = &spec.lanes;
    let (row, order) = match &lanes.by {
        LaneKind::Cpu => ("CPU".to_owned(), "by number"),
        LaneKind::Task => ("task".to_owned(), "by PID"),
        LaneKind::Field(field) => (format!("value of {}", field.text), "by value"),
    };
    let is_cpu = lanes.by == LaneKind::Cpu;
    let order = match lanes.order {
        Order::Name if is_cpu => String::new(),
        Order::Name => format!(", {order}"),
        Order::Time => ", the row with the longest bars in all first".to_owned(),
        Order::First => ", in the order of appearance".to_owned(),
    };
    let behind = match lanes.background {
        _ if !is_cpu => "",
        Background::Grey => ", with the running tasks in pale grey behind",
        Background::Color => ", with the running tasks in their colours behind",
        Background::None => "",
    };
    let only = lanes.only.as_ref().map_or_else(String::new, |only| format!(" Only where {}.", only.expr));
    format!("One row per {row}{order}{behind}.{only}")
}

fn condition(condition: Option<&Condition>) -> String {
    condition.map_or_else(String::new, |condition| format!(" where {}", condition.expr))
}

/// A value in a sentence.
fn value(name: &str) -> String {
    match name {
        "$cpu" => "CPU".to_owned(),
        "$pid" => "task".to_owned(),
        "$command" => "command".to_owned(),
        "$event" => "event name".to_owned(),
        "$any" => "text at the *".to_owned(),
        "$syscall" => "name of the system call".to_owned(),
        name => name.to_owned(),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The colour in front of a noun, and behind the sentence.
fn color(color: &ColorSpec) -> (String, String) {
    match color {
        ColorSpec::Next => (String::new(), String::new()),
        ColorSpec::Fixed(_, name) => (format!("{name} "), String::new()),
        ColorSpec::By(by) => (String::new(), format!(", coloured by {}", value(&by.text))),
    }
}

fn label(label: Option<&Placed>) -> String {
    label.map_or_else(String::new, |label| format!(", labelled with its {}", value(&label.text)))
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn optional(is_optional: bool) -> &'static str {
    if is_optional { " Left out if the trace has no such events." } else { "" }
}

fn interval(interval: &IntervalSpec) -> String {
    let (front, behind) = color(&interval.color);
    let look = format!("{behind}{}", label(interval.label.as_ref()));
    let first = condition(interval.condition.as_ref());
    let bar = format!("{front}bar");
    let article = article(&bar);
    let sentence = match &interval.source {
        IntervalSource::Pair { begin, end, keys, end_condition } => {
            let (alike, apart): (Vec<_>, Vec<_>) = keys.iter().partition(|key| key.begin.text == key.end.text);
            let mut same: Vec<String> = alike.iter().map(|key| value(&key.begin.text)).collect();
            same.extend(end.text.contains('*').then(|| "text at the *".to_owned()));
            let same = if same.is_empty() { String::new() } else { format!(" of the same {}", list(&same)) };
            let last = condition(end_condition.as_ref());
            let apart: Vec<String> = apart
                .iter()
                .map(|key| format!("{} is the {} of its beginning", value(&key.end.text), value(&key.begin.text)))
                .collect();
            let apart = if apart.is_empty() { String::new() } else { format!(" whose {}", list(&apart)) };
            format!("{article} {bar} from each {}{first} to the next {}{last}{same}{apart}", begin.text, end.text)
        }
        IntervalSource::Lone { event, duration, unit } => format!(
            "{article} {bar} that ends at each {}{first}, as long as its {} in {}",
            event.text,
            value(&duration.text),
            unit.words()
        ),
    };
    format!("{}: {sentence}{look}.{}", interval.name, optional(interval.optional))
}

fn point(point: &PointSpec) -> String {
    let (front, behind) = color(&point.color);
    let marker = format!("{front}marker");
    let look = format!("{behind}{}", label(point.label.as_ref()));
    let place = condition(point.condition.as_ref());
    let article = article(&marker);
    format!("{}: {article} {marker} at each {}{place}{look}.{}", point.name, point.event.text, optional(point.optional))
}

fn series(series: &SeriesSpec) -> String {
    let by = series.by.as_ref().map_or_else(String::new, |by| format!(", a line for each {}", value(&by.text)));
    let unit = series.unit.as_ref().map_or_else(String::new, |unit| format!(" in {unit}"));
    let place = condition(series.condition.as_ref());
    let sentence = match &series.quantity {
        Quantity::Value { event, value: name, hold } => {
            let hold = if *hold { ", which holds until the next one" } else { "" };
            format!("the {}{unit} of each {}{place}{hold}", value(&name.text), event.text)
        }
        Quantity::Rate { event } => format!("the number of {}{place} per second", event.text),
        Quantity::Open { interval } => format!("the number of {} intervals open at a time", interval.text),
    };
    format!("{}: under the rows, {sentence}{by}.{}", series.name, optional(series.optional))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_sentence() {
        let spec = Spec::parse(
            r#"
            about = "Locks and work."
            record = "trace-cmd record -e lock"
            [lanes]
            by = "task"
            order = "time"
            only = "$pid > 1 and $command !~ 'kworker'"
            [[interval]]
            name = "wait"
            begin = "lock:*_begin"
            end = "lock:*_end"
            match = ["$pid", "lock_addr"]
            where = "flags & 1 != 0"
            end_where = "ret == 0"
            color_by = "flags"
            label = "$command"
            optional = true
            [[interval]]
            name = "osnoise"
            event = "osnoise:irq_noise"
            duration = "duration"
            color = "orange"
            [[point]]
            event = "sched:sched_move_numa"
            color = "blue"
            [[series]]
            event = "power:cpu_frequency"
            value = "state"
            by = "cpu_id"
            unit = "kHz"
            hold = true
            [[series]]
            open = "wait"
            "#,
        );
        let expected = "\
Locks and work.
One row per task, the row with the longest bars in all first. Only where $pid is more than 1 and $command does not match /kworker/.
wait: a bar from each lock:*_begin where flags & 1 is not 0 to the next lock:*_end where ret is 0 of the same task, lock_addr and text at the *, coloured by flags, labelled with its command. Left out if the trace has no such events.
osnoise: an orange bar that ends at each osnoise:irq_noise, as long as its duration in nanoseconds.
sched_move_numa: a blue marker at each sched:sched_move_numa.
state: under the rows, the state in kHz of each power:cpu_frequency, which holds until the next one, a line for each cpu_id.
open wait: under the rows, the number of wait intervals open at a time.
To record its events: trace-cmd record -e lock
";
        assert_eq!(explain(&spec.expect("a specification")), expected);
    }
}
