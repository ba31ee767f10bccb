//! The encodings of bodies. A body is decoded up to its limit, and what its decoder allocates is
//! bounded, whatever the body says.
//!
//! The framework's own decompression has no strict bound, so bodies are decompressed here, with one
//! encoding each.

use std::io::Read;

use actix_web::http::header;
use actix_web::web::Bytes;
use brotli::enc::StandardAlloc;
use brotli::{Allocator, BrotliDecompressStream, BrotliResult, BrotliState};

use crate::request::HttpRequest;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};

/// What the decoder of brotli may always allocate at once: more than its tables have.
const LEAST_ALLOCATED_BYTES: usize = 64 << 10;
/// The largest window of a zstd body: 8 MiB, as RFC 9659 demands of the encoding in HTTP.
const MAX_ZSTD_WINDOW_LOG: u32 = 23;

/// Whether a client reads gzip.
pub fn takes_gzip(request: &HttpRequest) -> bool {
    let encodings = request.headers().get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    encodings.is_some_and(|encodings| encodings.contains("gzip"))
}

/// Returns a body of a request without its encoding. It is at most as large as the limit.
pub(super) fn decode(request: &HttpRequest, body: Bytes, limit_bytes: usize) -> Result<Bytes> {
    let Some(encoding) = request.headers().get(header::CONTENT_ENCODING) else { return Ok(body) };
    let readable = |_| ApiError::unsupported_media("the content encoding must be gzip, br or zstd, in ASCII");
    let encoding = encoding.to_str().map_err(readable)?.trim().to_ascii_lowercase();
    match encoding.as_str() {
        "" | "identity" => Ok(body),
        "gzip" | "x-gzip" => inflate(flate2::read::MultiGzDecoder::new(&body[..]), limit_bytes),
        "br" => inflate_brotli(&body, limit_bytes),
        "zstd" => {
            let mut decoder = zstd::stream::read::Decoder::new(&body[..]).map_err(|_| broken())?;
            decoder.window_log_max(MAX_ZSTD_WINDOW_LOG).map_err(|_| ApiError::internal())?;
            inflate(decoder, limit_bytes)
        }
        other => Err(ApiError::unsupported_media(format!("the content encoding must be gzip, br or zstd, not {other:?}"))),
    }
}

/// Refuses what is over a limit.
pub(super) fn within(bytes: usize, limit_bytes: usize) -> Result<()> {
    if bytes > limit_bytes { Err(ApiError::too_large(limit_bytes)) } else { Ok(()) }
}

fn inflate(decoder: impl Read, limit_bytes: usize) -> Result<Bytes> {
    let mut body = Vec::new();
    let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
    decoder.take(limit + 1).read_to_end(&mut body).map_err(|_| broken())?;
    within(body.len(), limit_bytes)?;
    Ok(body.into())
}

/// Allocates what a body within its limit needs, and nothing that is larger: a few bytes may ask for a window of gigabytes.
struct BoundedAlloc {
    most: usize,
    all: StandardAlloc,
    has_refused: bool,
}

impl Allocator<u8> for BoundedAlloc {
    type AllocatedMemory = <StandardAlloc as Allocator<u8>>::AllocatedMemory;

    fn alloc_cell(&mut self, length: usize) -> Self::AllocatedMemory {
        // The decoder ends with an error where it gets less than it asked for.
        let is_refused = length > self.most;
        self.has_refused |= is_refused;
        Allocator::<u8>::alloc_cell(&mut self.all, if is_refused { 0 } else { length })
    }

    fn free_cell(&mut self, cell: Self::AllocatedMemory) {
        Allocator::<u8>::free_cell(&mut self.all, cell);
    }
}

/// Decodes brotli of RFC 7932, whose windows have at most 16 MiB. Unlike the crate's reader, it refuses bytes after the end.
fn inflate_brotli(body: &[u8], limit_bytes: usize) -> Result<Bytes> {
    // The window of a body within the limit has the next power of two, and some bytes more.
    let window =
        BoundedAlloc { most: (2 * limit_bytes).max(LEAST_ALLOCATED_BYTES), all: StandardAlloc::default(), has_refused: false };
    let mut state = BrotliState::new_strict(window, StandardAlloc::default(), StandardAlloc::default());
    let (mut left, mut at, mut total) = (body.len(), 0, 0);
    let mut decoded = Vec::new();
    let mut part = [0; 8 << 10];
    loop {
        let (mut room, mut written) = (part.len(), 0);
        let result = BrotliDecompressStream(&mut left, &mut at, body, &mut room, &mut written, &mut part, &mut total, &mut state);
        decoded.extend_from_slice(part.get(..written).unwrap_or_default());
        within(decoded.len(), limit_bytes)?;
        match result {
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::ResultSuccess if left == 0 => return Ok(decoded.into()),
            // It announced more than the limit.
            BrotliResult::ResultFailure if state.alloc_u8.has_refused => return Err(ApiError::too_large(limit_bytes)),
            _ => return Err(broken()),
        }
    }
}

fn broken() -> ApiError {
    ApiError::new(ErrorCode::InvalidEncoding, "the body is not what its content encoding says")
}
