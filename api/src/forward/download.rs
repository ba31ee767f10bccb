//! The body of an answer on its way from the owner to the client.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use tokio::time::{Sleep, sleep, timeout};

use super::peers::{InUse, NoAnswer};
use super::travel::Travel;

/// The number of bytes of an answer that are read before the client gets the first.
const AHEAD_BYTES: usize = 64 << 10;

/// A body that this node reads from the owner as the client takes it. Dropping it ends the request
/// at the owner.
pub(super) struct Download {
    /// The chunks that were read before the client took any.
    ahead: VecDeque<Bytes>,
    body: Incoming,
    pub(super) size: BodySize,
    /// The connection, until the body is complete.
    connection: Option<InUse>,
    /// The longest time without a byte from the owner.
    patience: Duration,
    /// The end of that time. `None` while the owner is ahead of the client.
    silence: Option<Pin<Box<Sleep>>>,
    /// Ends the body early once it is ready.
    until: Option<LocalBoxFuture<'static, ()>>,
}

impl Download {
    /// Begins to read a body. A short body is read to its end, so that a client that reads slowly
    /// keeps no connection to the owner. A body that takes long is passed on at once.
    pub(super) async fn begin(
        mut body: Incoming,
        connection: InUse,
        patience: Duration,
        travel: Travel,
    ) -> Result<Self, NoAnswer> {
        let (mut ahead, mut bytes, mut is_complete) = (VecDeque::new(), 0, body.is_end_stream());
        while !is_complete && bytes < AHEAD_BYTES && !matches!(travel, Travel::ReadsForLong | Travel::Follows) {
            match timeout(patience, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    // An empty chunk would end the answer; trailers are not passed on.
                    if let Some(chunk) = frame.into_data().ok().filter(|chunk| !chunk.is_empty()) {
                        bytes += chunk.len();
                        ahead.push_back(chunk);
                    }
                    is_complete = body.is_end_stream();
                }
                Ok(None) => is_complete = true,
                Ok(Some(Err(_))) | Err(_) => return Err(NoAnswer::Lost),
            }
        }
        let (size, connection, silence, until) = (BodySize::None, Some(connection), None, None);
        let mut download = Self { ahead, body, size, connection, patience, silence, until };
        if is_complete {
            download.give_back();
        }
        Ok(download)
    }

    /// Ends the body once `until` is ready.
    pub(super) fn until(self, until: impl Future<Output = ()> + 'static) -> Self {
        Self { until: Some(until.boxed_local()), ..self }
    }

    /// Whether there is no body.
    pub(super) fn is_empty(&self) -> bool {
        self.connection.is_none() && self.ahead.is_empty()
    }

    /// Keeps the connection for the next request: the body is complete.
    fn give_back(&mut self) {
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
        if let Some(chunk) = this.ahead.pop_front() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        if this.connection.is_none() {
            return Poll::Ready(None);
        }
        loop {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    this.silence = None;
                    if let Some(chunk) = frame.into_data().ok().filter(|chunk| !chunk.is_empty()) {
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                Poll::Ready(None) => {
                    this.give_back();
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    if this.until.as_mut().is_some_and(|until| until.poll_unpin(cx).is_ready()) {
                        return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
                    }
                    let patience = this.patience;
                    let silence = this.silence.get_or_insert_with(|| Box::pin(sleep(patience)));
                    return silence.as_mut().poll(cx).map(|()| Some(Err(io::ErrorKind::TimedOut.into())));
                }
            }
        }
    }
}
