//! `schedviz mcp`: answers for assistants, by the Model Context Protocol on standard input and output.
//!
//! In go the requests of an assistant, out come answers about the recordings in the folders that the command was given. The tools are the commands
//! of the registry that have an answer ([`question::Answers`]): their names, descriptions and arguments are those of clap's definitions (`tools.rs`).
//!
//! Each question is a run of this same program as a child (`child.rs`), with the arguments that a person would type and `--json`. So there is one
//! path from arguments to numbers; the memory of a question is given back at its end; a question that crashes, or takes too long, is an error
//! of its own; and the command line in the answer is the one that was run. Begin reading in `server.rs`, then `tools.rs` and `cut.rs`.

#[cfg(feature = "mcp")]
mod answer;
#[cfg(feature = "mcp")]
mod book;
#[cfg(feature = "mcp")]
mod child;
#[cfg(feature = "mcp")]
mod cut;
#[cfg(feature = "mcp")]
mod folders;
#[cfg(feature = "mcp")]
mod listing;
#[cfg(feature = "mcp")]
mod prompts;
#[cfg(feature = "mcp")]
mod server;
#[cfg(feature = "mcp")]
mod tools;
#[cfg(feature = "mcp")]
mod words;

use anyhow::Result;
use question::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;

/// Answer the questions of an assistant about the recordings in some folders (Model Context Protocol)
///
/// An MCP client starts this command and talks to it on standard input and output. Every question about a recording is a tool, with the options of
/// its command. Nothing is written or recorded, and no file outside of the folders is read, links included.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    /// Folders whose recordings may be read, with all folders below them
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Maximum number of tokens of an answer, three bytes each; the rest is had page by page
    #[arg(long, value_name = "N", default_value_t = 6000, value_parser = clap::value_parser!(u32).range(2000..=100_000))]
    tokens: u32,
    /// Seconds after which a question is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    timeout: u32,
}

const EXAMPLES: &str = "\
Examples:
  schedviz mcp ~/traces                    as an MCP client starts it
  claude mcp add schedviz -- schedviz mcp ~/traces
                                           adds it to a client

The package has it; a build of your own: cargo install --profile dist
--path crates/schedviz --features mcp";

/// The server for assistants.
#[derive(Debug)]
pub(crate) struct McpCommand;

impl Subcommand for McpCommand {
    const NAME: &'static str = "mcp";
    const IS_PAGED: bool = false;
    const QUESTION: Option<(&'static str, &'static str)> = Some(("How does an assistant read a trace?", "FOLDER"));
    type Args = McpArgs;

    #[cfg(feature = "mcp")]
    fn run(args: &McpArgs) -> Result<ExitCode> {
        let folders = folders::Folders::open(&args.folders)?;
        let limits = child::QuestionLimits::seconds(args.timeout);
        server::serve(server::Server::new(folders, answer::Budget::tokens(args.tokens), limits)?)?;
        Ok(ExitCode::SUCCESS)
    }

    #[cfg(not(feature = "mcp"))]
    fn run(args: &McpArgs) -> Result<ExitCode> {
        let McpArgs { folders: _, tokens: _, timeout: _ } = args;
        anyhow::bail!(
            "this build has no server for assistants; the packages have it, and so has: \
             cargo install --profile dist --path crates/schedviz --features mcp"
        )
    }
}
