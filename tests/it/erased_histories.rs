//! Random histories over HTTP in which somebody is erased, compared with the naive model, which forgets the same identity.
//!
//! `HEADCOUNT_TRIALS` says how many histories, `HEADCOUNT_FIRST_SEED` from which seed on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_histories::{Rng, Served, Subject, compare, model_of, questions};
use headcount_model::facts::Identity;
use headcount_model::{Ids, Model, Question};
use serde_json::{Value, json};

use crate::archive::KeepSealing;
use crate::client::Call;
use crate::histories::{can_be_asked, history, id_of, number, send};
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms};

/// How many histories, unless `HEADCOUNT_TRIALS` says otherwise.
const TRIALS: u64 = 8;

/// The identities that have an id of their own.
pub(crate) fn identities(model: &Model) -> Vec<Identity> {
    let facts = model.facts();
    let known = facts.all().filter_map(|index| facts.identities[index].clone());
    let known: BTreeSet<Identity> = known.filter(|identity| !matches!(identity, Identity::Visitor(_))).collect();
    known.into_iter().collect()
}

/// Erases an identity from both, and waits until nothing of it is left.
fn erase(tenant: &Tenant, model: &mut Model, identity: &Identity) {
    let body = match identity {
        Identity::User(user) => json!({"type": "erasure", "user_id": user}),
        Identity::Anonymous(project, id) => {
            json!({"type": "erasure", "anonymous_id": id, "project_id": id_of(tenant, project)})
        }
        Identity::Visitor(_) => return,
    };
    let made = tenant.post("/privacy-requests", &body).ok(201);
    let (path, until) = (format!("/privacy-requests/{}", made["id"].as_str().unwrap()), Instant::now() + Duration::from_secs(60));
    let is_done = |shown: &Value| shown["status"] == "completed";
    while !is_done(&tenant.get(&path).ok(200)) {
        assert!(Instant::now() < until, "{made} does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    model.erase(&BTreeSet::from([identity.clone()]));
}

#[test]
fn erased_identities_leave_no_trace() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let sealing = KeepSealing::on(&server);
    let first = number("HEADCOUNT_FIRST_SEED", 4_000);
    let trials = usize::try_from(number("HEADCOUNT_TRIALS", TRIALS)).unwrap();
    // A floor freezes figures that the model does not take anybody out of.
    let is_fit = |seed: &u64| seed % 5 < 3 && !history(*seed).live;
    let (mut compared, mut erased) = (0, 0);
    for seed in (first..).filter(is_fit).take(trials) {
        let history = history(seed);
        let mut rng = Rng::new(seed);
        let mut served = Served::new(Tenant::on(&server));
        served.setup(&history);
        let mut model = model_of(&history);
        let mut erased_here = Vec::new();
        for part in history.steps.chunks(history.steps.len() / 3 + 1) {
            part.iter().for_each(|step| send(&mut served, &mut model, step));
            let known = identities(&model);
            if !known.is_empty() {
                let identity = rng.pick(&known).clone();
                erase(&served.server, &mut model, &identity);
                erased_here.push(identity);
            }
        }
        let mut ids = Ids::default();
        // Without ids that only an answer tells.
        let comparable = |question: &&Question| {
            can_be_asked(question) && !question.path.contains("{company:") && !question.path.ends_with("/top-users")
        };
        for question in questions(&history, &mut rng, 120).iter().filter(comparable) {
            let same = compare(model.answer(now_ms(), question), served.ask(question), &mut ids);
            assert!(same.is_ok(), "seed {seed}: {same:?} at {question:?} without {erased_here:?} of {history}");
            compared += 1;
        }
        erased += erased_here.len();
    }
    sealing.stop();
    let report = server.send(&Call::post("/admin/verify").bearer(&server.operator())).ok(200);
    assert_eq!(report["status"], "clean", "{report}");
    println!("{erased} identities erased, {compared} answers compared");
    assert!(erased >= trials && compared >= 100 * trials, "{erased} identities erased, {compared} answers compared");
}
