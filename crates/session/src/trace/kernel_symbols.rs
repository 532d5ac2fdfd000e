//! The symbols of the kernel for the stacks of an opened trace.

use crate::Session;
use crate::arguments::symbol_args::{COPY, SymbolArgs};
use anyhow::Result;

impl SymbolArgs {
    /// Gives the symbols to the trace of a session. Without a file, a message reports it if the stacks of the trace have no names since the
    /// kernel hid the addresses of its symbols.
    pub fn give(&self, session: &mut Session) -> Result<()> {
        match self.read()? {
            Some(symbols) => session.trace.set_kernel_symbols(Some(symbols)),
            None if session.trace.has_stacks() && session.trace.hides_symbols() => session.read.message(&format!(
                "{}: its stacks have no names: the kernel hid the addresses of its symbols. Record as root, with kernel.kptr_restrict at \
                 most 1; until the next boot of that machine, a copy of its symbols gives the names: {COPY}; then add --kallsyms kallsyms.txt",
                session.name()
            )),
            None => {}
        }
        Ok(())
    }
}
