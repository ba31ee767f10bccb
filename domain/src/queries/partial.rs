//! Questions: data that is sent to where a project's state is, and parts of answers that come back and are put together.
//!
//! A question about one project is answered by it alone; one about an organization is asked of each of its projects, and
//! the parts are merged. Where a second step needs what the first found, it is a second question.

use crate::fault::Fault;
use crate::ids::{KeyHasher, ProjectId};
use crate::project::Project;
use crate::records::Source;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A project's state, for reading: records that are not in memory are brought there.
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

/// A query about one project. It is data, so that it can be sent to where the state of the project is.
pub trait Query: Clone + Send + Serialize + DeserializeOwned + 'static {
    /// What a project answers.
    type Partial: Send + Serialize + DeserializeOwned + 'static;

    /// Answers it.
    ///
    /// # Errors
    /// A record could not be read back.
    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault>;
}

/// The projects of one organization, wherever they are.
pub trait Projects: Sync {
    /// Why there is no answer.
    type Error: Send;

    /// How many there are.
    fn count(&self) -> usize;

    /// Makes the keys of their records.
    fn hasher(&self) -> &KeyHasher;

    /// Asks each of them the same; the parts come in the order of the projects.
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
