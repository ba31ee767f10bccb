//! The keys whose events are not recorded.

use std::collections::HashSet;

use headcount_control::Erasure;
use headcount_domain::erasure::address_keys;
use headcount_domain::{Event, KeyHasher, OrganizationId, ProjectId, RecordKey, SentKeys};

/// The keys whose events are not recorded.
#[derive(Debug, Default)]
pub(crate) struct Suppressed {
    users: HashSet<(OrganizationId, RecordKey)>,
    others: HashSet<(ProjectId, RecordKey)>,
    emails: HashSet<(OrganizationId, RecordKey)>,
}

impl Suppressed {
    /// Returns the keys of erasures.
    pub(crate) fn of<'e>(erasures: impl IntoIterator<Item = &'e Erasure>) -> Self {
        let mut suppressed = Self::default();
        erasures.into_iter().for_each(|erasure| suppressed.add(erasure));
        suppressed
    }

    /// Adds the keys of an erasure, unless it is lifted.
    pub(crate) fn add(&mut self, erasure: &Erasure) {
        if erasure.is_lifted {
            return;
        }
        self.users.extend(erasure.users.iter().map(|user| (erasure.organization, *user)));
        self.others.extend(erasure.others.iter().copied());
        self.emails.extend(erasure.emails.iter().map(|email| (erasure.organization, *email)));
    }

    /// The number of keys.
    pub(crate) fn count(&self) -> usize {
        self.users.len() + self.others.len() + self.emails.len()
    }

    /// Whether an event must not be recorded. Its user decides, or else its anonymous id. An erased
    /// address names the erased person whatever else the event names. If only the anonymous id of a
    /// user's event was erased, removes that id.
    pub(crate) fn has(&self, organization: Option<OrganizationId>, event: &mut Event, hasher: &KeyHasher) -> bool {
        let SentKeys { user, other } = SentKeys::of(&event.who, hasher);
        let is_erased = organization.is_some_and(|organization| {
            user.is_some_and(|user| self.users.contains(&(organization, user))) || self.has_address(organization, event, hasher)
        });
        if is_erased {
            return true;
        }
        let is_other = other.is_some_and(|other| self.others.contains(&(event.project, other)));
        if is_other && user.is_some() {
            event.who.anonymous_id = None;
        }
        is_other && user.is_none()
    }

    fn has_address(&self, organization: OrganizationId, event: &Event, hasher: &KeyHasher) -> bool {
        let mut addresses = address_keys(&event.who, event.details.email.as_deref(), hasher);
        !self.emails.is_empty() && addresses.any(|email| self.emails.contains(&(organization, email)))
    }
}

#[cfg(test)]
mod tests {
    use headcount_domain::intake::event::{Details, SentIds};
    use headcount_domain::{Day, Instant};

    use super::*;

    fn event(user: Option<&str>, email: Option<&str>) -> Event {
        let who = SentIds { user_id: user.map(Into::into), anonymous_id: Some("device".into()), visitor: None };
        Event {
            project: ProjectId(2),
            time: Instant(0),
            received: Instant(0),
            day: Day::parse("2024-03-01").unwrap(),
            interactive: true,
            name: "identify".into(),
            who,
            external_id: None,
            money: None,
            company: None,
            company_domain: None,
            email_company: None,
            details: Details { email: email.map(Into::into), ..Details::default() },
        }
    }

    #[test]
    fn an_address_is_suppressed_whoever_reports_it() {
        let (hasher, organization) = (KeyHasher::new([7; 16]), OrganizationId(1));
        let erasure = |is_lifted| Erasure {
            number: 1,
            organization,
            users: vec![hasher.user("ada")],
            others: vec![(ProjectId(2), hasher.anonymous("device"))],
            emails: vec![hasher.email("ada@acme.com")],
            ends: Vec::new(),
            is_done: true,
            is_lifted,
        };
        let suppressed = Suppressed::of(&[erasure(false)]);
        let has = |organization, user, email| suppressed.has(Some(organization), &mut event(user, email), &hasher);
        for (user, email, expected) in [
            (Some("ada"), None, true),
            (Some("eve"), Some("ada@acme.com"), true),
            // An edited export may have this.
            (Some("eve"), Some(" Ada@acme.com"), true),
            (Some("ADA@acme.com "), Some("eve@acme.com"), true),
            (None, Some("ada@acme.com"), true),
            (None, None, true),
            (Some("eve"), Some("eve@acme.com"), false),
            (Some("ada@acme"), None, false),
        ] {
            assert_eq!(has(organization, user, email), expected, "{user:?} {email:?}");
        }
        assert!(!has(OrganizationId(2), Some("eve"), Some("ada@acme.com")), "another organization's");
        let mut of_eve = event(Some("eve"), None);
        assert!(!suppressed.has(Some(organization), &mut of_eve, &hasher) && of_eve.who.anonymous_id.is_none());
        assert_eq!((suppressed.count(), Suppressed::of(&[erasure(true)]).count()), (3, 0));
    }
}
