//! The counts of a day, as they are stored.

use std::collections::BTreeMap;

use headcount_common::{DocumentsError, checked_json};
use headcount_domain::ProjectId;
use headcount_domain::intake::admission::DropReason;
use serde::{Deserialize, Serialize};

use crate::repair_counts::RepairCounts;

/// The version of the values.
pub(super) const VERSION: u8 = 1;
/// The number of processes whose last additions are known. Rarely more than two add to a day.
const MAX_WRITERS: usize = 16;

/// Events that were not recorded, or not as they were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DropCounts {
    /// The number of events whose `external_id` was known.
    pub duplicates: u64,
    /// The number of dropped events of bots.
    pub bot: u64,
    /// The number of events dropped for a privacy signal.
    pub consent: u64,
    /// The number of dropped events of erased identities.
    pub opted_out: u64,
    /// The number of dropped events whose day is below the floor.
    pub retention: u64,
    /// The number of refused invalid events.
    pub invalid: u64,
    /// The repairs of recorded events.
    #[serde(skip_serializing_if = "RepairCounts::is_empty")]
    pub repaired: RepairCounts,
}

impl DropCounts {
    /// Counts a dropped event.
    pub fn count(&mut self, reason: DropReason) {
        *match reason {
            DropReason::Bot => &mut self.bot,
            DropReason::Consent => &mut self.consent,
            DropReason::OptedOut => &mut self.opted_out,
            DropReason::Retention => &mut self.retention,
        } += 1;
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.duplicates += more.duplicates;
        self.bot += more.bot;
        self.consent += more.consent;
        self.opted_out += more.opted_out;
        self.retention += more.retention;
        self.invalid += more.invalid;
        self.repaired.add(&more.repaired);
    }
}

pub(super) type CountsResult<T> = Result<T, DocumentsError>;

/// The counts of one day, by project.
pub(super) type DayCounts = BTreeMap<ProjectId, DropCounts>;

/// Counts that a process adds to a day at once: the process, the number of its addition, and the
/// counts.
pub(super) type Addition = ((u64, u64), DayCounts);

/// The counts of a day, as they are stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StoredDay {
    pub(super) counts: DayCounts,
    /// Whether counts are missing, because those of all projects do not fit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_cut: bool,
    /// The last addition of each process, with the latest at the end.
    added: Vec<(u64, u64)>,
}

impl StoredDay {
    /// Whether an addition was made.
    pub(super) fn has(&self, addition: &Addition) -> bool {
        self.added.contains(&addition.0)
    }

    /// Makes an addition. If the counts of all projects do not fit into `max_bytes`, projects that
    /// the day does not have yet are left out. Returns the encoded day.
    pub(super) fn add(&mut self, (id, counts): &Addition, max_bytes: usize) -> CountsResult<Vec<u8>> {
        self.added.retain(|(writer, _)| *writer != id.0);
        self.added.push(*id);
        if self.added.len() > MAX_WRITERS {
            self.added.remove(0);
        }
        let former = self.counts.clone();
        counts.iter().for_each(|(project, counts)| self.counts.entry(*project).or_default().add(counts));
        let mut bytes = encode(self)?;
        if bytes.len() > max_bytes {
            self.is_cut = true;
            self.counts.retain(|project, _| former.contains_key(project));
            bytes = encode(self)?;
        }
        if bytes.len() > max_bytes {
            self.counts = former;
            bytes = encode(self)?;
        }
        Ok(bytes)
    }
}

/// Returns the bytes of a value.
pub(super) fn encode<T: Serialize>(content: &T) -> CountsResult<Vec<u8>> {
    checked_json::encode(VERSION, content).map_err(|error| DocumentsError::Unavailable(error.to_string()))
}
