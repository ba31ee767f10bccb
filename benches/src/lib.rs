//! Code shared by the benchmarks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark: a panic is a failure")]

pub mod connection;
pub mod sample;

use headcount_domain::agent::Agent;
use headcount_domain::hosts::HostList;
use headcount_domain::intake::admission::{Client, Sender, Verdict, admit};
use headcount_domain::intake::policy::{BotPolicy, Policy, Rates, SignalsPolicy};
use headcount_domain::intake::submission::Submission;
use headcount_domain::{Currency, Event, Instant, OrganizationId, ProjectId, Timezone};

/// Returns the policy of a typical project.
#[must_use]
pub fn policy() -> Policy {
    Policy {
        project: ProjectId(1),
        organization: OrganizationId(1),
        currency: Currency::USD,
        organization_currency: Currency::USD,
        rates: Rates::new().into(),
        timezone: Timezone::UTC,
        bots: BotPolicy::Drop,
        signals: SignalsPolicy::Record,
        cookieless: true,
        server_only_revenue: false,
        no_referrers: HostList::default(),
    }
}

/// Returns a typical client.
#[must_use]
pub fn client(agent: &Agent) -> Client<'_> {
    Client {
        sender: Sender::Public,
        address: None,
        user_agent: None,
        country: None,
        agent,
        gpc: false,
        dnt: false,
        salt: Some([0; 16]),
    }
}

/// Returns the event of a body received at `now`.
///
/// # Panics
/// If the event is refused or dropped.
#[must_use]
pub fn event(body: &str, policy: &Policy, agent: &Agent, now: Instant) -> Box<Event> {
    match Submission::read(body.as_bytes(), |submission| admit(submission, policy, &client(agent), now)).flatten().unwrap() {
        Verdict::Record { event, .. } => event,
        Verdict::Dropped(reason) => panic!("dropped: {reason:?}"),
    }
}
