//! `damage`: files that are damaged between a clean stop and the next start.
//!
//! Whatever is derived from the log is rebuilt from it: every answer is the same as before, every token and key still works, and
//! duplicates are still known. The log itself can't be rebuilt: the server must not start, and say where the damage is.
//!
//! A sealed segment of the log is read when something is rebuilt from it, not at every start; so for these the store is removed too. The
//! very last block is left alone: it can't be told from one that was being written (the log's documentation says so).

pub mod segments;
pub mod wounds;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headcount_histories::Rng;
use headcount_model::Json;

use crate::arguments::Common;
use crate::http::{Connection, Request};
use crate::ledger::State;
use crate::load::{Load, Pace};
use crate::mount::copy_directory;
use crate::oracle;
use crate::rig::{Rig, WorkDir};
use crate::server::Server;
use crate::settle;
use crate::trouble::{Result, Trouble, harness, violation};
use crate::world::manage;
use wounds::{Expected, Wound};

/// How often what depends on chance is done in a full campaign.
const TIMES: usize = 12;
/// From how many times on the log gets more than one segment, which takes a while.
const TIMES_FOR_SEGMENTS: usize = 10;
/// How long filling the log may take.
const FILL_TIMEOUT: Duration = Duration::from_secs(120);
/// What a server says that rebuilds.
const REBUILT: &str = "rebuilt from the log";
/// When a rebuilding is killed, at the latest.
const KILLED_WITHIN_MS: usize = 600;
/// Duplicates that are sent after each case, to each project.
const DUPLICATES: usize = 100;

/// What there was before the damage.
struct Before {
    answers: Vec<(String, Json)>,
    tokens: Vec<(String, String)>,
    keys: Vec<(usize, String)>,
    pristine: PathBuf,
    older_store: PathBuf,
    questions: u64,
}

/// Runs the campaign.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(common: &Common) -> Result<()> {
    let mut work = WorkDir::make(common)?;
    let mut rig = Rig::make(common, work.path().join("data"), &["--checkpoint-interval=1s"]).await?;
    let times = common.cycles.unwrap_or(TIMES);
    let result = cases(&mut rig, work.path(), times).await;
    if result.is_err() {
        work.keep();
    }
    result
}

async fn cases(rig: &mut Rig, work: &Path, times: usize) -> Result<()> {
    let before = prepare(rig, work, times >= TIMES_FOR_SEGMENTS).await?;
    let (mut rebuilt, mut refused, mut untouched) = (0, 0, 0);
    let wounds = Wound::all(times);
    let (count, mut failures) = (wounds.len(), Vec::new());
    for (number, wound) in wounds.into_iter().enumerate() {
        copy_directory(&before.pristine, &rig.launch.data_dir)?;
        let (what, expected) = wound.inflict(&rig.launch.data_dir, &before.older_store, &mut rig.rng)?;
        let outcome = case(rig, &before, &expected).await;
        let came = match &outcome {
            Ok(came) => came.clone(),
            Err(trouble) => trouble.to_string(),
        };
        println!("case {:>2} of {count}: {what}: {came}", number + 1);
        match outcome {
            Ok(came) if came.starts_with("refused") => refused += 1,
            Ok(came) if came.starts_with("rebuilt") => rebuilt += 1,
            Ok(_) => untouched += 1,
            Err(_) => failures.push(number + 1),
        }
    }
    if !failures.is_empty() {
        return Err(violation(format!("{} of {count} cases failed: {failures:?}", failures.len())));
    }
    println!(
        "damage: {count} cases: {rebuilt} rebuilt from the log, {refused} refused with the place named, {untouched} that changed nothing; \
         {} answers, {} tokens and {} keys the same throughout",
        before.answers.len(),
        before.tokens.len(),
        before.keys.len(),
    );
    Ok(())
}

/// Fills a server, stops it, and keeps what it had.
async fn prepare(rig: &mut Rig, work: &Path, with_segments: bool) -> Result<Before> {
    let (pristine, older_store) = (work.join("pristine"), work.join("older-store"));
    let server = rig.launch.start().await?;
    load(rig, &server, 0, Duration::from_millis(1_500)).await?;
    server.terminate().await?;
    copy_directory(&rig.launch.data_dir.join("store"), &older_store)?;

    let server = rig.launch.start().await?;
    let began = Instant::now();
    for cycle in 1.. {
        load(rig, &server, cycle, Duration::from_millis(1_500)).await?;
        let segments = segments::segments(&rig.launch.data_dir.join("log"))?.len();
        if segments >= 2 || !with_segments {
            break;
        }
        if began.elapsed() > FILL_TIMEOUT {
            return Err(harness("the log does not get a second segment"));
        }
    }
    let equal = rig.settle_and_check(&server).await?.answers;
    let (tokens, keys) = credentials(rig, &server).await?;
    let questions = rig.rng.bits();
    let answers = oracle::answers(server.address, &rig.shared.world, &mut Rng::new(questions)).await?;
    server.terminate().await?;
    copy_directory(&rig.launch.data_dir, &pristine)?;
    let segments = segments::segments(&pristine.join("log"))?;
    println!(
        "before: {} events in {} log segments, {} answers ({equal} compared with the model), {} tokens, {} keys",
        rig.shared.ledger.borrow().len(),
        segments.len(),
        answers.len(),
        tokens.len(),
        keys.len(),
    );
    Ok(Before { answers, tokens, keys, pristine, older_store, questions })
}

async fn load(rig: &mut Rig, server: &Server, cycle: usize, time: Duration) -> Result<()> {
    let load = Load::start(&rig.shared, server.address, Pace::fast(cycle), &mut rig.rng);
    tokio::time::sleep(time).await;
    load.finish().await;
    rig.shared.findings.none()
}

/// Makes more tokens and keys, and returns all there are: tokens with a path that each may read.
async fn credentials(rig: &Rig, server: &Server) -> Result<(Vec<(String, String)>, Vec<(usize, String)>)> {
    let world = &rig.shared.world;
    let mut tokens = vec![(world.token.clone(), "/organization".to_owned())];
    let mut keys: Vec<_> = world.projects.iter().enumerate().map(|(number, project)| (number, project.key.clone())).collect();
    for (number, project) in world.projects.iter().enumerate() {
        let id = &project.id;
        let body = format!(r#"{{"name":"t{number}","role":"admin","scopes":["revenue:read"],"project_id":"{id}"}}"#);
        let made = manage(server.address, &world.token, "POST", "/api-tokens", &body, 201).await?;
        let token = made.field("token").text().ok_or_else(|| harness(format!("POST /api-tokens said {made}")))?;
        tokens.push((token.to_owned(), format!("/projects/{id}/revenue/metrics?start_date=2025-01-01&end_date=2025-01-02")));
        let made = manage(server.address, &world.token, "POST", &format!("/projects/{id}/keys"), "{}", 201).await?;
        let key = made.field("public_key").text().ok_or_else(|| harness(format!("POST …/keys said {made}")))?;
        keys.push((number, key.to_owned()));
    }
    Ok((tokens, keys))
}

/// Starts the damaged server, and says what came of it.
async fn case(rig: &mut Rig, before: &Before, expected: &Expected) -> Result<String> {
    if let Expected::Refused(places) = expected {
        let said = rig.launch.spawn()?.refusal().await?;
        let named = places.iter().find(|place| said.contains(place.as_str()));
        let named = named.ok_or_else(|| violation(format!("it does not name the place, {places:?}; it said: {said}")))?;
        return Ok(format!("refused, naming it: {named}"));
    }
    if *expected == Expected::SameAfterKill {
        let starting = rig.launch.spawn()?;
        tokio::time::sleep(Duration::from_millis(rig.rng.below(KILLED_WITHIN_MS) as u64)).await;
        starting.kill()?;
    }
    let server = rig.launch.start().await?;
    same_as_before(rig, before, &server).await.map_err(|trouble| with_log(trouble, &server))?;
    let rebuilt = server.log().says(REBUILT);
    if *expected == Expected::Rebuilt && !rebuilt {
        return Err(violation(format!(
            "the answers are the same, but it does not say that it rebuilds; it said: {}",
            server.log().tail()
        )));
    }
    let took = server.started_in;
    server.terminate().await?;
    let server = rig.launch.start().await?;
    if server.log().says(REBUILT) {
        return Err(violation(format!("it rebuilds again at the next start: {}", server.log().tail())));
    }
    same_as_before(rig, before, &server).await?;
    server.terminate().await?;
    let came = if rebuilt { format!("rebuilt in {} ms", took.as_millis()) } else { "nothing to rebuild".to_owned() };
    Ok(format!("{came}, and all is the same"))
}

/// What is wrong, with what the server said.
fn with_log(trouble: Trouble, server: &Server) -> Trouble {
    match trouble {
        Trouble::Violation(what) => violation(format!("{what}; it said:\n    {}", server.log().tail())),
        other => other,
    }
}

/// Answers, tokens, keys, and what is known as a duplicate.
async fn same_as_before(rig: &Rig, before: &Before, server: &Server) -> Result<()> {
    let world = &rig.shared.world;
    let answers = oracle::answers(server.address, world, &mut Rng::new(before.questions)).await?;
    for ((question, was), (_, is)) in before.answers.iter().zip(&answers) {
        if was != is {
            return Err(violation(format!("{question} was {was:.300}, and is {is:.300}")));
        }
    }
    let mut connection = Connection::open(server.address).await?;
    for (token, path) in &before.tokens {
        let reply = connection.send(&Request::get(path, token)).await?;
        if reply.status != 200 {
            return Err(violation(format!("a token is answered {} at {path}: {}", reply.status, reply.body)));
        }
    }
    let mut rng = Rng::new(before.questions);
    for (project, key) in &before.keys {
        let known: Vec<usize> =
            (0..DUPLICATES).filter_map(|_| rig.shared.ledger.borrow().some_acknowledged(&mut rng, *project)).collect();
        settle::are_duplicates(&mut connection, key, &rig.shared.ledger, &known).await?;
        let alone =
            known.iter().find(|number| matches!(rig.shared.ledger.borrow().state(**number), State::Acknowledged(Some(_))));
        let Some(alone) = alone else { continue };
        let (body, state) = (rig.shared.ledger.borrow().body(*alone), rig.shared.ledger.borrow().state(*alone));
        let reply = connection.send(&Request::events("/i", key, &body)).await?;
        if State::Acknowledged(reply.whole("position")) != state || reply.json().field("status").text() != Some("duplicate") {
            return Err(violation(format!("a known event, {state:?}, is answered {}", reply.body)));
        }
    }
    Ok(())
}
