//! A request on its way to its handler.

use std::future::ready;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use crate::respond::error::Result;
use actix_web::HttpResponse;
use actix_web::dev::Payload;
use futures_util::future::LocalBoxFuture;
use headcount_actors::Tracker;

use crate::app::AppState;
use crate::forward::Peers;
use crate::request::HttpRequest;

/// What the handlers of a worker share: the state of the server, and what its thread alone has.
pub struct Worker {
    state: Arc<AppState>,
    /// The way of events to the engine.
    pub tracker: Tracker,
    peers: Peers,
}

impl Worker {
    /// A worker of a server.
    pub fn new(state: Arc<AppState>, tracker: Tracker) -> Self {
        let peers = Peers::new(state.node_tls.as_ref());
        Self { state, tracker, peers }
    }

    /// What a request is passed on with: the state, and the connections to other nodes.
    pub fn forwarding(&self) -> (&AppState, &Peers) {
        (&self.state, &self.peers)
    }
}

impl Deref for Worker {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.state
    }
}

/// A request as handlers take it.
pub struct ApiCall {
    /// What handlers share.
    pub state: Rc<Worker>,
    /// Its head.
    pub request: HttpRequest,
    /// The body, unread.
    pub payload: Payload,
}

/// What becomes of a request.
pub type Answer = LocalBoxFuture<'static, Result<HttpResponse>>;

/// What answers the requests of an endpoint.
pub type Handler = fn(ApiCall) -> Answer;

/// Returns an answer that is known already.
pub fn at_once(answer: Result<HttpResponse>) -> Answer {
    Box::pin(ready(answer))
}
