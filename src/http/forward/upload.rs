//! The body of a request on its way to the owner.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::web::{self, Bytes};
use futures_util::Stream;
use headcount_actors::admission_gate::Permit;
use hyper::body::{Body, Frame, SizeHint};

/// What is left of a request's body.
pub(crate) enum Upload {
    /// There is none.
    Nothing,
    /// It was read and decoded, to find out whose it is. Its bytes are reserved until they are sent.
    Read {
        /// The bytes.
        bytes: Bytes,
        _permit: Permit,
    },
    /// It has not been read.
    Unread(Payload),
}

impl From<()> for Upload {
    fn from((): ()) -> Self {
        Self::Nothing
    }
}

impl From<(Bytes, Permit)> for Upload {
    fn from((bytes, permit): (Bytes, Permit)) -> Self {
        Self::Read { bytes, _permit: permit }
    }
}

impl From<Payload> for Upload {
    fn from(payload: Payload) -> Self {
        Self::Unread(payload)
    }
}

impl From<web::Payload> for Upload {
    fn from(payload: web::Payload) -> Self {
        Self::Unread(payload.into_inner())
    }
}

/// A body that is being sent: read from the client as the owner takes it.
pub(super) struct UploadBody {
    upload: Upload,
    /// How many bytes are left. `None`: it is sent in chunks.
    left: Option<u64>,
    broken: BrokenUpload,
}

/// Whether the client ended its body too early.
#[derive(Debug, Clone, Default)]
pub(super) struct BrokenUpload(Rc<Cell<bool>>);

impl BrokenUpload {
    pub(super) fn is_broken(&self) -> bool {
        self.0.get()
    }
}

impl UploadBody {
    pub(super) fn new(request: &HttpRequest, upload: Upload) -> (Self, BrokenUpload) {
        let left = match &upload {
            Upload::Nothing => Some(0),
            Upload::Read { bytes, .. } => Some(bytes.len() as u64),
            Upload::Unread(_) if request.headers().contains_key(header::TRANSFER_ENCODING) => None,
            Upload::Unread(_) => {
                let length = request.headers().get(header::CONTENT_LENGTH);
                Some(length.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0))
            }
        };
        let broken = BrokenUpload::default();
        (Self { upload, left, broken: broken.clone() }, broken)
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        // The framework treats everything after a head that asks for another protocol as its body.
        if this.left == Some(0) {
            return Poll::Ready(None);
        }
        let chunk = match &mut this.upload {
            Upload::Nothing => None,
            Upload::Read { bytes, .. } => Some(Ok(std::mem::take(bytes))),
            Upload::Unread(payload) => ready!(Pin::new(payload).poll_next(cx)),
        };
        match (chunk, &mut this.left) {
            (Some(Ok(mut bytes)), Some(left)) => {
                bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= bytes.len() as u64;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            (Some(Ok(bytes)), None) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            (None, None) => Poll::Ready(None),
            (Some(Err(_)), _) | (None, Some(_)) => {
                this.broken.0.set(true);
                Poll::Ready(Some(Err(io::Error::other("the body ended before it was complete"))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
