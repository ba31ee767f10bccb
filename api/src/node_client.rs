//! Asks other nodes about projects that they own, over HTTP.
//!
//! Connections stay open for the next question. Each request blocks a thread. Each node has a
//! bounded number of them, so that a silent node delays no question to another, and an organization
//! may use a part of them. A request that nobody awaits any more ends at its time limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_common::nodes::{AskNode, AskNodeError, MAX_ANSWER_BYTES, NodeAnswer, NodeCall};
use parking_lot::Mutex;

use crate::node::{ASK_PATH, NO_ANSWER, NODE_TOKEN, ORGANIZATION, refused};
use crate::node_tls::NodeTls;
use crate::turns::Turns;

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of requests to a node at once. An organization may have a quarter of them.
const MAX_AT_ONCE: usize = 32;
/// The number of known nodes at which idle ones are forgotten.
const MANY_NODES: usize = 64;

/// A client of other nodes.
#[derive(Debug)]
pub struct NodeClient {
    agent: ureq::Agent,
    /// By the address of the node that is asked.
    turns: Mutex<HashMap<Arc<str>, Turns>>,
}

impl NodeClient {
    /// Creates a client, which verifies the certificates of nodes with `https` addresses.
    #[must_use]
    pub fn new(tls: Option<&NodeTls>) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(MAX_AT_ONCE)
            .max_idle_connections_per_host(MAX_AT_ONCE)
            // Nodes reach each other directly, whatever the environment says.
            .proxy(None)
            .tls_config(tls.map(NodeTls::blocking).unwrap_or_default());
        Self { agent: config.build().into(), turns: Mutex::default() }
    }

    fn turns_of(&self, address: &Arc<str>) -> Turns {
        let mut turns = self.turns.lock();
        if turns.len() >= MANY_NODES {
            turns.retain(|_, turns| turns.used() > 0);
        }
        turns.entry(Arc::clone(address)).or_insert_with(|| Turns::new(MAX_AT_ONCE)).clone()
    }
}

impl AskNode for NodeClient {
    fn ask(&self, call: NodeCall) -> NodeAnswer {
        let (agent, turns, until) = (self.agent.clone(), self.turns_of(&call.address), Instant::now() + call.within);
        Box::pin(async move {
            let Some(turn) = turns.wait(call.organization, call.within).await else {
                return Err(AskNodeError::Unreachable("too many questions to it are under way".to_owned()));
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
    let request = request.header(NODE_TOKEN.as_str(), &call.token).header(ORGANIZATION.as_str(), call.organization.0.to_string());
    let mut answer = request.send(&call.request[..]).map_err(unreachable)?;
    let (status, body) = (answer.status(), answer.body_mut());
    let body = body.with_config().limit(MAX_ANSWER_BYTES as u64 + 1).read_to_vec().map_err(unreachable)?;
    match status.as_u16() {
        200 => Ok(body),
        status if status == NO_ANSWER.as_u16() => Err(refused(&String::from_utf8_lossy(&body))),
        status => Err(AskNodeError::Unreachable(format!("{}: it answered with status {status}", call.address))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use headcount_domain::OrganizationId;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn call(address: &str, organization: u64, within: Duration) -> NodeCall {
        let organization = OrganizationId(organization);
        NodeCall { address: address.into(), token: "token".to_owned(), organization, request: vec![1], within }
    }

    /// A node that answers if `answers`, and is silent otherwise.
    fn node(answers: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for mut socket in listener.incoming().map_while(Result::ok) {
                if answers {
                    let _ = socket.read(&mut [0; 4096]);
                    let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
                } else {
                    silent.push(socket);
                }
            }
        });
        address
    }

    #[actix_web::test]
    async fn a_silent_node_holds_up_no_question_to_another() {
        let (client, silent, other) = (NodeClient::new(None), node(false), node(true));
        let mut waiting = Vec::new();
        for number in 0..2 * MAX_AT_ONCE as u64 {
            waiting.push(tokio::spawn(client.ask(call(&silent, number, Duration::from_secs(3)))));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(client.turns_of(&silent.as_str().into()).used() > MAX_AT_ONCE / 2);
        let began = Instant::now();
        assert_eq!(client.ask(call(&other, 1, PATIENCE)).await.unwrap(), b"ok");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        for waiting in waiting {
            assert!(matches!(waiting.await.unwrap(), Err(AskNodeError::Unreachable(_))));
        }
        assert_eq!(client.turns_of(&silent.as_str().into()).used(), 0);
    }
}
