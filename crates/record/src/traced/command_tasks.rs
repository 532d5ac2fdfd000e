//! The CPUs that the tasks of the traced command may use, and their policies, read while it runs.
//!
//! What is read at the start is of the helper that executes the command: `taskset` and `chrt` set their own later, and are no more at the end.
//! The tasks are read a few times, at intervals that double, so that a recording of any length has few readings in it.

use machine::{Policies, RunningTasks};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_link, read_to_string};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time from the beginning to the first reading.
const FIRST: Duration = Duration::from_millis(5);

/// Maximum number of tasks in a reading, and of those that are kept.
const MOST_TASKS: usize = 4096;

/// A task, while it runs one program.
#[derive(Debug, Default, PartialEq)]
struct CommandTask {
    program: Option<PathBuf>,
    /// The number of readings that have found the task with this program.
    times: u32,
    /// The lists of CPUs that it may use.
    lists: BTreeSet<String>,
    policies: BTreeSet<u32>,
}

/// The tasks of a command.
#[derive(Debug, Default)]
struct CommandTasks {
    tasks: BTreeMap<i32, CommandTask>,
}

impl CommandTasks {
    /// Reads the tasks of a process and of those that descend from it. `proc` is the folder `/proc`.
    fn read(&mut self, proc: &Path, command: i32) {
        let (mut open, mut left) = (vec![command], MOST_TASKS);
        while let Some(process) = open.pop() {
            let folder = proc.join(process.to_string());
            let program = read_link(folder.join("exe")).ok();
            for entry in read_dir(folder.join("task")).into_iter().flatten().flatten() {
                let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                let Some(rest) = left.checked_sub(1) else { return };
                left = rest;
                let text = |name| read_to_string(entry.path().join(name)).unwrap_or_default();
                let (status, stat) = (text("status"), text("stat"));
                let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
                if let Some(list) = list {
                    self.add(thread, program.as_deref(), list.trim(), Policies::of_stat(&stat));
                }
                let children = read_to_string(entry.path().join("children")).unwrap_or_default();
                open.extend(children.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
            }
        }
    }

    /// Adds the list and the policy of a task that runs a program. Those of the program before do not count: they are of a program such as
    /// `taskset`.
    fn add(&mut self, task: i32, program: Option<&Path>, list: &str, policy: Option<u32>) {
        if self.tasks.len() >= MOST_TASKS && !self.tasks.contains_key(&task) {
            return;
        }
        let known = self.tasks.entry(task).or_default();
        if known.program.as_deref() != program {
            *known = CommandTask { program: program.map(Path::to_owned), ..CommandTask::default() };
        }
        known.times += 1;
        known.lists.insert(list.to_owned());
        known.policies.extend(policy);
    }

    /// The tasks by their lists and by their policies. One that a single reading has found with its program may have been about to set its own.
    fn found(self) -> RunningTasks {
        let mut found = RunningTasks::default();
        for (task, CommandTask { lists, policies, .. }) in self.tasks.into_iter().filter(|(_, known)| known.times > 1) {
            lists.into_iter().for_each(|list| found.lists.entry(list).or_default().push(task));
            policies.into_iter().for_each(|policy| found.policies.entry(policy).or_default().push(task));
        }
        found
    }
}

/// The reading of the tasks of a command, which goes on until it is ended.
pub(crate) struct TasksReader {
    /// A message asks for a last reading.
    end: Sender<()>,
    reading: JoinHandle<CommandTasks>,
}

/// Reads at intervals that double, and once more if the end is announced by a message.
fn readings(ended: &Receiver<()>, mut read: impl FnMut()) {
    let mut wait = FIRST;
    loop {
        match ended.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {
                read();
                wait = wait.saturating_mul(2);
            }
            Ok(()) => {
                // Not at the same moment as the one before: a task counts that is the same in two readings.
                std::thread::sleep(FIRST);
                return read();
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl TasksReader {
    /// Begins to read the tasks of a command that runs from now on; nothing where the machine gives no thread for it.
    pub(crate) fn begin(command: i32) -> Option<TasksReader> {
        let (end, ended) = channel();
        let read = move || {
            let mut tasks = CommandTasks::default();
            readings(&ended, || tasks.read(Path::new("/proc"), command));
            tasks
        };
        let reading = std::thread::Builder::new().spawn(read).ok()?;
        Some(TasksReader { end, reading })
    }

    /// Ends the reading; no tasks where the command ended too early.
    pub(crate) fn end(self) -> RunningTasks {
        drop(self.end);
        self.reading.join().map(CommandTasks::found).unwrap_or_default()
    }

    /// Ends the reading of a command that runs on, with a last reading: a limit can be exceeded soon after the first one.
    pub(crate) fn end_while_it_runs(self) -> RunningTasks {
        // Fails only if the thread panicked.
        let _ = self.end.send(());
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_has_is_that_of_several_readings_and_of_no_program_before() {
        let mut tasks = CommandTasks::default();
        for (task, program, list, policy) in [
            (7, "/bin/taskset", "0-3", 0),
            (7, "/bin/cc", "3", 5),
            (8, "/bin/cc", "3", 5),
            (7, "/bin/cc", "3", 5),
            (9, "/bin/sh", "0-3", 0),
            (9, "/bin/sh", "1,2", 3),
        ] {
            tasks.add(task, Some(Path::new(program)), list, Some(policy));
        }
        let lists = [("0-3", vec![9]), ("1,2", vec![9]), ("3", vec![7])].map(|(list, pids)| (list.to_owned(), pids));
        let policies = [(0, vec![9]), (3, vec![9]), (5, vec![7])];
        assert_eq!(tasks.found(), RunningTasks { lists: lists.into(), policies: policies.into() });
    }

    #[test]
    fn a_process_is_read_with_those_that_descend_from_it() {
        let proc = tempfile::tempdir().unwrap();
        for (process, thread, list, children) in
            [(7, 7, "0-3", ""), (7, 8, "2", "9 10\n"), (9, 9, "1", ""), (11, 11, "0", "")]
        {
            let folder = proc.path().join(format!("{process}/task/{thread}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("status"), format!("Name:\tcc\nCpus_allowed_list:\t{list}\n")).unwrap();
            std::fs::write(folder.join("children"), children).unwrap();
            let (name, fields) = ("a) 5 (b", "0 ".repeat(37));
            std::fs::write(folder.join("stat"), format!("{thread} ({name}) S {fields}{} 0", thread - 7)).unwrap();
        }
        let mut tasks = CommandTasks::default();
        (0..2).for_each(|_| tasks.read(proc.path(), 7));
        let lists = [("0-3", vec![7]), ("1", vec![9]), ("2", vec![8])].map(|(list, pids)| (list.to_owned(), pids));
        let policies = [(0, vec![7]), (1, vec![8]), (2, vec![9])];
        assert_eq!(tasks.found(), RunningTasks { lists: lists.into(), policies: policies.into() });
    }

    #[test]
    fn a_message_asks_for_a_last_reading_and_the_end_of_the_command_for_none() {
        let number = |is_asked: bool| {
            let (end, ended) = channel();
            if is_asked {
                end.send(()).expect("a receiver");
            }
            drop(end);
            let mut number = 0;
            readings(&ended, || number += 1);
            number
        };
        assert_eq!([false, true].map(number), [0, 1]);
    }
}
