//! The subjects of erasures and exports: people. Features find them and erase them through
//! [`Subjects`], which does not keep the engine open.

mod error;
mod ids;
mod keys;

use std::fmt::Debug;

use headcount_control::{Erasure, MadeFor};
use headcount_domain::queries::{KnownIdentity, SubjectFigures};
use headcount_domain::{OrganizationId, Position, ProjectId, RecordKey};
use serde::{Deserialize, Serialize};

use crate::shard::AskError;
pub use error::ErasureError;
pub(crate) use error::MAX_OWNERS;
pub use ids::{SubjectIds, SubjectOwner};
pub use keys::SubjectKeys;

/// The person to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasureSubject {
    /// A user of the organization.
    User(String),
    /// An anonymous id of a project; if it is linked to a user, that user.
    Anonymous(ProjectId, String),
    /// An anonymous id in all projects; if it is linked to a user, that user.
    AnonymousAnywhere(String),
    /// All identities that ever had an e-mail address.
    Email(String),
}

/// An erasure that is durable.
#[derive(Debug)]
pub struct BegunErasure {
    /// Its number in the organization.
    pub number: u64,
    /// The numbers of the unfinished erasures of the same subject.
    pub unfinished: Vec<u64>,
    /// The keys of its subject.
    pub keys: SubjectKeys,
    /// The figures of its projects with the subject, and the figures of the subject.
    pub figures: Vec<(ProjectId, SubjectFigures)>,
}

/// Asks for some events of a subject in a project: those after a position, up to another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubjectEventsQuestion {
    /// The keys of its users.
    pub users: Vec<RecordKey>,
    /// The keys of its other ids in the project.
    pub others: Vec<RecordKey>,
    /// The position after which events are wanted.
    pub after: Position,
    /// The last position.
    pub until: Position,
}

/// Answers a [`SubjectEventsQuestion`].
#[derive(Debug, Serialize, Deserialize)]
pub struct SubjectEvents {
    /// The events, encoded as they are recorded.
    pub events: Vec<(Position, Vec<u8>)>,
    /// There are no others up to this position.
    pub reached: Position,
}

/// A subject, and the organization that it is known to.
pub type Whom<'a> = (OrganizationId, &'a ErasureSubject);

/// A project, and the organization that owns it.
pub type Place = (OrganizationId, ProjectId);

/// Whether the caller has no use for an answer any more.
pub type IsOver<'a> = &'a dyn Fn() -> bool;

/// What a feature finds out and does about subjects. All of it blocks, and asks other nodes for
/// their projects; call it where a runtime is. Once the engine is gone, nothing is available.
pub trait Subjects: Debug + Send + Sync {
    /// Begins an erasure, as [`Engine::erase`](crate::Engine::erase) does, for a privacy request.
    ///
    /// # Errors
    /// See [`ErasureError`].
    fn erase(&self, whom: Whom<'_>, by: &MadeFor) -> Result<BegunErasure, ErasureError>;

    /// Lifts erasures, as [`Engine::opt_in`](crate::Engine::opt_in) does, for a privacy request.
    /// Returns the erasures of the subject.
    ///
    /// # Errors
    /// See [`ErasureError`].
    fn opt_in(&self, whom: Whom<'_>, by: &MadeFor) -> Result<Vec<Erasure>, ErasureError>;

    /// Returns the keys of the identities that projects know of a subject. Ids that are linked
    /// stand for their users.
    ///
    /// # Errors
    /// [`ErasureError::Unknown`] if there is none, or if it is being erased.
    fn known(&self, whom: Whom<'_>) -> Result<SubjectKeys, ErasureError>;

    /// Returns all ids of a subject. Reads the ids of all identities.
    ///
    /// # Errors
    /// See [`ErasureError`].
    fn ids(&self, whom: Whom<'_>, is_over: IsOver<'_>) -> Result<SubjectIds, ErasureError>;

    /// Returns what a project knows of identities, in their order.
    ///
    /// # Errors
    /// See [`AskError`].
    fn identities(&self, place: Place, keys: Vec<RecordKey>, is_over: IsOver<'_>)
    -> Result<Vec<Option<KnownIdentity>>, AskError>;

    /// Returns some events of a subject in a project.
    ///
    /// # Errors
    /// See [`AskError`].
    fn events(&self, place: Place, question: &SubjectEventsQuestion, is_over: IsOver<'_>) -> Result<SubjectEvents, AskError>;

    /// Whether the disk has room for what gives way to events.
    fn has_space(&self) -> bool;
}
