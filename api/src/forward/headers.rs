//! The headers that go with a request to the owner, and with its answer to the client.

use actix_web::http::header::{self as actix_header, HeaderMap as ActixHeaders};
use hyper::http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::first_node;
use crate::request_id::REQUEST_ID;

/// The headers of one connection (RFC 9110, 7.6.1) and of the length of a body. Each node writes its
/// own.
const OF_CONNECTION: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// The headers of proxies. Only the first node reads them; it sends the client's address instead.
const OF_PROXIES: [&str; 4] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

/// Whether a header of requests and answers is not passed on. `named` are the names in `Connection`.
fn stays(name: &str, named: &[String]) -> bool {
    OF_CONNECTION.contains(&name)
        || name == first_node::FORWARDED.as_str()
        || name == REQUEST_ID.as_str()
        || named.iter().any(|other| other == name)
}

fn named<'v>(connection: impl Iterator<Item = &'v [u8]>) -> Vec<String> {
    let text = connection.filter_map(|value| std::str::from_utf8(value).ok());
    text.flat_map(|list| list.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect()
}

/// Returns the headers of a request that are passed on. If `is_decoded`, this node has decoded the
/// body, so its encoding is not passed on.
pub(super) fn of_request(sent: &ActixHeaders, is_decoded: bool) -> HeaderMap {
    let named = named(sent.get_all(actix_header::CONNECTION).map(|value| value.as_bytes()));
    let mut passed = HeaderMap::with_capacity(sent.len() + 2);
    for (name, value) in sent {
        let text = name.as_str();
        let is_encoding = is_decoded && *name == actix_header::CONTENT_ENCODING;
        if is_encoding || OF_PROXIES.contains(&text) || stays(text, &named) {
            continue;
        }
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(text.as_bytes()), HeaderValue::from_bytes(value.as_bytes())) {
            passed.append(name, value);
        }
    }
    passed
}

/// Copies the headers of an answer that are passed on.
pub(super) fn of_answer(answer: &HeaderMap, passed: &mut ActixHeaders) {
    let named = named(answer.get_all(header::CONNECTION).iter().map(HeaderValue::as_bytes));
    for (name, value) in answer {
        if stays(name.as_str(), &named) {
            continue;
        }
        let name = actix_header::HeaderName::from_bytes(name.as_str().as_bytes());
        let value = actix_header::HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            passed.append(name, value);
        }
    }
}
