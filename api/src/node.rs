//! `POST /node/ask`: questions of other nodes about projects of this one. It is not part of the
//! interface: all callers but nodes get the 404 of an unknown path.

use std::sync::LazyLock;
use std::time::Duration;

use crate::respond::error::Result;
use actix_web::http::header::HeaderName;
use actix_web::http::{Method, StatusCode};
use headcount_actors::admission_gate::Gate;
use headcount_common::nodes::{AskNodeError, MAX_REQUEST_BYTES};
use headcount_domain::OrganizationId;

use crate::endpoint::*;
use crate::extract::body;
use crate::turns::Turns;

/// The path.
pub const ASK_PATH: &str = "/node/ask";
/// The header with the token of nodes.
pub const NODE_TOKEN: HeaderName = HeaderName::from_static("headcount-node-token");
/// The status of a response without an answer. Its body has a code, a space and details.
pub(crate) const NO_ANSWER: StatusCode = StatusCode::CONFLICT;

/// The header with the id of the organization in question; 0 or absent if there is not exactly one.
pub const ORGANIZATION: HeaderName = HeaderName::from_static("headcount-organization");

/// The number of questions of other nodes that are answered at once, since each may be large. An
/// organization may have a quarter of them.
const MAX_AT_ONCE: usize = 32;
/// The longest wait of a question for its turn.
const MAX_WAIT: Duration = Duration::from_secs(10);

static TURNS: LazyLock<Turns> = LazyLock::new(|| Turns::new(MAX_AT_ONCE));
/// The bytes of all questions of other nodes. One may have all of them.
static BODIES: LazyLock<Gate> = LazyLock::new(|| Gate::new(MAX_REQUEST_BYTES));

/// Answers a question of another node.
pub async fn ask(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse> {
    if request.method() != Method::POST || !is_node(&state, &request) {
        return Err(ApiError::not_found("path"));
    }
    let Some(_turn) = TURNS.wait(organization(&request), MAX_WAIT).await else {
        return Ok(no_answer(&AskNodeError::Busy));
    };
    let Ok(permit) = BODIES.take_for([None, None], body::FIRST_BYTES) else {
        return Ok(no_answer(&AskNodeError::Busy));
    };
    let (question, _permit) = body::read(&state, &request, payload, permit, MAX_REQUEST_BYTES).await?;
    Ok(match state.engine.answer_remote(&question).await {
        Ok(answer) => HttpResponse::Ok().content_type("application/octet-stream").body(answer),
        Err(error) => no_answer(&error),
    })
}

fn no_answer(error: &AskNodeError) -> HttpResponse {
    HttpResponse::build(NO_ANSWER).content_type("text/plain").body(refusal(error))
}

/// The organization of a question, by its header.
fn organization(request: &HttpRequest) -> OrganizationId {
    let id = request.headers().get(ORGANIZATION).and_then(|id| id.to_str().ok()?.parse().ok());
    OrganizationId(id.unwrap_or(0))
}

/// Whether the sender is another node.
fn is_node(state: &AppState, request: &HttpRequest) -> bool {
    let Some(shown) = request.headers().get(NODE_TOKEN) else { return false };
    shown.to_str().is_ok_and(|shown| state.engine.node_token().is(shown))
}

fn refusal(error: &AskNodeError) -> String {
    format!("{} {}", error.code(), error.details())
}

/// Reads the reason that [`ask`] gave instead of an answer.
pub fn refused(text: &str) -> AskNodeError {
    let (code, details) = text.split_once(' ').unwrap_or((text, ""));
    AskNodeError::of_code(code, details)
}
