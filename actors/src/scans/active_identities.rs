//! Who was active in projects that other nodes own.
//!
//! A node that is asked reads the events of all its projects of the organization, and lists the
//! identities. If they are too many for one answer, it is asked for some of them at a time, by
//! their keys, and reads the events anew each time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use headcount_common::nodes::{AskNodeError, MAX_PROJECTS};
use headcount_domain::aggregate::GroupFigures;
use headcount_domain::queries::ActiveIdentity;
use headcount_domain::{OrganizationId, ProjectId, Window};
use serde::{Deserialize, Serialize};

use super::error::{Result, check};
use super::group_table::GroupTable;
use super::shared::Scans;
use super::top_identities::{counted, identity};
use super::turns::ScanTurn;
use crate::shard::AskError;

/// The tag of an [`ActiveQuestion`].
pub(crate) const ACTIVE: u16 = 1001;
/// In how many parts a node may be asked to list identities.
const MAX_PARTS: u64 = 64;

/// Asks for the identified identities that were active in some projects.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ActiveQuestion {
    window: Window,
    /// Which of equal parts of all identities, from 0, and how many parts there are.
    part: u64,
    parts: u64,
}

/// Answers an [`ActiveQuestion`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ActiveAnswer {
    /// The identities with the number of their events.
    Identities(Vec<(ActiveIdentity, u64)>),
    /// How many there are, if these are too many for one answer.
    TooMany(u64),
}

impl ActiveQuestion {
    /// Whether an identity is in the part that is asked for. Keys are hashes.
    fn is_asked_for(self, key: &[u8]) -> bool {
        let hash = key.last_chunk().map_or(0, |last| u64::from_be_bytes(*last));
        hash % self.parts.max(1) == self.part
    }

    /// The same question for smaller parts, of about half as many identities as an answer may have,
    /// if the part has `count`.
    fn divided(self, count: u64, most: usize) -> Result<impl Iterator<Item = Self>, AskNodeError> {
        // Parts of few identities are far from equal.
        let times = count.div_ceil((most as u64 / 2).max(1)).max(2);
        let parts = self.parts.max(1).saturating_mul(times);
        match parts <= MAX_PARTS {
            true => Ok((self.part..parts).step_by(self.parts.max(1) as usize).map(move |part| Self { part, parts, ..self })),
            false => Err(AskNodeError::TooLarge),
        }
    }

    /// Lists the identities of the part.
    fn list(self, active: GroupTable, most: usize, cancelled: &AtomicBool) -> Result<ActiveAnswer> {
        let (mut listed, mut count) = (Vec::new(), 0);
        active.visit(cancelled, &mut |key, GroupFigures { count: events, .. }| {
            if self.is_asked_for(key) {
                count += 1;
                if listed.len() < most {
                    listed.push((identity(key)?, events));
                }
            }
            Ok(())
        })?;
        check(cancelled)?;
        Ok(if count > listed.len() as u64 { ActiveAnswer::TooMany(count) } else { ActiveAnswer::Identities(listed) })
    }
}

/// The projects that one node is asked about together.
#[derive(Debug, Clone, Copy)]
struct AskedNode<'n> {
    address: &'n Arc<str>,
    organization: OrganizationId,
    projects: &'n [ProjectId],
}

impl Scans {
    /// Lists for another node who was active in projects of this one.
    pub(crate) async fn active_here(
        &self,
        organization: OrganizationId,
        projects: Vec<ProjectId>,
        question: ActiveQuestion,
    ) -> Result<ActiveAnswer, AskError> {
        self.in_time(self.list_active(organization, projects, question)).await
    }

    async fn list_active(
        &self,
        organization: OrganizationId,
        projects: Vec<ProjectId>,
        question: ActiveQuestion,
    ) -> Result<ActiveAnswer, AskError> {
        let turn = Arc::new(self.node_turns.questions.take(Some(organization)).await?);
        let Some(active) = self.collect_active_here(&turn, projects, question.window).await? else {
            return Ok(ActiveAnswer::Identities(Vec::new()));
        };
        let most = self.max_active;
        self.run_scan(turn, move |_, cancelled, _| question.list(active, most, cancelled)).await
    }

    /// Returns who was active in projects of an organization, on whichever nodes they are, with the
    /// number of their events.
    pub(super) async fn collect_active(
        &self,
        turn: &Arc<ScanTurn>,
        organization: OrganizationId,
        projects: Vec<ProjectId>,
        window: Window,
    ) -> Result<Option<GroupTable>, AskError> {
        let places = self.questions.places(&projects).known()?;
        let of = |places: &[usize]| places.iter().map(|place| projects[*place]).collect::<Vec<_>>();
        let mut active = self.collect_active_here(turn, of(&places.here), window).await?;
        let there: BTreeMap<_, _> = places.there.iter().map(|(address, places)| (address, of(places))).collect();
        for (address, projects) in &there {
            for projects in projects.chunks(MAX_PROJECTS) {
                let node = AskedNode { address, organization, projects };
                active = self.collect_from(turn, node, window, active).await?;
            }
        }
        Ok(active)
    }

    /// Adds who was active in projects of one node.
    async fn collect_from(
        &self,
        turn: &Arc<ScanTurn>,
        node: AskedNode<'_>,
        window: Window,
        mut active: Option<GroupTable>,
    ) -> Result<Option<GroupTable>, AskError> {
        let mut wanted = vec![ActiveQuestion { window, part: 0, parts: 1 }];
        while let Some(question) = wanted.pop() {
            match self.ask_active(node, question).await? {
                ActiveAnswer::Identities(listed) => active = Some(self.add_listed(turn, listed, active).await?),
                ActiveAnswer::TooMany(count) => wanted.extend(question.divided(count, self.max_active)?),
            }
        }
        Ok(active)
    }

    async fn ask_active(&self, node: AskedNode<'_>, question: ActiveQuestion) -> Result<ActiveAnswer, AskError> {
        let AskedNode { address, organization, projects } = node;
        self.questions.ask_together((ACTIVE, &question), address, organization, projects.to_vec()).await
    }

    /// Adds identities to a table, which may write to the disk.
    async fn add_listed(
        &self,
        turn: &Arc<ScanTurn>,
        listed: Vec<(ActiveIdentity, u64)>,
        active: Option<GroupTable>,
    ) -> Result<GroupTable, AskError> {
        self.run_scan(Arc::clone(turn), move |scans, cancelled, sort_bytes| {
            check(cancelled)?;
            let mut active = active.unwrap_or_else(|| GroupTable::new(&scans.scratch, sort_bytes));
            listed.into_iter().try_for_each(|(identity, events)| active.add(&identity.to_bytes(), counted(events)))?;
            Ok(active)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use headcount_domain::{Day, RecordKey};

    use super::*;
    use headcount_common::{nodes::NodeRequest, nodes::decode_answer, nodes::encode_answer};

    /// Nodes of other versions read these bytes.
    #[test]
    fn the_bytes_of_active_identities_stay() {
        let question = ActiveQuestion { window: Window { start: Day(3), end: Day(4) }, part: 1, parts: 5 };
        let request = NodeRequest { organization: OrganizationId(1), projects: vec![ProjectId(2)], question };
        assert_eq!(request.encode(ACTIVE).unwrap(), [0xe9, 3, 1, 1, 1, 2, 6, 8, 1, 5]);
        let member = [&[1][..], &7_u64.to_be_bytes(), &9_u128.to_be_bytes()].concat();
        let listed = vec![(ActiveIdentity::user(RecordKey(8)), 300), (identity(&member).unwrap(), 2)];
        let bytes = encode_answer(ACTIVE, &ActiveAnswer::Identities(listed.clone())).unwrap();
        assert_eq!(bytes, [0xe9, 3, 1, 0, 2, 0, 8, 251, 44, 1, 1, 7, 9, 2]);
        let read = decode_answer::<ActiveAnswer>(ACTIVE, &bytes);
        assert!(matches!(read, Ok(ActiveAnswer::Identities(read)) if read == listed));
        assert_eq!(encode_answer(ACTIVE, &ActiveAnswer::TooMany(6)).unwrap(), [0xe9, 3, 1, 1, 6]);
    }

    #[test]
    fn each_identity_is_in_one_part() {
        let user = |number: u64| ActiveIdentity::user(RecordKey(u128::from(number))).to_bytes();
        let question = |part, parts| ActiveQuestion { window: Window { start: Day(0), end: Day(0) }, part, parts };
        for key in (0..100).map(user) {
            assert_eq!((0..7).filter(|part| question(*part, 7).is_asked_for(&key)).count(), 1);
            assert!(question(0, 1).is_asked_for(&key) && question(0, 0).is_asked_for(&key));
            // However it was divided.
            let smaller: Vec<_> = (0..7).flat_map(|part| question(part, 7).divided(9, 4).unwrap()).collect();
            assert_eq!(smaller.iter().filter(|question| question.is_asked_for(&key)).count(), 1);
        }
        let parts = |of: ActiveQuestion, count| of.divided(count, 4).map(Iterator::count);
        assert_eq!((parts(question(0, 1), 5), parts(question(0, 1), 13), parts(question(2, 5), 5)), (Ok(3), Ok(7), Ok(3)));
        assert_eq!((parts(question(0, 1), 128), parts(question(0, 1), 129)), (Ok(64), Err(AskNodeError::TooLarge)));
    }
}
