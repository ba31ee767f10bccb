//! The list of events, and the recording of new ones.

use crate::answers::{Answer, Question, answer, find_identities};
use crate::event::{Event, Place, ProjectSetup, Rates, Refused, Sender, read};
use crate::facts::{Facts, Identity, reported_email};
use crate::frozen::{Days, Frozen, Visit};
use crate::rows::Rows;
use crate::text::email;
use crate::time::day_of;
use chrono::NaiveDate;
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};

/// An organization's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationSetup {
    /// The timezone of its days.
    pub timezone: Tz,
    /// The currency of organization-wide figures.
    pub currency: String,
    /// The value of one unit of each currency in USD.
    pub fx_rates: Rates,
}

/// The result of recording an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was recorded.
    Recorded,
    /// The event with this index used its `external_id` first; `None` if that event has been
    /// erased.
    Duplicate(Option<usize>),
    /// It was dropped, for this reason.
    Dropped(&'static str),
}

/// The answer to an accepted event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The result.
    pub status: Status,
    /// Whether its timestamp was too far ahead.
    pub clamped: bool,
    /// Its index, if it was recorded.
    pub index: Option<usize>,
    /// What was repaired: codes and fields, in order. Nothing of an event that is dropped for its
    /// sender or its signals.
    pub warnings: Vec<String>,
}

/// One organization.
#[derive(Clone, Debug)]
pub struct Model {
    /// The settings.
    pub organization: OrganizationSetup,
    /// The projects, by name.
    pub projects: BTreeMap<String, ProjectSetup>,
    /// The frozen days of the projects that have a floor.
    frozen: BTreeMap<String, Frozen>,
    events: Vec<Event>,
    external_ids: BTreeMap<(String, String), usize>,
    suppressed_users: BTreeSet<String>,
    suppressed_anonymous: BTreeSet<(String, String)>,
    suppressed_visitors: BTreeSet<String>,
    suppressed_emails: BTreeSet<String>,
}

impl Model {
    /// Creates an organization without projects.
    #[must_use]
    pub fn new(organization: OrganizationSetup) -> Model {
        Model {
            organization,
            projects: BTreeMap::new(),
            frozen: BTreeMap::new(),
            events: Vec::new(),
            external_ids: BTreeMap::new(),
            suppressed_users: BTreeSet::new(),
            suppressed_anonymous: BTreeSet::new(),
            suppressed_visitors: BTreeSet::new(),
            suppressed_emails: BTreeSet::new(),
        }
    }

    /// Adds a project.
    pub fn add_project(&mut self, name: &str, setup: ProjectSetup) {
        self.projects.insert(name.to_owned(), setup);
    }

    /// Replaces the rates. They apply to later events only.
    pub fn set_rates(&mut self, fx_rates: Rates) {
        self.organization.fx_rates = fx_rates;
    }

    /// Replaces the hosts that a project ignores as referrers. They apply to later events only.
    ///
    /// # Panics If there is no such project.
    pub fn ignore_referrers(&mut self, project: &str, hosts: Vec<String>) {
        self.projects.get_mut(project).expect("a project of the model").ignored = hosts;
    }

    /// Records an event, as sent.
    ///
    /// # Errors The field for which it is refused; then nothing is recorded.
    ///
    /// # Panics If there is no such project.
    pub fn record(&mut self, project: &str, body: &str, received_ms: i64, sender: &Sender) -> Result<Recorded, Refused> {
        let setup = self.projects.get(project).expect("a project of the model");
        let &OrganizationSetup { ref currency, fx_rates: ref rates, timezone, .. } = &self.organization;
        let mut event = read(body, received_ms, sender, &Place { project, setup, currency, rates, timezone })?;
        let clamped = event.clamped;
        let dropped = |reason| Ok(Recorded { status: Status::Dropped(reason), clamped, index: None, warnings: Vec::new() });
        if event.bot && !setup.record_bots {
            return dropped("bot");
        }
        if event.unwanted {
            return dropped("consent");
        }
        let mut warnings = event.warnings.clone();
        warnings.sort_unstable();
        let answer = |status, index| Ok(Recorded { status, clamped, index, warnings });
        if self.is_suppressed(&event) {
            return answer(Status::Dropped("opted_out"), None);
        }
        // An erased anonymous id never links again.
        let is_erased = |id: &String| self.suppressed_anonymous.contains(&(event.project.clone(), id.clone()));
        if event.anonymous_id.as_ref().is_some_and(is_erased) {
            event.anonymous_id = None;
        }
        let day = day_of(event.at_ms, self.organization.timezone);
        if self.floor(project).is_some_and(|floor| day < floor) {
            return answer(Status::Dropped("retention"), None);
        }
        let index = self.events.len();
        if let Some(external_id) = &event.external_id {
            let key = (project.to_owned(), external_id.clone());
            let first = *self.external_ids.entry(key).or_insert(index);
            if first != index {
                let known = Some(first).filter(|&first| !self.events[first].erased);
                return answer(Status::Duplicate(known), None);
            }
        }
        self.events.push(event);
        answer(Status::Recorded, Some(index))
    }

    /// Raises the floor of a project, which never falls.
    pub fn raise_floor(&mut self, project: &str, floor: NaiveDate) {
        if self.floor(project).is_none_or(|former| floor > former) {
            let already = self.frozen.remove(project);
            let facts = Facts::of(&self.events);
            let frozen = Frozen::new(&facts, self.organization.timezone, project, floor, already);
            self.frozen.insert(project.to_owned(), frozen);
        }
    }

    /// Returns the floor of a project.
    #[must_use]
    pub fn floor(&self, project: &str) -> Option<NaiveDate> {
        self.frozen.get(project).map(|frozen| frozen.floor)
    }

    /// Returns the sessions of a project: those of days below its floor as they were when it rose.
    #[must_use]
    pub fn visits(&self, project: &str) -> Vec<Visit> {
        self.days(&self.facts(), project).visits()
    }

    /// Returns the rows of every rollup of a project that is compared by rows.
    #[must_use]
    pub fn rows(&self, project: &str) -> BTreeMap<&'static str, Rows> {
        self.days(&self.facts(), project).rows()
    }

    pub(crate) fn days<'f>(&'f self, facts: &'f Facts<'f>, project: &'f str) -> Days<'f> {
        Days { facts, timezone: self.organization.timezone, project, frozen: self.frozen.get(project) }
    }

    /// Whether the identity of an event was erased: its user decides alone, else the anonymous id.
    /// An erased e-mail address decides before both.
    fn is_suppressed(&self, event: &Event) -> bool {
        let spelled = event.user_id.as_deref().and_then(email);
        if reported_email(event).into_iter().chain(spelled).any(|email| self.suppressed_emails.contains(&email)) {
            return true;
        }
        match (&event.user_id, &event.anonymous_id) {
            (Some(user), _) => self.suppressed_users.contains(user),
            (None, Some(id)) => self.suppressed_anonymous.contains(&(event.project.clone(), id.clone())),
            (None, None) => event.visitor.as_ref().is_some_and(|visitor| self.suppressed_visitors.contains(visitor)),
        }
    }

    /// Erases all identities that ever had an e-mail address. Later events that report it, or whose
    /// user is spelled so, are dropped, whoever they are of.
    pub fn erase_email(&mut self, address: &str) {
        let identities = find_identities(&self.facts(), "email", address);
        self.erase(&identities);
        self.suppressed_emails.extend(email(address));
    }

    /// Erases identities: their events no longer count, and later events with their ids are
    /// dropped.
    pub fn erase(&mut self, identities: &BTreeSet<Identity>) {
        let facts = Facts::of(&self.events);
        let is_theirs = |index: usize| facts.identities[index].as_ref().is_some_and(|of| identities.contains(of));
        let erased: Vec<_> = facts.all().filter(|&index| is_theirs(index)).collect();
        // An anonymous id linked to another user is kept.
        let anonymous = erased.iter().filter_map(|&index| {
            let event = &self.events[index];
            let id = event.anonymous_id.clone()?;
            identities.contains(&facts.owner(&event.project, &id)).then(|| (event.project.clone(), id))
        });
        self.suppressed_anonymous.extend(anonymous);
        for index in erased {
            self.events[index].erased = true;
            let event = &self.events[index];
            match (&event.user_id, &event.anonymous_id) {
                (Some(user), _) => drop(self.suppressed_users.insert(user.clone())),
                (None, Some(_)) => {}
                (None, None) => self.suppressed_visitors.extend(event.visitor.clone()),
            }
        }
        for event in self.events.iter_mut().filter(|event| !event.erased) {
            let is_erased = |id: &String| self.suppressed_anonymous.contains(&(event.project.clone(), id.clone()));
            if event.anonymous_id.as_ref().is_some_and(is_erased) {
                event.anonymous_id = None;
            }
        }
    }

    /// Returns the model of an organization without floors and erasures that recorded what is kept
    /// here from `day` on, and nothing else.
    #[must_use]
    pub fn kept(&self, day: Option<NaiveDate>) -> Model {
        let mut model = Model::new(self.organization.clone());
        model.projects.clone_from(&self.projects);
        let is_kept = |event: &&Event| {
            let floor = self.floor(&event.project).max(day);
            !event.erased && floor.is_none_or(|floor| day_of(event.at_ms, self.organization.timezone) >= floor)
        };
        model.events = self.events.iter().filter(is_kept).cloned().collect();
        model
    }

    /// Deletes a project, as if nothing had ever been recorded of it.
    pub fn delete_project(&mut self, name: &str) {
        self.projects.remove(name);
        self.frozen.remove(name);
        let events = std::mem::take(&mut self.events);
        let mut indices = BTreeMap::new();
        for (index, event) in events.into_iter().enumerate().filter(|(_, event)| event.project != name) {
            indices.insert(index, self.events.len());
            self.events.push(event);
        }
        self.external_ids.retain(|(project, _), _| project != name);
        self.external_ids.values_mut().for_each(|index| *index = indices[index]);
        self.suppressed_anonymous.retain(|(project, _)| project != name);
    }

    /// Returns the recorded events, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Derives the facts of the events.
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        Facts::of(&self.events)
    }

    /// Answers a question asked at `now_ms`.
    #[must_use]
    pub fn answer(&self, now_ms: i64, question: &Question) -> Answer {
        answer(self, now_ms, question)
    }
}
