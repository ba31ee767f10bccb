//! The facts derived from the events of an organization: identities, sessions and companies,
//! recomputed for every question.

use crate::acquisition::{DIRECT, origin};
use crate::event::Event;
use crate::text::{company_of_email, email, reads_as_domain};
use std::collections::{BTreeMap, BTreeSet};

/// The identity of an event, after following links.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// A user of the organization.
    User(String),
    /// An anonymous id of a project without a link.
    Anonymous(String, String),
    /// A cookieless visitor.
    Visitor(String),
}

/// The account of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// A company, identified by its key.
    Company(String),
    /// An identity without a company.
    Identity(Identity),
}

/// A session: the indices, in order of time, of interactive events of one identity in one project
/// with no gap of more than 30 minutes.
#[derive(Clone, Debug)]
pub struct Session {
    /// The identity.
    pub identity: Identity,
    /// The interactive events.
    pub events: Vec<usize>,
    /// The other events of its time, and of the 30 minutes after it.
    pub attached: Vec<usize>,
}

impl Session {
    /// Returns the earliest event.
    #[must_use]
    pub fn entry(&self) -> usize {
        self.events[0]
    }

    /// Returns the latest event.
    #[must_use]
    pub fn last(&self) -> usize {
        self.events[self.events.len() - 1]
    }

    /// Whether it has the event, as its own or attached.
    pub fn holds(&self, mut is_it: impl FnMut(usize) -> bool) -> bool {
        self.events.iter().chain(&self.attached).any(|&index| is_it(index))
    }
}

/// The longest gap between two events of a session.
const GAP_MS: i64 = 30 * 60 * 1000;

/// The facts derived from all events. Events are identified by their index, in the order of
/// recording.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The events.
    pub events: &'a [Event],
    /// The identity of each event.
    pub identities: Vec<Option<Identity>>,
    /// All sessions.
    pub sessions: Vec<Session>,
    /// The session of each event.
    session_of: Vec<Option<usize>>,
    /// The reported key of each event's company: a domain, or an id that may be linked to one.
    reported_companies: Vec<Option<String>>,
    /// The user that each anonymous id of a project is linked to.
    links: BTreeMap<(&'a str, &'a str), &'a str>,
    /// The first domain recorded for a company, by project and key: the earliest event that reports
    /// it, and the domain.
    domains: BTreeMap<(String, String), (usize, String)>,
}

impl<'a> Facts<'a> {
    /// Derives all facts.
    #[must_use]
    pub fn of(events: &'a [Event]) -> Facts<'a> {
        let links = links(events);
        let identities: Vec<_> = events.iter().map(|event| identity(event, &links)).collect();
        let sessions = sessions(events, &identities);
        let mut session_of = vec![None; events.len()];
        for (number, session) in sessions.iter().enumerate() {
            for &index in session.events.iter().chain(&session.attached) {
                session_of[index] = Some(number);
            }
        }
        let reported_companies = reported_companies(events, &identities);
        Facts { events, sessions, session_of, reported_companies, links, domains: domains(events), identities }
    }

    /// Returns the indices of a project's events, in order of recording.
    pub fn of_project(&self, project: &str) -> impl Iterator<Item = usize> {
        self.all().filter(move |&index| self.events[index].project == project)
    }

    /// Returns the indices of all projects' events, in order of recording.
    pub fn all(&self) -> impl Iterator<Item = usize> {
        (0..self.events.len()).filter(|&index| !self.events[index].erased)
    }

    /// Returns the identity of an anonymous id of a project.
    #[must_use]
    pub fn owner(&self, project: &str, anonymous_id: &str) -> Identity {
        match self.links.get(&(project, anonymous_id)) {
            Some(user) => Identity::User((*user).to_owned()),
            None => Identity::Anonymous(project.to_owned(), anonymous_id.to_owned()),
        }
    }

    /// Returns the session of an event.
    #[must_use]
    pub fn session(&self, index: usize) -> Option<&Session> {
        self.session_of[index].map(|number| &self.sessions[number])
    }

    /// Returns the event whose source, medium, campaign and channel are those of a session: the
    /// first that has a source, else the entry.
    #[must_use]
    pub fn brought_by(&self, session: &Session) -> &Event {
        let mut events = session.events.iter().map(|&index| &self.events[index]);
        events.find(|event| origin(event).source != DIRECT).unwrap_or(&self.events[session.entry()])
    }

    /// Returns the address of the first event of a session that has one.
    #[must_use]
    pub fn entry_page(&self, session: &Session) -> Option<String> {
        session.events.iter().find_map(|&index| self.events[index].url.as_ref()).map(|url| url.page.clone())
    }

    /// Returns the sort key of events in time: their instant, then the order of recording.
    #[must_use]
    pub fn moment(&self, index: usize) -> (i64, usize) {
        (self.events[index].at_ms, index)
    }

    /// Returns the key of the event's company, by the links of its project.
    #[must_use]
    pub fn company_in_project(&self, index: usize) -> Option<String> {
        let reported = self.reported_companies[index].clone()?;
        let linked = self.domains.get(&(self.events[index].project.clone(), reported.clone()));
        Some(linked.map_or(reported, |(_, domain)| domain.clone()))
    }

    /// Returns the event's account, by the links of its project.
    #[must_use]
    pub fn account(&self, index: usize) -> Option<Account> {
        let company = self.company_in_project(index).map(Account::Company);
        company.or_else(|| self.identities[index].clone().map(Account::Identity))
    }

    /// Returns the key of the event's company, organization-wide.
    #[must_use]
    pub fn company(&self, index: usize) -> Option<String> {
        self.reported_companies[index].as_deref().map(|reported| self.company_by_key(reported))
    }

    /// Resolves a company key organization-wide: among the links of all projects, the one reported
    /// first takes effect.
    #[must_use]
    pub fn company_by_key(&self, key: &str) -> String {
        let links = self.domains.iter().filter(|((_, reported), _)| reported == key);
        let earliest = links.map(|(_, (index, domain))| (self.moment(*index), domain)).min();
        earliest.map_or(key, |(_, domain)| domain).to_owned()
    }

    /// Returns the most recently reported e-mail address of an identity, and all that it ever had.
    #[must_use]
    pub fn emails(&self, identity: &Identity) -> (Option<String>, BTreeSet<String>) {
        self.emails_in(identity, |_| true)
    }

    /// The same, of the events of some projects.
    #[must_use]
    pub fn emails_in(&self, identity: &Identity, is_in: impl Fn(&str) -> bool) -> (Option<String>, BTreeSet<String>) {
        let mut reported: Vec<_> = self
            .all()
            .filter(|&index| is_in(&self.events[index].project))
            .filter(|&index| self.identities[index].as_ref() == Some(identity))
            .filter_map(|index| reported_email(&self.events[index]).map(|email| (self.moment(index), email)))
            .collect();
        reported.sort();
        let latest = reported.last().map(|(_, email)| email.clone());
        (latest, reported.into_iter().map(|(_, email)| email).collect())
    }
}

/// Returns the first recorded link of each anonymous id.
fn links(events: &[Event]) -> BTreeMap<(&str, &str), &str> {
    let mut links = BTreeMap::new();
    for event in events {
        if let (Some(user), Some(anonymous)) = (&event.user_id, &event.anonymous_id) {
            links.entry((event.project.as_str(), anonymous.as_str())).or_insert(user.as_str());
        }
    }
    links
}

fn identity(event: &Event, links: &BTreeMap<(&str, &str), &str>) -> Option<Identity> {
    if event.erased {
        return None;
    }
    if let Some(user) = &event.user_id {
        return Some(Identity::User(user.clone()));
    }
    let Some(anonymous) = &event.anonymous_id else {
        return event.visitor.clone().map(Identity::Visitor);
    };
    Some(match links.get(&(event.project.as_str(), anonymous.as_str())) {
        Some(user) => Identity::User((*user).to_owned()),
        None => Identity::Anonymous(event.project.clone(), anonymous.clone()),
    })
}

fn sessions(events: &[Event], identities: &[Option<Identity>]) -> Vec<Session> {
    let mut by_owner: BTreeMap<(&Identity, &str), Vec<usize>> = BTreeMap::new();
    for (index, identity) in identities.iter().enumerate() {
        if let Some(identity) = identity {
            by_owner.entry((identity, &events[index].project)).or_default().push(index);
        }
    }
    let mut sessions: Vec<Session> = Vec::new();
    for ((identity, _), mut indices) in by_owner {
        indices.sort_by_key(|&index| (events[index].at_ms, index));
        let mut last_ms = None;
        let (interactive, others): (Vec<usize>, Vec<usize>) = indices.into_iter().partition(|&index| events[index].interactive);
        let first = sessions.len();
        for index in interactive {
            let at_ms = events[index].at_ms;
            match sessions.last_mut() {
                Some(session) if last_ms.is_some_and(|last_ms| at_ms - last_ms <= GAP_MS) => session.events.push(index),
                _ => sessions.push(Session { identity: identity.clone(), events: vec![index], attached: Vec::new() }),
            }
            last_ms = Some(at_ms);
        }
        for session in &mut sessions[first..] {
            let (begin_ms, end_ms) = (events[session.entry()].at_ms, events[session.last()].at_ms);
            let is_in = |index: &&usize| (begin_ms..=end_ms + GAP_MS).contains(&events[**index].at_ms);
            session.attached = others.iter().filter(is_in).copied().collect();
        }
    }
    sessions
}

/// Returns the e-mail address that an event reports.
#[must_use]
pub fn reported_email(event: &Event) -> Option<String> {
    let tells = event.name == "identify" || event.user_id.is_some();
    let trait_ = event.metadata.field("email").text().filter(|_| tells).and_then(email);
    trait_.or_else(|| event.user_id.as_deref().and_then(email))
}

/// Returns the key of the company that an event names; a domain if it is one.
#[must_use]
pub fn explicit_company(event: &Event) -> Option<String> {
    let (kind, id) = event.group.as_ref()?;
    (kind == "company").then(|| reads_as_domain(id).unwrap_or_else(|| id.clone()))
}

/// Returns each event's company: the one it names, else the first recorded for its identity in its
/// project.
fn reported_companies(events: &[Event], identities: &[Option<Identity>]) -> Vec<Option<String>> {
    let mut firsts = BTreeMap::new();
    for (event, identity) in events.iter().zip(identities) {
        let company = explicit_company(event).or_else(|| reported_email(event).as_deref().and_then(company_of_email));
        if let (Some(identity), Some(company)) = (identity, company) {
            firsts.entry((event.project.as_str(), identity)).or_insert(company);
        }
    }
    let of = |event: &Event, identity: &Option<Identity>| {
        let first = identity.as_ref().and_then(|identity| firsts.get(&(event.project.as_str(), identity)));
        explicit_company(event).or_else(|| first.cloned()).filter(|_| !event.erased)
    };
    events.iter().zip(identities).map(|(event, identity)| of(event, identity)).collect()
}

/// Returns the first recorded domain of each company whose key is not a domain, by project, and the
/// earliest event that reports it.
fn domains(events: &[Event]) -> BTreeMap<(String, String), (usize, String)> {
    let mut domains = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        let reported = event.metadata.field("domain").filled().and_then(reads_as_domain);
        let key = explicit_company(event).filter(|key| event.name == "group" && domain_of(key).is_none());
        if let (Some(key), Some(reported)) = (key, reported) {
            let (pinned_by, pinned) = domains.entry((event.project.clone(), key)).or_insert((index, reported.clone()));
            // The first recorded domain takes effect, from the earliest event time at which it was
            // reported.
            if *pinned == reported && event.at_ms < events[*pinned_by].at_ms {
                *pinned_by = index;
            }
        }
    }
    domains
}

/// Returns the domain of a company's key, if the key is one.
#[must_use]
pub fn domain_of(key: &str) -> Option<&str> {
    (reads_as_domain(key).as_deref() == Some(key)).then_some(key)
}
