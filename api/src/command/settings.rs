//! What a command knows of the program that runs it.

use std::path::Path;

use futures_util::future::LocalBoxFuture;
use headcount_actors::{Engine, EngineConfig};

use crate::command::client::ServerPlace;
use crate::command::failure::Failure;
use crate::open_files;

/// The settings that commands need.
pub trait CommandSettings {
    /// Where the server on the data directory is.
    fn server_place(&self) -> ServerPlace<'_>;

    /// The configuration of a command's engine.
    fn engine(&self) -> EngineConfig;

    /// The configuration of the engine of a server on this data directory.
    fn serving_engine(&self, data_dir: &Path) -> EngineConfig;

    /// Starts a server in this process. If its address is the default and taken, it gets a free port.
    fn start_server(&self, engine: Engine) -> Result<ProcessServer, Failure>;

    /// The data directory.
    fn data_dir(&self) -> &Path {
        self.server_place().data_dir
    }

    /// Opens the engine of the data directory.
    fn open_engine(&self) -> Result<Engine, Failure> {
        open_files::raise()?;
        Ok(Engine::open(self.engine())?)
    }
}

/// A server in this process.
pub struct ProcessServer {
    /// Where it listens, without a slash at its end.
    pub url: String,
    /// Its address for browsers.
    pub base_url: String,
    /// Stops it, and closes its engine.
    pub stop: LocalBoxFuture<'static, ()>,
}
