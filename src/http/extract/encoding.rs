//! The encodings of bodies. A body is decoded up to its limit.
//!
//! The framework's own decompression has no strict bound, so bodies are decompressed here, with one encoding each.

use std::io::Read;

use actix_web::HttpRequest;
use actix_web::http::header;
use actix_web::web::Bytes;
use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};

use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// Returns a body of a request without its encoding. It is at most as large as the limit.
pub(super) fn decode(request: &HttpRequest, body: Bytes, limit_bytes: usize) -> Result<Bytes, ApiError> {
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

/// Refuses what is over a limit.
pub(super) fn within(bytes: usize, limit_bytes: usize) -> Result<(), ApiError> {
    if bytes > limit_bytes { Err(ApiError::too_large(limit_bytes)) } else { Ok(()) }
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
    let mut state = BrotliState::new(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
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
            _ => return Err(broken()),
        }
    }
}

fn broken() -> ApiError {
    ApiError::new(ErrorCode::InvalidEncoding, "the body is not what its content encoding says")
}
