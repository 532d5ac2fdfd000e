//! The whole program against real recordings, other programs, and itself.

mod cases;
mod causes;
mod cli;
mod compare;
mod damage;
mod differential;
mod events;
mod facts;
mod figures;
mod hotplug;
mod latency;
mod laws;
mod listing;
mod lock_sleep;
mod memory;
mod migrations;
mod near;
mod output;
mod second;
mod sharing;
mod spans;
mod stepper;
mod structure;
mod support;
mod words;
mod workcons;
