//! A trace as the page shows it: its index as far as that is made, and the facts about the trace.

use crate::columns::tasks::TaskEntry;
use crate::index::folds::{CpuPlace, Fold, folds};
use crate::index::sample;
use crate::index::scope::Scope;
use crate::index::store::{Store, lock};
use crate::index::tiles::{Index, SumBy};
use crate::index::trust::WindowTrust;
use crate::{Shape, Unusable};
use lanes::{Coloring, learn_colors};
use parse::{Error, EventStream, Trace};
use sched::affinity::Affinity;
use sched::event::CleanText;
use sched::kthread::{is_any_idle_injector, is_any_stopper};
use sched::lineage::Kin;
use sched::topology::{CpuOrder, Distance};
use sched::{Analysis, Cause, ChosenCpus, Cpu, EventIssue, Topology, Tracepoint, Ts};
use serde::Serialize;
use session::stacks::{NamedStacks, StackedEvent};
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use timeline::PALETTE;
use workcons::{UnknownParts, Watch};

/// A trace that is shown.
pub struct Viewed<'t> {
    name: String,
    pub(crate) trace: &'t Trace,
    topology: Topology,
    /// The CPUs that have lanes, in their order.
    cpus: Vec<Cpu>,
    /// The CPUs without events, ascending.
    silent: Vec<Cpu>,
    /// The groups of lanes that can be shown as one.
    folds: Vec<Fold>,
    start: Ts,
    end: Ts,
    scope: Scope,
    coloring: OnceLock<Coloring>,
    /// The stacks of the events, read when the first event is put into words.
    stacks: OnceLock<NamedStacks>,
    /// The kinds of events that were recorded, counted when all of the trace was read.
    recorded: OnceLock<Vec<&'static str>>,
    /// The judgement on the whole trace, once it was asked for.
    trust: OnceLock<WindowTrust>,
    /// The index from a file.
    known: Option<Arc<Index>>,
    save: Option<Box<Save<'t>>>,
    stage: Mutex<Stage<'t>>,
}

/// A function that keeps an index once it was made.
type Save<'t> = dyn Fn(&Index) + Send + Sync + 't;

/// The state of the index of a trace.
#[derive(Clone)]
enum Stage<'t> {
    /// The index is being made; with the coarse levels so far.
    Reading(Option<Arc<Index>>),
    Ready(Arc<Store<EventStream<'t>>>),
    Failed(String),
}

/// The facts about a trace, and its tasks.
#[derive(Serialize)]
struct Head<'h> {
    name: &'h str,
    kernel: Option<CleanText>,
    clock: CleanText,
    /// The start on the trace's clock, in nanoseconds; as text, since it can exceed the whole numbers of the page.
    start: String,
    span: u64,
    command: Option<u64>,
    progress: f64,
    full: bool,
    /// Whether tiles are there, of the whole trace or of the part that was read so far.
    readable: bool,
    levels: (u32, u32),
    index: IndexSize,
    cpus: Vec<CpuPlace>,
    /// The scheduler's tracepoints that were recorded, once all of the trace was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<&'h [&'static str]>,
    folds: &'h [Fold],
    tasks: Vec<TaskFacts>,
    causes: Vec<&'static str>,
    losses: u64,
    /// Whether stacks were recorded with events; left out where none were.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stacks: bool,
    tile: TileSize,
}

#[derive(Serialize)]
struct IndexSize {
    level: u32,
    bytes: usize,
}

#[derive(Serialize)]
struct TileSize {
    columns: u64,
    lanes: usize,
}

#[derive(Serialize)]
struct TaskFacts {
    pid: sched::Pid,
    comm: String,
    run: u64,
    node: Option<u32>,
    parent: Option<sched::Pid>,
    class: &'static str,
    place: usize,
    command: Option<usize>,
    by_parent: Option<usize>,
}

/// The index is not ready, or could not be made.
#[derive(Debug)]
pub(crate) struct NotReady(pub(crate) String);

impl<'t> Viewed<'t> {
    /// A trace with the CPUs that have lanes, in their order: those with events, and `silent` ones, ascending. Refused if
    /// the trace has no event. `affinity`: the CPUs that tasks may use, where lists restrict any, or records can.
    pub fn new(
        name: String,
        trace: &'t Trace,
        topology: Topology,
        (cpus, silent): (Vec<Cpu>, Vec<Cpu>),
        affinity: Option<Arc<Affinity>>,
    ) -> Result<Viewed<'t>, Error> {
        let part = trace.past().map(|past| (past.from, past.to));
        let (start, end) = part.or_else(|| trace.extent()).ok_or_else(|| trace.no_events())?;
        let scope = Scope::of_trace(start, end, &cpus, trace.data_size()).with_affinity(affinity);
        let places: Vec<CpuPlace> = cpus.iter().map(|cpu| CpuPlace::of(*cpu, &topology)).collect();
        let folds = folds(&places, scope.shape().lanes);
        let (coloring, stage) = (OnceLock::new(), Mutex::new(Stage::Reading(None)));
        Ok(Viewed {
            name,
            trace,
            topology,
            cpus,
            silent,
            folds,
            start,
            end,
            scope,
            coloring,
            stacks: OnceLock::new(),
            recorded: OnceLock::new(),
            trust: OnceLock::new(),
            known: None,
            save: None,
            stage,
        })
    }

    /// Takes the index from a file that [`Index::write`] wrote for this key.
    pub fn take_index(&mut self, key: u64, file: impl Read) -> Result<(), Unusable> {
        self.known = Some(Arc::new(Index::read(key, &self.scope, file)?));
        Ok(())
    }

    /// Calls `save` with the index once it is made.
    #[must_use]
    pub fn saving(self, save: impl Fn(&Index) + Send + Sync + 't) -> Viewed<'t> {
        Viewed { save: Some(Box::new(save)), ..self }
    }

    /// The stacks of the events of the trace.
    pub(crate) fn stacks(&self) -> &NamedStacks {
        self.stacks.get_or_init(|| NamedStacks::of(self.trace, &StackedEvent::ALL))
    }

    /// Makes the index; the coarse levels are shown meanwhile. An index from a file is shown at once, and the trace is
    /// read for finer columns. `checkpoints`: their maximum number and bytes.
    pub(crate) fn read(&self, checkpoints: (usize, usize)) {
        if let Some(index) = &self.known {
            self.set(Stage::Reading(Some(Arc::clone(index))));
            let made = self.trace.events().and_then(|events| Store::with_index(events, Arc::clone(index), checkpoints));
            return self.end(made);
        }
        let sampled = sample::index(self.trace, &self.scope).map(Arc::new);
        self.set(Stage::Reading(sampled.clone()));
        let publish = |index: Index| self.set(Stage::Reading(Some(Arc::new(index))));
        let scope = (&self.scope, sampled.as_ref());
        let made = self.trace.events().and_then(|events| Store::build_with(events, scope, &publish, checkpoints));
        if let (Ok(store), Some(save)) = (&made, &self.save) {
            save(store.index());
        }
        self.end(made);
    }

    fn end(&self, made: Result<Store<EventStream<'t>>, Error>) {
        self.set(match made {
            Ok(store) => Stage::Ready(Arc::new(store)),
            Err(e) => Stage::Failed(e.to_string()),
        });
    }

    fn set(&self, stage: Stage<'t>) {
        *lock(&self.stage) = stage;
    }

    fn stage(&self) -> Stage<'t> {
        lock(&self.stage).clone()
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the file of the trace is as long as it was when it was opened.
    pub(crate) fn is_whole(&self) -> bool {
        self.trace.is_whole()
    }

    /// The shape of its tiles.
    pub(crate) fn shape(&self) -> Shape {
        self.scope.shape()
    }

    /// Follows the violation of work conservation in a window.
    pub(crate) fn watch(&self) -> Watch {
        self.scope.watch()
    }

    /// The distance of two CPUs; nothing where it is not known.
    pub(crate) fn distance(&self, a: Cpu, b: Cpu) -> Option<Distance> {
        self.topology.distance(a, b)
    }

    /// The CPUs that tasks may use, to be shared with an analysis.
    pub(crate) fn shared_affinity(&self) -> Option<Arc<Affinity>> {
        self.scope.affinity.clone()
    }

    /// The CPUs that tasks may use, where lists restrict any, or records can.
    pub(crate) fn affinity(&self) -> Option<&Affinity> {
        self.scope.affinity.as_deref()
    }

    /// The scope of a part of the trace, for its lists alone: without lanes.
    pub(crate) fn part(&self, from: Ts, to: Ts) -> Scope {
        Scope::of_trace(from, to, &[], 0).with_affinity(self.scope.affinity.clone())
    }

    /// The options by which `workcons` counts the violation that the page shows.
    pub(crate) fn options(&self) -> workcons::Options<'_> {
        workcons::Options { affinity: self.affinity(), ..workcons::Options::default() }
    }

    /// The judgement on the numbers of the whole trace.
    pub(crate) fn trust(&self) -> Result<&WindowTrust, NotReady> {
        if let Some(known) = self.trust.get() {
            return Ok(known);
        }
        let (store, window) = (self.store()?, self.extent());
        let parts = || store.window(window.0, window.1, UnknownParts::of(ChosenCpus::default()));
        let unknown = match store.unknown() {
            Some(unknown) => unknown.clone(),
            None => parts().map_err(|e| NotReady(e.to_string()))?,
        };
        let judged = WindowTrust::of((self.trace, &store), window, unknown, &self.options());
        let judged = judged.map_err(|e| NotReady(e.to_string()))?;
        Ok(self.trust.get_or_init(|| judged))
    }

    /// Makes an analysis of the whole trace, and the judgement on its numbers in the same reading.
    pub(crate) fn judged_with<A: Analysis>(&self, analysis: A) -> Result<A::Output, NotReady> {
        let (store, window) = (self.store()?, self.extent());
        let failed = |e: Error| NotReady(e.to_string());
        let Some(unknown) = store.unknown().filter(|_| self.trust.get().is_none()) else {
            return store.window(window.0, window.1, analysis).map_err(failed);
        };
        let judged = WindowTrust::beside((self.trace, &store), window, unknown.clone(), &self.options(), analysis);
        let (judged, output) = judged.map_err(failed)?;
        self.trust.get_or_init(|| judged);
        Ok(output)
    }

    /// The names of the scheduler's tracepoints that were recorded.
    fn recorded(&self) -> &[&'static str] {
        self.recorded.get_or_init(|| {
            let counts = self.trace.event_counts();
            let is_recorded = |kind: &&Tracepoint| {
                counts.iter().any(|event| event.system == kind.system() && event.name == kind.name())
            };
            Tracepoint::ALL.iter().filter(is_recorded).map(|kind| kind.name()).collect()
        })
    }

    /// The CPUs that have lanes, in their order.
    pub(crate) fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The trace's first instant and its last.
    pub(crate) fn extent(&self) -> (Ts, Ts) {
        (self.start, self.end)
    }

    /// The length of the trace, in nanoseconds.
    pub(crate) fn span(&self) -> u64 {
        self.end.since(self.start).0
    }

    /// The index with the events behind it, once it is complete.
    pub(crate) fn store(&self) -> Result<Arc<Store<EventStream<'t>>>, NotReady> {
        match self.stage() {
            Stage::Ready(store) => Ok(store),
            Stage::Reading(_) => Err(NotReady("the trace is still being read".to_owned())),
            Stage::Failed(why) => Err(NotReady(why)),
        }
    }

    /// A tile of lanes; nothing if there is none.
    pub(crate) fn lanes(&self, level: u32, group: usize, index: u64) -> Result<Option<Vec<u8>>, NotReady> {
        self.tile(level, index, |store| store.lanes(level, group, index), |coarse| coarse.lanes(level, group, index))
    }

    /// The tile of these groups, each as one lane; nothing if there is none.
    pub(crate) fn sums(&self, level: u32, tile: usize, index: u64, by: SumBy) -> Result<Option<Vec<u8>>, NotReady> {
        self.sums_by(tile, |lanes| {
            let of_coarse = |coarse: &Index| coarse.sum(level, lanes.clone(), index, by);
            self.tile(level, index, |store| store.sum(level, lanes.clone(), index, by), of_coarse)
        })
    }

    /// The tile of these groups, whose lanes `sum` makes.
    pub(crate) fn sums_by(
        &self,
        tile: usize,
        sum: impl Fn(Range<usize>) -> Result<Option<Vec<u8>>, NotReady>,
    ) -> Result<Option<Vec<u8>>, NotReady> {
        let mut all: Option<Vec<u8>> = None;
        for fold in self.folds.iter().filter(|fold| fold.tile == tile) {
            match sum(fold.range())? {
                None => return Ok(None),
                Some(one) => append_lane(&mut all, one),
            }
        }
        Ok(all)
    }

    /// The groups of lanes that can be shown as one.
    pub(crate) fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// A tile of the machine; nothing if there is none.
    pub(crate) fn machine(&self, level: u32, index: u64) -> Result<Option<Vec<u8>>, NotReady> {
        self.tile(level, index, |store| store.machine(level, index), |coarse| coarse.machine(level, index))
    }

    /// A tile of the rows of the tasks with these places, once all of the trace was read; nothing if there is none.
    pub(crate) fn row_tile(&self, level: u32, index: u64, places: &[usize]) -> Result<Option<Vec<u8>>, NotReady> {
        self.store()?.row_tile(level, index, places).map_err(NotReady)
    }

    fn tile(
        &self,
        level: u32,
        index: u64,
        full: impl Fn(&Store<EventStream<'t>>) -> Result<Option<Vec<u8>>, Error>,
        coarse: impl Fn(&Index) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, NotReady> {
        match self.stage() {
            Stage::Ready(store) => full(&store).map_err(|e| NotReady(e.to_string())),
            Stage::Reading(Some(so_far)) if level >= so_far.levels().0 || !so_far.has_tile(level, index) => {
                Ok(coarse(&so_far))
            }
            Stage::Reading(_) => Err(NotReady("the trace is still being read".to_owned())),
            Stage::Failed(why) => Err(NotReady(why)),
        }
    }

    /// The facts about the trace as JSON. `finest`: the level of the finest tiles, once all was read.
    pub(crate) fn head(&self, finest: u32) -> Result<Vec<u8>, NotReady> {
        let stage = self.stage();
        let (index, full) = match &stage {
            Stage::Ready(store) => (Some(store.index()), true),
            Stage::Reading(index) => (index.as_deref(), false),
            Stage::Failed(why) => return Err(NotReady(why.clone())),
        };
        let info = self.trace.info();
        let top = self.scope.top();
        let levels = match index {
            Some(_) if full => (finest, top),
            Some(index) => index.levels(),
            None => (top, top),
        };
        let progress = self.trace.data_read() as f64 / self.trace.data_size().max(1) as f64;
        let head = Head {
            name: &self.name,
            kernel: info.kernel,
            clock: info.clock,
            start: self.start.0.to_string(),
            span: self.span(),
            command: index.and_then(Index::command),
            progress: if full { 1.0 } else { progress.min(0.99) },
            full,
            readable: index.is_some(),
            levels,
            index: IndexSize { level: index.map_or(top, |i| i.levels().0), bytes: index.map_or(0, Index::size) },
            cpus: self.cpus.iter().map(|cpu| self.place(*cpu)).collect(),
            recorded: full.then(|| self.recorded()),
            folds: &self.folds,
            tasks: index.map_or(Vec::new(), |index| index.tasks().list().iter().map(|task| self.facts(task)).collect()),
            causes: Cause::ALL.iter().map(|cause| cause.name()).collect(),
            losses: index.map_or(0, Index::losses) + self.trace.diagnostics().count(EventIssue::EventsLost),
            stacks: self.trace.has_stacks(),
            tile: TileSize { columns: self.shape().columns, lanes: self.shape().lanes },
        };
        serde_json::to_vec(&head).map_err(|e| NotReady(e.to_string()))
    }

    fn place(&self, cpu: Cpu) -> CpuPlace {
        CpuPlace { silent: self.silent.binary_search(&cpu).is_ok(), ..CpuPlace::of(cpu, &self.topology) }
    }

    /// The colours by task and by command, as the figures have them.
    fn coloring(&self) -> &Coloring {
        self.coloring.get_or_init(|| learn_colors(self.trace))
    }

    fn facts(&self, task: &TaskEntry) -> TaskFacts {
        let coloring = self.coloring();
        let kin = Kin { parent: task.parent, forked: false, descends: task.application, helps: false };
        let class = match () {
            () if is_any_stopper(task.comm) => "stopper",
            () if is_any_idle_injector(task.comm) => "injected",
            () if task.application => "application",
            () if kin.is_of_kernel(task.comm) => "kernel",
            () => "task",
        };
        let by_parent = |parent: sched::Pid| parent.0.rem_euclid(PALETTE.len() as i32) as usize;
        TaskFacts {
            pid: task.pid,
            comm: task.comm.to_string(),
            run: task.run_ns,
            node: task.home.and_then(|cpu| self.topology.group(cpu, CpuOrder::Node)),
            parent: task.parent,
            class,
            place: coloring.task_colors.place(task.pid),
            command: coloring.place_of_command(task.comm),
            by_parent: task.parent.map(by_parent),
        }
    }
}

/// The bytes of a tile of lanes with their number.
const LANES: Range<usize> = 6..8;

/// Appends a tile of one lane to a tile of several: both begin with the same head but for the number of lanes.
fn append_lane(all: &mut Option<Vec<u8>>, one: Vec<u8>) {
    let Some(all) = all else { return *all = Some(one) };
    let lanes =
        |tile: &[u8]| tile.get(LANES).map_or(0, |at| at.iter().rev().fold(0, |sum, byte| sum << 8 | u16::from(*byte)));
    let number = lanes(all) + lanes(&one);
    if let Some(at) = all.get_mut(LANES) {
        at.copy_from_slice(&number.to_le_bytes());
    }
    all.extend(one.get(LANES.end..).unwrap_or_default());
}
