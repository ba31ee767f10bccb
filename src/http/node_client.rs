//! Asks other nodes about projects that they own, over HTTP.
//!
//! Connections stay open for the next question. Requests block threads of their own, a bounded number at once; one that is no longer awaited ends at its time limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_actors::{AskNode, AskNodeError, MAX_ANSWER_BYTES, NodeAnswer, NodeCall};
use tokio::sync::Semaphore;

use crate::http::resources::node::{ASK_PATH, NO_ANSWER, NODE_TOKEN, refused};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How many requests are under way at once.
const MAX_AT_ONCE: usize = 32;

/// A client of other nodes.
#[derive(Debug)]
pub(crate) struct NodeClient {
    agent: ureq::Agent,
    turns: Arc<Semaphore>,
}

impl NodeClient {
    pub(crate) fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(MAX_AT_ONCE)
            .max_idle_connections_per_host(MAX_AT_ONCE)
            // Nodes reach each other directly, whatever the environment says.
            .proxy(None);
        Self { agent: config.build().into(), turns: Arc::new(Semaphore::new(MAX_AT_ONCE)) }
    }
}

impl AskNode for NodeClient {
    fn ask(&self, call: NodeCall) -> NodeAnswer {
        let (agent, turns, until) = (self.agent.clone(), Arc::clone(&self.turns), Instant::now() + call.within);
        Box::pin(async move {
            let turn = tokio::time::timeout(call.within, turns.acquire_owned()).await;
            let Ok(Ok(turn)) = turn else {
                return Err(AskNodeError::Unreachable("too many questions to other nodes are under way".to_owned()));
            };
            let send = move || {
                let _turn = turn;
                send(&agent, &call, until.saturating_duration_since(Instant::now()))
            };
            let answer = tokio::task::spawn_blocking(send).await;
            answer.unwrap_or_else(|_| Err(AskNodeError::Unreachable("the request was given up".to_owned())))
        })
    }
}

fn send(agent: &ureq::Agent, call: &NodeCall, within: Duration) -> Result<Vec<u8>, AskNodeError> {
    let unreachable = |error: ureq::Error| AskNodeError::Unreachable(format!("{}: {error}", call.address));
    let request = agent.post(format!("{}{ASK_PATH}", call.address)).config().timeout_global(Some(within)).build();
    let mut answer = request.header(NODE_TOKEN.as_str(), &call.token).send(&call.request[..]).map_err(unreachable)?;
    let (status, body) = (answer.status(), answer.body_mut());
    let body = body.with_config().limit(MAX_ANSWER_BYTES as u64 + 1).read_to_vec().map_err(unreachable)?;
    match status.as_u16() {
        200 => Ok(body),
        status if status == NO_ANSWER.as_u16() => Err(refused(&String::from_utf8_lossy(&body))),
        status => Err(AskNodeError::Unreachable(format!("{}: it answered with status {status}", call.address))),
    }
}
