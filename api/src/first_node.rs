//! What a node knows of a request's sender that it passes on with the request, in the header
//! `headcount-forwarded`.
//!
//! `headcount-forwarded: TOKEN for=192.0.2.7 country=DE proto=https`. Only nodes of the cluster
//! know the token. Without it the header says nothing.

use std::fmt::Write;
use std::net::IpAddr;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use headcount_common::NodeToken;
use headcount_domain::intake::country::Country;

/// The header, which never goes to clients.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("headcount-forwarded");

/// What the node that the sender reached found out about the sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FirstNode {
    /// The sender's address.
    pub address: Option<IpAddr>,
    /// The sender's country, as a trusted proxy reported it.
    pub country: Option<Country>,
    /// Whether a trusted proxy reported that the sender speaks https.
    pub is_https: bool,
}

/// Takes it out of the headers, which handlers read and errors may show. From anybody but a node it says nothing.
pub(crate) fn take(headers: &mut HeaderMap, nodes: Option<&NodeToken>) -> Option<FirstNode> {
    let passed: Vec<HeaderValue> = headers.remove(&FORWARDED).collect();
    let [value] = &passed[..] else { return None };
    FirstNode::read(value, nodes?)
}

impl FirstNode {
    /// Reads the header. `None`: no node of the cluster wrote it.
    pub(crate) fn read(value: &HeaderValue, token: &NodeToken) -> Option<Self> {
        let (candidate, facts) = value.to_str().ok()?.split_once(' ')?;
        if !token.is(candidate) {
            return None;
        }
        let mut first = Self::default();
        for (name, value) in facts.split(' ').filter_map(|fact| fact.split_once('=')) {
            match name {
                "for" => first.address = value.parse().ok(),
                "country" => first.country = Country::parse(value),
                "proto" => first.is_https = value == "https",
                // A later version may say more.
                _ => {}
            }
        }
        Some(first)
    }

    /// Writes the header. `None`: it can't be written, and the request must not be sent.
    pub(crate) fn write(&self, token: &NodeToken) -> Option<HeaderValue> {
        let mut text = format!("{} proto={}", token.expose(), if self.is_https { "https" } else { "http" });
        if let Some(address) = self.address {
            let _infallible = write!(text, " for={address}");
        }
        if let Some(country) = self.country {
            let _infallible = write!(text, " country={}", country.as_str());
        }
        HeaderValue::try_from(text).ok()
    }
}
