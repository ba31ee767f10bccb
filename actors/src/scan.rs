//! Answers that no rollup keeps: recomputed from the log, by the domain's own rules.
//!
//! The scan reads a project's events up to the position that its shard had applied when the question came: so it sees
//! everything that was acknowledged before, and one state of the links.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use headcount_domain::answers::UniqueUsers;
use headcount_domain::event::Event;
use headcount_domain::filter::Predicate;
use headcount_domain::fold::Position;
use headcount_domain::ids::{KeyHasher, ProjectId, RecordKey};
use headcount_domain::time::{Day, Window};
use headcount_storage::log::Record;

use crate::aggregator::partition_of;
use crate::engine::{AskError, Engine};
use crate::logged;

/// How many scans run at once; each keeps a core busy.
const MAX_SCANS: usize = 2;

impl Engine {
    /// Unique users with an event that matches `predicate`, per day of `window` and over it.
    ///
    /// Costs a pass over the project's partition of the log.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn scan_unique_users(
        &self,
        project: ProjectId,
        window: Window,
        predicate: Predicate,
    ) -> Result<UniqueUsers, AskError> {
        let until = self.last(project).await?;
        let _turn = self.scans().acquire().await.map_err(|_| AskError::NoAnswer)?;
        let engine = self.clone();
        let scan = move || engine.unique_users_in_log(project, window, &predicate, until);
        tokio::task::spawn_blocking(scan).await.map_err(|_| AskError::NoAnswer)?
    }

    fn unique_users_in_log(
        &self,
        project: ProjectId,
        window: Window,
        predicate: &Predicate,
        until: Position,
    ) -> Result<UniqueUsers, AskError> {
        let mut users = Users::new(self.hasher());
        self.visit_events(project, until, &mut |event| {
            users.see(event, window.contains(event.day) && predicate.matches(event, None));
        })?;
        Ok(users.answer(window))
    }

    /// Hands every recorded event of `project` up to `until` to `visit`, in the order in which they were recorded,
    /// without duplicates and without what was set aside.
    fn visit_events(&self, project: ProjectId, until: Position, visit: &mut dyn FnMut(&Event)) -> Result<(), AskError> {
        let partition = partition_of(project);
        let mut external_ids = HashSet::new();
        let mut damage = None;
        let result = self.reader().read(
            |number| (number == partition).then_some(0),
            |record: Record<'_>| {
                if self.is_closing() {
                    damage = Some("the engine is closing".to_owned());
                    return ControlFlow::Break(());
                }
                let events = match logged::decode(record.payload) {
                    Ok(events) => events,
                    Err(error) => {
                        damage = Some(error.to_string());
                        return ControlFlow::Break(());
                    }
                };
                for (event, position) in events.iter().zip(record.first..) {
                    if position > until {
                        return ControlFlow::Break(());
                    }
                    if event.project == project && !self.is_dead(position) && self.is_first(event, &mut external_ids) {
                        visit(event);
                    }
                }
                ControlFlow::Continue(())
            },
        );
        if let Some(error) = result.err().map(|error| error.to_string()).or(damage) {
            tracing::error!(error, "the log could not be read");
            return Err(AskError::NoAnswer);
        }
        Ok(())
    }

    fn is_first(&self, event: &Event, external_ids: &mut HashSet<u128>) -> bool {
        match &event.external_id {
            Some(external_id) => external_ids.insert(self.hasher().external_id(event.project, external_id)),
            None => true,
        }
    }
}

pub(crate) fn scan_permits() -> tokio::sync::Semaphore {
    tokio::sync::Semaphore::new(MAX_SCANS)
}

/// Whom the matching events name, and the links of all events.
struct Users<'h> {
    hasher: &'h KeyHasher,
    links: HashMap<RecordKey, RecordKey>,
    active: HashMap<RecordKey, BTreeSet<Day>>,
}

impl<'h> Users<'h> {
    fn new(hasher: &'h KeyHasher) -> Self {
        Self { hasher, links: HashMap::new(), active: HashMap::new() }
    }

    fn see(&mut self, event: &Event, matches: bool) {
        let user = event.who.user_id.as_deref().map(|user| self.hasher.user(user));
        let anonymous = event.who.anonymous_id.as_deref().map(|anonymous| self.hasher.anonymous(anonymous));
        if let (Some(user), Some(anonymous)) = (user, anonymous) {
            self.links.entry(anonymous).or_insert(user);
        }
        if !matches {
            return;
        }
        let visitor = || event.who.visitor.map(|visitor| self.hasher.identity(&headcount_domain::ids::RawId::Visitor(visitor)));
        if let Some(key) = user.or(anonymous).or_else(visitor) {
            self.active.entry(key).or_default().insert(event.day);
        }
    }

    fn answer(self, window: Window) -> UniqueUsers {
        let mut identities: HashSet<RecordKey> = HashSet::new();
        let mut by_day: BTreeMap<Day, HashSet<RecordKey>> = BTreeMap::new();
        for (key, days) in self.active {
            let identity = self.links.get(&key).copied().unwrap_or(key);
            identities.insert(identity);
            for day in days {
                by_day.entry(day).or_default().insert(identity);
            }
        }
        let count = |day: Day| by_day.get(&day).map_or(0, |users| users.len() as u64);
        UniqueUsers { series: window.days().map(|day| (day, count(day))).collect(), total: identities.len() as u64 }
    }
}
