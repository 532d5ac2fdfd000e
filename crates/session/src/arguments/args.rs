//! The arguments that all commands share, and what they come to for a given trace.

pub use crate::arguments::application_args::{ApplicationArgs, ApplicationChoice};
pub use crate::arguments::host_args::HostArgs;
pub use crate::arguments::symbol_args::SymbolArgs;
pub use crate::arguments::task_args::TaskArgs;
pub use crate::command_line::{repeatable, shell_word};
use crate::messages::Messages;
use crate::progress;
use anyhow::{Context, Result, bail};
use lanes::MANY_LANES;
use machine::Machine;
pub use membership::ChosenTasks;
use parse::{Options, Trace, Where};
use sched::topology::{CpuOrder, format_cpu_list, parse_cpu_list};
use sched::{ChosenCpus, Cpu, Dur, Topology, Ts, Window};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use timeline::Drawable;
use timeline::text::Detail;

/// How to read the trace
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ReadArgs {
    /// Read only this buffer, where the trace has several; `top` is the unnamed one
    #[arg(long, value_name = "NAME", help_heading = "Reading")]
    buffer: Option<String>,
    /// The clock, where the trace labels it wrongly (instances often are)
    #[arg(long, value_name = "NAME", value_parser = parse::CLOCKS, help_heading = "Reading")]
    clock: Option<String>,
    /// The frequency of a clock that counts cycles (x86-tsc): 2394374000, or 2394.374MHz
    #[arg(long, value_name = "HZ", value_parser = frequency, help_heading = "Reading")]
    clock_hz: Option<u64>,
    /// Times of a guest's recording on the host's clock, by the TIME_SHIFT in the file (trace-cmd record -A)
    #[arg(long, help_heading = "Reading")]
    host_time: bool,
    /// Threads to use; 0 for all. Changes nothing but the speed
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Reading")]
    threads: usize,
    /// Say nothing on standard error but errors
    #[arg(short, long, help_heading = "Reading")]
    pub quiet: bool,
    /// Colour in messages
    #[arg(long, value_enum, default_value_t = clap::ColorChoice::Auto, value_name = "WHEN", help_heading = "Reading")]
    pub color: clap::ColorChoice,
    /// The choice of the application.
    #[command(flatten)]
    pub application: ApplicationArgs,
    /// The destination of messages about the trace.
    #[arg(skip)]
    pub messages: Messages,
    /// The maximum size of the state of a pass, in bytes, of a trace that is read beside others.
    #[arg(skip)]
    most_state: Option<usize>,
    /// Whether other traces are read at the same time, so that no progress of this one is shown.
    #[arg(skip)]
    pub is_beside_others: bool,
}

impl ReadArgs {
    /// The number of threads to use, at least one.
    pub fn threads(&self) -> usize {
        if self.threads > 0 { self.threads } else { std::thread::available_parallelism().map_or(1, usize::from) }
    }

    /// The arguments that change the content of a trace, as text.
    pub fn reading(&self) -> String {
        let application = self.application.application.as_ref().map(ToString::to_string);
        format!(
            "{:?}",
            (&self.buffer, &self.clock, self.clock_hz, self.host_time, application, self.application.strict)
        )
    }

    /// The same arguments with this number of threads, for a trace that is read beside others: its messages are held, and a pass ends with
    /// [`parse::Error::ManyTasks`] where its state is larger than this number of bytes.
    #[must_use]
    pub fn held(&self, threads: usize, most_state: Option<usize>) -> ReadArgs {
        ReadArgs { is_beside_others: true, ..self.tried(threads, most_state) }
    }

    /// The same as [`ReadArgs::held`], for a trace that is read by itself and can have to be read anew.
    #[must_use]
    pub fn tried(&self, threads: usize, most_state: Option<usize>) -> ReadArgs {
        ReadArgs { threads, messages: Messages::held(), most_state, ..self.clone() }
    }

    /// The same arguments for a guest's recording whose times are to be the host's.
    #[must_use]
    pub fn in_host_time(&self) -> ReadArgs {
        ReadArgs { host_time: true, ..self.clone() }
    }

    /// The same arguments for a guest's recording whose times are to be its own.
    #[must_use]
    pub(crate) fn in_own_time(&self) -> ReadArgs {
        ReadArgs { host_time: false, ..self.clone() }
    }

    /// The same arguments for the recording of the host.
    #[must_use]
    pub(crate) fn of_host(&self) -> ReadArgs {
        ReadArgs { host_time: false, buffer: None, ..self.clone() }
    }

    /// The same arguments for another reading of a trace whose messages have been printed.
    #[must_use]
    pub fn silent(&self) -> ReadArgs {
        ReadArgs { quiet: true, ..self.clone() }
    }

    /// Prints a message to standard error unless only errors are wanted there.
    pub fn message(&self, message: &str) {
        if !self.quiet {
            self.messages.add(message);
        }
    }

    /// Opens a trace.
    pub fn open(&self, path: &Path) -> Result<Trace> {
        self.open_cpus(path, &[])
    }

    /// Opens a trace as if these CPUs alone had been recorded; all if there is none.
    pub fn open_cpus(&self, path: &Path, cpus: &[Cpu]) -> Result<Trace> {
        if path.as_os_str() == "-" {
            bail!(
                "a trace is not read from standard input, since its parts are looked up by their places; \
                 save it to a file first (a file named - is ./-)"
            );
        }
        let options = Options {
            threads: self.threads,
            budget: 0,
            buffer: self.buffer.clone(),
            clock: self.clock.clone(),
            clock_hz: self.clock_hz,
            host_time: self.host_time,
            cpus: cpus.to_vec(),
            most_state: self.most_state,
        };
        let what = format!("opening {}", name_of(path));
        progress::waiting(&what, self.quiet || self.is_beside_others, || recordings::open(path, options))
            .map_err(|e| named(path, e))
    }

    /// The machine whose file lies beside a trace. A file that cannot be used is reported and left out: the trace can
    /// be read without it.
    pub fn machine(&self, path: &Path, trace: &Trace) -> Option<Machine> {
        let path = Machine::path_beside(path);
        if !path.exists() {
            return None;
        }
        let why = match (Machine::open(&path), trace.info().kernel) {
            (Err(why), _) => why.to_string(),
            (Ok(machine), kernel) => match (&machine.kernel.release, kernel) {
                (Some(release), Some(kernel)) if *release != kernel => {
                    format!("it is of Linux {release}, the trace of {kernel}; --topology takes it all the same")
                }
                _ => return Some(machine),
            },
        };
        let mut message = format!("{} is left out: {why}", path.display());
        sched::event::escape_lines(&mut message, 0);
        self.message(&message);
        None
    }

    /// A trace of this length as texts name it. The commands that texts print on the trace read it in the same way,
    /// with the same topology and CPUs.
    pub fn drawable(&self, path: &Path, window: &WindowArgs, length: Dur) -> Drawable {
        let reading = [
            word("", Some(path)),
            word("--buffer ", self.buffer.as_ref()),
            word("--clock ", self.clock.as_ref()),
            word("--clock-hz ", self.clock_hz.map(|hz| hz.to_string())),
            self.host_time.then(|| "--host-time".to_owned()),
            self.application.strict.then(|| "--strict".to_owned()),
            word("--application ", self.application.application.as_ref().map(ToString::to_string)),
        ];
        let shown = [
            word("--topology ", window.topology.as_ref()),
            word("--order ", window.order.map(OrderArg::name)),
            word("--cpus ", window.cpus.as_ref().map(|cpus| &cpus.list)),
        ];
        let TimeArgs { min, max } = window.time;
        let asked = [("--min ", min), ("--max ", max)].map(|(option, at)| word(option, at.map(|at| at.to_string())));
        let name = sched::event::escape(path.as_os_str().as_encoded_bytes());
        let all = |words: &[Option<String>]| words.iter().flatten().cloned().collect();
        Drawable::new(name, all(&reading), length).showing(all(&shown), all(&asked))
    }
}

/// Parses a number of Hz, or kHz, MHz, GHz, as the kernel's log has them.
fn frequency(text: &str) -> Result<u64, String> {
    let text = text.trim().to_ascii_lowercase();
    let units = [("ghz", 9), ("mhz", 6), ("khz", 3), ("hz", 0)];
    let with_unit = units.iter().find_map(|(unit, zeros)| Some((text.strip_suffix(unit)?.trim_end(), *zeros)));
    let (number, zeros) = with_unit.unwrap_or((&text, 0));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction:0<zeros$}");
    let is_whole = !whole.is_empty() && fraction.len() <= zeros && digits.bytes().all(|b| b.is_ascii_digit());
    let hz = digits.parse().ok().filter(|hz| is_whole && *hz > 0);
    hz.ok_or_else(|| "a frequency is a whole number of Hz, as 2394374000 or 2394.374MHz".to_owned())
}

/// The words of an option with a value, as a command line has them; nothing without a value.
fn word(option: &str, word: Option<impl AsRef<OsStr>>) -> Option<String> {
    word.map(|word| format!("{option}{}", shell_word(word.as_ref())))
}

/// The file name of a trace, fit to be printed.
pub fn name_of(path: &Path) -> String {
    sched::event::escape(path.file_name().unwrap_or(path.as_os_str()).as_encoded_bytes()).into_owned()
}

/// The greatest size of a text beside a trace, in bytes: a topology of 65,536 CPUs has 13 MB, a /proc/schedstat of as many 60 MB.
const TEXT: u64 = 64 << 20;

/// Reads a text. A file that is no text is read, too: the parser of the text has the better message.
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = machine::read_bounded(path, TEXT).with_context(|| path.display().to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An error with the file's name in front, unless it has it already.
pub fn named(path: &Path, error: parse::Error) -> anyhow::Error {
    match error {
        parse::Error::Io { .. } | parse::Error::NotAFile { .. } | parse::Error::Unwritten { .. } => error.into(),
        error => anyhow::Error::new(error).context(path.display().to_string()),
    }
}

/// An order of lanes
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OrderArg {
    /// CPUs by their numbers
    Number,
    /// Socket by socket
    Socket,
    /// NUMA node by NUMA node
    Node,
    /// Last-level cache by last-level cache
    Llc,
}

impl OrderArg {
    /// The word for the order on the command line.
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The maximum number of lanes of CPUs without any event that are drawn where there are more of them than of others.
const SILENT_LANES: usize = 64;

/// The CPUs to show, in lanes.
#[derive(Clone)]
pub struct Lanes {
    /// The CPUs in display order, each with the number of its group.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// The CPUs in display order together with those without any event, which have empty lanes; empty where there is
    /// none of these.
    pub all: Vec<(Cpu, Option<u32>)>,
    /// The name of the groups; empty where there are none.
    pub group_name: String,
    /// The CPUs that were asked for, with events or without.
    pub chosen: ChosenCpus,
}

impl Lanes {
    /// Keeps the lanes of the CPUs that `stays` accepts, where there are more lanes than can be distinguished, no CPU
    /// was asked for, and `stays` accepts any. Returns the number of lanes that were left out.
    pub fn only_where_many(&mut self, stays: impl Fn(Cpu) -> bool) -> usize {
        let count = |lanes: &Lanes| lanes.cpus.len().max(lanes.all.len());
        let before = count(self);
        if before <= MANY_LANES || !self.chosen.are_all() || !self.cpus.iter().any(|(cpu, _)| stays(*cpu)) {
            return 0;
        }
        self.cpus.retain(|(cpu, _)| stays(*cpu));
        self.all.retain(|(cpu, _)| stays(*cpu));
        before - count(self)
    }
}

/// A list of CPUs, as it was typed and by their numbers.
#[derive(Clone, Debug)]
pub struct CpuList {
    list: String,
    cpus: Vec<Cpu>,
}

impl CpuList {
    /// Parses a list.
    pub fn parse(list: &str) -> Result<CpuList, String> {
        let cpus = parse_cpu_list(list).ok_or("this is not a list of CPUs; write it as 0-15,32")?;
        Ok(CpuList { list: list.to_owned(), cpus })
    }

    /// The CPUs of the list, by their numbers.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }
}

/// The part of the time
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TimeArgs {
    /// Start here: seconds from the trace's start (1.25), or 150ms, 20us; @ before it: the trace's clock
    #[arg(long, value_name = "TIME", value_parser = Where::parse, allow_hyphen_values = true, help_heading = "Window")]
    min: Option<Where>,
    /// End here: a time as for --min
    #[arg(long, value_name = "TIME", value_parser = Where::parse, allow_hyphen_values = true, help_heading = "Window")]
    max: Option<Where>,
}

/// The part of a trace to show
#[derive(Clone, Debug, Default, clap::Args)]
pub struct WindowArgs {
    #[command(flatten)]
    time: TimeArgs,
    /// Only these CPUs, such as 0-15,32
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse, help_heading = "Window")]
    cpus: Option<CpuList>,
    /// The order of the CPUs; by socket where the topology is known, else by number
    #[arg(long, value_enum, value_name = "ORDER", help_heading = "Window")]
    order: Option<OrderArg>,
    /// The machine's topology: output of `lscpu -e -J`, `lscpu -p=cpu,core,socket,node,cache` or `schedviz machine`, or
    /// lines such as `cpu0 socket=0 core=0 smt=0 llc=0-7` [default: TRACE's .machine.json, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Window")]
    topology: Option<PathBuf>,
}

impl WindowArgs {
    /// The arguments that ask for this part of the time.
    pub fn of_time(time: &TimeArgs) -> WindowArgs {
        WindowArgs { time: time.clone(), ..WindowArgs::default() }
    }

    /// Whether a part of the time is asked for.
    pub fn bounds_time(&self) -> bool {
        self.time.min.is_some() || self.time.max.is_some()
    }

    /// The window, in a trace from `start` to `end`.
    pub fn window(&self, start: Ts, end: Ts) -> Result<Window> {
        let at = |given: Option<Where>| given.map(|at| at.in_trace(start));
        let window = Window { from: at(self.time.min), to: at(self.time.max) };
        let (from, to) = (window.from.unwrap_or(start), window.to.unwrap_or(end));
        let seconds = |ts: Ts| ts.0.saturating_sub(start.0) as f64 / 1e9;
        if window.from.is_some_and(|from| from > end) || to < start {
            bail!("the window is outside of the trace, which is {:.9} s long", end.since(start).seconds());
        }
        if from >= to && start < end {
            bail!("the window is empty: --min is at {:.9} s, --max at {:.9} s", seconds(from), seconds(to));
        }
        Ok(window)
    }

    /// The topology: the one that was given, else that of the machine file beside the trace, else that in the trace.
    pub fn topology(&self, machine: Option<&Machine>, trace: &Trace) -> Result<Topology> {
        let Some(path) = &self.topology else {
            let in_trace = || trace.topology().cloned();
            return Ok(machine.map(Machine::topology).or_else(in_trace).unwrap_or_default());
        };
        Topology::parse(&read_text(path)?).with_context(|| path.display().to_string())
    }

    /// The CPUs to show, of those that have events; `silent` are those that have none.
    pub fn cpus(&self, observed: &[Cpu], silent: &[Cpu], topology: &Topology) -> Result<Lanes> {
        let mut chosen = ChosenCpus::default();
        if let Some(CpuList { list, cpus }) = &self.cpus {
            chosen = ChosenCpus::only(cpus.clone());
            if !observed.iter().any(|cpu| chosen.has(*cpu)) {
                bail!("none of the CPUs {list} has an event; those with events are {}", format_cpu_list(observed));
            }
        }
        let mut cpus: Vec<Cpu> = observed.iter().copied().filter(|cpu| chosen.has(*cpu)).collect();
        let order = match self.order {
            None if topology.is_empty() => CpuOrder::Number,
            None => CpuOrder::Socket,
            Some(OrderArg::Number) => CpuOrder::Number,
            Some(OrderArg::Socket) => CpuOrder::Socket,
            Some(OrderArg::Node) => CpuOrder::Node,
            Some(OrderArg::Llc) => CpuOrder::Llc,
        };
        if let Some(named) = self.order {
            needs_groups(topology, order, &format!("--order {}", named.name()))?;
        }
        topology.arrange(&mut cpus, order);
        let name = match order {
            CpuOrder::Number => "",
            CpuOrder::Socket => "socket",
            CpuOrder::Node => "node",
            CpuOrder::Llc => "LLC",
        };
        let silent: Vec<Cpu> = silent.iter().copied().filter(|cpu| chosen.has(*cpu)).collect();
        // Lanes without anything in them are to leave room for the others.
        let mut all = if silent.is_empty() || silent.len() > SILENT_LANES.max(cpus.len()) {
            Vec::new()
        } else {
            [cpus.as_slice(), &silent].concat()
        };
        topology.arrange(&mut all, order);
        let grouped = |cpus: Vec<Cpu>| cpus.into_iter().map(|cpu| (cpu, topology.group(cpu, order))).collect();
        let (cpus, all) = (grouped(cpus), grouped(all));
        Ok(Lanes { cpus, all, group_name: name.to_owned(), chosen })
    }
}

/// Refuses an option for which the topology must have the groups of an order.
pub fn needs_groups(topology: &Topology, order: CpuOrder, option: &str) -> Result<()> {
    if topology.has_groups(order) {
        return Ok(());
    }
    if topology.is_empty() {
        bail!(
            "{option} needs the machine's topology: give it with --topology, or as a file of schedviz machine beside the trace"
        );
    }
    let groups = match order {
        CpuOrder::Llc => "last-level caches",
        CpuOrder::Node => "nodes or sockets",
        CpuOrder::Socket | CpuOrder::Number => "sockets",
    };
    bail!("{option}: the topology has no {groups}; lscpu -e -J does, and so do the lines that --topology takes")
}

/// The trace, and the part of it that is asked for
#[derive(Clone, Debug, clap::Args)]
pub struct TraceArgs {
    /// The recording: a trace.dat, a perf.data, a Perfetto trace or a printed one
    #[arg(value_name = "TRACE")]
    pub path: PathBuf,
    /// How the trace is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// The part of the trace that is asked for.
    #[command(flatten)]
    pub window: WindowArgs,
}

/// The place where reading begins
#[derive(Clone, Debug, Default, clap::Args)]
pub struct BeginArgs {
    /// Read from shortly before --min on, not from the start of the trace: at once, however long that is.
    /// A task that waited all the while unseen is missing then, one that ran all the while is called what it was
    /// at the end of the recording, and --forked is not known
    #[arg(long, requires = "min", help_heading = "Window")]
    pub fast_window: bool,
}

impl BeginArgs {
    /// Refuses what depends on who forked whom since the start of the trace.
    pub fn without_descent(&self, needed: bool, what: &str) -> Result<()> {
        if self.fast_window && needed {
            bail!(
                "{what} depends on who forked whom since the start of the trace, which --fast-window does not read; choose tasks with --tasks"
            );
        }
        Ok(())
    }
}

/// The arguments of a command as these words give them, for one command that uses another.
pub fn typed<A: clap::Args>(words: &[&OsStr]) -> Result<A> {
    let command = A::augment_args(clap::Command::new("schedviz").no_binary_name(true));
    Ok(A::from_arg_matches(&command.try_get_matches_from(words)?)?)
}

/// Parses a length of time, which may be zero.
pub fn length(text: &str) -> Result<Dur, String> {
    match Where::parse(text) {
        Ok(Where::FromStart(ns)) if ns >= 0 => Ok(Dur(ns.unsigned_abs())),
        _ => Err("this is not a length of time; write 1s, 10ms or 100us".to_owned()),
    }
}

/// Parses a length of time above zero.
pub fn positive_length(text: &str) -> Result<Dur, String> {
    match length(text) {
        Ok(Dur(0)) => Err("this is not a length of time above zero; write 1s, 10ms or 100us".to_owned()),
        parsed => parsed,
    }
}

/// The amount of detail to print
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DetailArgs {
    /// Print every case that is kept with all that is known of it, not only a line for each of the longest
    #[arg(short, long)]
    verbose: bool,
}

impl DetailArgs {
    /// Returns how much of each case is printed.
    pub fn detail(self) -> Detail {
        if self.verbose { Detail::Full } else { Detail::Brief }
    }
}

/// The width of the terminal; 80 columns where there is none.
pub fn terminal_width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))).unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_draws_reads_in_the_same_way() {
        let read = ReadArgs {
            buffer: Some("top".into()),
            clock: None,
            clock_hz: Some(2_000_000),
            host_time: false,
            threads: 2,
            quiet: true,
            color: clap::ColorChoice::Auto,
            application: ApplicationArgs::default(),
            messages: Messages::default(),
            most_state: None,
            is_beside_others: false,
        };
        let window = WindowArgs {
            order: Some(OrderArg::Llc),
            time: TimeArgs { min: Some(Where::FromStart(7)), max: Some(Where::At(Ts(20_900_000_000))) },
            cpus: CpuList::parse("0-3,5").ok(),
            ..WindowArgs::default()
        };
        let mut drawn = String::new();
        let trace = read.drawable(Path::new("my trace.dat"), &window, Dur(5_000_000_000));
        trace.draw(&mut drawn, 0, 1_000_000_000, Dur(0));
        let expected =
            "schedviz dat2graph 'my trace.dat' --buffer top --clock-hz 2000000 \\\n    --order llc --cpus 0-3,5";
        assert_eq!(drawn, format!("{expected} --min 0.999999 --max 1.000001\n"));
        let closer = trace.in_window().one_line("why", &[]);
        assert!(closer.ends_with(" --order llc --cpus 0-3,5 --min 0.000000007 --max @20.9"), "{closer}");
    }

    #[test]
    fn frequencies_have_units() {
        for (text, hz) in [("2394374000", 2_394_374_000), ("2394.374 MHz", 2_394_374_000), ("2.4GHz", 2_400_000_000)] {
            assert_eq!(frequency(text), Ok(hz));
        }
        assert_eq!((frequency("32.768khz"), frequency("100 Hz")), (Ok(32_768), Ok(100)));
        for bad in ["", "0", "MHz", ".5GHz", "-1", "+1", "1.5", "1.0000001MHz", "2.4.1GHz", "99999999999GHz", "2.4 THz"]
        {
            assert!(frequency(bad).is_err(), "{bad}");
        }
    }
}
