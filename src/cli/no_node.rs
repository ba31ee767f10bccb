//! Replaces `node.rs` in a build without clusters. The settings of such a build refuse a cluster,
//! so no node ever joins one.

use std::convert::Infallible;
use std::path::Path;

use headcount_actors::{Common, Engine, OpenError};
use headcount_api::command::Failure;

use crate::config::Settings;

/// A cluster that this build never joins.
pub(super) enum NoCluster {}

#[expect(clippy::unused_async, reason = "as in `node.rs`")]
impl NoCluster {
    pub(super) async fn begin(_: &Settings) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(super) fn opener(&self) -> fn(&Path) -> Result<Common, OpenError> {
        match *self {}
    }

    pub(super) async fn start(&self, _: &Engine, _: &Path, _: String) -> Result<Infallible, Failure> {
        match *self {}
    }

    pub(super) async fn leave(&self, _: &Path) {
        match *self {}
    }

    pub(super) async fn stop(&self, _: Infallible) {
        match *self {}
    }
}
