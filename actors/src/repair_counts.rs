//! Counts of repairs of events, by the code of the warning.

use std::collections::BTreeMap;

use headcount_domain::intake::warning::{Warning, WarningCode};
use serde::{Deserialize, Serialize};

/// The counts of repairs. Files have them by code; unknown codes are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct RepairCounts([u64; WarningCode::ALL.len()]);

impl RepairCounts {
    /// Counts warnings.
    pub(crate) fn of(warnings: &[Warning]) -> Self {
        let mut counts = Self::default();
        warnings.iter().for_each(|warning| counts.0[warning.code as usize] += 1);
        counts
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.0.iter_mut().zip(more.0).for_each(|(count, more)| *count += more);
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the codes that occurred, with their counts.
    pub fn by_code(&self) -> BTreeMap<&'static str, u64> {
        let counts = WarningCode::ALL.iter().map(|code| (code.as_str(), self.0[*code as usize]));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

impl From<RepairCounts> for BTreeMap<String, u64> {
    fn from(counts: RepairCounts) -> Self {
        counts.by_code().into_iter().map(|(code, count)| (code.to_owned(), count)).collect()
    }
}

impl From<BTreeMap<String, u64>> for RepairCounts {
    fn from(by_code: BTreeMap<String, u64>) -> Self {
        let mut counts = Self::default();
        let known = by_code.into_iter().filter_map(|(code, count)| Some((code.parse::<WarningCode>().ok()?, count)));
        known.for_each(|(code, count)| counts.0[code as usize] += count);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_codes_that_occurred() {
        let counts: RepairCounts = serde_json::from_str(r#"{"value_ignored":3,"clamped":1,"of_later":9}"#).unwrap();
        assert_eq!(serde_json::to_string(&counts).unwrap(), r#"{"clamped":1,"value_ignored":3}"#);
        assert!(RepairCounts::default().is_empty() && !counts.is_empty());
    }
}
