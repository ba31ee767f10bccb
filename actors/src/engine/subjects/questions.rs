//! What an export asks one project, on whichever node it is. Nodes ask each other the same.

use std::time::{Duration, Instant as Stopwatch};

use headcount_common::nodes::{AskNodeError, NodeRequest, encode_answer};
use headcount_common::{Owner, partition_of};
use headcount_domain::queries::{EmailKeysQuery, KnownIdentitiesQuery, KnownIdentity, Query};
use headcount_domain::{OrganizationId, ProjectId, RecordKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::engine::handle::Engine;
use crate::shard::AskError;
use crate::subject::{SubjectEvents, SubjectEventsQuestion};

/// How long an export waits for a project that has no owner, or whose owner does not answer:
/// another one takes it over meanwhile.
const PATIENCE: Duration = Duration::from_secs(45);
const PAUSE: Duration = Duration::from_millis(500);

/// The tags of the questions.
const EMAIL_KEYS: u16 = 1020;
const KNOWN_IDENTITIES: u16 = 1021;
const LINKS: u16 = 1022;
const EVENTS: u16 = 1023;

/// Asks which ids belong to a subject, as far as a project knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::engine) struct SubjectLinksQuestion {
    pub(super) users: Vec<RecordKey>,
    /// Ids of this project.
    pub(super) others: Vec<RecordKey>,
}

/// Answers a [`SubjectLinksQuestion`].
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::engine) enum SubjectLinks {
    Found {
        /// Ids with the users that they are linked to.
        links: Vec<(RecordKey, RecordKey)>,
        /// The identities that the project knows.
        known: Vec<RecordKey>,
    },
    /// There are more than an export takes.
    TooMany,
}

/// A question about a subject to one project.
pub(in crate::engine) trait AboutSubject: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Tells it from other questions of nodes.
    const TAG: u16;
    type Answer: Serialize + DeserializeOwned + Send + 'static;

    /// Answers it for a project of this node.
    fn answer(self, engine: &Engine, project: ProjectId) -> impl Future<Output = Result<Self::Answer, AskError>> + Send;
}

impl AboutSubject for EmailKeysQuery {
    const TAG: u16 = EMAIL_KEYS;
    type Answer = <Self as Query>::Partial;

    async fn answer(self, engine: &Engine, project: ProjectId) -> Result<Vec<RecordKey>, AskError> {
        engine.ask(project, self).await
    }
}

impl AboutSubject for KnownIdentitiesQuery {
    const TAG: u16 = KNOWN_IDENTITIES;
    type Answer = Vec<Option<KnownIdentity>>;

    async fn answer(self, engine: &Engine, project: ProjectId) -> Result<Self::Answer, AskError> {
        engine.ask(project, self).await
    }
}

impl AboutSubject for SubjectLinksQuestion {
    const TAG: u16 = LINKS;
    type Answer = SubjectLinks;

    async fn answer(self, engine: &Engine, project: ProjectId) -> Result<SubjectLinks, AskError> {
        engine.saved_links(project, self).await
    }
}

impl AboutSubject for SubjectEventsQuestion {
    const TAG: u16 = EVENTS;
    type Answer = SubjectEvents;

    async fn answer(self, engine: &Engine, project: ProjectId) -> Result<SubjectEvents, AskError> {
        let Self { users, others, after, until } = self;
        let ids = users.into_iter().chain(others).collect();
        engine.scans.subject_page(project, (after, until), ids).await
    }
}

impl Engine {
    /// Asks a project, on whichever node it is.
    pub(super) async fn ask_about_subject<Q: AboutSubject>(
        &self,
        (organization, project): (OrganizationId, ProjectId),
        question: Q,
    ) -> Result<Q::Answer, AskError> {
        match self.owners().of_project(project) {
            Owner::Here => self.answer_here(project, question).await,
            Owner::There(address) => self.ask_together((Q::TAG, &question), &address, organization, vec![project]).await,
            Owner::Nowhere => Err(AskError::NoOwner),
        }
    }

    async fn answer_here<Q: AboutSubject>(&self, project: ProjectId, question: Q) -> Result<Q::Answer, AskError> {
        let answer = question.answer(self, project).await?;
        // It may be made of what was left when the partition was given up.
        if self.owners().is_here(partition_of(project)) { Ok(answer) } else { Err(AskNodeError::NotHere.into()) }
    }

    /// Answers what an export on another node asks. `None`: the tag is of another question.
    pub(in crate::engine) async fn answer_about_subject(
        &self,
        tag: u16,
        request: &[u8],
    ) -> Option<Result<Vec<u8>, AskNodeError>> {
        Some(match tag {
            EMAIL_KEYS => self.answer_for_export::<EmailKeysQuery>(request).await,
            KNOWN_IDENTITIES => self.answer_for_export::<KnownIdentitiesQuery>(request).await,
            LINKS => self.answer_for_export::<SubjectLinksQuestion>(request).await,
            EVENTS => self.answer_for_export::<SubjectEventsQuestion>(request).await,
            _ => return None,
        })
    }

    async fn answer_for_export<Q: AboutSubject>(&self, request: &[u8]) -> Result<Vec<u8>, AskNodeError> {
        let NodeRequest { projects, question, .. } = self.checked::<Q>(request)?;
        let [project] = projects[..] else {
            return Err(AskNodeError::OtherVersion("it asks about another number of projects".to_owned()));
        };
        let most = self.question_timeout();
        let answer = tokio::time::timeout(most, self.answer_here(project, question)).await;
        encode_answer(Q::TAG, &answer.unwrap_or(Err(AskError::TimedOut(most))).map_err(AskNodeError::from)?)
    }
}

/// Asks again for a while what has no answer for now. Blocks; call it where a runtime is.
pub(in crate::engine) fn ask_patiently<R, F: Future<Output = Result<R, AskError>>>(
    is_over: &dyn Fn() -> bool,
    ask: impl Fn() -> F,
) -> Result<R, AskError> {
    Handle::current().block_on(asked_patiently(is_over, ask))
}

/// The same without blocking.
pub(in crate::engine) async fn asked_patiently<R, F: Future<Output = Result<R, AskError>>>(
    is_over: &dyn Fn() -> bool,
    ask: impl Fn() -> F,
) -> Result<R, AskError> {
    let began = Stopwatch::now();
    loop {
        match ask().await {
            Err(error) if may_pass(&error) && began.elapsed() < PATIENCE && !is_over() => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

/// Whether there may be an answer in a moment, if another node has the project then.
fn may_pass(error: &AskError) -> bool {
    match error {
        AskError::NoOwner | AskError::NoAnswer | AskError::Busy => true,
        AskError::Node(error) => {
            !matches!(error, AskNodeError::OtherVersion(_) | AskNodeError::TooLarge | AskNodeError::NotOfOrganization)
        }
        AskError::Lost(_) | AskError::TimedOut(_) | AskError::BelowFloor(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use headcount_domain::facts::Moment;
    use headcount_domain::{IdentityId, Instant};

    use super::*;
    use headcount_common::nodes::decode_answer;

    fn request<Q: AboutSubject>(question: Q) -> Vec<u8> {
        NodeRequest { organization: OrganizationId(1), projects: vec![ProjectId(2)], question }.encode(Q::TAG).unwrap()
    }

    /// Nodes of other versions read these bytes.
    #[test]
    fn the_bytes_of_questions_about_subjects_stay() {
        let keys = |keys: &[u128]| keys.iter().copied().map(RecordKey).collect::<Vec<_>>();
        assert_eq!(request(EmailKeysQuery { email: RecordKey(7), most: 9 }), [0xfc, 3, 1, 1, 1, 2, 7, 9]);
        assert_eq!(encode_answer(EMAIL_KEYS, &keys(&[7])).unwrap(), [0xfc, 3, 1, 1, 7]);
        assert_eq!(request(KnownIdentitiesQuery { keys: keys(&[7]) }), [0xfd, 3, 1, 1, 1, 2, 1, 7]);
        let known = KnownIdentity {
            key: RecordKey(7),
            id: IdentityId::User("a".into()),
            seen: Some((Instant(1), Instant(2))),
            email: Some(("e".into(), Moment { time: Instant(3), position: 4 })),
            company: Some(RecordKey(5)),
        };
        let bytes = encode_answer(KNOWN_IDENTITIES, &vec![Some(known), None]).unwrap();
        assert_eq!(bytes, [0xfd, 3, 1, 2, 1, 7, 0, 1, 97, 1, 2, 4, 1, 1, 101, 6, 4, 1, 5, 0]);
        let links = SubjectLinksQuestion { users: keys(&[7]), others: keys(&[8, 9]) };
        assert_eq!(request(links), [0xfe, 3, 1, 1, 1, 2, 1, 7, 2, 8, 9]);
        let found = SubjectLinks::Found { links: vec![(RecordKey(8), RecordKey(7))], known: keys(&[7]) };
        assert_eq!(encode_answer(LINKS, &found).unwrap(), [0xfe, 3, 1, 0, 1, 8, 7, 1, 7]);
        assert_eq!(encode_answer(LINKS, &SubjectLinks::TooMany).unwrap(), [0xfe, 3, 1, 1]);
        let events = SubjectEventsQuestion { users: keys(&[7]), others: Vec::new(), after: 3, until: 4 };
        assert_eq!(request(events), [0xff, 3, 1, 1, 1, 2, 1, 7, 0, 3, 4]);
        let page = SubjectEvents { events: vec![(4, vec![250, 9])], reached: 4 };
        let bytes = encode_answer(EVENTS, &page).unwrap();
        assert_eq!(bytes, [0xff, 3, 1, 1, 4, 2, 250, 9, 4]);
        let read: SubjectEvents = decode_answer(EVENTS, &bytes).unwrap();
        assert_eq!((read.events, read.reached), (page.events, 4));
    }
}
