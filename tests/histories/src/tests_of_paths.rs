//! Funnels and journeys of histories, as the model answers them.

use super::tests::{NOW_MS, subject};
use super::{Coverage, History, Rng, Size, Step, above, model_of, run, scans, sender_of};
use headcount_model::{Json, Model, Question};
use std::collections::BTreeSet;

fn history(seed: u64) -> History {
    History::from_seed(seed, NOW_MS, Size { events: 120, questions: 0 }).with_walks()
}

/// Questions about the ways that people take.
fn paths(history: &History, count: usize) -> Vec<Question> {
    let is_path = |question: &Question| ["/funnel", "/people", "/journeys"].iter().any(|end| question.path.ends_with(end));
    scans(history, &mut Rng::new(history.seed), count).into_iter().filter(is_path).collect()
}

#[test]
fn a_server_of_the_model_answers_scans_and_paths_have_something_to_tell() {
    let mut coverage = Coverage::default();
    for seed in 0..60 {
        let history = history(seed);
        let mut steps: Vec<Step> = history.steps.iter().filter(|step| !matches!(step, Step::Ask(_))).cloned().collect();
        steps.extend(scans(&history, &mut Rng::new(seed), 60).into_iter().map(Step::Ask));
        let history = history.with_steps(steps);
        let history = if seed.is_multiple_of(3) { history.with_floors() } else { history };
        match run(&history, &mut subject(), model_of(&history)) {
            Ok(covered) => coverage.merge(&covered),
            Err(failure) => panic!("seed {seed}: {failure}\n{history}"),
        }
    }
    println!("{coverage}");
    for rule in RULES {
        assert!(coverage.of(rule) >= 2, "too seldom: {rule}\n{coverage}");
    }
}

const RULES: [&str; 47] = [
    "funnels with a third step: any, account, session",
    "funnels with a third step: any, account, time",
    "funnels with a third step: any, identity, session",
    "funnels with a third step: any, identity, time",
    "funnels with a third step: loose, account, session",
    "funnels with a third step: loose, account, time",
    "funnels with a third step: loose, identity, session",
    "funnels with a third step: loose, identity, time",
    "funnels with a third step: strict, account, session",
    "funnels with a third step: strict, account, time",
    "funnels with a third step: strict, identity, session",
    "funnels with a third step: strict, identity, time",
    "funnels with a sixth step",
    "funnels in which somebody dropped",
    "funnels completed",
    "funnels with orders",
    "funnels with refunds",
    "funnels with money without a rate",
    "funnels with several rows",
    "funnels with rows cut",
    "funnels compared",
    "steps of one millisecond",
    "steps that are goals",
    "chains exactly as long as they may be",
    "people who reached",
    "people who dropped",
    "companies in funnels",
    "people on several pages",
    "journeys by path, from",
    "journeys by path, to",
    "journeys by path, from the start",
    "journeys by event_name, from",
    "journeys by event_name, to",
    "journeys by event_name, from the start",
    "journeys by path_or_event, from",
    "journeys by path_or_event, to",
    "journeys by path_or_event, from the start",
    "journeys cut",
    "nodes of others",
    "links of others",
    "nodes with money",
    "nodes of fewer users than sessions",
    "nodes that are groups",
    "lists of whole journeys cut",
    "asked funnel: 400",
    "asked funnel people: 400",
    "asked journeys: 400",
];

/// The model of a history, each event as `change` makes it.
fn recorded(history: &History, change: impl Fn(&str) -> String) -> Model {
    let mut model = model_of(history);
    for step in &history.steps {
        let (project, bodies) = match step {
            Step::Track { project, body } => (project, std::slice::from_ref(body)),
            Step::Batch { project, bodies } => (project, bodies.as_slice()),
            _ => continue,
        };
        for body in bodies {
            let _refused = model.record(project, &change(body), NOW_MS, &sender_of(body));
        }
    }
    model
}

/// An event without its anonymous id, if it has a user: it links nothing.
fn unlinked(body: &str) -> String {
    let Ok(Json::Object(mut fields)) = Json::parse(body) else { return body.to_owned() };
    if fields.get("user_id").and_then(Json::filled).is_some() {
        fields.remove("anonymous_id");
    }
    Json::Object(fields).to_string()
}

/// An event without money.
fn free(body: &str) -> String {
    body.replace("\"value\": ", "\"worth\": ")
}

#[test]
fn links_money_erasures_and_floors_move_funnels_and_journeys() {
    let mut moved = Coverage::default();
    for seed in (0..60).filter(|seed| !history(*seed).live) {
        let history = history(seed);
        let model = recorded(&history, str::to_owned);
        let known: BTreeSet<_> = model.facts().identities.into_iter().flatten().collect();
        let erased = BTreeSet::from([Rng::new(seed).pick(&known.into_iter().collect::<Vec<_>>()).clone()]);
        let mut days = history.days.clone();
        days.sort_unstable();
        let (mut without, mut floored) = (model.clone(), model.clone());
        without.erase(&erased);
        history.projects.iter().for_each(|project| floored.raise_floor(&project.name, days[1]));
        let others = [
            ("links", recorded(&history, unlinked)),
            ("money", recorded(&history, free)),
            ("an erasure", without),
            ("a floor", floored),
        ];
        for question in paths(&history, 60) {
            let operation = question.path.rsplit('/').next().expect("an operation");
            let question = above(question.clone(), |_| Some(days[1])).expect("a question of a project");
            let answer = model.answer(NOW_MS, &question);
            for (what, other) in &others {
                let other = other.answer(NOW_MS, &question);
                let is_moved = (answer.status, other.status) == (200, 200) && answer != other;
                moved.add(&format!("{operation} moved by {what}"), usize::from(is_moved));
            }
        }
    }
    println!("{moved}");
    for what in ["links", "money", "an erasure", "a floor"] {
        let of = |operation: &str| moved.of(&format!("{operation} moved by {what}"));
        let counts = ["funnel", "people", "journeys"].map(of);
        // Floors move only what begins before them, and money moves nobody.
        let is_enough = match what {
            "a floor" => counts.iter().sum::<usize>() >= 3,
            "money" => counts[0] >= 5 && counts[2] >= 5,
            _ => counts.iter().all(|count| *count >= 5),
        };
        assert!(is_enough, "too seldom: {what}\n{moved}");
    }
}
