//! The flags of `demo`.

use std::time::Duration;
#[cfg(feature = "cluster")]
use std::{ffi::OsString, path::PathBuf};

use headcount_api::command::duration;

/// The flags of `demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Stop after this time, such as 10s [default: at control-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) lasting: Option<Duration>,
    /// Run three nodes over three NATS brokers on this machine instead of one server
    // This flag replaces the setting of the same name. The setting has a value, so the flag needs
    // one, too.
    #[cfg(feature = "cluster")]
    #[arg(long, num_args = 0, default_missing_value = "nats://127.0.0.1")]
    pub(crate) cluster: Option<String>,
    /// The program `nats-server` [default: `nats-server` on the PATH]
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "PATH", requires = "cluster")]
    pub(crate) nats_server: Option<PathBuf>,
    /// Time after which a killed node or broker is restarted
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s", requires = "cluster")]
    pub(crate) restart_after: Duration,
    /// Become another program, which ends with the demo that has this process
    #[cfg(feature = "cluster")]
    #[arg(long, hide = true, requires = "program", conflicts_with = "cluster")]
    pub(crate) child_of: Option<u32>,
    /// That program, and its arguments
    #[cfg(feature = "cluster")]
    #[arg(last = true, hide = true, requires = "child_of")]
    pub(crate) program: Vec<OsString>,
}
