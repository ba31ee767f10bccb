//! Sends the requests of webhooks with the guarded client of `headcount-outbound`.

use headcount_actors::webhooks::{Deliver, DeliveryFailure, SignedRequest};
use headcount_outbound::{AllowList, Method, Outbound, OutboundRequest};

/// Sends requests to globally reachable addresses, and to addresses that the operator allows.
#[derive(Debug)]
pub(crate) struct GuardedTransport(Outbound);

impl GuardedTransport {
    pub(crate) fn new(allowed: AllowList) -> Self {
        Self(Outbound::new(concat!("headcount/", env!("CARGO_PKG_VERSION")), allowed))
    }
}

impl Deliver for GuardedTransport {
    fn check(&self, url: &str) -> Result<String, String> {
        self.0.parse(url).map(Into::into).map_err(|error| format!("can't be used: {error}"))
    }

    fn send(&self, request: &SignedRequest) -> Result<u16, DeliveryFailure> {
        let SignedRequest { url, signature, body, timeout } = request;
        let url = self.0.parse(url).map_err(|_| DeliveryFailure { code: "blocked_address" })?;
        let headers = vec![("content-type", "application/json".to_owned()), ("headcount-signature", signature.clone())];
        let (body, timeout) = (Some(body.clone()), *timeout);
        let request = OutboundRequest { method: Method::Post, url, headers, body, timeout, most_body_bytes: None };
        self.0.send(&request).map(|response| response.status).map_err(|error| DeliveryFailure { code: error.code() })
    }
}
