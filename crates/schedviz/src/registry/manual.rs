//! Man pages, shell completions and the description for the Python module, from the definition of the command line.

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Generator;
use clap_mangen::Man;
use question::Subcommand;
use roff::{Roff, roman};
use session::atomic_file::Folders;
use session::writer::replace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write man pages and shell completions
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// The folder to write to: schedviz.1, schedviz-info.1, …, completions for bash, zsh and fish, and commands.json
    folder: PathBuf,
}

/// Man pages and shell completions.
#[derive(Debug)]
pub(crate) struct ManualCommand;

impl Subcommand for ManualCommand {
    const NAME: &'static str = "manual";
    const IS_PAGED: bool = false;
    type Args = ManualArgs;

    fn run(args: &ManualArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Writes the man pages and the completions.
pub(crate) fn run(args: &ManualArgs) -> Result<()> {
    let created = Folders::create(&args.folder).with_context(|| args.folder.display().to_string())?;
    // There is no page on `help`.
    let mut pages = super::command_line().disable_help_subcommand(true);
    super::define_all(&mut pages);
    let shown = pages.get_subcommands().filter(|command| !command.is_hide_set());
    for command in std::iter::once(&pages).chain(shown) {
        write_page(command, &args.folder)?;
    }
    let mut command = super::command_line();
    super::define_all(&mut command);
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        let script = super::completions::script(shell, &mut command);
        replace(&args.folder.join(shell.file_name("schedviz")), script.as_bytes())?;
    }
    let text = serde_json::to_string_pretty(&super::described::all())?;
    replace(&args.folder.join("commands.json"), text.as_bytes())?;
    created.keep();
    Ok(())
}

fn write_page(command: &Command, folder: &Path) -> Result<()> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        examples(&text.to_string()).to_writer(&mut page)?;
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    replace(&folder.join(man.get_filename()), &page)
}

/// The section behind the options, whose lines are not filled: they are commands to be copied.
fn examples(text: &str) -> Roff {
    let (title, lines) = text.split_once('\n').unwrap_or(("", text));
    let mut roff = Roff::new();
    roff.control("SH", [&*title.trim_end_matches(':').to_uppercase()]).control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}
