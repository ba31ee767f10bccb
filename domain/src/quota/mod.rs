//! Quotas: the maximum number of distinct items of each kind in a project, and the check whether an
//! event would add one.

#[cfg(test)]
mod tests;

use compact_str::CompactString;

use crate::acquisition::Acquisition;
use crate::company::AccountSlot;
use crate::facts::Moment;
use crate::fault::Fault;
use crate::identity::{Identity, IdentitySlot, SentKeys};
use crate::ids::{KeyHasher, RecordKey};
use crate::intake::event::Event;
use crate::project::{Cardinality, Project};
use crate::records::Source;
use crate::text;

/// A kind of item with a limited number in each project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quota {
    /// Groups of all types but `company`.
    Groups,
    /// Companies.
    Companies,
    /// Sources, mediums, campaigns and referrers.
    Sources,
    /// Pages.
    Pages,
}

impl Quota {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Groups, Self::Companies, Self::Sources, Self::Pages];

    /// The kind's name in errors and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Groups => "groups",
            Self::Companies => "companies",
            Self::Sources => "sources",
            Self::Pages => "pages",
        }
    }
}

/// The maximum number of distinct items of each kind over the lifetime of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Groups of all types but `company`.
    pub groups: usize,
    /// Companies; a company with several keys counts once for each.
    pub companies: usize,
    /// Sources, mediums, campaigns and referrers, together.
    pub sources: usize,
    /// Pages.
    pub pages: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self { groups: 1_000_000, companies: 1_000_000, sources: 100_000, pages: 1_000_000 }
    }
}

impl Quotas {
    /// No limits.
    pub const UNLIMITED: Self = Self { groups: usize::MAX, companies: usize::MAX, sources: usize::MAX, pages: usize::MAX };

    /// The limit of one kind.
    pub fn limit(&self, quota: Quota) -> usize {
        match quota {
            Quota::Groups => self.groups,
            Quota::Companies => self.companies,
            Quota::Sources => self.sources,
            Quota::Pages => self.pages,
        }
    }

    /// Returns the kinds whose quota the project has reached.
    pub fn reached(&self, has: Cardinality) -> Reached {
        let count = |quota| match quota {
            Quota::Groups => has.groups,
            Quota::Companies => has.companies,
            Quota::Sources => has.sources,
            Quota::Pages => has.pages,
        };
        let bit = |quota: Quota| if count(quota) >= self.limit(quota) { Reached::bit(quota) } else { 0 };
        Reached(Quota::ALL.into_iter().map(bit).sum())
    }
}

/// The kinds whose quota a project has reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached(u8);

impl Reached {
    fn bit(quota: Quota) -> u8 {
        1 << quota as u8
    }

    /// Whether no quota is reached.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the quota of this kind is reached.
    pub fn has(self, quota: Quota) -> bool {
        self.0 & Self::bit(quota) != 0
    }
}

/// The keys in an event whose kinds have reached their quotas. It owns its data, so it can be sent
/// to the thread with the project's state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions {
    things: Vec<Thing>,
    who: SentKeys,
    at: Option<Moment>,
    has_page: bool,
}

/// An item that an event mentions, and the condition under which it creates a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    /// A group or company that the event names directly.
    Group(Quota, RecordKey),
    /// The domain that a `group` event reports for a company. Ignored if the company has a domain.
    Domain { company: RecordKey, domain: RecordKey },
    /// The company of an e-mail address. Created only for an identity without a company.
    EmailCompany(RecordKey),
    /// A page or a referrer.
    Name(Quota, RecordKey),
    /// The medium or campaign of an event without a source. An event that extends the last session
    /// adds none.
    Touch(RecordKey),
}

impl Mentions {
    /// Collects the items in `event` of the kinds in `reached`.
    pub fn of(event: &Event, reached: Reached, hasher: &KeyHasher) -> Self {
        let at = Some(Moment { time: event.time, position: u64::MAX });
        let mut mentions = Self { things: Vec::new(), who: SentKeys::default(), at, has_page: event.has_page() };
        mentions.add_groups(event, reached, hasher);
        mentions.who = SentKeys::of(&event.who, hasher);
        let is_identity = mentions.who != SentKeys::default();
        if is_identity {
            mentions.add_personal(event, reached, hasher);
        }
        mentions
    }

    /// Whether the event mentions no item of these kinds.
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    fn add_groups(&mut self, event: &Event, reached: Reached, hasher: &KeyHasher) {
        let details = &event.details;
        match (&event.company, &details.group_type, &details.group_id) {
            (Some(company), ..) if reached.has(Quota::Companies) => {
                let key = hasher.company(company.as_str());
                self.things.push(Thing::Group(Quota::Companies, key));
                let domain = event.company_domain.as_ref().filter(|_| &*event.name == "group" && !company.is_domain());
                self.things.extend(domain.map(|domain| Thing::Domain { company: key, domain: hasher.company(domain.as_str()) }));
            }
            (None, Some(kind), Some(id)) if **kind != *crate::ids::COMPANY_TYPE && reached.has(Quota::Groups) => {
                self.things.push(Thing::Group(Quota::Groups, hasher.group(kind, id)));
            }
            _ => {}
        }
    }

    /// Adds the items that only count for events with an identity.
    fn add_personal(&mut self, event: &Event, reached: Reached, hasher: &KeyHasher) {
        let details = &event.details;
        if reached.has(Quota::Companies) && event.company.is_none() {
            self.things.extend(event.email_company.as_ref().map(|company| Thing::EmailCompany(hasher.company(company.as_str()))));
        }
        if reached.has(Quota::Pages) && event.is_pageview() {
            let page = details.url.as_deref().map(text::page);
            self.things.extend(page.map(|page| Thing::Name(Quota::Pages, hasher.name(page))));
        }
        if reached.has(Quota::Sources) {
            let host = details.referrer_host.as_deref();
            self.things.extend(host.map(|host| Thing::Name(Quota::Sources, hasher.name(host))));
            let acquisition = details.acquisition.as_ref();
            if let Some(acquisition) = acquisition.filter(|acquisition| !acquisition.is_unknown()) {
                let Acquisition { source, medium, campaign, .. } = acquisition;
                let name = |text: &CompactString| Thing::Name(Quota::Sources, hasher.name(text));
                match acquisition.is_direct() {
                    false => self.things.extend([source, medium, campaign].map(name)),
                    true if event.interactive => {
                        self.things.extend([medium, campaign].map(|text| Thing::Touch(hasher.name(text))))
                    }
                    true => {}
                }
            }
        }
    }
}

impl Project {
    /// Returns the first kind to which an event with these mentions would add an item.
    ///
    /// # Errors
    /// [`Fault`] if a record could not be read.
    pub fn would_exceed<S: Source>(&mut self, mentions: &Mentions, source: &S) -> Result<Option<Quota>, Fault> {
        for thing in &mentions.things {
            let (quota, is_new) = match *thing {
                Thing::Group(quota, key) => (quota, self.is_new_group(key, source)?),
                Thing::Domain { company, domain } => {
                    let is_linked = matches!(self.accounts.get(company, || source.record(company))?, Some(AccountSlot::Alias(_)));
                    (Quota::Companies, !is_linked && self.is_new_group(domain, source)?)
                }
                Thing::EmailCompany(key) => {
                    (Quota::Companies, self.is_new_group(key, source)? && !self.has_company(mentions.who, source)?)
                }
                Thing::Name(quota, key) => (quota, self.is_new_name(key, source)?),
                Thing::Touch(key) => (Quota::Sources, self.is_new_name(key, source)? && !self.goes_on(mentions, source)?),
            };
            if is_new {
                return Ok(Some(quota));
            }
        }
        Ok(None)
    }

    fn is_new_group<S: Source>(&mut self, key: RecordKey, source: &S) -> Result<bool, Fault> {
        Ok(self.groups.get(key, || source.record(key))?.is_none())
    }

    fn is_new_name<S: Source>(&mut self, key: RecordKey, source: &S) -> Result<bool, Fault> {
        Ok(self.dictionary.ids.get(key, || source.record(key))?.is_none())
    }

    fn identity<S: Source>(&mut self, key: RecordKey, source: &S) -> Result<Option<&Identity>, Fault> {
        Ok(match self.people.get(key, || source.record(key))? {
            Some(IdentitySlot::Canonical(identity)) => Some(identity),
            _ => None,
        })
    }

    /// Whether an event with these ids would belong to an identity with a company.
    fn has_company<S: Source>(&mut self, who: SentKeys, source: &S) -> Result<bool, Fault> {
        let mut keys = [who.user, who.other];
        if let (None, Some(other)) = (who.user, who.other) {
            keys = [Some(self.resolve(other, source)?), None];
        }
        // An anonymous id without a user contributes its own company; a linked one contributes
        // none.
        for key in keys.into_iter().flatten() {
            if self.identity(key, source)?.is_some_and(|identity| identity.company.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the event extends the last session of its identity. Returns `false` for an event
    /// that merges two histories, since it counts as the start of a session.
    fn goes_on<S: Source>(&mut self, mentions: &Mentions, source: &S) -> Result<bool, Fault> {
        let SentKeys { user, other } = mentions.who;
        let key = match (user, other) {
            (Some(_), Some(other)) if self.identity(other, source)?.is_some() => return Ok(false),
            (Some(user), _) => user,
            (None, Some(other)) => self.resolve(other, source)?,
            (None, None) => return Ok(false),
        };
        let Some(at) = mentions.at else { return Ok(false) };
        let extends = |identity: &Identity| identity.facts.extends_last_session(at, false, mentions.has_page);
        Ok(self.identity(key, source)?.is_some_and(extends))
    }
}
