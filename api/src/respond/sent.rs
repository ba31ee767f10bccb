//! How an answer is sent: compressed for clients that ask for it, and large ones in slices.

use std::io;

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody, to_bytes};
use actix_web::http::header::{self, AcceptEncoding, ContentEncoding, Encoding, Header, HeaderValue};
use actix_web::web::Bytes;
use parking_lot::Mutex;

use crate::request::HttpRequest;
use crate::respond::error::ApiError;
use crate::respond::slices::LargeAnswers;

/// The minimum size to compress. Below it, compression saves less than its headers cost.
const COMPRESS_FROM_BYTES: u64 = 1_024;
/// The maximum size to compress. A larger answer would delay the worker's other requests.
const COMPRESS_UP_TO_BYTES: u64 = 4 << 20;

/// The number of cached encoded documents: two documents in three encodings, and the tracker in
/// two.
const MAX_ENCODED_DOCUMENTS: usize = 8;

/// Marks an answer that another node made, complete with headers and encoding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedOn;

/// Returns an answer as it is sent.
pub async fn sent(request: &HttpRequest, response: HttpResponse, large: &LargeAnswers) -> HttpResponse {
    if response.extensions().contains::<PassedOn>() {
        return response;
    }
    // Most answers are for events and too small to compress, so don't parse what the client
    // accepts.
    let wanted = if is_worth_it(&response) { wanted(request) } else { None };
    let response = match wanted {
        Some(encoding) => compress(request, response, encoding).await,
        None => response,
    };
    let is_large = !is_file(&response) && LargeAnswers::is_large(response.body().size());
    if is_large { in_slices(request, response, large).await } else { response }
}

/// Whether the body is streamed from a file and supports ranges.
fn is_file(response: &HttpResponse) -> bool {
    response.headers().contains_key(header::ACCEPT_RANGES)
}

/// Returns the same answer, sent in slices.
async fn in_slices(request: &HttpRequest, response: HttpResponse, large: &LargeAnswers) -> HttpResponse {
    let (head, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body).await else { return unreadable(request) };
    match large.slices(bytes) {
        Some(slices) => head.set_body(BoxBody::new(slices)),
        None => ApiError::overloaded("too many large answers are being read slowly").respond_to(request),
    }
}

/// The answer instead of one whose body can't be read.
fn unreadable(request: &HttpRequest) -> HttpResponse {
    tracing::error!("an answer could not be read");
    ApiError::internal().respond_to(request)
}

/// Returns the encoding that the client prefers among the supported ones.
fn wanted(request: &HttpRequest) -> Option<ContentEncoding> {
    if !request.headers().contains_key(header::ACCEPT_ENCODING) {
        return None;
    }
    let ours = [Encoding::brotli(), Encoding::zstd(), Encoding::gzip(), Encoding::identity()];
    let accepted = AcceptEncoding::parse(request).ok()?;
    match accepted.negotiate(ours.iter())? {
        Encoding::Known(ContentEncoding::Identity) | Encoding::Unknown(_) => None,
        Encoding::Known(encoding) => Some(encoding),
    }
}

fn is_worth_it(response: &HttpResponse) -> bool {
    let is_sized = matches!(response.body().size(), BodySize::Sized(COMPRESS_FROM_BYTES..=COMPRESS_UP_TO_BYTES));
    // Ranges refer to the uncompressed bytes.
    is_sized && !response.headers().contains_key(header::CONTENT_ENCODING) && !is_file(response)
}

async fn compress(request: &HttpRequest, response: HttpResponse, encoding: ContentEncoding) -> HttpResponse {
    let (mut head, body) = response.into_parts();
    let Ok(body) = to_bytes(body).await else { return unreadable(request) };
    // Only static documents share their bytes.
    let document = head.headers().get(header::ETAG).filter(|_| !body.is_unique());
    let encoded = match document {
        Some(tag) => encode_once(tag, &body, encoding),
        None => encode(&body, encoding).map(|(name, bytes)| (name, bytes.into())),
    };
    let (name, bytes) = match encoded {
        Ok(encoded) => encoded,
        Err(error) => {
            tracing::warn!(%error, "an answer could not be compressed");
            return head.set_body(BoxBody::new(body));
        }
    };
    head.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
    head.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    // The bytes differ, so the tag becomes weak (RFC 9110, 8.8.1).
    if let Some(tag) = head.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok()).filter(|tag| tag.starts_with('"'))
        && let Ok(weak) = HeaderValue::from_str(&format!("W/{tag}"))
    {
        head.headers_mut().insert(header::ETAG, weak);
    }
    head.set_body(BoxBody::new(bytes))
}

/// Encodes a document and caches it by its tag. Anyone may request it, so repeated requests must be
/// cheap.
fn encode_once(tag: &HeaderValue, body: &[u8], encoding: ContentEncoding) -> io::Result<(&'static str, Bytes)> {
    type Encoded = (HeaderValue, ContentEncoding, &'static str, Bytes);
    static KNOWN: Mutex<Vec<Encoded>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock();
    if let Some((.., name, bytes)) = known.iter().find(|(of, by, ..)| of == tag && *by == encoding) {
        return Ok((name, bytes.clone()));
    }
    let (name, bytes) = encode(body, encoding)?;
    let bytes = Bytes::from(bytes);
    if known.len() < MAX_ENCODED_DOCUMENTS {
        known.push((tag.clone(), encoding, name, bytes.clone()));
    }
    Ok((name, bytes))
}

/// Encodes an answer, at low levels: speed matters more than size.
fn encode(body: &[u8], encoding: ContentEncoding) -> io::Result<(&'static str, Vec<u8>)> {
    use std::io::Write;
    match encoding {
        ContentEncoding::Brotli => {
            let mut encoded = Vec::with_capacity(body.len() / 3);
            {
                let mut writer = brotli::CompressorWriter::new(&mut encoded, 1 << 16, 3, 20);
                writer.write_all(body)?;
                writer.flush()?;
            }
            Ok(("br", encoded))
        }
        ContentEncoding::Zstd => Ok(("zstd", zstd::bulk::compress(body, 1)?)),
        ContentEncoding::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(Vec::with_capacity(body.len() / 3), flate2::Compression::fast());
            writer.write_all(body)?;
            Ok(("gzip", writer.finish()?))
        }
        other => Err(io::Error::other(format!("no such encoding: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_encoded_once() {
        let encoded =
            |tag: &'static str, text: &[u8], encoding| encode_once(&HeaderValue::from_static(tag), text, encoding).unwrap().1;
        let (one, other) = ([b'a'; 5_000], [b'b'; 5_000]);
        let first = encoded("\"one\"", &one, ContentEncoding::Gzip);
        assert_eq!(first.as_ptr(), encoded("\"one\"", &one, ContentEncoding::Gzip).as_ptr(), "the same bytes");
        assert_ne!(first, encoded("\"other\"", &other, ContentEncoding::Gzip));
        assert_ne!(first, encoded("\"one\"", &one, ContentEncoding::Zstd));
        for i in 0..100 {
            let tag = HeaderValue::from_str(&format!("\"{i}\"")).unwrap();
            assert_eq!(encode_once(&tag, &one, ContentEncoding::Gzip).unwrap().1, first, "also where no more are kept");
        }
    }
}
