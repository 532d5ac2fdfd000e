//! The `schedviz` program; `program.rs` has what it does.

use std::process::ExitCode;

// The allocator of musl has one lock for all threads and maps each large block anew: with 16 threads `why` took 1.7 to 2 times as long as with glibc
// (docs/performance.md).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    schedviz::run()
}
