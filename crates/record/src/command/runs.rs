//! `record --runs`: repeated recordings of several variants, in a folder.

use super::series_test::{ALPHA, RunCount, SeriesTest};
use super::{RecordArgs, Recorder, named};
use anyhow::{Context, Result, bail};
use contamination::{Contaminated, Outsiders};
use regex::Regex;
use sched::Pass;
use session::args::ReadArgs;
use session::atomic_file::Folders;
use session::formats::json;
use session::runs::{AutoSeries, FILE, Planned, RunsFile, SCHEMA, VariantRun, order};
use session::writer::replace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A variant of the runs.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    name: String,
    /// The shell command before each of its runs.
    setup: Option<String>,
}

/// The runs that are to be made.
pub(crate) struct RunSeries {
    folder: PathBuf,
    /// The folders that this has made, the outermost first.
    _made: Folders,
    /// The file that lists them.
    list: PathBuf,
    variants: Vec<Variant>,
    metric: Option<Regex>,
    planned: Vec<Planned>,
    /// The number of recordings of each variant.
    runs: RunCount,
}

impl RunSeries {
    /// Checks the arguments, and creates the folder.
    pub(crate) fn of(args: &RecordArgs, runs: RunCount) -> Result<RunSeries> {
        let (most, option) = match runs {
            RunCount::Fixed(runs) => (runs, "--runs"),
            RunCount::Auto => (args.max_runs, "--max-runs"),
        };
        if !(1..=10_000).contains(&most) || args.untraced > 10_000 {
            bail!("{option}: a number from 1 to 10000 is needed");
        }
        if runs == RunCount::Auto && args.variant.len() < 2 {
            bail!("--runs auto compares variants: give two of --variant, or a number of runs");
        }
        let metric = args.metric.clone();
        let mut variants = args.variant.clone();
        if variants.is_empty() {
            variants.push(Variant { name: "run".to_owned(), setup: None });
        }
        for (at, variant) in variants.iter().enumerate() {
            if variants.iter().take(at).any(|other| other.name == variant.name) {
                bail!("--variant: {} is given twice", variant.name);
            }
        }
        let folder = args.output.clone().unwrap_or_else(|| PathBuf::from("runs"));
        if std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) || folder.is_file() {
            bail!("{} exists and is not empty; choose another folder with -o", folder.display());
        }
        let made = named(Folders::create(&folder), &folder)?;
        let planned = order(variants.len(), most, args.untraced, args.seed);
        Ok(RunSeries { list: folder.join(FILE), _made: made, folder, variants, metric, planned, runs })
    }

    /// The file that lists the runs.
    pub(crate) fn list(&self) -> &Path {
        &self.list
    }

    /// Makes the runs; whether no recording misses any event. A signal ends the series after the run that it ended.
    pub(crate) fn record(&self, recorder: &Recorder<'_>) -> Result<bool> {
        let args = recorder.args;
        let program = args.command.first().map(|word| PathBuf::from(word.as_os_str())).unwrap_or_default();
        let mut runs = RunsFile {
            schema: SCHEMA.to_owned(),
            seed: args.seed,
            command: program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            metric: args.metric.as_ref().map(Regex::to_string),
            auto: None,
            variants: self.variants.iter().map(|variant| variant.name.clone()).collect(),
            runs: Vec::new(),
        };
        let names = runs.variants.clone();
        let mut test = (self.runs == RunCount::Auto).then(|| SeriesTest::new(names));
        for (at, planned) in self.planned.iter().enumerate() {
            let Some(variant) = self.variants.get(planned.variant) else { continue };
            recorder.go_on()?;
            variant.set_up()?;
            match self.run(recorder, variant, *planned) {
                Ok(run) => {
                    if let Some(test) = test.as_mut().filter(|_| planned.traced) {
                        test.add(planned.variant, &run, &self.output(variant, *planned))?;
                    }
                    runs.runs.push(run);
                }
                Err(error) => {
                    self.remove(variant, *planned);
                    return Err(error);
                }
            }
            let ends_round = self.planned.get(at + 1).is_none_or(|next| next.number != planned.number);
            if let Some(test) = test.as_mut() {
                if ends_round {
                    test.end_round();
                }
                let (measure, max_runs) = (test.measure().to_owned(), args.max_runs);
                runs.auto = Some(AutoSeries { max_runs, alpha: ALPHA, measure, is_decided: test.is_decided() });
            }
            // A series that is killed keeps the runs made until then.
            replace(&self.list, &json(&runs)?)?;
            let is_decided = ends_round && runs.auto.as_ref().is_some_and(|auto| auto.is_decided);
            if is_decided || recorder.signals.first().is_some() {
                break;
            }
        }
        test.iter().flat_map(SeriesTest::sentences).for_each(|sentence| args.note(&sentence));
        for variant in &self.variants {
            if let Some(cost) = runs.tracing_cost_percent(&variant.name) {
                args.note(&format!("{}: tracing changed the median time by {cost:+.2} %", variant.name));
            }
        }
        self.contaminated(&runs)?.iter().for_each(|sentence| args.note(sentence));
        args.note(&format!("{}: {}", sched::nouns::counted(runs.runs.len(), "run"), self.list.display()));
        Ok(runs.runs.iter().all(|run| run.complete != Some(false)))
    }

    /// The recordings of each variant in which tasks outside of the application took more than in the others, in words.
    fn contaminated(&self, made: &RunsFile) -> Result<Vec<String>> {
        let mut sentences = Vec::new();
        for variant in &self.variants {
            let of_variant = made.runs.iter().filter(|run| run.variant == variant.name);
            let traces: Vec<&String> = of_variant.filter_map(|run| run.trace.as_ref()).collect();
            if traces.len() < contamination::FEWEST_RUNS {
                continue;
            }
            let mut work = Vec::new();
            for trace in &traces {
                let path = self.folder.join(trace);
                let trace = ReadArgs::default().open(&path)?;
                let events = trace.events().map_err(|error| session::args::named(&path, error))?;
                let outcome = Pass::over(events).run(Outsiders::default);
                work.push(outcome.map_err(|error| session::args::named(&path, error))?.output);
            }
            let work: Vec<_> = work.iter().map(Option::as_ref).collect();
            let of = |found: &Contaminated| format!("{} {}", traces[found.run], found.in_words());
            sentences.extend(contamination::contaminated(&work).iter().map(of));
        }
        Ok(sentences)
    }

    /// Makes a run.
    fn run(&self, recorder: &Recorder<'_>, variant: &Variant, planned: Planned) -> Result<VariantRun> {
        let stem = stem(variant, planned);
        let at = |ending: &str| self.folder.join(format!("{stem}.{ending}"));
        let output = self.output(variant, planned);
        self.keep_schedstat(recorder, &at("schedstat.before"))?;
        let (ended, complete) = if planned.traced {
            let recorded = recorder.record(&at("dat"), Some(&output))?;
            (recorded.ended, Some(recorded.complete))
        } else {
            (recorder.run_untraced(&output)?, None)
        };
        self.keep_schedstat(recorder, &at("schedstat.after"))?;
        Ok(VariantRun {
            variant: variant.name.clone(),
            number: planned.number,
            trace: planned.traced.then(|| format!("{stem}.dat")),
            seconds: ended.seconds,
            status: ended.status.code(),
            metric: self.metric_in(&output)?,
            complete,
        })
    }

    /// The file with the output of the command of a run.
    fn output(&self, variant: &Variant, planned: Planned) -> PathBuf {
        self.folder.join(format!("{}.out", stem(variant, planned)))
    }

    /// Removes the files of a run that was not made.
    fn remove(&self, variant: &Variant, planned: Planned) {
        for ending in ["out", "schedstat.before"] {
            let _ = std::fs::remove_file(self.folder.join(format!("{}.{ending}", stem(variant, planned))));
        }
    }

    /// Copies /proc/schedstat, if the kernel has it.
    fn keep_schedstat(&self, recorder: &Recorder<'_>, copy: &Path) -> Result<()> {
        match std::fs::read(recorder.root.join("proc/schedstat")) {
            Ok(text) => replace(copy, &text),
            Err(_) => Ok(()),
        }
    }

    /// The command's own number in its output.
    fn metric_in(&self, output: &Path) -> Result<Option<f64>> {
        let Some(metric) = &self.metric else { return Ok(None) };
        let text = named(opened::read(output), output)?;
        let text = String::from_utf8_lossy(&text);
        let last = metric.captures_iter(&text).last();
        let number = last.and_then(|found| found.get(1).or(found.get(0)).map(|text| text.as_str().trim().to_owned()));
        match number.as_deref().map(str::parse::<f64>) {
            Some(Ok(number)) if number.is_finite() => Ok(Some(number)),
            Some(_) => bail!("--metric: {:?} in {} is not a number", number.unwrap_or_default(), output.display()),
            None => bail!("--metric matches nothing in {}", output.display()),
        }
    }
}

/// The beginning of the names of a run's files.
fn stem(variant: &Variant, planned: Planned) -> String {
    let kind = if planned.traced { "" } else { "untraced." };
    format!("{}.{kind}{}", variant.name, planned.number)
}

impl Variant {
    /// Parses the words `NAME=SETUP` of `--variant`.
    pub(crate) fn parse(text: &str) -> Result<Variant, String> {
        let (name, setup) = text.split_once('=').unwrap_or((text, ""));
        let is_plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-+".contains(&b));
        if name.is_empty() || !is_plain(name) {
            return Err("this is not NAME=SETUP, with a name of letters, digits, _, - and +".to_owned());
        }
        Ok(Variant { name: name.to_owned(), setup: (!setup.trim().is_empty()).then(|| setup.to_owned()) })
    }

    /// Runs its setup.
    fn set_up(&self) -> Result<()> {
        let Some(setup) = &self.setup else { return Ok(()) };
        let status = Command::new("sh").args(["-c", setup]).status().context("sh")?;
        if !status.success() {
            bail!("the setup of {} failed ({status}): {setup}", self.name);
        }
        Ok(())
    }
}
