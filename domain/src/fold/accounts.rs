//! Propagates identity facts to accounts, and merges companies with their domains.

use crate::company::{Account, AccountSlot, CompanyKey};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts, LoadFactsPage, Moment, Order, Span, Sums, Times, TouchAt};
use crate::fault::Fault;
use crate::fold::Fold;
use crate::ids::RecordKey;
use crate::limits::Limits;
use crate::project::Project;
use crate::records::{Record, Source, page_key};
use crate::time::Day;

/// One change of a company's facts.
enum Share<'s> {
    Day(Day, &'s Sums, Sign),
    Touch(TouchAt, Sign),
    Order(&'s Order, Sign),
}

impl Share<'_> {
    /// Loads the pages that the change needs.
    fn load(&self, facts: &mut Facts, page: impl LoadFactsPage) -> Result<(), Fault> {
        match self {
            Self::Day(day, ..) => facts.load_day(*day, None, page),
            Self::Touch(touch, _) => facts.load_touch(touch.at, page),
            Self::Order(order, _) => facts.load_order(order.at, page),
        }
    }

    fn change(&self, facts: &Facts) -> DirtyRange {
        match self {
            Self::Day(day, sums, sign) => facts.change_of_day(*day, sums, *sign),
            Self::Touch(touch, sign) => facts.change_of_touch(touch.at, *sign),
            Self::Order(order, _) => DirtyRange::of_order(order.at),
        }
    }

    fn apply(&self, facts: &mut Facts, limits: &Limits) {
        match self {
            Self::Day(day, sums, sign) => facts.add_day(*day, None, sums, *sign, limits),
            Self::Touch(touch, Sign::Plus) => facts.add_touch((*touch).into(), limits),
            Self::Touch(touch, Sign::Minus) => facts.remove_touch(touch.at, limits),
            Self::Order(order, Sign::Plus) => facts.add_order((*order).clone(), limits),
            Self::Order(order, Sign::Minus) => facts.remove_order(order.at, limits),
        }
    }
}

impl<S: Source> Fold<'_, S> {
    /// Returns the key of a company, creating its records if needed.
    pub(super) fn company(&mut self, company: &CompanyKey) -> Result<RecordKey, Fault> {
        let (key, source) = (self.hasher.company(company.as_str()), self.source);
        if self.project.accounts.get(key, || source.record(key))?.is_none() {
            let account = Account { key: company.clone(), facts: Facts::default() };
            self.project.accounts.insert(key, AccountSlot::Canonical(Box::new(account)));
            self.ensure_company_group(key, company)?;
        }
        Ok(key)
    }

    pub(super) fn share_account_day(&mut self, company: RecordKey, day: Day, sums: &Sums, sign: Sign) -> Result<(), Fault> {
        self.share(company, &Share::Day(day, &sums.of_account(), sign))
    }

    pub(super) fn share_touch(&mut self, company: RecordKey, touch: TouchAt, sign: Sign) -> Result<(), Fault> {
        self.share(company, &Share::Touch(touch, sign))
    }

    pub(super) fn share_order(&mut self, company: RecordKey, order: &Order, sign: Sign) -> Result<(), Fault> {
        self.share(company, &Share::Order(order, sign))
    }

    fn share(&mut self, company: RecordKey, share: &Share<'_>) -> Result<(), Fault> {
        let key = self.resolve_company(company)?;
        let source = self.source;
        let Project { accounts, rollups, limits, .. } = &mut *self.project;
        if let Some(AccountSlot::Canonical(account)) = accounts.get_mut(key, || source.record(key))? {
            let facts = &mut account.facts;
            let page = |serial| source.page::<AccountSlot>(page_key(key, serial));
            share.load(facts, page)?;
            let change = share.change(facts);
            loop {
                facts.load_recut(change, page)?;
                let Some(recut) = facts.recut(change, limits) else { break };
                facts.load_change(recut.change(), page)?;
                rollups.contribute(EntityKind::Account, facts, Sign::Minus, &recut.change());
                facts.apply_recut(&recut, key);
                rollups.contribute(EntityKind::Account, facts, Sign::Plus, &recut.change());
            }
            facts.load_change(change, page)?;
            rollups.contribute(EntityKind::Account, facts, Sign::Minus, &change);
            facts.defer_attribution(key, change, limits);
            share.apply(facts, limits);
            rollups.contribute(EntityKind::Account, facts, Sign::Plus, &change);
        }
        Ok(())
    }

    fn resolve_company(&mut self, key: RecordKey) -> Result<RecordKey, Fault> {
        let source = self.source;
        Ok(match self.project.accounts.get(key, || source.record(key))? {
            Some(AccountSlot::Alias(domain)) => *domain,
            _ => key,
        })
    }

    /// Moves the whole history of a company to its domain, unless it is a domain itself or already
    /// linked.
    pub(super) fn link_company(&mut self, company: RecordKey, domain: &CompanyKey, reported_at: Moment) -> Result<(), Fault> {
        let source = self.source;
        let mut former = match self.project.accounts.get(company, || source.record(company))? {
            Some(AccountSlot::Canonical(account)) if !account.key.is_domain() => account.clone(),
            Some(AccountSlot::Alias(_)) => {
                // Reported again, perhaps by an event that happened earlier.
                let key = self.hasher.company(domain.as_str());
                self.project.rollups.company_links.remember(company, key, reported_at);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let key = self.company(domain)?;
        self.remember_link(company, key, reported_at)?;
        let facts = &mut former.facts;
        facts.load_all(|serial| source.page::<AccountSlot>(page_key(company, serial)))?;
        self.project.rollups.contribute(EntityKind::Account, facts, Sign::Minus, &DirtyRange::ANY);
        self.project.accounts.insert(company, AccountSlot::Alias(key));
        for entry in facts.days(Span::ALL) {
            self.share_account_day(key, entry.day, &entry.sums, Sign::Plus)?;
        }
        for touch in facts.touches() {
            self.share_touch(key, touch.touch_at(), Sign::Plus)?;
        }
        for order in facts.orders(Times::ALL) {
            self.share_order(key, order, Sign::Plus)?;
        }
        let pages = facts.serials().map(|serial| (AccountSlot::PAGE_SPACE, page_key(company, serial)));
        self.project.orphans.extend(pages);
        Ok(())
    }
}
