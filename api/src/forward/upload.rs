//! The body of a request on its way to the owner.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::respond::error::Result;
use actix_web::dev::Payload;
use actix_web::web::Bytes;
use headcount_actors::admission_gate::{Holder, Permit};
use hyper::body::{Body, Frame, SizeHint};

use super::travel::{OwnerNode, Travel};
use crate::app::AppState;
use crate::extract::body::{self, BodyContent};
use crate::request::HttpRequest;

/// The part of a request's body that is still to be sent.
pub enum Upload {
    /// Nothing.
    Nothing,
    /// The whole body, read and decoded to find its project.
    Decoded(Bytes, Permit),
    /// The whole body, unread.
    Unread(Payload),
}

impl From<()> for Upload {
    fn from((): ()) -> Self {
        Self::Nothing
    }
}

impl From<(Bytes, Permit)> for Upload {
    fn from((bytes, permit): (Bytes, Permit)) -> Self {
        Self::Decoded(bytes, permit)
    }
}

impl From<Payload> for Upload {
    fn from(payload: Payload) -> Self {
        Self::Unread(payload)
    }
}

/// A complete body that is being sent. Its permit lives until it is.
pub(super) struct UploadBody {
    bytes: Bytes,
    _permit: Option<Permit>,
}

impl Upload {
    /// Whether this node has decoded it.
    pub(super) fn is_decoded(&self) -> bool {
        matches!(self, Self::Decoded(..))
    }

    /// Reads the rest, so that a client that sends slowly delays no other requests to the node `to`.
    pub(super) async fn complete(
        self,
        state: &AppState,
        request: &HttpRequest,
        to: &OwnerNode,
        travel: Travel,
    ) -> Result<UploadBody> {
        let (bytes, permit) = match self {
            Self::Nothing => (Bytes::new(), None),
            Self::Decoded(bytes, permit) => (bytes, Some(permit)),
            Self::Unread(payload) => {
                let content = match to.holder {
                    Holder::Project(_) if travel == Travel::Records => BodyContent::EventsElsewhere(to.holder),
                    holder => BodyContent::Other(Some(holder)),
                };
                let permit = body::admit(state, request, content, body::FIRST_BYTES)?;
                let (bytes, permit) = body::read_encoded(state, request, payload, permit, body::BATCH_LIMIT_BYTES).await?;
                (bytes, Some(permit))
            }
        };
        Ok(UploadBody { bytes, _permit: permit })
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.get_mut().bytes);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
