//! The inputs of attribution, for computing it from events: companies of identities, links of
//! companies, and touches of days whose events may be gone.

use serde::{Deserialize, Serialize};

use crate::company::AccountSlot;
use crate::facts::{Facts, Touch};
use crate::fault::Fault;
use crate::identity::{Association, IdentitySlot};
use crate::ids::RecordKey;
use crate::indexes::CompanyLink;
use crate::queries::answers::EntityLevel;
use crate::queries::partial::{Query, Reader};
use crate::records::{Source, page_key};
use crate::time::Instant;

/// Asks for the companies of identities.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AssociationsQuery {
    /// The keys of the identities.
    pub identities: Vec<RecordKey>,
}

impl Query for AssociationsQuery {
    /// In the order of the identities: the first recorded association, if any.
    type Partial = Vec<Option<Association>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let source = reader.source;
        let mut company = |key: &RecordKey| {
            let key = reader.project.resolve(*key, source)?;
            Ok(match reader.project.people.get(key, || source.record(key))? {
                Some(IdentitySlot::Canonical(identity)) => identity.company,
                _ => None,
            })
        };
        self.identities.iter().map(&mut company).collect()
    }
}

/// Asks for the domains that companies are linked to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompanyLinksQuery {
    /// The keys of the companies, as they were reported.
    pub companies: Vec<RecordKey>,
}

impl Query for CompanyLinksQuery {
    /// In the order of the companies: the link, if any.
    type Partial = Vec<Option<CompanyLink>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let links = &reader.project.rollups.company_links;
        Ok(self.companies.iter().map(|company| links.of(*company)).collect())
    }
}

/// Asks for the touches of entities before an instant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EarlierTouchesQuery {
    /// The keys of the entities, each with its level: `Account` for a company.
    pub entities: Vec<(RecordKey, EntityLevel)>,
    /// The instant.
    pub before: Instant,
}

/// The texts of a touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTouch {
    /// The source.
    pub source: String,
    /// The medium.
    pub medium: String,
    /// The campaign.
    pub campaign: String,
}

/// The touches of an entity before an instant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierTouches {
    /// The first one.
    pub first: Option<NamedTouch>,
    /// The last one.
    pub last: Option<NamedTouch>,
}

impl Query for EarlierTouchesQuery {
    /// In the order of the entities.
    type Partial = Vec<EarlierTouches>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        self.entities.iter().map(|(key, level)| reader.earlier_touches(*key, *level, self.before)).collect()
    }
}

impl<S: Source> Reader<'_, S> {
    fn earlier_touches(&mut self, key: RecordKey, level: EntityLevel, before: Instant) -> Result<EarlierTouches, Fault> {
        let source = self.source;
        let last = Instant(before.0.saturating_sub(1));
        let ends = |facts: &Facts| {
            let first = facts.first_touch().filter(|first| first.at.time < before);
            [first.map(|first| first.touch), facts.touch_at(last)]
        };
        let ends = match level {
            EntityLevel::Identity => {
                let key = self.project.resolve(key, source)?;
                match self.project.people.get_to_load(key, || source.record(key))? {
                    Some(IdentitySlot::Canonical(identity)) => {
                        let member = identity.history_key;
                        identity.facts.load_touch_at(last, |serial| source.page::<IdentitySlot>(page_key(member, serial)))?;
                        ends(&identity.facts)
                    }
                    _ => [None; 2],
                }
            }
            EntityLevel::Account => match self.project.accounts.get_to_load(key, || source.record(key))? {
                Some(AccountSlot::Canonical(account)) => {
                    account.facts.load_touch_at(last, |serial| source.page::<AccountSlot>(page_key(key, serial)))?;
                    ends(&account.facts)
                }
                _ => [None; 2],
            },
        };
        let [first, last] = ends.map(|touch| touch.map(|touch| self.named_touch(touch)).transpose());
        Ok(EarlierTouches { first: first?, last: last? })
    }

    fn named_touch(&mut self, touch: Touch) -> Result<NamedTouch, Fault> {
        let source = self.source;
        let mut text = |term| self.project.dictionary.text(term, source).map(str::to_owned);
        Ok(NamedTouch { source: text(touch.source)?, medium: text(touch.medium)?, campaign: text(touch.campaign)? })
    }
}
