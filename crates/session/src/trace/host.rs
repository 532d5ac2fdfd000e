//! A guest's recording and that of its host, which were made together (`docs/read-the-numbers.md#host-and-guest`).

use crate::args::{HostArgs, ReadArgs, TraceArgs, WindowArgs, name_of, named};
use crate::progress;
use crate::trace::session::Session;
use crate::trace::vcpu_clock::ClockCheck;
use crate::trace::vcpu_names::NamedThreads;
use crate::trace::vcpus::{VcpuThread, VcpuThreads, VcpuTimes};
use crate::trace::warnings::grouped;
use anyhow::{Result, bail};
use parse::{Guest, Trace, TraceInfo};
use sched::event::CleanText;
use sched::nouns::noun;
use sched::topology::format_cpu_list;
use sched::{Cpu, EventIssue, Pass, Tracepoint, Ts, Window};
use serde::Serialize;
use std::path::Path;

/// The recording of a guest's host.
#[derive(Debug)]
pub struct Host {
    trace: Trace,
    name: String,
    guest: Guest,
    guest_name: String,
    /// The threads with names of vCPUs, where the host's file has no thread of the guest.
    named: Option<NamedThreads>,
    read: ReadArgs,
}

/// The vCPUs of a guest, by their threads in the recording of its host.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Vcpus {
    /// The file name of the host's recording.
    pub recording: String,
    /// The name of the guest in it.
    pub guest: CleanText,
    /// The times of all vCPUs together.
    #[serde(flatten)]
    pub times: VcpuTimes,
    /// The vCPUs with a thread, by number.
    pub vcpus: Vec<VcpuThread>,
    /// Whether the times of the guest's events agree with the host's.
    pub clock: ClockCheck,
    /// The facts that the two recordings lack, as sentences.
    pub missing: Vec<String>,
}

/// Returns a trace id as text.
pub fn trace_id(id: u64) -> String {
    format!("{id:#x}")
}

/// Returns the host's fact on a guest, where both recordings were made together; refused otherwise.
fn paired(guest: (&TraceInfo, &str), host: (&TraceInfo, &str)) -> Result<Guest> {
    let ((guest, guest_name), (host, host_name)) = (guest, host);
    let knows =
        |host: &TraceInfo, id: Option<u64>| host.guests.iter().find(|known| Some(known.trace_id) == id).cloned();
    if host.guest && knows(guest, host.trace_id).is_some() {
        bail!("--host {host_name}: this is the guest and {guest_name} its host; exchange the two");
    }
    let Some(asked) = guest.host_id else {
        bail!(
            "--host: {guest_name} was not recorded in a guest together with its host: it has no TIME_SHIFT, which relates the two clocks. Record \
             both with trace-cmd record -A"
        );
    };
    match host.trace_id {
        Some(id) if id == asked => {}
        Some(id) => bail!(
            "--host {host_name}: {guest_name} was recorded with the host's recording of trace id {}, and this one has {}",
            trace_id(asked),
            trace_id(id)
        ),
        None => bail!(
            "--host {host_name}: it has no trace id; {guest_name} was recorded with the host's recording of trace id {}",
            trace_id(asked)
        ),
    }
    let Some(found) = knows(host, guest.trace_id) else {
        let id = guest.trace_id.map_or_else(|| "none".to_owned(), trace_id);
        let known: Vec<String> =
            host.guests.iter().take(8).map(|known| format!("{} ({})", known.name, trace_id(known.trace_id))).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        bail!("--host {host_name}: it names no guest with the trace id of {guest_name} ({id}); its guests: {known}");
    };
    let kind = |clock: &str| if clock == "tsc2nsec" { "x86-tsc" } else { clock }.to_owned();
    if kind(&guest.clock) != kind(&host.clock) {
        bail!(
            "--host {host_name}: its clock is {:?}, that of {guest_name} {:?}: their times cannot be compared",
            host.clock.as_str(),
            guest.clock.as_str()
        );
    }
    Ok(found)
}

impl HostArgs {
    /// Opens the host's recording, if one is named, and checks that the guest's was made with it.
    pub fn host(&self, guest: &Path, read: &ReadArgs) -> Result<Option<Host>> {
        let Some(path) = &self.host else { return Ok(None) };
        let trace = read.of_host().open(path)?;
        let (name, guest_name) = (name_of(path), name_of(guest));
        let info = read.in_own_time().open(guest)?.info();
        let mut guest = paired((&info, &guest_name), (&trace.info(), &name))?;
        trace.has_time().map_err(|e| named(path, e))?;
        let search = || NamedThreads::of(&trace, info.cpus).map_err(|e| named(path, e));
        let threads = guest.vcpus.is_empty().then(|| progress::watched(&trace, read.quiet, search)).transpose()?;
        if let Some(NamedThreads::Found(vcpus)) = &threads {
            guest.vcpus.clone_from(vcpus);
        }
        Ok(Some(Host { trace, name, guest, guest_name, named: threads, read: read.clone() }))
    }

    /// Opens a trace, and where a host is named, in its time and with what it did with the vCPUs in the window.
    pub fn open(&self, args: &TraceArgs) -> Result<(Session, Option<Vcpus>)> {
        self.open_window(&args.path, &args.read, &args.window)
    }

    /// Opens a window of a trace in the same way.
    pub fn open_window(&self, path: &Path, read: &ReadArgs, window: &WindowArgs) -> Result<(Session, Option<Vcpus>)> {
        let Some(host) = self.host(path, read)? else { return Ok((Session::open(path, read, window)?, None)) };
        let session = Session::open(path, &read.in_host_time(), window)?;
        let vcpus = host.told(&session, session.from, session.to)?;
        Ok((session, Some(vcpus)))
    }

    /// Opens a window of a trace in the same way, with what the host did with the vCPUs in the whole trace.
    pub fn open_whole(&self, path: &Path, read: &ReadArgs, window: &WindowArgs) -> Result<(Session, Option<Vcpus>)> {
        let Some(host) = self.host(path, read)? else { return Ok((Session::open(path, read, window)?, None)) };
        let session = Session::open(path, &read.in_host_time(), window)?;
        let (from, to) = session.trace.extent().unwrap_or((session.from, session.to));
        let vcpus = host.told(&session, from, to)?;
        Ok((session, Some(vcpus)))
    }
}

impl Host {
    /// Follows the threads of the vCPUs as [`Host::vcpus`] does, and prints what is missing.
    fn told(&self, session: &Session, from: Ts, to: Ts) -> Result<Vcpus> {
        let vcpus = self.vcpus(&session.trace, from, to)?;
        vcpus.missing.iter().for_each(|missing| session.read.message(&format!("{}: {missing}", vcpus.recording)));
        Ok(vcpus)
    }

    /// Follows the threads of the vCPUs from one instant to another. `guest`: the guest's recording, in the host's time.
    pub fn vcpus(&self, guest: &Trace, from: Ts, to: Ts) -> Result<Vcpus> {
        let analysis = |from, to| VcpuThreads::new(&self.guest.vcpus, from, to);
        let (start, end) = self.trace.extent().unwrap_or((to, to));
        // Nothing is known of what lies outside of the host's recording.
        let window = Window { from: Some(from.max(start)), to: Some(to.min(end)) };
        let followed = if start.max(from) < end.min(to) {
            let pass = || Pass::over(self.trace.events()?).window(window).run(|| analysis(from, to));
            progress::watched(&self.trace, self.read.quiet, pass)?
        } else {
            let nothing: &[sched::SchedEvent] = &[];
            Pass::over(nothing).run(|| analysis(from, to)).unwrap_or_else(|never| match never {})
        };
        let Some(vcpus) = followed.output else {
            bail!(
                "--host {}: the vCPUs were kept from running too often to keep each time; narrow the window",
                self.name
            );
        };
        let mut times = VcpuTimes::default();
        vcpus.iter().for_each(|vcpu| times.add(&vcpu.times));
        let check = || ClockCheck::of(guest, &vcpus, (from, to));
        let clock = progress::watched(guest, self.read.quiet, check)?;
        let mut missing = self.missing(guest, &vcpus, (from, to), (start, end));
        let unseen = followed.diagnostics.count(EventIssue::SwitchPrevMismatch);
        if unseen > 0 {
            let switches = format!("{} {}", grouped(unseen), noun(unseen, "switch"));
            missing.push(format!(
                "the host's recording lacks {switches} or more: a vCPU may have run where it counts as kept"
            ));
        }
        missing.extend(clock.sentence());
        Ok(Vcpus { recording: self.name.clone(), guest: self.guest.name.clone(), times, vcpus, clock, missing })
    }

    /// The facts that the two recordings lack, as sentences.
    fn missing(&self, guest: &Trace, vcpus: &[VcpuThread], asked: (Ts, Ts), host: (Ts, Ts)) -> Vec<String> {
        let mut missing = Vec::new();
        let list = |cpus: Vec<Cpu>| (!cpus.is_empty()).then(|| format_cpu_list(&cpus));
        let observed = guest.observed();
        let without = observed.iter().copied().filter(|cpu| vcpus.iter().all(|known| known.vcpu != *cpu)).collect();
        let none = |cpus| format!("the host's file names no thread for vCPU {cpus}");
        if let (Some(NamedThreads::Found(_)), Some(cpus)) = (&self.named, list(vcpus.iter().map(|v| v.vcpu).collect()))
        {
            missing.push(format!("{}: taken are those named CPU N/KVM or CPU N/TCG, as QEMU does", none(cpus)));
        }
        if let Some(cpus) = list(without) {
            let several = match &self.named {
                Some(NamedThreads::Several(name)) => {
                    format!(", and threads of several guests have names such as {name}")
                }
                _ => String::new(),
            };
            missing.push(format!("{}{several}: when it ran is unknown", none(cpus)));
        }
        let unseen = vcpus.iter().filter(|vcpu| vcpu.times.seen_ns() == 0).map(|vcpu| vcpu.vcpu).collect();
        if let Some(cpus) = list(unseen) {
            missing.push(format!("the host's recording does not show the thread of vCPU {cpus} in this time"));
        }
        let info = guest.info();
        if info.shifted_cpus < observed.len() {
            missing.push(format!(
                "{} has times of the host's clock for {} of its CPUs only: those of the others are the guest's own",
                self.guest_name, info.shifted_cpus
            ));
        }
        if host.0 > asked.0 || host.1 < asked.1 {
            missing.push("the host's recording does not cover the guest's whole time: the rest is unknown".to_owned());
        }
        let absent = |event: &Tracepoint| !self.trace.has(*event);
        if absent(&Tracepoint::Switch) {
            missing.push("sched:sched_switch was not recorded on the host: when vCPUs ran is unknown".to_owned());
        } else if [Tracepoint::Wakeup, Tracepoint::Waking].iter().all(absent) {
            missing.push(
                "sched:sched_wakeup was not recorded on the host: a vCPU counts as halted until it runs, not as kept"
                    .to_owned(),
            );
        }
        missing
    }
}

impl Vcpus {
    /// The vCPU that is this CPU of the guest, if it has a thread.
    pub fn of(&self, cpu: Cpu) -> Option<&VcpuThread> {
        self.vcpus.binary_search_by_key(&cpu, |vcpu| vcpu.vcpu).ok().map(|place| &self.vcpus[place])
    }

    /// The time within `from` to `to` for which the host kept this CPU of the guest, and that for which it is unknown, in nanoseconds.
    pub fn within(&self, cpu: Cpu, from: Ts, to: Ts) -> (u64, u64) {
        self.of(cpu).map_or((0, to.since(from).0), |vcpu| vcpu.within(from, to))
    }
}
