//! `GET /privacy-requests/{request_id}/download`: what an export made, whole or a range of it.

use std::io;
use std::sync::Arc;

use actix_web::HttpResponseBuilder;
use actix_web::body::SizedStream;
use actix_web::http::Method;
use actix_web::http::header::{self, ContentDisposition, DispositionParam, DispositionType, HeaderValue, Range};
use actix_web::web::Bytes;
use futures_util::stream;
use headcount_api::blocking;
use headcount_api::endpoint::*;
use headcount_control::PrivacyRequestId;

use super::artifact::PrivacyArtifactShape;
use super::requests::at_home;
use crate::export_state::ArtifactGone;
use crate::exporting::{Download, DownloadError};

/// The size of a part of the stream.
const PART_BYTES: u64 = 256 << 10;

/// Which part of a file is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskedPart {
    Whole,
    /// The first and the last byte.
    Range(u64, u64),
    /// It begins behind the end.
    Unsatisfiable,
}

/// The part that a request asks for. What is not understood, and several ranges, are the whole.
fn part(request: &HttpRequest, etag: &str, bytes: u64) -> AskedPart {
    let text = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let has_changed = request.headers().contains_key(header::IF_RANGE) && text(header::IF_RANGE) != Some(etag);
    let Some(range) = text(header::RANGE).filter(|_| request.method() == Method::GET && !has_changed) else {
        return AskedPart::Whole;
    };
    let Some(Ok(Range::Bytes(ranges))) = (!range.contains(',')).then(|| range.parse()) else { return AskedPart::Whole };
    let [range] = &ranges[..] else { return AskedPart::Whole };
    match range.to_satisfiable_range(bytes) {
        Some((first, last)) => AskedPart::Range(first, last),
        None => AskedPart::Unsatisfiable,
    }
}

impl From<DownloadError> for ApiError {
    fn from(error: DownloadError) -> Self {
        let code = match error {
            DownloadError::Unknown => return Self::not_found("artifact"),
            DownloadError::Elsewhere | DownloadError::MadeAgain => return Self::overloaded(error.to_string()),
            DownloadError::NotReady => ErrorCode::ExportNotReady,
            DownloadError::Failed(_) => ErrorCode::ExportFailed,
            DownloadError::Gone(ArtifactGone::Expired) => ErrorCode::ArtifactExpired,
            DownloadError::Gone(ArtifactGone::Erased) => ErrorCode::ArtifactErased,
            DownloadError::Unreadable(error) => {
                tracing::error!(%error, "an artifact can't be read");
                return Self::internal();
            }
        };
        Self::new(code, error.to_string())
    }
}

/// The artifact of a completed export: `headcount.export.v1`, as JSON. Supports one range.
#[utoipa::path(
    get, path = "/privacy-requests/{request_id}/download", tag = "privacy", operation_id = "download_privacy_export",
    params(PrivacyRequestPath),
    responses(
        (status = 200, description = "The artifact.", content_type = "application/json", body = PrivacyArtifactShape),
        (status = 206, description = "The range of it that was asked for: some of its bytes."),
        NotModified, UnavailableErrors, DownloadErrors,
    ),
)]
pub(crate) async fn download(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let unknown = || ApiError::not_found("privacy request");
    let id: PrivacyRequestId = request.parameter("request_id").parse().map_err(|_| unknown())?;
    let privacy = at_home(&state, &caller)?;
    privacy.get(caller.organization(), &id)?;
    let (opens, organization, wanted) = (Arc::clone(&privacy), caller.organization(), id.clone());
    let found = blocking::run(move || opens.open_export(organization, &wanted)).await??;
    let etag = format!("\"{}\"", found.sha256);
    let known = request.headers().get_all(header::IF_NONE_MATCH).filter_map(|value| value.to_str().ok());
    if known.flat_map(|list| list.split(',')).map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == etag) {
        return Ok(HttpResponse::NotModified()
            .insert_header((header::ETAG, etag))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .finish());
    }
    let part = part(&request, &etag, found.bytes);
    let (first, last) = match part {
        AskedPart::Whole => (0, found.bytes.saturating_sub(1)),
        AskedPart::Range(first, last) => (first, last),
        AskedPart::Unsatisfiable => {
            let message = format!("the range begins behind the end: there are {} bytes", found.bytes);
            let error = ApiError::new(ErrorCode::RangeNotSatisfiable, message);
            return Err(match HeaderValue::from_str(&format!("bytes */{}", found.bytes)) {
                Ok(length) => error.with_header(header::CONTENT_RANGE, length),
                Err(_) => error,
            });
        }
    };
    let is_read = request.method() == Method::GET;
    if is_read {
        let (token_id, noted) = (caller.author(&state, &request).actor.token_id, id.clone());
        blocking::run(move || privacy.note_download(&noted, token_id)).await??;
    }
    let length = if found.bytes == 0 { 0 } else { last + 1 - first };
    let mut answer = answer(part, &id, &etag, found.bytes, (first, last));
    // Without this, HEAD would read the file.
    let until = if is_read { first + length } else { first };
    Ok(answer.body(SizedStream::new(length, parts(found, first, until))))
}

/// The answer without its body.
fn answer(part: AskedPart, id: &PrivacyRequestId, etag: &str, bytes: u64, (first, last): (u64, u64)) -> HttpResponseBuilder {
    let mut answer = if part == AskedPart::Whole { HttpResponse::Ok() } else { HttpResponse::PartialContent() };
    if part != AskedPart::Whole {
        answer.insert_header((header::CONTENT_RANGE, format!("bytes {first}-{last}/{bytes}")));
    }
    let name = DispositionParam::Filename(format!("headcount-export-{id}.json"));
    answer
        .insert_header((header::ETAG, etag))
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header(ContentDisposition { disposition: DispositionType::Attachment, parameters: vec![name] })
        .content_type("application/json");
    answer
}

/// The bytes from `from` to `to`, as the client takes them.
fn parts(found: Download, from: u64, to: u64) -> impl stream::Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold((found.file, from), move |(file, from)| async move {
        if from >= to {
            return None;
        }
        let length = usize::try_from((to - from).min(PART_BYTES)).unwrap_or_default();
        let read = Arc::clone(&file);
        let read = blocking::run(move || {
            let mut bytes = vec![0; length];
            read.read_exact_at(&mut bytes, from).map(|()| Bytes::from(bytes))
        });
        let part = read.await.unwrap_or_else(|_| Err(io::Error::other("the server is shutting down")));
        if let Err(error) = &part {
            tracing::error!(%error, "an artifact can't be read");
        }
        Some((part, (file, from + length as u64)))
    })
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn one_range_is_a_part_and_anything_else_the_whole() {
        let asked = |range: &str| {
            part(&HttpRequest::from(TestRequest::get().insert_header((header::RANGE, range)).to_request()), "\"a\"", 100)
        };
        for (range, expected) in [
            ("bytes=0-9", AskedPart::Range(0, 9)),
            ("bytes=90-", AskedPart::Range(90, 99)),
            ("bytes=90-1000", AskedPart::Range(90, 99)),
            ("bytes=-10", AskedPart::Range(90, 99)),
            ("bytes=-1000", AskedPart::Range(0, 99)),
            ("bytes=99-99", AskedPart::Range(99, 99)),
            ("bytes=100-", AskedPart::Unsatisfiable),
            ("bytes=100-200", AskedPart::Unsatisfiable),
            ("bytes=-0", AskedPart::Unsatisfiable),
            ("bytes=9-0", AskedPart::Whole),
            ("bytes=0-1,5-6", AskedPart::Whole),
            ("bytes=a-b", AskedPart::Whole),
            ("lines=0-1", AskedPart::Whole),
            ("bytes=18446744073709551616-", AskedPart::Whole),
        ] {
            assert_eq!(asked(range), expected, "{range}");
        }
        let if_range = |tag: &str| {
            let request = TestRequest::get().insert_header((header::RANGE, "bytes=0-9")).insert_header((header::IF_RANGE, tag));
            part(&HttpRequest::from(request.to_request()), "\"a\"", 100)
        };
        assert_eq!(
            (if_range("\"a\""), if_range("\"b\""), if_range("W/\"a\"")),
            (AskedPart::Range(0, 9), AskedPart::Whole, AskedPart::Whole)
        );
    }
}
