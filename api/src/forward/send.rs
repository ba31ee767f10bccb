//! Sends a request to the owner, and returns its answer.

use std::cell::Cell;
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody};
use actix_web::http::StatusCode;
use futures_util::future::LocalBoxFuture;
use headcount_actors::Engine;
use headcount_common::Owner;
use hyper::Request;
use hyper::http::{HeaderName, HeaderValue, Method, Uri, header, response};

use super::download::Download;
use super::headers;
use super::peers::{NoAnswer, Peers, Share};
use super::travel::{OwnerNode, Travel};
use super::upload::{Upload, UploadBody};
use crate::app::AppState;
use crate::first_node;
use crate::request::HttpRequest;
use crate::request_id::REQUEST_ID;
use crate::request_metrics::Forwarded;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};
use crate::respond::sent::PassedOn;

/// The time beyond the owner's own limits that its answer may take.
const MARGIN: Duration = Duration::from_secs(30);
/// The least time that the owner has: for a body to arrive, and for events to be recorded and
/// applied.
const LEAST_PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two checks whether the node is still the owner.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a node may take for its answer after another node became the owner. It may have recorded
/// events that it still counts.
const LAST_PATIENCE: Duration = Duration::from_secs(4);
/// The same while no owner is known. This node may only have lost its connection to the others.
const LAST_PATIENCE_UNKNOWN: Duration = Duration::from_secs(20);

/// Sends a request to the node `to`, once, and returns its answer as it is.
///
/// If the node is frozen, the request fails soon after its partition has another owner, or may have.
///
/// The future is boxed: it is large, and handlers that contain it seldom need it.
#[inline(never)]
pub fn forward<'a>(
    (state, peers): (&'a AppState, &'a Peers),
    request: &'a HttpRequest,
    upload: Upload,
    to: OwnerNode,
    travel: Travel,
) -> LocalBoxFuture<'a, Result<HttpResponse>> {
    Box::pin(send((state, peers), request, upload, to, travel))
}

async fn send(
    (state, peers): (&AppState, &Peers),
    request: &HttpRequest,
    upload: Upload,
    to: OwnerNode,
    travel: Travel,
) -> Result<HttpResponse> {
    let is_decoded = upload.is_decoded();
    let outgoing = outgoing(state, request, upload.complete(state, request, &to, travel).await?, is_decoded)?;
    let patience = state.engine.question_timeout().max(LEAST_PATIENCE) + MARGIN;
    let share = Share { holder: to.holder, address: state.client_address(request), travel };
    let is_sent = Cell::new(false);
    let asked = async {
        let (answer, connection) = peers.send(&to.address, outgoing, &share, (patience, &is_sent)).await?;
        let (head, body) = answer.into_parts();
        let download = Download::begin(body, connection, patience, travel).await?;
        // A frozen owner never reports its end.
        let follows = travel == Travel::Follows;
        Ok((head, if follows { download.until(replaced(state.engine.clone(), to.clone())) } else { download }))
    };
    let answer = tokio::select! {
        answer = asked => answer,
        () = replaced(state.engine.clone(), to.clone()) => Err(if is_sent.get() { NoAnswer::Lost } else { NoAnswer::NotSent }),
    };
    match answer {
        Ok((head, download)) => {
            state.request_metrics.count_forwarded(Forwarded::Answered);
            answered(&head, download)
        }
        Err(no_answer) => Err(failed(state, no_answer, travel)),
    }
}

/// Waits until a node has been the former owner for a while.
async fn replaced(engine: Engine, node: OwnerNode) {
    let mut since = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let patience = match engine.owners().of(node.partition) {
            Owner::There(address) if address == node.address => {
                since = None;
                continue;
            }
            Owner::There(_) | Owner::Here => LAST_PATIENCE,
            Owner::Nowhere => LAST_PATIENCE_UNKNOWN,
        };
        if since.get_or_insert_with(Instant::now).elapsed() >= patience {
            return;
        }
    }
}

/// Returns the error for the client if the owner gave no answer. This node never sends events again
/// that may be recorded. After `outcome_unknown`, clients may only with an `external_id`.
fn failed(state: &AppState, no_answer: NoAnswer, travel: Travel) -> ApiError {
    match no_answer {
        NoAnswer::NotSent => {
            state.request_metrics.count_forwarded(Forwarded::NotSent);
            ApiError::overloaded("the machine that has this project can't be reached; nothing was recorded")
        }
        NoAnswer::Busy => {
            state.request_metrics.count_forwarded(Forwarded::Busy);
            ApiError::overloaded("too many requests to the machine that has this project are under way; nothing was recorded")
        }
        NoAnswer::Lost => {
            state.request_metrics.count_forwarded(Forwarded::Lost);
            match travel {
                Travel::Records => ApiError::outcome_unknown(),
                Travel::Reads | Travel::ReadsForLong | Travel::Follows => {
                    ApiError::overloaded("the machine that has this project did not answer")
                }
            }
        }
    }
}

/// Returns the request to send.
fn outgoing(state: &AppState, request: &HttpRequest, body: UploadBody, is_decoded: bool) -> Result<Request<UploadBody>> {
    let unusable =
        || ApiError::new(ErrorCode::MalformedRequest, "the request can't be passed on to the machine that has this project");
    let mut passed = headers::of_request(request.headers(), is_decoded);
    let own = [
        (first_node::FORWARDED, state.as_first_node(request).write(state.engine.node_token())),
        (REQUEST_ID, Some(request.id().0.clone())),
    ];
    for (name, value) in own {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).map_err(|_| unusable())?;
        let value = value.and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok()).ok_or_else(unusable)?;
        passed.insert(name, value);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let mut outgoing = Request::new(body);
    *outgoing.method_mut() = Method::from_bytes(request.method().as_str().as_bytes()).map_err(|_| unusable())?;
    *outgoing.uri_mut() = Uri::try_from(path).map_err(|_| unusable())?;
    *outgoing.headers_mut() = passed;
    Ok(outgoing)
}

/// Returns the owner's answer as that of this node.
fn answered(head: &response::Parts, mut download: Download) -> Result<HttpResponse> {
    let status = StatusCode::from_u16(head.status.as_u16()).map_err(|_| ApiError::internal())?;
    let length = head.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    download.size = match length {
        Some(bytes) => BodySize::Sized(bytes),
        None if download.is_empty() => BodySize::None,
        None => BodySize::Stream,
    };
    let mut response = HttpResponse::new(status);
    headers::of_answer(&head.headers, response.headers_mut());
    response.extensions_mut().insert(PassedOn);
    Ok(response.set_body(BoxBody::new(download)))
}
