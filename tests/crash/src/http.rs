//! A small HTTP/1.1 client: one connection, one request at a time.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use headcount_model::Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum time for a response: longer than the deadlines of the server.
const TIMEOUT: Duration = Duration::from_secs(30);
/// User agent of a common browser, since the server drops events of bots.
const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36";

/// Credential of a request.
#[derive(Debug, Clone, Copy)]
pub enum Credential<'a> {
    /// No credential.
    None,
    /// Public key of a project.
    Key(&'a str),
    /// API token.
    Token(&'a str),
}

/// A request, with an optional JSON body.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Credential.
    pub credential: Credential<'a>,
    /// JSON body.
    pub body: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// Returns a `GET` request with an API token.
    #[must_use]
    pub fn get(path: &'a str, token: &'a str) -> Self {
        Self { method: "GET", path, credential: Credential::Token(token), body: None }
    }

    /// Returns a request with a body and an API token.
    #[must_use]
    pub fn with_body(method: &'a str, path: &'a str, token: &'a str, body: &'a str) -> Self {
        Self { method, path, credential: Credential::Token(token), body: Some(body) }
    }

    /// Returns a request that sends events of a project: one to `/i` or `/track`, or several to
    /// `/i/batch`.
    #[must_use]
    pub fn events(path: &'a str, key: &'a str, body: &'a str) -> Self {
        Self { method: "POST", path, credential: Credential::Key(key), body: Some(body) }
    }

    /// Returns the request head for a body of `length` bytes; `None` means chunked.
    #[must_use]
    pub fn head(&self, length: Option<usize>) -> String {
        let Self { method, path, .. } = self;
        let credential = match self.credential {
            Credential::None => String::new(),
            Credential::Key(key) => format!("x-service-pk: {key}\r\n"),
            Credential::Token(token) => format!("authorization: Bearer {token}\r\n"),
        };
        let framing = match (self.body, length) {
            (None, _) => String::new(),
            (Some(_), Some(length)) => format!("content-type: application/json\r\ncontent-length: {length}\r\n"),
            (Some(_), None) => "content-type: application/json\r\ntransfer-encoding: chunked\r\n".to_owned(),
        };
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: {USER_AGENT}\r\n{credential}{framing}\r\n")
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// `Retry-After` header.
    pub retry_after: Option<String>,
    /// `ETag` header.
    pub etag: Option<String>,
    /// Body.
    pub body: String,
}

impl Response {
    /// Returns the body as JSON; `null` if it is not valid JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        Json::parse(&self.body).unwrap_or(Json::Null)
    }

    /// Returns an integer field of the body.
    #[must_use]
    pub fn integer(&self, field: &str) -> Option<u64> {
        self.json().field(field).number()?.whole().and_then(|number| u64::try_from(number).ok())
    }
}

/// A connection to the server. It is opened again if the server says that it closes it.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
    is_closed: bool,
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// The connection fails.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, buffer: Vec::new(), is_closed: false })
    }

    /// Sends a request and reads the response.
    ///
    /// # Errors
    /// The connection breaks, or no response arrives in time.
    pub async fn send(&mut self, request: &Request<'_>) -> io::Result<Response> {
        self.send_if_changed(request, "").await
    }

    /// Sends a request that is answered with 304 if the response would have this `ETag`. Empty: any
    /// is sent.
    ///
    /// # Errors
    /// The connection breaks, or no response arrives in time.
    pub async fn send_if_changed(&mut self, request: &Request<'_>, etag: &str) -> io::Result<Response> {
        if self.is_closed {
            *self = Self::open(self.address).await?;
        }
        let body = request.body.unwrap_or_default();
        let mut head = request.head(Some(body.len()));
        if !etag.is_empty() {
            head.insert_str(head.len() - 2, &format!("if-none-match: {etag}\r\n"));
        }
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.as_bytes());
        let exchange = async {
            self.stream.write_all(&bytes).await?;
            self.response().await
        };
        tokio::time::timeout(TIMEOUT, exchange).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Sends a request piece by piece, and returns the response as soon as it arrives, even if not
    /// all pieces were sent.
    ///
    /// # Errors
    /// The connection breaks without a response, or no response arrives in time.
    pub async fn send_slowly(&mut self, pieces: &[Vec<u8>], pause: Duration) -> io::Result<Response> {
        for piece in pieces {
            // The server may have sent a response before it closed the connection.
            if self.stream.write_all(piece).await.is_err() {
                break;
            }
            if let Ok(response) = tokio::time::timeout(pause, self.response()).await {
                return response;
            }
        }
        tokio::time::timeout(TIMEOUT, self.response()).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Reads the next response.
    ///
    /// # Errors
    /// The connection breaks, or the response is malformed.
    pub async fn response(&mut self) -> io::Result<Response> {
        let head_bytes = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.fill().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_bytes]).into_owned();
        let broken = || io::Error::other(format!("malformed response: {head:?}"));
        let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
        let header = |name: &str| {
            let found = head.lines().find_map(|line| line.split_once(':').filter(|(found, _)| found.eq_ignore_ascii_case(name)));
            found.map(|(_, value)| value.trim().to_owned())
        };
        let length: usize = match header("content-length") {
            Some(length) => length.parse().map_err(|_| broken())?,
            None if status == 304 || status == 204 => 0,
            None => return Err(broken()),
        };
        while self.buffer.len() < head_bytes + length {
            self.fill().await?;
        }
        let body = String::from_utf8_lossy(&self.buffer[head_bytes..head_bytes + length]).into_owned();
        self.buffer.drain(..head_bytes + length);
        self.is_closed = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        Ok(Response { status, retry_after: header("retry-after"), etag: header("etag"), body })
    }

    async fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.buffer.extend_from_slice(&chunk[..read]);
                Ok(())
            }
        }
    }
}
