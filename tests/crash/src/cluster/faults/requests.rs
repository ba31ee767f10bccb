//! What has to hold of single requests, whichever node takes them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::cluster::campaign::Campaign;
use crate::cluster::figures::{Measure, measured};
use crate::cluster::site::NODES;
use crate::error::{Result, harness, violation};
use crate::events::{Plan, private_day};
use crate::http::{Connection, Credential, Request, Response};
use crate::ledger::EventState;

/// Tokens of a cycle.
const TOKENS: usize = 20;
/// External ids of a cycle.
const EXTERNAL_IDS: usize = 200;
/// External ids that are sent at once.
const AT_ONCE: usize = 20;
/// Entity tags of a cycle.
const ETAGS: usize = 20;
/// How often all nodes are asked until they agree: between two requests, the load links identities
/// and assigns them to companies, which changes days that have no new events.
const ROUNDS: usize = 5;
/// A private day that no client has.
const QUIET_DAY: usize = 3_000;
const PATIENCE: Duration = Duration::from_secs(30);

async fn send(campaign: &Campaign, node: usize, request: &Request<'_>) -> Result<Response> {
    let mut connection = Connection::open(campaign.cluster.address(node)).await?;
    let response = connection.send(request).await;
    response.map_err(|error| violation(format!("node {node} did not answer {} {}: {error}", request.method, request.path)))
}

/// Sends a request, again while it is refused.
async fn send_until(campaign: &Campaign, node: usize, request: &Request<'_>, status: u16) -> Result<Response> {
    let began = Instant::now();
    loop {
        let response = send(campaign, node, request).await?;
        if response.status == status {
            return Ok(response);
        }
        if response.status != 503 || began.elapsed() > PATIENCE {
            let (method, path) = (request.method, request.path);
            return Err(violation(format!("{method} {path}: node {node} answered {}: {}", response.status, response.body)));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Makes tokens at one node, revokes them at another, and shows them to all, from the answer on.
pub(super) async fn revoke(campaign: &mut Campaign, cycle: usize) -> Result<Vec<Measure>> {
    let tenant = campaign.shared.tenant.clone();
    let path = format!("/projects/{}/revenue/metrics?start_date=2025-01-01&end_date=2025-01-07", tenant.projects[0].id);
    let mut measures = Vec::new();
    for turn in 0..TOKENS {
        let new = format!(r#"{{"name":"t{cycle}-{turn}","role":"owner","scopes":["revenue:read"]}}"#);
        let request = Request::with_body("POST", "/api-tokens", &tenant.token, &new);
        let made = send_until(campaign, turn % NODES, &request, 201).await?.json();
        let text = |name: &str| made.field(name).text().map(str::to_owned).ok_or_else(|| harness(format!("a token: {made}")));
        let (token, id) = (text("token")?, text("token_id")?);
        for node in 0..NODES {
            send_until(campaign, node, &Request::get(&path, &token), 200).await?;
        }
        let revoked = Instant::now();
        let at = format!("/api-tokens/{id}");
        let delete = Request { method: "DELETE", path: &at, credential: Credential::Token(&tenant.token), body: None };
        send_until(campaign, (turn + 1) % NODES, &delete, 204).await?;
        measures.push(measured("until it is revoked everywhere", revoked.elapsed()));
        for node in 0..NODES {
            let shown = send(campaign, node, &Request::get(&path, &token)).await?;
            if shown.status != 401 {
                return Err(violation(format!("node {node} answered a revoked token with {}: {}", shown.status, shown.body)));
            }
        }
    }
    println!("  {TOKENS} revoked tokens shown to {NODES} nodes: all refused");
    Ok(measures)
}

/// Sends the same external ids to all nodes at once: one answer says that the event is recorded,
/// the others that it is a duplicate of it.
pub(super) async fn external_ids(campaign: &mut Campaign) -> Result<Vec<Measure>> {
    let mut measures = Vec::new();
    let projects = campaign.shared.tenant.projects.len();
    for round in 0..EXTERNAL_IDS / AT_ONCE {
        let began = Instant::now();
        let mut tasks = Vec::new();
        for turn in 0..AT_ONCE {
            let plan = Plan::ordinary((round + turn) % projects);
            let number = campaign.shared.ledger.borrow_mut().add(plan);
            for node in 0..NODES {
                tasks.push(tokio::task::spawn_local(send_event(
                    campaign.shared.tenant.projects[plan.project].key.clone(),
                    campaign.shared.ledger.borrow().body(number),
                    campaign.cluster.address(node),
                    number,
                )));
            }
        }
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.map_err(|error| harness(error.to_string()))??);
        }
        for of_event in answers.chunks(NODES) {
            check_once(campaign, of_event)?;
        }
        measures.push(measured("20 external ids at 3 nodes", began.elapsed()));
    }
    println!("  {EXTERNAL_IDS} external ids sent to {NODES} nodes at once: each recorded once, with one position");
    Ok(measures)
}

async fn send_event(key: String, body: String, address: std::net::SocketAddr, number: usize) -> Result<(usize, Response)> {
    let began = Instant::now();
    loop {
        let mut connection = Connection::open(address).await?;
        let response = connection.send(&Request::events("/i", &key, &body)).await?;
        if response.status == 202 || began.elapsed() > PATIENCE {
            return Ok((number, response));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn check_once(campaign: &Campaign, answers: &[(usize, Response)]) -> Result<()> {
    let status = |response: &Response| response.json().field("status").text().map(str::to_owned);
    let recorded = answers.iter().filter(|(_, response)| status(response).as_deref() == Some("recorded")).count();
    let duplicates = answers.iter().filter(|(_, response)| status(response).as_deref() == Some("duplicate")).count();
    let (number, first) = &answers[0];
    let position = first.integer("position");
    let is_one = answers.iter().all(|(_, response)| response.integer("position") == position && position.is_some());
    if (recorded, duplicates) != (1, NODES - 1) || !is_one {
        let bodies: Vec<&str> = answers.iter().map(|(_, response)| response.body.as_str()).collect();
        return Err(violation(format!("event e{number}, sent to all nodes at once, was answered {}", bodies.join(" and "))));
    }
    campaign.shared.ledger.borrow_mut().set(*number, EventState::Acknowledged(position));
    Ok(())
}

/// Asks each node with the entity tag of another one, before and after an event of that day.
pub(super) async fn etag(campaign: &mut Campaign) -> Result<Vec<Measure>> {
    let tenant = campaign.shared.tenant.clone();
    let date = private_day(QUIET_DAY);
    let path = format!("/projects/{}/revenue/metrics?start_date={date}&end_date={date}", tenant.projects[0].id);
    let request = Request::get(&path, &tenant.token);
    for turn in 0..ETAGS {
        let at = |step: usize| (turn + step) % NODES;
        let tag = known_tag(campaign, at(0), &request).await?;
        let number = campaign.shared.ledger.borrow_mut().add(Plan { private_day: Some(QUIET_DAY), ..Plan::ordinary(0) });
        let body = campaign.shared.ledger.borrow().body(number);
        let answer = send_until(campaign, at(1), &Request::events("/i", &tenant.projects[0].key, &body), 202).await?;
        campaign.shared.ledger.borrow_mut().set(number, EventState::Acknowledged(answer.integer("position")));
        one_new_answer(campaign, &request, &tag).await?;
    }
    println!("  {ETAGS} entity tags: 304 at every node, and 200 with one new tag after an event");
    Ok(Vec::new())
}

/// Returns the tag of a node's answer that no node has a newer one for.
async fn known_tag(campaign: &Campaign, node: usize, request: &Request<'_>) -> Result<String> {
    for _ in 0..ROUNDS {
        let answer = send_until(campaign, node, request, 200).await?;
        let tag = answer.etag.ok_or_else(|| violation(format!("{} has no ETag", request.path)))?;
        if ask_all(campaign, request, &tag).await?.iter().all(|answer| answer.status == 304) {
            return Ok(tag);
        }
    }
    Err(violation(format!("{}: nodes keep on having a newer answer than node {node}", request.path)))
}

/// Asks all nodes with the tag of a former answer until all of them give the same new one.
async fn one_new_answer(campaign: &Campaign, request: &Request<'_>, tag: &str) -> Result<()> {
    let mut answers = Vec::new();
    for _ in 0..ROUNDS {
        answers = ask_all(campaign, request, tag).await?;
        if let Some(old) = answers.iter().position(|answer| answer.status == 304) {
            return Err(violation(format!(
                "{}: node {old} does not know of an event that changes the answer {tag}",
                request.path
            )));
        }
        let tags: HashSet<_> = answers.iter().map(|answer| &answer.etag).collect();
        let tags_and_bodies: HashSet<_> = answers.iter().map(|answer| (&answer.etag, &answer.body)).collect();
        if tags.len() < tags_and_bodies.len() {
            return Err(violation(format!("{}: one tag stands for several answers: {answers:?}", request.path)));
        }
        if tags.len() == 1 {
            return Ok(());
        }
    }
    Err(violation(format!("{}: the nodes keep on giving different answers: {answers:?}", request.path)))
}

/// Asks all nodes with a tag, each of which answers that it has not changed, or with another one.
async fn ask_all(campaign: &Campaign, request: &Request<'_>, tag: &str) -> Result<Vec<Response>> {
    let mut responses = Vec::new();
    for node in 0..NODES {
        let mut connection = Connection::open(campaign.cluster.address(node)).await?;
        let response = connection.send_if_changed(request, tag).await?;
        let is_new = response.status == 200 && response.etag.as_deref().is_some_and(|new| new != tag);
        if response.status != 304 && !is_new {
            return Err(violation(format!("{}: node {node} answered the tag {tag} with {response:?}", request.path)));
        }
        responses.push(response);
    }
    Ok(responses)
}
