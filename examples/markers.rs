//! Prints the texts written to trace_marker and by trace_printk: any record of a trace can be read by name.
//!
//! `cargo run --example markers -- tests/fixtures/marker.dat`
#![allow(clippy::print_stdout)]

use parse::{Options, Trace};
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: markers TRACE.dat")?;
    let trace = Trace::open(path.as_ref(), Options::default())?;
    trace.records(&mut |record| {
        if let (Some(place), Some(text)) = (record.place(), record.text()) {
            let ns = record.ts.0;
            let (s, ns) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
            println!("{s}.{ns:09} CPU {} pid {}: {place}: {}", record.cpu, record.pid(), text.trim_end());
        }
        ControlFlow::Continue(())
    });
    Ok(())
}
