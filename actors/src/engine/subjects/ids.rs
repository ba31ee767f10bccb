//! Finds the ids of a subject, in all projects of an organization.

use std::collections::BTreeSet;

use headcount_common::Owner;
use headcount_control::Erasure;
use headcount_domain::queries::{EmailKeysQuery, KnownIdentitiesQuery, Query};
use headcount_domain::{OrganizationId, Position, ProjectId, RecordKey};
use tokio::runtime::Handle;

use super::questions::{AboutSubject, SubjectLinks, SubjectLinksQuestion, ask_patiently};
use crate::engine::handle::Engine;
use crate::shard::AskError;
use crate::subject::{ErasureError, ErasureSubject, MAX_OWNERS, SubjectIds, SubjectKeys, SubjectOwner};

/// The most ids of a subject. Anybody can link any number of anonymous ids to a user.
pub(super) const MAX_IDS: usize = 250_000;
/// How many ids a shard is asked about at a time.
const IDS_A_QUESTION: usize = 256;

fn links_question(ids: &SubjectIds, project: ProjectId) -> SubjectLinksQuestion {
    SubjectLinksQuestion { users: ids.users(), others: ids.others_of(project) }
}

/// Adds what a project knows. Returns its identities.
fn add(ids: &mut SubjectIds, project: ProjectId, found: SubjectLinks) -> Result<Vec<SubjectOwner>, ErasureError> {
    let SubjectLinks::Found { links, known } = found else { return Err(ErasureError::TooMany) };
    for (key, user) in links {
        ids.users.insert(user);
        ids.others.insert((project, key), Some(user));
    }
    if ids.count() > MAX_IDS {
        return Err(ErasureError::TooMany);
    }
    Ok(known.into_iter().map(|key| ((!key.is_user()).then_some(project), key)).collect())
}

impl Engine {
    /// The keys of the identities that a project knows of a subject. Ids that are linked stand for
    /// their users.
    ///
    /// # Errors
    /// [`ErasureError::Unknown`] if there is none, or if it is being erased.
    pub(super) fn known_subject(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
    ) -> Result<SubjectKeys, ErasureError> {
        let projects = self.projects_to_erase_from(organization)?;
        let sent = self.sent_keys(organization, subject, &projects)?;
        let mut known = SubjectKeys::default();
        for project in &projects {
            let others = sent.others.iter().filter(|(of, _)| of == project).map(|(_, key)| *key);
            let keys: Vec<RecordKey> = sent.users.iter().copied().chain(others).collect();
            for keys in keys.chunks(IDS_A_QUESTION) {
                let query = KnownIdentitiesQuery { keys: keys.to_vec() };
                for identity in self.ask_for_subject((organization, *project), query)?.into_iter().flatten() {
                    known.push(*project, identity.key);
                }
            }
        }
        known.add(SubjectKeys::default());
        let erasures = self.erasures_of(organization, &known);
        if erasures.iter().any(Erasure::only_suppresses) {
            return Err(ErasureError::Unavailable("an erasure of the subject begins, or is given up"));
        }
        let is_being_erased = erasures.iter().any(|erasure| !erasure.is_done);
        if is_being_erased || (known.users.is_empty() && known.others.is_empty()) {
            return Err(ErasureError::Unknown);
        }
        Ok(known)
    }

    /// Asks a project, wherever it is. Blocks.
    fn ask_for_subject<Q>(
        &self,
        (organization, project): (OrganizationId, ProjectId),
        query: Q,
    ) -> Result<Q::Answer, ErasureError>
    where
        Q: AboutSubject<Answer = <Q as Query>::Partial> + Query,
    {
        // On a thread without a runtime, too.
        if self.owners().of_project(project) == Owner::Here {
            return self.ask_to_erase(project, query);
        }
        let answer = Handle::try_current().map(|handle| handle.block_on(self.ask_about_subject((organization, project), query)));
        answer.ok().and_then(Result::ok).ok_or(ErasureError::Unavailable("a project's figures are not available now"))
    }

    /// The keys of the ids of a subject. Of those that an erasure once had with an address, none.
    fn sent_keys(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        projects: &[ProjectId],
    ) -> Result<SubjectKeys, ErasureError> {
        let ErasureSubject::Email(email) = subject else { return self.keys_of(organization, subject, projects) };
        let mut keys = SubjectKeys::default();
        let email = headcount_domain::company::normalise_email(email).ok_or(ErasureError::Unknown)?;
        let email = self.hasher().email(&email);
        for project in projects {
            let query = EmailKeysQuery { email, most: MAX_OWNERS + 1 };
            keys.add_owners(*project, self.ask_for_subject((organization, *project), query)?)?;
        }
        Ok(keys)
    }

    /// All ids of a subject. Reads the ids of all identities, until `is_over`. Call it where a
    /// runtime is.
    pub(super) fn subject_ids(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        is_over: &dyn Fn() -> bool,
    ) -> Result<SubjectIds, ErasureError> {
        let projects = self.projects_to_erase_from(organization)?;
        // Before the links are read, so that every event of a linked id is found.
        let with_last = self.last_positions(organization, &projects, is_over)?;
        let sent = self.sent_keys(organization, subject, &projects)?;
        let others = sent.others.iter().map(|id| (*id, None)).collect();
        let mut ids = SubjectIds { projects: with_last, users: sent.users.into_iter().collect(), others };
        // An id of one project may be linked to a user who has other ids elsewhere.
        loop {
            let users = ids.users.len();
            let mut known = BTreeSet::new();
            for project in &projects {
                let question = links_question(&ids, *project);
                known.extend(add(&mut ids, *project, self.find_links((organization, *project), &question, is_over)?)?);
            }
            if users == ids.users.len() {
                ids.users.retain(|user| known.contains(&(None, *user)));
                ids.others.retain(|(project, key), link| link.is_some() || known.contains(&(Some(*project), *key)));
                break;
            }
        }
        if ids.is_nobody() { Err(ErasureError::Unknown) } else { Ok(ids) }
    }

    /// The last position of each project.
    fn last_positions(
        &self,
        organization: OrganizationId,
        projects: &[ProjectId],
        is_over: &dyn Fn() -> bool,
    ) -> Result<Vec<(ProjectId, Position)>, ErasureError> {
        let unavailable = |_| ErasureError::Unavailable("a project's data is not available now");
        let versions = ask_patiently(is_over, || self.versions_of(organization, projects)).map_err(unavailable)?;
        Ok(projects.iter().copied().zip(versions.iter().map(|version| version.position)).collect())
    }

    /// Finds out what a project knows of a subject.
    fn find_links(
        &self,
        (organization, project): (OrganizationId, ProjectId),
        question: &SubjectLinksQuestion,
        is_over: &dyn Fn() -> bool,
    ) -> Result<SubjectLinks, ErasureError> {
        match ask_patiently(is_over, || self.ask_about_subject((organization, project), question.clone())) {
            _ if is_over() => Err(ErasureError::Unavailable("the export is over")),
            Ok(found) => Ok(found),
            Err(AskError::Lost(fault)) => Err(fault.into()),
            Err(_) => Err(ErasureError::Unavailable("a partition is being rebuilt, or moves")),
        }
    }
}
