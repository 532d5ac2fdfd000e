//! The examples of the crates' READMEs, compiled and run as one program: `cargo test` would make one for each crate, which takes half a minute.
//!
//! A README shows the example of its crate's front page (`tests/readme.rs` compares them), so that these are tested as well. Crates with
//! further examples, or with lines that the page does not show, test their own. Begin reading with the list in this file.

#[cfg(doctest)]
macro_rules! readmes {
    ($($crate_folder:literal),* $(,)?) => {
        $(#[doc = include_str!(concat!("../../", $crate_folder, "/README.md"))] const _: () = ();)*
    };
}

#[cfg(doctest)]
readmes!(
    "benchmarks",
    "compare",
    "contamination",
    "dat2graph",
    "entitlement",
    "fairness",
    "findings",
    "jobs",
    "judging",
    "lanes",
    "latency",
    "machine",
    "membership",
    "neighbours",
    "offcpu",
    "path",
    "perfdata",
    "perfetto",
    "picks",
    "preemptions",
    "question",
    "record",
    "recordings",
    "reproduce",
    "residency",
    "running-waiting",
    "schedstat",
    "session",
    "stepper",
    "testkit",
    "timeline",
    "tracetext",
    "transcript",
    "utilization",
    "view",
    "wakers",
    "whatif",
    "why",
    "workcons",
);
