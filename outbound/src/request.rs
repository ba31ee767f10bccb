//! Requests and responses.

use std::time::Duration;

use ureq::http::HeaderMap;
use url::Url;

use crate::error::UrlError;

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
}

impl Method {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct OutboundRequest {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// Names and values of headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The timeout, from the look-up of the name to the last byte of the body.
    pub timeout: Duration,
    /// The maximum size of the decoded body; `None` to skip the body.
    pub most_body_bytes: Option<usize>,
}

/// A response, of any status.
#[derive(Debug)]
pub struct OutboundResponse {
    /// The requested URL.
    pub url: Url,
    /// The status.
    pub status: u16,
    pub(crate) headers: HeaderMap,
    /// The decoded body, if requested.
    pub body: Vec<u8>,
}

impl OutboundResponse {
    /// Returns a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the target of a redirect, if it is one.
    ///
    /// # Errors
    /// The target is not a URL.
    pub fn redirect(&self) -> Option<Result<Url, UrlError>> {
        let target = self.header("location").filter(|_| matches!(self.status, 301 | 302 | 303 | 307 | 308))?;
        Some(self.url.join(target).map_err(|error| UrlError::Malformed(error.to_string())))
    }
}
