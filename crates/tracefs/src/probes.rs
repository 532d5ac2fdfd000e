//! Probes of a group of our own.
//!
//! Lines have the group [`GROUP`]. In the kernel the group is named after this process, so that two recordings have probes of
//! the same names, and none of another program is removed.

use crate::{Error, GROUP, Owner, PREFIX, Tracefs};
use std::collections::BTreeMap;

/// The probes that were added; they are removed when this is dropped.
#[derive(Debug)]
pub struct Probes {
    tracefs: Tracefs,
    group: String,
    names: Vec<String>,
}

/// A probe that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Line that defines the probe.
    pub line: String,
    /// The reason, as far as the kernel gives it.
    pub reason: String,
}

impl Probes {
    /// No probe yet.
    pub fn none(tracefs: &Tracefs) -> Probes {
        Probes { tracefs: tracefs.clone(), group: format!("{PREFIX}{}", Owner::this()), names: Vec::new() }
    }

    /// Adds the first of the alternatives that this kernel takes. Each is one or several lines for `dynamic_events`, such
    /// as `p:lb/detach_task detach_task pid=+2432($arg1):s32`, and is taken wholly or not at all. If none is taken, the
    /// last refusal is returned.
    pub fn add_any(&mut self, alternatives: &[Vec<String>]) -> Result<Option<Refused>, Error> {
        let mut refused = None;
        for lines in alternatives {
            let before = self.names.len();
            refused = None;
            for line in lines {
                refused = self.add(line)?;
                if refused.is_some() {
                    break;
                }
            }
            if refused.is_none() {
                return Ok(None);
            }
            let partly = self.names.split_off(before);
            remove(&self.tracefs, &self.group, &partly)?;
        }
        Ok(refused)
    }

    /// Adds one probe.
    fn add(&mut self, line: &str) -> Result<Option<Refused>, Error> {
        let refused = |reason: String| Some(Refused { line: line.to_owned(), reason });
        let Some((GROUP, name)) = group_and_name(line) else {
            return Ok(refused(format!("not in the group {GROUP}")));
        };
        let log = self.tracefs.errors();
        let named = line.replacen(&format!(":{GROUP}/"), &format!(":{}/", self.group), 1);
        match self.tracefs.write(&self.tracefs.probe_file(), &named, true) {
            Ok(()) => self.names.push(name.to_owned()),
            Err(denied @ Error::Denied { .. }) => return Err(denied),
            Err(error) => return Ok(refused(reason(&log, &self.tracefs.errors(), &error))),
        }
        Ok(None)
    }

    /// The group in the kernel.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The names of the probes in the group.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The hits that the kernel did not record, by probe, since the probes were added; probes without any are left out. The kernel runs no probe
    /// within another one's handler: hits of an interrupt that arrives meanwhile have no record.
    pub fn missed(&self) -> BTreeMap<String, u64> {
        if self.names.is_empty() {
            return BTreeMap::new();
        }
        let read = |file: &str| std::fs::read_to_string(self.tracefs.join(file)).unwrap_or_default();
        missed(&self.group, &read("kprobe_events"), &read("kprobe_profile"))
    }

    /// Removes them. No instance may use them any more.
    pub fn remove(mut self) -> Result<(), Error> {
        let names = std::mem::take(&mut self.names);
        remove(&self.tracefs, &self.group, &names)
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        // A drop has no result; --clean finds what stayed.
        let _ = remove(&self.tracefs, &self.group, &self.names);
    }
}

/// Removes probes of a group by name; all that can be removed are, whatever becomes of the others.
pub(crate) fn remove(tracefs: &Tracefs, group: &str, names: &[String]) -> Result<(), Error> {
    let mut result = Ok(());
    for name in names {
        let removed = if tracefs.is_plain {
            remove_from_plain(tracefs, group, name)
        } else {
            tracefs.write(&tracefs.probe_file(), &format!("-:{group}/{name}"), true)
        };
        result = result.and(removed);
    }
    result
}

/// Removes the probe's line from `kprobe_events` in a folder that stands in for tracefs, as the kernel does in tracefs.
fn remove_from_plain(tracefs: &Tracefs, group: &str, name: &str) -> Result<(), Error> {
    let path = tracefs.probe_file();
    let text = std::fs::read_to_string(&path).map_err(|reason| Error::Io { path: path.clone(), reason })?;
    let is_kept = |line: &&str| group_and_name(line) != Some((group, name));
    let kept: String = text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, kept).map_err(|reason| Error::Io { path, reason })
}

/// The group and the name of the probe that a line defines: `lb` and `find` of `r8:lb/find sched_balance_rq`.
pub(crate) fn group_and_name(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_whitespace().next()?.split_once(':')?;
    rest.split_once('/')
}

/// The missed hits of the probes of a group: the texts of `kprobe_events`, which has groups, and of `kprobe_profile`, which has the numbers of
/// the same probes in the same order. Nothing if the texts disagree, since a probe was added or removed between the two readings.
fn missed(group: &str, events: &str, profile: &str) -> BTreeMap<String, u64> {
    let mut missed = BTreeMap::new();
    let (mut events, mut profile) = (events.lines().filter_map(group_and_name), profile.lines());
    loop {
        match (events.next(), profile.next()) {
            (None, None) => return missed,
            (Some((of, name)), Some(line)) => {
                let mut words = line.split_whitespace();
                let is_same = words.next() == Some(name);
                let number = words.nth(1).and_then(|number| number.parse::<u64>().ok());
                let Some(number) = number.filter(|_| is_same) else { return BTreeMap::new() };
                if of == group && number > 0 {
                    missed.insert(name.to_owned(), number);
                }
            }
            _ => return BTreeMap::new(),
        }
    }
}

/// The last message of the kernel's log of errors, without its place in the line, if the log has changed: some refusals are
/// not logged.
fn reason(before: &str, after: &str, error: &Error) -> String {
    let last = after.lines().rev().find_map(|line| line.split_once("error: ").map(|(_, reason)| reason.trim()));
    last.filter(|_| before != after).map_or_else(|| error.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_added_and_only_ours_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("instances")).unwrap();
        let file = folder.path().join("dynamic_events");
        // Another program has a group of that name.
        let others = "p:other/a schedule\np:lb/detach_task schedule\n";
        std::fs::write(&file, others).unwrap();
        let tracefs = Tracefs::find(Some(folder.path())).unwrap();
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let mut probes = Probes::none(&tracefs);
        assert_eq!(probes.add_any(&[lines(&["p:lb/detach_task detach_task"])]).unwrap(), None);
        // The second line of the first alternative is refused: its first line goes, and the second alternative counts.
        let pair = lines(&["p:lb/move_in load_balance", "p:other/b schedule"]);
        assert_eq!(probes.add_any(&[pair, lines(&["r:lb/move load_balance"])]).unwrap(), None);
        assert_eq!(probes.names(), ["detach_task", "move"]);
        let refused = Refused { line: "p:other/b schedule".into(), reason: "not in the group lb".into() };
        assert_eq!(probes.add_any(&[lines(&["p:other/b schedule"])]).unwrap(), Some(refused));
        let group = probes.group().to_owned();
        let ours = format!("p:{group}/detach_task detach_task\nr:{group}/move load_balance\n");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{others}{ours}"));
        // This process runs.
        assert!(tracefs.leftovers().is_empty() && tracefs.clean().unwrap().is_empty());
        drop(probes);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), others);
        // As after a kill.
        std::fs::write(&file, format!("{others}p:schedviz_4294967295_1/detach_task detach_task\n")).unwrap();
        assert_eq!(tracefs.clean().unwrap(), ["the probe schedviz_4294967295_1/detach_task"]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), others);
    }

    #[test]
    fn a_reason_is_that_of_this_refusal() {
        let error = Error::NotMounted;
        let log = "[    6.55] trace_kprobe: error: Invalid fetch argument\n  Command: p:lb/a b\n";
        assert_eq!(reason("", log, &error), "Invalid fetch argument");
        assert_eq!(reason(log, log, &error), error.to_string());
    }

    #[test]
    fn missed_hits_are_those_of_the_group() {
        // As 6.12 prints them; another recording has probes of the same names.
        let events = "p:schedviz_7_1/throttle tg_throttle_down cgroup=+0($arg1):u64\np:schedviz_7_1/unthrottle tg_unthrottle_up\n\
                      r8:schedviz_7_1/move load_balance\np:schedviz_8_2/unthrottle tg_unthrottle_up\n";
        let profile = "  throttle                                                 206               0\n  \
                         unthrottle                                               208               2\n  \
                         move                                                       1               1\n  \
                         unthrottle                                               208               3\n";
        let of = |group, profile: &str| missed(group, events, profile).into_iter().collect::<Vec<_>>();
        assert_eq!(of("schedviz_7_1", profile), [("move".to_owned(), 1), ("unthrottle".to_owned(), 2)]);
        assert_eq!(of("schedviz_8_2", profile), [("unthrottle".to_owned(), 3)]);
        // A probe fewer, another order, and no numbers: nothing is known.
        let shorter: String = profile.lines().take(3).map(|line| format!("{line}\n")).collect();
        let reversed: String = profile.lines().rev().map(|line| format!("{line}\n")).collect();
        for text in [shorter.as_str(), &reversed, "", "throttle\nunthrottle\nmove\nunthrottle\n"] {
            assert!(of("schedviz_7_1", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn names_of_probes() {
        assert_eq!(group_and_name("r8:lb/find_group sched_balance_rq"), Some(("lb", "find_group")));
        assert_eq!(group_and_name("p:lbb/x y"), Some(("lbb", "x")));
        assert_eq!([group_and_name(""), group_and_name("p:x y")], [None; 2]);
    }
}
