//! Explanations of figures over random histories: all pages are what the naive model lists, and
//! their sum is the figure that other endpoints answer. Events are sealed between them, and the
//! server restarts.
//!
//! `HEADCOUNT_EXPLAIN_TRIALS` says how many histories.

use std::collections::BTreeMap;
use std::sync::Arc;

use headcount_histories::{History, Rng, Served, Size, Step, Subject, explained, model_of};
use headcount_model::decimal::Micros;
use headcount_model::{Ids, Json, Model, Question, same};

use crate::archive::seal;
use crate::histories::{number, send};
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms};

const TRIALS: u64 = 40;
const QUESTIONS: usize = 30;

/// What was compared.
#[derive(Debug, Default)]
struct ExplainedTally {
    pairs: usize,
    refused: usize,
    pages: usize,
    rows: BTreeMap<String, usize>,
    reports: usize,
    attributions: usize,
    sealed: u64,
}

fn micros(value: &Json) -> Micros {
    value.number().and_then(headcount_model::decimal::Decimal::micros).unwrap_or_else(|| panic!("{value} is no amount"))
}

fn with(question: &Question, changes: &[(&str, Json)]) -> Question {
    let mut question = question.clone();
    let Some(Json::Object(body)) = &mut question.body else { panic!("{question:?} has no body") };
    body.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    question
}

/// Asks for all pages, and returns them as one.
fn walk(served: &mut Served<Tenant>, question: &Question, limit: usize, tally: &mut ExplainedTally) -> Json {
    let (mut lists, mut cursor) = ([Vec::new(), Vec::new()], Json::Null);
    let mut first: Option<Json> = None;
    loop {
        let asked = with(question, &[("limit", Json::from(limit)), ("cursor", cursor)]);
        let (status, page) = served.ask(&asked);
        assert_eq!(status, 200, "{asked:?}: {page}");
        tally.pages += 1;
        for (list, name) in lists.iter_mut().zip(["rows", "not_counted"]) {
            assert!(page.field(name).items().len() <= limit, "{page}");
            list.extend(page.field(name).items().iter().cloned());
        }
        let known = first.get_or_insert_with(|| page.clone());
        for name in ["result", "position"] {
            assert_eq!(known.field(name), page.field(name), "{asked:?}");
        }
        cursor = page.field("next").clone();
        if cursor == Json::Null {
            break;
        }
    }
    let (Some(Json::Object(mut whole)), [rows, not_counted]) = (first, lists) else { panic!("a page is an object") };
    whole.extend(
        [("next", Json::Null), ("rows", Json::List(rows)), ("not_counted", Json::List(not_counted))]
            .map(|(name, value)| (name.to_owned(), value)),
    );
    Json::Object(whole)
}

/// Compares the figure with what the endpoint of the figure itself answers.
fn compare_with_figure(served: &mut Served<Tenant>, question: &Question, result: &Json, tally: &mut ExplainedTally) {
    let body = question.body.as_ref().expect("a body");
    let figure = body.field("figure").text().expect("a figure");
    let project = question.path.trim_end_matches("/explain");
    let given = |names: &[&str]| -> Vec<(String, Json)> {
        names
            .iter()
            .map(|name| ((*name).to_owned(), body.field(name).clone()))
            .filter(|(_, value)| *value != Json::Null)
            .collect()
    };
    if figure != "attribution" {
        let body =
            Json::Object(given(&["start_date", "end_date", "event_name", "filters", "segment", "people"]).into_iter().collect());
        let (status, report) = served.ask(&Question::post(&format!("{project}/analytics/report"), body));
        assert_eq!(status, 200, "{report}");
        assert_eq!(micros(report.field("totals").field(figure)), micros(result), "{question:?}");
        tally.reports += 1;
    } else if given(&["event_name", "filters", "segment", "people"]).is_empty() {
        let mut asked = Question::get(&format!("{project}/revenue/by-attribution"), &[("limit", "100")]);
        let query = given(&["start_date", "end_date", "model", "level", "dimension"]);
        asked.query.extend(query.into_iter().map(|(name, value)| (name, value.text().expect("a text").to_owned())));
        let (status, answer) = served.ask(&asked);
        assert_eq!((status, answer.field("truncated")), (200, &Json::from(false)), "{answer}");
        let value = body.field("value");
        let rows = answer.field("rows").items().iter().filter(|row| *value == Json::Null || row.field("dimension") == value);
        assert_eq!(rows.map(|row| micros(row.field("revenue"))).sum::<Micros>(), micros(result), "{question:?}: {answer}");
        tally.attributions += 1;
    }
}

/// Asks one question, and compares its pages. Returns them.
fn compare_pages(
    served: &mut Served<Tenant>,
    model: &Model,
    question: &Question,
    (rng, ids, tally): (&mut Rng, &mut Ids, &mut ExplainedTally),
) -> Option<Json> {
    let expected = model.answer(now_ms(), &with(question, &[("limit", Json::from(500))]));
    tally.pairs += 1;
    if expected.status != 200 {
        let (status, got) = served.ask(question);
        assert_eq!(status, expected.status, "{question:?}: {got}");
        tally.refused += 1;
        return None;
    }
    assert_eq!(*expected.body.field("next"), Json::Null, "the model has one page only");
    let longest =
        ["rows", "not_counted"].map(|name| expected.body.field(name).items().len()).into_iter().max().unwrap_or_default();
    let limit = 1 + rng.below(longest / 4 + 2);
    let got = walk(served, question, limit, tally);
    if let Err(difference) = same(&expected.body, &got, ids) {
        panic!("{difference} at {question:?} with limit {limit}\nexpected {}\ngot      {got}", expected.body);
    }
    let rows = got.field("rows").items();
    assert_eq!(
        rows.iter().map(|row| micros(row.field("contributes"))).sum::<Micros>(),
        micros(got.field("result")),
        "{question:?}"
    );
    for event in rows.iter().chain(got.field("not_counted").items()) {
        *tally.rows.entry(event.field("why").text().expect("a reason").to_owned()).or_default() += 1;
    }
    compare_with_figure(served, question, got.field("result"), tally);
    Some(got)
}

/// Compares ids and positions with those of the list of events.
fn compare_with_list(served: &mut Served<Tenant>, project: &str, explained: &[Json]) {
    let (status, listed) =
        served.ask(&Question::get(&format!("/projects/{{{project}}}/events"), &[("after_position", "0"), ("limit", "1000")]));
    assert_eq!(status, 200, "{listed}");
    let by_position: BTreeMap<String, &Json> =
        listed.field("events").items().iter().map(|event| (event.field("position").to_string(), event)).collect();
    for event in explained.iter().flat_map(|page| ["rows", "not_counted"].map(|name| page.field(name))).flat_map(Json::items) {
        let known = by_position[&event.field("position").to_string()];
        for (shown, listed) in [
            ("event_id", "id"),
            ("at", "timestamp"),
            ("name", "name"),
            ("identity_id", "identity_id"),
            ("value", "value"),
            ("currency", "currency"),
        ] {
            assert_eq!(event.field(shown), known.field(listed), "{event} is {known}");
        }
    }
}

/// The events of a random history, without questions.
fn events_only(seed: u64) -> History {
    let history = History::from_seed(seed, now_ms(), Size { events: 120, questions: 0 });
    let steps = history.steps.iter().filter(|step| !matches!(step, Step::Ask(_) | Step::Restart)).cloned().collect();
    let history = history.with_steps(steps);
    if seed % 3 == 1 { history.with_floors() } else { history }
}

fn trial(server: &Arc<TestServer>, seed: u64, tally: &mut ExplainedTally) {
    let history = events_only(seed);
    let mut rng = Rng::new(seed);
    let mut served = Served::new(Tenant::on(server));
    served.setup(&history);
    let (mut model, mut ids) = (model_of(&history), Ids::default());
    let half = history.steps.len() / 2;
    for (number, step) in history.steps.iter().enumerate() {
        send(&mut served, &mut model, step);
        if number == half && seed.is_multiple_of(2) {
            tally.sealed += seal(server).expect("it seals").1;
        }
    }
    if seed.is_multiple_of(5) {
        server.restart();
    }
    let mut asked: BTreeMap<String, Vec<Json>> = BTreeMap::new();
    for _ in 0..QUESTIONS {
        let project = rng.pick(&history.projects).name.clone();
        let question = explained(&history, &mut rng, &format!("/projects/{{{project}}}/explain"));
        let got = compare_pages(&mut served, &model, &question, (&mut rng, &mut ids, tally));
        asked.entry(project).or_default().extend(got);
    }
    for (project, pages) in asked {
        compare_with_list(&mut served, &project, &pages);
    }
}

#[test]
fn explanations_equal_the_model_and_add_up_to_the_figure() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let mut tally = ExplainedTally::default();
    let first = number("HEADCOUNT_FIRST_SEED", 11_000);
    // Instants of live histories can't be compared.
    let seeds = (first..).filter(|seed| !events_only(*seed).live);
    for seed in seeds.take(usize::try_from(number("HEADCOUNT_EXPLAIN_TRIALS", TRIALS)).expect("a small number")) {
        println!("seed {seed}");
        trial(&server, seed, &mut tally);
    }
    println!("{tally:#?}");
    let reasons = [
        "first_of_user",
        "first_of_session",
        "order",
        "refund",
        "touch",
        "direct",
        "no_consent",
        "no_session",
        "began_before",
        "server_only",
        "no_rate",
    ];
    let missing: Vec<&str> = reasons.into_iter().filter(|why| !tally.rows.contains_key(*why)).collect();
    assert!(missing.is_empty() && tally.sealed > 0, "no {missing:?} in {tally:?}");
    assert!(tally.pages > tally.pairs && tally.reports > tally.pairs / 4 && tally.attributions > tally.pairs / 20, "{tally:?}");
}
