//! Man pages and shell completions, from the command line's own definition.

use anyhow::{Context, Result};
use clap::CommandFactory;
use std::path::PathBuf;

/// Write man pages or shell completions
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// The folder to write to: schedviz.1, schedviz-info.1, … and completions for bash, zsh and fish
    folder: PathBuf,
}

/// Writes them.
pub(crate) fn run(args: &ManualArgs) -> Result<()> {
    let folder = || args.folder.display().to_string();
    std::fs::create_dir_all(&args.folder).with_context(folder)?;
    let mut command = crate::Cli::command();
    command.build();
    clap_mangen::generate_to(command.clone(), &args.folder).with_context(folder)?;
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "schedviz", &args.folder).with_context(folder)?;
    }
    Ok(())
}
