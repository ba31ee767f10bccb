//! The dictionary of a project: every page, referrer, source, medium and campaign has a small number, so that a text is
//! kept once however often it is counted.

use serde::{Deserialize, Serialize};

use crate::cache::table::Table;
use crate::fault::Fault;
use crate::ids::{KeyHasher, RecordKey};
use crate::records::{Record, Source};

/// The number of a text, in the order in which texts were first counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TermId(pub u32);

/// A number by its text.
impl Record for TermId {
    const SPACE: u8 = 10;
    const NAME: &'static str = "name_number";
    type Page = ();

    fn weight(&self) -> usize {
        size_of::<Self>()
    }
}

/// A text by its number.
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

/// What a text is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermKind {
    /// A page.
    Page,
    /// A source, a medium, a campaign or a referrer.
    Source,
}

/// How many texts a dictionary holds, by what each was first counted as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermCounts {
    /// Pages.
    pub pages: u32,
    /// Sources, mediums, campaigns and referrers.
    pub sources: u32,
}

impl TermCounts {
    /// How many there are: the number of the next text.
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

/// See the module.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// Numbers by the keyed hash of their texts.
    pub ids: Table<TermId>,
    /// Texts by their numbers.
    pub texts: Table<TermText>,
    /// How many texts have one. Saved with the project.
    pub counts: TermCounts,
}

/// The key of a number's text. Consecutive numbers lie far apart, as keys of a hash table should.
fn text_key(id: TermId) -> RecordKey {
    RecordKey(u128::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

impl Dictionary {
    /// The number of `text`, which gets one if it has none, and is counted as `kind` then.
    ///
    /// # Errors
    /// A record could not be read back, or all 4 billion numbers are taken.
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

    /// The number of `text`, if it has one.
    ///
    /// # Errors
    /// A record could not be read back.
    pub fn find(&mut self, text: &str, hasher: &KeyHasher, source: &impl Source) -> Result<Option<TermId>, Fault> {
        let key = hasher.name(text);
        Ok(self.ids.get(key, || source.record(key))?.copied())
    }

    /// The text of a number.
    ///
    /// # Errors
    /// A record could not be read back, or is missing.
    pub fn text(&mut self, id: TermId, source: &impl Source) -> Result<&str, Fault> {
        let key = text_key(id);
        match self.texts.get(key, || source.record(key))? {
            Some(text) => Ok(&text.0),
            None => Err(Fault::damaged_store(format!("the dictionary has no number {}", id.0))),
        }
    }
}
