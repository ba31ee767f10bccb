//! Converts Segment's messages from JSON to events.

use headcount_domain::agent::Hints;
use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::policy::Policy;
use headcount_domain::intake::segment::{Call, Envelope, Mapped, Message};

use super::{Ingest, Origin, Prepared, Refusal};

/// The request that carried messages.
#[derive(Debug, Clone, Copy)]
pub struct SegmentRequest<'a> {
    /// The origin of the request.
    pub origin: Origin<'a>,
    /// Whether a page sent the request, so that its address and agent are the visitor's. With a
    /// server's request, no visitor has them.
    pub is_of_page: bool,
    /// The fields that its messages share.
    pub envelope: Envelope<'a>,
}

impl Ingest {
    /// Parses one of Segment's messages and applies the project's policy, like [`Ingest::prepare`].
    /// Without `call`, the message names its type.
    ///
    /// # Errors
    /// Returns the same errors as [`Ingest::prepare`]. Errors and warnings name the message's own
    /// fields.
    pub fn prepare_segment(
        &self,
        policy: &Policy,
        json: &str,
        call: Option<Call>,
        request: &SegmentRequest<'_>,
    ) -> Result<Prepared, Refusal> {
        let message = Message::parse(json)?;
        let call = call.map_or_else(|| message.call(), Ok)?;
        let mapped = Mapped::new(&message, call, &request.envelope);
        let sender = request.origin.sender;
        let mut origin = request.origin;
        if !request.is_of_page && !mapped.is_of_device() {
            origin = Origin { sender, ..Origin::SERVER };
        }
        if let Some(address) = mapped.ip().map(ClientAddress::parse) {
            origin.country = address.ip().and_then(|address| self.country_of(address));
            origin.address = Some(address);
        }
        let stated = mapped.user_agent().or(origin.user_agent);
        if stated != origin.user_agent {
            // The hints describe the program that sent the message.
            origin.hints = Hints::NONE;
        }
        origin.user_agent = stated;
        match self.prepare_submission(policy, &mapped.submission(), &origin) {
            Ok(mut prepared) => {
                prepared.rename_warnings(|warning| mapped.renamed_warning(warning));
                Ok(prepared)
            }
            Err(Refusal::Invalid(invalid)) => Err(Refusal::Invalid(mapped.renamed(invalid))),
            Err(other) => Err(other),
        }
    }
}
