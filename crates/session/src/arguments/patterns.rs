//! Patterns of event names: `SYSTEM:NAME`, with `*` for any part.

use anyhow::{Result, bail};
use parse::{EventFormat, Trace};

/// The formats of the events that match any of the patterns, pattern by pattern. A pattern without
/// a system is one of names; one that matches nothing is refused.
pub fn formats<'t>(trace: &'t Trace, patterns: &[String]) -> Result<Vec<&'t EventFormat>> {
    let mut found: Vec<&EventFormat> = Vec::new();
    for pattern in patterns {
        let full = if pattern.contains(':') { pattern.clone() } else { format!("*:{pattern}") };
        let mut matching = trace.formats().iter().filter(|f| matches(&full, &full_name(f))).peekable();
        if matching.peek().is_none() {
            bail!("--events: no event of this trace matches {pattern:?}; `schedviz info` lists them");
        }
        for format in matching {
            if !found.iter().any(|f| (&f.system, &f.name) == (&format.system, &format.name)) {
                found.push(format);
            }
        }
    }
    Ok(found)
}

/// The events that patterns ask for.
#[derive(Default)]
pub struct AskedFormats<'t> {
    /// The formats of the events that are named, and of those that match a pattern with `*` and occur: the formats of
    /// all events of a system would fill a legend with zeroes.
    pub formats: Vec<&'t EventFormat>,
    /// The patterns with `*` that match no event that occurs.
    pub absent: Vec<String>,
}

/// Looks up the events that the patterns ask for.
pub fn asked<'t>(trace: &'t Trace, patterns: &[String]) -> Result<AskedFormats<'t>> {
    let mut asked = AskedFormats { formats: Vec::new(), absent: Vec::new() };
    for pattern in patterns {
        let mut named = formats(trace, std::slice::from_ref(pattern))?;
        if pattern.contains('*') {
            named.retain(|format| trace.occurs(format.id));
            if named.is_empty() {
                asked.absent.push(sched::event::escape(pattern.as_bytes()).into_owned());
            }
        }
        let is_new = |format: &&EventFormat, known: &[&EventFormat]| {
            !known.iter().any(|f| (&f.system, &f.name) == (&format.system, &format.name))
        };
        named.retain(|format| is_new(format, &asked.formats));
        asked.formats.extend(named);
    }
    Ok(asked)
}

/// The name of an event with its system, such as `sched:sched_switch`.
pub fn full_name(format: &EventFormat) -> String {
    format!("{}:{}", format.system, format.name)
}

/// Whether `name` matches a pattern in which `*` stands for anything.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        assert!(matches("sched:sched_switch", "sched:sched_switch"));
        assert!(matches("lb:*", "lb:pass") && matches("*:*numa", "sched:sched_move_numa") && matches("*", "a:b"));
        assert!(!matches("sched:sched_w", "sched:sched_wakeup") && !matches("lb:*x", "lb:pass"));
        assert!(!matches("a*a", "a") && matches("a*a", "aa"));
    }
}
