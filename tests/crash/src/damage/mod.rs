//! `damage`: damages files between a clean stop and the next start.
//!
//! The server must rebuild damaged derived data from the log: every answer is the same as before,
//! every token and key still works, and duplicates are still recognized. The log itself can't be
//! rebuilt: the server must refuse to start, and report where the damage is.
//!
//! Rebuilds read the sealed segments of the log, but ordinary starts don't; the campaign therefore
//! deletes the store when it damages a sealed segment. It never damages the last block, which is
//! indistinguishable from a torn write (see the documentation of the log).

pub mod corruptions;
pub mod segments;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headcount_histories::Rng;
use headcount_model::Json;

use crate::arguments::Common;
use crate::error::{CampaignError, Result, harness, violation};
use crate::http::{Connection, Request};
use crate::ledger::EventState;
use crate::load::{Load, Pace};
use crate::mount::copy_directory;
use crate::oracle;
use crate::resend;
use crate::rig::{Rig, WorkDir};
use crate::server::Server;
use crate::tenant::manage;
use corruptions::{Corruption, Expected};

/// Number of repetitions of each random corruption in a full campaign.
const TIMES: usize = 12;
/// Minimum number of repetitions for which the campaign is a full one.
const TIMES_OF_FULL: usize = 10;
/// Maximum time to fill the log.
const FILL_TIMEOUT: Duration = Duration::from_secs(120);
/// Log text of a server that rebuilds.
const REBUILT: &str = "rebuilt from the log";
/// How many servers are killed, sooner and sooner, until one had not rebuilt the store yet.
const REBUILD_KILLS: u32 = 6;
/// Number of known events sent to each project after each case.
const DUPLICATES: usize = 100;

/// How much the server has before the damage. Each case asks for all answers twice, and verifies
/// the state: both take longer with more events.
struct Scale {
    /// Time for which each load fills it.
    loaded: Duration,
    /// Whether a second log segment is filled, which takes a while.
    has_segments: bool,
    /// Latest time at which a rebuild is killed, from its beginning on.
    killed_within_ms: usize,
}

const FULL: Scale = Scale { loaded: Duration::from_millis(1_500), has_segments: true, killed_within_ms: 600 };
const SLICE: Scale = Scale { loaded: Duration::from_millis(500), has_segments: false, killed_within_ms: 200 };

/// State before the damage.
struct Before {
    scale: &'static Scale,
    answers: Vec<(String, Json)>,
    tokens: Vec<(String, String)>,
    keys: Vec<(usize, String)>,
    pristine: PathBuf,
    older_store: PathBuf,
    query_seed: u64,
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
    let scale = if times >= TIMES_OF_FULL { &FULL } else { &SLICE };
    let before = prepare(rig, work, scale).await?;
    let (mut rebuilt, mut refused, mut untouched) = (0, 0, 0);
    let corruptions = Corruption::all(times);
    let (count, mut failures) = (corruptions.len(), Vec::new());
    for (number, corruption) in corruptions.into_iter().enumerate() {
        copy_directory(&before.pristine, &rig.launch.data_dir)?;
        let (what, expected) = corruption.apply(&rig.launch.data_dir, &before.older_store, &mut rig.rng)?;
        let outcome = case(rig, &before, &expected).await;
        let summary = match &outcome {
            Ok(summary) => summary.clone(),
            Err(error) => error.to_string(),
        };
        println!("case {:>2} of {count}: {what}: {summary}", number + 1);
        match outcome {
            Ok(summary) if summary.starts_with("refused") => refused += 1,
            Ok(summary) if summary.starts_with("rebuilt") => rebuilt += 1,
            Ok(_) => untouched += 1,
            Err(_) => failures.push(number + 1),
        }
    }
    if !failures.is_empty() {
        return Err(violation(format!("{} of {count} cases failed: {failures:?}", failures.len())));
    }
    println!(
        "damage: {count} cases: {rebuilt} rebuilt from the log, {refused} refused with the place named, {untouched} without effect; \
         {} answers, {} tokens and {} keys the same throughout",
        before.answers.len(),
        before.tokens.len(),
        before.keys.len(),
    );
    Ok(())
}

/// Fills a server, stops it, and saves its state.
async fn prepare(rig: &mut Rig, work: &Path, scale: &'static Scale) -> Result<Before> {
    let (pristine, older_store) = (work.join("pristine"), work.join("older-store"));
    let server = rig.launch.start().await?;
    load(rig, &server, 0, scale.loaded).await?;
    server.terminate().await?;
    copy_directory(&rig.launch.data_dir.join("store"), &older_store)?;

    let server = rig.launch.start().await?;
    let began = Instant::now();
    for cycle in 1.. {
        load(rig, &server, cycle, scale.loaded).await?;
        let segments = segments::segments(&rig.launch.data_dir.join("log"))?.len();
        if segments >= 2 || !scale.has_segments {
            break;
        }
        if began.elapsed() > FILL_TIMEOUT {
            return Err(harness("the log does not reach a second segment"));
        }
    }
    let equal = rig.resend_and_check(&server).await?.answers;
    let (tokens, keys) = credentials(rig, &server).await?;
    let query_seed = rig.rng.bits();
    let answers = oracle::answers(server.address, &rig.shared.tenant, &mut Rng::new(query_seed)).await?;
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
    Ok(Before { scale, answers, tokens, keys, pristine, older_store, query_seed })
}

async fn load(rig: &mut Rig, server: &Server, cycle: usize, time: Duration) -> Result<()> {
    let load = Load::start(&rig.shared, server.address, Pace::fast(cycle), &mut rig.rng);
    tokio::time::sleep(time).await;
    load.finish().await;
    rig.shared.findings.check()
}

/// Creates more tokens and keys, and returns all of them: tokens with a path that each may read,
/// keys with their project.
async fn credentials(rig: &Rig, server: &Server) -> Result<(Vec<(String, String)>, Vec<(usize, String)>)> {
    let tenant = &rig.shared.tenant;
    let mut tokens = vec![(tenant.token.clone(), "/organization".to_owned())];
    let mut keys: Vec<_> = tenant.projects.iter().enumerate().map(|(number, project)| (number, project.key.clone())).collect();
    for (number, project) in tenant.projects.iter().enumerate() {
        let id = &project.id;
        let body = format!(r#"{{"name":"t{number}","role":"admin","scopes":["revenue:read"],"project_id":"{id}"}}"#);
        let made = manage(server.address, &tenant.token, "POST", "/api-tokens", &body, 201).await?;
        let token = made.field("token").text().ok_or_else(|| harness(format!("POST /api-tokens answered {made}")))?;
        tokens.push((token.to_owned(), format!("/projects/{id}/revenue/metrics?start_date=2025-01-01&end_date=2025-01-02")));
        let made = manage(server.address, &tenant.token, "POST", &format!("/projects/{id}/keys"), "{}", 201).await?;
        let key = made.field("public_key").text().ok_or_else(|| harness(format!("POST …/keys answered {made}")))?;
        keys.push((number, key.to_owned()));
    }
    Ok((tokens, keys))
}

/// Starts the server on the damaged data, and returns a summary.
async fn case(rig: &mut Rig, before: &Before, expected: &Expected) -> Result<String> {
    if let Expected::Refused(places) = expected {
        let log = rig.launch.spawn()?.wait_for_failed_start().await?;
        let named = places.iter().find(|place| log.contains(place.as_str()));
        let named = named.ok_or_else(|| violation(format!("the message does not name the place {places:?}; its log: {log}")))?;
        return Ok(format!("refused, naming {named}"));
    }
    let killed = match expected {
        Expected::SameAfterKill => format!("killed {} ms after it had begun, ", kill_while_rebuilding(rig, before.scale).await?),
        _ => String::new(),
    };
    let server = rig.launch.start().await?;
    same_as_before(rig, before, &server).await.map_err(|error| with_log(error, &server))?;
    let rebuilt = server.log().contains(REBUILT);
    if *expected == Expected::Rebuilt && !rebuilt {
        return Err(violation(format!(
            "the answers are the same, but the server logs no rebuild; its log: {}",
            server.log().tail()
        )));
    }
    let took = server.started_in;
    server.terminate().await?;
    let server = rig.launch.start().await?;
    if server.log().contains(REBUILT) {
        return Err(violation(format!("the server rebuilds again at the next start: {}", server.log().tail())));
    }
    same_as_before(rig, before, &server).await?;
    rig.verify().await?;
    server.terminate().await?;
    let summary = if rebuilt { format!("rebuilt in {} ms", took.as_millis()) } else { "nothing to rebuild".to_owned() };
    Ok(format!("{killed}{summary}, no difference"))
}

/// Kills a server that rebuilds the store, before it listens. Returns how many milliseconds after
/// it had begun.
async fn kill_while_rebuilding(rig: &mut Rig, scale: &Scale) -> Result<u64> {
    for attempt in 0..REBUILD_KILLS {
        let mut starting = rig.launch.spawn()?;
        starting.wait_for_log(REBUILT).await?;
        let after_ms = (rig.rng.below(scale.killed_within_ms) >> attempt) as u64;
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        let is_late = starting.listens();
        starting.kill()?;
        if !is_late {
            return Ok(after_ms);
        }
        std::fs::remove_dir_all(rig.launch.data_dir.join("store"))?;
    }
    Err(violation(format!("{REBUILD_KILLS} servers had rebuilt the store before they were killed")))
}

/// Adds the end of the server's log to a violation.
fn with_log(error: CampaignError, server: &Server) -> CampaignError {
    match error {
        CampaignError::Violation(what) => violation(format!("{what}; its log:\n    {}", server.log().tail())),
        other => other,
    }
}

/// Verifies answers, tokens, keys, and duplicates.
async fn same_as_before(rig: &Rig, before: &Before, server: &Server) -> Result<()> {
    let tenant = &rig.shared.tenant;
    let answers = oracle::answers(server.address, tenant, &mut Rng::new(before.query_seed)).await?;
    for ((query, was), (_, is)) in before.answers.iter().zip(&answers) {
        if was != is {
            return Err(violation(format!("the answer to {query} was {was:.300}, and is now {is:.300}")));
        }
    }
    let mut connection = Connection::open(server.address).await?;
    for (token, path) in &before.tokens {
        let response = connection.send(&Request::get(path, token)).await?;
        if response.status != 200 {
            return Err(violation(format!("a token gets {} at {path}: {}", response.status, response.body)));
        }
    }
    let mut rng = Rng::new(before.query_seed);
    for (project, key) in &before.keys {
        let known: Vec<usize> =
            (0..DUPLICATES).filter_map(|_| rig.shared.ledger.borrow().random_acknowledged(&mut rng, *project)).collect();
        resend::expect_duplicates(&mut connection, key, &rig.shared.ledger, &known).await?;
        let single =
            known.iter().find(|number| matches!(rig.shared.ledger.borrow().state(**number), EventState::Acknowledged(Some(_))));
        let Some(single) = single else { continue };
        let (body, state) = (rig.shared.ledger.borrow().body(*single), rig.shared.ledger.borrow().state(*single));
        let response = connection.send(&Request::events("/i", key, &body)).await?;
        if EventState::Acknowledged(response.integer("position")) != state
            || response.json().field("status").text() != Some("duplicate")
        {
            return Err(violation(format!("the response to a known event, {state:?}, was {}", response.body)));
        }
    }
    Ok(())
}
