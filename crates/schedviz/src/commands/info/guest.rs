//! Host and guest in what `schedviz info` tells of a recording.

use super::{COLUMNS, paragraph};
use parse::{Guest, TraceInfo};
use sched::nouns::noun;
use serde::Serialize;
use session::host::{Vcpus, trace_id};
use session::warnings::grouped;
use std::fmt::Write;
use timeline::text::lines;

/// The facts about a recording that was made in a guest together with its host.
#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
struct InGuest {
    /// The trace id of the recording; null if the file does not have it.
    trace_id: Option<u64>,
    /// The trace id of the host's recording; null if the file does not have it.
    host_trace_id: Option<u64>,
    /// The number of CPUs whose times can be given on the host's clock.
    cpus_in_host_time: usize,
    /// Whether the times here are the host's.
    is_in_host_time: bool,
}

impl InGuest {
    fn of(info: &TraceInfo) -> Option<InGuest> {
        let facts = InGuest {
            trace_id: info.trace_id,
            host_trace_id: info.host_id,
            cpus_in_host_time: info.shifted_cpus,
            is_in_host_time: info.host_time,
        };
        info.guest.then_some(facts)
    }
}

/// The facts about a host and its guests.
#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(super) struct HostAndGuest {
    /// Whether it was recorded in a guest together with its host (trace-cmd record -A); absent if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_guest: Option<InGuest>,
    /// The guests that were recorded together with this host; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    guests: Vec<Guest>,
    /// The vCPUs of this guest, by the recording of its host; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<Vcpus>,
}

impl HostAndGuest {
    pub(super) fn of(info: &TraceInfo) -> HostAndGuest {
        HostAndGuest { in_guest: InGuest::of(info), guests: info.guests.clone(), host: None }
    }
}

/// Gives the lines about the host of a guest's recording, and about the guests of a host's.
pub(super) fn lines_of(line: &mut impl FnMut(&str, String), pair: &HostAndGuest) {
    if let Some(guest) = &pair.in_guest {
        let times = if guest.is_in_host_time { "the host's" } else { "the guest's own (the host's with --host-time)" };
        let host = guest
            .host_trace_id
            .map_or_else(String::new, |id| format!(", with the host's of trace id {}", trace_id(id)));
        line("guest", format!("recorded in a guest{host}; times are {times}"));
    }
    for guest in &pair.guests {
        let number = guest.vcpus.len();
        let id = trace_id(guest.trace_id);
        let threads = match number {
            0 => "the file names no thread of a vCPU".to_owned(),
            1 => "1 vCPU by its thread".to_owned(),
            _ => format!("{number} {} by their threads", noun(number, "vCPU")),
        };
        line("guest", format!("{}: {threads}, trace id {id}", guest.name));
    }
}

/// The maximum number of vCPUs that the text lists.
const VCPU_ROWS: usize = 64;

/// Writes the vCPUs by the host's recording.
pub(super) fn vcpu_rows(out: &mut String, host: &Vcpus) {
    let seconds = |ns: u64| format!("{:.6} s", ns as f64 / 1e9);
    lines(out, COLUMNS, 0, 11, &format!("{:<10} {}: the guest is {} there", "host", host.recording, host.guest));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:>5}  {:<18}  {:>11}  {:>11}  {:>11}  {:>11}",
        "vCPU", "thread on the host", "ran", "halted", "kept", "unknown"
    );
    for vcpu in host.vcpus.iter().take(VCPU_ROWS) {
        let [ran, halted, kept, unknown] =
            [vcpu.times.ran_ns, vcpu.times.halted_ns, vcpu.times.kept_ns, vcpu.times.unknown_ns].map(seconds);
        let thread = vcpu.pid.named(vcpu.command);
        let _ = writeln!(out, "{:>5}  {thread:<18}  {ran:>11}  {halted:>11}  {kept:>11}  {unknown:>11}", vcpu.vcpu.0);
    }
    if host.vcpus.len() > VCPU_ROWS {
        let _ = writeln!(out, " rest  {} more (--json)", grouped((host.vcpus.len() - VCPU_ROWS) as u64));
    }
    for missing in &host.missing {
        paragraph(out, missing);
    }
}
