//! Coverage: counts how often histories exercise each rule.

use chrono::{DateTime, Offset, TimeDelta};
use headcount_model::acquisition::{DIRECT, origin, value};
use headcount_model::event::Event;
use headcount_model::facts::{Account, Facts, domain_of, explicit_company, reported_email};
use headcount_model::referrer::external;
use headcount_model::text::company_of_email;
use headcount_model::time::day_of;
use headcount_model::{Answer, Model, Question, Recorded, Refused, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Counts by rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<String, usize>);

impl Coverage {
    /// Counts a rule.
    pub fn count(&mut self, rule: &str) {
        self.add(rule, 1);
    }

    pub(crate) fn add(&mut self, rule: &str, times: usize) {
        *self.0.entry(rule.to_owned()).or_default() += times;
    }

    /// Returns the number of times that a rule was exercised.
    #[must_use]
    pub fn of(&self, rule: &str) -> usize {
        self.0.get(rule).copied().unwrap_or(0)
    }

    /// Adds the counts of another coverage.
    pub fn merge(&mut self, other: &Coverage) {
        for (rule, times) in &other.0 {
            self.add(rule, *times);
        }
    }

    pub(crate) fn replied(&mut self, body: &str, reply: &Result<Recorded, Refused>) {
        match reply {
            Err(refused) => self.count(&format!("events refused: {}", refused.param)),
            Ok(recorded) => {
                match recorded.status {
                    Status::Recorded => self.count("events recorded"),
                    Status::Duplicate(_) => self.count("duplicates"),
                    Status::Dropped(reason) => self.count(&format!("events dropped: {reason}")),
                }
                self.add("timestamps clamped", usize::from(recorded.clamped));
                for warning in &recorded.warnings {
                    self.count(&format!("repairs: {}", warning.split(' ').next().unwrap_or_default()));
                }
                self.add("timestamps absent", usize::from(!body.contains(r#""timestamp": "#)));
            }
        }
    }

    pub(crate) fn asked(&mut self, question: &Question, answer: &Answer) {
        let steps: Vec<&str> = question.path.split('/').skip(1).collect();
        let place = match steps[..] {
            ["projects", _, _, operation] => operation.to_owned(),
            ["companies", _, operation @ ("metrics" | "top-users")] => format!("companies {operation}"),
            ["projects", _, _, "funnel", "people"] => "funnel people".to_owned(),
            _ => steps.join(" "),
        };
        self.count(&format!("asked {place}: {}", answer.status));
        if let (200, Some(body)) = (answer.status, &question.body) {
            self.look_at_paths(&place, body, &answer.body);
        }
    }

    /// Counts the rules that the recorded events of a run exercise.
    pub(crate) fn look_at(&mut self, model: &Model) {
        let facts = model.facts();
        for (index, event) in facts.events.iter().enumerate() {
            self.look_at_time(model, &facts, index);
            self.look_at_identity(&facts, index);
            self.look_at_company(&facts, index);
            self.look_at_money(event);
            self.look_at_agent(event);
            self.add("without consent", usize::from(!event.consent));
            self.add("without consent, with money", usize::from(!event.consent && event.money.is_some()));
            let named_by_company = matches!(facts.account(index), Some(Account::Company(_)));
            self.add("without consent, with a company", usize::from(!event.consent && named_by_company));
        }
        self.look_at_origins(model);
        self.look_at_keys(model);
        self.look_at_floors(model);
        for session in &facts.sessions {
            let (begin_ms, end_ms) = (facts.events[session.entry()].at_ms, facts.events[session.last()].at_ms);
            let at =
                |holds: &dyn Fn(i64) -> bool| session.attached.iter().filter(|&&index| holds(facts.events[index].at_ms)).count();
            self.add("attached within a session", at(&|at_ms| at_ms <= end_ms));
            self.add("attached at the instant of the entry", at(&|at_ms| at_ms == begin_ms));
            self.add("attached after a session", at(&|at_ms| at_ms > end_ms));
            self.add("attached 30:00 after a session", at(&|at_ms| at_ms == end_ms + 1_800_000));
            let entry = &facts.events[session.entry()];
            let is_later = !std::ptr::eq(facts.brought_by(session), entry);
            self.add("sessions whose source comes after the entry", usize::from(is_later));
            let is_later = entry.url.is_none() && facts.entry_page(session).is_some();
            self.add("sessions whose page comes after the entry", usize::from(is_later));
            let touches = session.events.iter().filter(|&&index| origin(&facts.events[index]).source != DIRECT);
            self.add("sessions with several touches", usize::from(touches.count() > 1));
        }
        let alone = |&index: &usize| facts.identities[index].is_some() && facts.session(index).is_none();
        self.add("in no session", facts.all().filter(alone).count());
        let sessions = facts.sessions.iter();
        self.add("sessions of several events", sessions.filter(|session| session.events.len() > 1).count());
    }

    /// Counts what tells where an event came from.
    fn look_at_origins(&mut self, model: &Model) {
        for event in model.events() {
            let setup = &model.projects[&event.project];
            let referrer = |ignored: &[String]| {
                external(event.sent_referrer.as_deref()?, event.hostname.as_deref(), event.url.as_ref(), ignored)
            };
            let is_foreign = referrer(&[]).is_some();
            self.add("own sites and tills as referrers", usize::from(event.sent_referrer.is_some() && !is_foreign));
            self.add("ignored referrers", usize::from(is_foreign && referrer(&setup.ignored).is_none()));
            let has = |names: &[&str]| names.iter().any(|name| event.url.as_ref().is_some_and(|url| url.query(name).is_some()));
            self.add("clicks on ads", usize::from(has(&["gclid", "wbraid", "gbraid", "msclkid", "yclid", "ttclid", "sccid"])));
            self.add("shared links", usize::from(has(&["fbclid", "igsh"])));
            let source = event.url.as_ref().and_then(|url| url.query("utm_source"));
            self.add("brands in utm_source", usize::from(source.is_some_and(|source| origin(event).source != value(source))));
        }
    }

    fn look_at_time(&mut self, model: &Model, facts: &Facts<'_>, index: usize) {
        let timezone = model.organization.timezone;
        let event = &facts.events[index];
        let at = DateTime::from_timestamp_millis(event.at_ms).unwrap_or_default();
        let offset = |hours| (at + TimeDelta::hours(hours)).with_timezone(&timezone).offset().fix();
        self.add("near a change of the clocks", usize::from(offset(-12) != offset(12)));
        let local = at.with_timezone(&timezone).time();
        let from_midnight = local.signed_duration_since(chrono::NaiveTime::MIN).num_milliseconds();
        self.add("within 1 ms of midnight", usize::from(from_midnight <= 1 || from_midnight >= 86_399_999));

        let others = |holds: &dyn Fn(&Event, usize) -> bool| {
            let mut of_project = facts.of_project(&event.project);
            of_project.any(|other| facts.identities[other] == facts.identities[index] && holds(&facts.events[other], other))
        };
        let is_late = others(&|other, at| at < index && other.at_ms > event.at_ms);
        self.add("late: before an event recorded earlier", usize::from(is_late));
        let ties = others(&|other, at| at < index && other.at_ms == event.at_ms);
        self.add("same millisecond as another of the identity", usize::from(ties));
        for (gap, rule) in [(1_799_000, "gap of 29:59"), (1_800_000, "gap of 30:00"), (1_801_000, "gap of 30:01")] {
            self.add(rule, usize::from(others(&|other, _| other.at_ms + gap == event.at_ms)));
        }
    }

    fn look_at_identity(&mut self, facts: &Facts<'_>, index: usize) {
        let event = &facts.events[index];
        let cookieless = event.consent && event.user_id.is_none() && event.anonymous_id.is_none();
        self.add("cookieless visitors' events", usize::from(cookieless));
        let (Some(user), Some(anonymous)) = (&event.user_id, &event.anonymous_id) else { return };
        self.count("sign-ins");
        let earlier: Vec<_> = facts.events[..index]
            .iter()
            .filter(|earlier| earlier.project == event.project && earlier.anonymous_id.as_ref() == Some(anonymous))
            .collect();
        let linked = earlier.iter().find_map(|earlier| earlier.user_id.as_ref());
        self.add("links after the fact", usize::from(linked.is_none() && !earlier.is_empty()));
        self.add("second links ignored", usize::from(linked.is_some_and(|linked| linked != user)));
    }

    fn look_at_company(&mut self, facts: &Facts<'_>, index: usize) {
        let event = &facts.events[index];
        let email = reported_email(event);
        let of_email = email.as_deref().and_then(company_of_email);
        self.add("e-mails of companies", usize::from(of_email.is_some()));
        self.add("e-mails of free mail", usize::from(email.is_some() && of_email.is_none()));
        let explicit = explicit_company(event);
        let of_identity = explicit.is_none() && facts.company_in_project(index).is_some();
        self.add("companies explicit", usize::from(explicit.is_some()));
        self.add("companies by the identity", usize::from(of_identity));
        let differs = facts.company_in_project(index) != facts.company(index);
        self.add("companies other organization-wide than in the project", usize::from(differs));
        let Some(key) = explicit.filter(|_| event.name == "group") else { return };
        if event.metadata.field("domain").text().is_none() {
            return;
        }
        if domain_of(&key).is_some() {
            return self.count("domains reported of a domain");
        }
        let same = |earlier: &&Event| earlier.project == event.project && explicit_company(earlier).as_ref() == Some(&key);
        let earlier: Vec<_> = facts.events[..index].iter().filter(same).collect();
        let reported =
            earlier.iter().any(|reported| reported.name == "group" && reported.metadata.field("domain").text().is_some());
        self.add("domains reported late", usize::from(!reported && !earlier.is_empty()));
        self.add("second domains ignored", usize::from(reported));
    }

    fn look_at_money(&mut self, event: &Event) {
        let Some(money) = &event.money else { return };
        self.count(match money.value {
            ..0 => "refunds",
            0 => "values of 0",
            1.. => "orders",
        });
        self.add("money uncounted: servers only", usize::from(!money.counted));
        self.add("money unconverted in the project", usize::from(money.in_project.is_none()));
        self.add("money unconverted in the organization", usize::from(money.in_organization.is_none()));
        let converted = money.in_project.is_some_and(|amount| amount != money.value);
        self.add("money converted", usize::from(converted));
    }

    /// Counts what client hints tell.
    fn look_at_agent(&mut self, event: &Event) {
        let Some(agent) = &event.agent else { return };
        let (browser, version) = agent.browser.clone().unwrap_or_default();
        self.add("browsers by hints", usize::from(["Brave", "DuckDuckGo", "Vivaldi"].contains(&browser.as_str())));
        self.add("versions by hints", usize::from(version.is_some_and(|version| version.starts_with("124.1."))));
        self.add("Windows 11", usize::from(agent.os.as_deref() == Some("Windows 11")));
        self.add("tablets", usize::from(agent.device == "tablet"));
    }

    /// Counts the devices of which those who read what is kept see the second user first.
    fn look_at_floors(&mut self, model: &Model) {
        let is_kept = |event: &Event| {
            let day = day_of(event.at_ms, model.organization.timezone);
            model.floor(&event.project).is_none_or(|floor| day >= floor)
        };
        let mut firsts = BTreeMap::new();
        for event in model.events() {
            let (Some(user), Some(device)) = (&event.user_id, &event.anonymous_id) else { continue };
            let (first, was_kept) = *firsts.entry((&event.project, device)).or_insert((user, is_kept(event)));
            if first != user && !was_kept && is_kept(event) {
                self.count("devices whose first link lies below the floor, and another one above it");
            }
        }
    }

    fn look_at_keys(&mut self, model: &Model) {
        let mut projects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for event in model.events() {
            if let Some(key) = &event.external_id {
                projects.entry(key).or_default().insert(&event.project);
            }
        }
        let several = projects.values().filter(|projects| projects.len() > 1).count();
        self.add("external_ids in several projects", several);
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(rule, times)| writeln!(f, "{times:>8}  {rule}"))
    }
}
