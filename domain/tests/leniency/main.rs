//! Leniency: no body makes the intake panic, an event is refused for four reasons only, and what is
//! taken is the event that a sender without mistakes would have sent.
//!
//! `HEADCOUNT_BODIES` sets the number of bodies, `HEADCOUNT_SEED` the first of their seeds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod mutations;
mod reports;
mod resent;

use std::collections::BTreeMap;

use headcount_domain::agent::Agent;
use headcount_domain::intake::admission::{Client, Sender, Verdict, admit};
use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::json_fields::readable;
use headcount_domain::intake::policy::{BotPolicy, Policy, SignalsPolicy};
use headcount_domain::intake::segment::{Batch, Call, Envelope, Mapped, Message};
use headcount_domain::intake::submission::{Invalid, Submission};
use headcount_domain::intake::warning::Warning;
use headcount_domain::{Currency, Event, Instant, OrganizationId, ProjectId, Timezone};
use serde_json::value::RawValue;

/// 2026-11-20T15:00:00Z
pub(crate) const RECEIVED: Instant = Instant(1_795_186_800_000);

pub(crate) fn policy(timezone: &str) -> Policy {
    Policy {
        project: ProjectId(1),
        organization: OrganizationId(1),
        currency: Currency::USD,
        organization_currency: Currency::USD,
        rates: std::sync::Arc::default(),
        timezone: Timezone::parse(timezone).unwrap(),
        bots: BotPolicy::Record,
        signals: SignalsPolicy::Record,
        cookieless: true,
        server_only_revenue: false,
        no_referrers: headcount_domain::hosts::HostList::default(),
    }
}

fn admitted(submission: &Submission<'_>, policy: &Policy, received: Instant) -> Result<(Event, Vec<Warning>), Invalid> {
    let agent = Agent::default();
    let client = Client {
        sender: Sender::Public,
        address: Some(ClientAddress::parse("192.0.2.1")),
        user_agent: Some("a browser"),
        country: None,
        agent: &agent,
        gpc: false,
        dnt: false,
        salt: Some([7; 16]),
    };
    match admit(submission, policy, &client, received)? {
        Verdict::Record { event, warnings, .. } => Ok((*event, warnings)),
        Verdict::Dropped(reason) => panic!("{reason:?}"),
    }
}

/// Admits a body of `/track`.
pub(crate) fn tracked(body: &[u8]) -> Result<(Event, Vec<Warning>), Invalid> {
    Submission::read(body, |submission| admitted(submission, &policy("UTC"), RECEIVED)).flatten()
}

pub(crate) fn codes(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(|warning| format!("{} {}", warning.code, warning.param)).collect()
}

/// Checks that a refusal has one of the four reasons.
fn check_refusal(body: &[u8], invalid: &Invalid) {
    let text = readable(body);
    let fields = serde_json::from_str::<BTreeMap<String, &RawValue>>(&text);
    let text_of = |name: &str| {
        let json = fields.as_ref().ok()?.get(name)?.get();
        let is_number = json.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if is_number { Some(json.to_owned()) } else { serde_json::from_str::<String>(json).ok() }
    };
    let is_right = match (invalid.code, invalid.param.as_deref()) {
        ("invalid_json", None) => fields.is_err(),
        (_, Some("name")) => text_of("name").is_none_or(|name| !(1..=100).contains(&name.chars().count())),
        (_, Some("timestamp")) => fields.is_ok_and(|fields| fields.contains_key("timestamp")),
        (_, Some("external_id")) => text_of("external_id").is_some_and(|id| id.len() > 4_096),
        _ => false,
    };
    assert!(is_right, "{invalid:?} of {text}");
}

fn check_body(body: &[u8]) -> &'static str {
    match tracked(body) {
        Err(invalid) => {
            check_refusal(body, &invalid);
            "refused"
        }
        Ok((event, warnings)) => {
            let again = resent::body_of(&event);
            let (same, further) = tracked(again.as_bytes()).unwrap_or_else(|invalid| panic!("{invalid:?} of {again}"));
            assert_eq!(
                resent::without_acquisition(same),
                resent::without_acquisition(event),
                "{}",
                String::from_utf8_lossy(body)
            );
            assert!(further.iter().all(|warning| warning.code.as_str() == "no_rate"), "{further:?} of {again}");
            if warnings.is_empty() { "taken" } else { "repaired" }
        }
    }
}

/// Has a body taken as Segment's messages are.
fn check_messages(body: &[u8]) {
    let text = readable(body);
    let (messages, envelope) = match Batch::parse(&text) {
        Ok(batch) => (batch.messages, batch.envelope),
        Err(invalid) => {
            assert!(matches!(invalid.param.as_deref(), None | Some("batch")), "{invalid:?}");
            (vec![&*text], Envelope::default())
        }
    };
    for json in messages {
        let Ok(message) = Message::parse(json) else { continue };
        let mapped = Mapped::new(&message, message.call().unwrap_or(Call::Track), &envelope);
        if let Err(invalid) = admitted(&mapped.submission(), &policy("UTC"), RECEIVED) {
            let invalid = mapped.renamed(invalid);
            assert!(matches!(invalid.param.as_deref(), Some("event" | "timestamp" | "messageId")), "{invalid:?} of {json}");
        }
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |number| number.parse().unwrap())
}

#[test]
fn no_body_is_refused_but_for_four_reasons_nor_misread() {
    let (bodies, first) = (setting("HEADCOUNT_BODIES", 20_000), setting("HEADCOUNT_SEED", 0));
    let mut counts = BTreeMap::<_, u64>::new();
    for seed in first..first + bodies {
        let body = mutations::body(seed);
        let checked = std::panic::catch_unwind(|| {
            check_messages(&body);
            check_body(&body)
        });
        match checked {
            Ok(outcome) => *counts.entry(outcome).or_default() += 1,
            Err(panic) => {
                eprintln!("the body of HEADCOUNT_SEED={seed} HEADCOUNT_BODIES=1");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{counts:?}");
    for outcome in ["taken", "repaired", "refused"] {
        assert!(bodies < 1_000 || counts[outcome] * 20 > bodies, "too seldom {outcome}: {counts:?}");
    }
}
