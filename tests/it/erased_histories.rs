//! Random histories over HTTP in which somebody is erased, compared with the naive model, which
//! forgets the same identity.
//!
//! Meanwhile events are sealed, early ones are removed from some projects, and the server is
//! restarted, killed in the middle of an erasure, rebuilt from history, and replaced by a backup
//! from before an erasure that is restored with the later erasures.
//!
//! `HEADCOUNT_TRIALS` says how many histories, `HEADCOUNT_FIRST_SEED` from which seed on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_histories::{Rng, Served, Step, Subject, above, compare, model_of, questions, scans};
use headcount_model::facts::Identity;
use headcount_model::{Ids, Model, Question};
use serde_json::{Value, json};

use crate::archive::KeepSealing;
use crate::client::Call;
use crate::histories::{can_be_asked, history, id_of, number, send};
use crate::server::{TestServer, restore_without_erased};
use crate::tenant::{Tenant, away_from_midnight, now_ms};

/// How many histories, unless `HEADCOUNT_TRIALS` says otherwise.
const TRIALS: u64 = 8;
/// How many histories one server has: what it has is replayed each time that it is rebuilt.
const OF_ONE_SERVER: usize = 20;

/// How long an erasure may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the server logs at the end of an erasure.
const FINISHED: &str = "nothing of an erased identity is left";

/// What happened to the histories.
#[derive(Debug, Default)]
struct Tally {
    histories: usize,
    erased: usize,
    by_email: usize,
    compared: usize,
    kills: usize,
    restarts: usize,
    rebuilds: usize,
    restores: usize,
    floors: usize,
}

/// The identities that have an id of their own.
pub(crate) fn identities(model: &Model) -> Vec<Identity> {
    let facts = model.facts();
    let known = facts.all().filter_map(|index| facts.identities[index].clone());
    let known: BTreeSet<Identity> = known.filter(|identity| !matches!(identity, Identity::Visitor(_))).collect();
    known.into_iter().collect()
}

/// Whom to erase: an identity, or all that ever had one of its e-mail addresses.
#[derive(Debug, Clone)]
pub(crate) enum Erased {
    Identity(Identity),
    Email(String),
}

impl Erased {
    /// Somebody with an id of their own, if there is anybody.
    pub(crate) fn pick(model: &Model, rng: &mut Rng) -> Option<Self> {
        let known = identities(model);
        let identity = (!known.is_empty()).then(|| rng.pick(&known).clone())?;
        let (_, emails) = model.facts().emails(&identity);
        let by_email = emails.into_iter().next().filter(|_| rng.chance(50));
        Some(by_email.map_or(Self::Identity(identity), Self::Email))
    }

    /// The body of the request. `id_of`: the id of the project with a name.
    pub(crate) fn body(&self, id_of: impl Fn(&str) -> String) -> Value {
        match self {
            Self::Email(email) => json!({"type": "erasure", "email": format!(" {}", email.to_uppercase())}),
            Self::Identity(Identity::User(user)) => json!({"type": "erasure", "user_id": user}),
            Self::Identity(Identity::Anonymous(project, id)) => {
                json!({"type": "erasure", "anonymous_id": id, "project_id": id_of(project)})
            }
            Self::Identity(Identity::Visitor(_)) => unreachable!("visitors have no id of their own"),
        }
    }

    pub(crate) fn erase_from(&self, model: &mut Model) {
        match self {
            Self::Identity(identity) => model.erase(&BTreeSet::from([identity.clone()])),
            Self::Email(email) => model.erase_email(email),
        }
    }
}

/// Whom a privacy request about an identity names. A visitor has no id of its own.
pub(crate) fn named(tenant: &Tenant, identity: &Identity) -> Option<Value> {
    match identity {
        Identity::User(user) => Some(json!({ "user_id": user })),
        Identity::Anonymous(project, id) => Some(json!({"anonymous_id": id, "project_id": id_of(tenant, project)})),
        Identity::Visitor(_) => None,
    }
}

/// Waits until nothing of an erased identity is left.
fn await_erasure(tenant: &Tenant, made: &Value) {
    let (path, until) = (format!("/privacy-requests/{}", made["id"].as_str().unwrap()), Instant::now() + PATIENCE);
    while tenant.get(&path).ok(200)["status"] != "completed" {
        assert!(Instant::now() < until, "{made} does not end\n{}", tenant.server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Erases an identity, and waits until nothing of it is left.
pub(crate) fn erase_and_wait(tenant: &Tenant, identity: &Identity) {
    if let Some(mut body) = named(tenant, identity) {
        body["type"] = json!("erasure");
        await_erasure(tenant, &tenant.post("/privacy-requests", &body).ok(201));
    }
}

/// Erases somebody from both, and waits until nothing of them is left. `is_last`: no events follow,
/// so that the server may be restored. A backup has no visitor salts.
fn erase(tenant: &Tenant, model: &mut Model, (erased, is_last): (&Erased, bool), rng: &mut Rng, tally: &mut Tally) {
    let body = erased.body(|project| id_of(tenant, project));
    let place = tempfile::tempdir().unwrap();
    let backup = place.path().join("before");
    let is_restored = is_last && rng.chance(30);
    if is_restored {
        tenant.server.run("backup", &[backup.to_str().unwrap()]);
    }
    let made = tenant.post("/privacy-requests", &body).ok(201);
    if rng.chance(15) {
        std::thread::sleep(Duration::from_millis(rng.below(60) as u64));
        tenant.server.kill();
        tally.kills += 1;
    }
    await_erasure(tenant, &made);
    erased.erase_from(model);
    tally.erased += 1;
    tally.by_email += usize::from(matches!(erased, Erased::Email(_)));
    if is_restored {
        let count = || tenant.server.log().matches(FINISHED).count();
        let until = Instant::now() + PATIENCE;
        // Counted once the server has stopped: the request is completed before the line is logged.
        let (before, printed) = tenant.server.stopped(|data| (count(), restore_without_erased(data, &backup)));
        assert_eq!(printed["taken"]["erasures"], 1, "{printed}");
        // The request is known to be completed. Lists of events read files, from which the first
        // start removes the person again.
        while count() == before {
            assert!(Instant::now() < until, "{made} does not end again\n{}", tenant.server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        tally.restores += 1;
    }
    disturb(&tenant.server, rng, tally);
}

/// Restarts the server, or has it rebuild what is derived, now and then.
fn disturb(server: &TestServer, rng: &mut Rng, tally: &mut Tally) {
    match rng.below(100) {
        0..15 => {
            server.restart();
            tally.restarts += 1;
        }
        15..25 => {
            server.stopped(|data| {
                // Without an external id there is no index.
                let derived = ["store", "fingerprints"].map(|derived| data.join(derived)).into_iter().filter(|dir| dir.exists());
                derived.for_each(|derived| std::fs::remove_dir_all(derived).unwrap());
            });
            tally.rebuilds += 1;
        }
        _ => {}
    }
}

fn trial(server: &Arc<TestServer>, seed: u64, tally: &mut Tally) {
    let history = history(seed).with_walks();
    let mut rng = Rng::new(seed);
    let mut served = Served::new(Tenant::on(server));
    served.setup(&history);
    let mut model = model_of(&history);
    let mut erased_here = Vec::new();
    let parts: Vec<&[Step]> = history.steps.chunks(history.steps.len() / 3 + 1).collect();
    for (place, part) in parts.iter().enumerate() {
        part.iter().for_each(|step| send(&mut served, &mut model, step));
        if let Some(erased) = Erased::pick(&model, &mut rng) {
            erase(&served.server, &mut model, (&erased, place + 1 == parts.len()), &mut rng, tally);
            erased_here.push(erased);
        }
    }
    let floors = history.projects.iter().filter(|project| model.floor(&project.name).is_some()).count();
    tally.floors += floors;
    let mut ids = Ids::default();
    // Without ids that only an answer tells, lists in the order of ids, and what frozen days have:
    // once events are gone, an erased identity stays in it as one of a number.
    let comparable = |question: &Question| {
        let is_live = floors == 0 || !question.path.ends_with("/ltv-cohorts");
        let is_by_id = ["/top-users", "/funnel/people"].iter().any(|list| question.path.ends_with(list));
        can_be_asked(question) && is_live && !question.path.contains("{company:") && !is_by_id
    };
    let mut asked = questions(&history, &mut rng, 120);
    asked.extend(scans(&history, &mut rng, 60));
    let asked = asked.into_iter().filter(comparable);
    let asked: Vec<Question> = match floors {
        0 => asked.collect(),
        _ => asked.filter_map(|question| above(question, |project| model.floor(project))).collect(),
    };
    for question in &asked {
        let same = compare(model.answer(now_ms(), question), served.ask(question), &mut ids);
        assert!(same.is_ok(), "seed {seed}: {same:?} at {question:?} without {erased_here:?} of {history}");
        tally.compared += 1;
    }
    tally.histories += 1;
}

#[test]
fn erased_identities_leave_no_trace() {
    away_from_midnight();
    let first = number("HEADCOUNT_FIRST_SEED", 4_000);
    let trials = usize::try_from(number("HEADCOUNT_TRIALS", TRIALS)).unwrap();
    let is_fit = |seed: &u64| !history(*seed).live;
    let seeds: Vec<u64> = (first..).filter(is_fit).take(trials).collect();
    let mut tally = Tally::default();
    for seeds in seeds.chunks(OF_ONE_SERVER) {
        let server = Arc::new(TestServer::start());
        let sealing = KeepSealing::on(&server);
        seeds.iter().for_each(|seed| trial(&server, *seed, &mut tally));
        sealing.stop();
        let report = server.send(&Call::post("/admin/verify").bearer(&server.operator())).ok(200);
        assert_eq!(report["status"], "clean", "{report}");
        println!("{tally:?}");
    }
    assert!(tally.erased >= trials && tally.compared >= 100 * trials, "{tally:?}");
    assert!(trials < 8 || (tally.floors > 0 && tally.by_email > 0), "{tally:?}");
    assert!(trials < 8 || tally.kills + tally.restarts + tally.rebuilds + tally.restores > 0, "{tally:?}");
}
