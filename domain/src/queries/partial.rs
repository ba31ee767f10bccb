//! Queries: values that are sent to the state of a project, and the partial answers that come back.
//!
//! A query about one project is answered by it alone. A query about an organization is scattered to its projects, and the partial
//! answers are merged. A step that needs the result of another is a query of its own.

use crate::fault::Fault;
use crate::ids::{KeyHasher, OrganizationId, ProjectId};
use crate::limits::Limits;
use crate::project::Project;
use crate::records::Source;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a project's state; loads records that are not in memory.
#[derive(Debug)]
pub struct Reader<'a, S> {
    /// Which project.
    pub id: ProjectId,
    /// Its state.
    pub project: &'a mut Project,
    /// Makes its keys.
    pub hasher: &'a KeyHasher,
    /// Where its records come from.
    pub source: &'a S,
}

/// A query of one project.
pub trait Query: Clone + Send + Serialize + DeserializeOwned + 'static {
    /// The answer of one project.
    type Partial: Send + Serialize + DeserializeOwned + 'static;

    /// Computes the answer.
    ///
    /// # Errors
    /// A record could not be read back.
    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault>;
}

/// The projects of one organization, wherever they are.
pub trait Projects: Sync {
    /// The error of a project that does not answer.
    type Error: Send;

    /// The organization, which public ids depend on.
    fn organization(&self) -> OrganizationId;

    /// The number of projects.
    fn count(&self) -> usize;

    /// The sizes that bound the work of one step.
    fn limits(&self) -> Limits {
        Limits::DEFAULT
    }

    /// Makes the keys of their records.
    fn hasher(&self) -> &KeyHasher;

    /// Sends the query to each project; the answers come in the order of the projects.
    fn scatter<Q: Query + Sync>(&self, question: Q) -> impl Future<Output = Result<Vec<Q::Partial>, Self::Error>> + Send;
}

/// Orders rows by their main figure, descending; of equal ones by name, ascending in byte order.
pub(super) fn rank<T, F: Ord, N: Ord>(rows: &mut [T], figure: impl Fn(&T) -> F, name: impl Fn(&T) -> N) {
    rows.sort_by(|left, right| figure(right).cmp(&figure(left)).then_with(|| name(left).cmp(&name(right))));
}

/// Keeps the rows that can be among the first `limit`, whatever their names: those whose figure is not below that of the
/// row in that place. Rows that have no name yet are cut to these, so that only these have to be named.
pub(super) fn candidates<T, F: Ord + Copy>(rows: &mut Vec<T>, limit: usize, figure: impl Fn(&T) -> F) {
    rows.sort_by_key(|row| std::cmp::Reverse(figure(row)));
    if let Some(last) = limit.checked_sub(1).and_then(|last| rows.get(last)).map(&figure) {
        let enough = rows.partition_point(|row| figure(row) >= last);
        rows.truncate(enough);
    }
}
