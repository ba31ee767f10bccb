//! The beginning of an erasure (ADR 27, ADR 33).
//!
//! - First a record of the control log suppresses the ids. When it is answered, all machines know
//!   it.
//! - Then the owners of the organization's projects are asked for linked ids, including all events
//!   up to now. New ones are suppressed, too, and the owners are asked again.
//! - The erasure begins with the last positions of these projects, since no event of the identity
//!   follows them.
//!
//! An attempt that fails before that is given up. If that fails, too, an owner gives it up: at its
//! start if it owns every partition. Erasures don't wait for each other.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::nodes::{AskNodeError, NodeRequest, encode_answer};
use headcount_common::{Owner, partition_of};
use headcount_control::{Erasure, ErasureEnd, MadeFor};
use headcount_domain::queries::{EmailKeysQuery, SubjectFigures, SubjectFiguresQuery};
use headcount_domain::{IdentitySlot, OrganizationId, ProjectId, RecordKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::erasing::NewErasure;
use super::handle::Engine;
use crate::checkpoint_writer::for_each_identity;
use crate::shard::AskError;
use crate::subject::{BegunErasure, ErasureError, ErasureSubject, MAX_OWNERS, SubjectKeys};

/// The tag of the question for the identities with an e-mail address.
pub(super) const OWNERS_OF_EMAIL: u16 = 1060;
/// The tag of the question for linked ids.
pub(super) const LINKED_IDS: u16 = 1061;
/// The tag of the question for the figures of an identity.
pub(super) const SUBJECT_FIGURES: u16 = 1062;
/// How long saving the state may take, so that all links are known.
const SAVE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a node may take: it waits for events in flight, saves its state, and reads the ids of
/// all identities.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);
/// How often owners are asked once ids are suppressed. No event links a suppressed id, or reports a
/// suppressed address. So the first look finds all who have the address, the second one the users
/// of their anonymous ids, the third one other ids of these users, and the last one nothing new.
/// Ids of projects that were created meanwhile may be found later. They are others' ids.
const LOOKS: usize = 4;

const GIVEN_UP: ErasureError = ErasureError::Unavailable("the identity was opted in, or its erasure given up, meanwhile");

/// Asks for the ids that are linked to some. The answer includes all events that the node has
/// admitted by now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LinkedIdsQuestion {
    /// The record of the control log that the node must know.
    applied: u64,
    /// The keys of users, in order.
    users: Vec<RecordKey>,
    /// The keys of anonymous ids, in order.
    others: Vec<(ProjectId, RecordKey)>,
    /// An e-mail address whose owners are wanted, too.
    email: Option<RecordKey>,
}

/// The linked ids that a project knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FoundIds {
    is_known: bool,
    users: Vec<RecordKey>,
    /// The keys of anonymous ids.
    others: Vec<RecordKey>,
    /// The keys of their latest e-mail addresses.
    emails: Vec<RecordKey>,
    /// The last position in the project's partition.
    last: u64,
}

/// Asks for the figures of a project and of an identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubjectKeysQuestion {
    users: Vec<RecordKey>,
    others: Vec<(ProjectId, RecordKey)>,
}

/// A search for the ids to erase.
struct Looking<'a> {
    organization: OrganizationId,
    subject: &'a ErasureSubject,
    projects: Vec<ProjectId>,
    email: Option<RecordKey>,
    /// The keys of the e-mail addresses found.
    emails: BTreeSet<RecordKey>,
}

/// Checks that no append has an unknown outcome: the log could have events of the identity after
/// its known end.
fn check_known(before: Option<u64>, after: Option<u64>) -> Result<(), ErasureError> {
    match before.is_some() && before == after {
        true => Ok(()),
        false => Err(ErasureError::Unavailable("events may be in the log that are not known yet")),
    }
}

impl Engine {
    /// Begins an erasure on all machines.
    pub(super) fn begin_erasure(
        &self,
        organization: OrganizationId,
        subject: &ErasureSubject,
        made_for: Option<&MadeFor>,
    ) -> Result<BegunErasure, ErasureError> {
        let NewErasure { projects, keys, mut erasure } = self.new_erasure(organization, subject)?;
        let email = keys.emails.first().copied().filter(|_| matches!(subject, ErasureSubject::Email(_)));
        let emails = keys.emails.iter().copied().collect();
        let mut looking = Looking { organization, subject, projects, email, emails };
        // Before anything is suppressed. Usually this finds everything at once, or no project knows
        // the id.
        let knows = !self.look(&mut looking, 0, &mut erasure)?.is_empty();
        // Read last: another erasure may have removed the identity from the projects meanwhile.
        if !knows && self.erasures_of(organization, &keys).iter().all(Erasure::only_suppresses) {
            return Err(ErasureError::Unknown);
        }
        self.check_room(&erasure)?;
        let suppressed = self.registry().add_erasure(erasure, None)?;
        let begun = self.begin_suppressed(&mut looking, suppressed.clone(), made_for);
        if begun.is_err() {
            let given_up = self.registry().give_erasure_up(&suppressed).and_then(|()| self.partitions.follow_erasures());
            if let Err(error) = given_up {
                tracing::warn!(%error, "ids that were to be erased stay suppressed for some minutes");
            }
        }
        let (erasure, figures) = begun?;
        let theirs = self.erasures_of(organization, &keys).into_iter();
        let unfinished = theirs.filter(|theirs| theirs.has_begun() && !theirs.is_done).map(|theirs| theirs.number);
        let (number, unfinished) = (erasure.number, unfinished.collect());
        let keys = SubjectKeys { users: erasure.users, others: erasure.others, emails: looking.emails.into_iter().collect() };
        Ok(BegunErasure { number, unfinished, keys, figures })
    }

    /// Finds the ids that are linked to suppressed ones, suppresses them, and begins the erasure.
    fn begin_suppressed(
        &self,
        looking: &mut Looking<'_>,
        mut erasure: Erasure,
        made_for: Option<&MadeFor>,
    ) -> Result<(Erasure, Vec<(ProjectId, SubjectFigures)>), ErasureError> {
        let mut looks_left = LOOKS;
        erasure.ends = loop {
            looks_left -= 1;
            self.partitions.follow_erasures()?;
            let mut found = erasure.clone();
            self.look_at_projects(looking, &mut found)?;
            let ends = self.look(looking, self.registry().applied()?, &mut found)?;
            if looks_left == 0 || found == erasure {
                break ends;
            }
            self.check_room(&found)?;
            erasure = self.registry().suppress_more(&found)?.filter(Erasure::only_suppresses).ok_or(GIVEN_UP)?;
        };
        let figures = self.figures_of(&erasure)?;
        let begun = self.registry().begin_erasure(&erasure, made_for)?;
        self.partitions.follow_erasures()?;
        Ok((begun.filter(|begun| !begun.is_lifted).ok_or(GIVEN_UP)?, figures))
    }

    /// Adds projects created since the last look: events recorded in them before the ids were
    /// suppressed are erased, too.
    fn look_at_projects(&self, looking: &mut Looking<'_>, erasure: &mut Erasure) -> Result<(), ErasureError> {
        let projects = self.projects_to_erase_from(looking.organization)?;
        if projects != looking.projects {
            if let ErasureSubject::AnonymousAnywhere(_) = looking.subject {
                let others = self.keys_of(looking.organization, looking.subject, &projects)?.others;
                erasure.others.extend(others);
                erasure.others.sort_unstable();
                erasure.others.dedup();
            }
            looking.projects = projects;
        }
        Ok(())
    }

    /// Adds the ids that are linked to those of an erasure. Returns the last position of each
    /// project that knows any of them.
    fn look(&self, looking: &mut Looking<'_>, applied: u64, erasure: &mut Erasure) -> Result<Vec<ErasureEnd>, ErasureError> {
        let question =
            LinkedIdsQuestion { applied, users: erasure.users.clone(), others: erasure.others.clone(), email: looking.email };
        let here = |projects: &[ProjectId]| self.linked_ids_here(&question, projects);
        let place = (looking.organization, looking.projects.as_slice());
        let found: Vec<FoundIds> = self.ask_owners((LINKED_IDS, question.clone()), place, here)?;
        let mut users: BTreeSet<RecordKey> = erasure.users.iter().copied().collect();
        let mut others: BTreeSet<(ProjectId, RecordKey)> = erasure.others.iter().copied().collect();
        let mut ends = Vec::new();
        for (project, found) in looking.projects.iter().zip(found) {
            users.extend(found.users);
            others.extend(found.others.into_iter().map(|other| (*project, other)));
            looking.emails.extend(found.emails);
            if found.is_known {
                ends.push(ErasureEnd::at(found.last, *project));
            }
        }
        (erasure.users, erasure.others) = (users.into_iter().collect(), others.into_iter().collect());
        Ok(ends)
    }

    /// Returns the keys of the identities of each project that have an e-mail address.
    pub(super) fn owners_of(
        &self,
        question: EmailKeysQuery,
        projects: &[ProjectId],
    ) -> Result<Vec<Vec<RecordKey>>, ErasureError> {
        let Some(first) = projects.first() else { return Ok(Vec::new()) };
        let organization = self.registry().policy(*first).ok_or(ErasureError::Unknown)?.policy.organization;
        let here = |projects: &[ProjectId]| self.owners_of_email_here(&question, projects);
        self.ask_owners((OWNERS_OF_EMAIL, question.clone()), (organization, projects), here)
    }

    /// Returns the figures of an erasure's projects with the subject, and the figures of the
    /// subject. Both are of the same moment, so they differ only by the subject.
    fn figures_of(&self, erasure: &Erasure) -> Result<Vec<(ProjectId, SubjectFigures)>, ErasureError> {
        let question = SubjectKeysQuestion { users: erasure.users.clone(), others: erasure.others.clone() };
        let here = |projects: &[ProjectId]| self.figures_here(&question, projects);
        let projects: Vec<ProjectId> = erasure.projects().collect();
        let figures = self.ask_owners((SUBJECT_FIGURES, question.clone()), (erasure.organization, &projects), here)?;
        Ok(projects.into_iter().zip(figures).collect())
    }

    /// Asks the owners of projects for one part of each project. The parts are in the order of the
    /// projects. Blocks.
    fn ask_owners<Q, P>(
        &self,
        question: (u16, Q),
        (organization, projects): (OrganizationId, &[ProjectId]),
        here: impl Fn(&[ProjectId]) -> Result<Vec<P>, ErasureError>,
    ) -> Result<Vec<P>, ErasureError>
    where
        Q: Serialize + Send + Sync + 'static,
        P: DeserializeOwned + Send + 'static,
    {
        let places = self.places(projects).known().map_err(|error| unavailable(&error))?;
        let mut parts = Vec::with_capacity(projects.len());
        if !places.there.is_empty() {
            let runtime = Handle::try_current().map_err(|_| ErasureError::Unavailable("other nodes can't be asked from here"))?;
            let asked = self.ask_elsewhere_within(ANSWERED_WITHIN, question, (organization, projects), &places.there);
            parts.extend(runtime.block_on(asked).map_err(|error| unavailable(&error))?);
        }
        let own: Vec<ProjectId> = places.here.iter().filter_map(|place| projects.get(*place).copied()).collect();
        if !own.is_empty() {
            parts.extend(places.here.into_iter().zip(here(&own)?));
        }
        parts.sort_unstable_by_key(|(place, _)| *place);
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// Answers a question of another node about an erasure.
    pub(super) async fn answer_about_erasure(&self, tag: u16, request: &[u8]) -> Result<Vec<u8>, AskNodeError> {
        let engine = self.clone();
        let answer: Box<dyn FnOnce() -> Result<Vec<u8>, ErasureAnswerError> + Send> = match tag {
            OWNERS_OF_EMAIL => {
                let NodeRequest { projects, question, .. } = self.checked::<EmailKeysQuery>(request)?;
                Box::new(move || Ok(encode_answer(tag, &engine.owners_of_email_here(&question, &projects)?)?))
            }
            LINKED_IDS => {
                let NodeRequest { projects, question, .. } = self.checked::<LinkedIdsQuestion>(request)?;
                Box::new(move || Ok(encode_answer(tag, &engine.linked_ids_here(&question, &projects)?)?))
            }
            _ => {
                let NodeRequest { projects, question, .. } = self.checked::<SubjectKeysQuestion>(request)?;
                Box::new(move || Ok(encode_answer(tag, &engine.figures_here(&question, &projects)?)?))
            }
        };
        match tokio::task::spawn_blocking(answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(ErasureAnswerError::Node(error))) => Err(error),
            Ok(Err(ErasureAnswerError::Erasure(error))) => Err(AskNodeError::NoAnswer(error.to_string())),
            Err(_) => Err(AskNodeError::NoAnswer("the node stops".to_owned())),
        }
    }

    fn owners_of_email_here(
        &self,
        question: &EmailKeysQuery,
        projects: &[ProjectId],
    ) -> Result<Vec<Vec<RecordKey>>, ErasureError> {
        projects.iter().map(|project| self.ask_to_erase(*project, question.clone())).collect()
    }

    fn figures_here(&self, question: &SubjectKeysQuestion, projects: &[ProjectId]) -> Result<Vec<SubjectFigures>, ErasureError> {
        let figures = |project: &ProjectId| {
            let others = question.others.iter().filter(|(of, _)| of == project).map(|(_, other)| *other);
            let keys = question.users.iter().copied().chain(others).collect();
            self.ask_to_erase(*project, SubjectFiguresQuery { keys })
        };
        projects.iter().map(figures).collect()
    }

    /// Returns the ids that projects of this machine know, once everything admitted by now is in
    /// their states. A base written meanwhile reflects no later event.
    fn linked_ids_here(&self, question: &LinkedIdsQuestion, projects: &[ProjectId]) -> Result<Vec<FoundIds>, ErasureError> {
        if !self.partitions.follow_until(question.applied)? {
            return Err(ErasureError::Unavailable("a node does not know yet what is erased"));
        }
        let unknown = self.unknown_in(projects);
        if !self.questions.erasures.wait_for_admitted() {
            return Err(ErasureError::Unavailable("events under way take too long"));
        }
        // A base that is being listed reflects no event after these positions.
        drop(self.scans.history.bases());
        let lasts = self.save_partitions_of(projects)?;
        let found = projects.iter().zip(lasts).map(|(project, last)| self.linked_ids_in(question, *project, last)).collect();
        // The log may have unknown appends after these positions. The next owner of the partition
        // finds out.
        unknown.iter().zip(self.unknown_in(projects)).try_for_each(|(before, after)| check_known(*before, after))?;
        // A new owner may have recorded more.
        match projects.iter().all(|project| self.owners().of_project(*project) == Owner::Here) {
            true => found,
            false => Err(ErasureError::Unavailable("a project moved to another node")),
        }
    }

    fn unknown_in(&self, projects: &[ProjectId]) -> Vec<Option<u64>> {
        projects.iter().map(|project| self.partitions.unknown.all_found(partition_of(*project))).collect()
    }

    fn linked_ids_in(&self, question: &LinkedIdsQuestion, project: ProjectId, last: u64) -> Result<FoundIds, ErasureError> {
        let others = question.others.iter().filter(|(of, _)| *of == project).map(|(_, other)| *other);
        let asked: BTreeSet<RecordKey> = question.users.iter().copied().chain(others).collect();
        let mut keys = asked.clone();
        if let Some(email) = question.email {
            keys.extend(self.ask_to_erase(project, EmailKeysQuery { email, most: MAX_OWNERS + 1 })?);
        }
        let partition = partition_of(project);
        let place = self.questions.shards.ask_partition(partition, move |shard| Ok(shard.store_of(partition)));
        let (store, stored_as) = place.ok().flatten().ok_or(ErasureError::Unavailable("a partition is being rebuilt"))?;
        let (mut is_known, mut emails) = (false, BTreeSet::new());
        for_each_identity(&*store, stored_as, project, &mut |key, slot| {
            let owner = match &slot {
                IdentitySlot::Alias { user, .. } => *user,
                IdentitySlot::Canonical(_) => key,
            };
            if keys.contains(&key) || keys.contains(&owner) {
                is_known = true;
                keys.extend([key, owner]);
                if let IdentitySlot::Canonical(identity) = &slot {
                    emails.extend(identity.emails.iter().map(|(email, _)| self.hasher().email(email)));
                }
            }
            ControlFlow::Continue(())
        })?;
        // Only new ids are wanted.
        let (users, others) = keys.difference(&asked).copied().partition(|key| key.is_user());
        Ok(FoundIds { is_known, users, others, emails: emails.into_iter().collect(), last })
    }

    /// Saves the current state of the projects' partitions. Returns the last position of each.
    fn save_partitions_of(&self, projects: &[ProjectId]) -> Result<Vec<u64>, ErasureError> {
        let partitions: BTreeSet<u16> = projects.iter().map(|project| partition_of(*project)).collect();
        let lasts = projects.iter().map(|project| self.scans.history.last_position(partition_of(*project))).collect();
        let began = Stopwatch::now();
        self.save_blocking(partitions, &|| began.elapsed() > SAVE_TIMEOUT).map_err(|error| {
            tracing::info!(%error, "a partition of which somebody is erased is not saved");
            ErasureError::Unavailable("the state of a project can't be saved now")
        })?;
        Ok(lasts)
    }
}

/// The reason why a question about an erasure has no answer.
#[derive(Debug, thiserror::Error)]
enum ErasureAnswerError {
    #[error(transparent)]
    Node(#[from] AskNodeError),
    #[error(transparent)]
    Erasure(#[from] ErasureError),
}

fn unavailable(error: &AskError) -> ErasureError {
    tracing::info!(%error, "the owner of a project can't be asked about an erasure");
    ErasureError::Unavailable(match error {
        AskError::NoOwner => "no node is known to have a project",
        AskError::Node(AskNodeError::TooLarge) => "an answer of another node is too large",
        _ => "another node does not answer",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_common::nodes::decode_answer;

    /// Nodes of other program versions read these bytes.
    #[test]
    fn the_bytes_of_questions_about_erasures_stay() {
        let question = LinkedIdsQuestion {
            applied: 3,
            users: vec![RecordKey(1)],
            others: vec![(ProjectId(2), RecordKey(4))],
            email: Some(RecordKey(5)),
        };
        let request = NodeRequest { organization: OrganizationId(1), projects: vec![ProjectId(2)], question };
        let bytes = request.encode(LINKED_IDS).unwrap();
        assert_eq!(bytes, GOLDEN_QUESTION);
        assert_eq!(NodeRequest::<LinkedIdsQuestion>::decode(&bytes).unwrap().question, request.question);
        let keys = SubjectKeysQuestion { users: vec![RecordKey(1)], others: vec![(ProjectId(2), RecordKey(4))] };
        let request = NodeRequest { organization: OrganizationId(1), projects: vec![ProjectId(2)], question: keys };
        assert_eq!(request.encode(SUBJECT_FIGURES).unwrap(), GOLDEN_KEYS);
        let ids = |key| vec![RecordKey(key)];
        let found = vec![FoundIds { is_known: true, users: ids(1), others: ids(4), emails: ids(5), last: 300 }];
        let bytes = encode_answer(LINKED_IDS, &found).unwrap();
        assert_eq!(bytes, GOLDEN_ANSWER);
        assert_eq!(decode_answer::<Vec<FoundIds>>(LINKED_IDS, &bytes), Ok(found));
    }

    const GOLDEN_QUESTION: &[u8] = &[37, 4, 1, 1, 1, 2, 3, 1, 1, 1, 2, 4, 1, 5];
    const GOLDEN_KEYS: &[u8] = &[38, 4, 1, 1, 1, 2, 1, 1, 1, 2, 4];
    const GOLDEN_ANSWER: &[u8] = &[37, 4, 1, 1, 1, 1, 1, 1, 4, 1, 5, 251, 44, 1];
}
