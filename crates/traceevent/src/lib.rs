//! Prints any event by its own print format, with the system's libtraceevent, as `trace-cmd report` does.
//!
//! In go the formats of a trace and a record, out comes the line that `trace-cmd report` prints. `parse` evaluates many print
//! formats by itself, libtraceevent all of them. It is C code that reads bytes of an untrusted file, so it is built only on
//! request (the feature `system`; `libtraceevent` in the program). Begin reading with the declarations in this file, which follow
//! `event-parse.h` and `trace-seq.h` of libtraceevent 1.1 to 1.8: these structures are part of its stable interface.
//!
//! No other crate of schedviz contains `unsafe`.
#![cfg(feature = "system")]
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uint, c_ulong, c_ulonglong, c_void};
use std::ptr::NonNull;

#[repr(C)]
struct Handle {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawRecord {
    ts: c_ulonglong,
    offset: c_ulonglong,
    missed_events: c_longlong,
    record_size: c_int,
    size: c_int,
    data: *mut c_void,
    cpu: c_int,
    ref_count: c_int,
    locked: c_int,
    private: *mut c_void,
}

#[repr(C)]
struct RawSeq {
    buffer: *mut c_char,
    buffer_size: c_uint,
    len: c_uint,
    readpos: c_uint,
    state: c_uint,
}

unsafe extern "C" {
    fn tep_alloc() -> *mut Handle;
    fn tep_free(tep: *mut Handle);
    fn tep_set_loglevel(level: c_int);
    fn tep_set_long_size(tep: *mut Handle, size: c_int);
    fn tep_set_page_size(tep: *mut Handle, size: c_int);
    fn tep_set_file_bigendian(tep: *mut Handle, endian: c_int);
    fn tep_set_local_bigendian(tep: *mut Handle, endian: c_int);
    fn tep_parse_event(tep: *mut Handle, text: *const c_char, size: c_ulong, system: *const c_char) -> c_int;
    fn tep_parse_kallsyms(tep: *mut Handle, text: *const c_char) -> c_int;
    fn tep_parse_printk_formats(tep: *mut Handle, text: *const c_char) -> c_int;
    fn tep_load_plugins(tep: *mut Handle) -> *mut c_void;
    fn tep_unload_plugins(plugins: *mut c_void, tep: *mut Handle);
    fn tep_print_event(tep: *mut Handle, seq: *mut RawSeq, record: *mut RawRecord, fmt: *const c_char, ...);
    fn trace_seq_init(seq: *mut RawSeq);
    fn trace_seq_reset(seq: *mut RawSeq);
    fn trace_seq_destroy(seq: *mut RawSeq);
    fn trace_seq_terminate(seq: *mut RawSeq);
}

/// The properties of a trace that the library needs.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'s> {
    /// The format texts, each with its system.
    pub formats: &'s [(String, Vec<u8>)],
    /// The text of `/proc/kallsyms` that the recorder saved.
    pub kallsyms: &'s [u8],
    /// The text of `printk_formats` that the recorder saved.
    pub printk: &'s [u8],
    /// Whether the recorded machine is big-endian.
    pub big_endian: bool,
    /// `sizeof(long)` of the kernel, in bytes.
    pub long: usize,
    /// The size of a page of the ring buffer, in bytes.
    pub page: usize,
}

/// Prints events as `trace-cmd report` does.
#[derive(Debug)]
pub struct Printer {
    tep: NonNull<Handle>,
    plugins: *mut c_void,
    seq: RawSeq,
}

// SAFETY: the library keeps its state behind the handle, the list of plugins and the sequence, which only the printer
// has; none of it is bound to a thread.
unsafe impl Send for Printer {}

impl std::fmt::Debug for RawSeq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawSeq").field("len", &self.len).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

/// Returns `text` up to its first NUL as a C string.
fn c_string(text: &[u8]) -> CString {
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

fn c_size(size: usize) -> c_int {
    c_int::try_from(size).unwrap_or(0)
}

impl Printer {
    /// Prepares the library; returns `None` if it cannot allocate memory. A format that it cannot parse is
    /// left out: its events print as empty text.
    pub fn new(setup: Setup<'_>) -> Option<Printer> {
        // SAFETY: the handle comes from tep_alloc and is freed once, in drop. Texts are
        // NUL-terminated and outlive the calls, which copy the parts that they keep.
        unsafe {
            tep_set_loglevel(0);
            let tep = NonNull::new(tep_alloc())?;
            let handle = tep.as_ptr();
            let plugins = tep_load_plugins(handle);
            tep_set_long_size(handle, c_size(setup.long));
            tep_set_page_size(handle, c_size(setup.page));
            tep_set_file_bigendian(handle, c_int::from(setup.big_endian));
            tep_set_local_bigendian(handle, c_int::from(cfg!(target_endian = "big")));
            for (system, text) in setup.formats {
                let (text, system) = (c_string(text), c_string(system.as_bytes()));
                tep_parse_event(handle, text.as_ptr(), text.as_bytes().len() as c_ulong, system.as_ptr());
            }
            let (kallsyms, printk) = (c_string(setup.kallsyms), c_string(setup.printk));
            tep_parse_kallsyms(handle, kallsyms.as_ptr());
            tep_parse_printk_formats(handle, printk.as_ptr());
            let mut seq = RawSeq { buffer: std::ptr::null_mut(), buffer_size: 0, len: 0, readpos: 0, state: 0 };
            trace_seq_init(&raw mut seq);
            Some(Printer { tep, plugins, seq })
        }
    }

    /// Returns the text that `trace-cmd report` prints behind the event's name of a record.
    pub fn print(&mut self, ts: u64, cpu: u32, payload: &[u8]) -> String {
        // The library may write to the data, so it gets a copy; with room behind it, since a text at
        // the end of a record may lack its NUL.
        let mut data = [payload, &[0; 16]].concat();
        let mut record = RawRecord {
            ts,
            offset: 0,
            missed_events: 0,
            record_size: c_size(payload.len()),
            size: c_size(payload.len()),
            data: data.as_mut_ptr().cast(),
            cpu: c_int::try_from(cpu).unwrap_or(0),
            ref_count: 1,
            locked: 0,
            private: std::ptr::null_mut(),
        };
        // SAFETY: handle and seq are valid since new; record and data outlive the call. The
        // format takes one string, which is passed. After trace_seq_terminate the buffer, if it
        // is not null, is NUL-terminated.
        unsafe {
            trace_seq_reset(&raw mut self.seq);
            tep_print_event(self.tep.as_ptr(), &raw mut self.seq, &raw mut record, c"%s".as_ptr(), c"INFO".as_ptr());
            trace_seq_terminate(&raw mut self.seq);
            // The library poisons the buffer of a sequence that could not grow.
            if self.seq.state != 0 || self.seq.buffer.is_null() {
                return String::new();
            }
            CStr::from_ptr(self.seq.buffer).to_string_lossy().into_owned()
        }
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        // SAFETY: all three are valid since new and are not used again.
        unsafe {
            trace_seq_destroy(&raw mut self.seq);
            tep_unload_plugins(self.plugins, self.tep.as_ptr());
            tep_free(self.tep.as_ptr());
        }
    }
}
