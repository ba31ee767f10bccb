//! Bodies, read up to a limit that also holds for the decompressed size.
//!
//! A body is read by whoever has a permit for its bytes. The permit grows as they arrive, whatever
//! the body says about its length.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::web::{Bytes, BytesMut};
use futures_util::StreamExt;
use headcount_actors::admission_gate::{Holder, Permit};
use headcount_domain::ProjectId;

use crate::app::AppState;
use crate::extract::{encoding, standing};
use crate::request::HttpRequest;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};

/// The maximum size of an event's body.
pub const EVENT_LIMIT_BYTES: usize = 64 << 10;
/// The largest row of an export: it has an event and what was decided about it.
pub const IMPORT_LIMIT_BYTES: usize = 2 * EVENT_LIMIT_BYTES;
/// The maximum size of the body of a batch or of a management operation.
pub const BATCH_LIMIT_BYTES: usize = 4 << 20;
/// What a body takes before anything of it has arrived: as much as a usual event.
pub const FIRST_BYTES: usize = 1 << 10;
/// The time limit for a body to arrive.
const DEADLINE: Duration = Duration::from_secs(10);

/// Whether all of the current request of a connection has arrived. Clones are of the same connection.
#[derive(Debug, Clone, Default)]
pub struct Arrived(Rc<Cell<bool>>);

impl Arrived {
    /// Says whether it has.
    pub fn set(&self, has_arrived: bool) {
        self.0.set(has_arrived);
    }

    /// Whether it has.
    pub fn get(&self) -> bool {
        self.0.get()
    }
}

/// The content types that an operation accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// JSON only.
    Json,
    /// JSON, also as `text/plain`, which a beacon can send without a preflight.
    JsonOrText,
}

/// Refuses a body of another type. A body without a type counts as JSON.
pub fn check_media(request: &HttpRequest, media: Media) -> Result<()> {
    let Some(value) = request.headers().get(header::CONTENT_TYPE) else { return Ok(()) };
    let allowed = if media == Media::Json { "application/json" } else { "application/json or text/plain" };
    let readable = |_| ApiError::unsupported_media(format!("the content type must be {allowed}, in ASCII"));
    let essence = value.to_str().map_err(readable)?.split(';').next().unwrap_or_default().trim();
    let is_essence = |media: &str| essence.eq_ignore_ascii_case(media);
    if is_essence("application/json") || essence.is_empty() || (media == Media::JsonOrText && is_essence("text/plain")) {
        return Ok(());
    }
    let essence = essence.to_ascii_lowercase();
    if essence.starts_with("application/") && essence.ends_with("+json") {
        return Ok(());
    }
    Err(ApiError::unsupported_media(format!("the content type must be {allowed}, not {essence:?}")))
}

/// What is in a body. It says from which pool of the engine the bytes are taken, and in whose part.
#[derive(Debug, Clone, Copy)]
pub enum BodyContent {
    /// Events of a project. Until it is known, they are the client's alone.
    Events(Option<ProjectId>),
    /// Events that another node records.
    EventsElsewhere(Holder),
    /// A question, or a change. It must be possible while events fill their pool.
    Other(Option<Holder>),
}

/// Takes bytes of a body from their pool, if there is room for them now.
pub fn admit(state: &AppState, request: &HttpRequest, content: BodyContent, bytes: usize) -> Result<Permit> {
    let (engine, address) = (&state.engine, state.client_address(request));
    Ok(match content {
        BodyContent::Events(Some(project)) => engine.admission.admit(project, address, bytes)?,
        BodyContent::Events(None) => engine.admission.admit_from(address, bytes)?,
        BodyContent::EventsElsewhere(holder) => engine.admission.admit_for(holder, address, bytes)?,
        BodyContent::Other(holder) => engine.admission.admit_without_events(holder, address, bytes)?,
    })
}

/// Reads and decodes a body. The permit covers it then.
pub async fn read(
    state: &AppState,
    request: &HttpRequest,
    payload: Payload,
    permit: Permit,
    limit_bytes: usize,
) -> Result<(Bytes, Permit)> {
    let (body, mut permit) = read_encoded(state, request, payload, permit, limit_bytes).await?;
    let body = encoding::decode(request, body, limit_bytes)?;
    permit.cover(body.len())?;
    Ok((body, permit))
}

/// Reads a body as it was sent. The permit covers it then.
pub(crate) async fn read_encoded(
    state: &AppState,
    request: &HttpRequest,
    payload: Payload,
    mut permit: Permit,
    limit_bytes: usize,
) -> Result<(Bytes, Permit)> {
    let announced = announced_bytes(request, limit_bytes)?;
    // Most bodies are one chunk, which needs no copy.
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    each_chunk(state, request, payload, limit_bytes, |chunk, total| {
        permit.cover(total)?;
        if total == chunk.len() {
            first = chunk;
            return Ok(());
        }
        if rest.is_empty() {
            rest.reserve(announced.max(total));
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&chunk);
        Ok(())
    })
    .await?;
    Ok((if rest.is_empty() { first } else { rest.freeze() }, permit))
}

/// Reads a body to its end, and keeps nothing of it. The permit covers its largest chunk, whose buffer stays with the connection.
pub async fn discard(
    state: &AppState,
    request: &HttpRequest,
    payload: Payload,
    mut permit: Permit,
    limit_bytes: usize,
) -> Result<()> {
    each_chunk(state, request, payload, limit_bytes, |chunk, _| Ok(permit.cover(chunk.len())?)).await
}

/// Returns the body's announced length, which must be within the limit.
fn announced_bytes(request: &HttpRequest, limit_bytes: usize) -> Result<usize> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length: usize = length.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
    if length > limit_bytes { Err(ApiError::too_large(limit_bytes)) } else { Ok(length) }
}

/// A body, and the number of bytes to read of it; `None` reads all.
struct Incoming {
    payload: Payload,
    left: Option<usize>,
}

/// Limits the body of a request that asks for another protocol to its announced length. The framework treats everything after
/// such a head as the body.
fn until_end(request: &HttpRequest, payload: Payload, announced: usize) -> Incoming {
    let headers = request.headers();
    let is_cut = headers.contains_key(header::UPGRADE) && !headers.contains_key(header::TRANSFER_ENCODING);
    Incoming { payload, left: is_cut.then_some(announced) }
}

/// Passes the chunks of a body on, each with the number of bytes so far.
async fn each_chunk(
    state: &AppState,
    request: &HttpRequest,
    payload: Payload,
    limit_bytes: usize,
    mut take: impl FnMut(Bytes, usize) -> Result<()>,
) -> Result<()> {
    let mut incoming = until_end(request, payload, announced_bytes(request, limit_bytes)?);
    let mut total = 0;
    let read = async {
        while let Some(chunk) = next(&mut incoming).await? {
            total += chunk.len();
            encoding::within(total, limit_bytes)?;
            take(chunk, total)?;
        }
        standing::check_again(state, request)
    };
    // A body that has arrived needs no timer, which would cost more than most of an event.
    if request.conn_data().is_some_and(Arrived::get) {
        return read.await;
    }
    match tokio::time::timeout(DEADLINE, read).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::new(ErrorCode::BodyTimeout, "the body did not arrive within 10 seconds")),
    }
}

async fn next(incoming: &mut Incoming) -> Result<Option<Bytes>> {
    let incomplete = |_| ApiError::new(ErrorCode::IncompleteBody, "the body ended before it was complete");
    let mut chunk = match incoming.left {
        Some(0) => None,
        _ => incoming.payload.next().await.transpose().map_err(incomplete)?,
    };
    if let (Some(left), Some(bytes)) = (&mut incoming.left, &mut chunk) {
        bytes.truncate(*left);
        *left -= bytes.len();
    }
    Ok(chunk)
}
