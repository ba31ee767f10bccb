//! Random histories over HTTP in which identities are exported, compared with the naive model's
//! list of their events. Floors rise in some of them, others are erased before, and the server is
//! killed while it makes an export.
//!
//! `HEADCOUNT_TRIALS` says how many histories, `HEADCOUNT_FIRST_SEED` from which seed on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_histories::{Rng, Served, Subject as _, model_of};
use headcount_model::answers::artifact;
use headcount_model::facts::Identity;
use headcount_model::{Ids, Json, same};
use serde_json::{Value, json};

use crate::archive::KeepSealing;
use crate::erased_histories::{erase_and_wait, identities, named};
use crate::histories::{history, id_of, number, send};
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms};

/// How many histories, unless `HEADCOUNT_TRIALS` says otherwise.
const TRIALS: u64 = 5;
/// The lists of an artifact whose rows are compared project by project.
const OF_PROJECTS: [&str; 3] = ["events", "sessions", "orders"];

/// The artifact of a new export. `delay`: when the server is killed while it makes it.
fn exported(tenant: &Tenant, mut body: Value, delay: Option<Duration>) -> Value {
    body["type"] = json!("export");
    let made = tenant.post("/privacy-requests", &body).ok(201);
    if let Some(delay) = delay {
        std::thread::sleep(delay);
        tenant.server.kill();
    }
    let (path, until) = (format!("/privacy-requests/{}", made["id"].as_str().unwrap()), Instant::now() + Duration::from_secs(60));
    while tenant.get(&path).ok(200)["status"] != "completed" {
        assert!(Instant::now() < until, "{made} does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    tenant.get(&format!("{path}/download")).ok(200)
}

/// The artifact as the model has it: rows by the names of their projects, anonymous ids without
/// them, identities by their ids.
fn regrouped(tenant: &Tenant, artifact: &Value, projects: &[String]) -> Json {
    let by_id: BTreeMap<String, &String> = projects.iter().map(|name| (id_of(tenant, name), name)).collect();
    let mut lists: BTreeMap<&String, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
    for name in projects {
        lists.insert(name, OF_PROJECTS.into_iter().map(|list| (list, Vec::new())).collect());
    }
    for list in OF_PROJECTS {
        let rows = artifact[list].as_array().unwrap();
        let at = |row: &Value| ["timestamp", "started_at", "at"].iter().find_map(|name| row[name].as_str().map(str::to_owned));
        assert!(rows.is_sorted_by_key(|row| (at(row), row["project_id"].as_str().map(str::to_owned))), "{list}");
        for row in rows {
            let project = by_id[row["project_id"].as_str().unwrap()];
            lists.get_mut(project).unwrap().get_mut(list).unwrap().push(row.clone());
        }
    }
    let mut whole = artifact.clone();
    let without_projects = |identity: &mut Value| {
        let ids = identity["anonymous_ids"].as_array().unwrap().iter().map(|id| id["anonymous_id"].as_str().unwrap());
        identity["anonymous_ids"] = json!(ids.collect::<BTreeSet<_>>());
    };
    without_projects(&mut whole["identity"]);
    whole["identities"].as_array_mut().unwrap().iter_mut().for_each(without_projects);
    whole["projects"] = json!(lists);
    Json::parse(&whole.to_string()).unwrap()
}

/// The identities that have an id of their own, those of most events first.
fn busiest(model: &headcount_model::Model) -> Vec<Identity> {
    let facts = model.facts();
    let events = |identity: &Identity| facts.all().filter(|&index| facts.identities[index].as_ref() == Some(identity)).count();
    let mut known = identities(model);
    known.sort_by_key(|identity| std::cmp::Reverse(events(identity)));
    known
}

/// The request about an identity, and all identities that it is about.
fn subject(tenant: &Tenant, model: &headcount_model::Model, identity: &Identity, rng: &mut Rng) -> (Value, BTreeSet<Identity>) {
    let facts = model.facts();
    let (_, emails) = facts.emails(identity);
    if let Some(email) = emails.first().filter(|_| rng.below(3) == 0) {
        let has = |other: &&Identity| facts.emails(other).1.contains(email);
        let all: BTreeSet<Identity> = facts.identities.iter().flatten().filter(has).cloned().collect();
        return (json!({ "email": email }), all);
    }
    (named(tenant, identity).expect("visitors are not asked about"), BTreeSet::from([identity.clone()]))
}

#[test]
fn artifacts_equal_the_model() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let sealing = KeepSealing::on(&server);
    let first = number("HEADCOUNT_FIRST_SEED", 8_000);
    let trials = usize::try_from(number("HEADCOUNT_TRIALS", TRIALS)).unwrap();
    let is_fit = |seed: &u64| !history(*seed).live;
    let (mut compared, mut events, mut floors, mut erased, mut kills) = (0, 0, 0, 0, 0);
    for seed in (first..).filter(is_fit).take(trials) {
        let history = history(seed);
        let mut rng = Rng::new(seed);
        let mut served = Served::new(Tenant::on(&server));
        served.setup(&history);
        let (mut model, mut ids) = (model_of(&history), Ids::default());
        for part in history.steps.chunks(history.steps.len() / 2 + 1) {
            part.iter().for_each(|step| send(&mut served, &mut model, step));
            floors += history.projects.iter().filter(|project| model.floor(&project.name).is_some()).count();
            let mut known = busiest(&model);
            if known.len() > 2 && rng.chance(30) {
                let identity = known.remove(2);
                erase_and_wait(&served.server, &identity);
                model.erase(&BTreeSet::from([identity]));
                known = busiest(&model);
                erased += 1;
            }
            for identity in known.iter().take(2).chain((!known.is_empty()).then(|| rng.pick(&known).clone()).as_ref()) {
                let (body, of) = subject(&served.server, &model, identity, &mut rng);
                let expected = artifact(&model, now_ms(), &of);
                let projects: Vec<String> = model.projects.keys().cloned().collect();
                let delay = rng.chance(15).then(|| Duration::from_millis(rng.below(40) as u64));
                kills += usize::from(delay.is_some());
                let got = exported(&served.server, body.clone(), delay);
                let mut got_json = regrouped(&served.server, &got, &projects);
                sort_identities(&mut got_json, &expected);
                let is_same = same(&expected, &got_json, &mut Ids::default()).and_then(|()| same(&expected, &got_json, &mut ids));
                assert!(is_same.is_ok(), "seed {seed}: {is_same:?} of {body} in {history}\n{got}");
                (compared, events) = (compared + 1, events + got["events"].as_array().unwrap().len());
            }
        }
    }
    sealing.stop();
    let tally = format!("{compared} artifacts of {events} events compared, {floors} floors, {erased} erased, {kills} kills");
    println!("{tally}");
    assert!(compared >= trials && events >= 5 * trials, "{tally}");
    assert!(trials < 10 || floors.min(erased).min(kills) > 0, "{tally}");
}

/// Sorts the identities of an artifact as the model's are, by what both have.
fn sort_identities(got: &mut Json, expected: &Json) {
    let key = |identity: &Json| ["first_seen", "last_seen", "user_id", "anonymous_ids"].map(|name| identity.field(name).clone());
    let order: Vec<_> = expected.field("identities").items().iter().map(key).collect();
    if let Json::Object(fields) = got
        && let Some(Json::List(identities)) = fields.get_mut("identities")
    {
        identities.sort_by_key(|identity| order.iter().position(|known| *known == key(identity)));
    }
}
