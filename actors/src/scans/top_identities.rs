//! The most active identified identities of an organization.
//!
//! Rollups don't say who was active, so the events of the range do: of each project, by the columns
//! of ids. The identities are collected on disk; what is shown of those that may be among the first
//! comes from their records.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use headcount_domain::aggregate::GroupFigures;
use headcount_domain::queries::{ActiveIdentity, IdentifiedQuery, IdentityOrder, IdentityRanking, Listed, TopIdentity};
use headcount_domain::{Event, OrganizationId, Position, ProjectId, RecordKey, SentKeys, Window};
use tokio::runtime::Handle;

use super::error::{Result, ScanError, check};
use super::events::{IDS_A_QUESTION, Scan, Tally, TallyError};
use super::group_ids::GroupIds;
use super::group_table::GroupTable;
use super::identities::{KEY, bytes, key_of};
use super::sealed_group::SealedGroup;
use super::shared::Scans;
use super::turns::ScanTurn;
use crate::shard::AskError;

/// How many identities are ordered together, so that those with the most events are looked at
/// first.
const ORDERED_TOGETHER: usize = 1 << 16;

impl Scans {
    /// Returns the first `limit` of the identified identities (with a `user_id` or an e-mail
    /// address) that have an event in `window`, over all projects of an organization.
    ///
    /// Costs a pass over the events of these days. Dropping the future ends it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn top_identities(
        &self,
        organization: OrganizationId,
        window: Window,
        order: IdentityOrder,
        limit: usize,
    ) -> Result<Listed<TopIdentity>, AskError> {
        self.in_time(self.rank_identities(organization, window, IdentityRanking::new(window, order, limit))).await
    }

    async fn rank_identities(
        &self,
        organization: OrganizationId,
        window: Window,
        ranking: IdentityRanking,
    ) -> Result<Listed<TopIdentity>, AskError> {
        // One turn for all projects: what is collected is in memory until the end.
        let turn = Arc::new(self.turns.take(Some(organization)).await?);
        let projects = self.questions.projects_of(organization);
        let active = self.collect_active(&turn, organization, projects, window).await?;
        let Some(active) = active else { return Ok(ranking.finish()) };
        self.run_scan(turn, move |scans, cancelled, _| scans.rank(cancelled, organization, active, ranking)).await
    }

    /// Returns who was active in projects of this node, if there are any, with the number of their
    /// events.
    pub(super) async fn collect_active_here(
        &self,
        turn: &Arc<ScanTurn>,
        projects: Vec<ProjectId>,
        window: Window,
    ) -> Result<Option<GroupTable>, AskError> {
        let mut active = None;
        for project in projects {
            let collect = move |scan: Scan<'_>, sort_bytes| scan.collect_identities(window, active, sort_bytes);
            active = Some(self.scan_with(Arc::clone(turn), project, collect).await?);
        }
        Ok(active)
    }

    /// Ranks identities, those with the most events first.
    fn rank(
        &self,
        cancelled: &AtomicBool,
        organization: OrganizationId,
        active: GroupTable,
        mut ranking: IdentityRanking,
    ) -> Result<Listed<TopIdentity>> {
        let mut some: Vec<(ActiveIdentity, u64)> = Vec::new();
        let add = |some: &mut Vec<(ActiveIdentity, u64)>, ranking: &mut IdentityRanking| {
            some.sort_unstable_by_key(|(_, events)| std::cmp::Reverse(*events));
            self.check_goes_on(cancelled)?;
            Handle::current().block_on(ranking.add(&self.questions.organization(organization), some))?;
            some.clear();
            Ok::<_, ScanError>(())
        };
        active.visit(cancelled, &mut |key, GroupFigures { count, .. }| {
            some.push((identity(key)?, count));
            if some.len() < ORDERED_TOGETHER { Ok(()) } else { add(&mut some, &mut ranking) }
        })?;
        add(&mut some, &mut ranking)?;
        check(cancelled)?;
        Ok(ranking.finish())
    }
}

/// Reads the key of an identity in a table.
pub(super) fn identity(key: &[u8]) -> Result<ActiveIdentity> {
    let key = key.try_into().map_err(|_| ScanError::Read("a key of another length".to_owned()))?;
    Ok(ActiveIdentity::from_bytes(key))
}

/// A number of events, as a table has it.
pub(super) fn counted(events: u64) -> GroupFigures {
    GroupFigures { count: events, ..GroupFigures::default() }
}

impl Scan<'_> {
    /// Adds the identified identities of the project that have an event in `window`, with the
    /// number of these events.
    fn collect_identities(&self, window: Window, active: Option<GroupTable>, sort_bytes: usize) -> Result<GroupTable> {
        let new = || GroupTable::new(self.scratch(), sort_bytes);
        let mut named = new();
        let read = |group: &SealedGroup<'_>| self.read_ids(window, group);
        self.tally(0, Some(window), &read, &mut NamedTally { scan: self, window, named: &mut named })?;
        let mut active = active.unwrap_or_else(new);
        // Files may have events of an erased identity for a while.
        let erased = self.scans.erasures.keys(self.project);
        let (mut ids, mut visitors) = (Vec::new(), Vec::new());
        named.visit(self.cancelled, &mut |key, GroupFigures { count, .. }| {
            let NamedId { key, is_visitor } = NamedId::from_bytes(key);
            if key.is_user() && erased.as_ref().is_none_or(|erased| !erased.contains(key)) {
                return Ok(active.add(&ActiveIdentity::user(key).to_bytes(), counted(count))?);
            }
            let asked = if is_visitor { &mut visitors } else { &mut ids };
            asked.push((key, count));
            if asked.len() < IDS_A_QUESTION {
                Ok(())
            } else {
                self.add_identified(std::mem::take(asked), is_visitor, &mut active)
            }
        })?;
        self.add_identified(ids, false, &mut active)?;
        self.add_identified(visitors, true, &mut active)?;
        Ok(active)
    }

    /// Adds the events of ids to those of the identities that they belong to.
    fn add_identified(&self, ids: Vec<(RecordKey, u64)>, are_visitors: bool, active: &mut GroupTable) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.check_goes_on()?;
        let query = IdentifiedQuery { ids: ids.iter().map(|(id, _)| *id).collect(), are_visitors };
        let identities = self.ask(query)?;
        for ((_, events), identity) in ids.into_iter().zip(identities) {
            identity.map_or(Ok(()), |identity| active.add(&identity.to_bytes(), counted(events)))?;
        }
        Ok(())
    }

    /// Returns the ids that events of a row group name, with the number of their events in
    /// `window`.
    fn read_ids(&self, window: Window, group: &SealedGroup<'_>) -> Result<HashMap<NamedId, u64>, TallyError> {
        let mut rows = group.counted()?;
        group.retain_days(&mut rows, window)?;
        let mut events = HashMap::new();
        if rows.is_empty() {
            return Ok(events);
        }
        let hasher = self.hasher();
        let (mut ids, visitors) = (GroupIds::read(group, hasher)?, group.visitors()?);
        rows.for_each(|row| {
            let sent = ids.named(row).map(|key| NamedId { key, is_visitor: false });
            let visitor = || Some(NamedId { key: hasher.visitor(visitors[row]?), is_visitor: true });
            sent.or_else(visitor).into_iter().for_each(|id| *events.entry(id).or_default() += 1);
        });
        Ok(events)
    }
}

/// The id that an event names: a user, an anonymous id, or a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct NamedId {
    key: RecordKey,
    is_visitor: bool,
}

impl NamedId {
    fn to_bytes(self) -> [u8; 1 + KEY] {
        let mut to = [self.is_visitor.into(); 1 + KEY];
        to[1..].copy_from_slice(&bytes(self.key));
        to
    }

    fn from_bytes(from: &[u8]) -> Self {
        let (kind, key) = from.split_at(from.len().min(1));
        Self { key: key_of(key), is_visitor: kind == [1] }
    }
}

/// Counts the events of each id.
struct NamedTally<'t, 's> {
    scan: &'t Scan<'s>,
    window: Window,
    named: &'t mut GroupTable,
}

impl Tally<HashMap<NamedId, u64>> for NamedTally<'_, '_> {
    fn group(&mut self, events: HashMap<NamedId, u64>) -> Result<()> {
        Ok(events.into_iter().try_for_each(|(id, events)| self.named.add(&id.to_bytes(), counted(events)))?)
    }

    fn event(&mut self, _: Position, event: &Event) -> Result<()> {
        let is_visitor = event.who.user_id.is_none() && event.who.anonymous_id.is_none();
        match SentKeys::of(&event.who, self.scan.hasher()).named() {
            Some(key) if self.window.contains(event.day) => {
                Ok(self.named.add(&NamedId { key, is_visitor }.to_bytes(), counted(1))?)
            }
            _ => Ok(()),
        }
    }
}
