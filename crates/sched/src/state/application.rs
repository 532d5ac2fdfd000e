//! The application: the tasks that figures and sentences set apart from all others.

use crate::event::Pid;
use crate::tables::seeded::SeededMap;
use crate::tables::serial::bounded;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The property that makes tasks part of the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplicationBasis {
    /// Descent from the traced command.
    #[default]
    Command,
    /// A choice of tasks, or descent from them.
    Chosen,
    /// None: the traced command hardly ran.
    HardlyRan,
    /// None: the machine was recorded, not a command.
    Machine,
    /// None, as was asked for.
    Nothing,
}

impl ApplicationBasis {
    /// The reason why there is no application, a clause for people; `None` where tasks can be part of it.
    pub fn why_none(self) -> Option<&'static str> {
        match self {
            ApplicationBasis::Command | ApplicationBasis::Chosen => None,
            ApplicationBasis::HardlyRan => Some("the traced command hardly ran"),
            ApplicationBasis::Machine => Some("the machine was recorded, not a command"),
            ApplicationBasis::Nothing => Some("none was asked for"),
        }
    }
}

/// Joins the fact that tasks of the application are not known, or that there are none, to its reason, which is one of
/// [`crate::SchedState::why_application_is_unknown`].
pub fn without_application(why: &str) -> String {
    let none = [ApplicationBasis::HardlyRan, ApplicationBasis::Machine, ApplicationBasis::Nothing];
    match none.iter().any(|basis| basis.why_none() == Some(why)) {
        true => format!("there is no application: {why}"),
        false => format!("the application is unknown: {why}"),
    }
}

/// A task that belongs to the application by itself, whoever forked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ApplicationMember {
    /// The PID of the task.
    pub pid: Pid,
    /// The number of forks of this PID up to the task's: 0 for a task that existed before the first event.
    pub life: u32,
    /// Whether the task works for the application, rather than being one of the chosen ones.
    pub helps: bool,
}

/// The tasks that the application consists of, as far as they do not follow from the traced command. The default is the
/// traced command with all that descends from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// The property that makes tasks part of it.
    pub basis: ApplicationBasis,
    /// The task whose critical path is that of the application; absent where it is the traced command's first task.
    pub root: Option<Pid>,
    /// The tasks that belong to it by themselves, ascending.
    #[serde(default, deserialize_with = "bounded::deserialize")]
    pub members: Vec<ApplicationMember>,
}

impl Application {
    /// Makes the absence of an application, for a reason.
    pub fn without(basis: ApplicationBasis) -> Application {
        Application { basis, ..Application::default() }
    }

    /// The members with this PID, each of another life.
    fn with_pid(&self, pid: Pid) -> &[ApplicationMember] {
        let from = self.members.partition_point(|member| member.pid < pid);
        let to = self.members.partition_point(|member| member.pid <= pid);
        self.members.get(from..to).unwrap_or_default()
    }
}

/// The lives of the members of an application: which fork of a PID begins the life of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    application: Arc<Application>,
    /// The number of forks so far of each PID that a member has.
    forks: SeededMap<Pid, u32>,
}

impl Members {
    /// Makes the lives of an application's members at the start of a trace.
    pub(crate) fn of(application: Arc<Application>) -> Members {
        Members { application, forks: SeededMap::default() }
    }

    /// The application whose members these are.
    pub(crate) fn application(&self) -> &Application {
        &self.application
    }

    /// Follows the fork of a child: the member that it is, if it is one.
    pub(crate) fn fork(&mut self, child: Pid) -> Option<ApplicationMember> {
        let lives = self.application.with_pid(child);
        if lives.is_empty() {
            return None;
        }
        let forks = self.forks.entry(child).or_default();
        *forks = forks.saturating_add(1);
        lives.iter().find(|member| member.life == *forks).copied()
    }

    /// The application as one that begins now has it: members to come are counted from here.
    pub(crate) fn beginning_now(&self) -> Application {
        let left = |member: &ApplicationMember| {
            let life = member.life.checked_sub(self.forks.get(&member.pid).copied().unwrap_or(0))?;
            (life > 0).then_some(ApplicationMember { life, ..*member })
        };
        let members = self.application.members.iter().filter_map(left).collect();
        Application { members, ..(*self.application).clone() }
    }

    /// The approximate number of bytes of a copy.
    pub(crate) fn bytes(&self) -> usize {
        self.forks.len() * size_of::<(Pid, u32)>()
    }
}
