//! The contents of a snapshot: the state as lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use headcount_domain::{OrganizationId, ProjectId};
use serde::{Deserialize, Serialize};

use super::record::{StoredSession, StoredShare, StoredToken};
use super::secret::SecretHash;
use super::state::{Misfit, NO_ORGANIZATION, State, Tenant};
use super::{ActionEntry, ApiToken, BuildRun, Definition, Erasure, Member, Organization, Project};

/// The contents of a snapshot of [`State`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contents {
    organizations: Vec<Organization>,
    projects: Vec<Project>,
    tokens: Vec<StoredToken>,
    root_tokens: BTreeSet<SecretHash>,
    #[serde(default)]
    deletions: Vec<(OrganizationId, ProjectId)>,
    #[serde(default)]
    members: Vec<Member>,
    #[serde(default)]
    erasures: Vec<Erasure>,
    #[serde(default)]
    actions: Vec<(OrganizationId, ActionEntry)>,
    #[serde(default)]
    builds: Vec<BuildRun>,
    #[serde(default)]
    shares: Vec<StoredShare>,
    #[serde(default)]
    definitions: Vec<Definition>,
    #[serde(default)]
    sessions: Vec<StoredSession>,
}

impl State {
    /// Returns the contents of a snapshot.
    pub(super) fn contents(&self) -> Contents {
        let tenants = self.tenants.values();
        let stored = |(token, hash): &(Arc<ApiToken>, SecretHash)| StoredToken { token: ApiToken::clone(token), hash: *hash };
        Contents {
            organizations: tenants.clone().map(|tenant| Organization::clone(&tenant.organization)).collect(),
            projects: tenants.clone().flat_map(|t| t.projects.values()).map(|p| Project::clone(p)).collect(),
            tokens: tenants.flat_map(|tenant| tenant.tokens.values()).map(stored).collect(),
            root_tokens: self.root_tokens.clone(),
            deletions: self.deletions().collect(),
            members: self.tenants.values().flat_map(|t| t.members.values()).map(|m| Member::clone(m)).collect(),
            erasures: self.erasures().cloned().collect(),
            actions: self.tenants.iter().flat_map(|(id, t)| t.actions.iter().map(|entry| (*id, entry.clone()))).collect(),
            builds: self.builds().cloned().collect(),
            shares: self.tenants.values().flat_map(|t| t.shares.values()).map(StoredShare::from).collect(),
            definitions: self.tenants.values().flat_map(|t| t.definitions.values()).map(|d| Definition::clone(d)).collect(),
            sessions: self.tenants.values().flat_map(|t| t.sessions.values()).map(StoredSession::from).collect(),
        }
    }

    /// Restores the state from a snapshot.
    pub(super) fn from_contents(contents: Contents) -> Result<Self, Misfit> {
        let tenants = contents.organizations.into_iter().map(|organization| (organization.id, Tenant::new(organization)));
        let mut state = State { tenants: tenants.collect(), root_tokens: contents.root_tokens };
        for project in contents.projects {
            let tenant = state.tenants.get_mut(&project.organization).ok_or(NO_ORGANIZATION)?;
            tenant.put_project(project);
        }
        for member in contents.members {
            let tenant = state.tenants.get_mut(&member.organization).ok_or(NO_ORGANIZATION)?;
            tenant.members.insert(member.id.clone(), Arc::new(member));
        }
        for token in contents.tokens {
            let tenant = state.tenants.get_mut(&token.token.organization).ok_or(NO_ORGANIZATION)?;
            tenant.put_token(token);
        }
        for (organization, project) in contents.deletions {
            state.tenants.get_mut(&organization).ok_or(NO_ORGANIZATION)?.deletions.insert(project);
        }
        for erasure in contents.erasures {
            let tenant = state.tenants.get_mut(&erasure.organization).ok_or(NO_ORGANIZATION)?;
            tenant.put_erasure(erasure);
        }
        for (organization, entry) in contents.actions {
            state.tenants.get_mut(&organization).ok_or(NO_ORGANIZATION)?.add_action(entry);
        }
        for run in contents.builds {
            let tenant = state.tenants.get_mut(&run.organization).ok_or(NO_ORGANIZATION)?;
            tenant.builds.insert(run.id.clone(), run);
        }
        for StoredShare { share, hash } in contents.shares {
            let tenant = state.tenants.get_mut(&share.organization).ok_or(NO_ORGANIZATION)?;
            tenant.shares.insert(share.id.clone(), (Arc::new(share), hash));
        }
        for definition in contents.definitions {
            let tenant = state.tenants.get_mut(&definition.organization).ok_or(NO_ORGANIZATION)?;
            tenant.definitions.insert(definition.id.clone(), Arc::new(definition));
        }
        for StoredSession { session, hash } in contents.sessions {
            let tenant = state.tenants.get_mut(&session.organization).ok_or(NO_ORGANIZATION)?;
            tenant.sessions.insert(session.id.clone(), (Arc::new(session), hash));
        }
        Ok(state)
    }
}
