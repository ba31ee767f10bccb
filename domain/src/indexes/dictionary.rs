//! The dictionary of a project. It numbers every page, referrer, source, medium and campaign, so
//! that each text is stored once.

use serde::{Deserialize, Serialize};

use crate::cache::table::Table;
use crate::fault::Fault;
use crate::ids::{KeyHasher, RecordKey};
use crate::records::{Record, Source};

/// The number of a text, in the order of first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TermId(pub u32);

/// The number of a text.
impl Record for TermId {
    const SPACE: u8 = 10;
    const NAME: &'static str = "name_number";
    type Page = ();

    fn weight(&self) -> usize {
        size_of::<Self>()
    }
}

/// The text of a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermText(pub Box<str>);

impl Record for TermText {
    const SPACE: u8 = 11;
    const NAME: &'static str = "name_text";
    type Page = ();

    fn weight(&self) -> usize {
        size_of::<Self>() + self.0.len() + 16
    }
}

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermKind {
    /// A page.
    Page,
    /// A source, a medium, a campaign or a referrer.
    Source,
}

/// The number of texts in a dictionary, by the kind of their first use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermCounts {
    /// Pages.
    pub pages: u32,
    /// Sources, mediums, campaigns and referrers.
    pub sources: u32,
}

impl TermCounts {
    /// Returns the number of all texts, which is the number of the next text.
    fn all(self) -> Option<u32> {
        self.pages.checked_add(self.sources)
    }

    fn of(&mut self, kind: TermKind) -> &mut u32 {
        match kind {
            TermKind::Page => &mut self.pages,
            TermKind::Source => &mut self.sources,
        }
    }
}

/// The dictionary of a project.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// Numbers, by the keyed hash of their texts.
    pub ids: Table<TermId>,
    /// Texts, by their numbers.
    pub texts: Table<TermText>,
    /// The number of texts. Saved with the project.
    pub counts: TermCounts,
}

/// Returns the key of a number's text. The keys of consecutive numbers are scattered, as a hash
/// table requires.
fn text_key(id: TermId) -> RecordKey {
    RecordKey(u128::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

impl Dictionary {
    /// Returns the number of `text`, assigning one of the kind `kind` if it has none.
    ///
    /// # Errors
    /// A record could not be read, or all 4 billion numbers are in use.
    pub fn intern(&mut self, text: &str, kind: TermKind, hasher: &KeyHasher, source: &impl Source) -> Result<TermId, Fault> {
        let key = hasher.name(text);
        if let Some(id) = self.ids.get(key, || source.record(key))? {
            return Ok(*id);
        }
        let number = self.counts.all().filter(|number| *number < u32::MAX);
        let id = TermId(number.ok_or_else(|| Fault::defect("the dictionary is full"))?);
        *self.counts.of(kind) += 1;
        self.ids.insert(key, id);
        self.texts.insert(text_key(id), TermText(text.into()));
        Ok(id)
    }

    /// Returns the number of `text`, if it has one.
    ///
    /// # Errors
    /// A record could not be read.
    pub fn find(&mut self, text: &str, hasher: &KeyHasher, source: &impl Source) -> Result<Option<TermId>, Fault> {
        let key = hasher.name(text);
        Ok(self.ids.get(key, || source.record(key))?.copied())
    }

    /// Removes a text. Its number is never used again. Returns the places of its records, for the
    /// next checkpoint to delete.
    pub fn remove(&mut self, key: RecordKey, id: TermId) -> [(u8, RecordKey); 2] {
        self.ids.remove(key);
        self.texts.remove(text_key(id));
        [(TermId::SPACE, key), (TermText::SPACE, text_key(id))]
    }

    /// Returns the text of a number.
    ///
    /// # Errors
    /// A record could not be read, or is missing.
    pub fn text(&mut self, id: TermId, source: &impl Source) -> Result<&str, Fault> {
        let key = text_key(id);
        match self.texts.get(key, || source.record(key))? {
            Some(text) => Ok(&text.0),
            None => Err(Fault::damaged_store(format!("the dictionary has no number {}", id.0))),
        }
    }
}
