//! A keep-alive connection for sequential requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// An answer.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its `ETag`.
    pub tag: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// The connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects to `address`.
    ///
    /// # Panics
    /// If nothing listens there.
    #[must_use]
    pub fn to(address: impl ToSocketAddrs) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        // A server under callgrind, beside other work, is slow.
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Sends the bytes of a request, and reads the answer.
    ///
    /// # Panics
    /// If there is no answer with a `Content-Length`.
    pub fn send(&mut self, request: &[u8]) -> Response {
        self.stream.get_mut().write_all(request).unwrap();
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        let (mut tag, mut length) = (None, 0);
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "etag" => tag = Some(value.to_owned()),
                "content-length" if status != 304 => length = value.parse().unwrap(),
                "transfer-encoding" => panic!("responses must have Content-Length"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        Response { status, tag, body }
    }
}

/// Returns a request with a JSON body; `headers` end with a line break each.
#[must_use]
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    text.into_bytes()
}
