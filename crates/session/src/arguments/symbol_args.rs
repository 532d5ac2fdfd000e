//! The symbols of the kernel, for commands that show stacks.

use anyhow::{Context, Result};
use parse::KernelSymbols;
use std::path::PathBuf;
use std::sync::Arc;

/// The names of addresses
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SymbolArgs {
    /// Symbols of the kernel for the stacks of a recording without them, as perf's are: a copy of /proc/kallsyms of the machine, made before
    /// its next boot
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    kallsyms: Option<PathBuf>,
}

/// Maximum size of a file with the kernel's symbols, in bytes.
const MOST: u64 = 64 << 20;

impl SymbolArgs {
    /// Reads the symbols for [`parse::Trace::set_kernel_symbols`]; nothing if no file is given.
    pub fn read(&self) -> Result<Option<Arc<KernelSymbols>>> {
        let Some(path) = &self.kallsyms else { return Ok(None) };
        let bytes = machine::read_bounded(path, MOST).with_context(|| path.display().to_string())?;
        Ok(Some(Arc::new(KernelSymbols::parse(&bytes))))
    }
}
