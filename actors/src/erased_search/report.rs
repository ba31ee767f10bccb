//! What a search found.

/// The most findings that a report lists.
const MAX_FINDINGS: usize = 1_000;

/// A place with something of an erased identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedFinding {
    /// The file, in the data directory, and the place in it.
    pub place: String,
    /// What it has. A text is named by its number.
    pub what: String,
}

/// What a search found, and what it read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasedSearch {
    /// The erasures whose ids were looked for.
    pub erasures: u64,
    /// Those of them that are not done: their events are somewhere still.
    pub unfinished: u64,
    /// The ids and e-mail addresses whose keyed hashes were looked for.
    pub ids: u64,
    /// The texts that were looked for.
    pub texts: u64,
    /// The files that were read byte by byte.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The events that were decoded.
    pub events: u64,
    /// The pairs of the store, and of bases in the archive, that were decoded.
    pub pairs: u64,
    /// What was found, at most 1,000 places.
    pub findings: Vec<ErasedFinding>,
    /// Whether there are more places.
    pub has_more: bool,
}

impl ErasedSearch {
    /// Whether nothing was found, and no erasure is under way.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.unfinished == 0
    }

    pub(crate) fn add(&mut self, place: String, what: String) {
        let finding = ErasedFinding { place, what };
        if self.findings.last() == Some(&finding) {
            return;
        }
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.has_more = true;
        }
    }
}
