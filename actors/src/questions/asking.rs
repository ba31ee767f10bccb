//! Asks other nodes about projects that they own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use headcount_common::Owner;
use headcount_common::nodes::{AskNode, AskNodeError, MAX_PROJECTS, NodeCall, NodeRequest, decode_answer};
use headcount_domain::{OrganizationId, ProjectId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::Questions;
use crate::shard::AskError;

/// How long a node may take for an answer without a scan of events.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// The places of projects in a list, by the address of the node that owns them.
pub(crate) type ByNode = BTreeMap<Arc<str>, Vec<usize>>;

/// The owners of some projects. Projects are indexes in a list.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) here: Vec<usize>,
    pub(crate) there: ByNode,
    /// Whether any of them is on no node that is known.
    has_lost: bool,
}

impl Places {
    /// Returns the places of projects, unless one has no owner.
    pub(crate) fn known(self) -> Result<Self, AskError> {
        if self.has_lost { Err(AskError::NoOwner) } else { Ok(self) }
    }
}

/// The parts of an answer, each with the index of its project.
type Placed<P> = Vec<(usize, P)>;

/// Some projects of one organization, each with its index.
type SomeProjects = Vec<(usize, ProjectId)>;

/// A node to ask.
#[derive(Clone)]
pub(crate) struct Node {
    ask: Arc<dyn AskNode>,
    address: Arc<str>,
    token: String,
    organization: OrganizationId,
}

impl Node {
    /// Asks about projects that the node owns.
    pub(crate) async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        tag: u16,
        projects: Vec<ProjectId>,
        question: &Q,
        within: Duration,
    ) -> Result<A, AskNodeError> {
        let request = NodeRequest { organization: self.organization, projects, question }.encode(tag)?;
        let (address, token, organization) = (Arc::clone(&self.address), self.token.clone(), self.organization);
        let call = NodeCall { address, token, organization, request, within };
        decode_answer(tag, &self.ask.ask(call).await?)
    }

    /// Asks for a part of the answer from each project. If the parts are too large together, asks
    /// about fewer projects at once.
    async fn ask_each<Q: Serialize, P: DeserializeOwned>(
        self,
        tag: u16,
        projects: SomeProjects,
        question: Arc<Q>,
        within: Duration,
    ) -> Result<Placed<P>, AskNodeError> {
        let mut placed = Vec::with_capacity(projects.len());
        let mut waiting = vec![projects];
        while let Some(mut some) = waiting.pop() {
            let ids = some.iter().map(|(_, project)| *project).collect();
            match self.ask::<Q, Vec<P>>(tag, ids, &question, within).await {
                Ok(parts) if parts.len() == some.len() => placed.extend(some.into_iter().map(|(place, _)| place).zip(parts)),
                Ok(_) => return Err(AskNodeError::OtherVersion("it answers about another number of projects".to_owned())),
                Err(AskNodeError::TooLarge) if some.len() > 1 => {
                    waiting.push(some.split_off(some.len() / 2));
                    waiting.push(some);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(placed)
    }
}

impl Questions {
    /// Returns where projects are.
    pub(crate) fn places(&self, projects: &[ProjectId]) -> Places {
        let mut places = Places::default();
        for (place, project) in projects.iter().enumerate() {
            match self.owners.of_project(*project) {
                Owner::Here => places.here.push(place),
                Owner::There(address) => places.there.entry(address).or_default().push(place),
                Owner::Nowhere => places.has_lost = true,
            }
        }
        places
    }

    pub(crate) fn node(&self, address: &Arc<str>, organization: OrganizationId) -> Result<Node, AskNodeError> {
        let ask = self.ask_node.clone();
        let ask = ask.ok_or_else(|| AskNodeError::Unreachable("this node was given no way to ask others".to_owned()))?;
        Ok(Node { ask, address: Arc::clone(address), token: self.secrets.node_token().expose().to_owned(), organization })
    }

    /// Asks for a part of the answer from each project on other nodes, all nodes at once. The parts
    /// come in any order.
    pub(crate) async fn ask_elsewhere<Q, P>(
        &self,
        question: (u16, Q),
        organization: OrganizationId,
        projects: &[ProjectId],
        there: &ByNode,
    ) -> Result<Placed<P>, AskError>
    where
        Q: Serialize + Send + Sync + 'static,
        P: DeserializeOwned + Send + 'static,
    {
        self.ask_elsewhere_within(ANSWER_TIMEOUT, question, (organization, projects), there).await
    }

    /// Like [`Questions::ask_elsewhere`], with a time limit.
    pub(crate) async fn ask_elsewhere_within<Q, P>(
        &self,
        within: Duration,
        (tag, question): (u16, Q),
        (organization, projects): (OrganizationId, &[ProjectId]),
        there: &ByNode,
    ) -> Result<Placed<P>, AskError>
    where
        Q: Serialize + Send + Sync + 'static,
        P: DeserializeOwned + Send + 'static,
    {
        let (question, mut asked) = (Arc::new(question), JoinSet::new());
        for (address, places) in there {
            let node = self.node(address, organization)?;
            for places in places.chunks(MAX_PROJECTS) {
                let some = places.iter().map(|place| (*place, projects[*place])).collect();
                asked.spawn(node.clone().ask_each(tag, some, Arc::clone(&question), within));
            }
        }
        let mut placed = Vec::with_capacity(projects.len());
        while let Some(answer) = asked.join_next().await {
            placed.extend(answer.map_err(|_| AskError::NoAnswer)??);
        }
        Ok(placed)
    }

    /// Asks one node for one answer about its projects.
    pub(crate) async fn ask_together<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        (tag, question): (u16, &Q),
        address: &Arc<str>,
        organization: OrganizationId,
        projects: Vec<ProjectId>,
    ) -> Result<A, AskError> {
        let within = self.timeout;
        Ok(self.node(address, organization)?.ask(tag, projects, question, within).await?)
    }
}
