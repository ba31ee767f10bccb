//! The one way in: an event is folded into the facts of whom it is of, and every rollup follows.

use serde::{Deserialize, Serialize};

use crate::company::CompanyKey;
use crate::event::Event;
use crate::facts::{Change, Facts, Span, Sums};
use crate::ids::{KeyHasher, RawId, RecordKey};
use crate::rollup::{Level, Sign};
use crate::rollups::Rollups;
use crate::table::{Fault, Table};
use crate::time::Day;

/// The place of an event in the order in which events were recorded.
pub type Position = u64;

/// Where records that are not in memory come from.
pub trait Source {
    /// The saved record of an identity.
    ///
    /// # Errors
    /// The store could not be read.
    fn person(&self, key: RecordKey) -> Result<Option<Person>, Fault>;

    /// The saved record of a company.
    ///
    /// # Errors
    /// The store could not be read.
    fn account(&self, key: RecordKey) -> Result<Option<AccountSlot>, Fault>;
}

/// A source that has nothing: for a project that was never saved.
#[derive(Debug, Clone, Copy)]
pub struct NoSource;

impl Source for NoSource {
    fn person(&self, _: RecordKey) -> Result<Option<Person>, Fault> {
        Ok(None)
    }

    fn account(&self, _: RecordKey) -> Result<Option<AccountSlot>, Fault> {
        Ok(None)
    }
}

/// What a raw id stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Person {
    /// An identity of its own.
    Identity(Box<Identity>),
    /// An anonymous id that was linked to this user; for ever.
    Linked(RecordKey),
}

/// The record of one identity in one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its canonical id.
    pub id: RawId,
    /// Its company: the first association that was recorded.
    pub company: Option<Association>,
    /// What is known of it.
    pub facts: Facts,
}

/// An identity's company, and when that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Association {
    /// The position of the event that told it.
    pub since: Position,
    /// The company, as it was told (which may be linked to a domain).
    pub company: RecordKey,
}

/// What a company key stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountSlot {
    /// A company of its own.
    Account(Box<Account>),
    /// A company that was told its domain; for ever.
    Linked(RecordKey),
}

/// The record of one company in one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its key: a domain where there is one.
    pub key: CompanyKey,
    /// The sum of what identities (and nobody) contribute to it.
    pub facts: Facts,
}

/// The state of one project: a function of its recorded events, and of nothing else.
#[derive(Debug, Default)]
pub struct Project {
    /// Identities and linked anonymous ids.
    pub people: Table<Person>,
    /// Companies.
    pub accounts: Table<AccountSlot>,
    /// The maintained figures.
    pub rollups: Rollups,
}

impl Project {
    /// Folds one recorded event. It must come once, in the order of `position`, and be no duplicate.
    ///
    /// # Errors
    /// A record could not be read back: the state is to be dropped and rebuilt.
    pub fn apply(&mut self, event: &Event, position: Position, hasher: &KeyHasher, source: &dyn Source) -> Result<(), Fault> {
        let mut fold = Fold { project: self, position, hasher, source };
        let person = fold.subject(event)?;
        let company = match &event.company {
            Some(key) => Some(fold.company(key)?),
            None => None,
        };
        if let (Some(company), Some(domain)) = (company, &event.company_domain) {
            fold.link_company(company, domain)?;
        }
        fold.record(event, person, company)
    }

    /// The key of the identity that `id` belongs to, whether or not an event of it was ever recorded.
    ///
    /// # Errors
    /// A record could not be read back.
    pub fn resolve(&mut self, key: RecordKey, source: &dyn Source) -> Result<RecordKey, Fault> {
        Ok(match self.people.get(key, || source.person(key))? {
            Some(Person::Linked(user)) => *user,
            _ => key,
        })
    }
}

struct Fold<'a> {
    project: &'a mut Project,
    position: Position,
    hasher: &'a KeyHasher,
    source: &'a dyn Source,
}

impl Fold<'_> {
    /// Whose event it is. Links the anonymous id on the way, if this is its first link.
    fn subject(&mut self, event: &Event) -> Result<RecordKey, Fault> {
        let who = &event.who;
        match (&who.user_id, &who.anonymous_id, who.visitor) {
            (Some(user), None, _) => {
                let key = self.hasher.user(user);
                self.ensure_person(key, || RawId::User(user.clone()))?;
                Ok(key)
            }
            (Some(user), Some(anonymous), _) => {
                let key = self.hasher.user(user);
                self.ensure_person(key, || RawId::User(user.clone()))?;
                self.link(self.hasher.anonymous(anonymous), key)?;
                Ok(key)
            }
            (None, Some(anonymous), _) => {
                let key = self.hasher.anonymous(anonymous);
                let key = self.project.resolve(key, self.source)?;
                self.ensure_person(key, || RawId::Anonymous(anonymous.clone()))?;
                Ok(key)
            }
            (None, None, visitor) => {
                let id = visitor.map_or(RawId::Nobody, RawId::Visitor);
                let key = self.hasher.identity(&id);
                self.ensure_person(key, || id)?;
                Ok(key)
            }
        }
    }

    fn ensure_person(&mut self, key: RecordKey, id: impl FnOnce() -> RawId) -> Result<(), Fault> {
        let source = self.source;
        if self.project.people.get(key, || source.person(key))?.is_none() {
            let identity = Identity { id: id(), company: None, facts: Facts::default() };
            self.project.people.insert(key, Person::Identity(Box::new(identity)));
        }
        Ok(())
    }

    /// The key of a company, whose record exists from here on.
    fn company(&mut self, company: &CompanyKey) -> Result<RecordKey, Fault> {
        let (key, source) = (self.hasher.company(company.as_str()), self.source);
        if self.project.accounts.get(key, || source.account(key))?.is_none() {
            let account = Account { key: company.clone(), facts: Facts::default() };
            self.project.accounts.insert(key, AccountSlot::Account(Box::new(account)));
        }
        Ok(key)
    }

    /// Gives the whole history of an anonymous id to a user, unless it has been linked before.
    fn link(&mut self, anonymous: RecordKey, user: RecordKey) -> Result<(), Fault> {
        let source = self.source;
        let former = match self.project.people.get(anonymous, || source.person(anonymous))? {
            Some(Person::Linked(_)) => return Ok(()),
            Some(Person::Identity(_)) => self.take_identity(anonymous)?,
            None => None,
        };
        self.project.people.insert(anonymous, Person::Linked(user));
        if let Some(former) = former
            && let Some(user_identity) = self.take_identity(user)?
        {
            let merged = self.merge(user_identity, former)?;
            self.put_identity(user, merged)?;
        }
        Ok(())
    }

    /// Both histories as one. Costs what the smaller side holds, unless the larger one's company changes.
    fn merge(&mut self, user: Identity, other: Identity) -> Result<Identity, Fault> {
        let id = user.id.clone();
        let (mut base, small) = if other.facts.len() > user.facts.len() { (other, user) } else { (user, other) };
        self.contribute(&small, Sign::Minus)?;
        let company = base.company.into_iter().chain(small.company).min();
        if company.map(|a| a.company) == base.company.map(|a| a.company) {
            base.company = company;
        } else {
            self.contribute(&base, Sign::Minus)?;
            base.company = company;
            self.contribute(&base, Sign::Plus)?;
        }
        base.id = id;
        for (day, company, sums) in small.facts.entries() {
            self.deposit(&mut base, day, company, sums)?;
        }
        Ok(base)
    }

    /// Adds the event itself, and the association that it may tell.
    fn record(&mut self, event: &Event, person: RecordKey, explicit: Option<RecordKey>) -> Result<(), Fault> {
        let Some(mut identity) = self.take_identity(person)? else { return Ok(()) };
        if identity.company.is_none() && identity.id != RawId::Nobody {
            let told = match (explicit, &event.email_company) {
                (Some(company), _) => Some(company),
                (None, Some(key)) => Some(self.company(key)?),
                (None, None) => None,
            };
            if let Some(company) = told {
                self.contribute(&identity, Sign::Minus)?;
                identity.company = Some(Association { since: self.position, company });
                self.contribute(&identity, Sign::Plus)?;
            }
        }
        self.deposit(&mut identity, event.day, explicit, &event.sums())?;
        self.put_identity(person, identity)
    }

    /// Adds `sums` to an identity, its contributions, and its company's.
    fn deposit(&mut self, identity: &mut Identity, day: Day, company: Option<RecordKey>, sums: &Sums) -> Result<(), Fault> {
        let level = level(identity);
        let own_account = level == Level::Identity && identity.company.is_none();
        let (change, span) = identity.facts.change(day, sums, Sign::Plus);
        let rollups = &mut self.project.rollups;
        let mut contribute = |facts: &Facts, sign| {
            rollups.contribute(level, facts, span, sign, change);
            if own_account {
                rollups.contribute(Level::Account, facts, span, sign, change);
            }
        };
        contribute(&identity.facts, Sign::Minus);
        identity.facts.add(day, company, sums, Sign::Plus);
        contribute(&identity.facts, Sign::Plus);
        match company.or(identity.company.map(|association| association.company)) {
            Some(account) => self.change_account(account, day, sums, Sign::Plus),
            None => Ok(()),
        }
    }

    /// Puts in or takes out everything that an identity contributes, at every level.
    fn contribute(&mut self, identity: &Identity, sign: Sign) -> Result<(), Fault> {
        let level = level(identity);
        let facts = &identity.facts;
        self.project.rollups.contribute(level, facts, Span::ALL, sign, Change::ANY);
        if level == Level::Identity && identity.company.is_none() {
            self.project.rollups.contribute(Level::Account, facts, Span::ALL, sign, Change::ANY);
        }
        for (day, company, sums) in facts.entries() {
            if let Some(account) = company.or(identity.company.map(|association| association.company)) {
                self.change_account(account, day, sums, sign)?;
            }
        }
        Ok(())
    }

    /// Adds or takes out `sums` on `day` in what is known of a company.
    fn change_account(&mut self, company: RecordKey, day: Day, sums: &Sums, sign: Sign) -> Result<(), Fault> {
        let key = self.resolve_company(company)?;
        let source = self.source;
        let Project { accounts, rollups, .. } = &mut *self.project;
        if let Some(AccountSlot::Account(account)) = accounts.get_mut(key, || source.account(key))? {
            let (change, span) = account.facts.change(day, sums, sign);
            rollups.contribute(Level::Account, &account.facts, span, Sign::Minus, change);
            account.facts.add(day, None, sums, sign);
            rollups.contribute(Level::Account, &account.facts, span, Sign::Plus, change);
        }
        Ok(())
    }

    fn resolve_company(&mut self, key: RecordKey) -> Result<RecordKey, Fault> {
        let source = self.source;
        Ok(match self.project.accounts.get(key, || source.account(key))? {
            Some(AccountSlot::Linked(domain)) => *domain,
            _ => key,
        })
    }

    /// Gives the whole history of a company to the domain that it was told, unless it is a domain or was told before.
    fn link_company(&mut self, company: RecordKey, domain: &CompanyKey) -> Result<(), Fault> {
        let source = self.source;
        let former = match self.project.accounts.get(company, || source.account(company))? {
            Some(AccountSlot::Account(account)) if !account.key.is_domain() => account.clone(),
            _ => return Ok(()),
        };
        let key = self.company(domain)?;
        self.project.rollups.contribute(Level::Account, &former.facts, Span::ALL, Sign::Minus, Change::ANY);
        self.project.accounts.insert(company, AccountSlot::Linked(key));
        for (day, _, sums) in former.facts.entries() {
            self.change_account(key, day, sums, Sign::Plus)?;
        }
        Ok(())
    }

    /// Takes an identity out of its slot, to be changed; [`Fold::put_identity`] puts it back.
    fn take_identity(&mut self, key: RecordKey) -> Result<Option<Identity>, Fault> {
        let source = self.source;
        Ok(match self.project.people.get_mut(key, || source.person(key))? {
            Some(Person::Identity(identity)) => {
                let empty = Identity { id: RawId::Nobody, company: None, facts: Facts::default() };
                Some(std::mem::replace(&mut **identity, empty))
            }
            _ => None,
        })
    }

    fn put_identity(&mut self, key: RecordKey, identity: Identity) -> Result<(), Fault> {
        if let Some(Person::Identity(slot)) = self.project.people.get_mut(key, || Ok(None))? {
            **slot = identity;
        }
        Ok(())
    }
}

fn level(identity: &Identity) -> Level {
    match identity.id {
        RawId::Nobody => Level::Nobody,
        _ => Level::Identity,
    }
}
