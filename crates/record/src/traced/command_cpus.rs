//! The CPUs that the tasks of the traced command may use, read while it runs.
//!
//! The list of the start is that of the helper that executes the command: `taskset` and its like bind themselves later, and are no more at the end.
//! The tasks are read a few times, at intervals that double, so that a recording of any length has few readings in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_link, read_to_string};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time from the beginning to the first reading.
const FIRST: Duration = Duration::from_millis(5);

/// Maximum number of tasks in a reading, and of those that are kept.
const MOST_TASKS: usize = 4096;

/// The lists of CPUs of a task, while it runs one program.
#[derive(Debug, Default, PartialEq)]
struct TaskLists {
    program: Option<PathBuf>,
    /// The number of readings that have found the task with this program.
    times: u32,
    lists: BTreeSet<String>,
}

/// The lists of CPUs of the tasks of a command.
#[derive(Debug, Default)]
struct CommandLists {
    tasks: BTreeMap<i32, TaskLists>,
}

impl CommandLists {
    /// Reads the lists of a process and of those that descend from it. `proc` is the folder `/proc`.
    fn read(&mut self, proc: &Path, command: i32) {
        let (mut open, mut left) = (vec![command], MOST_TASKS);
        while let Some(process) = open.pop() {
            let folder = proc.join(process.to_string());
            let program = read_link(folder.join("exe")).ok();
            for entry in read_dir(folder.join("task")).into_iter().flatten().flatten() {
                let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                let Some(rest) = left.checked_sub(1) else { return };
                left = rest;
                let status = read_to_string(entry.path().join("status")).unwrap_or_default();
                let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
                list.into_iter().for_each(|list| self.add(thread, program.as_deref(), list.trim()));
                let children = read_to_string(entry.path().join("children")).unwrap_or_default();
                open.extend(children.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
            }
        }
    }

    /// Adds the list of a task that runs a program. Those of the program before do not count: they are of a program such as `taskset`.
    fn add(&mut self, task: i32, program: Option<&Path>, list: &str) {
        if self.tasks.len() >= MOST_TASKS && !self.tasks.contains_key(&task) {
            return;
        }
        let known = self.tasks.entry(task).or_default();
        if known.program.as_deref() != program {
            *known = TaskLists { program: program.map(Path::to_owned), ..TaskLists::default() };
        }
        known.times += 1;
        known.lists.insert(list.to_owned());
    }

    /// The tasks by their lists. One that a single reading has found with its program may have been about to bind itself.
    fn by_list(self) -> BTreeMap<String, Vec<i32>> {
        let mut by_list: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for (task, TaskLists { lists, .. }) in self.tasks.into_iter().filter(|(_, known)| known.times > 1) {
            lists.into_iter().for_each(|list| by_list.entry(list).or_default().push(task));
        }
        by_list
    }
}

/// The reading of the lists of a command, which goes on until it is ended.
pub(crate) struct ListsReader {
    end: Sender<()>,
    reading: JoinHandle<CommandLists>,
}

impl ListsReader {
    /// Begins to read the lists of a command that runs from now on; nothing where the machine gives no thread for it.
    pub(crate) fn begin(command: i32) -> Option<ListsReader> {
        let (end, ended) = channel();
        let read = move || {
            let (mut lists, mut wait) = (CommandLists::default(), FIRST);
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                lists.read(Path::new("/proc"), command);
                wait = wait.saturating_mul(2);
            }
            lists
        };
        let reading = std::thread::Builder::new().spawn(read).ok()?;
        Some(ListsReader { end, reading })
    }

    /// Ends the reading; the tasks by their lists, which are empty where the command ended too early.
    pub(crate) fn end(self) -> BTreeMap<String, Vec<i32>> {
        drop(self.end);
        self.reading.join().map(CommandLists::by_list).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_a_program_are_those_of_several_readings_and_of_no_program_before() {
        let mut lists = CommandLists::default();
        for (task, program, list) in [
            (7, "/bin/taskset", "0-3"),
            (7, "/bin/cc", "3"),
            (8, "/bin/cc", "3"),
            (7, "/bin/cc", "3"),
            (9, "/bin/sh", "0-3"),
            (9, "/bin/sh", "1,2"),
        ] {
            lists.add(task, Some(Path::new(program)), list);
        }
        let by_list = lists.by_list();
        let expected = [("0-3", vec![9]), ("1,2", vec![9]), ("3", vec![7])];
        assert_eq!(by_list.into_iter().collect::<Vec<_>>(), expected.map(|(list, pids)| (list.to_owned(), pids)));
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
        }
        let mut lists = CommandLists::default();
        (0..2).for_each(|_| lists.read(proc.path(), 7));
        let expected = [("0-3", vec![7]), ("1", vec![9]), ("2", vec![8])];
        assert_eq!(
            lists.by_list().into_iter().collect::<Vec<_>>(),
            expected.map(|(list, pids)| (list.to_owned(), pids))
        );
    }
}
