//! Migrations and decisions that are not settled at the start of a part of a trace: noted for the part, and taken up
//! again there.

use super::decided::{Decisions, Latest};
use super::{Announcement, Cause, Causes, FollowedTask, Migration, OpenMigration, Reason};
use crate::event::{Comm, Cpu, Dur, Pid, Ts};
use crate::tables::serial::{bounded, exact};
use serde::{Deserialize, Serialize};

/// The migrations that can still change, and the events that decide the causes of the next ones, before a part of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCauses {
    // The name of this field in files that `cut` has written.
    #[serde(rename = "minds", deserialize_with = "bounded::deserialize")]
    followed: Vec<(Pid, FollowedTask)>,
    #[serde(deserialize_with = "bounded::deserialize")]
    reasons: Vec<(Pid, Reason)>,
    #[serde(deserialize_with = "bounded::deserialize")]
    decisions: Vec<(Cpu, Latest)>,
    #[serde(deserialize_with = "bounded::deserialize")]
    pulls: Vec<(Cpu, Vec<Pid>)>,
    #[serde(deserialize_with = "bounded::deserialize")]
    stops: Vec<(Cpu, Announcement)>,
    #[serde(deserialize_with = "bounded::deserialize")]
    awake: Vec<(Pid, Option<NotedMigration>)>,
}

/// A migration in a note, with every byte of its task's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedMigration {
    ts: Ts,
    on: Cpu,
    pid: Pid,
    #[serde(with = "exact")]
    command: Comm,
    orig: Cpu,
    dest: Cpu,
    cause: Cause,
    queued: bool,
    recorded: bool,
    first_run: Option<u64>,
}

impl From<Migration> for NotedMigration {
    fn from(m: Migration) -> NotedMigration {
        let Migration { ts, on, pid, command, orig, dest, cause, queued, recorded, first_run } = m;
        let first_run = first_run.map(|first_run| first_run.0);
        NotedMigration { ts, on, pid, command, orig, dest, cause, queued, recorded, first_run }
    }
}

impl From<NotedMigration> for Migration {
    fn from(m: NotedMigration) -> Migration {
        let NotedMigration { ts, on, pid, command, orig, dest, cause, queued, recorded, first_run } = m;
        let first_run = first_run.map(Dur);
        Migration { ts, on, pid, command, orig, dest, cause, queued, recorded, first_run }
    }
}

impl Migration {
    /// Whether the CPUs of the migration are such as a reader delivers, since a note can be of a damaged file.
    fn is_believable(&self) -> bool {
        [self.on, self.orig, self.dest].iter().all(|cpu| cpu.0 < Cpu::LIMIT)
    }
}

/// The serialised form of [`Migration`] in notes.
pub(super) mod migration {
    use super::{Migration, NotedMigration};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(m: &Migration, s: S) -> Result<S::Ok, S::Error> {
        NotedMigration::from(*m).serialize(s)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Migration, D::Error> {
        NotedMigration::deserialize(d).map(Migration::from)
    }
}

impl NotedMigration {
    /// Returns the migration, unless no reader would deliver it.
    pub(crate) fn believed(self) -> Option<Migration> {
        Some(Migration::from(self)).filter(Migration::is_believable)
    }
}

impl Causes {
    /// Notes the knowledge that a part of a trace needs if it begins here.
    pub fn noted(&self) -> PastCauses {
        let is_needed = |(_, followed): &(&Pid, &FollowedTask)| followed.waking.is_some() || followed.open.is_some();
        let mut past = PastCauses {
            followed: self.followed.iter().filter(is_needed).map(|(pid, followed)| (*pid, followed.clone())).collect(),
            reasons: self.reasons.iter().map(|(pid, reason)| (*pid, *reason)).collect(),
            decisions: self.decisions.latest.iter().map(|(cpu, latest)| (*cpu, *latest)).collect(),
            pulls: self.pulls.iter().map(|(cpu, pids)| (*cpu, pids.clone())).collect(),
            stops: self.stops.iter().map(|(cpu, waking)| (*cpu, *waking)).collect(),
            awake: self.awake.iter().map(|(pid, held)| (*pid, held.map(NotedMigration::from))).collect(),
        };
        past.followed.sort_unstable_by_key(|(pid, _)| *pid);
        past.reasons.sort_unstable_by_key(|(pid, _)| *pid);
        past.decisions.sort_unstable_by_key(|(cpu, _)| *cpu);
        past.pulls.sort_unstable_by_key(|(cpu, _)| *cpu);
        past.stops.sort_unstable_by_key(|(cpu, _)| *cpu);
        past.awake.sort_unstable_by_key(|(pid, _)| *pid);
        past
    }

    /// The approximate number of bytes of a copy.
    pub(crate) fn bytes(&self) -> usize {
        let opened = self.followed.iter().filter(|(_, followed)| followed.open.is_some()).count();
        self.followed.len() * size_of::<(Pid, FollowedTask)>()
            + opened * size_of::<OpenMigration>()
            + self.reasons.len() * size_of::<(Pid, Reason)>()
            + self.awake.len() * size_of::<(Pid, Option<Migration>)>()
    }

    /// Takes up the notes of a part of a trace.
    pub(crate) fn after(past: &PastCauses) -> Causes {
        let followed = |(pid, followed): &(Pid, FollowedTask)| {
            let open = followed.open.clone().filter(|open| open.migration.is_believable());
            (*pid, FollowedTask { waking: followed.waking, open })
        };
        Causes {
            followed: past.followed.iter().map(followed).collect(),
            reasons: past.reasons.iter().copied().collect(),
            decisions: Decisions { latest: past.decisions.iter().copied().collect() },
            pulls: past.pulls.iter().cloned().collect(),
            stops: past.stops.iter().copied().collect(),
            awake: past.awake.iter().map(|(pid, held)| (*pid, held.and_then(NotedMigration::believed))).collect(),
        }
    }
}
