//! The layer between the socket and actix-http that bounds the memory and time of each client.
//!
//! actix-http decodes all requests that have arrived, and continues to read and answer while the
//! client reads no answers. This layer passes requests on one at a time: each one after the answer
//! to the previous one was sent, and none while an answer can't be written. Heads, bodies and
//! answers each have a deadline.
//!
//! actix-http's read buffer grows with large reads and large heads, and keeps its size until the
//! connection ends. So this layer passes on few bytes at a time, and ends the connection after the
//! answer to a large head.

mod framing;

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use actix_web::web::{Buf, BytesMut};
use headcount_api::client_end::ClientEnd;
use headcount_api::extract::body::Arrived;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;

use framing::{Framing, Phase};

/// How long a head may take, from its first byte on. actix-http enforces this only for the first
/// head of a connection.
const HEAD_DEADLINE: Duration = Duration::from_secs(5);
/// How long a body may take, whether it is read or skipped: longer than handlers wait for a body.
const BODY_DEADLINE: Duration = Duration::from_secs(15);
/// The maximum size of a request on the wire: a batch in tiny chunks. Larger requests are not even
/// skipped.
const MAX_REQUEST_BYTES: u64 = 32 << 20;
/// How long a client may take to read [`WRITE_PROGRESS_BYTES`] of an answer.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);
/// The number of bytes of an answer that a client must read within [`WRITE_DEADLINE`].
const WRITE_PROGRESS_BYTES: usize = 16 << 10;
/// The number of bytes of later requests that are read early.
const MAX_HELD_BYTES: usize = 2 << 10;
/// The size of a read before decoding, and before other connections have their turn. actix-http
/// begins with a buffer of twice this size.
const TURN_BYTES: usize = 4 << 10;
/// The size at which an incomplete head counts as large: its bytes are limited, and its request is
/// the last of the connection.
const COUNTED_HEAD_BYTES: u64 = 8 << 10;
/// The maximum number of bytes of large incomplete heads, over all connections.
const MAX_HEADS_BYTES: usize = 16 << 20;
/// The interim response of actix-http to a client that waits before it sends its body. It is not
/// the answer.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The bytes of incomplete heads, over all connections of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeadBytes(Arc<AtomicUsize>);

/// Whether the current request is the last one of its connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastRequest(Rc<Cell<bool>>);

impl LastRequest {
    /// Whether the connection ends after the answer.
    pub(crate) fn get(&self) -> bool {
        self.0.get()
    }
}

/// A share of [`HeadBytes`], released on drop.
#[derive(Debug)]
struct HeadShare {
    all: HeadBytes,
    bytes: usize,
}

impl HeadShare {
    /// Grows the share to `bytes`. Returns `false` if too few are left.
    fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let taken = more > 0 && self.all.0.fetch_add(more, Ordering::Relaxed) + more > MAX_HEADS_BYTES;
        self.bytes += more;
        !taken
    }

    fn give_back(&mut self) {
        if self.bytes > 0 {
            self.all.0.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
        }
    }
}

impl Drop for HeadShare {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The socket of a connection.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Of a client, or of a node without TLS.
    Plain(TcpStream),
    /// Of another node.
    Secured(Box<TlsStream<TcpStream>>),
}

impl Socket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Secured(socket) => Pin::new(socket).poll_read(cx, buf),
        }
    }

    /// As a stream that is only written.
    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        match self {
            Self::Plain(socket) => Pin::new(socket),
            Self::Secured(socket) => Pin::new(socket),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct BoundedConnection {
    socket: Socket,
    framing: Framing,
    head: HeadShare,
    /// The bytes after the current request.
    held: BytesMut,
    /// Whether the client has finished sending.
    has_ended: bool,
    /// The bytes passed on in this turn.
    turn_bytes: usize,
    /// The deadline of the arriving head or body, and which of the two it is.
    reading: Option<(Phase, Pin<Box<Sleep>>)>,
    /// While nothing can be written: the deadline for reading more, and the bytes read since it was
    /// set.
    writing: Option<(Pin<Box<Sleep>>, usize)>,
    /// Whether writing is blocked.
    is_blocked: bool,
    /// Whether the answer began before the request's body was complete.
    is_answered: bool,
    is_last: LastRequest,
    end: ClientEnd,
    arrived: Arrived,
}

impl BoundedConnection {
    pub(crate) fn new(socket: Socket, heads: HeadBytes) -> Self {
        Self {
            socket,
            framing: Framing::new(),
            head: HeadShare { all: heads, bytes: 0 },
            held: BytesMut::new(),
            has_ended: false,
            turn_bytes: 0,
            reading: None,
            writing: None,
            is_blocked: false,
            is_answered: false,
            is_last: LastRequest::default(),
            end: ClientEnd::default(),
            arrived: Arrived::default(),
        }
    }

    /// Adds handles to the connection's data: the server checks whether the current request is
    /// the last one, questions wait for the client to disconnect, and bodies that have arrived need
    /// no deadline.
    pub(crate) fn share(&self, data: &mut Extensions) {
        data.insert(self.is_last.clone());
        data.insert(self.end.clone());
        data.insert(self.arrived.clone());
    }

    /// Reads early bytes of later requests, up to the limit, and detects that the client has
    /// disconnected.
    fn poll_early(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.has_ended && self.held.len() < MAX_HELD_BYTES {
            let mut space = [MaybeUninit::uninit(); MAX_HELD_BYTES];
            let mut read = ReadBuf::uninit(&mut space);
            match self.socket.poll_read(cx, &mut read)? {
                Poll::Ready(()) if read.filled().is_empty() => {
                    self.has_ended = true;
                    self.end.reach();
                }
                Poll::Ready(()) => self.held.extend_from_slice(read.filled()),
                Poll::Pending => break,
            }
        }
        // Answer early requests before reporting the end.
        if self.has_ended && self.held.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Passes on the bytes of the current request that have arrived.
    fn poll_request(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.turn_bytes >= TURN_BYTES {
            self.turn_bytes = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        if self.held.is_empty() {
            if self.has_ended {
                return Poll::Ready(Ok(()));
            }
            match self.socket.poll_read(cx, buf)? {
                Poll::Ready(()) => {}
                Poll::Pending => {
                    self.turn_bytes = 0;
                    return self.poll_read_deadline(cx);
                }
            }
            let arrived = buf.filled().get(before..).unwrap_or_default();
            if arrived.is_empty() {
                self.has_ended = true;
                return Poll::Ready(Ok(()));
            }
            let taken = self.framing.feed(arrived);
            self.held.extend_from_slice(arrived.get(taken..).unwrap_or_default());
            buf.set_filled(before + taken);
        } else {
            let most = buf.remaining().min(self.held.len());
            let taken = self.framing.feed(self.held.get(..most).unwrap_or_default());
            buf.put_slice(self.held.get(..taken).unwrap_or_default());
            self.held.advance(taken);
            if self.held.is_empty() {
                self.held = BytesMut::new();
            }
        }
        self.turn_bytes += buf.filled().len() - before;
        self.arrived.set(self.framing.phase() == Phase::Complete);
        self.is_within_bounds()?;
        if self.framing.phase() == Phase::Complete && std::mem::take(&mut self.is_answered) {
            self.expect_next();
        }
        Poll::Ready(Ok(()))
    }

    /// Expects the next request, with its own deadlines, unless the last request was answered.
    fn expect_next(&mut self) {
        self.framing.next();
        self.reading = None;
        if self.is_last.get() {
            self.has_ended = true;
            self.held = BytesMut::new();
        }
    }

    fn is_within_bounds(&mut self) -> io::Result<()> {
        match self.framing.phase() {
            Phase::Head if self.framing.bytes > COUNTED_HEAD_BYTES => {
                self.is_last.0.set(true);
                // Buffers double when they grow.
                let bytes = usize::try_from(self.framing.bytes).unwrap_or(usize::MAX).saturating_mul(2);
                if !self.head.grow_to(bytes) {
                    return Err(io::Error::other("too many large request heads are incomplete"));
                }
            }
            Phase::Head => {}
            _ => self.head.give_back(),
        }
        if self.framing.bytes > MAX_REQUEST_BYTES {
            return Err(io::Error::other("the request's body does not end"));
        }
        Ok(())
    }

    /// Waits for more of a request, up to its deadline. After the deadline, the dispatcher sees the
    /// end of the connection.
    fn poll_read_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let phase = self.framing.phase();
        let deadline = match phase {
            Phase::Idle | Phase::Complete => {
                self.reading = None;
                return Poll::Pending;
            }
            Phase::Head => HEAD_DEADLINE,
            Phase::Body => BODY_DEADLINE,
        };
        if self.reading.as_ref().is_none_or(|(of, _)| *of != phase) {
            self.reading = Some((phase, Box::pin(sleep_until(Instant::now() + deadline))));
        }
        let Some((_, timer)) = &mut self.reading else { return Poll::Pending };
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        tracing::debug!(?phase, "a request did not arrive in time");
        self.has_ended = true;
        Poll::Ready(Ok(()))
    }

    /// Waits for the client to read, up to a deadline.
    fn poll_write_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.is_blocked = true;
        let in_time = || (Box::pin(sleep_until(Instant::now() + WRITE_DEADLINE)), 0);
        let (timer, _) = self.writing.get_or_insert_with(in_time);
        match timer.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                tracing::debug!("a client did not read its answer in time");
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Notes that the first `bytes` of `answer` were written.
    fn on_written(&mut self, cx: &Context<'_>, bytes: usize, answer: &[u8]) {
        self.is_blocked = false;
        if bytes == answer.len() {
            self.writing = None;
        } else if let Some((_, progress)) = &mut self.writing {
            *progress += bytes;
            if *progress >= WRITE_PROGRESS_BYTES {
                self.writing = None;
            }
        }
        match self.framing.phase() {
            _ if answer == CONTINUE => {}
            Phase::Complete => self.expect_next(),
            // This answer did not wait for the body, and there is no other one.
            Phase::Body => self.is_answered = true,
            Phase::Idle | Phase::Head => {}
        }
        // The socket will not wake the task: these bytes were read before, or the server ends the
        // connection.
        if !self.held.is_empty() || self.is_last.get() {
            cx.waker().wake_by_ref();
        }
    }
}

impl AsyncRead for BoundedConnection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_blocked || this.framing.phase() == Phase::Complete {
            this.turn_bytes = 0;
            return this.poll_early(cx);
        }
        this.poll_request(cx, buf)
    }
}

impl AsyncWrite for BoundedConnection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.socket.writer().poll_write(cx, buf)? {
            Poll::Ready(written) => {
                this.on_written(cx, written, buf);
                Poll::Ready(Ok(written))
            }
            Poll::Pending => this.poll_write_deadline(cx),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().socket.writer().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().socket.writer().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Reads all bytes that have arrived.
    async fn read_all(connection: &mut BoundedConnection) -> Vec<u8> {
        let mut all = Vec::new();
        poll_fn(|cx| {
            let mut space = [0; 64];
            let mut buf = ReadBuf::new(&mut space);
            loop {
                buf.clear();
                match Pin::new(&mut *connection).poll_read(cx, &mut buf) {
                    Poll::Ready(outcome) => {
                        outcome.unwrap();
                        all.extend_from_slice(buf.filled());
                    }
                    Poll::Pending => return Poll::Ready(()),
                }
            }
        })
        .await;
        all
    }

    async fn readable(connection: &BoundedConnection) {
        match &connection.socket {
            Socket::Plain(socket) => socket.readable().await.unwrap(),
            Socket::Secured(_) => unreachable!("clients have no TLS"),
        }
    }

    #[actix_web::test]
    async fn each_body_of_a_connection_has_its_own_deadline() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut connection = BoundedConnection::new(Socket::Plain(listener.accept().await.unwrap().0), HeadBytes::default());
        let half = b"POST /i HTTP/1.1\r\ncontent-length: 4\r\n\r\nab";
        let mut deadlines = Vec::new();
        for _ in 0..3 {
            client.write_all(half).await.unwrap();
            readable(&connection).await;
            assert!(read_all(&mut connection).await.ends_with(b"ab"));
            assert!(!connection.arrived.get());
            let (phase, timer) = connection.reading.as_ref().unwrap();
            deadlines.push((*phase, timer.deadline()));
            tokio::time::sleep(Duration::from_millis(2)).await;
            // The rest is followed by the next request at once: the connection never waits in
            // between.
            client.write_all(b"cd").await.unwrap();
            readable(&connection).await;
            assert_eq!(read_all(&mut connection).await, b"cd");
            assert!(connection.arrived.get());
            connection.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            let mut answer = [0; 44];
            client.read_exact(&mut answer).await.unwrap();
        }
        assert!(deadlines.iter().all(|(phase, _)| *phase == Phase::Body));
        assert!(deadlines.is_sorted_by(|(_, one), (_, other)| one < other), "{deadlines:?}");
    }
}
