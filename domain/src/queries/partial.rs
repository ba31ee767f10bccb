//! Queries: values that are sent to the state of a project, and the partial answers that come back.
//!
//! A query about one project is answered by that project. A query about an organization is sent to
//! all of its projects, and the partial answers are merged. A step that requires the result of
//! another step is a separate query.

use crate::fault::Fault;
use crate::ids::{KeyHasher, OrganizationId, ProjectId};
use crate::limits::Limits;
use crate::project::Project;
use crate::records::Source;
use crate::rollups::{InList, RowsQuery};
use crate::time::{Day, Window};
use crate::versions::Depends;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A project's state for queries, with the source of records that are not in memory.
#[derive(Debug)]
pub struct Reader<'a, S> {
    /// The id of the project.
    pub id: ProjectId,
    /// The state.
    pub project: &'a mut Project,
    /// Computes its keys.
    pub hasher: &'a KeyHasher,
    /// The source of records that are not in memory.
    pub source: &'a S,
}

/// A day after every event.
const NEVER: Day = Day(1 << 24);

impl<S> Reader<'_, S> {
    /// Returns the days of a window that are not below the project's floor, which organization-wide
    /// answers use. If there are none, returns a window without events.
    pub(super) fn kept(&self, window: Window) -> Window {
        let start = self.project.floor().map_or(window.start, |floor| window.start.max(floor));
        if start <= window.end { Window { start, ..window } } else { Window { start: NEVER, end: NEVER } }
    }
}

/// A query to one project.
pub trait Query: Clone + Send + Serialize + DeserializeOwned + 'static {
    /// The answer of one project.
    type Partial: Send + Serialize + DeserializeOwned + 'static;

    /// Returns the dependencies of a project's answer.
    fn depends(&self) -> Depends {
        Depends::Everything
    }

    /// Computes the answer.
    ///
    /// # Errors
    /// A record could not be read.
    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault>;
}

impl<Q: RowsQuery<Rollup: InList>> Query for Q {
    type Partial = Q::Answer;

    fn depends(&self) -> Depends {
        self.depends_on()
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Q::Answer, Fault> {
        Ok(self.answer_from(Q::Rollup::rows(&reader.project.rollups)))
    }
}

/// A query to all projects of an organization. Some of them may be on other nodes, so its bytes
/// travel, and so do the partial answers.
pub trait Travels: Query + Sync {
    /// Identifies the type of the query to nodes of this and other versions. A tag stands for the
    /// same bytes for ever: a query or a partial answer that changes gets a new one.
    const TAG: u16;
}

/// The projects of one organization, independent of their location.
pub trait Projects: Sync {
    /// The error of a project that does not answer.
    type Error: Send;

    /// Returns the organization, which public ids depend on.
    fn organization(&self) -> OrganizationId;

    /// Returns the number of projects.
    fn count(&self) -> usize;

    /// Returns the sizes that bound the work of one step.
    fn limits(&self) -> Limits {
        Limits::DEFAULT
    }

    /// Returns the hasher for the keys of their records.
    fn hasher(&self) -> &KeyHasher;

    /// Sends the query to each project, and returns the answers in the order of the projects.
    fn scatter<Q: Travels>(&self, question: Q) -> impl Future<Output = Result<Vec<Q::Partial>, Self::Error>> + Send;
}

/// Sorts rows by their main figure, descending, and ties by name, ascending in byte order.
pub(super) fn rank<T, F: Ord, N: Ord>(rows: &mut [T], figure: impl Fn(&T) -> F, name: impl Fn(&T) -> N) {
    rows.sort_by(|left, right| figure(right).cmp(&figure(left)).then_with(|| name(left).cmp(&name(right))));
}

/// Keeps the rows that may be among the first `limit` for any names: rows whose figure is not below
/// the figure at that position. Only these rows need names.
pub(super) fn candidates<T, F: Ord + Copy>(rows: &mut Vec<T>, limit: usize, figure: impl Fn(&T) -> F) {
    rows.sort_by_key(|row| std::cmp::Reverse(figure(row)));
    if let Some(last) = limit.checked_sub(1).and_then(|last| rows.get(last)).map(&figure) {
        let enough = rows.partition_point(|row| figure(row) >= last);
        rows.truncate(enough);
    }
}
