//! Probes of our own group.

use crate::{Error, GROUP, Tracefs};

/// The probes that were added; they are removed when this is dropped.
#[derive(Debug)]
pub struct Probes {
    tracefs: Tracefs,
    names: Vec<String>,
}

/// A probe that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its line.
    pub line: String,
    /// The reason, as far as the kernel gives it.
    pub reason: String,
}

impl Probes {
    /// Adds the probes, each a line as `dynamic_events` takes it: `p:lb/detach_task detach_task pid=+2432($arg1):s32`.
    /// The ones that this kernel refuses are returned beside those that it took.
    pub fn add(tracefs: &Tracefs, lines: &[String]) -> Result<(Probes, Vec<Refused>), Error> {
        let mut probes = Probes { tracefs: tracefs.clone(), names: Vec::new() };
        let mut refused = Vec::new();
        for line in lines {
            let Some(name) = name_in_group(line) else {
                refused.push(Refused { line: line.clone(), reason: format!("not in the group {GROUP}") });
                continue;
            };
            match tracefs.write(&tracefs.probe_file(), line, true) {
                Ok(()) => probes.names.push(name.to_owned()),
                Err(denied @ Error::Denied { .. }) => return Err(denied),
                Err(error) => refused.push(Refused { line: line.clone(), reason: reason(tracefs, &error) }),
            }
        }
        Ok((probes, refused))
    }

    /// The names of the probes in the group.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Removes them. No instance may use them any more.
    pub fn remove(mut self) -> Result<(), Error> {
        let names = std::mem::take(&mut self.names);
        remove(&self.tracefs, &names)
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        // A drop has no result; --clean finds what stayed.
        let _ = remove(&self.tracefs, &self.names);
    }
}

/// Removes probes of the group by name; all that can be removed are, whatever becomes of the others.
pub(crate) fn remove(tracefs: &Tracefs, names: &[String]) -> Result<(), Error> {
    let mut result = Ok(());
    for name in names {
        let removed = if tracefs.is_plain {
            remove_from_plain(tracefs, name)
        } else {
            tracefs.write(&tracefs.probe_file(), &format!("-:{GROUP}/{name}"), true)
        };
        result = result.and(removed);
    }
    result
}

/// In a folder that stands in for tracefs the removed probe's line goes.
fn remove_from_plain(tracefs: &Tracefs, name: &str) -> Result<(), Error> {
    let path = tracefs.probe_file();
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
    let kept: String =
        text.lines().filter(|line| name_in_group(line) != Some(name)).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, kept).map_err(|source| Error::Io { path, source })
}

/// The name of the probe that a line defines, if it is in our group: `find` of `r8:lb/find sched_balance_rq`.
pub(crate) fn name_in_group(line: &str) -> Option<&str> {
    let (_, rest) = line.split_whitespace().next()?.split_once(':')?;
    rest.strip_prefix(GROUP)?.strip_prefix('/')
}

/// The last message of the kernel's log of errors, without its place in the line.
fn reason(tracefs: &Tracefs, error: &Error) -> String {
    let log = std::fs::read_to_string(tracefs.join("error_log")).unwrap_or_default();
    let last =
        log.lines().rev().find_map(|line| line.split_once("error: ").map(|(_, reason)| reason.trim().to_owned()));
    last.unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_added_and_only_ours_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("instances")).unwrap();
        let file = folder.path().join("dynamic_events");
        std::fs::write(&file, "p:other/a schedule\n").unwrap();
        let tracefs = Tracefs::find(Some(folder.path())).unwrap();
        let lines =
            ["p:lb/detach_task detach_task", "r:lb/move sched_balance_rq moved=$retval:s32", "p:other/b schedule"];
        let (probes, refused) = Probes::add(&tracefs, &lines.map(str::to_owned)).unwrap();
        assert_eq!(probes.names(), ["detach_task", "move"]);
        assert_eq!(refused, [Refused { line: lines[2].into(), reason: "not in the group lb".into() }]);
        assert_eq!(tracefs.leftovers(), ["the probe lb/detach_task", "the probe lb/move"]);
        drop(probes);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "p:other/a schedule\n");
        // As after a kill.
        let (probes, _) =
            Probes::add(&tracefs, &lines[..1].iter().map(|l| (*l).to_owned()).collect::<Vec<_>>()).unwrap();
        std::mem::forget(probes);
        assert_eq!(tracefs.clean().unwrap(), ["the probe lb/detach_task"]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "p:other/a schedule\n");
    }

    #[test]
    fn names_of_probes() {
        assert_eq!(name_in_group("r8:lb/find_group sched_balance_rq"), Some("find_group"));
        assert_eq!(name_in_group("p:lbb/x y"), None);
        assert_eq!(name_in_group(""), None);
    }
}
