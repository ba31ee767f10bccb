//! Bodies, read up to a limit that also holds for the decompressed size.
//!
//! The framework's own decompression has no strict bound, so bodies are decompressed here, with one encoding each.

use std::io::Read;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::dev;
use actix_web::http::header;
use actix_web::web::{Bytes, BytesMut, Payload};
use futures_util::StreamExt;
use headcount_actors::admission_gate::{Holder, Permit};
use headcount_domain::ids::ProjectId;

use crate::http::app::AppState;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The maximum size of an event's body.
pub(crate) const EVENT_LIMIT_BYTES: usize = 64 << 10;
/// The maximum size of the body of a batch or of a management operation.
pub(crate) const BATCH_LIMIT_BYTES: usize = 4 << 20;
/// The time limit for a body to arrive.
const DEADLINE: Duration = Duration::from_secs(10);

/// The content types that an operation accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// JSON only.
    Json,
    /// JSON, also as `text/plain`, which a beacon can send without a preflight.
    JsonOrText,
}

/// Refuses a body of another type. A body without a type counts as JSON.
pub(crate) fn check_media(request: &HttpRequest, media: Media) -> Result<(), ApiError> {
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

/// Reserves the bytes of an event of `project` in the engine's pool, if the engine accepts events of it from this client now. Where the
/// project is not known yet, they are the client's alone.
pub(crate) fn admit(
    state: &AppState,
    request: &HttpRequest,
    project: Option<ProjectId>,
    bytes: usize,
) -> Result<Permit, ApiError> {
    let address = state.client_address(request);
    Ok(match project {
        Some(project) => state.engine.admit(project, address, bytes)?,
        None => state.engine.admit_from(address, bytes)?,
    })
}

/// Reads a body of `project`, if it is known. Its bytes are reserved in the engine's pool before they are read.
pub(crate) async fn read_admitted(
    state: &AppState,
    request: &HttpRequest,
    payload: Payload,
    project: Option<ProjectId>,
    limit_bytes: usize,
) -> Result<(Bytes, Permit), ApiError> {
    let admit = |bytes| admit(state, request, project, bytes);
    let (body, mut permit) = read_reserved(request, payload.into_inner(), limit_bytes, admit).await?;
    let body = decode(request, body, limit_bytes)?;
    permit.cover(body.len())?;
    Ok((body, permit))
}

/// Reads a body that another node decodes. The bytes of events are reserved in the engine's pool, in the share of their `holder`.
pub(crate) async fn read_encoded(
    state: &AppState,
    request: &HttpRequest,
    payload: dev::Payload,
    holder: Option<Holder>,
    limit_bytes: usize,
) -> Result<(Bytes, Option<Permit>), ApiError> {
    let Some(holder) = holder else { return Ok((read_unreserved(request, payload, limit_bytes).await?, None)) };
    let admit = |bytes| Ok(state.engine.admit_forwarded(holder, state.client_address(request), bytes)?);
    let (body, permit) = read_reserved(request, payload, limit_bytes, admit).await?;
    Ok((body, Some(permit)))
}

/// Reads a body as it was sent. Its bytes are reserved before they are read.
async fn read_reserved(
    request: &HttpRequest,
    payload: dev::Payload,
    limit_bytes: usize,
    admit: impl FnOnce(usize) -> Result<Permit, ApiError>,
) -> Result<(Bytes, Permit), ApiError> {
    // Announced bytes must not fill the pool: beyond the size of one event, bytes are reserved as they arrive.
    let announced = announced_bytes(request, limit_bytes)?;
    let mut permit = admit(announced.min(EVENT_LIMIT_BYTES))?;
    let body = collect(until_end(request, payload, announced), limit_bytes, |bytes| Ok(permit.cover(bytes)?)).await?;
    Ok((body, permit))
}

/// Reads a body that carries no events.
pub(crate) async fn read(request: &HttpRequest, payload: Payload, limit_bytes: usize) -> Result<Bytes, ApiError> {
    let body = read_unreserved(request, payload.into_inner(), limit_bytes).await?;
    decode(request, body, limit_bytes)
}

/// Reads a body as it was sent.
async fn read_unreserved(request: &HttpRequest, payload: dev::Payload, limit_bytes: usize) -> Result<Bytes, ApiError> {
    let announced = announced_bytes(request, limit_bytes)?;
    collect(until_end(request, payload, announced), limit_bytes, |_| Ok(())).await
}

/// Returns the body's announced length, which must be within the limit.
fn announced_bytes(request: &HttpRequest, limit_bytes: usize) -> Result<usize, ApiError> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length: usize = length.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
    if length > limit_bytes { Err(ApiError::too_large(limit_bytes)) } else { Ok(length) }
}

/// A body, and the number of bytes to read of it; `None` reads all.
struct Incoming {
    payload: dev::Payload,
    left: Option<usize>,
}

/// Limits the body of a request that asks for another protocol to its announced length. The framework treats everything after
/// such a head as the body.
fn until_end(request: &HttpRequest, payload: dev::Payload, announced: usize) -> Incoming {
    let headers = request.headers();
    let is_cut = headers.contains_key(header::UPGRADE) && !headers.contains_key(header::TRANSFER_ENCODING);
    Incoming { payload, left: is_cut.then_some(announced) }
}

async fn collect(
    mut payload: Incoming,
    limit_bytes: usize,
    mut grown_to: impl FnMut(usize) -> Result<(), ApiError>,
) -> Result<Bytes, ApiError> {
    let read = async {
        // Most bodies are one chunk, which needs no copy.
        let Some(first) = next(&mut payload).await? else { return Ok(Bytes::new()) };
        within(first.len(), limit_bytes)?;
        grown_to(first.len())?;
        let Some(second) = next(&mut payload).await? else { return Ok(first) };
        let mut body = BytesMut::from(&first[..]);
        let mut chunk = Some(second);
        while let Some(bytes) = chunk {
            within(body.len() + bytes.len(), limit_bytes)?;
            grown_to(body.len() + bytes.len())?;
            body.extend_from_slice(&bytes);
            chunk = next(&mut payload).await?;
        }
        Ok(body.freeze())
    };
    match tokio::time::timeout(DEADLINE, read).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::new(ErrorCode::BodyTimeout, "the body did not arrive within 10 seconds")),
    }
}

async fn next(incoming: &mut Incoming) -> Result<Option<Bytes>, ApiError> {
    if incoming.left == Some(0) {
        return Ok(None);
    }
    let incomplete = |_| ApiError::new(ErrorCode::IncompleteBody, "the body ended before it was complete");
    let mut chunk = incoming.payload.next().await.transpose().map_err(incomplete)?;
    if let (Some(left), Some(bytes)) = (&mut incoming.left, &mut chunk) {
        bytes.truncate(*left);
        *left -= bytes.len();
    }
    Ok(chunk)
}

fn within(bytes: usize, limit_bytes: usize) -> Result<(), ApiError> {
    if bytes > limit_bytes { Err(ApiError::too_large(limit_bytes)) } else { Ok(()) }
}

/// Decodes the body, up to the limit.
fn decode(request: &HttpRequest, body: Bytes, limit_bytes: usize) -> Result<Bytes, ApiError> {
    let Some(encoding) = request.headers().get(header::CONTENT_ENCODING) else { return Ok(body) };
    let readable = |_| ApiError::unsupported_media("the content encoding must be gzip, br or zstd, in ASCII");
    let encoding = encoding.to_str().map_err(readable)?.trim().to_ascii_lowercase();
    match encoding.as_str() {
        "" | "identity" => Ok(body),
        "gzip" | "x-gzip" => inflate(flate2::read::MultiGzDecoder::new(&body[..]), limit_bytes),
        "br" => inflate_brotli(&body, limit_bytes),
        "zstd" => match zstd::stream::read::Decoder::new(&body[..]) {
            Ok(decoder) => inflate(decoder, limit_bytes),
            Err(_) => Err(broken()),
        },
        other => Err(ApiError::unsupported_media(format!("the content encoding must be gzip, br or zstd, not {other:?}"))),
    }
}

fn inflate(decoder: impl Read, limit_bytes: usize) -> Result<Bytes, ApiError> {
    let mut body = Vec::new();
    let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
    decoder.take(limit + 1).read_to_end(&mut body).map_err(|_| broken())?;
    within(body.len(), limit_bytes)?;
    Ok(body.into())
}

/// Decodes brotli. Unlike the crate's reader, it refuses bytes after the end.
fn inflate_brotli(body: &[u8], limit_bytes: usize) -> Result<Bytes, ApiError> {
    let mut state = brotli::BrotliState::new(
        brotli::enc::StandardAlloc::default(),
        brotli::enc::StandardAlloc::default(),
        brotli::enc::StandardAlloc::default(),
    );
    let (mut left, mut at, mut total) = (body.len(), 0, 0);
    let mut decoded = Vec::new();
    let mut part = [0; 8 << 10];
    loop {
        let (mut room, mut written) = (part.len(), 0);
        let result =
            brotli::BrotliDecompressStream(&mut left, &mut at, body, &mut room, &mut written, &mut part, &mut total, &mut state);
        decoded.extend_from_slice(part.get(..written).unwrap_or_default());
        within(decoded.len(), limit_bytes)?;
        match result {
            brotli::BrotliResult::NeedsMoreOutput => {}
            brotli::BrotliResult::ResultSuccess if left == 0 => return Ok(decoded.into()),
            _ => return Err(broken()),
        }
    }
}

fn broken() -> ApiError {
    ApiError::new(ErrorCode::InvalidEncoding, "the body is not what its content encoding says")
}
