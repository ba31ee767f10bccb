//! Errors of Segment's API, in the shape that its SDKs read, and for the pages that they run in.

use actix_web::http::header::{self, HeaderValue};

use crate::request::HttpRequest;
use crate::respond::error::ApiError;

/// What the paths of Segment's API begin with.
pub(crate) const PREFIX: &str = "/v1/";

/// Who reads an error.
#[derive(Debug)]
pub(crate) enum ErrorReader {
    /// One of Segment's SDKs, perhaps on a page of this origin.
    Sdk(Option<HeaderValue>),
    /// Anybody else.
    Other,
}

impl ErrorReader {
    /// The sender of a request.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        if !request.path().starts_with(PREFIX) {
            return Self::Other;
        }
        Self::Sdk(request.headers().get(header::ORIGIN).cloned())
    }

    /// Returns the error as the reader knows errors.
    pub(crate) fn readable(&self, error: ApiError) -> ApiError {
        match self {
            Self::Sdk(origin) => error.for_segment(origin.clone()),
            Self::Other => error,
        }
    }
}
