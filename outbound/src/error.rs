//! The reasons why a request got no response.

use std::io::ErrorKind;
use std::net::IpAddr;

/// The reason why a URL can't be requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is not a URL with a host.
    #[error("not a URL: {0}")]
    Malformed(String),
    /// It has another scheme.
    #[error("only http and https are allowed")]
    Scheme,
    /// It has a user.
    #[error("a URL with a user or password is not allowed")]
    User,
    /// Its host is a forbidden address.
    #[error("{0} is not a globally reachable address")]
    Blocked(IpAddr),
}

/// The reason why a request got no complete response.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The URL can't be requested.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// None of the name's addresses is allowed.
    #[error("{host} has no globally reachable address")]
    Blocked {
        /// The host.
        host: String,
    },
    /// The name could not be looked up.
    #[error("{host} could not be looked up: {reason}")]
    Dns {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The connection failed, ended early, or did not speak HTTP.
    #[error("the connection failed: {0}")]
    Connect(String),
    /// The TLS session failed, for example because of the certificate.
    #[error("the TLS connection failed: {0}")]
    Tls(String),
    /// The response was not complete in time.
    #[error("no complete response in time")]
    Timeout,
    /// The decoded body is too large.
    #[error("the response has more than {most} bytes")]
    TooLarge {
        /// The limit.
        most: usize,
    },
}

impl OutboundError {
    /// Returns the stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url(UrlError::Blocked(_)) | Self::Blocked { .. } => "blocked_address",
            Self::Url(_) => "invalid_url",
            Self::Dns { .. } => "dns_failed",
            Self::Connect(_) => "connect_failed",
            Self::Tls(_) => "tls_failed",
            Self::Timeout => "timeout",
            Self::TooLarge { .. } => "too_large",
        }
    }
}

impl OutboundError {
    /// The error of a request, with TLS or without.
    pub(crate) fn of(error: ureq::Error, is_https: bool) -> Self {
        use ureq::Error;
        match error {
            Error::Other(error) => error.downcast::<Self>().map_or_else(|error| Self::Connect(error.to_string()), |own| *own),
            Error::Timeout(_) => Self::Timeout,
            Error::Io(error) if error.kind() == ErrorKind::TimedOut => Self::Timeout,
            Error::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<Error>()) => {
                let inner = error.into_inner().and_then(|inner| inner.downcast::<Error>().ok());
                inner.map_or_else(|| Self::Connect("unknown".into()), |inner| Self::of(*inner, is_https))
            }
            // rustls reports handshake errors as invalid data.
            Error::Io(error) if is_https && error.kind() == ErrorKind::InvalidData => Self::Tls(error.to_string()),
            Error::Tls(reason) => Self::Tls(reason.to_owned()),
            Error::Rustls(error) => Self::Tls(error.to_string()),
            error => Self::Connect(error.to_string()),
        }
    }
}
