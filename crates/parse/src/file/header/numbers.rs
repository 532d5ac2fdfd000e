//! The numbers of options and sections of a trace.dat (`docs/trace-dat.md`, section 5).

pub(crate) const DATE: u16 = 1;
pub(crate) const CPU_STATISTICS: u16 = 2;
pub(crate) const BUFFER: u16 = 3;
pub(crate) const TRACE_CLOCK: u16 = 4;
pub(crate) const UNAME: u16 = 5;
pub(crate) const OFFSET: u16 = 7;
pub(crate) const CPU_COUNT: u16 = 8;
/// The version of the recorder.
pub(crate) const RECORDER: u16 = 9;
/// The number that a host's file and those of its guests call each other by.
pub(crate) const TRACE_ID: u16 = 11;
pub(crate) const TIME_SHIFT: u16 = 12;
/// In a host's file, one guest.
pub(crate) const GUEST: u16 = 13;
pub(crate) const TSC2NSEC: u16 = 14;

/// The sections with texts, which have the numbers from this one to that of the command names.
pub(crate) const PAGE: u16 = 16;
pub(crate) const FTRACE: u16 = 17;
pub(crate) const SYSTEMS: u16 = 18;
/// The symbols of the kernel.
pub(crate) const SYMBOLS: u16 = 19;
pub(crate) const PRINTK: u16 = 20;
/// The saved command names.
pub(crate) const NAMES: u16 = 21;

/// The text of a latency tracer, and notes on an earlier boot.
pub(crate) const LATENCY: u16 = 22;
pub(crate) const EARLIER_BOOT: u16 = 24;
/// Options that are the offset of a section.
pub(crate) const BTF: u16 = 23;
pub(crate) const MODULES: u16 = 25;

/// The number of the option, and of the section, with the note of a part of a trace (`schedviz cut`). No recorder has options with
/// such numbers: its own are counted from 0.
pub(crate) const PART: u16 = 0x5343;
