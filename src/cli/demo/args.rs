//! The flags of `demo`.

use std::time::Duration;
#[cfg(feature = "cluster")]
use std::{ffi::OsString, path::PathBuf};

use crate::cli::flags::duration;

/// The flags of `demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Stop after this long, such as 10s [default: on control-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(super) lasting: Option<Duration>,
    /// Run three nodes over three NATS brokers on this machine instead of one server
    // The setting of this name is replaced here. It has a value, so this has one, too.
    #[cfg(feature = "cluster")]
    #[arg(long, num_args = 0, default_missing_value = "nats://127.0.0.1")]
    pub(super) cluster: Option<String>,
    /// The program `nats-server` [default: the one on the PATH]
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "PATH", requires = "cluster")]
    pub(super) nats_server: Option<PathBuf>,
    /// Restart a node or broker this long after it was killed
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s", requires = "cluster")]
    pub(super) restart_after: Duration,
    /// Become another program, which ends with the demo that has this process
    #[cfg(feature = "cluster")]
    #[arg(long, hide = true, requires = "program", conflicts_with = "cluster")]
    pub(super) child_of: Option<u32>,
    /// That program, and its arguments
    #[cfg(feature = "cluster")]
    #[arg(last = true, hide = true, requires = "child_of")]
    pub(super) program: Vec<OsString>,
}

/// Waits for this long; for ever without a time.
pub(super) async fn after(lasting: Option<Duration>) {
    match lasting {
        Some(lasting) => tokio::time::sleep(lasting).await,
        None => std::future::pending().await,
    }
}
