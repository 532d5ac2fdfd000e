//! The symbols of the kernel, for commands that show stacks.

use anyhow::{Context, Result, bail};
use parse::KernelSymbols;
use std::path::{Path, PathBuf};
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

/// The commands that copy the symbols with their addresses.
pub(crate) const COPY: &str = "sudo sysctl kernel.kptr_restrict=1; sudo cat /proc/kallsyms > kallsyms.txt";

/// Reads the symbols in a copy of /proc/kallsyms. One without an address is refused.
fn symbols_in(path: &Path) -> Result<KernelSymbols> {
    let name = path.display();
    let bytes = machine::read_bounded(path, MOST).with_context(|| name.to_string())?;
    let symbols = KernelSymbols::parse(&bytes);
    if symbols.are_hidden() {
        bail!(
            "--kallsyms {name}: all addresses are 0, since the kernel hid them from the user who copied them; as root: {COPY}"
        );
    }
    if symbols.is_empty() {
        bail!("--kallsyms {name}: there are no symbols in it; a copy of /proc/kallsyms is needed: {COPY}");
    }
    Ok(symbols)
}

impl SymbolArgs {
    /// Reads the symbols in the file of the arguments, if they name one.
    pub(crate) fn read(&self) -> Result<Option<Arc<KernelSymbols>>> {
        self.kallsyms.as_deref().map(|path| symbols_in(path).map(Arc::new)).transpose()
    }
}
