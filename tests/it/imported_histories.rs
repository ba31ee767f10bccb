//! Random histories whose projects are exported and imported elsewhere: what is kept of them comes
//! to the same answers.
//!
//! `HEADCOUNT_IMPORT_TRIALS` says how many histories with floors, `HEADCOUNT_FIRST_SEED` from which
//! seed on.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::NaiveDate;
use headcount_histories::{History, Rng, Served, Step, Subject as _, compare, model_of, questions};
use headcount_model::event::Event;
use headcount_model::time::{day_of, shown};
use headcount_model::{Ids, Json, Model, same};

use crate::archive::KeepSealing;
use crate::client::Call;
use crate::erased_histories::{erase_and_wait, identities};
use crate::histories::{can_be_asked, history, id_of, number, send, with_ids};
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms};

/// How many histories with floors, unless `HEADCOUNT_IMPORT_TRIALS` says otherwise.
const TRIALS: u64 = 4;
/// How many rows a request imports.
const ROWS: usize = 50;

/// The rows of a project's export.
fn exported(tenant: &Tenant, project: &str) -> Vec<String> {
    let answer = tenant.get(&format!("/projects/{}/export", id_of(tenant, project)));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().lines().map(str::to_owned).collect()
}

/// Imports rows. Returns how many were recorded, and how many dropped.
fn imported(tenant: &Tenant, project: &str, rows: &[String]) -> [u64; 2] {
    let target = format!("/projects/{}/import", id_of(tenant, project));
    let call = Call::post(target).bearer(&tenant.token);
    let answer = tenant.send(call.text("application/json", format!("{{\"events\": [{}]}}", rows.join(",")))).ok(202);
    assert_eq!(answer["errors"].as_array().map(Vec::len), Some(0), "{answer}");
    ["recorded", "dropped"].map(|name| answer[name].as_u64().unwrap())
}

/// What the export of a project has, imported to an empty project of another organization, gives
/// the same answers about that project.
#[test]
fn an_imported_export_gives_the_same_answers() {
    let server = TestServer::shared();
    let mut compared = 0;
    for seed in (2000..2040).filter(|seed| !history(*seed).live).take(6) {
        let history = history(seed);
        let (mut first, mut second) = (Served::new(Tenant::on(&server)), Served::new(Tenant::on(&server)));
        first.setup(&history);
        second.setup(&history);
        for step in &history.steps {
            match step {
                Step::Track { project, body } => drop(first.track(project, body)),
                Step::Batch { project, bodies } => drop(first.batch(project, bodies)),
                Step::Rates(rates) => first.rates(rates),
                _ => {}
            }
        }
        for project in &history.projects {
            for rows in exported(&first.server, &project.name).chunks(ROWS) {
                assert_eq!(imported(&second.server, &project.name, rows), [rows.len() as u64, 0]);
            }
        }
        let mut ids = Ids::default();
        let asked = questions(&history, &mut Rng::new(seed), 120);
        for question in asked.iter().filter(|question| can_be_asked(question)) {
            let (one, other) = (first.ask(question), second.ask(question));
            if one.0 == 200 {
                let same = same(&with_ids(one.1), &other.1, &mut ids);
                assert!(same.is_ok(), "{same:?} at {question:?} of {history}");
                compared += 1;
            }
            assert_eq!(one.0, other.0, "{question:?} of {history}");
        }
    }
    assert!(compared >= 200, "{compared} answers compared");
}

/// What happened to the histories with floors.
#[derive(Debug, Default)]
struct Tally {
    rows: usize,
    removed: usize,
    dropped: usize,
    erased: usize,
    kills: usize,
    compared: usize,
}

/// What of a row the model has of an event.
fn named(event: &Event) -> [Json; 8] {
    let money = event.money.as_ref();
    let value = money.map_or(Json::Null, |money| Json::from(headcount_model::decimal::Decimal::of_micros(money.value)));
    [
        shown(event.at_ms),
        Json::from(event.name.clone()),
        Json::from(event.user_id.clone()),
        Json::from(event.anonymous_id.clone()),
        Json::from(event.external_id.clone()),
        Json::from(event.group.as_ref().map(|(_, id)| id.clone())),
        value,
        Json::from(money.map(|money| money.currency.clone())),
    ]
}

/// The same of a row.
fn fields(row: &str) -> [Json; 8] {
    let row = Json::parse(row).unwrap();
    ["timestamp", "name", "user_id", "anonymous_id", "external_id", "group_id", "value", "currency"]
        .map(|name| row.field(name).clone())
}

/// A history in both, in which somebody is erased and the server is killed.
fn made(served: &mut Served<Tenant>, history: &History, rng: &mut Rng, tally: &mut Tally) -> Model {
    let mut model = model_of(history);
    for step in history.steps.iter().filter(|step| **step != Step::Restart) {
        send(served, &mut model, step);
        let known = if rng.chance(2) { identities(&model) } else { Vec::new() };
        if !known.is_empty() {
            let identity = rng.pick(&known).clone();
            erase_and_wait(&served.server, &identity);
            model.erase(&BTreeSet::from([identity]));
            tally.erased += 1;
        }
        if rng.chance(1) {
            served.server.server.kill();
            tally.kills += 1;
        }
    }
    model
}

/// Moves what is kept of each project, some of which have floors already where they come. Returns
/// how the model has it then.
fn moved(
    (from, to): (&mut Served<Tenant>, &mut Served<Tenant>),
    (model, history, seed): (&Model, &History, u64),
    rng: &mut Rng,
    tally: &mut Tally,
) -> Model {
    let day = rng.chance(40).then(|| *rng.pick(&history.days));
    let mut kept = model.kept(day);
    for project in &history.projects {
        let is_its = |event: &&Event| event.project == project.name;
        let events: Vec<&Event> = model.events().iter().filter(is_its).filter(|event| !event.erased).collect();
        let is_kept = |floor: Option<NaiveDate>, event: &&&Event| {
            floor.is_none_or(|floor| day_of(event.at_ms, history.timezone()) >= floor)
        };
        let floor = model.floor(&project.name);
        let expected: Vec<[Json; 8]> = events.iter().filter(|event| is_kept(floor, event)).map(|event| named(event)).collect();
        let rows = exported(&from.server, &project.name);
        let got: Vec<[Json; 8]> = rows.iter().map(|row| fields(row)).collect();
        assert_eq!(got, expected, "seed {seed}: the export of {}", project.name);
        if let Some(day) = day {
            to.raise_floor(&project.name, day);
            kept.raise_floor(&project.name, day);
        }
        let mut counts = [0, 0];
        for rows in rows.chunks(ROWS) {
            let [recorded, dropped] = imported(&to.server, &project.name, rows);
            counts = [counts[0] + recorded, counts[1] + dropped];
            if rng.chance(20) {
                to.server.server.kill();
                tally.kills += 1;
            }
        }
        let wanted = kept.events().iter().filter(is_its).count();
        assert_eq!(
            counts,
            [wanted as u64, (rows.len() - wanted) as u64],
            "seed {seed}: the import of {} from {day:?}",
            project.name
        );
        tally.rows += rows.len();
        tally.removed += events.len() - rows.len();
        tally.dropped += rows.len() - wanted;
        let again = exported(&to.server, &project.name);
        let expected: Vec<[Json; 8]> = kept.events().iter().filter(is_its).map(named).collect();
        let got: Vec<[Json; 8]> = again.iter().map(|row| fields(row)).collect();
        assert_eq!(got, expected, "seed {seed}: the second export of {}", project.name);
    }
    kept
}

#[test]
fn what_is_kept_of_projects_with_floors_is_all_that_is_moved() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let sealing = KeepSealing::on(&server);
    let mut tally = Tally::default();
    let first = number("HEADCOUNT_FIRST_SEED", 2_100);
    let trials = usize::try_from(number("HEADCOUNT_IMPORT_TRIALS", TRIALS)).unwrap();
    for seed in (first..).filter(|seed| !history(*seed).live).take(trials) {
        let (history, mut rng) = (history(seed), Rng::new(seed ^ 0x1337));
        let history = if seed % 5 < 3 { history.with_floors() } else { history };
        let (mut from, mut to) = (Served::new(Tenant::on(&server)), Served::new(Tenant::on(&server)));
        from.setup(&history);
        to.setup(&history);
        let model = made(&mut from, &history, &mut rng, &mut tally);
        let kept = moved((&mut from, &mut to), (&model, &history, seed), &mut rng, &mut tally);
        let mut ids = Ids::default();
        // Receipts are those of the import, and ids of companies those that an answer shows.
        let comparable = |question: &&headcount_model::Question| {
            let differs = ["/intake", "/top-users"].iter().any(|end| question.path.ends_with(end));
            can_be_asked(question) && !differs && !question.path.contains("{company:")
        };
        let asked = questions(&history, &mut rng, 120);
        for question in asked.iter().filter(comparable) {
            let same = compare(kept.answer(now_ms(), question), to.ask(question), &mut ids);
            assert!(same.is_ok(), "seed {seed}: {same:?} at {question:?} of {history}");
            tally.compared += 1;
        }
    }
    sealing.stop();
    println!("{tally:?}");
    assert!(tally.compared >= 50 * trials && tally.rows > 5 * trials && tally.removed > 0, "{tally:?}");
}
