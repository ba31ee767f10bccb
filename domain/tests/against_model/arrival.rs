//! The same events in another order of arrival: where nothing is pinned when it is recorded, every
//! answer is the same.

use std::collections::{BTreeMap, BTreeSet};

use headcount_histories::{History, Rng, Size, Step, Subject, model_of, questions, sender_of};
use headcount_model::event::Event;
use headcount_model::facts::{domain_of, explicit_company, reported_email};
use headcount_model::text::{company_of_email, reads_as_domain};
use headcount_model::{Json, Question};

use super::{Folded, NOW_MS, answers, trials};

type Sent = (String, String);

/// A history's events, one by one, without those that would find something pinned by another one: a
/// second user of an anonymous id, a second company of an identity, a second domain of a company, a
/// second event of an `external_id`, an equal instant.
fn unpinned(history: &History) -> Vec<Sent> {
    let mut model = model_of(history);
    let mut kept: Vec<Sent> = Vec::new();
    let (mut instants, mut links) = (BTreeSet::new(), BTreeMap::new());
    for (project, body) in sent(history) {
        let before = model.events().len();
        let _ = model.record(&project, &body, NOW_MS, &sender_of(&body));
        let Some(event) = model.events().get(before) else { continue };
        let agrees = match (&event.user_id, &event.anonymous_id) {
            (Some(user), Some(anonymous)) => *links.entry((project.clone(), anonymous.clone())).or_insert(user.clone()) == *user,
            _ => true,
        };
        if agrees && instants.insert(event.at_ms) {
            kept.push((project, body));
        }
    }
    let (mut companies, mut domains) = (BTreeMap::new(), BTreeMap::new());
    kept.retain(|(project, body)| {
        let before = model.events().len();
        let without_key = without_external_id(body);
        model.record(project, &without_key, NOW_MS, &sender_of(&without_key)).unwrap();
        let event = &model.events()[before];
        one_domain(&mut domains, event) && one_company(&mut companies, &links, event)
    });
    kept
}

fn without_external_id(body: &str) -> String {
    let Json::Object(mut fields) = Json::parse(body).unwrap() else { unreachable!("events are objects") };
    fields.remove("external_id");
    Json::Object(fields).to_string()
}

fn one_company(
    companies: &mut BTreeMap<(String, String), String>,
    links: &BTreeMap<(String, String), String>,
    event: &Event,
) -> bool {
    let company = explicit_company(event).or_else(|| reported_email(event).as_deref().and_then(company_of_email));
    let anonymous = event.anonymous_id.clone().map(|id| (event.project.clone(), id));
    let linked = anonymous.as_ref().and_then(|id| links.get(id)).map(|user| format!("user {user}"));
    let user = event.user_id.as_ref().map(|user| format!("user {user}")).or(linked);
    let identity = user.or(anonymous.map(|(_, id)| format!("anonymous {id}"))).or(event.visitor.clone());
    let (Some(identity), Some(company)) = (identity, company) else { return true };
    *companies.entry((event.project.clone(), identity)).or_insert(company.clone()) == company
}

/// One domain of each company in each project: the first recorded is pinned.
fn one_domain(domains: &mut BTreeMap<(String, String), String>, event: &Event) -> bool {
    let reported = event.metadata.field("domain").filled().and_then(reads_as_domain);
    let key = explicit_company(event).filter(|key| event.name == "group" && domain_of(key).is_none());
    let (Some(key), Some(reported)) = (key, reported) else { return true };
    *domains.entry((event.project.clone(), key)).or_insert(reported.clone()) == reported
}

fn sent(history: &History) -> Vec<Sent> {
    let mut sent = Vec::new();
    for step in &history.steps {
        match step {
            Step::Track { project, body } => sent.push((project.clone(), body.clone())),
            Step::Batch { project, bodies } => sent.extend(bodies.iter().map(|body| (project.clone(), body.clone()))),
            _ => {}
        }
    }
    sent
}

fn folded(history: &History, events: &[Sent]) -> Folded {
    let step = |(project, body): &Sent| Step::Track { project: project.clone(), body: body.clone() };
    Folded::of(&history.with_steps(events.iter().map(step).collect()))
}

/// Every question that can be asked, also of the companies that there are.
fn asked(history: &History, seed: u64, folded: &mut Folded) -> Vec<Question> {
    let mut asked = questions(history, &mut Rng::new(seed), 120);
    let steps = history.steps.iter().filter_map(|step| if let Step::Ask(asked) = step { Some(asked.clone()) } else { None });
    asked.extend(steps);
    asked.retain(|asked| answers::is_answered(&Step::Ask(asked.clone())) && !asked.path.contains("{company:"));
    let all = Question::get("/companies/top", &[("range_days", "365"), ("limit", "100")]);
    for company in folded.ask(&all).1.field("companies").items() {
        let id = company.field("company_id").text().unwrap();
        for operation in ["metrics", "top-users"] {
            asked.push(Question::get(&format!("/companies/{id}/{operation}"), &[("range_days", "365")]));
        }
    }
    asked.push(all);
    asked
}

#[test]
fn order_of_arrival_changes_no_answer() {
    let (mut answers, mut events) = (0, 0);
    for seed in 0..trials(60) {
        let history = History::from_seed(seed, NOW_MS, Size { events: 150, questions: 0 });
        let mut arrived = unpinned(&history);
        events += arrived.len();
        let mut usual = folded(&history, &arrived);
        let mut rng = Rng::new(seed);
        for order in ["reversed", "shuffled", "shuffled again"] {
            if order == "reversed" {
                arrived.reverse()
            } else {
                rng.shuffle(&mut arrived)
            }
            let mut other = folded(&history, &arrived);
            for question in asked(&history, seed, &mut usual) {
                answers += 1;
                assert_eq!(usual.ask(&question), other.ask(&question), "seed {seed}, {order}: {question:?}\n{arrived:#?}");
            }
        }
    }
    println!("{events} events, {answers} answers");
    assert!(events > 0 && answers > 0);
}
