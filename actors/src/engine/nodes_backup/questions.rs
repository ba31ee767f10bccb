//! The questions of a backup to the owner of a partition, which may be the same machine.

use std::time::Duration;

use headcount_common::Owner;
use headcount_common::nodes::{AskNodeError, NodeRequest, encode_answer};
use headcount_domain::{OrganizationId, Position, ProjectId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::engine::handle::Engine;
use crate::shard::AskError;

/// The tags of the questions.
const END: u16 = 1040;
const EVENTS: u16 = 1041;
const LIST: u16 = 1042;
const HOLD: u16 = 1043;
/// The time limit of an answer. The owner may have to fetch files first.
const ANSWERED_WITHIN: Duration = Duration::from_secs(40);

/// Asks for the end of a partition. All events acknowledged before are at or before that end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PartitionEndQuestion {
    pub(super) partition: u16,
    /// The record of the control log that the owner must have applied.
    pub(super) applied: u64,
}

/// Answers a [`PartitionEndQuestion`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartitionEnd {
    pub(super) last: Position,
    /// The projects some of whose events may have been removed.
    pub(super) with_bases: Vec<ProjectId>,
}

/// Asks for events of a partition, or of one of its projects, between two positions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PartitionEventsQuestion {
    pub(super) partition: u16,
    /// The record of the control log that the owner must have applied. Events that it erases are
    /// not in the answer.
    pub(super) applied: u64,
    pub(super) project: Option<ProjectId>,
    pub(super) after: Position,
    pub(super) until: Position,
}

/// Answers a [`PartitionEventsQuestion`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PartitionEvents {
    /// Events and floors, in order.
    Found {
        records: Vec<PartitionRecord>,
        /// There are no others up to this position.
        reached: Position,
    },
    /// For a whole partition: the next events are sealed, each project's in its own files.
    Sealed {
        /// They are sealed up to this position.
        until: Position,
        /// Their projects.
        projects: Vec<ProjectId>,
    },
}

/// Events of one project, or a floor.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartitionRecord {
    pub(super) project: ProjectId,
    /// The positions of the events.
    pub(super) positions: Vec<Position>,
    /// The record in the format of the log.
    pub(super) payload: Vec<u8>,
}

/// Asks for the list of a project's files, once all events up to a position are sealed, or all that
/// exist.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SealedListQuestion {
    pub(super) partition: u16,
    /// The record of the control log that the owner must have applied.
    pub(super) applied: u64,
    pub(super) project: ProjectId,
    pub(super) until: Position,
}

/// Answers a [`SealedListQuestion`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SealedList {
    /// Some events are not sealed yet, or other nodes can't read all of them.
    NotYet,
    /// The project has no events up to this position. All events recorded before the question are
    /// at or before it.
    Nothing { until: Position },
    Files {
        /// The files have all events of the project up to this position. All events recorded before
        /// the question, and any base, are at or before it.
        until: Position,
        /// The position of the last event in them.
        last: Position,
        /// The list, in the format of its file.
        list: Vec<u8>,
    },
}

/// Makes the owner of a partition hold first bases back for a while.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HoldQuestion {
    pub(super) partition: u16,
}

/// A question to the owner of a partition.
pub(super) trait AboutPartition: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The tag of the question.
    const TAG: u16;
    type Answer: Serialize + DeserializeOwned + Send + 'static;

    fn partition(&self) -> u16;

    /// Answers the question for a partition on this machine.
    fn answer(self, engine: &Engine) -> impl Future<Output = Result<Self::Answer, AskError>> + Send;
}

/// Declares questions: their tags, their answers, and the functions of the engine that answer them.
macro_rules! questions {
    ($($question:ident, $tag:ident => $answer:ty, $function:ident;)*) => {
        $(impl AboutPartition for $question {
            const TAG: u16 = $tag;
            type Answer = $answer;

            fn partition(&self) -> u16 {
                self.partition
            }

            async fn answer(self, engine: &Engine) -> Result<$answer, AskError> {
                engine.$function(self).await
            }
        })*

        impl Engine {
            /// Answers a question of a backup on another node. Returns `None` if the tag belongs to
            /// another question.
            pub(in crate::engine) async fn answer_about_partition(
                &self,
                tag: u16,
                request: &[u8],
            ) -> Option<Result<Vec<u8>, AskNodeError>> {
                match tag {
                    $($tag => Some(self.answer_for_backup::<$question>(request).await),)*
                    _ => None,
                }
            }
        }
    };
}

questions! {
    PartitionEndQuestion, END => PartitionEnd, partition_end;
    PartitionEventsQuestion, EVENTS => PartitionEvents, partition_events;
    SealedListQuestion, LIST => SealedList, sealed_list;
    HoldQuestion, HOLD => (), hold_first_bases;
}

impl Engine {
    /// Asks the owner of a partition.
    pub(super) async fn ask_about_partition<Q: AboutPartition>(&self, question: Q) -> Result<Q::Answer, AskError> {
        match self.owners().of(question.partition()) {
            Owner::Here => Ok(self.answer_of_partition(question).await?),
            Owner::There(address) => {
                // This request covers all organizations.
                let node = self.node(&address, OrganizationId(0))?;
                Ok(node.ask(Q::TAG, Vec::new(), &question, ANSWERED_WITHIN).await?)
            }
            Owner::Nowhere => Err(AskError::NoOwner),
        }
    }

    /// Answers for a partition that must stay on this machine until the end.
    async fn answer_of_partition<Q: AboutPartition>(&self, question: Q) -> Result<Q::Answer, AskNodeError> {
        let partition = question.partition();
        if !self.owners().is_here(partition) {
            return Err(AskNodeError::NotHere);
        }
        let answer = tokio::time::timeout(ANSWERED_WITHIN, question.answer(self)).await;
        // The answer may come from data left after the partition was given up.
        match self.owners().is_here(partition) {
            true => Ok(answer.unwrap_or(Err(AskError::TimedOut(ANSWERED_WITHIN)))?),
            false => Err(AskNodeError::NotHere),
        }
    }

    async fn answer_for_backup<Q: AboutPartition>(&self, request: &[u8]) -> Result<Vec<u8>, AskNodeError> {
        let question = NodeRequest::<Q>::decode(request)?.question;
        encode_answer(Q::TAG, &self.answer_of_partition(question).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_common::nodes::decode_answer;

    fn request<Q: AboutPartition>(question: Q) -> Vec<u8> {
        NodeRequest { organization: OrganizationId(0), projects: Vec::new(), question }.encode(Q::TAG).unwrap()
    }

    /// Nodes of other program versions read these bytes.
    #[test]
    fn the_bytes_of_questions_about_partitions_stay() {
        assert_eq!(request(PartitionEndQuestion { partition: 5, applied: 7 }), [16, 4, 1, 0, 0, 5, 7]);
        let end = PartitionEnd { last: 300, with_bases: vec![ProjectId(2)] };
        assert_eq!(encode_answer(END, &end).unwrap(), [16, 4, 1, 251, 44, 1, 1, 2]);
        let question = |project| PartitionEventsQuestion { partition: 5, applied: 7, project, after: 3, until: 4 };
        assert_eq!(request(question(None)), [17, 4, 1, 0, 0, 5, 7, 0, 3, 4]);
        assert_eq!(request(question(Some(ProjectId(2)))), [17, 4, 1, 0, 0, 5, 7, 1, 2, 3, 4]);
        let record = PartitionRecord { project: ProjectId(2), positions: vec![3, 4], payload: vec![250, 9] };
        let answers = [
            (PartitionEvents::Found { records: vec![record], reached: 4 }, &[17, 4, 1, 0, 1, 2, 2, 3, 4, 2, 250, 9, 4][..]),
            (PartitionEvents::Sealed { until: 9, projects: vec![ProjectId(2)] }, &[17, 4, 1, 1, 9, 1, 2]),
        ];
        for (answer, bytes) in answers {
            assert_eq!(encode_answer(EVENTS, &answer).unwrap(), bytes);
            assert_eq!(decode_answer::<PartitionEvents>(EVENTS, bytes).unwrap(), answer);
        }
        assert_eq!(request(HoldQuestion { partition: 5 }), [19, 4, 1, 0, 0, 5]);
        assert_eq!(encode_answer(HOLD, &()).unwrap(), [19, 4, 1]);
        let question = SealedListQuestion { partition: 5, applied: 7, project: ProjectId(2), until: 4 };
        assert_eq!(request(question), [18, 4, 1, 0, 0, 5, 7, 2, 4]);
        let answers = [
            (SealedList::NotYet, &[18, 4, 1, 0][..]),
            (SealedList::Nothing { until: 9 }, &[18, 4, 1, 1, 9]),
            (SealedList::Files { until: 9, last: 8, list: vec![250, 9] }, &[18, 4, 1, 2, 9, 8, 2, 250, 9]),
        ];
        for (answer, bytes) in answers {
            assert_eq!(encode_answer(LIST, &answer).unwrap(), bytes);
            assert_eq!(decode_answer::<SealedList>(LIST, bytes).unwrap(), answer);
        }
    }
}
