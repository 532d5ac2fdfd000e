//! The recording of a guest's host.

use std::path::PathBuf;

/// The recording of the host
#[derive(Clone, Debug, Default, clap::Args)]
pub struct HostArgs {
    /// The recording of the host that this guest was recorded with (trace-cmd record -A): times are the host's, and the time for which the host
    /// kept each vCPU from running is known
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    pub host: Option<PathBuf>,
}
