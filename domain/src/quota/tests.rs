use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::acquisition::Channel;
use crate::company::CompanyKey;
use crate::ids::ProjectId;
use crate::intake::event::Details;
use crate::records::NoSource;
use crate::time::{Day, Instant};

fn hasher() -> KeyHasher {
    KeyHasher::new([7; 16])
}

fn all() -> Reached {
    Quotas { groups: 0, companies: 0, sources: 0, pages: 0 }.reached(Cardinality::default())
}

fn counts(project: &Project) -> [usize; 4] {
    let Cardinality { companies, groups, sources, pages } = project.cardinality(&hasher());
    [groups, companies, sources, pages]
}

fn pick(texts: &'static [&'static str]) -> impl Strategy<Value = Option<&'static str>> {
    proptest::option::of(proptest::sample::select(texts))
}

fn who() -> impl Strategy<Value = crate::intake::event::SentIds> {
    (pick(&["u1", "u2"]), pick(&["a1", "a2", "a3"]), proptest::option::of(0..2u128)).prop_map(|(user, anonymous, visitor)| {
        crate::intake::event::SentIds {
            user_id: user.map(Into::into),
            anonymous_id: anonymous.map(Into::into),
            visitor: visitor.filter(|_| user.is_none() && anonymous.is_none()),
        }
    })
}

fn acquisition() -> impl Strategy<Value = Option<Acquisition>> {
    let text = |texts| proptest::sample::select(texts);
    let parts =
        (text(&["google", "mail", "(direct)"][..]), text(&["cpc", "(none)"][..]), text(&["spring", "fall", "(none)"][..]));
    proptest::option::of(parts.prop_map(|(source, medium, campaign)| Acquisition {
        source: source.into(),
        medium: medium.into(),
        campaign: campaign.into(),
        channel: Channel::Direct,
    }))
}

fn event() -> impl Strategy<Value = Event> {
    let company = pick(&["cus_1", "cus_2", "acme.com"]);
    let domains = (pick(&["acme.com", "bolt.com", "core.com"]), pick(&["acme.com", "dorn.com", "epic.com"]));
    let group = (pick(&["team", "company"]), pick(&["g1", "g2"]));
    let page = (pick(&["/a", "/b?x=1", "/c"]), pick(&["news.example", "blog.example"]));
    let name = proptest::sample::select(&["pageview", "group", "order"][..]);
    (name, 0..300i64, who(), company, domains, group, page, acquisition()).prop_map(
        |(name, minute, who, company, (domain, email), (kind, group), (url, referrer_host), acquisition)| {
            let key = |text: &str| CompanyKey::from_group_id(text).unwrap();
            let details = Details {
                url: url.map(Into::into),
                hostname: Some("own.example".into()),
                referrer_host: referrer_host.map(Into::into),
                group_type: kind.map(Into::into),
                group_id: group.map(Into::into),
                acquisition,
                ..Details::default()
            };
            Event {
                project: ProjectId(1),
                time: Instant(1_641_600_000_000 + minute * 60_000),
                received: Instant(1_641_600_000_000),
                day: Day(19_000),
                interactive: minute % 4 > 0,
                name: name.into(),
                who,
                external_id: None,
                money: None,
                company: company.map(key),
                company_domain: domain.map(key),
                email_company: email.map(key),
                details,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 400 } else { 2_000 }))]

    /// The prediction before an event matches what applying it does.
    #[test]
    fn exactly_the_events_that_make_something_new_would_exceed(events in proptest::collection::vec(event(), 1..40)) {
        let (mut project, hasher) = (Project::default(), hasher());
        for (event, position) in events.iter().zip(1..) {
            let predicted = project.would_exceed(&Mentions::of(event, all(), &hasher), &NoSource).unwrap();
            let before = counts(&project);
            project.apply(event, position, &hasher, &NoSource).unwrap();
            let after = counts(&project);
            match predicted {
                // The prediction does not cover whether an event that merges two histories starts a
                // session.
                Some(Quota::Sources) if event.who.user_id.is_some() && event.who.anonymous_id.is_some() => {}
                Some(quota) => prop_assert!(after[quota as usize] > before[quota as usize], "{quota:?}: {event:?}"),
                None => prop_assert_eq!(after, before, "{:?}", event),
            }
            // Quotas that are not exhausted are not checked.
            for quota in Quota::ALL {
                let predicted = project.would_exceed(&Mentions::of(event, Reached(Reached::bit(quota)), &hasher), &NoSource).unwrap();
                prop_assert_eq!(predicted, None, "it was applied");
            }
        }
    }
}

#[test]
fn a_quota_is_reached_with_as_many_as_it_allows() {
    let quotas = Quotas { groups: 2, ..Quotas::default() };
    let has = |groups, sources| Cardinality { groups, sources, ..Cardinality::default() };
    assert!(quotas.reached(has(1, 99_999)).is_empty());
    let reached = quotas.reached(has(2, 100_000));
    assert_eq!(Quota::ALL.map(|quota| reached.has(quota)), [true, false, true, false]);
    assert!(Quotas::UNLIMITED.reached(has(1 << 40, 1 << 40)).is_empty());
}

#[test]
fn nothing_is_asked_of_kinds_that_are_not_exhausted() {
    let pages = Reached(Reached::bit(Quota::Pages));
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..200 {
        let event = event().new_tree(&mut runner).unwrap().current();
        let mentions = Mentions::of(&event, pages, &hasher());
        assert!(mentions.things.iter().all(|thing| matches!(thing, Thing::Name(Quota::Pages, _))), "{event:?}");
    }
}
