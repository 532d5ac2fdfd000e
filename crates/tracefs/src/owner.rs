//! The process that made an instance or a group of probes, as their names carry it.

use std::path::Path;

/// The number of the namespace of processes that the kernel begins with (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xefff_fffc;

/// A process: its number alone would be another one's after it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// Start of the process, in ticks since the machine was booted.
    start: u64,
    /// The namespace in which it has this number.
    namespace: u64,
}

/// Whether a process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The process runs.
    Runs,
    /// The process has ended.
    Ended,
    /// The process is of another PID namespace, such as that of a container, or /proc is not mounted.
    Unknown,
}

impl Owner {
    /// Returns the process that calls.
    pub fn this() -> Owner {
        let pid = std::process::id();
        let start = match status(pid) {
            Status::Of { start, .. } => start,
            Status::None | Status::Unknown => 0,
        };
        Owner { pid, start, namespace: namespace() }
    }

    /// Reads the end of a name: `1234_567890`, and the namespace where that is not the first one.
    pub(crate) fn parse(text: &str) -> Option<Owner> {
        let mut numbers = text.split('_').map(|number| number.parse::<u64>().ok());
        let (pid, start) = (u32::try_from(numbers.next()??).ok()?, numbers.next()??);
        let namespace = match numbers.next() {
            Some(namespace) => namespace?,
            None => FIRST_NAMESPACE,
        };
        numbers.next().is_none().then_some(Owner { pid, start, namespace })
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether the process lives, as far as /proc shows.
    pub(crate) fn life(&self) -> Life {
        if self.namespace != namespace() {
            return Life::Unknown;
        }
        match status(self.pid) {
            Status::Unknown => Life::Unknown,
            Status::Of { start, has_ended: false } if start == self.start => Life::Runs,
            Status::Of { .. } | Status::None => Life::Ended,
        }
    }
}

/// The end of a name.
impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{}", self.pid, self.start)?;
        if self.namespace != FIRST_NAMESPACE { write!(f, "_{}", self.namespace) } else { Ok(()) }
    }
}

/// The kernel's word on a number of a process.
enum Status {
    Of {
        start: u64,
        /// Whether the process is a zombie, which waits for its parent alone.
        has_ended: bool,
    },
    None,
    /// /proc shows no process at all, or not this one's status.
    Unknown,
}

fn status(pid: u32) -> Status {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => parse_status(&text).unwrap_or(Status::Unknown),
        Err(_) if Path::new("/proc/self/stat").exists() && !Path::new(&format!("/proc/{pid}")).exists() => Status::None,
        Err(_) => Status::Unknown,
    }
}

/// Reads `/proc/PID/stat`: a name in parentheses, which can hold blanks and parentheses, is the second field.
fn parse_status(text: &str) -> Option<Status> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X" | "x");
    // The start is field 22, the state is field 3.
    let start = fields.nth(18)?.parse().ok()?;
    Some(Status::Of { start, has_ended })
}

/// The namespace of processes of this process.
fn namespace() -> u64 {
    let link = std::fs::read_link("/proc/self/ns/pid").ok();
    let number = link.and_then(|link| link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    number.unwrap_or(FIRST_NAMESPACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_carries_its_process() {
        let first = Owner { pid: 12, start: 345, namespace: FIRST_NAMESPACE };
        let inner = Owner { namespace: 4_026_532_201, ..first };
        assert_eq!([first.to_string(), inner.to_string()], ["12_345", "12_345_4026532201"]);
        for owner in [first, inner] {
            assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
        }
        for text in ["", "12", "12_", "x_1", "1_2_3_4", "4294967296_1"] {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_lives_by_its_number_and_its_start() {
        let this = Owner::this();
        assert_eq!(this.life(), Life::Runs);
        // Another process had this number before.
        assert_eq!(Owner { start: this.start - 1, ..this }.life(), Life::Ended);
        // No process has the largest number.
        assert_eq!(Owner { pid: u32::MAX, ..this }.life(), Life::Ended);
        assert_eq!(Owner { namespace: 1, ..this }.life(), Life::Unknown);
    }

    #[test]
    fn a_status_is_read_behind_the_name() {
        let text = "7 (a) b (c) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert!(matches!(parse_status(text), Some(Status::Of { start: 4711, has_ended: true })));
        assert!(parse_status("7 (a) S 1").is_none());
    }
}
