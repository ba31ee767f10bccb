//! What companies and groups, as they were told, get of identities' facts.

use crate::company::CompanyKey;
use crate::company::group::{CompanyById, Group, GroupSums, MemberDay};
use crate::contribution::EntityKind;
use crate::contribution::Sign;
use crate::facts::{GroupRef, Session};
use crate::facts::{Moment, Sums};
use crate::fault::Fault;
use crate::fold::Fold;
use crate::identity::Identity;
use crate::ids::{IdentityId, PublicCompany, RecordKey};
use crate::indexes::MemberAlias;
use crate::intake::event::Event;
use crate::intake::submission::metadata_text;
use crate::project::Project;
use crate::records::Source;
use crate::records::page_key;
use crate::time::Day;

/// The type of a group that is a company.
const COMPANY: &str = crate::company::GROUP_TYPE;

impl<S: Source> Fold<'_, S> {
    /// The group that the event names, whose record exists from here on, and what the event tells of it.
    pub(super) fn named(&mut self, event: &Event) -> Result<Option<GroupRef>, Fault> {
        let at = Moment { time: event.time, position: self.position };
        let details = &event.details;
        let (kind, key) = match (&event.company, &details.group_type, &details.group_id) {
            (Some(company), ..) => (COMPANY, self.company(company)?),
            (None, Some(kind), Some(id)) if **kind != *COMPANY => {
                let key = self.hasher.group(kind, id);
                self.ensure_group(key, kind, id)?;
                (&**kind, key)
            }
            _ => return Ok(None),
        };
        if &*event.name == "group" {
            self.tell(event, key, at)?;
        }
        let source = self.source;
        let Some(group) = self.project.groups.get(key, || source.record(key))? else {
            return Err(Fault::damaged_store("the record of a group is missing"));
        };
        Ok(Some(GroupRef::new(key, self.hasher.group_type(kind), group.number, kind == COMPANY)))
    }

    fn tell(&mut self, event: &Event, key: RecordKey, at: Moment) -> Result<(), Fault> {
        let source = self.source;
        let name = event.details.metadata.as_deref().and_then(|json| metadata_text(json, "name"));
        let Project { groups, rollups, .. } = &mut *self.project;
        if let Some(name) = name.filter(|name| !name.is_empty())
            && let Some(group) = groups.get_mut(key, || source.record(key))?
            && group.tell_name(at, &name)
        {
            rollups.group_names.tell(self.hasher.group_type(&group.kind), group.number, &name);
        }
        match (&event.company, &event.company_domain) {
            (Some(_), Some(domain)) => self.link_company(key, domain, at),
            _ => Ok(()),
        }
    }

    fn ensure_group(&mut self, key: RecordKey, kind: &str, id: &str) -> Result<(), Fault> {
        let source = self.source;
        if self.project.groups.get(key, || source.record(key))?.is_none() {
            let kind_key = self.hasher.group_type(kind);
            let number = self.project.rollups.group_numbers.assign(kind_key, key);
            self.project.rollups.group_names.tell(kind_key, number, id);
            self.project.groups.insert(key, Group::new(kind, id, number));
        }
        Ok(())
    }

    pub(super) fn ensure_company_group(&mut self, key: RecordKey, company: &CompanyKey) -> Result<(), Fault> {
        self.ensure_group(key, COMPANY, company.as_str())?;
        let public = self.hasher.public_company(PublicCompany::of(company.as_str()));
        self.project.company_ids.insert(public, CompanyById(key));
        Ok(())
    }

    /// A company was told its domain: answers of the whole organization look for it here.
    pub(super) fn remember_link(&mut self, company: RecordKey, domain: RecordKey, told: Moment) -> Result<(), Fault> {
        let source = self.source;
        self.project.rollups.company_links.remember(company, domain, told);
        if let Some(group) = self.project.groups.get_mut(domain, || source.record(domain))? {
            group.tell_alias(company, |serial| source.page::<Group>(page_key(domain, serial)))?;
            let told = group.count_aliases();
            self.project.rollups.company_links.remember_most(told);
        }
        Ok(())
    }

    /// What a company or group gets of an identity's day: the company as an account too.
    pub(super) fn share_day(
        &mut self,
        identity: &Identity,
        day: Day,
        named: Option<GroupRef>,
        sums: &Sums,
        sign: Sign,
    ) -> Result<(), Fault> {
        let company = Self::company_of(identity, named);
        if let Some(company) = company {
            self.share_account_day(company, day, sums, sign)?;
        }
        let money = sums.money.as_deref();
        let counted = GroupSums {
            events: u64::from(sums.events),
            sessions: 0,
            revenue: money.map(|money| money.organization_revenue).unwrap_or_default(),
            orders: money.map(|money| money.organization_orders).unwrap_or_default(),
        };
        let group = named.and_then(GroupRef::group);
        let member = (super::level(identity) != EntityKind::Nobody).then_some(identity.history_key);
        let did = MemberDay { events: sums.events, seen: sums.seen };
        for key in [company, group].into_iter().flatten() {
            self.change_group(key, day, &counted, Some((member, did)), sign)?;
        }
        Ok(())
    }

    pub(super) fn share_session(&mut self, company: RecordKey, session: &Session, sign: Sign) -> Result<(), Fault> {
        self.share_touch(company, session, sign)?;
        self.change_group(company, session.day, &GroupSums { sessions: 1, ..GroupSums::default() }, None, sign)
    }

    /// Some sessions became one.
    pub(super) fn share_replaced_sessions(
        &mut self,
        identity: &Identity,
        met: &[Session],
        joined: &Session,
    ) -> Result<(), Fault> {
        let own = identity.company.map(|association| association.company);
        let company = |session: &Session| session.company.as_deref().copied().or(own);
        // The entry stays: nothing changes for its company.
        let kept = met.iter().position(|session| session.at == joined.at);
        for (place, session) in met.iter().enumerate() {
            if let Some(company) = company(session).filter(|_| kept != Some(place)) {
                self.share_session(company, session, Sign::Minus)?;
            }
        }
        match company(joined).filter(|_| kept.is_none()) {
            Some(company) => self.share_session(company, joined, Sign::Plus),
            None => Ok(()),
        }
    }

    /// Adds or takes out what was counted on `day`, and what one member, or nobody, did of it.
    fn change_group(
        &mut self,
        key: RecordKey,
        day: Day,
        sums: &GroupSums,
        member: Option<(Option<RecordKey>, MemberDay)>,
        sign: Sign,
    ) -> Result<(), Fault> {
        let source = self.source;
        let Project { groups, rollups, .. } = &mut *self.project;
        let Some(group) = groups.get_mut(key, || source.record(key))? else { return Ok(()) };
        let load = |serial| source.page::<Group>(page_key(key, serial));
        group.add(day, sums, sign, load)?;
        match (sign, member) {
            (Sign::Plus, Some((Some(member), did))) => group.add_member(day, member, did, load)?,
            (Sign::Plus, Some((None, did))) => group.add_nobody(day, did),
            (Sign::Minus, Some((Some(member), _))) => group.remove_member(day, member, load)?,
            // Nobody's days are never taken out.
            (Sign::Minus, Some((None, _))) | (_, None) => {}
        }
        rollups.group_activity.count(day, self.hasher.group_type(&group.kind), group.number, sums.events, sign);
        Ok(())
    }

    /// What lists of members are to know of an identity whose key in them may not be a user's own.
    pub(super) fn record_alias(&mut self, identity: &Identity) {
        if identity.history_key.is_user() {
            return;
        }
        let known = match identity.id {
            IdentityId::User(_) => MemberAlias::User(self.hasher.identity(&identity.id)),
            _ if identity.emails.is_empty() => return,
            _ => MemberAlias::Addressed,
        };
        self.project.rollups.member_aliases.learn(identity.history_key, known);
    }
}
