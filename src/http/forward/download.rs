//! The body of an answer on its way from the owner to the client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use hyper::body::{Body, Incoming};
use tokio::time::{Sleep, sleep};

use super::peers::InUse;

/// Marks an answer that another node made, complete with headers and encoding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedOn;

/// A body that is read from the owner as the client takes it. Dropping it ends the request at the owner.
pub(super) struct Download {
    pub(super) body: Incoming,
    pub(super) size: BodySize,
    /// The connection, until the body is complete.
    pub(super) connection: Option<InUse>,
    /// How long the owner may be silent.
    pub(super) patience: Duration,
    /// When the silence has been too long. `None` while the owner is ahead of the client.
    pub(super) silence: Option<Pin<Box<Sleep>>>,
}

impl Download {
    /// Keeps the connection for the next request: the body is complete.
    pub(super) fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.keep();
        }
    }
}

impl MessageBody for Download {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let this = self.get_mut();
        loop {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    this.silence = None;
                    // An empty chunk would end the answer; trailers are not passed on.
                    if let Ok(bytes) = frame.into_data()
                        && !bytes.is_empty()
                    {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                Poll::Ready(None) => {
                    this.give_back();
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    let patience = this.patience;
                    let silence = this.silence.get_or_insert_with(|| Box::pin(sleep(patience)));
                    return silence.as_mut().poll(cx).map(|()| Some(Err(io::ErrorKind::TimedOut.into())));
                }
            }
        }
    }
}
