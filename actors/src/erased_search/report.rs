//! The result of a search for erased identities.

/// The maximum number of findings in a report.
const MAX_FINDINGS: usize = 1_000;

/// A place with data of an erased identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedFinding {
    /// The file in the data directory, and the place in it.
    pub place: String,
    /// The data. A text is named by its number.
    pub what: String,
}

/// The findings of a search, and the data that it read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasedSearch {
    /// The number of erasures whose ids were searched for.
    pub erasures: u64,
    /// The number of these that are not done: their events still exist somewhere.
    pub unfinished: u64,
    /// The number of ids and e-mail addresses whose keyed hashes were searched for.
    pub ids: u64,
    /// The number of texts searched for.
    pub texts: u64,
    /// The number of files read byte by byte.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
    /// The number of decoded events.
    pub events: u64,
    /// The number of decoded pairs of the store, and of bases in the archive.
    pub pairs: u64,
    /// The findings, at most 1,000 places.
    pub findings: Vec<ErasedFinding>,
    /// Whether there are more places.
    pub has_more: bool,
}

impl ErasedSearch {
    /// Whether nothing was found, and no erasure is in progress.
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
