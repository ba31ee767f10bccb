//! `POST /node/ask`: what other nodes ask about projects of this one. It is not part of the interface, and looks like no path to whoever is no node.

use actix_web::http::header::HeaderName;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use headcount_actors::{AskNodeError, MAX_REQUEST_BYTES};
use tokio::sync::Semaphore;

use crate::http::app::AppState;
use crate::http::extract::body;
use crate::http::respond::error::ApiError;

/// The path.
pub(crate) const ASK_PATH: &str = "/node/ask";
/// The header that carries what only nodes know.
pub(crate) const NODE_TOKEN: HeaderName = HeaderName::from_static("headcount-node-token");
/// The status of an answer that says why there is none, in a text of a code, a space and details.
pub(crate) const NO_ANSWER: StatusCode = StatusCode::CONFLICT;

/// How many questions of other nodes are read and answered at once: each may be large, and so may its answer.
const MAX_AT_ONCE: usize = 32;

static TURNS: Semaphore = Semaphore::const_new(MAX_AT_ONCE);

/// Answers a question of another node.
pub(crate) async fn ask(state: Data<AppState>, request: HttpRequest, payload: Payload) -> Result<HttpResponse, ApiError> {
    if request.method() != Method::POST || !is_node(&state, &request) {
        return Err(ApiError::not_found("path"));
    }
    let _turn = TURNS.acquire().await.map_err(|_| ApiError::internal())?;
    let question = body::read(&request, payload, MAX_REQUEST_BYTES).await?;
    Ok(match state.engine.answer_remote(&question).await {
        Ok(answer) => HttpResponse::Ok().content_type("application/octet-stream").body(answer),
        Err(error) => HttpResponse::build(NO_ANSWER).content_type("text/plain").body(refusal(&error)),
    })
}

/// Whether the sender is another node.
fn is_node(state: &AppState, request: &HttpRequest) -> bool {
    let Some(shown) = request.headers().get(NODE_TOKEN) else { return false };
    !state.engine.owners().is_alone() && shown.to_str().is_ok_and(|shown| state.engine.node_token().is(shown))
}

fn refusal(error: &AskNodeError) -> String {
    format!("{} {}", error.code(), error.details())
}

/// Reads what [`ask`] answered instead of an answer.
pub(crate) fn refused(text: &str) -> AskNodeError {
    let (code, details) = text.split_once(' ').unwrap_or((text, ""));
    AskNodeError::of_code(code, details)
}
