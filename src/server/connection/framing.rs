//! Finds the boundaries between requests.
//!
//! actix-http parses the requests. This module only finds their ends, so that they can be passed on
//! one at a time. If the two disagree, the client waits until a deadline ends the connection.

use memchr::memchr;

/// The number of bytes of an incomplete line that are kept: more than any relevant header needs.
const MAX_KEPT_LINE_BYTES: usize = 128;

/// The state of a connection's incoming side.
#[derive(Debug)]
pub(super) struct Framing {
    state: State,
    /// The beginning of an incomplete line of the head or of a chunk's size.
    line: Vec<u8>,
    /// The number of bytes of the request so far.
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head(Head),
    Body {
        left: u64,
    },
    ChunkSize,
    ChunkData {
        left: u64,
    },
    /// The line end after a chunk's data.
    ChunkEnd,
    Trailers,
    /// A body that ends with the connection.
    Endless,
    Complete,
}

/// The properties of the request, from the head so far.
#[derive(Debug, Clone, Copy, Default)]
struct Head {
    has_request_line: bool,
    length: u64,
    is_chunked: bool,
    ends_with_connection: bool,
}

/// The part of a request that the client is sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: the next byte begins a request.
    Idle,
    /// A head.
    Head,
    /// A body.
    Body,
    /// Nothing: the request is complete, and the client waits for the answer.
    Complete,
}

impl Framing {
    pub(super) fn new() -> Self {
        Self { state: State::Head(Head::default()), line: Vec::new(), bytes: 0 }
    }

    /// Expects the next request.
    pub(super) fn next(&mut self) {
        self.state = State::Head(Head::default());
        self.bytes = 0;
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Head(_) if self.bytes == 0 => Phase::Idle,
            State::Head(_) => Phase::Head,
            State::Complete => Phase::Complete,
            _ => Phase::Body,
        }
    }

    /// Reads bytes. Returns how many of them belong to the current request.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            at += match self.state {
                State::Complete => break,
                State::Endless => rest.len(),
                State::Body { left } => {
                    let (taken, left) = take(rest, left);
                    self.state = if left == 0 { State::Complete } else { State::Body { left } };
                    taken
                }
                State::ChunkData { left } => {
                    let (taken, left) = take(rest, left);
                    self.state = if left == 0 { State::ChunkEnd } else { State::ChunkData { left } };
                    taken
                }
                State::Head(_) | State::ChunkSize | State::ChunkEnd | State::Trailers => self.feed_line(rest),
            };
        }
        self.bytes += at as u64;
        at
    }

    /// Reads up to the end of the line; all bytes, if they don't contain it.
    fn feed_line(&mut self, bytes: &[u8]) -> usize {
        let end = memchr(b'\n', bytes);
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        if end.is_some() && self.line.is_empty() {
            self.read_line(part);
        } else {
            let room = MAX_KEPT_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                self.read_line(&line);
            }
        }
        end.map_or(bytes.len(), |end| end + 1)
    }

    fn read_line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.state = match self.state {
            State::Head(head) if !line.is_empty() => State::Head(head.with_line(line)),
            // Empty lines before a request are allowed.
            State::Head(head) if !head.has_request_line => State::Head(head),
            State::Head(head) if head.is_chunked => State::ChunkSize,
            State::Head(head) if head.ends_with_connection => State::Endless,
            State::Head(Head { length: 0, .. }) => State::Complete,
            State::Head(head) => State::Body { left: head.length },
            State::ChunkSize => match chunk_size(line) {
                Some(0) => State::Trailers,
                Some(left) => State::ChunkData { left },
                None => State::Endless,
            },
            State::ChunkEnd => State::ChunkSize,
            State::Trailers if line.is_empty() => State::Complete,
            other => other,
        };
    }
}

impl Head {
    fn with_line(mut self, line: &[u8]) -> Self {
        if !self.has_request_line {
            self.has_request_line = true;
            self.ends_with_connection = line.starts_with(b"CONNECT ");
            return self;
        }
        // Most headers are irrelevant, and the first letter is enough to skip them.
        let Some(b'c' | b'C' | b't' | b'T' | b'u' | b'U') = line.first() else { return self };
        let Some(colon) = memchr(b':', line) else { return self };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            match std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()) {
                Some(length) => self.length = length,
                None => self.ends_with_connection = true,
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.is_chunked |= value.eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.ends_with_connection |= value.eq_ignore_ascii_case(b"websocket");
        }
        self
    }
}

fn take(bytes: &[u8], left: u64) -> (usize, u64) {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    (taken, left - taken as u64)
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits what a client sends at once into its requests, fed in parts of `size` bytes.
    fn requests(sent: &str, size: usize) -> Vec<String> {
        let mut framing = Framing::new();
        let mut found = vec![String::new()];
        for part in sent.as_bytes().chunks(size) {
            let mut rest = part;
            while !rest.is_empty() {
                let taken = framing.feed(rest);
                if let Some(last) = found.last_mut() {
                    last.push_str(std::str::from_utf8(&rest[..taken]).unwrap());
                }
                rest = &rest[taken..];
                if framing.phase() == Phase::Complete {
                    framing.next();
                    found.push(String::new());
                }
            }
        }
        found
    }

    #[test]
    fn requests_end_where_their_heads_say() {
        let all = [
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
            "\r\n\r\nGET /after-empty-lines HTTP/1.1\r\nhost: a\r\n\r\n",
            "POST /i HTTP/1.1\r\nhost: a\r\nContent-Length:  12 \r\nconnection: keep-alive\r\n\r\nGET /\r\n\r\n\r\n\r",
            "GET /bare-line-ends HTTP/1.1\nhost: a\n\n",
            "POST /i HTTP/1.1\r\nTRANSFER-ENCODING: Chunked\r\n\r\n5;a=b\r\n\r\n\r\n1\r\nA\r\n\r\n0123456789\r\n0\r\nx: y\r\n\r\n",
            "POST /i HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
            "HEAD /docs HTTP/1.0\r\n\r\n",
        ];
        let sent = all.concat();
        for size in [1, 2, 3, 7, 64, sent.len()] {
            let mut expected: Vec<String> = all.iter().map(ToString::to_string).collect();
            expected.push(String::new());
            assert_eq!(requests(&sent, size), expected, "in parts of {size}");
        }
    }

    #[test]
    fn what_can_not_be_framed_goes_on_to_the_end() {
        for head in [
            "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nupgrade: websocket\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nnone\r\n",
        ] {
            assert_eq!(requests(&format!("{head}GET / HTTP/1.1\r\n\r\n"), 5).len(), 1, "{head}");
        }
    }

    #[test]
    fn a_long_line_is_not_kept() {
        let mut framing = Framing::new();
        for _ in 0..1_000 {
            framing.feed(&[b'x'; 1_000]);
        }
        assert!(framing.line.capacity() < 1_000);
        assert_eq!((framing.phase(), framing.bytes), (Phase::Head, 1_000_000));
    }
}
