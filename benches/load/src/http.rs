//! A connection with just enough HTTP/1.1 to send requests at the lowest cost.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// The maximum number of headers of a response.
const MAX_HEADERS: usize = 32;

/// The status of a response. Its body is in the connection's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Response {
    /// The status.
    pub(crate) status: u16,
    body: (usize, usize),
    etag: Option<(usize, usize)>,
    closes: bool,
}

/// A connection that reopens after it was closed.
pub(crate) struct Connection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    /// Creates a connection to `address`. The first request opens it.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, stream: None, buffer: Vec::new() }
    }

    /// Sends a request and waits for the whole response.
    pub(crate) async fn send(&mut self, request: &[u8]) -> io::Result<Response> {
        let result = tokio::time::timeout(TIMEOUT, self.send_once(request)).await;
        let result = result.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        // A half-read or half-written connection can't be reused.
        if !matches!(result, Ok(Response { closes: false, .. })) {
            self.stream = None;
        }
        result
    }

    /// Whether the connection is open, as far as this side knows.
    pub(crate) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// The body of the last response.
    pub(crate) fn body(&self, response: Response) -> &[u8] {
        self.buffer.get(response.body.0..response.body.1).unwrap_or_default()
    }

    /// The `ETag` of the last response.
    pub(crate) fn etag(&self, response: Response) -> Option<&[u8]> {
        response.etag.and_then(|(from, to)| self.buffer.get(from..to))
    }

    async fn send_once(&mut self, request: &[u8]) -> io::Result<Response> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                none.insert(stream)
            }
        };
        stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(response) = parse(&self.buffer)? {
                return Ok(response);
            }
            if self.buffer.len() >= MAX_RESPONSE_BYTES {
                return Err(invalid());
            }
        }
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the response is not valid HTTP")
}

/// Parses a response. Returns `None` until all of it has arrived.
fn parse(bytes: &[u8]) -> io::Result<Option<Response>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(bytes).map_err(|_| invalid())? else { return Ok(None) };
    let status = head.code.unwrap_or(0);
    let (mut length, mut closes, mut etag) = (None, false, None);
    for header in head.headers.iter() {
        // The length is enough to skip most other headers.
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                length = std::str::from_utf8(header.value).ok().and_then(|digits| digits.parse().ok());
            }
            10 if header.name.eq_ignore_ascii_case("connection") => closes = header.value.eq_ignore_ascii_case(b"close"),
            4 if header.name.eq_ignore_ascii_case("etag") => {
                let from = header.value.as_ptr().addr() - bytes.as_ptr().addr();
                etag = Some((from, from + header.value.len()));
            }
            _ => {}
        }
    }
    let length: usize = if matches!(status, 204 | 304) { 0 } else { length.ok_or_else(invalid)? };
    let end = start.checked_add(length).ok_or_else(invalid)?;
    Ok((bytes.len() >= end).then_some(Response { status, body: (start, end), etag, closes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_whole_and_in_parts() {
        let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\nx: y\r\n\r\nhello";
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]).unwrap(), None, "{cut}");
        }
        let answer = parse(whole).unwrap().unwrap();
        assert_eq!((answer.status, &whole[answer.body.0..answer.body.1], answer.closes), (202, &b"hello"[..], false));
        let closing = parse(b"HTTP/1.1 503 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap().unwrap();
        assert_eq!((closing.status, closing.closes), (503, true));
        let unchanged = b"HTTP/1.1 304 Not Modified\r\nvary: x\r\nETag: \"a-1\"\r\n\r\n";
        let answer = parse(unchanged).unwrap().unwrap();
        let (from, to) = answer.etag.unwrap();
        assert_eq!((answer.status, &unchanged[from..to]), (304, &b"\"a-1\""[..]));
        for bad in [&b"SSH-2.0\r\n\r\n"[..], b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
        {
            assert_eq!(parse(bad).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
