//! The id of a request: the client's own, or a new one.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries the id of a request, in requests and answers.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const MAX_REQUEST_ID_BYTES: usize = 128;

/// The id of a request.
#[derive(Debug, Clone)]
pub struct RequestId(pub HeaderValue);

impl RequestId {
    /// Returns the id in the headers of a request if it is valid, or a new one.
    pub fn of(headers: &HeaderMap) -> Self {
        let sane = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            !bytes.is_empty() && bytes.len() <= MAX_REQUEST_ID_BYTES && bytes.iter().all(allowed)
        };
        match headers.get(&REQUEST_ID).filter(sane) {
            Some(value) => Self(value.clone()),
            None => Self(next()),
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// A new id: 16 hex digits, unlikely to repeat, not secret.
fn next() -> HeaderValue {
    let random = fastrand::u64(..);
    let digit = |place: usize| b"0123456789abcdef"[(random >> (4 * place)) as usize % 16];
    let digits: [u8; 16] = std::array::from_fn(digit);
    HeaderValue::from_bytes(&digits).unwrap_or(HeaderValue::from_static("0"))
}
