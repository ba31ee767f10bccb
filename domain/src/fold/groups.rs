//! Propagates identity facts to companies and groups, under their reported keys.

use crate::company::CompanyKey;
use crate::company::group::{CompanyById, Group, GroupSums, MemberDay};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{GroupRef, Moment, Session, Sums};
use crate::fault::Fault;
use crate::fold::Fold;
use crate::identity::{Identity, IdentityId};
use crate::ids::{PublicCompany, RecordKey};
use crate::indexes::MemberAlias;
use crate::intake::event::Event;
use crate::intake::fields::metadata_text;
use crate::project::Project;
use crate::records::{Source, page_key};
use crate::time::Day;

/// The group type of companies.
const COMPANY: &str = crate::ids::COMPANY_TYPE;

impl<S: Source> Fold<'_, S> {
    /// Returns the group that the event names, creating its record and recording its reported name
    /// and domain.
    pub(super) fn named(&mut self, event: &Event) -> Result<Option<GroupRef>, Fault> {
        let at = Moment { time: event.time, position: self.position };
        let details = &event.details;
        let (kind, key, number) = match (&event.company, &details.group_type, &details.group_id) {
            (Some(company), ..) => {
                let key = self.company(company)?;
                (COMPANY, key, self.ensure_group(key, COMPANY, company.as_str())?)
            }
            (None, Some(kind), Some(id)) if **kind != *COMPANY => {
                let key = self.hasher.group(kind, id);
                (&**kind, key, self.ensure_group(key, kind, id)?)
            }
            _ => return Ok(None),
        };
        if &*event.name == "group" || event.is_remainder() {
            self.describe_group(event, key, at)?;
        }
        Ok(Some(GroupRef::new(key, self.hasher.group_type(kind), number, kind == COMPANY)))
    }

    fn describe_group(&mut self, event: &Event, key: RecordKey, at: Moment) -> Result<(), Fault> {
        let source = self.source;
        let name = event.details.metadata.as_deref().and_then(|json| metadata_text(json, "name"));
        let Project { groups, rollups, .. } = &mut *self.project;
        if let Some(name) = name.filter(|name| !name.is_empty())
            && let Some(group) = groups.get_mut(key, || source.record(key))?
            && group.report_name(at, &name)
        {
            rollups.group_names.set_name(self.hasher.group_type(&group.kind), group.number, &name);
        }
        match (&event.company, &event.company_domain) {
            (Some(_), Some(domain)) => self.link_company(key, domain, at),
            _ => Ok(()),
        }
    }

    /// Returns the number of a group, creating its record if needed.
    fn ensure_group(&mut self, key: RecordKey, kind: &str, id: &str) -> Result<u32, Fault> {
        let source = self.source;
        if let Some(group) = self.project.groups.get(key, || source.record(key))? {
            return Ok(group.number);
        }
        let kind_key = self.hasher.group_type(kind);
        let number = self.project.rollups.group_numbers.assign(kind_key, key);
        self.project.rollups.group_names.set_name(kind_key, number, id);
        self.project.groups.insert(key, Group::new(kind, id, number));
        Ok(number)
    }

    pub(super) fn ensure_company_group(&mut self, key: RecordKey, company: &CompanyKey) -> Result<(), Fault> {
        self.ensure_group(key, COMPANY, company.as_str())?;
        let public = self.hasher.public_company(PublicCompany::of(company.as_str()));
        self.project.company_ids.insert(public, CompanyById(key));
        Ok(())
    }

    /// Records a company's link to its domain, for organization-wide queries.
    pub(super) fn remember_link(&mut self, company: RecordKey, domain: RecordKey, reported_at: Moment) -> Result<(), Fault> {
        let source = self.source;
        let Project { groups, rollups, limits, .. } = &mut *self.project;
        rollups.company_links.remember(company, domain, reported_at);
        if let Some(group) = groups.get_mut(domain, || source.record(domain))? {
            group.add_alias(company, limits, |serial| source.page::<Group>(page_key(domain, serial)))?;
            let aliases = group.count_aliases();
            rollups.company_links.remember_most(aliases);
        }
        Ok(())
    }

    /// Propagates an identity's day to its company and group, and to the company as an account.
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
        self.change_group(company, session.day, &GroupSums { sessions: 1, ..GroupSums::default() }, None, sign)
    }

    /// Propagates a merge of sessions.
    pub(super) fn share_replaced_sessions(
        &mut self,
        identity: &Identity,
        met: &[Session],
        joined: &Session,
    ) -> Result<(), Fault> {
        let own = identity.company.map(|association| association.company);
        let company = |session: &Session| session.company.as_deref().copied().or(own);
        // The entry is unchanged, so nothing changes for its company.
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

    /// Adds or takes out sums of `day`, and the activity of one member or of events without
    /// consent.
    fn change_group(
        &mut self,
        key: RecordKey,
        day: Day,
        sums: &GroupSums,
        member: Option<(Option<RecordKey>, MemberDay)>,
        sign: Sign,
    ) -> Result<(), Fault> {
        let source = self.source;
        let Project { groups, rollups, kept_sums, limits, floor, .. } = &mut *self.project;
        let Some(group) = groups.get_mut(key, || source.record(key))? else { return Ok(()) };
        let load = |serial| source.page::<Group>(page_key(key, serial));
        group.add(day, sums, sign, limits, load)?;
        match (sign, member) {
            (Sign::Plus, Some((Some(member), did))) => group.add_member(day, member, did, limits, load)?,
            (Sign::Plus, Some((None, did))) => group.add_nobody(day, did),
            (Sign::Minus, Some((Some(member), _))) => group.remove_member(day, member, limits, load)?,
            // Days without consent are never taken out.
            (Sign::Minus, Some((None, _))) | (_, None) => {}
        }
        if floor.is_some_and(|floor| day < floor) {
            return Ok(());
        }
        let kind = self.hasher.group_type(&group.kind);
        rollups.group_activity.count(day, kind, group.number, sums.events, sign);
        kept_sums.count(day, kind, group.number, sums.events, sign);
        Ok(())
    }

    /// Records the user or e-mail address of an identity whose key in member lists is not a user's
    /// own.
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
