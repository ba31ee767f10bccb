//! Answers the questions of other nodes about projects of this node.

use headcount_common::Owner;
use headcount_common::nodes::{AskNodeError, NodeAnswer, NodeRequest, encode_answer, tag_of};
use headcount_domain::queries::{Travels, WithQuery, with_query};
use headcount_domain::{OrganizationId, ProjectId};
use serde::de::DeserializeOwned;

use super::erasure_rounds::{LINKED_IDS, OWNERS_OF_EMAIL, SUBJECT_FIGURES};
use super::handle::Engine;
use super::requested_verification::VERIFY;
use super::sealing::SEAL;
use crate::questions::{VERSIONS, in_order};
use crate::scans::{ACTIVE, ActiveQuestion};
use crate::shard::AskError;

/// Answers a query. The tag is its type.
struct AnswerQuery<'r> {
    engine: Engine,
    request: &'r [u8],
}

impl WithQuery for AnswerQuery<'_> {
    type Output = Result<NodeAnswer, AskNodeError>;

    fn with<Q: Travels>(self) -> Self::Output {
        let Self { engine, request } = self;
        let NodeRequest { projects, question, .. } = engine.checked::<Q>(request)?;
        Ok(Box::pin(async move {
            let together = engine.group_by_shard(&projects, 0..projects.len());
            let parts = in_order(engine.ask_grouped(&projects, &together, &question).await.map_err(refused)?);
            encode_answer(Q::TAG, &parts)
        }))
    }
}

impl Engine {
    /// Answers a question of another node about projects that this node owns: a query that is
    /// scattered to them, their versions, or the people who were active in them. All projects
    /// belong to one organization.
    ///
    /// # Errors
    /// An [`AskNodeError`]: the bytes are not understood, a project is not here or not of the
    /// organization, the answer is too large to send, or there is no answer now.
    pub async fn answer_remote(&self, request: &[u8]) -> Result<Vec<u8>, AskNodeError> {
        match tag_of(request)? {
            VERSIONS => self.answer_versions(self.checked::<()>(request)?).await,
            // This request covers all organizations.
            SEAL => self.answer_seal().await,
            VERIFY => self.answer_verify(request).await,
            tag @ (OWNERS_OF_EMAIL | LINKED_IDS | SUBJECT_FIGURES) => self.answer_about_erasure(tag, request).await,
            ACTIVE => {
                let NodeRequest { organization, projects, question } = self.checked::<ActiveQuestion>(request)?;
                encode_answer(ACTIVE, &self.scans.active_here(organization, projects, question).await.map_err(refused)?)
            }
            tag => {
                if let Some(answer) = self.answer_about_subject(tag, request).await {
                    return answer;
                }
                #[cfg(feature = "cluster")]
                if let Some(answer) = self.answer_about_partition(tag, request).await {
                    return answer;
                }
                let answer = with_query(tag, AnswerQuery { engine: self.clone(), request });
                answer.ok_or_else(|| AskNodeError::OtherVersion(format!("the tag {tag} is of no question")))??.await
            }
        }
    }

    async fn answer_versions(&self, request: NodeRequest<()>) -> Result<Vec<u8>, AskNodeError> {
        let mut versions = Vec::with_capacity(request.projects.len());
        for project in request.projects {
            versions.push(self.project_version(project).await.map_err(refused)?);
        }
        encode_answer(VERSIONS, &versions)
    }

    /// Decodes a request, and checks that its projects are here and belong to its organization.
    pub(super) fn checked<Q: DeserializeOwned>(&self, request: &[u8]) -> Result<NodeRequest<Q>, AskNodeError> {
        let request = NodeRequest::decode(request)?;
        for project in &request.projects {
            self.check_asked(request.organization, *project)?;
        }
        Ok(request)
    }

    fn check_asked(&self, organization: OrganizationId, project: ProjectId) -> Result<(), AskNodeError> {
        let config = self.registry().policy(project);
        if config.is_none_or(|config| config.policy.organization != organization) {
            return Err(AskNodeError::NotOfOrganization);
        }
        if self.owners().of_project(project) == Owner::Here { Ok(()) } else { Err(AskNodeError::NotHere) }
    }
}

impl From<AskError> for AskNodeError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Busy => Self::Busy,
            AskError::Node(error) => error,
            AskError::Lost(_) | AskError::NoAnswer | AskError::TimedOut(_) | AskError::BelowFloor(_) | AskError::NoOwner => {
                Self::NoAnswer(error.to_string())
            }
        }
    }
}

/// Converts the error of an answer for the node that asked.
fn refused(error: AskError) -> AskNodeError {
    error.into()
}
