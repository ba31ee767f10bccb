//! One connection: just enough HTTP/1.1 to ask again and again, for as little as it can cost.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer that is understood.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// An answer's status; its body is in the connection's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    body: (usize, usize),
    closes: bool,
}

/// A connection that is opened again when it was closed.
pub(crate) struct Connection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    /// To `address`; opened by the first request.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, stream: None, buffer: Vec::with_capacity(4_096) }
    }

    /// Sends a whole request and waits for the whole answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        let result = tokio::time::timeout(TIMEOUT, self.ask_once(request)).await;
        let result = result.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        // What is half read or half written can't be used again.
        if !matches!(result, Ok(Answer { closes: false, .. })) {
            self.stream = None;
        }
        result
    }

    /// The body of the last answer.
    pub(crate) fn body(&self, answer: Answer) -> &[u8] {
        self.buffer.get(answer.body.0..answer.body.1).unwrap_or_default()
    }

    async fn ask_once(&mut self, request: &[u8]) -> io::Result<Answer> {
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
            match parse(&self.buffer) {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) if self.buffer.len() < MAX_ANSWER_BYTES => {}
                _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer that is not understood")),
            }
        }
    }
}

/// An answer that is not HTTP, or without a length.
#[derive(Debug, PartialEq, Eq)]
struct NotUnderstood;

/// Reads an answer, if all of it is there.
fn parse(bytes: &[u8]) -> Result<Option<Answer>, NotUnderstood> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = (&bytes[..end], end + 4);
    let digits = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3)).ok_or(NotUnderstood)?;
    let status =
        digits.iter().try_fold(0, |status: u16, digit| digit.is_ascii_digit().then(|| status * 10 + u16::from(digit - b'0')));
    let status = status.ok_or(NotUnderstood)?;
    let (mut length, mut closes) = (None, false);
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse::<usize>().ok());
        } else if name.eq_ignore_ascii_case(b"connection") {
            closes = value.eq_ignore_ascii_case(b"close");
        }
    }
    let length = match status {
        204 | 304 => 0,
        _ => length.ok_or(NotUnderstood)?,
    };
    let end = body.checked_add(length).ok_or(NotUnderstood)?;
    Ok((bytes.len() >= end).then_some(Answer { status, body: (body, end), closes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_whole_and_in_parts() {
        let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\nx: y\r\n\r\nhello";
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]), Ok(None), "{cut}");
        }
        let answer = parse(whole).unwrap().unwrap();
        assert_eq!((answer.status, &whole[answer.body.0..answer.body.1], answer.closes), (202, &b"hello"[..], false));
        let closing = parse(b"HTTP/1.1 503 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap().unwrap();
        assert_eq!((closing.status, closing.closes), (503, true));
        assert_eq!(parse(b"HTTP/1.1 304 Not Modified\r\n\r\n").unwrap().unwrap().status, 304);
        for bad in [&b"SSH-2.0\r\n\r\n"[..], b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
        {
            assert_eq!(parse(bad), Err(NotUnderstood));
        }
    }
}
