//! The output of a benchmark, kept beside its recording: `compare` reads the benchmark's numbers in it.
//!
//! The command writes to a file of its own, which is printed once the recording is saved: a program that passed the output on would
//! run beside the command, and be in the trace. The usual name may be the user's own file (`record … > trace.out`), so that only a
//! file that an earlier recording of the same name is known to have written is replaced or removed.

use super::{RecordArgs, RecordedRun, Recorder, folder_of, message, named};
use anyhow::{Result, bail};
use machine::{KeptOutput, Machine};
use session::args::read_text;
use session::atomic_file::{private_folder, rename};
use session::formats::json;
use session::runs::{FILE, RunsFile};
use session::writer::replace;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The number of names that are tried for an output.
const MOST_NAMES: usize = 100;

impl RecordArgs {
    /// Whether the output of the command is kept beside the recording.
    fn keeps_output(&self) -> bool {
        self.keep_output || benchmarks::is_benchmark(&self.command)
    }
}

impl Recorder<'_> {
    /// Records the command once, with its output where that is kept.
    pub(super) fn record_alone(&self, output: &Path) -> Result<RecordedRun> {
        let earlier = EarlierOutput::of(output);
        if !self.args.keeps_output() {
            let recorded = self.record(output, None)?;
            earlier.remove(output, None)?;
            return Ok(recorded);
        }
        let folder = named(private_folder(output), folder_of(output))?;
        let part = folder.path().join("output");
        let recorded = self.record(output, Some(&part))?;
        let kept = earlier.place(output)?;
        rename(&part, &kept)?;
        note(&kept, output)?;
        earlier.remove(output, Some(&kept))?;
        print(&kept)?;
        Ok(recorded)
    }
}

/// The outputs beside a recording before it is made, as far as they are known.
struct EarlierOutput {
    /// The start of this recording.
    start: SystemTime,
    /// The output that an earlier recording of this name kept, by the machine file beside it.
    kept: Option<KeptOutput>,
    /// Whether a list of runs has an earlier recording of this name: the output of the usual name is its own.
    is_listed: bool,
}

impl EarlierOutput {
    /// Looks at the files beside a recording that is to be made.
    fn of(output: &Path) -> EarlierOutput {
        let (machine, list) = (Machine::path_beside(output), folder_of(output).join(FILE));
        let kept = opened::look_at(&machine, || Machine::open(&machine).ok().and_then(|machine| machine.kept_output));
        let listed = opened::look_at(&list, || RunsFile::parse(&read_text(&list).ok()?).ok());
        let name = output.file_name().map(|name| name.to_string_lossy());
        let is_run = |runs: RunsFile| runs.runs.iter().any(|run| run.trace.as_deref() == name.as_deref());
        EarlierOutput { start: SystemTime::now(), kept, is_listed: listed.is_some_and(is_run) }
    }

    /// Whether a file is the output of an earlier recording of this name: known by its content or by the list of runs, not changed
    /// since this recording began, and open in no process.
    fn wrote(&self, path: &Path, output: &Path) -> bool {
        let is_old = |found: &std::fs::Metadata| found.modified().is_ok_and(|at| at < self.start);
        let has_content = || self.kept.is_some() && KeptOutput::of(path).ok() == self.kept;
        let is_of_run = || self.is_listed && *path == output.with_extension("out");
        path.symlink_metadata().is_ok_and(|found| found.is_file() && is_old(&found))
            && (is_of_run() || has_content())
            && !is_open(path)
    }

    /// The name for the output of this recording: the usual one, unless that is another file's; then the next one, in a message.
    fn place(&self, output: &Path) -> Result<PathBuf> {
        let [usual, other] = benchmarks::paths_beside(output);
        let numbered = (2..MOST_NAMES).map(|nth| {
            let mut name = output.as_os_str().to_owned();
            name.push(format!(".{nth}.out"));
            PathBuf::from(name)
        });
        let is_free = |path: &PathBuf| path.symlink_metadata().is_err() || self.wrote(path, output);
        let mut names = [usual.clone(), other].into_iter().chain(numbered).filter(|path| path != output);
        let Some(kept) = names.find(is_free) else {
            bail!("{}: all names for the output of the command are those of other files", usual.display());
        };
        if kept != usual && usual != *output {
            let (usual, kept) = (usual.display(), kept.display());
            message(&format!(
                "{usual} is not from an earlier recording and stays: the output of the command is {kept}"
            ));
        }
        Ok(kept)
    }

    /// Removes the output of an earlier recording of this name, which would be taken for that of this one, unless this one has just
    /// `kept` it. A message names an old file that is not known to be such an output, but has numbers that `compare` reads.
    fn remove(&self, output: &Path, kept: Option<&Path>) -> Result<()> {
        for path in benchmarks::paths_beside(output) {
            if path == *output || Some(path.as_path()) == kept || path.symlink_metadata().is_err() {
                continue;
            }
            if self.wrote(&path, output) {
                named(std::fs::remove_file(&path), &path)?;
                continue;
            }
            let is_old = path.metadata().and_then(|found| found.modified()).is_ok_and(|at| at < self.start);
            let has_numbers =
                || opened::look_at(&path, || benchmarks::read(&path)).is_ok_and(|numbers| !numbers.is_empty());
            if kept.is_none() && is_old && !is_open(&path) && has_numbers() {
                let (path, output) = (path.display(), output.display());
                message(&format!(
                    "{path} was there before and stays: compare reads its numbers as those of {output}; rename it if they are not"
                ));
            }
        }
        Ok(())
    }
}

/// Notes in the machine file beside a recording which file has its output.
fn note(kept: &Path, output: &Path) -> Result<()> {
    let path = Machine::path_beside(output);
    let mut machine = Machine::open(&path).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    machine.kept_output = Some(named(KeptOutput::of(kept), kept)?);
    replace(&path, &json(&machine)?)
}

/// Whether a process that this user may look at has a file open, such as a shell's `> trace.out`.
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(file) = path.metadata() else { return false };
    let is_same =
        |link: PathBuf| link.metadata().is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()));
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = processes.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    let open =
        numbered.flat_map(|process| std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten());
    open.map(|link| link.path()).any(is_same)
}

/// Prints a file; a reader that ends early is no error.
fn print(path: &Path) -> Result<()> {
    let mut file = named(File::open(path), path)?;
    let mut out = io::stdout().lock();
    match io::copy(&mut file, &mut out).and_then(|_| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
