//! Questions about the state of projects, on any shard or node.
//!
//! A question about a project goes to its shard. A question about an organization goes to all its
//! projects, on this machine and on the other nodes that own some. Each answer has a version, so
//! that a caller can keep it until the version changes.

mod applied;
mod asking;
mod floors;
mod project_versions;
mod queries;
mod versions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use headcount_common::clock::Clock;
use headcount_common::nodes::AskNode;
use headcount_common::secrets::Secrets;
use headcount_common::{NodeToken, Owners};
use headcount_control::Registry;
use headcount_domain::{Fault, KeyHasher, OrganizationId, ProjectId};
use headcount_storage::starts::Starts;

use crate::erasures::Erasures;
use crate::history::LoggedEvents;
use crate::shard::{AskError, Floors, PartitionHealth, Pending, Shard, ShardClient, Versions};

pub(crate) use asking::Node;
pub(crate) use project_versions::VERSIONS;
pub use queries::OrganizationProjects;
pub(crate) use queries::in_order;

/// Answers questions about projects and organizations from the rollups of their shards.
pub struct Questions {
    pub(crate) registry: Arc<Registry>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) owners: Arc<Owners>,
    pub(crate) ask_node: Option<Arc<dyn AskNode>>,
    pub(crate) secrets: Secrets,
    pub(crate) starts: Starts,
    pub(crate) incarnation: u128,
    pub(crate) shards: Arc<ShardClient>,
    pub(crate) health: Arc<PartitionHealth>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) floors: Arc<Floors>,
    pub(crate) erasures: Arc<Erasures>,
    pub(crate) logged: LoggedEvents,
    /// How long a question may take that no rollup answers.
    pub(crate) timeout: Duration,
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions").finish_non_exhaustive()
    }
}

impl Questions {
    /// Organizations, projects, keys and tokens.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The clock that the engine was given.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The owner of each partition.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The token by which the machines of a cluster know each other's requests.
    pub fn node_token(&self) -> &NodeToken {
        self.secrets.node_token()
    }

    /// How long a question may take that no rollup answers.
    pub fn question_timeout(&self) -> Duration {
        self.timeout
    }

    /// The organization of a project, if that is known.
    pub(crate) fn organization_of(&self, project: ProjectId) -> Option<OrganizationId> {
        self.registry.policy(project).map(|config| config.policy.organization)
    }

    /// The keys and the visitor salts. The nodes of a cluster agree on salts, and make none
    /// themselves: until a node has the salt of the day, it refuses events of visitors without ids.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Hashes the ids of the installation.
    #[must_use]
    pub fn hasher(&self) -> &KeyHasher {
        self.secrets.hasher()
    }

    pub(crate) async fn ask_shard<R: Send + 'static>(
        &self,
        project: ProjectId,
        request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, AskError> {
        self.send_to_shard(project, request)?.wait().await
    }

    pub(crate) fn send_to_shard<R: Send + 'static>(
        &self,
        project: ProjectId,
        request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
    ) -> Result<Pending<R>, AskError> {
        self.shards.send(project, self.organization_of(project), request)
    }
}
