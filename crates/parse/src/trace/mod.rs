//! A trace: opened, described, and read in the ways there are.

use crate::bytes::Endian;
use crate::decode::clock::ClockConversion;
use crate::decode::cpu_offline::Behind;
use crate::decode::format::EventFormat;
use crate::decode::plan::{CommonAt, DecodePlan};
use crate::decode::prev_state::States;
use crate::error::Error;
use crate::file::chunk::{Chunks, Pieces};
use crate::file::header::{BufferHeader, Header, RecorderStat};
use crate::file::page_layout::PageLayout;
use crate::file::source::Source;
use crate::file::time_shift::TimeShift;
use crate::issue::FileIssue;
use crate::limits;
use crate::parallel::{Pool, parallel, pool};
use crate::recover::{cpu_numbers, cpu_table, page_size};
use crate::ring::unit::{self, CpuPages, Store};
use crate::text::symbols::{self, Symbols};
use sched::event::CleanText;
use sched::pass::FirstEvent;
use sched::seeded::{SeededMap, SeededSet};
use sched::{Comm, Counters, Cpu, Diagnostics, Pid, Severity, Tracepoint, Ts};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

mod clocks;
mod commands;
mod count;
mod cpu;
mod events;
mod graph;
mod groups;
mod info;
mod names;
pub(crate) mod part;
pub(crate) mod print;
mod probes;
mod read_ahead;
mod record;
mod recording;
mod records;
mod sifted;
mod some_tasks;
mod stacks;
mod unread;
mod window;

use part::Note;
use print::PrintForm;

pub use count::{BufferCounts, CpuEventCounts, EventCount, EventCounts};
pub use cpu::CpuReader;
pub use events::EventStream;
pub use info::TraceInfo;
pub use record::{Kept, Record};
pub use recording::{CpuUnits, Origin, Recording, TaskRecords};
pub use records::Neighbours;
pub use stacks::{CallChains, ChainSample, EventStacks, StackFrame, StackId, StackKey, StackedEvent};
pub use window::Where;

/// The texts that explain a trace's events, for a printer other than ours.
#[derive(Clone, Debug)]
pub struct Texts {
    /// The formats, each with its system.
    pub formats: Vec<(String, Vec<u8>)>,
    /// Text of `/proc/kallsyms`.
    pub kallsyms: Vec<u8>,
    /// Text of `printk_formats`.
    pub printk: Vec<u8>,
    /// Whether the machine is big-endian.
    pub big_endian: bool,
    /// The size of the kernel's `long`.
    pub long: usize,
    /// The size of a page of the buffer.
    pub page: usize,
}

/// The options of reading a trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads to decode with; 0 for as many as there are CPUs. Changes nothing but the speed.
    pub threads: usize,
    /// Units decoded in a round; 0 for the default. Changes nothing but speed and memory.
    pub budget: usize,
    /// Name of the only buffer to read; `None` reads all that have the clock of the first one with data.
    pub buffer: Option<String>,
    /// The clock, where the file's label is wrong: those of instances often are.
    pub clock: Option<String>,
    /// The frequency of a clock that counts cycles.
    pub clock_hz: Option<u64>,
    /// Gives the times of a guest's file in the host's time, by its TIME_SHIFT.
    pub host_time: bool,
    /// Only the data of these CPUs, as if they alone had been recorded; of all if there is none.
    pub cpus: Vec<Cpu>,
    /// The maximum size of the state of a pass, in bytes, beyond which it ends with [`Error::ManyTasks`]; none for any size.
    pub most_state: Option<usize>,
}

/// A trace.dat, or a recording in another format.
#[derive(Debug)]
pub struct Trace {
    source: Source,
    header: Header,
    lanes: Vec<Vec<CpuPages>>,
    /// The buffers that are read.
    selected: Vec<usize>,
    clock: CleanText,
    conversion: Result<ClockConversion, String>,
    formats: Vec<EventFormat>,
    /// The printer of each format's events, made when one of them is printed.
    forms: Vec<OnceLock<Option<PrintForm>>>,
    /// Whether events are printed by their formats alone, not as the plugins of trace-cmd do.
    prints_plainly: bool,
    by_id: SeededMap<u16, usize>,
    common: CommonAt,
    pool: Pool,
    /// Whether one thread reads, though there are several.
    is_alone: AtomicBool,
    options: Options,
    diagnostics: Diagnostics,
    read: AtomicU64,
    start: OnceLock<Option<Ts>>,
    /// The first event of each of the lanes that are read.
    firsts: OnceLock<Vec<Option<FirstEvent>>>,
    /// The instant of the last event of each.
    lasts: OnceLock<Vec<Option<Ts>>>,
    states: OnceLock<States>,
    /// A plan that decodes everything, but for `prev_state`.
    full_plan: OnceLock<DecodePlan>,
    /// State of a CPU behind a stopper, as [`Trace::behind_a_stopper`] finds it.
    behind_stoppers: OnceLock<Behind>,
    counts: OnceLock<EventCounts>,
    symbols: OnceLock<Symbols>,
    printk: OnceLock<SeededMap<u64, String>>,
    cmdlines: OnceLock<SeededMap<Pid, Comm>>,
    origin: Option<Origin>,
    counters: Option<Arc<dyn Counters>>,
    chains: Option<Arc<dyn CallChains>>,
    memberships: Option<TaskRecords>,
    /// The facts about the machine that no event shows.
    unshown: groups::UnshownFacts,
    /// The note of a part of a trace on the rest of it.
    note: Option<Note>,
    /// The probes on the balancer that have records.
    fired: OnceLock<probes::Fired>,
}

impl Trace {
    /// Opens the file at `path`.
    pub fn open(path: &Path, options: Options) -> Result<Trace, Error> {
        Trace::of_source(Source::open(path)?, options)
    }

    /// Takes the bytes of a file.
    pub fn from_bytes(bytes: Vec<u8>, options: Options) -> Result<Trace, Error> {
        Trace::of_source(Source::Memory(bytes), options)
    }

    /// Takes the bytes of a file, wherever they are.
    pub fn of_source(source: Source, options: Options) -> Result<Trace, Error> {
        let (mut header, mut diagnostics) = Header::parse(&source)?;
        let is_wanted = |cpu: u32| options.cpus.is_empty() || options.cpus.contains(&Cpu(cpu));
        header.options.stats.retain(|stat| is_wanted(stat.cpu));
        let pool = pool(options.threads);
        let mut lanes = Vec::new();
        let recorded = recorded(&header.options.stats);
        let mut expansion = limits::decompressed(source.size());
        for buffer in &header.buffers {
            let mut pages = cpu_pages(&source, &header, buffer, &pool, &mut expansion, &mut diagnostics);
            pages.retain(|pages| is_wanted(pages.cpu.0));
            for pages in &mut pages {
                if let Some(stat) = recorded.get(&(buffer.name.as_str(), pages.cpu.0)) {
                    (pages.recorded, pages.overwritten) = (stat.recorded, stat.overrun);
                }
            }
            unread::settle(&source, &pool, &mut pages, |cpu| recorded.get(&(buffer.name.as_str(), cpu.0)).copied());
            lanes.push(pages);
        }
        if header.buffers.iter().any(|b| b.untabled.is_some()) && lanes.iter().all(Vec::is_empty) {
            return Err(Error::unfinished());
        }
        let note = Note::read(&source, &header, &options, &mut diagnostics);
        let mut trace = Trace::assemble(source, header, lanes, pool, options, diagnostics)?;
        trace.take_note(note);
        Ok(trace)
    }

    /// A trace of a header and the data of each CPU of each buffer.
    fn assemble(
        source: Source,
        header: Header,
        lanes: Vec<Vec<CpuPages>>,
        pool: Pool,
        options: Options,
        mut diagnostics: Diagnostics,
    ) -> Result<Trace, Error> {
        let formats = header.formats.parse(&pool, &mut diagnostics);
        let mut by_id = SeededMap::default();
        for (index, format) in formats.iter().enumerate() {
            if let std::collections::hash_map::Entry::Vacant(e) = by_id.entry(format.id) {
                e.insert(index);
            } else {
                diagnostics.add_at(FileIssue::DuplicateFormat, || format!("{}:{}", format.system, format.name));
            }
        }
        let mut trace = Trace {
            source,
            lanes,
            selected: Vec::new(),
            clock: CleanText::default(),
            conversion: Ok(ClockConversion::default()),
            common: CommonAt::of(formats.first()),
            forms: formats.iter().map(|_| OnceLock::new()).collect(),
            formats,
            prints_plainly: false,
            by_id,
            pool,
            options,
            diagnostics,
            header,
            read: AtomicU64::new(0),
            is_alone: AtomicBool::new(false),
            start: OnceLock::new(),
            firsts: OnceLock::new(),
            lasts: OnceLock::new(),
            states: OnceLock::new(),
            full_plan: OnceLock::new(),
            behind_stoppers: OnceLock::new(),
            counts: OnceLock::new(),
            symbols: OnceLock::new(),
            printk: OnceLock::new(),
            cmdlines: OnceLock::new(),
            origin: None,
            counters: None,
            chains: None,
            memberships: None,
            unshown: groups::UnshownFacts::default(),
            note: None,
            fired: OnceLock::new(),
        };
        trace.select()?;
        trace.dropped();
        trace.note_clocks_apart();
        Ok(trace)
    }

    /// Chooses the buffers to read: the one asked for, or all that have the clock of the first.
    fn select(&mut self) -> Result<(), Error> {
        let buffers = &self.header.buffers;
        if let Some(name) = &self.options.buffer {
            let wanted = if name == "top" { "" } else { name };
            let Some(index) = buffers.iter().position(|b| b.name == wanted) else {
                let names: Vec<&str> =
                    buffers.iter().map(|b| if b.name.is_empty() { "top" } else { b.name.as_str() }).collect();
                return Err(Error::NoBuffer { name: name.clone(), available: names.join(", ") });
            };
            self.selected = vec![index];
        } else {
            let with_data = |i: &usize| self.lanes.get(*i).is_some_and(|l| !l.is_empty());
            self.selected = (0..buffers.len()).filter(with_data).collect();
        }
        // A file without data has a clock all the same.
        let first = self.selected.first().map_or(buffers.first(), |i| buffers.get(*i));
        let label = first.map_or(CleanText::default(), |b| b.clock.clone());
        for index in std::mem::take(&mut self.selected) {
            let buffer = buffers.get(index);
            if self.options.clock.is_none() && buffer.is_some_and(|b| b.clock != label) {
                let name = buffer.map_or("", |b| &b.name);
                self.diagnostics.add_at(FileIssue::OtherClock, || name.to_owned());
            } else {
                self.selected.push(index);
            }
        }
        self.clock = self.options.clock.as_deref().map_or(label, CleanText::from);
        let options = &self.header.options;
        let conversion = ClockConversion::new(&self.clock, options.tsc, self.options.clock_hz, options.shift_ns());
        self.conversion = conversion.map_err(|e| e.to_string());
        if self.options.host_time && options.time_shift.is_none() {
            return Err(Error::NoHost);
        }
        self.leave_out_disjoint();
        Ok(())
    }

    /// Events that the recorder counted as dropped leave no mark in the pages, nor do those of a CPU without data.
    fn dropped(&mut self) {
        let is_whole = self.diagnostics.iter().all(|(what, ..)| what.severity() != Severity::DataLoss);
        let buffers = self.header.buffers.iter().zip(&self.lanes);
        let with_data: SeededSet<(&str, u32)> =
            buffers.flat_map(|(buffer, lanes)| lanes.iter().map(|pages| (buffer.name.as_str(), pages.cpu.0))).collect();
        for stat in &self.header.options.stats {
            let dropped = stat.dropped.saturating_add(stat.commit_overrun);
            self.diagnostics.add_many(FileIssue::EventsDroppedUnmarked, dropped);
            if is_whole && !with_data.contains(&(stat.buffer.as_str(), stat.cpu)) {
                let events = stat.recorded.unwrap_or(0).saturating_add(stat.overrun);
                unit::note_unwritten(stat.cpu, events, &mut self.diagnostics);
            }
        }
    }

    /// Whether instants are nanoseconds. If not, events can be counted and listed, in the clock's
    /// own unit, but without times.
    pub fn has_time(&self) -> Result<(), Error> {
        let options = &self.header.options;
        ClockConversion::new(&self.clock, options.tsc, self.options.clock_hz, options.shift_ns()).map(drop)
    }

    /// The buffers that are read, by their place in [`TraceInfo::buffers`].
    pub fn selected_buffers(&self) -> &[usize] {
        &self.selected
    }

    /// The findings on opening the file.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// The counts of all events; found by a walk over the whole file the first time.
    pub fn counts(&self) -> &EventCounts {
        self.counts.get_or_init(|| self.count_all())
    }

    /// The error for a trace without events, with the reason if that is a limit.
    pub fn no_events(&self) -> Error {
        let beyond = self.diagnostics.iter().find(|(what, ..)| *what == FileIssue::BeyondLimit);
        let why = beyond.map(|(what, count, first)| {
            let first = first.map_or_else(String::new, |first| format!(" [{first}]"));
            what.line(count) + &first
        });
        Error::NoEvents { why: why.unwrap_or_default() }
    }

    /// Returns the formats of all events that the file describes.
    pub fn formats(&self) -> &[EventFormat] {
        &self.formats
    }

    /// The format of an event number.
    pub fn format(&self, id: u16) -> Option<&EventFormat> {
        self.formats.get(*self.by_id.get(&id)?)
    }

    /// Returns the printer of the events with this number; `None` if their print format cannot be followed.
    pub(crate) fn form(&self, id: u16) -> Option<&PrintForm> {
        let place = *self.by_id.get(&id)?;
        self.forms.get(place)?.get_or_init(|| PrintForm::of(self.formats.get(place)?, self.prints_plainly)).as_ref()
    }

    /// The format of `system:name`.
    pub fn format_named(&self, system: &str, name: &str) -> Option<&EventFormat> {
        self.formats.iter().find(|f| f.system == system && f.name == name)
    }

    /// The format of a tracepoint.
    pub fn format_of(&self, tracepoint: Tracepoint) -> Option<&EventFormat> {
        self.format_named(tracepoint.system(), tracepoint.name())
    }

    /// The instant of the earliest event of the buffers that are read; of a part of a trace, that of the whole.
    pub fn start(&self) -> Option<Ts> {
        // Each lane's first unit asks for it, and a damaged file can have lanes by the ten thousand.
        let first = || self.firsts().iter().flatten().map(|first| first.ts).min();
        *self.start.get_or_init(|| self.past().map(|past| past.start).or_else(first))
    }

    /// The command name that the recorder saved for a pid; empty if none. It is that of the end of
    /// the recording: the names in the events are better.
    pub fn saved_name(&self, pid: Pid) -> Comm {
        self.saved_names().get(&pid).copied().unwrap_or_default()
    }

    /// Returns the command names that the recorder saved.
    pub fn saved_names(&self) -> &SeededMap<Pid, Comm> {
        self.cmdlines.get_or_init(|| symbols::cmdlines(&self.text(&self.header.cmdlines)))
    }

    pub(crate) fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| Symbols::parse(&self.text(&self.header.kallsyms)))
    }

    pub(crate) fn printk_formats(&self) -> &SeededMap<u64, String> {
        self.printk.get_or_init(|| symbols::printk_formats(&self.text(&self.header.printk)))
    }

    /// Prints switches and wakeups by their formats from now on, as `trace-cmd report -N` does, and not as its plugins do.
    pub fn print_plainly(&mut self) {
        self.prints_plainly = true;
        self.forms = self.formats.iter().map(|_| OnceLock::new()).collect();
    }

    /// The texts that explain the events, as they are in the file.
    pub fn texts(&self) -> Texts {
        Texts {
            formats: self.header.formats.texts().map(|(system, text)| (system.to_owned(), text.to_vec())).collect(),
            kallsyms: self.text(&self.header.kallsyms),
            printk: self.text(&self.header.printk),
            big_endian: self.endian() == Endian::Big,
            long: self.kernel_long(),
            page: self.header.layout.size,
        }
    }

    pub(crate) fn text(&self, part: &crate::file::header::HeaderPart) -> Vec<u8> {
        part.text(&self.source, self.endian()).unwrap_or_default()
    }

    pub(crate) fn endian(&self) -> Endian {
        self.header.version.endian
    }

    pub(crate) fn kernel_long(&self) -> usize {
        self.header.layout.long
    }

    pub(crate) fn common(&self) -> &CommonAt {
        &self.common
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The name of a buffer, by its place in the file.
    pub(crate) fn buffer_name(&self, buffer: usize) -> &str {
        self.header.buffers.get(buffer).map_or("", |buffer| &buffer.name)
    }

    /// The recorder's statistics of a CPU: of several the first.
    pub(crate) fn stat(&self, buffer: &str, cpu: u32) -> Option<&RecorderStat> {
        self.header.options.stats.iter().find(|stat| stat.buffer == buffer && stat.cpu == cpu)
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn lanes(&self) -> &[Vec<CpuPages>] {
        &self.lanes
    }

    /// Reads with one thread from now on, as where tens of thousands of tasks live, beside whose tables the threads' own data have no room.
    pub fn read_with_one_thread(&self) {
        self.is_alone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn pool(&self) -> &Pool {
        static ALONE: Pool = None;
        if self.is_alone.load(Ordering::Relaxed) { &ALONE } else { &self.pool }
    }

    /// Whether raw stamps are instants as they are.
    pub(crate) fn stamps_are_instants(&self) -> bool {
        self.shift().is_none() && self.conversion.as_ref().map_or(true, ClockConversion::is_identity)
    }

    /// Returns the shift from the guest's time to the host's, if the options ask for the host's time.
    fn shift(&self) -> Option<&TimeShift> {
        self.header.options.time_shift.as_ref().filter(|_| self.options.host_time)
    }

    /// The instant of a raw stamp of a CPU. For a clock without a unit it is the stamp itself.
    #[inline]
    pub(crate) fn ts(&self, cpu: Cpu, raw: u64) -> Ts {
        let raw = self.shift().map_or(raw, |shift| shift.host(cpu, raw));
        match &self.conversion {
            Ok(conversion) => conversion.ts(raw),
            Err(_) => ClockConversion::default().ts(raw),
        }
    }

    /// Bytes of event data in the file.
    pub fn data_size(&self) -> u64 {
        self.lanes.iter().flatten().map(CpuPages::data_size).sum()
    }

    /// Bytes of event data read so far, for a display of progress.
    pub fn data_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn selected_lanes(&self) -> Vec<(usize, &CpuPages)> {
        let lanes = self.selected.iter().filter_map(|b| Some((*b, self.lanes.get(*b)?)));
        lanes.flat_map(|(b, lanes)| lanes.iter().map(move |pages| (b, pages))).collect()
    }

    /// Returns the lanes that are read, each from the last unit on that begins before `from`.
    fn lanes_from(&self, from: Ts) -> Vec<(usize, &CpuPages, usize)> {
        let unit = |pages| self.unit_before(pages, Ts(from.0.saturating_sub(1)));
        self.selected_lanes().into_iter().map(|(buffer, pages)| (buffer, pages, unit(pages))).collect()
    }

    /// Returns the lanes that are read, each from its first unit on.
    fn whole_lanes(&self) -> Vec<(usize, &CpuPages, usize)> {
        self.selected_lanes().into_iter().map(|(buffer, pages)| (buffer, pages, 0)).collect()
    }

    fn budget(&self) -> usize {
        // Where others decode while one merges, a round has to be worth handing out.
        let default = if self.pool.as_ref().is_some_and(|pool| pool.current_num_threads() > 2) { 128 } else { 64 };
        if self.options.budget > 0 { self.options.budget } else { default }
    }
}

/// The recorder's counts on each CPU of each buffer: of several statistics the first.
fn recorded(stats: &[RecorderStat]) -> SeededMap<(&str, u32), &RecorderStat> {
    let mut recorded = SeededMap::default();
    for stat in stats {
        recorded.entry((stat.buffer.as_str(), stat.cpu)).or_insert(stat);
    }
    recorded
}

/// The pages of each CPU of a buffer: its chunks are found, its page size is checked. `expansion`: bytes that chunks may
/// still expand to.
fn cpu_pages(
    source: &Source,
    header: &Header,
    buffer: &BufferHeader,
    pool: &Pool,
    expansion: &mut u64,
    diagnostics: &mut Diagnostics,
) -> Vec<CpuPages> {
    let endian = header.version.endian;
    let layout = PageLayout { size: buffer.page_size as usize, ..header.layout };
    let table = match &buffer.untabled {
        // Data compressed in an unknown way are of no use.
        Some(_) if buffer.compressed && header.codec.is_none() => Vec::new(),
        Some(place) => cpu_table::find(source, place, &layout, header.codec.filter(|_| buffer.compressed), diagnostics),
        None => buffer.cpus.clone(),
    };
    let unit = unit::plain_unit(table.len());
    let rows = parallel(pool, table, |row| {
        let found = buffer.compressed.then(|| Chunks::index(source, row.at..row.at.saturating_add(row.size), endian));
        (row, found)
    });
    let mut lanes = Vec::new();
    for (row, found) in rows {
        let mut is_cut = row.is_cut;
        let store = match found {
            Some(mut found) => {
                found.bound(expansion);
                if found.cut {
                    is_cut = true;
                    let what = if found.beyond { FileIssue::BeyondLimit } else { FileIssue::TruncatedData };
                    diagnostics.add_at(what, || format!("CPU {}, its compressed chunks", row.cpu));
                }
                Store::Chunks { codec: header.codec, chunks: found.chunks }
            }
            None => Store::Plain { at: row.at, size: row.size, unit },
        };
        lanes.push(CpuPages {
            cpu: Cpu(row.cpu),
            layout,
            store,
            is_cut,
            recorded: None,
            overwritten: 0,
            unread: 0,
            offline: None,
        });
    }
    page_size::settle(source, &mut lanes, diagnostics);
    cpu_numbers::settle(source, &header.options, &mut lanes, diagnostics);
    let count = lanes.len();
    for CpuPages { layout, store, .. } in &mut lanes {
        if let Store::Chunks { chunks, .. } = store {
            Pieces::of(count, layout.size).divide(chunks);
        }
    }
    lanes
}
